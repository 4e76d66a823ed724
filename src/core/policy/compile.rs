//! Asks casbin every possible question once, and keeps the answers.
//!
//! `enforce` looks at every line, so asking everything for every organization over all lines would cost (organizations
//! × roles × permissions × lines). Three facts about the matcher in `policies/model.conf` make it cheap, and a test
//! compares the result with an enforcer over all lines, cell by cell:
//!
//! - `r.act == p.act`: a line does not affect other permissions. So casbin is asked about one permission at a time,
//!   with only the lines that name it.
//! - `p.dom == "*" || p.dom == r.dom`: a line does not affect other organizations. So an organization is asked only
//!   about the permissions that its own rules name; for all others it has the answers of `*`.
//! - The matcher only compares domains for equality: two organizations whose files say the same about a permission get
//!   the same answer, and casbin is asked for the first of them. So there are at most 81 questions per permission (each
//!   role allowed, denied or not named), regardless of the number of organizations.
//!
//! One enforcer serves for all of this: role links are built once, and only the `p` lines change. When a policy is read
//! again, it reuses the rows of organizations whose rules did not change.

use std::collections::HashMap;

use casbin::{CoreApi, DefaultModel, Enforcer, StringAdapter};
use futures::FutureExt;

use super::{
    line::{Effect, Grant, LintProblem, SERVICE_TOKEN, Subject},
    rules::{OWNER_KEEPS, Rules},
    source::{MODEL, Sources},
};
use crate::base::{
    ids::OrgId,
    permission::{Permission, PermissionSet, Role},
};

/// The permissions of each role, in the order of [`Role::ALL`].
type Row = [PermissionSet; Role::ALL.len()];

/// Casbin's answers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    base: Row,
    /// Organizations with rules of their own.
    overrides: HashMap<OrgId, Row>,
    token_cap: PermissionSet,
}

impl Table {
    /// Everything that `role` may do in `org`.
    #[must_use]
    pub fn role_permissions(&self, org: OrgId, role: Role) -> PermissionSet {
        self.overrides.get(&org).unwrap_or(&self.base)[role.index()]
    }

    /// Everything that `role` may do in an organization without rules of its own.
    #[must_use]
    pub fn base_permissions(&self, role: Role) -> PermissionSet {
        self.base[role.index()]
    }

    /// Everything that `subject` may do in `org`, or, without `org`, in organizations without rules of their own.
    pub(super) fn row(&self, org: Option<OrgId>, subject: Subject) -> PermissionSet {
        match (subject, org) {
            (Subject::ServiceToken, _) => self.token_cap,
            (Subject::Role(role), Some(org)) => self.role_permissions(org, role),
            (Subject::Role(role), None) => self.base_permissions(role),
        }
    }

    pub(super) fn allows(&self, org: Option<OrgId>, subject: Subject, permission: Permission) -> bool {
        self.row(org, subject).contains(permission)
    }

    /// The organizations with rules of their own.
    pub(super) fn overridden(&self) -> Vec<OrgId> {
        let mut orgs: Vec<OrgId> = self.overrides.keys().copied().collect();
        orgs.sort_unstable();
        orgs
    }

    /// The most that a service token can have.
    #[must_use]
    pub fn token_cap(&self) -> PermissionSet {
        self.token_cap
    }

    /// How many organizations have rules of their own.
    #[must_use]
    pub fn organizations(&self) -> usize {
        self.overrides.len()
    }
}

/// The domain of organizations without rules of their own.
const EVERYWHERE: &str = "*";

/// Asks every question, except those already answered for exactly the same lines.
pub(super) fn compile(rules: &Rules, before: Option<(&Rules, &Table)>) -> casbin::Result<Table> {
    let before = before.filter(|(old, _)| old.inherits == rules.inherits && same(&old.base, &rules.base));
    let mut judge = Judge::new(rules)?;
    let mut table = Table::default();
    if let Some((_, known)) = before {
        (table.base, table.token_cap) = (known.base, known.token_cap);
    }
    for permission in Permission::ALL.into_iter().filter(|_| before.is_none()) {
        judge.replace_lines(about(permission, &rules.base).map(|grant| (EVERYWHERE, grant)));
        for role in Role::ALL {
            let answer = judge.ask(role.as_str(), EVERYWHERE, permission)?;
            table.base[role.index()].set(permission, answer);
        }
        table.token_cap.set(permission, judge.ask(SERVICE_TOKEN, EVERYWHERE, permission)?);
    }
    let mut asked = Known::new();
    for own in &rules.orgs {
        let (org, grants) = (&own.org, &own.grants);
        let known =
            before.and_then(|(old, known)| known.overrides.get(org).filter(|_| same(old.own(*org), grants)));
        if let Some(row) = known {
            table.overrides.insert(*org, *row);
            continue;
        }
        let row = org_row(&mut judge, &mut asked, table.base, &rules.base, *org, grants)?;
        table.overrides.insert(*org, row);
    }
    Ok(table)
}

/// The organizations in which no one could edit the policy, so that no one could repair it.
pub(super) fn lockouts(rules: &Rules, table: &Table, sources: &Sources) -> Vec<LintProblem> {
    let edits = |role: &Role| table.base_permissions(*role).contains(Permission::PolicyEdit);
    if !Role::ALL.iter().any(edits) {
        let reason = "no role has policy.edit: no one could edit an organization's policy";
        return vec![LintProblem::of_file(&sources.policy.name, reason)];
    }
    let mut problems = Vec::new();
    for (own, (org, file)) in rules.orgs.iter().zip(&sources.orgs) {
        // A higher role has everything that a lower one has: a permission that the OWNER lacks is lost for everyone.
        let owner = table.role_permissions(*org, Role::Owner);
        let lost = OWNER_KEEPS
            .into_iter()
            .filter(|kept| !owner.contains(*kept) && table.base_permissions(Role::Owner).contains(*kept));
        problems.extend(lost.map(|lost| {
            let reason = if lost == Permission::PolicyEdit {
                format!("no one in organization {org} could edit its policy: no role keeps policy.edit")
            } else {
                format!("an OWNER of organization {org} would lose {lost}, which every OWNER must keep")
            };
            let takes = |grant: &&Grant| grant.permission == lost && grant.effect == Effect::Deny;
            let line = own.grants.iter().find(takes).map(|grant| grant.line);
            LintProblem { line, ..LintProblem::of_file(&file.name, reason).in_org(Some(*org)) }
        }));
    }
    problems
}

/// An organization's rules for a permission, role by role.
type Said = [Option<Effect>; Role::ALL.len()];

/// Answers for organizations, by what their files say.
type Known = HashMap<(Permission, Said), [bool; Role::ALL.len()]>;

fn org_row(
    judge: &mut Judge,
    known: &mut Known,
    mut row: Row,
    base: &[Grant],
    org: OrgId,
    own: &[Grant],
) -> casbin::Result<Row> {
    for (permission, said) in said(own) {
        let answers = match known.get(&(permission, said)) {
            Some(answers) => *answers,
            None => {
                let domain = org.to_string();
                let base = about(permission, base).map(|grant| (EVERYWHERE, grant));
                judge.replace_lines(base.chain(about(permission, own).map(|grant| (domain.as_str(), grant))));
                let mut answers = [false; Role::ALL.len()];
                for role in Role::ALL {
                    answers[role.index()] = judge.ask(role.as_str(), &domain, permission)?;
                }
                known.insert((permission, said), answers);
                answers
            }
        };
        for role in Role::ALL {
            row[role.index()].set(permission, answers[role.index()]);
        }
    }
    Ok(row)
}

fn said(own: &[Grant]) -> HashMap<Permission, Said> {
    let mut said: HashMap<Permission, Said> = HashMap::new();
    for grant in own {
        let roles = said.entry(grant.permission).or_default();
        if let Subject::Role(role) = grant.subject {
            roles[role.index()] = Some(grant.effect);
        }
    }
    said
}

/// Whether casbin would be given the same lines.
fn same(old: &[Grant], new: &[Grant]) -> bool {
    let said = |grant: &Grant| (grant.subject, grant.permission, grant.effect);
    old.len() == new.len() && old.iter().zip(new).all(|(old, new)| said(old) == said(new))
}

fn about(permission: Permission, grants: &[Grant]) -> impl Iterator<Item = &Grant> {
    grants.iter().filter(move |grant| grant.permission == permission)
}

struct Judge(Enforcer);

impl Judge {
    /// An enforcer that knows how roles inherit, but no lines yet.
    fn new(rules: &Rules) -> casbin::Result<Self> {
        let links: String =
            rules.inherits.iter().map(|(role, parent)| format!("g, {role}, {parent}\n")).collect();
        let made = async {
            let model = DefaultModel::from_str(MODEL).await?;
            Enforcer::new(model, StringAdapter::new(links)).await
        };
        // Only nominally asynchronous: everything is in memory, so it never waits.
        let waits =
            || Err(casbin::error::ModelError::Other("reading the model from memory waits".to_owned()).into());
        made.now_or_never().unwrap_or_else(waits).map(Self)
    }

    fn replace_lines<'a>(&mut self, lines: impl Iterator<Item = (&'a str, &'a Grant)>) {
        let model = self.0.get_mut_model();
        model.clear_policy();
        for (domain, grant) in lines {
            let fields = [grant.subject.as_str(), domain, grant.permission.as_str(), grant.effect.as_str()];
            model.add_policy("p", "p", fields.map(str::to_owned).to_vec());
        }
    }

    fn ask(&self, subject: &str, domain: &str, permission: Permission) -> casbin::Result<bool> {
        self.0.enforce((subject, domain, permission.as_str()))
    }
}
