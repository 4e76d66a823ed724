//! Vendors' differences as data: dialect, lengths, limits, abilities, actions.

use std::time::Duration;

use serde_json::Value;

use super::failure::Cause;

/// The vendor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Calendars, by CalDAV or at Google.
    Calendar,
    /// GitHub Apps, and accounts at GitLab, Gitea and Forgejo.
    CodeHost,
    /// Discord bots.
    Discord,
    /// Shared folders, at Google Drive or by WebDAV.
    Drive,
    /// Mailboxes, by IMAP and SMTP.
    Email,
    /// Slack apps.
    Slack,
    /// Telegram bots.
    Telegram,
    /// Signed HTTP requests, in and out.
    Webhook,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Calendar,
        Self::CodeHost,
        Self::Discord,
        Self::Drive,
        Self::Email,
        Self::Slack,
        Self::Telegram,
        Self::Webhook,
    ];
}

/// Properties of a vendor.
#[derive(Debug)]
pub struct Traits {
    /// The vendor.
    pub kind: Kind,
    /// The markup of texts.
    pub dialect: Dialect,
    /// The maximum length of one message's text. The core splits longer texts. 0: no message is sent, only actions are.
    pub longest: Longest,
    /// Rate limits. All apply.
    pub limits: &'static [Limit],
    /// Upper bound of the duration of [`send`](super::Transport::send). Beyond it, the outcome is unknown.
    pub longest_send: Duration,
    /// Whether sending the same [`Part::id`](super::Part::id) twice delivers it once. If not, a lost response is never
    /// followed by a second attempt.
    pub idempotent_send: bool,
    /// Whether [`reconcile`](super::Transport::reconcile) can determine a part's outcome.
    pub reconciles: bool,
    /// How messages arrive.
    pub inlet: Inlet,
    /// The way files are sent.
    pub files: Files,
    /// Optional abilities.
    pub abilities: Abilities,
    /// Agents' actions beyond messages.
    pub actions: &'static [Action],
    /// Maximum bytes of a fetched file.
    pub largest_in: u64,
    /// Maximum bytes of a sent file.
    pub largest_out: u64,
}

/// Markup of texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// Discord's Markdown.
    Discord,
    /// HTML for mails.
    Html,
    /// CommonMark, as written by the agent.
    Markdown,
    /// Slack's mrkdwn.
    Mrkdwn,
    /// No markup.
    Plain,
    /// Telegram's few tags.
    TelegramHtml,
}

/// The maximum length of one message's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Longest {
    /// The number.
    pub count: usize,
    pub unit: Unit,
}

/// Unit of lengths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Unicode scalar values, markup included.
    Characters,
    /// UTF-16 code units of the visible text: markup is free, up to 32,768 bytes in total.
    VisibleUtf16,
}

/// A rate limit. The core counts beforehand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Limit {
    pub scope: Scope,
    /// The number of messages.
    pub count: u32,
    /// The period.
    pub per: Duration,
}

/// Scope of a rate limit, or of a vendor's request to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    /// The whole channel.
    Channel,
    /// One [chat](super::Transport::chat) that is a group.
    Group,
    /// One [chat](super::Transport::chat).
    Target,
}

/// How messages arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inlet {
    /// Either of them.
    Both,
    /// We poll the vendor: [`listen`](super::Transport::listen).
    Pull,
    /// The vendor calls us: [`receive`](super::Transport::receive).
    Push,
}

/// The way files are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Files {
    /// Each in its own part, without text, after the text's parts.
    Apart,
    /// All with the last part of the text.
    Together,
}

/// Optional abilities of a vendor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Abilities {
    /// Messages can have buttons.
    pub buttons: bool,
    /// Sent messages can be replaced: [`Part::replaces`](super::Part::replaces).
    pub edits: bool,
    /// A typing indicator exists: [`typing`](super::Transport::typing) must be called again after this time.
    pub typing: Option<Duration>,
}

/// An action of agents at a vendor, beyond messages: [`act`](super::Transport::act) performs it.
#[derive(Debug)]
pub struct Action {
    /// The name, as a tool.
    pub name: &'static str,
    /// The name for people.
    pub title: &'static str,
    /// For the agent.
    pub description: &'static str,
    /// The JSON Schema of its arguments, an object.
    pub schema: &'static str,
    /// Checks arguments before anything is sent. The error is for the agent.
    pub check: fn(&Value) -> Result<(), Cause>,
    /// Its risk, from 0 to 100, unless the operator's rules name it.
    pub risk: i64,
    /// Whether performing the same [`ActionCall::id`](super::ActionCall::id) twice has its effect once. If not, a lost
    /// response is never followed by a second attempt.
    pub is_idempotent: bool,
}

impl Traits {
    /// The action with this name.
    pub fn action(&self, name: &str) -> Option<&'static Action> {
        self.actions.iter().find(|action| action.name == name)
    }
}
