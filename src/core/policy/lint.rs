//! The rules for policy files beyond being readable line by line (`reader`).
//!
//! All problems are reported at once. The rules catch access problems that no one would notice otherwise: a line
//! without effect, a forgotten permission, an organization locked out of its own policy.

use super::{
    expectations,
    line::{Effect, Grant, LintProblem, POLICY_CSV, Subject, numbered},
    reader::Reader,
    rules::{Inheritance, OwnRules, Rules},
    source::{File, MODEL, Sources},
};
use crate::base::{
    ids::OrgId,
    permission::{Permission, Role},
};

/// Reads all files. The rules contain what could be read; they are only valid if there are no problems.
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
        let (grants, expectations, unread) = (own.grants, own.expectations, own.unread);
        let own = OwnRules { org: *org, grants, expectations, unread };
        lint_ceiling((*org, file), &own.grants, &rules.base, &roles, &mut problems);
        rules.orgs.push(own);
    }
    (rules, problems)
}

/// The model must match the built-in one: `compile` relies on its matcher.
fn lint_model(file: &File, problems: &mut Vec<LintProblem>) {
    let text = match &file.text {
        Ok(text) => text,
        Err(reason) => return problems.push(LintProblem::of_file(&file.name, reason.as_str())),
    };
    let mut expected = meaning(MODEL);
    for (line, given) in meaning(text) {
        match expected.next() {
            Some((_, wanted)) if wanted == given => {}
            Some((_, wanted)) => {
                let reason = format!("the model is fixed: expected \"{wanted}\"");
                return problems.push(LintProblem::at(&file.name, line, reason));
            }
            None => {
                let reason = "the model is fixed: nothing else is expected".to_owned();
                return problems.push(LintProblem::at(&file.name, line, reason));
            }
        }
    }
    if let Some((_, wanted)) = expected.next() {
        problems
            .push(LintProblem::of_file(&file.name, format!("the model is fixed: \"{wanted}\" is missing")));
    }
}

/// The significant lines of a model, with their numbers and normalized spaces.
fn meaning(text: &str) -> impl Iterator<Item = (usize, String)> {
    numbered(text).map(|(line, text)| (line, text.split_whitespace().collect::<Vec<_>>().join(" ")))
}

/// Checks that every permission is mentioned, and that no line of the base policy is without effect.
fn lint_base(file: &str, base: &[Grant], roles: &Inheritance, problems: &mut Vec<LintProblem>) {
    for grant in base {
        if let (Subject::Role(role), Effect::Allow) = (grant.subject, grant.effect)
            && let Some(reason) = without_effect(role, grant, base, roles)
        {
            problems.push(LintProblem::at(file, grant.line, reason));
        }
    }
    let spoken = |permission| {
        base.iter().any(|grant| grant.permission == permission && grant.subject != Subject::ServiceToken)
    };
    for permission in Permission::ALL.into_iter().filter(|permission| !spoken(*permission)) {
        let reason = format!("no line allows or denies {permission} to a role");
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

/// Checks that an organization's file grants nothing that the base policy denies.
fn lint_ceiling(
    (org, file): (OrgId, &File),
    own: &[Grant],
    base: &[Grant],
    roles: &Inheritance,
    problems: &mut Vec<LintProblem>,
) {
    for grant in own.iter().filter(|grant| grant.effect == Effect::Allow) {
        let Subject::Role(role) = grant.subject else { continue };
        if let Some(denial) = roles.denial(base, role, grant.permission) {
            let (permission, line) = (grant.permission, denial.line);
            let reason =
                format!("{role} can't be given {permission}: {POLICY_CSV}:{line} denies it everywhere");
            problems.push(LintProblem::at(&file.name, grant.line, reason).in_org(Some(org)));
        }
    }
}
