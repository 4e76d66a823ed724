//! Database rows for approvals. Private to this feature.

/// Decisions that agents or the service wait for. Each is decided by one compare-and-set on `status`.
pub mod approvals {
    use sea_orm::entity::prelude::*;

    use crate::base::{
        enums::{
            ActorKind, AnswerDelivery, ApprovalKind, ApprovalOutcome, ApprovalStatus, DecidedVia, Severity,
        },
        ids::{
            AgentId, ApprovalId, ChannelId, ConversationId, MessageId, ModelCredentialId, OrgId, ServerId,
            TokenId, TurnId, UserId,
        },
        time::Timestamp,
    };

    #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
    #[sea_orm(table_name = "approvals")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub organization_id: OrgId,
        #[sea_orm(primary_key)]
        pub id: ApprovalId,
        pub kind: ApprovalKind,
        pub status: ApprovalStatus,
        pub outcome: Option<ApprovalOutcome>,
        pub title: String,
        /// Derived from the title.
        pub title_folded: String,
        pub body: Option<String>,
        pub severity: Severity,
        pub category: Option<String>,
        pub risk: Option<i64>,
        pub agent_id: Option<AgentId>,
        /// The server that a SERVER_ALERT is about.
        pub server_id: Option<ServerId>,
        /// The model credential that an AUTH_REQUIRED is about.
        pub model_credential_id: Option<ModelCredentialId>,
        /// The channel that a CHANNEL_ERROR or an ACCESS_REQUEST is about.
        pub channel_id: Option<ChannelId>,
        /// The sender that an ACCESS_REQUEST would admit.
        pub origin_id: Option<String>,
        pub conversation_id: Option<ConversationId>,
        pub message_seq: Option<i64>,
        /// The turn it was asked in.
        pub turn_id: Option<TurnId>,
        /// The launch that asked.
        pub generation: Option<i64>,
        /// The launch's name for its request. None: no call waits for the decision.
        pub request_key: Option<String>,
        /// {tool, input, digest}
        pub request: Option<Json>,
        /// {text, options: [{id, label, description}], multiple, allow_text}
        pub question: Option<Json>,
        /// {agent_id, cost_micro, tokens}
        pub spending: Option<Json>,
        /// {options, text}
        pub answer: Option<Json>,
        pub decided_by_user_id: Option<UserId>,
        pub decided_by_token_id: Option<TokenId>,
        pub decided_by_name: Option<String>,
        pub decided_by_kind: Option<ActorKind>,
        pub decided_via: Option<DecidedVia>,
        pub comment: Option<String>,
        pub expires_at: Option<Timestamp>,
        pub resolved_at: Option<Timestamp>,
        pub delivered_at: Option<Timestamp>,
        /// Whether and how the decision has reached the agent.
        pub delivery: Option<AnswerDelivery>,
        /// When an approval that came too late allowed the same action in the next launch.
        pub honoured_at: Option<Timestamp>,
        /// The decision, as a message of the conversation.
        pub answer_message_id: Option<MessageId>,
        /// The member who should decide. Restricts no one.
        pub assignee_id: Option<UserId>,
        /// When to remind people that it expires. None: not, or done.
        pub remind_at: Option<Timestamp>,
        pub created_at: Timestamp,
        pub updated_at: Timestamp,
    }

    crate::core::store::tenant_entity!(title_folded = folding::name(title));
}
