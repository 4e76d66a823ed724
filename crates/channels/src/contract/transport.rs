//! The trait that every transport implements.

use std::{convert::Infallible, time::Duration};

use futures::future::BoxFuture;
use jiff::Timestamp;
use tokio::io::AsyncWrite;

use super::{
    failure::{Failure, Refusal},
    inbound::{Cursor, Press, RawRequest, Received, RemoteFile, Sink},
    outbound::{Part, Receipt},
    traits::Traits,
};

/// Where the bytes of a file go.
pub type Spool<'a> = &'a mut (dyn AsyncWrite + Unpin + Send);

/// One channel's connection to its vendor. Made from the channel's [`Config`](super::Config), cheap to make, and made
/// anew when they change.
///
/// No method retries: the outbox does, which knows what a second attempt may cost.
pub trait Transport: Send + Sync + 'static {
    /// What is true of this vendor, as data.
    fn traits(&self) -> &'static Traits;

    /// Checks the credentials, and finds out who we are. Called when a channel is made or switched on, and after its
    /// credentials changed.
    fn probe(&self) -> BoxFuture<'_, Result<Identity, Failure>>;

    /// Tells the vendor where to send what comes in: `address` is the public URL of the channel's inbound path; `None` takes
    /// it back, so that [`listen`](Self::listen) may ask for it. Returns whether the vendor now sends it. It may be told the same
    /// again, and fails if it can't reach the address.
    fn register<'a>(&'a self, address: Option<&'a str>) -> BoxFuture<'a, Result<bool, Failure>> {
        let _ = address;
        Box::pin(async { Ok(false) })
    }

    /// Push: verifies and decodes one request of the vendor. Pure: no I/O. The core answers with the [`Reply`](super::Reply)
    /// only after what came is committed.
    fn receive(&self, request: &RawRequest<'_>, now: Timestamp) -> Result<Received, Refusal> {
        let _ = (request, now);
        Err(Refusal::NotConfigured)
    }

    /// Pull: asks the vendor until it is dropped or fails. Only one process at a time may listen to a channel; the core holds
    /// a lease for it. Dropping the future at any point loses nothing: what was not confirmed comes again.
    fn listen<'a>(
        &'a self,
        cursor: Option<Cursor>,
        sink: &'a dyn Sink,
    ) -> BoxFuture<'a, Result<Infallible, Failure>> {
        let _ = (cursor, sink);
        let cause = "This channel can only be written to by its vendor.".into();
        Box::pin(async { Err(Failure::Refused(cause)) })
    }

    /// Sends one part, which is already rendered and short enough. Once.
    fn send<'a>(&'a self, part: &'a Part<'a>) -> BoxFuture<'a, Result<Receipt, Failure>>;

    /// After a crash or a lost answer: was this part sent? `None`: it can't be known.
    fn reconcile<'a>(&'a self, part: &'a Part<'a>) -> BoxFuture<'a, Result<Option<Receipt>, Failure>> {
        let _ = part;
        Box::pin(async { Ok(None) })
    }

    /// Reads a file that came with a message, at most `most` bytes of it: a longer one is [`Failure::Refused`]. Returns its
    /// length.
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

    /// Shows that somebody is writing, where the vendor has it, until they have written or [`Actions::typing`](super::Actions::typing)
    /// is over.
    fn typing<'a>(&'a self, target: &'a str) -> BoxFuture<'a, Result<(), Failure>> {
        let _ = target;
        Box::pin(async { Ok(()) })
    }

    /// Tells somebody what their tap on a button did. Vendors wait for it some seconds.
    fn answer<'a>(&'a self, press: &'a Press, text: &'a str) -> BoxFuture<'a, Result<(), Failure>> {
        let _ = (press, text);
        Box::pin(async { Ok(()) })
    }

    /// The chat that a target belongs to: limits count topics and threads of a chat together.
    fn chat<'a>(&self, target: &'a str) -> &'a str {
        target
    }

    /// Whether a target is a group, to which [`Scope::Group`](super::Scope::Group) applies.
    fn is_group(&self, target: &str) -> bool {
        let _ = target;
        false
    }
}

/// Who we are at the vendor.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// The ids under which our own messages come back. The core's echo filter compares them with
    /// [`Inbound::authors`](super::Inbound::authors).
    pub self_ids: Vec<String>,
    /// The bot's handle without `@`, or the mailbox's address.
    pub handle: Option<String>,
    /// Where somebody adds the bot to a chat.
    pub invite_url: Option<String>,
    /// What the channel can do, but the vendor or its settings prevent: sentences for people.
    pub warnings: Vec<String>,
    /// How long this stays true, if the vendor said so.
    pub valid_for: Option<Duration>,
}
