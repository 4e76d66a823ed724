//! Database rows for turns. Private to this feature.

/// What an agent is given to do at a time, in one conversation.
pub mod turns {
    use sea_orm::entity::prelude::*;

    use crate::base::{
        enums::{TurnCause, TurnCut, TurnLimit, TurnState},
        ids::{AgentId, ConversationId, OrgId, TokenId, TurnId, UserId},
        time::Timestamp,
    };

    /// A row of `turns`.
    #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
    #[sea_orm(table_name = "turns")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub organization_id: OrgId,
        #[sea_orm(primary_key)]
        pub id: TurnId,
        pub conversation_id: ConversationId,
        pub agent_id: AgentId,
        /// The launch that it was sent to.
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
        /// Its first message.
        pub first_seq: Option<i64>,
        /// The conversation's last message when the host was told what to say.
        pub handed_seq: Option<i64>,
        /// Its last message.
        pub last_seq: Option<i64>,
        pub cancel_requested_at: Option<Timestamp>,
        /// Who ended it early. None: no one, or the service.
        pub cut_by: Option<String>,
        /// What that person ended.
        pub cut: Option<TurnCut>,
        /// When.
        pub cut_at: Option<Timestamp>,
        /// It was cancelled because a person took the conversation over.
        pub yielded: bool,
        /// It waits for another message: a person has answered what it contains.
        pub held: bool,
        /// How far a limit of the agent concerns it.
        pub limited: Option<TurnLimit>,
        /// What it cost was counted as the agent said, since nothing was measured.
        pub unmeasured: bool,
        /// When the agent got it.
        pub started_at: Option<Timestamp>,
        pub ended_at: Option<Timestamp>,
        pub created_at: Timestamp,
        pub updated_at: Timestamp,
    }

    crate::core::store::tenant_entity!();
}
