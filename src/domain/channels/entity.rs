//! Database rows for channels and whitelists. Private to this feature, except for the channel's row, which `ingest`
//! reads.

/// Connections between an agent and a messaging transport. Columns that only one transport uses start with its
/// name.
pub mod channels {
    use sea_orm::entity::prelude::*;

    use crate::base::{
        enums::{ChannelDirection, ChannelScope, InactiveReason, ListenScope, Transport},
        ids::{AgentId, ChannelId, ConversationId, OrgId, SessionId, UserId},
        time::Timestamp,
    };

    #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
    #[sea_orm(table_name = "channels")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub organization_id: OrgId,
        #[sea_orm(primary_key)]
        pub id: ChannelId,
        pub agent_id: AgentId,
        pub transport: Transport,
        pub scope: ChannelScope,
        pub direction: ChannelDirection,
        pub name: String,
        pub name_folded: String,
        /// The bot's handle, or the label of a destination.
        pub target: Option<String>,
        pub bot_username: Option<String>,
        pub bot_token_sealed: Option<Vec<u8>>,
        /// A keyed digest of the part of the token that identifies the bot: unique across organizations.
        pub bot_hash: Option<Vec<u8>>,
        /// The ids that the vendor gives the authors of our own messages.
        pub self_ids: Json,
        /// The vendor's warnings about missing permissions or settings: sentences for people.
        pub warnings: Json,
        pub label_whitelist: Json,
        pub mention_off: Json,
        /// The last segment of the inbound path. Random, because it is all that is needed to find the channel; unique
        /// across organizations.
        pub inbound_slug: Option<String>,
        pub webhook_registered: bool,
        pub webhook_outbound_url: Option<String>,
        pub webhook_outbound_secret_sealed: Option<Vec<u8>>,
        pub webhook_inbound_secret_sealed: Option<Vec<u8>>,
        /// The previous secret, valid until `webhook_outbound_previous_until`.
        pub webhook_outbound_previous_sealed: Option<Vec<u8>>,
        pub webhook_outbound_previous_until: Option<Timestamp>,
        pub webhook_inbound_previous_sealed: Option<Vec<u8>>,
        pub webhook_inbound_previous_until: Option<Timestamp>,
        pub webhook_signature_header: Option<String>,
        pub webhook_actor_paths: Json,
        pub webhook_self_ids: Json,
        pub invite_url: Option<String>,
        pub email_imap_host: Option<String>,
        pub email_imap_port: Option<i64>,
        pub email_imap_user: Option<String>,
        pub email_imap_pass_sealed: Option<Vec<u8>>,
        pub email_imap_tls: bool,
        pub email_smtp_host: Option<String>,
        pub email_smtp_port: Option<i64>,
        pub email_smtp_user: Option<String>,
        pub email_smtp_pass_sealed: Option<Vec<u8>>,
        pub email_smtp_from: Option<String>,
        /// The mail server whose `Authentication-Results` are trusted.
        pub email_authserv_id: Option<String>,
        /// A host that the operator names. `None`: GitHub.
        pub code_host_host: Option<String>,
        pub code_host_installation_id: Option<i64>,
        pub code_host_repos: Json,
        pub code_host_events: Json,
        pub code_host_listen_scope: ListenScope,
        pub code_host_raw_payload: bool,
        pub code_host_oauth_authorized: bool,
        pub code_host_oauth_user_login: Option<String>,
        pub code_host_oauth_expires_at: Option<Timestamp>,
        pub provider_connected: bool,
        pub provider_email: Option<String>,
        /// When the authorization of the account ends.
        pub provider_expires_at: Option<Timestamp>,
        pub oauth_access_token_sealed: Option<Vec<u8>>,
        /// When the access token lapses. `None`: it lasts.
        pub oauth_access_until: Option<Timestamp>,
        pub oauth_refresh_token_sealed: Option<Vec<u8>>,
        /// The end of the lease of the process that refreshes the tokens.
        pub oauth_refreshing_until: Option<Timestamp>,
        /// An authorization that has begun: its state, the session that began it, and its end.
        pub oauth_state_hash: Option<Vec<u8>>,
        pub oauth_state_session: Option<SessionId>,
        pub oauth_state_until: Option<Timestamp>,
        pub drive_folder_id: Option<String>,
        pub drive_folder_name: Option<String>,
        /// A WebDAV server. `None`: Google.
        pub drive_url: Option<String>,
        pub drive_user: Option<String>,
        /// A password, or the key of a service account at Google.
        pub drive_pass_sealed: Option<Vec<u8>>,
        /// A CalDAV server. `None`: the calendars are the connected account's.
        pub calendar_url: Option<String>,
        pub calendar_user: Option<String>,
        pub calendar_pass_sealed: Option<Vec<u8>>,
        /// Objects of the form {id, name}.
        pub calendar_whitelist: Json,
        pub calendar_reminder_lead_minutes: Option<i64>,
        pub instructions: Option<String>,
        pub notify_conversation_id: Option<ConversationId>,
        pub alert_recipient_user_ids: Json,
        pub is_active: bool,
        pub inactive_reason: Option<InactiveReason>,
        pub created_by: Option<UserId>,
        pub created_at: Timestamp,
        pub updated_at: Timestamp,
        pub last_activity_at: Option<Timestamp>,
        /// The vendor asked to send nothing before this time.
        pub send_after: Option<Timestamp>,
        /// The first failed attempt since the last successful one.
        pub failing_since: Option<Timestamp>,
        /// The time of deletion. A deleted channel is hidden, without secrets or path, and kept for its conversations.
        pub archived_at: Option<Timestamp>,
    }

    crate::core::store::tenant_entity!(name_folded = folding::name(name));
}

/// The origins that may write to a channel. Where senders merely claim an identity, an empty list admits no one.
pub mod channel_whitelist {
    use sea_orm::entity::prelude::*;

    use crate::base::{
        ids::{ChannelId, OrgId},
        time::Timestamp,
    };

    #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
    #[sea_orm(table_name = "channel_whitelist")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub organization_id: OrgId,
        #[sea_orm(primary_key, auto_increment = false)]
        pub channel_id: ChannelId,
        #[sea_orm(primary_key, auto_increment = false)]
        pub origin_id: String,
        pub created_at: Timestamp,
    }

    crate::core::store::tenant_entity!();
}
