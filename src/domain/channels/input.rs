//! The schema's input objects for channels. Each transport has one object, for creating and for editing. An
//! edit is merged key by key (undefined keeps the value, null clears an optional one); a new channel is merged
//! into an empty one.

use async_graphql::{InputObject, MaybeUndefined};

use crate::{
    base::{
        enums::{ChannelDirection, ChannelScope, ListenScope, Transport},
        ids::{AgentId, ConversationId, Id, UserId},
        secret::SecretText,
    },
    resolvers::bounds::{bounds, items, length, list, name, not_null, range},
};

/// A new channel. Only its own transport's settings are allowed.
#[derive(InputObject, Debug)]
pub struct CreateChannelInput {
    /// The name.
    #[graphql(directive = bounds::apply(name(80)))]
    pub name: String,
    /// Who the channel is for. Defaults to EXTERNAL.
    pub scope: Option<ChannelScope>,
    /// The direction of messages. Defaults to BIDIRECTIONAL.
    pub direction: Option<ChannelDirection>,
    /// The messaging transport. INTERNAL is the panel and can't be created.
    pub transport: Transport,
    /// The bot token, required for TELEGRAM, DISCORD, SLACK, and CODE_HOST other than GitHub. Write-only: it is never shown
    /// again.
    #[graphql(directive = bounds::apply(name(500)))]
    pub bot_token: Option<SecretText>,
    /// The bot's handle, or a label for the destination.
    #[graphql(directive = bounds::apply(length(0, 255)))]
    pub destination: Option<String>,
    /// Settings for WEBHOOK. The outbound URL is required if the channel sends.
    pub webhook: Option<ChannelWebhookInput>,
    /// Settings for EMAIL. `imap` is required if the channel receives, `smtp` if it sends.
    pub email: Option<ChannelEmailInput>,
    /// Settings for CODE_HOST. The installation is required at GitHub, `repos` at other hosts.
    pub code_host: Option<ChannelCodeHostInput>,
    /// Settings for DRIVE. The folder is required, and for a WebDAV server its user and password.
    pub drive: Option<ChannelDriveInput>,
    /// Settings for CALENDAR. Without the address of a CalDAV server, connect a Google account.
    pub calendar: Option<ChannelCalendarInput>,
    /// Instructions for the agent about this channel.
    #[graphql(directive = bounds::apply(length(0, 8000)))]
    pub instructions: Option<String>,
    /// The agent it connects.
    pub agent_id: AgentId,
}

/// Changes to a channel. Fields left out keep their value; null clears an optional field. Only the settings of
/// its own transport are allowed.
#[derive(Clone, InputObject, Debug, Default)]
pub struct UpdateChannelInput {
    /// The name.
    #[graphql(directive = bounds::apply(name(80).not_null()))]
    pub name: MaybeUndefined<String>,
    /// Who the channel is for.
    #[graphql(directive = bounds::apply(not_null()))]
    pub scope: MaybeUndefined<ChannelScope>,
    /// The direction of messages.
    #[graphql(directive = bounds::apply(not_null()))]
    pub direction: MaybeUndefined<ChannelDirection>,
    /// The bot token. Write-only: it is never shown again.
    #[graphql(directive = bounds::apply(name(500).not_null()))]
    pub bot_token: MaybeUndefined<SecretText>,
    /// The bot's handle, or a label for the destination.
    #[graphql(directive = bounds::apply(length(0, 255)))]
    pub destination: MaybeUndefined<String>,
    /// The labels that let a message in. Replaces the whole list.
    #[graphql(directive = bounds::apply(list(200, name(255)).not_null()))]
    pub label_whitelist: MaybeUndefined<Vec<String>>,
    /// Where the agent answers without being mentioned. Replaces the whole list.
    #[graphql(directive = bounds::apply(list(200, name(255)).not_null()))]
    pub mention_off: MaybeUndefined<Vec<String>>,
    /// Settings for WEBHOOK.
    pub webhook: MaybeUndefined<ChannelWebhookInput>,
    /// Settings for EMAIL.
    pub email: MaybeUndefined<ChannelEmailInput>,
    /// Settings for CODE_HOST.
    pub code_host: MaybeUndefined<ChannelCodeHostInput>,
    /// Settings for DRIVE.
    pub drive: MaybeUndefined<ChannelDriveInput>,
    /// Settings for CALENDAR.
    pub calendar: MaybeUndefined<ChannelCalendarInput>,
    /// Instructions for the agent about this channel.
    #[graphql(directive = bounds::apply(length(0, 8000)))]
    pub instructions: MaybeUndefined<String>,
    /// The conversation notified of incoming messages.
    pub notify_conversation_id: MaybeUndefined<ConversationId>,
    /// The members to alert when it fails. Replaces the whole list.
    #[graphql(directive = bounds::apply(items(100).not_null()))]
    pub alert_recipient_user_ids: MaybeUndefined<Vec<UserId>>,
    /// Whether messages pass through it.
    #[graphql(directive = bounds::apply(not_null()))]
    pub is_active: MaybeUndefined<bool>,
}

/// Settings for a webhook.
#[derive(Clone, InputObject, Debug, Default)]
pub struct ChannelWebhookInput {
    /// The http or https URL that outbound messages are sent to.
    #[graphql(directive = bounds::apply(name(2000)))]
    pub outbound_url: MaybeUndefined<String>,
    /// The secret that signs outbound messages. Write-only: it is never shown again.
    #[graphql(directive = bounds::apply(name(500)))]
    pub outbound_secret: MaybeUndefined<SecretText>,
    /// The secret that verifies inbound messages, which must be signed once it is set. Write-only: it is never shown again.
    #[graphql(directive = bounds::apply(name(500)))]
    pub inbound_secret: MaybeUndefined<SecretText>,
    /// An additional header that carries the signature.
    #[graphql(directive = bounds::apply(name(100)))]
    pub signature_header: MaybeUndefined<String>,
    /// How the channel recognizes its own messages.
    pub echo_filter: MaybeUndefined<ChannelEchoFilterInput>,
}

/// How a webhook recognizes its own messages.
#[derive(Clone, InputObject, Debug, Default)]
pub struct ChannelEchoFilterInput {
    /// Dotted paths into the body. Replaces the whole list.
    #[graphql(directive = bounds::apply(list(50, name(255)).not_null()))]
    pub actor_paths: MaybeUndefined<Vec<String>>,
    /// Ids of the channel itself. Replaces the whole list.
    #[graphql(directive = bounds::apply(list(50, name(255)).not_null()))]
    pub self_ids: MaybeUndefined<Vec<String>>,
}

/// Settings for a mailbox.
#[derive(Clone, InputObject, Debug, Default)]
pub struct ChannelEmailInput {
    /// The IMAP server.
    pub imap: MaybeUndefined<ChannelImapInput>,
    /// The SMTP server.
    pub smtp: MaybeUndefined<ChannelSmtpInput>,
    /// The name under which the mailbox's server writes `Authentication-Results`, or `*topmost` to trust its topmost
    /// header regardless of the name. Mails whose sender the header does not prove are then refused; without it, senders
    /// are not proven.
    #[graphql(directive = bounds::apply(name(253)))]
    pub authserv_id: MaybeUndefined<String>,
}

/// The IMAP server.
#[derive(Clone, InputObject, Debug, Default)]
pub struct ChannelImapInput {
    /// The host. Changing it requires the password again.
    #[graphql(directive = bounds::apply(name(253).not_null()))]
    pub host: MaybeUndefined<String>,
    /// The port. Defaults to 993.
    #[graphql(directive = bounds::apply(range(1, 65_535).not_null()))]
    pub port: MaybeUndefined<i64>,
    /// The user name.
    #[graphql(directive = bounds::apply(name(255).not_null()))]
    pub user: MaybeUndefined<String>,
    /// The password, or `Bearer`, a space, and an access token. Write-only: it is never shown again.
    #[graphql(directive = bounds::apply(name(4096).not_null()))]
    pub pass: MaybeUndefined<SecretText>,
    /// Whether the connection must be encrypted: from the start on port 993, with STARTTLS on others. Defaults to true; false
    /// only where the operator lists the server's network.
    #[graphql(directive = bounds::apply(not_null()))]
    pub tls: MaybeUndefined<bool>,
}

/// The SMTP server.
#[derive(Clone, InputObject, Debug, Default)]
pub struct ChannelSmtpInput {
    /// The host. Changing it requires the password again.
    #[graphql(directive = bounds::apply(name(253).not_null()))]
    pub host: MaybeUndefined<String>,
    /// The port. Defaults to 587.
    #[graphql(directive = bounds::apply(range(1, 65_535).not_null()))]
    pub port: MaybeUndefined<i64>,
    /// The user name. A relay may not need one.
    #[graphql(directive = bounds::apply(name(255)))]
    pub user: MaybeUndefined<String>,
    /// The password, or `Bearer`, a space, and an access token. Write-only: it is never shown again.
    #[graphql(directive = bounds::apply(name(4096)))]
    pub pass: MaybeUndefined<SecretText>,
    /// The sender's address.
    #[graphql(directive = bounds::apply(name(320).not_null()))]
    pub from: MaybeUndefined<String>,
}

/// Settings for a code host.
#[derive(Clone, InputObject, Debug, Default)]
pub struct ChannelCodeHostInput {
    /// A host that the operator names, such as `gitlab.com`. Null: GitHub. It can't be changed.
    #[graphql(directive = bounds::apply(name(255)))]
    pub host: MaybeUndefined<String>,
    /// The id of the app's installation, at GitHub.
    pub installation_id: MaybeUndefined<Id>,
    /// The repositories, as `owner/name`, to which it listens. Empty: all of the installation. Replaces the whole list.
    #[graphql(directive = bounds::apply(list(500, name(201)).not_null()))]
    pub repos: MaybeUndefined<Vec<String>>,
    /// Event names, such as `issues` or `issues.opened`. Empty: all that say something. Replaces the whole list.
    #[graphql(directive = bounds::apply(list(100, name(80)).not_null()))]
    pub events: MaybeUndefined<Vec<String>>,
    /// Which events reach the agent. Defaults to `involved`.
    #[graphql(directive = bounds::apply(not_null()))]
    pub listen_scope: MaybeUndefined<ListenScope>,
    /// Whether the agent receives the complete payload of events. Defaults to false.
    #[graphql(directive = bounds::apply(not_null()))]
    pub raw_payload: MaybeUndefined<bool>,
}

/// Settings for a shared drive.
#[derive(Clone, InputObject, Debug, Default)]
pub struct ChannelDriveInput {
    /// Identifies the folder: at Google its id, at a WebDAV server its path below the URL.
    #[graphql(directive = bounds::apply(name(1024).not_null()))]
    pub folder_id: MaybeUndefined<String>,
    /// The folder's name, which messages about files give.
    #[graphql(directive = bounds::apply(length(0, 255)))]
    pub folder_name: MaybeUndefined<String>,
    /// The http or https URL of a WebDAV server. Without it, the folder is at Google. Changing it requires the password again.
    #[graphql(directive = bounds::apply(name(2000)))]
    pub url: MaybeUndefined<String>,
    /// The user name at the WebDAV server.
    #[graphql(directive = bounds::apply(name(255)))]
    pub user: MaybeUndefined<String>,
    /// The password at the WebDAV server, or the key of a Google service account: its JSON document. Without either, the channel
    /// needs an account. Write-only: it is never shown again.
    #[graphql(directive = bounds::apply(length(1, 4096)))]
    pub pass: MaybeUndefined<SecretText>,
}

/// Settings for a calendar.
#[derive(Clone, InputObject, Debug, Default)]
pub struct ChannelCalendarInput {
    /// The address of a CalDAV server, or of an account there. Null: the calendars are those of the connected Google account.
    /// Changing it requires the password again.
    #[graphql(directive = bounds::apply(name(2048)))]
    pub url: MaybeUndefined<String>,
    /// The user name at the CalDAV server.
    #[graphql(directive = bounds::apply(name(255)))]
    pub user: MaybeUndefined<String>,
    /// The password there. Write-only: it is never shown again.
    #[graphql(directive = bounds::apply(name(4096)))]
    pub pass: MaybeUndefined<SecretText>,
    /// The calendars the agent can see. Replaces the whole list. Without any, nothing comes in.
    #[graphql(directive = bounds::apply(items(100).not_null()))]
    pub calendar_whitelist: MaybeUndefined<Vec<ChannelCalendarChoiceInput>>,
    /// How many minutes before an event the agent is reminded, at most four weeks. Null: it is not.
    #[graphql(directive = bounds::apply(range(0, 40_320)))]
    pub reminder_lead_minutes: MaybeUndefined<i64>,
}

/// A calendar the agent can see.
#[derive(Clone, InputObject, Debug)]
pub struct ChannelCalendarChoiceInput {
    /// Identifies the calendar.
    #[graphql(directive = bounds::apply(name(255)))]
    pub id: String,
    /// The calendar's name. Defaults to its id.
    #[graphql(directive = bounds::apply(name(255)))]
    pub name: Option<String>,
}

impl CreateChannelInput {
    /// Turns a new channel into an edit of an empty one. Null counts as left out.
    pub(super) fn into_edit(self) -> UpdateChannelInput {
        UpdateChannelInput {
            name: MaybeUndefined::Value(self.name),
            scope: given(self.scope),
            direction: given(self.direction),
            bot_token: given(self.bot_token),
            destination: given(self.destination),
            webhook: given(self.webhook),
            email: given(self.email),
            code_host: given(self.code_host),
            drive: given(self.drive),
            calendar: given(self.calendar),
            instructions: given(self.instructions),
            ..UpdateChannelInput::default()
        }
    }
}

fn given<T>(value: Option<T>) -> MaybeUndefined<T> {
    value.map_or(MaybeUndefined::Undefined, MaybeUndefined::Value)
}
