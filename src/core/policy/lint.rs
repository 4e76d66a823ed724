//! The rules that the files have to keep beyond being readable line by line (`reader`).
//!
//! Everything that is wrong is reported at once. A rule here is about access going wrong without anybody
//! noticing: a line without effect, a permission forgotten, an organization locked out of its own policy.

use std::fmt;

use serde::Serialize;

use super::{
    compile::Table,
    expectations::{self, Expectation},
    reader::{Effect, Grant, Reader, Subject, numbered},
    source::{File, MODEL, Sources},
};
use crate::base::{
    ids::OrgId,
    permission::{Permission, Role},
};

/// What is wrong, and where. Displayed as `policies/policy.csv:14: reason`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct LintProblem {
    /// The file, with its folder.
    pub file: String,
    /// The line, counted from 1; none if it is about the file as a whole.
    pub line: Option<usize>,
    /// What is wrong with it.
    pub reason: String,
}

impl LintProblem {
    pub(super) fn of_file(file: &str, reason: String) -> Self {
        Self { file: file.to_owned(), line: None, reason }
    }
}

impl fmt::Display for LintProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}: {}", self.file, self.reason),
            None => write!(f, "{}: {}", self.file, self.reason),
        }
    }
}

/// Everything that the files say.
#[derive(Default)]
pub(super) struct Rules {
    /// The `g` lines: a role, and the one whose permissions it has too.
    pub inherits: Vec<(Role, Role)>,
    /// The lines of `policy.csv`.
    pub base: Vec<Grant>,
    /// The lines of each organization's file, by organization.
    pub orgs: Vec<(OrgId, Vec<Grant>)>,
    /// What has to come of it all.
    pub expectations: Vec<Expectation>,
}

impl Rules {
    /// The lines of an organization's own file; none if it has no file.
    pub fn own(&self, org: OrgId) -> &[Grant] {
        self.orgs.binary_search_by_key(&org, |(org, _)| *org).map_or(&[], |at| self.orgs[at].1.as_slice())
    }
}

/// Reads all files. The rules are what could be read; they are only good if there is no problem.
pub(super) fn lint(sources: &Sources) -> (Rules, Vec<LintProblem>) {
    let mut problems = sources.strays.clone();
    lint_model(&sources.model, &mut problems);
    let mut rules = Rules { expectations: expectations::read(sources, &mut problems), ..Rules::default() };
    let mut policy = Reader::new(&sources.policy, None, &mut problems);
    policy.read_all();
    (rules.base, rules.inherits) = (policy.grants, policy.inherits);
    let roles = Inheritance::new(&rules.inherits);
    if sources.policy.text.is_ok() && !rules.base.is_empty() {
        lint_base(&sources.policy.name, &rules.base, &roles, &mut problems);
    }
    for (org, file) in &sources.orgs {
        let mut own = Reader::new(file, Some(*org), &mut problems);
        own.read_all();
        let own = own.grants;
        lint_ceiling(file, &own, &sources.policy.name, &rules.base, &roles, &mut problems);
        rules.orgs.push((*org, own));
    }
    (rules, problems)
}

/// One after the other.
#[must_use]
pub fn listed(problems: &[LintProblem]) -> String {
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

/// By file and line.
pub(super) fn in_order(mut problems: Vec<LintProblem>) -> Vec<LintProblem> {
    problems.sort();
    problems
}

/// The organizations in which nobody could edit the policy, and so nobody could repair it.
pub(super) fn lockouts(rules: &Rules, table: &Table, sources: &Sources) -> Vec<LintProblem> {
    let edits = |role: &Role| table.base_permissions(*role).contains(Permission::PolicyEdit);
    if !Role::ALL.iter().any(edits) {
        let reason = "no role has policy.edit: nobody could edit an organization's policy".to_owned();
        return vec![LintProblem::of_file(&sources.policy.name, reason)];
    }
    let mut problems = Vec::new();
    for ((org, grants), (_, file)) in rules.orgs.iter().zip(&sources.orgs) {
        // A higher role has everything that a lower one has: what the OWNER lacks, nobody has.
        let owner = table.role_permissions(*org, Role::Owner);
        let lost = OWNER_KEEPS
            .into_iter()
            .filter(|kept| !owner.contains(*kept) && table.base_permissions(Role::Owner).contains(*kept));
        problems.extend(lost.map(|lost| {
            let reason = if lost == Permission::PolicyEdit {
                format!("nobody in organization {org} could edit its policy: no role keeps policy.edit")
            } else {
                format!("an OWNER of organization {org} would lose {lost}, which every OWNER keeps")
            };
            let takes = |grant: &&Grant| grant.permission == lost && grant.effect == Effect::Deny;
            LintProblem {
                file: file.name.clone(),
                line: grants.iter().find(takes).map(|grant| grant.line),
                reason,
            }
        }));
    }
    problems
}

/// What no organization's own file takes from its OWNER: without these, an organization can't mend itself.
const OWNER_KEEPS: [Permission; 5] = [
    Permission::OrganizationView,
    Permission::MemberView,
    Permission::MemberEdit,
    Permission::PolicyView,
    Permission::PolicyEdit,
];

/// The model has to mean what the one in the program means: `compile` rests on its matcher.
fn lint_model(file: &File, problems: &mut Vec<LintProblem>) {
    let text = match &file.text {
        Ok(text) => text,
        Err(reason) => return problems.push(LintProblem::of_file(&file.name, reason.clone())),
    };
    let mut expected = meaning(MODEL);
    for (line, given) in meaning(text) {
        match expected.next() {
            Some((_, wanted)) if wanted == given => {}
            Some((_, wanted)) => {
                let reason = format!("the model is fixed: expected \"{wanted}\"");
                return problems.push(LintProblem { file: file.name.clone(), line: Some(line), reason });
            }
            None => {
                let reason = "the model is fixed: nothing more is expected".to_owned();
                return problems.push(LintProblem { file: file.name.clone(), line: Some(line), reason });
            }
        }
    }
    if let Some((_, wanted)) = expected.next() {
        problems
            .push(LintProblem::of_file(&file.name, format!("the model is fixed: \"{wanted}\" is missing")));
    }
}

/// The lines of a model that mean something, with their numbers, spaces evened out.
fn meaning(text: &str) -> impl Iterator<Item = (usize, String)> {
    numbered(text).map(|(line, text)| (line, text.split_whitespace().collect::<Vec<_>>().join(" ")))
}

/// Which role has the permissions of which: itself, and what the `g` lines lead to.
pub(super) struct Inheritance([[bool; Role::ALL.len()]; Role::ALL.len()]);

impl Inheritance {
    pub fn new(links: &[(Role, Role)]) -> Self {
        let mut has = [[false; Role::ALL.len()]; Role::ALL.len()];
        // A role inherits only from lower ones, so from the lowest up each finds its parents complete.
        for role in Role::ALL.into_iter().rev() {
            has[role.index()][role.index()] = true;
            for (_, parent) in links.iter().filter(|(from, _)| *from == role) {
                for lower in Role::ALL {
                    has[role.index()][lower.index()] |= has[parent.index()][lower.index()];
                }
            }
        }
        Self(has)
    }

    /// Whether `role` has everything that `lower` has.
    pub fn covers(&self, role: Role, lower: Role) -> bool {
        self.0[role.index()][lower.index()]
    }

    /// The line of `grants` that denies `permission` to `role`.
    fn denial<'a>(&self, grants: &'a [Grant], role: Role, permission: Permission) -> Option<&'a Grant> {
        grants.iter().find(|grant| {
            grant.permission == permission
                && grant.effect == Effect::Deny
                && matches!(grant.subject, Subject::Role(denied) if self.covers(denied, role))
        })
    }
}

/// Every permission is spoken of, and no line of the base policy is without effect.
fn lint_base(file: &str, base: &[Grant], roles: &Inheritance, problems: &mut Vec<LintProblem>) {
    for grant in base {
        if let (Subject::Role(role), Effect::Allow) = (grant.subject, grant.effect)
            && let Some(reason) = without_effect(role, grant, base, roles)
        {
            problems.push(LintProblem { file: file.to_owned(), line: Some(grant.line), reason });
        }
    }
    let spoken = |permission| {
        base.iter().any(|grant| grant.permission == permission && grant.subject != Subject::ServiceToken)
    };
    for permission in Permission::ALL.into_iter().filter(|permission| !spoken(*permission)) {
        let reason = format!("no line gives {permission} to a role, and none denies it");
        problems.push(LintProblem::of_file(file, reason));
    }
}

fn without_effect(role: Role, grant: &Grant, base: &[Grant], roles: &Inheritance) -> Option<String> {
    let permission = grant.permission;
    if let Some(denial) = roles.denial(base, role, permission) {
        return Some(format!(
            "without effect: line {} denies {permission} to {}",
            denial.line,
            denial.subject.as_str()
        ));
    }
    let gives =
        |lower| lower != role && roles.covers(role, lower) && roles.denial(base, lower, permission).is_none();
    let inherited = base.iter().find(|other| {
        other.permission == permission
            && other.effect == Effect::Allow
            && matches!(other.subject, Subject::Role(lower) if gives(lower))
    })?;
    let (lower, line) = (inherited.subject.as_str(), inherited.line);
    Some(format!("without effect: {role} inherits {permission} from {lower} by line {line}"))
}

/// An organization's file gives nothing that the base policy denies.
fn lint_ceiling(
    file: &File,
    own: &[Grant],
    base_name: &str,
    base: &[Grant],
    roles: &Inheritance,
    problems: &mut Vec<LintProblem>,
) {
    for grant in own.iter().filter(|grant| grant.effect == Effect::Allow) {
        let Subject::Role(role) = grant.subject else { continue };
        if let Some(denial) = roles.denial(base, role, grant.permission) {
            let (permission, line) = (grant.permission, denial.line);
            let reason =
                format!("{role} can't be given {permission}: {base_name}:{line} denies it everywhere");
            problems.push(LintProblem { file: file.name.clone(), line: Some(grant.line), reason });
        }
    }
}
