//! What comes from the vendor.

use std::ops::Deref;

use bytes::Bytes;
use futures::future::BoxFuture;
use http::HeaderMap;
use jiff::Timestamp;

use super::failure::Cause;
use crate::quoted;

/// A request to a channel's inbound path, as it came.
#[derive(Clone, Copy)]
pub struct RawRequest<'a> {
    /// Its headers.
    pub headers: &'a HeaderMap,
    /// Its body, bounded by the core.
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

/// What a verified request says.
#[derive(Clone, Debug, PartialEq)]
pub struct Received {
    /// What happened, in order. Often one, for a handshake none.
    pub events: Vec<Event>,
    /// What the vendor gets as its answer once the events are committed.
    pub reply: Reply,
}

/// An answer to a vendor's request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// The HTTP status.
    pub status: u16,
    /// The type of the body.
    pub content_type: &'static str,
    /// The body.
    pub body: Bytes,
}

impl Reply {
    /// All is well, and there is nothing to say.
    pub fn done() -> Self {
        Self { status: 200, content_type: "text/plain", body: Bytes::new() }
    }
}

/// Something that happened at the vendor.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// A message.
    Message(Box<Inbound>),
    /// Somebody tapped a button of ours.
    Pressed(Press),
    /// A message of ours that was sent did not arrive after all.
    Bounced(Bounce),
    /// A chat has another id now.
    Moved {
        /// Its target until now.
        from: String,
        /// Its target from now on.
        to: String,
    },
}

/// A message, verified and decoded. Whether it is wanted and new is the core's to decide.
#[derive(Clone, Debug, PartialEq)]
pub struct Inbound {
    /// Unique in the channel: what has this key is the same message, however often it comes. `None`: it can't be known, and
    /// it counts as new.
    pub key: Option<String>,
    /// The message's id at the vendor, to reply to and to find threads by. Unique in the channel, but for the versions of one
    /// message.
    pub vendor_id: Option<String>,
    /// What messages have in common that people sent as one, such as an album of photos: unique in the channel. They become one.
    pub album: Option<String>,
    /// Whether it is a later version of the message with its `vendor_id`. One without text and files says that it was deleted.
    pub is_edit: bool,
    /// The vendor id of the message that it answers, where somebody says so.
    pub answers: Option<String>,
    /// Who wrote it.
    pub origin: Origin,
    /// All ids under which its author is known, for the echo filter.
    pub authors: Vec<String>,
    /// Whether a program wrote it: a bot, an autoresponder, a mailing list. It may be shown, but is never answered unless its
    /// origin is whitelisted, or two robots talk forever.
    pub is_automatic: bool,
    /// How sure it is who wrote it.
    pub proof: Proof,
    /// The conversation that it belongs to.
    pub thread: Thread,
    /// Whether it is meant for us: written in private, naming us, or answering us. In groups, the core drops what is not,
    /// unless `mention_off` lists the place.
    pub is_addressed: bool,
    /// Labels of the message, for the label whitelist.
    pub labels: Vec<String>,
    /// Words of others that it refers to, with their author. They stand above its text, and never count as its author's.
    pub context: String,
    /// What it says, without marks that name us.
    pub text: String,
    /// What comes with it.
    pub files: Vec<RemoteFile>,
    /// When it was written, as the vendor says.
    pub at: Timestamp,
    /// The message as it came, if [`reread`](crate::reread) can read it again: mail.
    pub source: Option<Bytes>,
}

/// Who wrote a message, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The author's id: what the whitelist holds.
    pub id: String,
    /// The group's id, which the whitelist may hold instead.
    pub place: Option<String>,
    /// The author's name, as people know it.
    pub name: Option<OneLine>,
}

impl Origin {
    /// The author as people see them: by name, else by id.
    pub fn author(&self) -> Option<OneLine> {
        self.name.clone().or_else(|| OneLine::name(&self.id))
    }
}

/// A name or a title on one line, in which nothing changes how other words are seen: with line ends in it, its owner could say
/// something in the name of others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OneLine(String);

impl OneLine {
    /// What can be seen of a name. `None`: nothing.
    pub fn name(name: &str) -> Option<Self> {
        Self::of(quoted::short(name))
    }

    /// What can be seen of a title. `None`: nothing.
    pub fn title(title: &str) -> Option<Self> {
        Self::of(quoted::line(title))
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

/// How sure it is who wrote a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Proof {
    /// Anybody could have written that name.
    None,
    /// Somebody who has the channel's secret says so, or the mail server that the operator believes.
    Signed,
    /// The vendor itself says so, over a connection that we opened or with a secret that Muster made. Only this one may
    /// decide something by chat.
    Vendor,
}

/// The conversation of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thread {
    /// Its identity within the channel, if [`refs`](Self::refs) leads to no conversation.
    pub key: String,
    /// Vendor ids of earlier messages of the conversation, the newest first. The first that is known decides.
    pub refs: Vec<String>,
    /// Other addresses that got the message. A later message from one of them may refer to it.
    pub readers: Vec<String>,
    /// Where answers go: opaque to the core, which hands it back in [`Part::target`](super::Part::target).
    pub target: String,
    /// A title, such as a mail's subject.
    pub title: Option<OneLine>,
    /// Whether only its author and we can read it.
    pub is_private: bool,
}

/// A file that came with a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteFile {
    /// Its name, as the sender chose it: not safe as a path.
    pub name: String,
    /// Its type, as the sender says.
    pub media_type: String,
    /// Its length, if known.
    pub size: Option<u64>,
    /// The bytes, or how to get them.
    pub content: Content,
}

/// The bytes of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// They came with the message.
    Here(Bytes),
    /// [`fetch`](super::Transport::fetch) gets them by this word, which means something to the transport alone.
    There(String),
}

/// Somebody tapped a button.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Press {
    /// Unique in the channel.
    pub key: String,
    /// Who.
    pub origin: Origin,
    /// How sure that is.
    pub proof: Proof,
    /// Whether the button is in a private chat.
    pub is_private: bool,
    /// Where the button is.
    pub target: String,
    /// The message of ours that has the button.
    pub vendor_id: Option<String>,
    /// What we wrote into the button: [`Button::value`](super::Button::value).
    pub value: String,
    /// What [`answer`](super::Transport::answer) needs.
    pub reply_to: String,
}

/// A message of ours did not arrive after all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bounce {
    /// [`Receipt::vendor_id`](super::Receipt::vendor_id) of the message.
    pub vendor_id: String,
    /// Why.
    pub cause: Cause,
}

/// How far a transport has read. Opaque to the core, which keeps the last one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cursor(pub String);

/// What [`listen`](super::Transport::listen) reports to.
pub trait Sink: Send + Sync {
    /// Takes events. Returns when they **and** the cursor are committed; only then the transport confirms them to the vendor.
    /// No events and a cursor: something was read that is not a message. An error: nothing was kept; the transport stops, and
    /// what was not confirmed comes again.
    fn admit(&self, events: Vec<Event>, cursor: Option<Cursor>) -> BoxFuture<'_, Result<(), Stopped>>;

    /// Begins to read something whose attempts are counted. Listening goes on while the returned value lives, unless that takes
    /// longer than a few seconds.
    fn reading(&self) -> BoxFuture<'_, Reading>;

    /// Whether the vendor is reached at the moment. Told at each change.
    fn link(&self, link: Link);

    /// Records a message that can't be read, before the transport goes on to the next one.
    fn skipped(&self, skipped: Skipped) -> BoxFuture<'_, ()>;
}

/// A message that a transport skips, because it can't be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skipped {
    /// The vendor's id of it: a mail's UID.
    pub vendor_id: String,
    /// A mail's subject, if known.
    pub subject: Option<String>,
    /// Why, in a sentence.
    pub reason: Cause,
}

/// Something is being read.
pub type Reading = tokio::sync::OwnedMutexGuard<()>;

/// The core has stopped taking messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("The service takes no messages at the moment")]
pub struct Stopped;

/// Whether the vendor is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Link {
    /// It is, and messages come as they are written.
    Up,
    /// It is not; the transport goes on trying by itself.
    Down(Cause),
}
