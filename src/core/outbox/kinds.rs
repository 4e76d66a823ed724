//! What waits in the outbox, in the form of the column `payload`.

use serde::{Deserialize, Serialize};

use crate::base::{
    enums::OutboxKind,
    ids::{ApprovalId, ConversationId, InvitationId, MessageId, UserId},
};

/// A command for the host of an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Command {
    /// Launch the agent.
    Launch,
    /// Stop the agent.
    Stop,
    /// Take no more turns.
    Pause,
    /// Take turns again.
    Resume,
    /// Deliver a message.
    Turn {
        /// The message's conversation.
        conversation_id: ConversationId,
        /// The message.
        message_id: MessageId,
    },
    /// Deliver a decision.
    Answer {
        /// The approval that was decided.
        approval_id: ApprovalId,
    },
    /// Update its skills, servers and credentials.
    Sync,
}

impl Command {
    /// Its kind.
    #[must_use]
    pub const fn kind(self) -> OutboxKind {
        match self {
            Self::Launch => OutboxKind::Launch,
            Self::Stop => OutboxKind::Stop,
            Self::Pause => OutboxKind::Pause,
            Self::Resume => OutboxKind::Resume,
            Self::Turn { .. } => OutboxKind::Turn,
            Self::Answer { .. } => OutboxKind::Answer,
            Self::Sync => OutboxKind::Sync,
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_read_back_and_its_column_says_the_same_kind() {
        let turn = Command::Turn { conversation_id: ConversationId(1), message_id: MessageId(2) };
        let answer = Command::Answer { approval_id: ApprovalId(3) };
        for command in
            [Command::Launch, Command::Stop, Command::Pause, Command::Resume, turn, answer, Command::Sync]
        {
            let stored = serde_json::to_value(command).unwrap();
            assert_eq!(stored["kind"], command.kind().as_str());
            assert_eq!(serde_json::from_value::<Command>(stored).unwrap(), command);
        }
    }
}
