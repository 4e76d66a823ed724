//! The change of one line that would lift a refusal. It is advised only if the policy would be accepted with it and then
//! allow what was refused; a law applies every remedy to find out. A denial in `policy.csv` is never lifted: it holds for
//! every organization on purpose.

use serde::Serialize;

use super::{
    explain::{Book, number, reach},
    line::{Effect, Grant, POLICY_CSV, Subject, org_file},
    rules::{ExpectationScope, Inheritance},
};
use crate::base::{ids::OrgId, permission::Permission};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ChangeKind {
    Add,
    Replace,
    Remove,
}

/// A change that would lift a refusal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Remedy {
    pub change: ChangeKind,
    pub file: String,
    /// The number of the line to replace or remove.
    pub line: Option<i64>,
    pub text: Option<String>,
    /// Whether the organization's own file can do it; otherwise only the installation's operator can.
    pub within_ceiling: bool,
}

impl std::fmt::Display for Remedy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let text = self.text.as_deref().unwrap_or_default();
        match (self.change, self.line) {
            (ChangeKind::Add, _) => write!(f, "add to {}: {text}", self.file)?,
            (ChangeKind::Replace, Some(line)) => write!(f, "replace {}:{line} with: {text}", self.file)?,
            (_, Some(line)) => write!(f, "remove {}:{line}", self.file)?,
            (_, None) => write!(f, "change {}", self.file)?,
        }
        if self.within_ceiling { Ok(()) } else { f.write_str(" (only the installation's operator can)") }
    }
}

/// The lines about one permission, one of them changed.
struct Edited<'a> {
    book: &'a Book,
    roles: &'a Inheritance,
    permission: Permission,
    /// The organization whose rules are changed; `None` for `policy.csv`.
    place: Option<OrgId>,
    /// The changed file's lines.
    lines: Vec<Grant>,
}

impl Book {
    /// The change that would allow a refused permission; `None` if no change of one line can.
    pub(super) fn remedy(
        &self,
        org: Option<OrgId>,
        subject: Subject,
        permission: Permission,
    ) -> Option<Remedy> {
        let roles = Inheritance::new(&self.rules.inherits);
        // The cap of service tokens is only in `policy.csv`.
        let place = org.filter(|_| subject != Subject::ServiceToken);
        let mut edited = Edited { book: self, roles: &roles, permission, place, lines: Vec::new() };
        let (base, own) = (edited.lines_of(None), place.map(|org| edited.lines_of(Some(org))));
        let reaching = |lines: &[Grant], effect: Effect| {
            let reached = lines.iter().filter(|line| line.effect == effect);
            reached.filter_map(|line| Some((reach(&roles, subject, line)?, line.line))).min()
        };
        if reaching(&base, Effect::Deny).is_some() {
            return None;
        }
        let (change, line) = match &own {
            Some(own) => match reaching(own, Effect::Deny) {
                Some((_, line)) => {
                    // Without the deny, an allow from another line may be enough.
                    let otherwise = [&base, own].into_iter().any(|it| reaching(it, Effect::Allow).is_some());
                    (if otherwise { ChangeKind::Remove } else { ChangeKind::Replace }, Some(line))
                }
                None => (ChangeKind::Add, None),
            },
            // In `policy.csv`, an allow names the lowest role that has the permission.
            None => match base.iter().find(|line| edited.is_inherited_by(subject, line)) {
                Some(higher) => (ChangeKind::Replace, Some(higher.line)),
                None => (ChangeKind::Add, None),
            },
        };
        edited.lines = own.unwrap_or(base);
        edited.lines.retain(|kept| Some(kept.line) != line);
        if change != ChangeKind::Remove {
            edited.lines.push(Grant { line: 0, subject, permission, effect: Effect::Allow });
        }
        if !edited.allows(place, subject) || !edited.is_accepted(subject) {
            return None;
        }
        let (file, domain) = match place {
            Some(org) => (org_file(org), org.to_string()),
            None => (POLICY_CSV.to_owned(), "*".to_owned()),
        };
        let text = format!("p, {}, {domain}, {permission}, allow", subject.as_str());
        Some(Remedy {
            change,
            file,
            line: line.map(number),
            text: (change != ChangeKind::Remove).then_some(text),
            within_ceiling: place.is_some(),
        })
    }
}

impl Edited<'_> {
    /// The unchanged lines of `policy.csv` or of an organization.
    fn lines_of(&self, org: Option<OrgId>) -> Vec<Grant> {
        let rules = &self.book.rules;
        let lines = org.map_or(rules.base.as_slice(), |org| rules.own(org));
        lines.iter().filter(|line| line.permission == self.permission).copied().collect()
    }

    fn allows(&self, org: Option<OrgId>, subject: Subject) -> bool {
        let mut lines = self.lines.clone();
        if self.place.is_some() {
            lines.extend(self.lines_of(None));
        } else if org.is_some() {
            lines.extend(self.lines_of(org));
        }
        let has = |effect: Effect| {
            lines.iter().any(|line| line.effect == effect && reach(self.roles, subject, line).is_some())
        };
        has(Effect::Allow) && !has(Effect::Deny)
    }

    /// Whether a role above the subject is allowed by this line, and so inherits what the subject has.
    fn is_inherited_by(&self, subject: Subject, line: &Grant) -> bool {
        let (Subject::Role(role), Subject::Role(higher)) = (subject, line.subject) else { return false };
        line.effect == Effect::Allow && higher != role && self.roles.covers(higher, role)
    }

    /// Whether no line of `policy.csv` is then without effect, and every expectation is met.
    fn is_accepted(&self, subject: Subject) -> bool {
        if self.place.is_none() && self.lines.iter().any(|line| self.is_inherited_by(subject, line)) {
            return false;
        }
        let rules = &self.book.rules;
        let own = self.place.and_then(|org| rules.of_org(org));
        let own = own.map_or(&[][..], |own| own.expectations.as_slice());
        let mut about = rules.expectations.iter().chain(own).filter(|one| one.permission == self.permission);
        about.all(|one| {
            let allowed = one.effect == Effect::Allow;
            self.places(one.place).into_iter().all(|org| self.allows(org, one.subject) == allowed)
        })
    }

    /// Where the change has an effect, and the expectation applies.
    fn places(&self, expected: ExpectationScope) -> Vec<Option<OrgId>> {
        match (self.place, expected) {
            (Some(org), ExpectationScope::Everywhere) => vec![Some(org)],
            (Some(org), ExpectationScope::Organization(named)) if named == org => vec![Some(org)],
            (Some(_), _) => Vec::new(),
            (None, ExpectationScope::Organization(named)) => vec![Some(named)],
            (None, ExpectationScope::Default) => vec![None],
            (None, ExpectationScope::Everywhere) => {
                let orgs = self.book.rules.orgs.iter().map(|own| Some(own.org));
                orgs.chain([None]).collect()
            }
        }
    }
}
