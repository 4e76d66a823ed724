//! Explanations and changes of the policy, as objects of the schema. `core::policy` creates them, independently of the
//! schema.

use async_graphql::{Enum, Object};

use crate::{
    base::{
        ids::OrgId,
        permission::{Permission, Role},
    },
    core::policy::{CellChange, ChangeKind, Explanation, OwnExpectation, PolicyLine, Remedy},
};

/// A line of a policy file.
#[Object(name = "PolicyLine")]
impl PolicyLine {
    /// The file, relative to the policy folder: `policy.csv` or `orgs/7.csv`.
    async fn file(&self) -> &str {
        &self.file
    }

    /// The line's number, starting at 1.
    async fn line(&self) -> i64 {
        self.line
    }

    /// The line's text.
    async fn text(&self) -> &str {
        &self.text
    }
}

/// The kind of change to a file.
#[derive(Clone, Copy, PartialEq, Eq, Enum)]
#[graphql(remote = "ChangeKind", rename_items = "SCREAMING_SNAKE_CASE")]
enum PolicyChangeKind {
    /// Add a line.
    Add,
    /// Replace a line.
    Replace,
    /// Remove a line.
    Remove,
}

/// A change that would allow what is refused.
#[Object(name = "PolicyRemedy")]
impl Remedy {
    /// The kind of change.
    async fn change(&self) -> PolicyChangeKind {
        self.change.into()
    }

    /// The file to change.
    async fn file(&self) -> &str {
        &self.file
    }

    /// The number of the line to replace or remove.
    async fn line(&self) -> Option<i64> {
        self.line
    }

    /// The new text.
    async fn text(&self) -> Option<&str> {
        self.text.as_deref()
    }

    /// Whether the organization's own file can do it; otherwise only the installation's operator can.
    async fn within_ceiling(&self) -> bool {
        self.within_ceiling
    }
}

/// Whether someone may do something, and why.
#[Object(name = "PolicyExplanation")]
impl Explanation {
    /// The organization; `null` stands for all without rules of their own.
    async fn organization_id(&self) -> Option<OrgId> {
        self.organization_id
    }

    /// A role, or `service_token` for the most that a token can have.
    async fn subject(&self) -> &str {
        &self.subject
    }

    /// The permission in question.
    async fn permission(&self) -> Permission {
        self.permission
    }

    /// Whether it is allowed.
    async fn allowed(&self) -> bool {
        self.allowed
    }

    /// The line that decides; `null` if no line applies, which means refused.
    async fn decided_by(&self) -> Option<&PolicyLine> {
        self.decided_by.as_ref()
    }

    /// How the line reaches the subject: each role includes the next one.
    async fn inheritance(&self) -> &[Role] {
        &self.inheritance
    }

    /// Every line that applies to the permission and the subject, including the deciding one.
    async fn lines(&self) -> &[PolicyLine] {
        &self.lines
    }

    /// What would allow it, if it is refused.
    async fn remedy(&self) -> Option<&Remedy> {
        self.remedy.as_ref()
    }

    /// The same in a sentence.
    async fn reason(&self) -> &str {
        &self.reason
    }
}

/// A cell of the table that a candidate changes.
#[Object(name = "PolicyCellChange")]
impl CellChange {
    /// The organization; `null` stands for all without rules of their own.
    async fn organization_id(&self) -> Option<OrgId> {
        self.organization_id
    }

    /// A role, or `service_token` for the most that a token can have.
    async fn subject(&self) -> &str {
        &self.subject
    }

    /// The permission.
    async fn permission(&self) -> Permission {
        self.permission
    }

    /// Whether the candidate allows it; the policy in force does the opposite.
    async fn allowed(&self) -> bool {
        self.allowed
    }

    /// The candidate's deciding line; `null` if no line applies.
    async fn decided_by(&self) -> Option<&PolicyLine> {
        self.decided_by.as_ref()
    }
}

/// An expectation of the organization's own rules: an `e` line.
#[Object(name = "PolicyExpectation")]
impl OwnExpectation {
    /// The line's number, starting at 1.
    async fn line(&self) -> i64 {
        self.line
    }

    /// A role, or `service_token` for the most that a token can have.
    async fn subject(&self) -> &str {
        &self.subject
    }

    /// The permission.
    async fn permission(&self) -> Permission {
        self.permission
    }

    /// Whether it expects that the permission is allowed.
    async fn allowed(&self) -> bool {
        self.allowed
    }

    /// Whether the text meets it.
    async fn met(&self) -> bool {
        self.met
    }
}
