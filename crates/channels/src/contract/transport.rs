//! The trait of all transports.

use std::{convert::Infallible, time::Duration};

use futures::future::BoxFuture;
use jiff::Timestamp;
use tokio::io::AsyncWrite;

use super::{
    failure::{Failure, Refusal},
    inbound::{ButtonPress, Cursor, RawRequest, Received, RemoteFile, Sink},
    outbound::{ActionCall, Part, Receipt},
    traits::Traits,
};

/// Destination of a file's bytes.
pub type Spool<'a> = &'a mut (dyn AsyncWrite + Unpin + Send);

/// One channel's connection to its vendor. Cheap to make from the channel's [`Config`](super::Config), and replaced
/// when that changes.
///
/// No method retries: only the queue knows the cost of a second attempt.
pub trait Transport: Send + Sync + 'static {
    /// The vendor's traits.
    fn traits(&self) -> &'static Traits;

    /// Checks the credentials, and determines our identity. Called when a channel is created or switched on, and after
    /// its credentials changed.
    fn probe(&self) -> BoxFuture<'_, Result<Identity, Failure>>;

    /// Lists what people choose from for the channel's settings, such as the account's calendars. Of a drive's folders,
    /// lists those in `parent`; `None`: the topmost ones.
    fn choices<'a>(&'a self, parent: Option<&'a str>) -> BoxFuture<'a, Result<Vec<Choice>, Failure>> {
        let _ = parent;
        Box::pin(async { Ok(Vec::new()) })
    }

    /// Registers `address`, the public URL of the channel's inbound path, as the vendor's webhook; `None` removes it,
    /// so that [`listen`](Self::listen) may poll. Returns whether the vendor now pushes. Repeatable; fails if the
    /// vendor can't reach the address.
    fn register<'a>(&'a self, address: Option<&'a str>) -> BoxFuture<'a, Result<bool, Failure>> {
        let _ = address;
        Box::pin(async { Ok(false) })
    }

    /// Push: verifies and decodes one request of the vendor. Pure: no I/O. The core sends the [`Reply`](super::Reply)
    /// only after committing the events.
    fn receive(&self, request: &RawRequest<'_>, now: Timestamp) -> Result<Received, Refusal> {
        let _ = (request, now);
        Err(Refusal::NotConfigured)
    }

    /// Pull: polls the vendor until dropped or failed. One process per channel may listen; the core holds a lease for
    /// it. Dropping the future at any point loses nothing: unconfirmed events come again.
    fn listen<'a>(
        &'a self,
        cursor: Option<Cursor>,
        sink: &'a dyn Sink,
    ) -> BoxFuture<'a, Result<Infallible, Failure>> {
        let _ = (cursor, sink);
        let cause = "This channel's vendor can't be polled for messages.".into();
        Box::pin(async { Err(Failure::Refused(cause)) })
    }

    /// Sends one part, rendered and short enough, once.
    fn send<'a>(&'a self, part: &'a Part<'a>) -> BoxFuture<'a, Result<Receipt, Failure>>;

    /// After a crash or a lost response: looks for this part at the vendor. `None`: unknown.
    fn reconcile<'a>(&'a self, part: &'a Part<'a>) -> BoxFuture<'a, Result<Option<Receipt>, Failure>> {
        let _ = part;
        Box::pin(async { Ok(None) })
    }

    /// Performs an [`Action`](super::Action) of [`Traits::actions`], once.
    fn act<'a>(&'a self, call: &'a ActionCall<'a>) -> BoxFuture<'a, Result<Receipt, Failure>> {
        let cause = format!("This channel's vendor has no action {}.", call.name).into();
        Box::pin(async { Err(Failure::Refused(cause)) })
    }

    /// Reads a file that came with a message. More than `most` bytes are [`Failure::Refused`]. Returns the length.
    fn fetch<'a>(
        &'a self,
        file: &'a RemoteFile,
        to: Spool<'a>,
        most: u64,
    ) -> BoxFuture<'a, Result<u64, Failure>> {
        let _ = (to, most);
        let cause = format!("{} can't be read from here.", file.name).into();
        Box::pin(async { Err(Failure::Refused(cause)) })
    }

    /// Shows a typing indicator, where the vendor has one, until the next message or until
    /// [`Abilities::typing`](super::Abilities::typing) has passed.
    fn typing<'a>(&'a self, target: &'a str) -> BoxFuture<'a, Result<(), Failure>> {
        let _ = target;
        Box::pin(async { Ok(()) })
    }

    /// Shows the effect of a tap on a button. Vendors wait a few seconds for it.
    fn answer<'a>(&'a self, press: &'a ButtonPress, text: &'a str) -> BoxFuture<'a, Result<(), Failure>> {
        let _ = (press, text);
        Box::pin(async { Ok(()) })
    }

    /// The chat of a target: limits count a chat's topics and threads together.
    fn chat<'a>(&self, target: &'a str) -> &'a str {
        target
    }

    /// Whether a target is a group, subject to [`Scope::Group`](super::Scope::Group).
    fn is_group(&self, target: &str) -> bool {
        let _ = target;
        false
    }
}

/// Something at the vendor that a channel's settings name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    pub id: String,
    pub name: String,
}

/// Our identity at the vendor.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// The ids under which our own messages come back. The core's echo filter compares them with
    /// [`Inbound::authors`](super::Inbound::authors).
    pub self_ids: Vec<String>,
    /// The bot's handle without `@`, or the mailbox's address.
    pub handle: Option<String>,
    /// Link for adding the bot to a chat.
    pub invite_url: Option<String>,
    /// Abilities disabled by the vendor or its settings, as sentences for people.
    pub warnings: Vec<String>,
    /// How long this stays valid, if the vendor says so.
    pub valid_for: Option<Duration>,
}
