//! An approval's lifecycle as a pure table: which action is allowed in which state, and how it ends.
//!
//! PENDING → RESOLVED (resolve, answer) | DISMISSED | EXPIRED. Each of the three is final; only time
//! leads to EXPIRED (`expiry.rs`).

use crate::base::{
    enums::{ApprovalKind, ApprovalOutcome, ApprovalStatus},
    problem::{Code, Problem},
};

/// An action of a person on an approval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    Resolve,
    Answer,
    Dismiss,
}

/// How an approval ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transition {
    Close(ApprovalStatus, ApprovalOutcome),
    /// RESOLVED, as APPROVED or DENIED depending on the answer.
    ByAnswer,
}

/// An action that is not allowed on the approval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TransitionError {
    /// It has already ended.
    #[error("The approval is already {0}.")]
    NotPending(ApprovalStatus),
    /// It doesn't ask a question.
    #[error("An approval of kind {0} can't be answered. Resolve or dismiss it.")]
    NotAQuestion(ApprovalKind),
}

impl Action {
    /// The effect of this action on an approval of this kind in the state `from`.
    ///
    /// # Errors
    /// The state or the kind doesn't allow the action.
    pub fn apply(self, kind: ApprovalKind, from: ApprovalStatus) -> Result<Transition, TransitionError> {
        if from != ApprovalStatus::Pending {
            return Err(TransitionError::NotPending(from));
        }
        match (self, kind) {
            (Self::Resolve, _) => Ok(Transition::Close(ApprovalStatus::Resolved, ApprovalOutcome::Manual)),
            (Self::Dismiss, _) => {
                Ok(Transition::Close(ApprovalStatus::Dismissed, ApprovalOutcome::Dismissed))
            }
            (Self::Answer, ApprovalKind::Question) => {
                Ok(Transition::Close(ApprovalStatus::Resolved, ApprovalOutcome::Answered))
            }
            (Self::Answer, ApprovalKind::Action) => Ok(Transition::ByAnswer),
            (Self::Answer, _) => Err(TransitionError::NotAQuestion(kind)),
        }
    }
}

impl From<TransitionError> for Problem {
    fn from(error: TransitionError) -> Self {
        let (code, fact, value) = match error {
            TransitionError::NotPending(status) => (Code::ApprovalNotPending, "status", status.as_str()),
            TransitionError::NotAQuestion(kind) => (Code::ApprovalNotAQuestion, "kind", kind.as_str()),
        };
        let problem = Self::new(code, error.to_string()).with(fact, value);
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
                        Ok(Transition::Close(to, outcome)) => format!("{to} {outcome}"),
                        Ok(Transition::ByAnswer) => "RESOLVED APPROVED or DENIED".to_owned(),
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
