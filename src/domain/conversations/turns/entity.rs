//! Database rows for turns. Private to this feature.

/// Units of an agent's work in a conversation.
pub mod turns {
    use sea_orm::entity::prelude::*;

    use crate::base::{
        enums::{TurnCause, TurnCut, TurnLimit, TurnState},
        ids::{AgentId, ConversationId, OrgId, TokenId, TurnId, UserId},
        time::Timestamp,
    };

    #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
    #[sea_orm(table_name = "turns")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub organization_id: OrgId,
        #[sea_orm(primary_key)]
        pub id: TurnId,
        pub conversation_id: ConversationId,
        pub agent_id: AgentId,
        /// The launch it was sent to.
        pub generation: Option<i64>,
        /// The number of the agent's revision.
        pub agent_revision: Option<i64>,
        pub cause: TurnCause,
        pub caused_by_user_id: Option<UserId>,
        pub caused_by_token_id: Option<TokenId>,
        pub state: TurnState,
        pub model: Option<String>,
        pub input_tokens: Option<i64>,
        pub output_tokens: Option<i64>,
        pub cache_read_tokens: Option<i64>,
        pub cache_write_tokens: Option<i64>,
        pub cost_micro: Option<i64>,
        pub error: Option<String>,
        /// The position of its first message.
        pub first_seq: Option<i64>,
        /// The position of the conversation's last message when the host got the prompt.
        pub handed_seq: Option<i64>,
        /// The position of its last message.
        pub last_seq: Option<i64>,
        pub cancel_requested_at: Option<Timestamp>,
        /// The person who ended it early. None also if the service did.
        pub cut_by: Option<String>,
        /// The thing that person stopped.
        pub cut: Option<TurnCut>,
        pub cut_at: Option<Timestamp>,
        /// Cancelled because a person took the conversation over.
        pub yielded: bool,
        /// Waits for another message: a person has answered its messages.
        pub held: bool,
        /// The effect of the agent's limit on it.
        pub limited: Option<TurnLimit>,
        /// Its cost is the agent's claim, because no call was measured.
        pub unmeasured: bool,
        /// When the agent received it.
        pub started_at: Option<Timestamp>,
        pub ended_at: Option<Timestamp>,
        pub created_at: Timestamp,
        pub updated_at: Timestamp,
    }

    crate::core::store::tenant_entity!();
}
