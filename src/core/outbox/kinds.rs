//! What waits in the outbox, in the form of the column `payload`.

use muster_protocol::Command;
use serde::{Deserialize, Serialize};

use crate::base::{
    enums::{NotificationKind, OutboxKind},
    ids::{AgentId, ApprovalId, InvitationId, OrgId, UserId},
};

/// The kind of the row that holds a command.
impl From<&Command> for OutboxKind {
    fn from(command: &Command) -> Self {
        match command {
            Command::Launch => Self::Launch,
            Command::Stop => Self::Stop,
            Command::Pause => Self::Pause,
            Command::Resume => Self::Resume,
            Command::Turn { .. } => Self::Turn,
            Command::Cancel { .. } => Self::Cancel,
            Command::Answer { .. } => Self::Answer,
            Command::Verdict { .. } => Self::Verdict,
            Command::Sync => Self::Sync,
            Command::Backup { .. } => Self::Backup,
            Command::Restore { .. } => Self::Restore,
            Command::Forget { .. } => Self::Forget,
        }
    }
}

/// A mail whose letter has not been written yet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "letter", rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Mail {
    /// A link that confirms an address or sets a new password.
    Link {
        /// The row of `email_tokens`.
        id: i64,
    },
    /// A link that accepts an invitation.
    Invitation {
        /// The invitation.
        id: InvitationId,
    },
    /// A notice that something happened to an account.
    Notice {
        /// The account.
        user_id: UserId,
        /// The address that the account had at the time: someone who breaks in and changes the address must not get the
        /// warning.
        to: String,
        /// What happened.
        what: Notice,
        /// The origin: an IP address, or a description.
        from: String,
    },
    /// What a person wants to be told about approvals and agents.
    Notifications {
        /// The person.
        user_id: UserId,
        /// What to tell.
        about: Vec<About>,
        /// How much more there was.
        more: usize,
    },
}

impl Mail {
    /// Mails with the same key wait for each other.
    #[must_use]
    pub fn order_key(&self) -> Option<String> {
        match self {
            Self::Notifications { user_id, .. } => Some(format!("notifications:{user_id}")),
            Self::Link { .. } | Self::Invitation { .. } | Self::Notice { .. } => None,
        }
    }
}

/// One notification of a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct About {
    /// The organization.
    pub org: OrgId,
    /// What happened.
    pub what: NotificationKind,
    /// The approval, unless it is about an agent.
    pub approval: Option<ApprovalId>,
    /// The agent that has failed.
    pub agent: Option<AgentId>,
}

/// What happened to an account, that its owner should know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[expect(missing_docs, reason = "the names say it, and the letters in full")]
pub enum Notice {
    PasswordChanged,
    EmailChanged,
    SecondFactorOn,
    SecondFactorOff,
    SecondFactorReset,
    PasswordReset,
    RecoveryCodeUsed,
    RecoveryCodesRenewed,
    RefreshTokenReused,
    AccountLinked,
    AccountUnlinked,
    ChatUnlinked,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_read_back_and_its_column_says_the_same_kind() {
        let (turn, cancel) = (Command::Turn { turn_id: 1 }, Command::Cancel { turn_id: 1 });
        let answer = Command::Answer { approval_id: 3 };
        let verdict = Command::Verdict { request: "1.2".to_owned(), allowed: true };
        let lifecycle = [Command::Launch, Command::Stop, Command::Pause, Command::Resume, Command::Sync];
        let [backup, restore, forget] = [
            Command::Backup { backup_id: 1 },
            Command::Restore { backup_id: 1, sha256: "00".to_owned() },
            Command::Forget { backup_id: 1 },
        ];
        for command in lifecycle.into_iter().chain([turn, cancel, answer, verdict, backup, restore, forget]) {
            let stored = serde_json::to_value(&command).unwrap();
            assert_eq!(stored["kind"], OutboxKind::from(&command).as_str());
            assert_eq!(serde_json::from_value::<Command>(stored).unwrap(), command);
        }
    }
}
