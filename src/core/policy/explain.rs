//! Why a caller may or may not do something: the line that decides, and its way to the role.
//!
//! A pure function over the lines as read. It does not decide: casbin has, and a law compares this explanation with
//! casbin's table for every cell, for the committed files and for generated ones. If several lines agree, it names the
//! one that an administrator would look at first:
//!
//! - a deny before an allow, since it overrides all of them; `policy.csv` before the organization's own file, since it
//!   applies regardless of that file;
//! - then the line whose role is closest to the role in question.

use serde::Serialize;

use super::{
    line::{Effect, Grant, POLICY_CSV, Subject, org_file},
    remedy::Remedy,
    rules::{Inheritance, Rules},
    source::Sources,
};
use crate::base::{
    ids::OrgId,
    permission::{Permission, Role},
};

/// A line of a policy file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PolicyLine {
    /// The file, relative to the policy folder: `policy.csv` or `orgs/7.csv`.
    pub file: String,
    /// The line's number, starting at 1.
    pub line: i64,
    pub text: String,
}

impl std::fmt::Display for PolicyLine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}: {}", self.file, self.line, self.text)
    }
}

/// Whether someone may do something, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Explanation {
    /// The organization; `null` stands for all without rules of their own.
    pub organization_id: Option<OrgId>,
    /// A role, or `service_token` for the most that a token can have.
    pub subject: String,
    pub permission: Permission,
    pub allowed: bool,
    /// The line that decides; `null` if no line applies, which means refused.
    pub decided_by: Option<PolicyLine>,
    /// How the line reaches the subject: each role includes the next one.
    pub inheritance: Vec<Role>,
    /// Every line that applies to the permission and the subject, including the deciding one.
    pub lines: Vec<PolicyLine>,
    /// The change that would allow it, if it is refused and one line can.
    pub remedy: Option<Remedy>,
    /// The same in a sentence.
    pub reason: String,
}

/// The lines as read, with their text.
pub(super) struct Book {
    pub sources: Sources,
    pub rules: Rules,
}

/// The reason where no line applies.
pub const NO_LINE: &str = "no line allows it";

/// A line that applies to the question: in `policy.csv` (`None`) or in an organization's file.
#[derive(Clone, Copy)]
struct Spoken<'a> {
    org: Option<OrgId>,
    grant: &'a Grant,
    /// The number of roles between the subject and the line's role.
    distance: usize,
}

impl Book {
    /// The lines that apply, the deciding one first.
    fn spoken(&self, org: Option<OrgId>, subject: Subject, permission: Permission) -> Vec<Spoken<'_>> {
        let roles = Inheritance::new(&self.rules.inherits);
        let own = org.map_or(&[][..], |org| self.rules.own(org));
        let base = self.rules.base.iter().map(|grant| (None, grant));
        let mut found: Vec<Spoken<'_>> = base
            .chain(own.iter().map(|grant| (org, grant)))
            .filter(|(_, grant)| grant.permission == permission)
            .filter_map(|(org, grant)| Some(Spoken { org, grant, distance: reach(&roles, subject, grant)? }))
            .collect();
        found.sort_by_key(|one| (one.grant.effect == Effect::Allow, one.org.is_some(), one.distance));
        found
    }

    fn line(&self, spoken: &Spoken<'_>) -> PolicyLine {
        let (file, source) = match spoken.org {
            None => (POLICY_CSV.to_owned(), Some(&self.sources.policy)),
            Some(org) => (org_file(org), self.sources.org(org)),
        };
        let text = source.and_then(|file| file.text.as_deref().ok());
        let text = text.and_then(|text| text.lines().nth(spoken.grant.line - 1)).unwrap_or_default();
        PolicyLine { file, line: number(spoken.grant.line), text: text.trim().to_owned() }
    }

    /// The line that decides; `None` if no line applies.
    pub fn deciding_line(
        &self,
        org: Option<OrgId>,
        subject: Subject,
        permission: Permission,
    ) -> Option<PolicyLine> {
        self.spoken(org, subject, permission).first().map(|spoken| self.line(spoken))
    }

    pub fn explain(&self, org: Option<OrgId>, subject: Subject, permission: Permission) -> Explanation {
        let spoken = self.spoken(org, subject, permission);
        let allowed = spoken.first().is_some_and(|first| first.grant.effect == Effect::Allow);
        let mut lines: Vec<PolicyLine> = spoken.iter().map(|one| self.line(one)).collect();
        let inheritance = spoken.first().map_or_else(Vec::new, |first| self.path(subject, first.grant));
        let remedy = if allowed { None } else { self.remedy(org, subject, permission) };
        let decided_by = lines.first().cloned();
        let reason = reason(subject, permission, allowed, decided_by.as_ref(), &inheritance, remedy.as_ref());
        lines.sort_by_key(|line| (line.file != POLICY_CSV, line.line));
        Explanation {
            organization_id: org,
            subject: subject.as_str().to_owned(),
            permission,
            allowed,
            decided_by,
            inheritance,
            lines,
            remedy,
            reason,
        }
    }

    /// The roles between the subject and the line's role, from higher to lower.
    fn path(&self, subject: Subject, grant: &Grant) -> Vec<Role> {
        let (Subject::Role(role), Subject::Role(named)) = (subject, grant.subject) else { return Vec::new() };
        let (from, to) = if role.is_above(named) { (role, named) } else { (named, role) };
        self.chain(from, to).unwrap_or_default()
    }

    /// A shortest path along the `g` lines.
    fn chain(&self, from: Role, to: Role) -> Option<Vec<Role>> {
        if from == to {
            return Some(vec![from]);
        }
        let parents = self.rules.inherits.iter().filter(|(role, _)| *role == from);
        let rest = parents.filter_map(|(_, parent)| self.chain(*parent, to)).min_by_key(Vec::len)?;
        Some([vec![from], rest].concat())
    }

    /// Every `p` line of every file.
    pub fn all_lines(&self) -> Vec<PolicyLine> {
        let base = self.rules.base.iter().map(|grant| (None, grant));
        let own =
            self.rules.orgs.iter().flat_map(|own| own.grants.iter().map(|grant| (Some(own.org), grant)));
        let mut lines: Vec<PolicyLine> =
            base.chain(own).map(|(org, grant)| self.line(&Spoken { org, grant, distance: 0 })).collect();
        // An unreadable line counts as many denials.
        lines.dedup();
        lines
    }
}

/// Whether a line applies to the subject, and from how far: an allow is inherited upwards, a deny downwards.
pub(super) fn reach(roles: &Inheritance, subject: Subject, grant: &Grant) -> Option<usize> {
    match (subject, grant.subject) {
        (Subject::ServiceToken, Subject::ServiceToken) => Some(0),
        (Subject::Role(role), Subject::Role(named)) => {
            let (from, to) = if grant.effect == Effect::Allow { (role, named) } else { (named, role) };
            roles.covers(from, to).then(|| role.index().abs_diff(named.index()))
        }
        _ => None,
    }
}

fn reason(
    subject: Subject,
    permission: Permission,
    allowed: bool,
    decided_by: Option<&PolicyLine>,
    inheritance: &[Role],
    remedy: Option<&Remedy>,
) -> String {
    let who = subject.as_str();
    let may = if allowed { "may" } else { "may not" };
    let mut reason = format!("{who} {may} {permission}: ");
    match decided_by {
        Some(line) => reason.push_str(&line.to_string()),
        None => reason.push_str(NO_LINE),
    }
    if inheritance.len() > 1 {
        let roles: Vec<&str> = inheritance.iter().map(|role| role.as_str()).collect();
        reason.push_str(&format!(" ({})", roles.join(" ⊃ ")));
    }
    match remedy {
        Some(remedy) => reason.push_str(&format!(". To allow it, {remedy}")),
        None if allowed => {}
        None => reason.push_str(". No change of one line within the ceiling and the expectations allows it"),
    }
    reason
}

pub(super) fn number(line: usize) -> i64 {
    i64::try_from(line).unwrap_or(i64::MAX)
}
