//! Input from the vendor.

use std::ops::Deref;

use bytes::Bytes;
use futures::future::BoxFuture;
use http::HeaderMap;
use jiff::Timestamp;
use url::Url;

use super::failure::{Cause, Failure};
use crate::quoting;

/// A raw request to a channel's inbound path.
#[derive(Clone, Copy)]
pub struct RawRequest<'a> {
    pub headers: &'a HeaderMap,
    /// The body, bounded by the core.
    pub body: &'a [u8],
}

impl RawRequest<'_> {
    /// A header's text, if there is exactly one of that name.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut all = self.headers.get_all(name).iter();
        match (all.next(), all.next()) {
            (Some(only), None) => only.to_str().ok(),
            _ => None,
        }
    }
}

/// The content of a verified request.
#[derive(Clone, Debug, PartialEq)]
pub struct Received {
    /// The events, in order. Usually one; none for a handshake.
    pub events: Vec<Event>,
    /// Sent to the vendor once the events are committed.
    pub reply: Reply,
}

/// The response to a vendor's request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// The HTTP status.
    pub status: u16,
    /// The body's media type.
    pub content_type: &'static str,
    pub body: Bytes,
}

impl Reply {
    /// An empty success.
    pub fn done() -> Self {
        Self { status: 200, content_type: "text/plain", body: Bytes::new() }
    }
}

/// Something that happened at the vendor.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    Message(Box<Inbound>),
    /// A tap on one of our buttons.
    Pressed(ButtonPress),
    /// A sent message that did not arrive.
    Bounced(Bounce),
    /// A chat with a new id.
    Moved {
        /// The old target.
        from: String,
        /// The new target.
        to: String,
    },
}

/// A verified and decoded message. The core decides whether it is wanted and new.
#[derive(Clone, Debug, PartialEq)]
pub struct Inbound {
    /// Deduplication key, unique in the channel. `None`: unknown, and the message counts as new.
    pub key: Option<String>,
    /// The vendor's message id, for replies and threading. Unique in the channel, except for versions of one message.
    pub vendor_id: Option<String>,
    /// Shared key of messages sent as one, such as an album of photos; unique in the channel. They become one message.
    pub album: Option<String>,
    /// Whether this is a later version of the message with its `vendor_id`. Without text and files, the message was
    /// deleted.
    pub is_edit: bool,
    /// The vendor id of the replied-to message.
    pub answers: Option<String>,
    /// The author.
    pub origin: Origin,
    /// All of the author's ids, for the echo filter.
    pub authors: Vec<String>,
    /// Whether a program wrote it: a bot, an autoresponder, a mailing list. It may be shown, but is answered only if
    /// its origin is whitelisted; otherwise two robots could talk forever.
    pub is_automatic: bool,
    /// How reliably the author is identified.
    pub proof: Proof,
    /// The conversation.
    pub thread: Thread,
    /// Whether it is addressed to us: private, a mention, or a reply to us. In groups the core drops other messages,
    /// unless `mention_off` lists the place.
    pub is_addressed: bool,
    /// Labels, for the label whitelist.
    pub labels: Vec<String>,
    /// Quoted text of others, with its author. Shown above the text, never attributed to the message's author.
    pub context: String,
    /// The text, without mentions of us.
    pub text: String,
    /// The attached files.
    pub files: Vec<RemoteFile>,
    /// The vendor's timestamp.
    pub at: Timestamp,
    /// The raw message, for [`reread`](crate::reread): mail.
    pub source: Option<Bytes>,
}

/// The author and place of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The author's id, as on the whitelist.
    pub id: String,
    /// The group's id; the whitelist may hold it instead.
    pub place: Option<String>,
    /// The author's display name.
    pub name: Option<OneLine>,
}

impl Origin {
    /// The author's name, or else the id.
    pub fn author(&self) -> Option<OneLine> {
        self.name.clone().or_else(|| OneLine::name(&self.id))
    }
}

/// A one-line name or title without characters that affect the display of other text: after a line break, it could pass
/// for someone else's words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OneLine(String);

impl OneLine {
    /// The visible part of a name, if any.
    pub fn name(name: &str) -> Option<Self> {
        Self::of(quoting::short_name(name))
    }

    /// The visible part of a title, if any.
    pub fn title(title: &str) -> Option<Self> {
        Self::of(quoting::single_line(title))
    }

    fn of(seen: String) -> Option<Self> {
        (!seen.is_empty()).then_some(Self(seen))
    }
}

impl Deref for OneLine {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

/// How reliably a message's author is identified.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Proof {
    /// Anyone could have written that name.
    None,
    /// Confirmed by a holder of the channel's secret, or by the mail server that the operator trusts.
    Signed,
    /// Confirmed by the vendor, over a connection that we opened or with a secret that Muster made. Only this level may
    /// decide something by chat.
    Vendor,
}

/// The conversation of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thread {
    /// Its identity within the channel, if [`refs`](Self::refs) match no conversation.
    pub key: String,
    /// Vendor ids of earlier messages of the conversation, newest first. The first known one decides.
    pub refs: Vec<String>,
    /// Other recipients. A later message from one of them may refer to this one.
    pub readers: Vec<String>,
    /// Reply address: opaque to the core, which passes it back in [`Part::target`](super::Part::target).
    pub target: String,
    /// A title, such as a mail's subject.
    pub title: Option<OneLine>,
    /// Whether only the author and we can read it.
    pub is_private: bool,
}

/// A file that came with a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteFile {
    /// The sender's file name: not safe as a path.
    pub name: String,
    /// The type, according to the sender.
    pub media_type: String,
    /// The length, if known.
    pub size: Option<u64>,
    /// The bytes, or a handle for fetching them.
    pub content: Content,
}

impl RemoteFile {
    /// The handle for fetching it.
    pub fn handle(&self) -> Result<&str, Failure> {
        match &self.content {
            Content::There(handle) => Ok(handle),
            Content::Here(_) => Err(Failure::Refused("The file came with its message.".into())),
        }
    }

    /// The address at the vendor's file host, if the handle is one.
    pub fn url_at(&self, vendor: &str, host: &Url) -> Result<Url, Failure> {
        let url = Url::parse(self.handle()?).ok().filter(|url| url.origin() == host.origin());
        url.ok_or_else(|| Failure::Refused(format!("The file is not at {vendor}.").into()))
    }
}

/// The bytes of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// Received with the message.
    Here(Bytes),
    /// A handle for [`fetch`](super::Transport::fetch), opaque to the core.
    There(String),
}

/// A tap on a button.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ButtonPress {
    /// Unique in the channel.
    pub key: String,
    /// The person.
    pub origin: Origin,
    /// How reliably the person is identified.
    pub proof: Proof,
    /// Whether the button is in a private chat.
    pub is_private: bool,
    /// The chat of the button.
    pub target: String,
    /// Our message with the button.
    pub vendor_id: Option<String>,
    /// The button's value: [`Button::value`](super::Button::value).
    pub value: String,
    /// A handle for [`answer`](super::Transport::answer).
    pub reply_to: String,
}

/// A message of ours that did not arrive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bounce {
    /// [`Receipt::vendor_id`](super::Receipt::vendor_id) of the message.
    pub vendor_id: String,
    /// The reason.
    pub cause: Cause,
}

/// A transport's reading position. Opaque to the core, which keeps the last one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cursor(pub String);

/// Receives the reports of [`listen`](super::Transport::listen).
pub trait Sink: Send + Sync {
    /// Takes events. Returns when they **and** the cursor are committed; only then does the transport confirm them to
    /// the vendor. A cursor without events means that something other than a message was read. On an error, nothing was
    /// stored: the transport stops, and unconfirmed events come again.
    fn admit(&self, events: Vec<Event>, cursor: Option<Cursor>) -> BoxFuture<'_, Result<(), Stopped>>;

    /// Begins reading an item whose attempts are counted. Listening isn't stopped while the guard lives, for at most a
    /// few seconds.
    fn reading(&self) -> BoxFuture<'_, Reading>;

    /// Reports each change of the vendor's reachability.
    fn link(&self, link: Link);

    /// Records an unreadable message before the transport goes on to the next one.
    fn skipped(&self, skipped: Skipped) -> BoxFuture<'_, ()>;
}

/// An unreadable message that a transport skips.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skipped {
    /// The vendor's id: a mail's UID.
    pub vendor_id: String,
    /// A mail's subject, if known.
    pub subject: Option<String>,
    /// The reason, as a sentence.
    pub reason: Cause,
}

/// Guard of an item being read.
pub type Reading = tokio::sync::OwnedMutexGuard<()>;

/// The core takes no more messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("The service takes no messages at the moment")]
pub struct Stopped;

/// Reachability of the vendor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Link {
    /// Connected: messages arrive as they are written.
    Up,
    /// Disconnected; the transport keeps retrying.
    Down(Cause),
}
