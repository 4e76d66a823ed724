//! A channel as it is read: the specification's record, and what a panel needs beside it.
//!
//! Objects that one transport alone has are null on every other. Secrets show only as `has_…`.

use std::sync::LazyLock;

use async_graphql::SimpleObject;

use crate::{
    base::{
        enums::{ChannelDirection, ChannelScope, InactiveReason, ListenScope, Transport},
        ids::{AgentId, ChannelId, ConversationId, Id, OrgId, UserId},
        permission::Permission,
        time::Timestamp,
    },
    read::{Record, Spec},
    slices::agents::graphql::Agent,
};

/// The whitelist as a list: in the order in which it grew.
const WHITELIST_SQLITE: &str = "(SELECT json_group_array(o.origin_id) FROM (SELECT w.origin_id \
    FROM channel_whitelist w WHERE w.organization_id = t.organization_id AND w.channel_id = t.id \
    ORDER BY w.created_at, w.origin_id) o)";
/// The same; byte order for ties, whatever the database's collation.
const WHITELIST_POSTGRES: &str = "(SELECT COALESCE(json_agg(w.origin_id \
    ORDER BY w.created_at, w.origin_id COLLATE \"C\"), '[]') \
    FROM channel_whitelist w WHERE w.organization_id = t.organization_id AND w.channel_id = t.id)";

/// A connection of an agent to a messaging transport.
pub struct Channel;

impl Record for Channel {
    fn spec() -> &'static Spec {
        static SPEC: LazyLock<Spec> = LazyLock::new(|| {
            let about = "A connection of an agent to a messaging transport.";
            let spec = Spec::new("Channel", "channels t", about)
                .permission(Permission::AgentView)
                .living("t.archived_at IS NULL")
                .viewer_can(|scope| scope.can(&["agent"]));
            state(transports(identity(spec)))
        });
        &SPEC
    }
}

fn identity(spec: Spec) -> Spec {
    spec.column::<ChannelId>("id", "Identifies the channel.")
        .column::<OrgId>("organization_id", "The organization that the channel belongs to.")
        .column::<AgentId>("agent_id", "The agent that it connects.")
        .column::<Transport>("transport", "The messaging transport.")
        .column::<ChannelScope>("scope", "Who it is for.")
        .column::<ChannelDirection>("direction", "Which way messages go.")
        .column::<String>("name", "The name.")
        .column::<Option<String>>("target", "A bot's handle, or the label of a destination.")
        .column::<Option<String>>("bot_username", "The bot's name, as the transport tells it.")
        .sql::<bool>("has_token", "(t.bot_token_sealed IS NOT NULL)", "Whether it has a bot's token.")
        .sql_by_backend::<Vec<String>>(
            "whitelist",
            WHITELIST_SQLITE,
            WHITELIST_POSTGRES,
            "Who may write to it: origin ids, in the order in which they were added.",
        )
        .column::<Vec<String>>("label_whitelist", "Labels that let a message in.")
        .column::<Vec<String>>("mention_off", "Where the agent answers without being mentioned.")
        .column::<bool>("webhook_registered", "Whether the transport knows where to send.")
        .sql::<Option<String>>(
            "inbound_path",
            "'/webhooks/webhook/' || t.inbound_slug",
            "Where a webhook's inbound traffic arrives: a path.",
        )
        .column::<Option<String>>("invite_url", "Adds the bot to a chat server.")
}

fn transports(spec: Spec) -> Spec {
    spec.embedded::<Webhook>("webhook", "(t.transport = 'WEBHOOK')", "What a webhook has.")
        .embedded::<CodeHost>("code_host", "(t.transport = 'CODE_HOST')", "What a code host has.")
        .embedded::<Mail>("email", "(t.transport = 'EMAIL')", "What a mailbox has.")
        .embedded::<ProviderAccount>(
            "provider_account",
            "(t.transport IN ('DRIVE', 'CALENDAR'))",
            "The account through which a drive or a calendar is reached.",
        )
        .embedded::<Drive>("drive", "(t.transport = 'DRIVE')", "What a shared drive has.")
        .embedded::<Calendar>("calendar", "(t.transport = 'CALENDAR')", "What a calendar has.")
}

fn state(spec: Spec) -> Spec {
    spec.column::<Option<String>>("instructions", "What the agent is told about this channel.")
        .column::<Option<ConversationId>>(
            "notify_conversation_id",
            "The conversation that hears of what comes in.",
        )
        .one::<NotifyConversation>(
            "notify_conversation",
            "t.notify_conversation_id",
            "The conversation that hears of what comes in, in a few words.",
        )
        .column::<bool>("is_active", "Whether messages go through it.")
        .column::<Option<InactiveReason>>("inactive_reason", "Why none do.")
        .column::<Option<UserId>>("created_by", "Who connected it.")
        .column::<Timestamp>("created_at", "When it was connected.")
        .column::<Timestamp>("updated_at", "When its record last changed.")
        .column::<Option<Timestamp>>("last_activity_at", "When a message last went through it.")
        .column::<Vec<i64>>("alert_recipient_user_ids", "Members who are told when it fails.")
        .one::<Agent>("agent", "t.agent_id", "The agent that it connects.")
}

/// An object of the channel's own row.
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
    /// What a webhook has.
    Webhook, "ChannelWebhook", "A webhook: what goes out where, and how both ways are signed.",
    |spec: Spec| {
        spec.sql::<Option<String>>("outbound_url", "t.webhook_outbound_url", "Where outbound traffic goes.")
            .sql::<bool>(
                "has_outbound_secret",
                "(t.webhook_outbound_secret_sealed IS NOT NULL)",
                "Whether outbound traffic is signed.",
            )
            .sql::<bool>(
                "has_inbound_secret",
                "(t.webhook_inbound_secret_sealed IS NOT NULL)",
                "Whether inbound traffic must be signed.",
            )
            .sql::<Option<String>>(
                "signature_header",
                "t.webhook_signature_header",
                "The header that carries the signature, beside the standard ones.",
            )
            .embedded::<EchoFilter>(
                "echo_filter",
                "(t.transport = 'WEBHOOK')",
                "How the channel recognises its own traffic.",
            )
    }
);

embedded!(
    /// How a webhook recognises its own traffic.
    EchoFilter, "ChannelEchoFilter", "Inbound traffic with one of these ids at one of these paths is the channel's own.",
    |spec: Spec| {
        spec.sql::<Vec<String>>("actor_paths", "t.webhook_actor_paths", "Dotted paths into the body.")
            .sql::<Vec<String>>("self_ids", "t.webhook_self_ids", "Ids that stand for the channel itself.")
    }
);

embedded!(
    /// What a code host has.
    CodeHost, "ChannelCodeHost", "A code host: which repositories and events reach the agent.",
    |spec: Spec| {
        spec.sql::<Option<Id>>("installation_id", "t.code_host_installation_id", "The app's installation.")
            .sql::<Vec<String>>("repos", "t.code_host_repos", "Repositories, as owner/name.")
            .sql::<Vec<String>>("events", "t.code_host_events", "Names of events.")
            .sql::<ListenScope>("listen_scope", "t.code_host_listen_scope", "Which events reach the agent.")
            .sql::<bool>("raw_payload", "t.code_host_raw_payload", "Whether events arrive whole.")
            .embedded::<CodeHostOauth>(
                "oauth",
                "(t.code_host_oauth_authorized OR t.code_host_oauth_user_login IS NOT NULL)",
                "The person's authorization; null if there never was one.",
            )
    }
);

embedded!(
    /// A person's authorization at a code host.
    CodeHostOauth, "ChannelCodeHostOauth", "A person's authorization at a code host.",
    |spec: Spec| {
        spec.sql::<bool>("authorized", "t.code_host_oauth_authorized", "Whether it holds.")
            .sql::<Option<String>>("user_login", "t.code_host_oauth_user_login", "Whose it is.")
            .sql::<Option<Timestamp>>("expires_at", "t.code_host_oauth_expires_at", "Until when it holds.")
    }
);

embedded!(
    /// What a mailbox has.
    Mail, "ChannelEmail", "A mailbox: where mail is fetched and sent.",
    |spec: Spec| {
        spec.embedded::<Imap>("imap", "(t.email_imap_host IS NOT NULL)", "Where mail is fetched.")
            .embedded::<Smtp>("smtp", "(t.email_smtp_host IS NOT NULL)", "Where mail is sent.")
    }
);

embedded!(
    /// Where mail is fetched.
    Imap, "ChannelImap", "Where mail is fetched.",
    |spec: Spec| {
        spec.sql::<String>("host", "t.email_imap_host", "The host.")
            .sql::<i64>("port", "t.email_imap_port", "The port.")
            .sql::<Option<String>>("user", "t.email_imap_user", "The user's name.")
            .sql::<bool>("has_pass", "(t.email_imap_pass_sealed IS NOT NULL)", "Whether it has a password.")
            .sql::<bool>("tls", "t.email_imap_tls", "Whether the connection is encrypted from the start.")
    }
);

embedded!(
    /// Where mail is sent.
    Smtp, "ChannelSmtp", "Where mail is sent.",
    |spec: Spec| {
        spec.sql::<String>("host", "t.email_smtp_host", "The host.")
            .sql::<i64>("port", "t.email_smtp_port", "The port.")
            .sql::<Option<String>>("user", "t.email_smtp_user", "The user's name.")
            .sql::<bool>("has_pass", "(t.email_smtp_pass_sealed IS NOT NULL)", "Whether it has a password.")
            .sql::<Option<String>>("from", "t.email_smtp_from", "The sender's address.")
    }
);

embedded!(
    /// The account through which a drive or a calendar is reached.
    ProviderAccount, "ChannelProviderAccount", "The account through which a drive or a calendar is reached.",
    |spec: Spec| {
        spec.sql::<bool>("connected", "t.provider_connected", "Whether it is connected.")
            .sql::<Option<String>>("provider_email", "t.provider_email", "Its address.")
    }
);

embedded!(
    /// What a shared drive has.
    Drive, "ChannelDrive", "A folder of a shared drive.",
    |spec: Spec| {
        spec.sql::<Option<String>>("folder_id", "t.drive_folder_id", "Identifies the folder.")
            .sql::<Option<String>>("folder_name", "t.drive_folder_name", "The folder's name.")
    }
);

embedded!(
    /// What a calendar has.
    Calendar, "ChannelCalendar", "Calendars, and when the agent is reminded.",
    |spec: Spec| {
        spec.parts::<Vec<CalendarChoice>>(
            "calendar_whitelist",
            "t.calendar_whitelist",
            "The calendars that reach the agent.",
        )
        .sql::<Option<i64>>(
            "reminder_lead_minutes",
            "t.calendar_reminder_lead_minutes",
            "How long before an event it is told, in minutes.",
        )
    }
);

/// A calendar that reaches the agent.
#[derive(SimpleObject)]
#[graphql(name = "ChannelCalendarChoice")]
pub struct CalendarChoice {
    /// Identifies the calendar.
    pub id: String,
    /// Its name.
    pub name: Option<String>,
}

/// The conversation that hears of what comes in through a channel. It tells no more than the channel's record may
/// tell anyway.
pub struct NotifyConversation;

impl Record for NotifyConversation {
    fn spec() -> &'static Spec {
        static SPEC: LazyLock<Spec> = LazyLock::new(|| {
            Spec::new("NotifyConversation", "conversations t", "A conversation in a few words.")
                .column::<ConversationId>("id", "Identifies the conversation.")
                .column::<String>("ref", "Its opaque reference.")
                .column::<Option<String>>("title", "Its title.")
                .sql::<Option<String>>(
                    "contact_name",
                    "(SELECT c.name FROM contacts c WHERE c.organization_id = t.organization_id \
                     AND c.id = t.contact_id)",
                    "The contact's name.",
                )
                .column::<Transport>("transport", "The messaging transport.")
        });
        &SPEC
    }
}
