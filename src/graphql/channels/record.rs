//! A channel's record: the specification's fields, and others that a panel needs.
//!
//! Objects for one transport are null on all others. Secrets appear only as `has_…`.

use std::sync::LazyLock;

use async_graphql::SimpleObject;

use crate::{
    base::{
        enums::{
            ChannelDirection, ChannelScope, ConversationStatus, InactiveReason, LinkState, ListenScope,
            RecordKind, RefusalReason, Transport,
        },
        ids::{AgentId, ChannelId, ConversationId, Id, OrgId, UserId},
        permission::Permission,
        time::Timestamp,
    },
    graphql::agents::Agent,
    read::{Many, Record, Spec},
};

/// The whitelist as a list, in the order of insertion.
const WHITELIST_SQLITE: &str = "(SELECT json_group_array(o.origin_id) FROM (SELECT w.origin_id \
    FROM channel_whitelist w WHERE w.organization_id = t.organization_id AND w.channel_id = t.id \
    ORDER BY w.created_at, w.origin_id) o)";
/// The same on PostgreSQL. Ties are in byte order, regardless of the database's collation.
const WHITELIST_POSTGRES: &str = "(SELECT COALESCE(json_agg(w.origin_id \
    ORDER BY w.created_at, w.origin_id COLLATE \"C\"), '[]') \
    FROM channel_whitelist w WHERE w.organization_id = t.organization_id AND w.channel_id = t.id)";

pub struct Channel;

impl Record for Channel {
    fn spec() -> &'static Spec {
        static SPEC: LazyLock<Spec> = LazyLock::new(|| {
            let about = "A connection between an agent and a messaging transport.";
            let spec = Spec::new("Channel", "channels t", about)
                .permission(Permission::AgentView)
                .visible("t.archived_at IS NULL")
                .viewer_can(|scope| scope.permissions_json(&["agent"]));
            state(transports(identity(spec)))
        });
        &SPEC
    }
}

fn identity(spec: Spec) -> Spec {
    spec.column::<ChannelId>("id", "Identifies the channel.")
        .revision(RecordKind::Channel)
        .column::<OrgId>("organization_id", "The organization that the channel belongs to.")
        .column::<AgentId>("agent_id", "The agent it connects.")
        .column::<Transport>("transport", "The messaging transport.")
        .column::<ChannelScope>("scope", "Who the channel is for.")
        .column::<ChannelDirection>("direction", "The direction of messages.")
        .column::<String>("name", "The name.")
        .column::<Option<String>>("target", "The bot's handle, or a label for the destination.")
        .column::<Option<String>>("bot_username", "The bot's user name on the transport.")
        .sql::<bool>("has_token", "(t.bot_token_sealed IS NOT NULL)", "Whether it has a bot token.")
        .sql_by_backend::<Vec<String>>(
            "whitelist",
            WHITELIST_SQLITE,
            WHITELIST_POSTGRES,
            "The origins that may write to it, in the order added.",
        )
        .column::<Vec<String>>("label_whitelist", "The labels that let a message in.")
        .column::<Vec<String>>("mention_off", "Where the agent answers without being mentioned.")
        .column::<bool>(
            "webhook_registered",
            "Whether its vendor sends messages to `inboundPath`, instead of being polled.",
        )
        .sql::<Option<String>>(
            "inbound_path",
            "'/webhooks/' || LOWER(t.transport) || '/' || t.inbound_slug",
            "The path for a webhook's inbound messages.",
        )
        .column::<Option<String>>("invite_url", "The URL that adds the bot to a chat server.")
}

fn transports(spec: Spec) -> Spec {
    spec.embedded::<Webhook>("webhook", "(t.transport = 'WEBHOOK')", "The settings of a webhook.")
        .embedded::<CodeHost>("code_host", "(t.transport = 'CODE_HOST')", "The settings of a code host.")
        .embedded::<Mail>("email", "(t.transport = 'EMAIL')", "The settings of a mailbox.")
        .embedded::<ProviderAccount>(
            "provider_account",
            "(t.transport IN ('DRIVE', 'CALENDAR'))",
            "The provider account of a drive or calendar.",
        )
        .embedded::<Drive>("drive", "(t.transport = 'DRIVE')", "The settings of a shared drive.")
        .embedded::<Calendar>("calendar", "(t.transport = 'CALENDAR')", "The settings of a calendar.")
}

fn state(spec: Spec) -> Spec {
    spec.column::<Option<String>>("instructions", "Instructions for the agent about this channel.")
        .column::<Option<ConversationId>>(
            "notify_conversation_id",
            "The conversation notified of incoming messages.",
        )
        .one::<NotifyConversation>(
            "notify_conversation",
            "t.notify_conversation_id",
            "A short form of that conversation.",
        )
        .column::<bool>("is_active", "Whether messages pass through it.")
        .column::<Option<InactiveReason>>("inactive_reason", "Why it is inactive.")
        .column::<Option<UserId>>("created_by", "The user who connected it.")
        .column::<Timestamp>("created_at", "When it was connected.")
        .column::<Timestamp>("updated_at", "When it was last updated.")
        .column::<Option<Timestamp>>("last_activity_at", "When a message last passed through it.")
        .column::<Vec<i64>>("alert_recipient_user_ids", "The members to alert when it fails.")
        .one::<Agent>("agent", "t.agent_id", "The agent it connects.")
        .column::<Vec<String>>(
            "warnings",
            "The limits imposed by the vendor or its settings, as of the last check of the channel.",
        )
        .one_by::<ChannelLink>("link", "t.id", "t.channel_id", "Whether the vendor is reached. Null if the channel needs no listener.")
        .many::<RefusedOrigin>(
            "refused",
            Many { by: "t.channel_id", order: "t.last_at DESC, t.origin_id", ..Many::default() },
            "The last 100 origins whose messages were refused, the newest first. Add one with addWhitelistOrigin.",
        )
        .many::<SkippedMessage>(
            "skipped",
            Many { by: "t.channel_id", order: "t.skipped_at DESC, t.vendor_id DESC", ..Many::default() },
            "The last 100 messages that could not be read, the newest first. They are not read again.",
        )
}

pub struct ChannelLink;

impl Record for ChannelLink {
    fn spec() -> &'static Spec {
        static SPEC: LazyLock<Spec> = LazyLock::new(|| {
            Spec::new("ChannelLink", "channel_listeners t", "Whether a channel's vendor is reached.")
                .permission(Permission::AgentView)
                .sql::<LinkState>("state", "t.link", "Whether it is.")
                .column::<Option<String>>("cause", "Why the vendor is not reached.")
                .sql::<Option<Timestamp>>("since", "t.linked_at", "When this state began.")
        });
        &SPEC
    }
}

pub struct RefusedOrigin;

impl Record for RefusedOrigin {
    fn spec() -> &'static Spec {
        static SPEC: LazyLock<Spec> = LazyLock::new(|| {
            let about = "A sender whose messages a channel refused.";
            Spec::new("RefusedOrigin", "channel_refusals t", about)
                .permission(Permission::AgentView)
                .column::<String>("origin_id", "The sender, in the transport's own notation.")
                .column::<Option<String>>("origin_name", "The sender's name, as they give it.")
                .column::<RefusalReason>("reason", "Why the last message was refused.")
                .column::<i64>("count", "How many messages were refused.")
                .column::<Timestamp>("first_at", "When the first one arrived.")
                .column::<Timestamp>("last_at", "When the last one arrived.")
        });
        &SPEC
    }
}

pub struct SkippedMessage;

impl Record for SkippedMessage {
    fn spec() -> &'static Spec {
        static SPEC: LazyLock<Spec> = LazyLock::new(|| {
            let about = "A message that could not be read, and was skipped.";
            Spec::new("SkippedMessage", "channel_skips t", about)
                .permission(Permission::AgentView)
                .column::<String>("vendor_id", "The vendor's id of it: a mail's UID.")
                .column::<Option<String>>("subject", "A mail's subject, if known: at most 100 characters.")
                .column::<String>("reason", "Why it could not be read, in a sentence.")
                .column::<Timestamp>("skipped_at", "When it was skipped.")
        });
        &SPEC
    }
}

/// Defines an object that shows columns of the channel's own row.
macro_rules! embedded {
    ($(#[$doc:meta])* $record:ident, $name:literal, $about:literal, $fields:expr) => {
        $(#[$doc])*
        pub struct $record;

        impl Record for $record {
            fn spec() -> &'static Spec {
                static SPEC: LazyLock<Spec> =
                    LazyLock::new(|| ($fields)(Spec::new($name, "channels t", $about)));
                &SPEC
            }
        }
    };
}

embedded!(
    /// The settings of a webhook.
    Webhook, "ChannelWebhook", "A webhook: its URL and signatures.",
    |spec: Spec| {
        spec.sql::<Option<String>>("outbound_url", "t.webhook_outbound_url", "The URL that outbound messages are sent to.")
            .sql::<bool>(
                "has_outbound_secret",
                "(t.webhook_outbound_secret_sealed IS NOT NULL)",
                "Whether outbound messages are signed.",
            )
            .sql::<bool>(
                "has_inbound_secret",
                "(t.webhook_inbound_secret_sealed IS NOT NULL)",
                "Whether inbound messages must be signed.",
            )
            .sql::<Option<String>>(
                "signature_header",
                "t.webhook_signature_header",
                "An additional header that carries the signature.",
            )
            .embedded::<EchoFilter>(
                "echo_filter",
                "(t.transport = 'WEBHOOK')",
                "How the channel recognizes its own messages.",
            )
    }
);

embedded!(
    /// How a webhook recognizes its own messages.
    EchoFilter, "ChannelEchoFilter", "The ids and paths that mark the channel's own messages.",
    |spec: Spec| {
        spec.sql::<Vec<String>>("actor_paths", "t.webhook_actor_paths", "Dotted paths into the body.")
            .sql::<Vec<String>>("self_ids", "t.webhook_self_ids", "Ids of the channel itself.")
    }
);

embedded!(
    /// The settings of a code host.
    CodeHost, "ChannelCodeHost", "A code host: repositories and events for the agent.",
    |spec: Spec| {
        spec.sql::<Option<String>>("host", "t.code_host_host", "A host that the operator names. Null: GitHub.")
            .sql::<Option<Id>>("installation_id", "t.code_host_installation_id", "The id of the app's installation.")
            .sql::<Vec<String>>("repos", "t.code_host_repos", "Repositories, as `owner/name`.")
            .sql::<Vec<String>>("events", "t.code_host_events", "Event names.")
            .sql::<ListenScope>("listen_scope", "t.code_host_listen_scope", "Which events reach the agent.")
            .sql::<bool>("raw_payload", "t.code_host_raw_payload", "Whether the agent gets the complete payload of events.")
            .embedded::<CodeHostOauth>(
                "oauth",
                "(t.code_host_oauth_authorized OR t.code_host_oauth_user_login IS NOT NULL)",
                "A person's OAuth authorization. Null if never granted.",
            )
    }
);

embedded!(
    /// A person's OAuth authorization at a code host.
    CodeHostOauth, "ChannelCodeHostOauth", "A person's OAuth authorization at a code host.",
    |spec: Spec| {
        spec.sql::<bool>("authorized", "t.code_host_oauth_authorized", "Whether the authorization is valid.")
            .sql::<Option<String>>("user_login", "t.code_host_oauth_user_login", "The login of the person who granted it.")
            .sql::<Option<Timestamp>>("expires_at", "t.code_host_oauth_expires_at", "When the authorization expires.")
    }
);

embedded!(
    /// The settings of a mailbox.
    Mail, "ChannelEmail", "A mailbox: its IMAP and SMTP servers.",
    |spec: Spec| {
        spec.embedded::<Imap>("imap", "(t.email_imap_host IS NOT NULL)", "The IMAP server.")
            .embedded::<Smtp>("smtp", "(t.email_smtp_host IS NOT NULL)", "The SMTP server.")
            .sql::<Option<String>>(
                "authserv_id",
                "t.email_authserv_id",
                "The mail server whose statements about senders are trusted. Null: senders are not verified.",
            )
    }
);

embedded!(
    /// The IMAP server.
    Imap, "ChannelImap", "The IMAP server.",
    |spec: Spec| {
        spec.sql::<String>("host", "t.email_imap_host", "The host.")
            .sql::<i64>("port", "t.email_imap_port", "The port.")
            .sql::<Option<String>>("user", "t.email_imap_user", "The user name.")
            .sql::<bool>("has_pass", "(t.email_imap_pass_sealed IS NOT NULL)", "Whether it has a password.")
            .sql::<bool>("tls", "t.email_imap_tls", "Whether the connection must be encrypted: from the start on port 993, with STARTTLS on others.")
    }
);

embedded!(
    /// The SMTP server.
    Smtp, "ChannelSmtp", "The SMTP server.",
    |spec: Spec| {
        spec.sql::<String>("host", "t.email_smtp_host", "The host.")
            .sql::<i64>("port", "t.email_smtp_port", "The port.")
            .sql::<Option<String>>("user", "t.email_smtp_user", "The user name.")
            .sql::<bool>("has_pass", "(t.email_smtp_pass_sealed IS NOT NULL)", "Whether it has a password.")
            .sql::<Option<String>>("from", "t.email_smtp_from", "The sender's address.")
    }
);

embedded!(
    /// The provider account of a drive or calendar.
    ProviderAccount, "ChannelProviderAccount", "The provider account of a drive or calendar.",
    |spec: Spec| {
        spec.sql::<bool>("connected", "t.provider_connected", "Whether it is connected.")
            .sql::<Option<String>>("provider_email", "t.provider_email", "The account's e-mail address.")
            .sql::<Option<Timestamp>>(
                "expires_at",
                "t.provider_expires_at",
                "When the authorization expires. Null: it lasts until it is revoked.",
            )
    }
);

embedded!(
    /// The settings of a shared drive.
    Drive, "ChannelDrive", "A folder of a shared drive.",
    |spec: Spec| {
        spec.sql::<Option<String>>("folder_id", "t.drive_folder_id", "Identifies the folder.")
            .sql::<Option<String>>("folder_name", "t.drive_folder_name", "The folder's name.")
            .sql::<Option<String>>("url", "t.drive_url", "The URL of a WebDAV server. Null: the folder is at Google.")
            .sql::<Option<String>>("user", "t.drive_user", "The user name at the WebDAV server.")
            .sql::<bool>(
                "has_pass",
                "(t.drive_pass_sealed IS NOT NULL)",
                "Whether it has a password, or the key of a service account.",
            )
    }
);

embedded!(
    /// The settings of a calendar.
    Calendar, "ChannelCalendar", "The agent's calendars and reminders.",
    |spec: Spec| {
        spec.parts::<Vec<CalendarChoice>>(
            "calendar_whitelist",
            "t.calendar_whitelist",
            "The calendars the agent can see.",
        )
        .sql::<Option<i64>>(
            "reminder_lead_minutes",
            "t.calendar_reminder_lead_minutes",
            "Minutes between a reminder and its event.",
        )
        .sql::<Option<String>>(
            "url",
            "t.calendar_url",
            "The address of the CalDAV server. Null: the calendars are those of the provider account.",
        )
        .sql::<Option<String>>("user", "t.calendar_user", "The user name at the CalDAV server.")
        .sql::<bool>("has_pass", "(t.calendar_pass_sealed IS NOT NULL)", "Whether it has a password.")
    }
);

/// A calendar the agent can see.
#[derive(SimpleObject)]
#[graphql(name = "ChannelCalendarChoice")]
pub struct CalendarChoice {
    /// Identifies the calendar.
    pub id: String,
    /// Its name.
    pub name: Option<String>,
}

/// The conversation that is notified of a channel's incoming messages. It reveals nothing the channel's record
/// doesn't already show.
pub struct NotifyConversation;

impl Record for NotifyConversation {
    fn spec() -> &'static Spec {
        static SPEC: LazyLock<Spec> = LazyLock::new(|| {
            Spec::new("NotifyConversation", "conversations t", "A short form of a conversation.")
                .column::<ConversationId>("id", "Identifies the conversation.")
                .column::<String>("ref", "Its short code.")
                .column::<Option<String>>("title", "Its title.")
                .sql::<Option<String>>(
                    "contact_name",
                    "(SELECT c.name FROM contacts c WHERE c.organization_id = t.organization_id \
                     AND c.id = t.contact_id)",
                    "The contact's name.",
                )
                .column::<Transport>("transport", "The messaging transport.")
                .column::<ConversationStatus>(
                    "status",
                    "The status. An archived conversation is not notified.",
                )
        });
        &SPEC
    }
}
