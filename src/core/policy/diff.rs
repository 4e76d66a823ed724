//! The changes of a candidate: cell by cell in the table, and line by line in a file.

use std::fmt;

use serde::Serialize;

use super::{
    compile::Table,
    explain::{Book, NO_LINE, PolicyLine},
    line::Subject,
};
use crate::base::{ids::OrgId, permission::Permission};

/// A cell of the table that a candidate changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CellChange {
    /// The organization; `null` stands for all without rules of their own.
    pub organization_id: Option<OrgId>,
    /// A role, or `service_token` for the most that a token can have.
    pub subject: String,
    pub permission: Permission,
    /// Whether the candidate allows it; the policy in force does the opposite.
    pub allowed: bool,
    /// The candidate's deciding line; `null` if no line applies.
    pub decided_by: Option<PolicyLine>,
}

impl fmt::Display for CellChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.allowed { '+' } else { '-' };
        write!(f, "{sign} {} {}", self.subject, self.permission)?;
        match self.organization_id {
            Some(org) => write!(f, " in organization {org}")?,
            None if self.subject == Subject::ServiceToken.as_str() => {}
            None => f.write_str(" in organizations without rules of their own")?,
        }
        match &self.decided_by {
            Some(line) => write!(f, "   ({line})"),
            None => write!(f, "   ({NO_LINE})"),
        }
    }
}

/// The cells in which two policies differ.
pub(super) fn cells(before: &Table, (after, book): (&Table, &Book)) -> Vec<CellChange> {
    let mut places: Vec<Option<OrgId>> =
        before.overridden().into_iter().chain(after.overridden()).map(Some).collect();
    places.push(None);
    places.sort_unstable();
    places.dedup();
    let mut changes = Vec::new();
    for org in places {
        for subject in Subject::all().filter(|subject| org.is_none() || *subject != Subject::ServiceToken) {
            let (was, is) = (before.row(org, subject), after.row(org, subject));
            let differing = was.difference(is).union(is.difference(was));
            changes.extend(differing.iter().map(|permission| CellChange {
                organization_id: org,
                subject: subject.as_str().to_owned(),
                permission,
                allowed: is.contains(permission),
                decided_by: book.deciding_line(org, subject, permission),
            }));
        }
    }
    changes
}

/// Comparing takes the product of both lengths, and organizations write both texts. Beyond this many comparisons, all
/// lines between the first and the last difference are shown as changed.
const MAX_COMPARISONS: usize = 4_000_000;

/// The lines that an edit removes and adds, marked with `-` and `+`, in the order of the text.
#[must_use]
pub fn lines(before: &str, after: &str) -> Vec<String> {
    let (old, new): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    let head = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    let tail = old[head..].iter().rev().zip(new[head..].iter().rev()).take_while(|(a, b)| a == b).count();
    let (old, new) = (&old[head..old.len() - tail], &new[head..new.len() - tail]);
    let kept = if old.len() * new.len() > MAX_COMPARISONS { Vec::new() } else { common(old, new) };
    let mut out = Vec::new();
    let (mut a, mut b) = (0, 0);
    for (at_old, at_new) in kept.into_iter().chain([(old.len(), new.len())]) {
        out.extend(old[a..at_old].iter().map(|line| format!("-{line}")));
        out.extend(new[b..at_new].iter().map(|line| format!("+{line}")));
        (a, b) = (at_old + 1, at_new + 1);
    }
    out
}

/// The positions of a longest common subsequence.
fn common(old: &[&str], new: &[&str]) -> Vec<(usize, usize)> {
    let width = new.len() + 1;
    let mut longest = vec![0_u32; (old.len() + 1) * width];
    for a in (0..old.len()).rev() {
        for b in (0..new.len()).rev() {
            longest[a * width + b] = if old[a] == new[b] {
                longest[(a + 1) * width + b + 1] + 1
            } else {
                longest[(a + 1) * width + b].max(longest[a * width + b + 1])
            };
        }
    }
    let (mut a, mut b, mut pairs) = (0, 0, Vec::new());
    while a < old.len() && b < new.len() {
        if old[a] == new[b] {
            pairs.push((a, b));
            (a, b) = (a + 1, b + 1);
        } else if longest[(a + 1) * width + b] >= longest[a * width + b + 1] {
            a += 1;
        } else {
            b += 1;
        }
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_stay_are_not_shown() {
        assert_eq!(lines("a\nb\nc\n", "a\nc\nd\n"), ["-b", "+d"]);
        assert_eq!(lines("", "a\n"), ["+a"]);
        assert_eq!(lines("a\nx\nb\ny\n", "b\ny\nz"), ["-a", "-x", "+z"]);
        assert_eq!(lines("same", "same"), [] as [&str; 0]);
    }
}
