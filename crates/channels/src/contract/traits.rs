//! What differs between vendors and is not code: dialect, lengths, limits, abilities.

use std::time::Duration;

/// Which vendor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Mailboxes, by IMAP and SMTP.
    Email,
    /// Slack apps.
    Slack,
    /// Telegram bots.
    Telegram,
    /// Signed HTTP requests, in and out.
    Webhook,
}

/// What is true of a vendor.
#[derive(Debug)]
pub struct Traits {
    /// Which vendor.
    pub kind: Kind,
    /// How text is written there.
    pub dialect: Dialect,
    /// The longest text of one message. The core splits what is longer.
    pub longest: Longest,
    /// How often one may send. All apply.
    pub limits: &'static [Limit],
    /// The longest that [`send`](super::Transport::send) may take. Later nobody knows what became of it.
    pub longest_send: Duration,
    /// Whether sending the same [`Part::id`](super::Part::id) twice delivers it once. If not, a lost answer is never followed
    /// by a second attempt.
    pub idempotent_send: bool,
    /// Whether [`reconcile`](super::Transport::reconcile) can tell what became of a part.
    pub reconciles: bool,
    /// Ways in.
    pub inlet: Inlet,
    /// How files are sent.
    pub files: Files,
    /// What else the vendor can do.
    pub actions: Actions,
    /// The most bytes of a file that can be fetched.
    pub largest_in: u64,
    /// The most bytes of a file that can be sent.
    pub largest_out: u64,
}

/// How text is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// HTML as mails have it.
    Html,
    /// CommonMark, as the agent wrote it.
    Markdown,
    /// Slack's mrkdwn.
    Mrkdwn,
    /// Text without any marks.
    Plain,
    /// The few tags that Telegram knows.
    TelegramHtml,
}

/// The longest text of one message, as the vendor counts it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Longest {
    /// How many.
    pub count: usize,
    /// Of what.
    pub unit: Unit,
}

/// What a vendor counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Unicode scalar values of the text with its marks.
    Characters,
    /// UTF-16 code units of the text that people see: marks don't count, as long as all of it has at most 32,768 bytes.
    VisibleUtf16,
}

/// So many messages in so much time. The core counts beforehand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Limit {
    /// Of what.
    pub scope: Scope,
    /// How many messages.
    pub count: u32,
    /// In how much time.
    pub per: Duration,
}

/// What a limit, or a vendor's wish to wait, applies to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    /// The whole channel.
    Channel,
    /// One [chat](super::Transport::chat) that is a group.
    Group,
    /// One [chat](super::Transport::chat).
    Target,
}

/// Ways in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inlet {
    /// Either.
    Both,
    /// We ask the vendor: [`listen`](super::Transport::listen).
    Pull,
    /// The vendor sends it to us: [`receive`](super::Transport::receive).
    Push,
}

/// How files are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Files {
    /// Each in a part of its own, without text, after the parts of the text.
    Apart,
    /// All with the last part of the text.
    Together,
}

/// What a vendor can do beside texts and files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Actions {
    /// Messages can have buttons.
    pub buttons: bool,
    /// A message that was sent can be replaced: [`Part::replaces`](super::Part::replaces).
    pub edits: bool,
    /// It can show that somebody is writing: [`typing`](super::Transport::typing) has to be called again after this time.
    pub typing: Option<Duration>,
}
