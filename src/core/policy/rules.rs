//! The content of a policy's files: what `lint` produces and casbin is given.

use super::line::{Effect, Grant, Subject};
use crate::base::{
    ids::OrgId,
    permission::{Permission, Role},
};

/// The permissions that an organization's own rules can't take from its OWNER: without them, it can't repair itself.
pub(super) const OWNER_KEEPS: [Permission; 5] = [
    Permission::OrganizationView,
    Permission::MemberView,
    Permission::MemberEdit,
    Permission::PolicyView,
    Permission::PolicyEdit,
];

/// The content of the files.
#[derive(Debug, Default)]
pub(super) struct Rules {
    /// The `g` lines: a role, and the role whose permissions it inherits.
    pub inherits: Vec<(Role, Role)>,
    /// The lines of `policy.csv`.
    pub base: Vec<Grant>,
    /// Each organization's own rules, ordered by organization.
    pub orgs: Vec<OwnRules>,
    /// The operator's required results.
    pub expectations: Vec<Expectation>,
}

/// One organization's own rules.
#[derive(Debug)]
pub(super) struct OwnRules {
    pub org: OrgId,
    pub grants: Vec<Grant>,
    /// Its required results.
    pub expectations: Vec<Expectation>,
    /// The first unreadable line.
    pub unread: Option<usize>,
}

impl Rules {
    /// The `p` lines of an organization's own rules; empty if it has none.
    pub fn own(&self, org: OrgId) -> &[Grant] {
        self.of_org(org).map_or(&[], |own| own.grants.as_slice())
    }

    pub fn of_org(&self, org: OrgId) -> Option<&OwnRules> {
        let at = self.orgs.binary_search_by_key(&org, |own| own.org).ok()?;
        Some(&self.orgs[at])
    }

    /// Every expectation: the operator's, then the organizations'.
    pub fn all_expectations(&self) -> impl Iterator<Item = &Expectation> {
        self.expectations.iter().chain(self.orgs.iter().flat_map(|own| &own.expectations))
    }

    /// Reduces an organization's invalid rules to their safe part: the denials, without the grants. An unreadable line
    /// may have denied something, so it denies everything except what every OWNER keeps.
    pub fn fall_back(&mut self, org: OrgId) {
        let Ok(at) = self.orgs.binary_search_by_key(&org, |own| own.org) else { return };
        let own = &mut self.orgs[at];
        match own.unread {
            Some(line) => own.grants = locked(line),
            None => own.grants.retain(|grant| grant.effect == Effect::Deny && !is_kept(grant)),
        }
    }
}

/// Whether a denial concerns something that every OWNER keeps.
fn is_kept(grant: &Grant) -> bool {
    grant.subject == Subject::Role(Role::Owner) && OWNER_KEEPS.contains(&grant.permission)
}

/// Denies everything except what every OWNER keeps, attributed to one line.
fn locked(line: usize) -> Vec<Grant> {
    let denied =
        |role, permission| Grant { line, subject: Subject::Role(role), permission, effect: Effect::Deny };
    let all = Permission::ALL.into_iter().flat_map(|it| Role::ALL.map(|role| denied(role, it)));
    all.filter(|grant| !is_kept(grant)).collect()
}

/// The organizations to which an expectation applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum ExpectationScope {
    Everywhere,
    Default,
    Organization(OrgId),
}

/// A line of `expectations.csv`, or an `e` line of an organization's own rules.
#[derive(Clone, Copy, Debug)]
pub(super) struct Expectation {
    pub line: usize,
    pub subject: Subject,
    pub place: ExpectationScope,
    pub permission: Permission,
    pub effect: Effect,
}

/// Which role includes which: itself, and every role reachable by `g` lines.
pub(super) struct Inheritance([[bool; Role::ALL.len()]; Role::ALL.len()]);

impl Inheritance {
    pub fn new(links: &[(Role, Role)]) -> Self {
        let mut has = [[false; Role::ALL.len()]; Role::ALL.len()];
        // A role inherits only from lower ones, so going upwards, each finds its parents complete.
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

    /// The line in `grants` that denies `permission` to `role`.
    pub fn denial<'a>(&self, grants: &'a [Grant], role: Role, permission: Permission) -> Option<&'a Grant> {
        grants.iter().find(|grant| {
            grant.permission == permission
                && grant.effect == Effect::Deny
                && matches!(grant.subject, Subject::Role(denied) if self.covers(denied, role))
        })
    }
}
