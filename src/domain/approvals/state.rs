//! An approval's lifecycle as a pure table: which action is allowed in which state, and how it ends.
//!
//! PENDING → RESOLVED (resolve, answer) | DISMISSED | EXPIRED. Each of the three is final; only time
//! leads to EXPIRED (`expiry.rs`).

use crate::base::{
    enums::{ApprovalKind, ApprovalOutcome, ApprovalStatus},
    problem::{Code, Problem},
};

/// What a person may do to an approval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    Resolve,
    Answer,
    Dismiss,
}

/// How an approval ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    Close(ApprovalStatus, ApprovalOutcome),
    /// RESOLVED, with APPROVED or DENIED depending on the answer.
    Verdict,
}

/// An action that is not allowed on the approval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// It has already ended.
    #[error("The approval is already {0}.")]
    NotPending(ApprovalStatus),
    /// It doesn't ask a question.
    #[error("An approval of kind {0} can't be answered. Resolve or dismiss it.")]
    NotAQuestion(ApprovalKind),
}

impl Action {
    /// What this action does to an approval of this kind in the state `from`.
    ///
    /// # Errors
    /// The state or the kind doesn't allow the action.
    pub fn apply(self, kind: ApprovalKind, from: ApprovalStatus) -> Result<Step, Refused> {
        if from != ApprovalStatus::Pending {
            return Err(Refused::NotPending(from));
        }
        match (self, kind) {
            (Self::Resolve, _) => Ok(Step::Close(ApprovalStatus::Resolved, ApprovalOutcome::Manual)),
            (Self::Dismiss, _) => Ok(Step::Close(ApprovalStatus::Dismissed, ApprovalOutcome::Dismissed)),
            (Self::Answer, ApprovalKind::Question) => {
                Ok(Step::Close(ApprovalStatus::Resolved, ApprovalOutcome::Answered))
            }
            (Self::Answer, ApprovalKind::Action) => Ok(Step::Verdict),
            (Self::Answer, _) => Err(Refused::NotAQuestion(kind)),
        }
    }
}

impl From<Refused> for Problem {
    fn from(refused: Refused) -> Self {
        let (code, fact, value) = match refused {
            Refused::NotPending(status) => (Code::ApprovalNotPending, "status", status.as_str()),
            Refused::NotAQuestion(kind) => (Code::ApprovalNotAQuestion, "kind", kind.as_str()),
        };
        let problem = Self::new(code, refused.to_string()).with(fact, value);
        if code == Code::ApprovalNotPending { problem.outdated() } else { problem }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table() {
        let mut table = String::new();
        for from in ApprovalStatus::ALL {
            for action in [Action::Resolve, Action::Answer, Action::Dismiss] {
                let outcomes = ApprovalKind::ALL.iter().map(|kind| {
                    let outcome = match action.apply(*kind, *from) {
                        Ok(Step::Close(to, outcome)) => format!("{to} {outcome}"),
                        Ok(Step::Verdict) => "RESOLVED APPROVED or DENIED".to_owned(),
                        Err(refused) => Problem::from(refused).code.as_str().to_owned(),
                    };
                    format!("  {kind}: {outcome}\n")
                });
                table.push_str(&format!("{from} {action:?}\n{}", outcomes.collect::<String>()));
            }
        }
        insta::assert_snapshot!(table);
    }
}
