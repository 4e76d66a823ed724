//! What callers say about channels. One input object a transport, for creating and for editing: an edit merges it
//! key by key (absent is untouched, null clears what may be empty), creating merges it into an empty channel.

use async_graphql::{InputObject, MaybeUndefined};

use crate::{
    base::{
        enums::{ChannelDirection, ChannelScope, ListenScope, Transport},
        ids::{AgentId, ConversationId, Id, UserId},
        secret::SecretText,
    },
    fields::bounds::{bounds, items, length, list, name, not_null, range},
};

/// What a new channel is given. Of the objects, only that of its transport.
#[derive(InputObject, Debug)]
pub struct CreateChannelInput {
    /// The name.
    #[graphql(directive = bounds::apply(name(80)))]
    pub name: String,
    /// Who it is for; EXTERNAL if nothing is said.
    pub scope: Option<ChannelScope>,
    /// Which way messages go; BIDIRECTIONAL if nothing is said.
    pub direction: Option<ChannelDirection>,
    /// The messaging transport. INTERNAL is the panel, and never created by hand.
    pub transport: Transport,
    /// The bot's token, which TELEGRAM, DISCORD and SLACK need. It is never shown again.
    #[graphql(directive = bounds::apply(name(500)))]
    pub bot_token: Option<SecretText>,
    /// A bot's handle, or the label of a destination.
    #[graphql(directive = bounds::apply(length(0, 255)))]
    pub destination: Option<String>,
    /// What WEBHOOK has; `outboundUrl` is needed where it sends.
    pub webhook: Option<ChannelWebhookInput>,
    /// What EMAIL has: `imap` where it receives, `smtp` where it sends.
    pub email: Option<ChannelEmailInput>,
    /// What CODE_HOST has; `installationId` is needed.
    pub code_host: Option<ChannelCodeHostInput>,
    /// What DRIVE has; `folderId` is needed.
    pub drive: Option<ChannelDriveInput>,
    /// What CALENDAR has.
    pub calendar: Option<ChannelCalendarInput>,
    /// What the agent is told about this channel.
    #[graphql(directive = bounds::apply(length(0, 8000)))]
    pub instructions: Option<String>,
    /// The agent that it connects.
    pub agent_id: AgentId,
}

/// What an edit of a channel changes: absent is untouched, null clears. Of the objects, only that of its
/// transport.
#[derive(InputObject, Debug, Default)]
pub struct UpdateChannelInput {
    /// The name.
    #[graphql(directive = bounds::apply(name(80).not_null()))]
    pub name: MaybeUndefined<String>,
    /// Who it is for.
    #[graphql(directive = bounds::apply(not_null()))]
    pub scope: MaybeUndefined<ChannelScope>,
    /// Which way messages go.
    #[graphql(directive = bounds::apply(not_null()))]
    pub direction: MaybeUndefined<ChannelDirection>,
    /// The bot's token. It is never shown again.
    #[graphql(directive = bounds::apply(name(500).not_null()))]
    pub bot_token: MaybeUndefined<SecretText>,
    /// A bot's handle, or the label of a destination.
    #[graphql(directive = bounds::apply(length(0, 255)))]
    pub destination: MaybeUndefined<String>,
    /// Labels that let a message in; the whole list.
    #[graphql(directive = bounds::apply(list(200, name(255)).not_null()))]
    pub label_whitelist: MaybeUndefined<Vec<String>>,
    /// Where the agent answers without being mentioned; the whole list.
    #[graphql(directive = bounds::apply(list(200, name(255)).not_null()))]
    pub mention_off: MaybeUndefined<Vec<String>>,
    /// What WEBHOOK has.
    pub webhook: MaybeUndefined<ChannelWebhookInput>,
    /// What EMAIL has.
    pub email: MaybeUndefined<ChannelEmailInput>,
    /// What CODE_HOST has.
    pub code_host: MaybeUndefined<ChannelCodeHostInput>,
    /// What DRIVE has.
    pub drive: MaybeUndefined<ChannelDriveInput>,
    /// What CALENDAR has.
    pub calendar: MaybeUndefined<ChannelCalendarInput>,
    /// What the agent is told about this channel.
    #[graphql(directive = bounds::apply(length(0, 8000)))]
    pub instructions: MaybeUndefined<String>,
    /// The conversation that hears of what comes in.
    pub notify_conversation_id: MaybeUndefined<ConversationId>,
    /// Members who are told when it fails; the whole list.
    #[graphql(directive = bounds::apply(items(100).not_null()))]
    pub alert_recipient_user_ids: MaybeUndefined<Vec<UserId>>,
    /// Whether messages go through it.
    #[graphql(directive = bounds::apply(not_null()))]
    pub is_active: MaybeUndefined<bool>,
}

/// What a webhook is given.
#[derive(InputObject, Debug, Default)]
pub struct ChannelWebhookInput {
    /// Where outbound traffic goes: an http or https address.
    #[graphql(directive = bounds::apply(name(2000)))]
    pub outbound_url: MaybeUndefined<String>,
    /// Signs outbound traffic. It is never shown again.
    #[graphql(directive = bounds::apply(name(500)))]
    pub outbound_secret: MaybeUndefined<SecretText>,
    /// Verifies inbound traffic, which must be signed from then on. It is never shown again.
    #[graphql(directive = bounds::apply(name(500)))]
    pub inbound_secret: MaybeUndefined<SecretText>,
    /// The header that carries the signature, beside the standard ones.
    #[graphql(directive = bounds::apply(name(100)))]
    pub signature_header: MaybeUndefined<String>,
    /// How the channel recognises its own traffic.
    pub echo_filter: MaybeUndefined<ChannelEchoFilterInput>,
}

/// How a webhook is to recognise its own traffic.
#[derive(InputObject, Debug, Default)]
pub struct ChannelEchoFilterInput {
    /// Dotted paths into the body; the whole list.
    #[graphql(directive = bounds::apply(list(50, name(255)).not_null()))]
    pub actor_paths: MaybeUndefined<Vec<String>>,
    /// Ids that stand for the channel itself; the whole list.
    #[graphql(directive = bounds::apply(list(50, name(255)).not_null()))]
    pub self_ids: MaybeUndefined<Vec<String>>,
}

/// What a mailbox is given.
#[derive(InputObject, Debug, Default)]
pub struct ChannelEmailInput {
    /// Where mail is fetched.
    pub imap: MaybeUndefined<ChannelImapInput>,
    /// Where mail is sent.
    pub smtp: MaybeUndefined<ChannelSmtpInput>,
}

/// Where mail is fetched.
#[derive(InputObject, Debug, Default)]
pub struct ChannelImapInput {
    /// The host. A new one needs the password again.
    #[graphql(directive = bounds::apply(name(253).not_null()))]
    pub host: MaybeUndefined<String>,
    /// The port; 993 if nothing was said.
    #[graphql(directive = bounds::apply(range(1, 65_535).not_null()))]
    pub port: MaybeUndefined<i64>,
    /// The user's name.
    #[graphql(directive = bounds::apply(name(255).not_null()))]
    pub user: MaybeUndefined<String>,
    /// The password. It is never shown again.
    #[graphql(directive = bounds::apply(name(500).not_null()))]
    pub pass: MaybeUndefined<SecretText>,
    /// Whether the connection is encrypted from the start; true if nothing was said.
    #[graphql(directive = bounds::apply(not_null()))]
    pub tls: MaybeUndefined<bool>,
}

/// Where mail is sent.
#[derive(InputObject, Debug, Default)]
pub struct ChannelSmtpInput {
    /// The host. A new one needs the password again.
    #[graphql(directive = bounds::apply(name(253).not_null()))]
    pub host: MaybeUndefined<String>,
    /// The port; 587 if nothing was said.
    #[graphql(directive = bounds::apply(range(1, 65_535).not_null()))]
    pub port: MaybeUndefined<i64>,
    /// The user's name; a relay may need none.
    #[graphql(directive = bounds::apply(name(255)))]
    pub user: MaybeUndefined<String>,
    /// The password. It is never shown again.
    #[graphql(directive = bounds::apply(name(500)))]
    pub pass: MaybeUndefined<SecretText>,
    /// The sender's address.
    #[graphql(directive = bounds::apply(name(320).not_null()))]
    pub from: MaybeUndefined<String>,
}

/// What a code host is given.
#[derive(InputObject, Debug, Default)]
pub struct ChannelCodeHostInput {
    /// The app's installation.
    #[graphql(directive = bounds::apply(not_null()))]
    pub installation_id: MaybeUndefined<Id>,
    /// Repositories, as owner/name; the whole list.
    #[graphql(directive = bounds::apply(list(500, name(201)).not_null()))]
    pub repos: MaybeUndefined<Vec<String>>,
    /// Names of events; the whole list.
    #[graphql(directive = bounds::apply(list(100, name(80)).not_null()))]
    pub events: MaybeUndefined<Vec<String>>,
    /// Which events reach the agent; `involved` if nothing was said.
    #[graphql(directive = bounds::apply(not_null()))]
    pub listen_scope: MaybeUndefined<ListenScope>,
    /// Whether events arrive whole; false if nothing was said.
    #[graphql(directive = bounds::apply(not_null()))]
    pub raw_payload: MaybeUndefined<bool>,
}

/// What a shared drive is given.
#[derive(InputObject, Debug, Default)]
pub struct ChannelDriveInput {
    /// Identifies the folder.
    #[graphql(directive = bounds::apply(name(255).not_null()))]
    pub folder_id: MaybeUndefined<String>,
    /// The folder's name.
    #[graphql(directive = bounds::apply(length(0, 255)))]
    pub folder_name: MaybeUndefined<String>,
}

/// What a calendar is given.
#[derive(InputObject, Debug, Default)]
pub struct ChannelCalendarInput {
    /// The calendars that reach the agent; the whole list.
    #[graphql(directive = bounds::apply(items(100).not_null()))]
    pub calendar_whitelist: MaybeUndefined<Vec<ChannelCalendarChoiceInput>>,
    /// How long before an event the agent is told, in minutes: four weeks at most.
    #[graphql(directive = bounds::apply(range(0, 40_320)))]
    pub reminder_lead_minutes: MaybeUndefined<i64>,
}

/// A calendar that reaches the agent.
#[derive(InputObject, Debug)]
pub struct ChannelCalendarChoiceInput {
    /// Identifies the calendar.
    #[graphql(directive = bounds::apply(name(255)))]
    pub id: String,
    /// Its name; the id if nothing is said.
    #[graphql(directive = bounds::apply(name(255)))]
    pub name: Option<String>,
}

impl CreateChannelInput {
    /// The new channel as an edit of an empty one. Null says nothing.
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
