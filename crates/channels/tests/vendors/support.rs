//! Shared test helpers: networks, sinks, parts and memory budgets.

use std::{
    future::ready,
    io,
    net::{IpAddr, SocketAddr},
    sync::{Arc, Mutex},
};

use futures::future::BoxFuture;
use jiff::Timestamp;
use muster_addresses::{Addresses, Resolve};
use muster_channels::{
    Cursor, Event, Inbound, Link, MemoryBudget, MemoryGrant, Network, Part, Reading, Rendered, Sink, Skipped,
    Stopped, VendorUrls,
};
use rustls::pki_types::CertificateDer;
use tokio::sync::mpsc;

pub use crate::fakes::serve;

/// A resolver with fixed addresses for each name.
#[derive(Debug, Default)]
pub struct Names(pub Vec<(&'static str, Vec<IpAddr>)>);

impl Resolve for Names {
    fn resolve<'a>(&'a self, host: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        Box::pin(async move {
            let found = self.0.iter().find(|(name, _)| *name == host);
            found.map(|(_, addresses)| addresses.clone()).ok_or_else(|| io::ErrorKind::NotFound.into())
        })
    }
}

/// A network that allows the `listed` networks, with all vendors at `vendor`.
pub fn network(listed: &[&str], names: Names, vendor: Option<SocketAddr>) -> Network {
    network_with(listed, names, vendor, &[])
}

/// Like [`network`], with additional root certificates.
pub fn network_with(
    listed: &[&str],
    names: Names,
    vendor: Option<SocketAddr>,
    roots: &[CertificateDer<'static>],
) -> Network {
    let networks = listed.iter().map(|network| network.parse().unwrap()).collect();
    let base = format!("http://{}/", vendor.unwrap_or_else(|| "127.0.0.1:9".parse().unwrap()));
    let at = |path: &str| format!("{base}{path}").parse().unwrap();
    let vendors = VendorUrls {
        discord: at("api/v10/"),
        discord_files: at(""),
        slack: at("api/"),
        slack_files: at(""),
        telegram: at(""),
        google_accounts: at(""),
        google_tokens: at(""),
        google_api: at(""),
        github: at(""),
        github_api: at("api/"),
    };
    let addresses = Addresses::with(networks, Arc::new(names));
    Network::new(addresses, vendors, Timestamp::now, muster_certificates::of(roots)).unwrap()
}

/// A network that allows this machine.
pub fn open_network(vendor: Option<SocketAddr>) -> Network {
    network(&["127.0.0.0/8"], Names::default(), vendor)
}

/// The requests received by a server.
pub type Seen<T> = Arc<Mutex<Vec<T>>>;

/// A text without markup.
pub fn text(text: &str) -> Rendered {
    Rendered { text: text.to_owned(), plain: text.to_owned() }
}

/// A part with this text.
pub fn part<'a>(text: &'a Rendered, target: &'a str) -> Part<'a> {
    Part {
        id: "d-1",
        conversation: "C-1",
        scene: None,
        target,
        text,
        speaker: None,
        reply_to: None,
        refs: &[],
        title: None,
        buttons: &[],
        files: &[],
        replaces: None,
        written_at: Timestamp::UNIX_EPOCH,
    }
}

/// A call from a listener.
#[derive(Debug, PartialEq)]
pub enum SinkCall {
    Admitted(Vec<Event>, Option<Cursor>),
    Link(Link),
    Skipped(Skipped),
}

/// A sink that forwards its calls to the test, and accepts `commits` batches of events.
pub struct TestSink {
    calls: mpsc::UnboundedSender<SinkCall>,
    commits: Mutex<usize>,
    /// Held during the reading of events.
    pub turn: Arc<tokio::sync::Mutex<()>>,
}

impl TestSink {
    pub fn new(commits: usize) -> (Self, mpsc::UnboundedReceiver<SinkCall>) {
        let (calls, read) = mpsc::unbounded_channel();
        (Self { calls, commits: Mutex::new(commits), turn: Arc::default() }, read)
    }
}

impl Sink for TestSink {
    fn admit(&self, events: Vec<Event>, cursor: Option<Cursor>) -> BoxFuture<'_, Result<(), Stopped>> {
        Box::pin(async move {
            self.calls.send(SinkCall::Admitted(events, cursor)).unwrap();
            let mut commits = self.commits.lock().unwrap();
            *commits = commits.checked_sub(1).ok_or(Stopped)?;
            Ok(())
        })
    }

    fn reading(&self) -> BoxFuture<'_, Reading> {
        Box::pin(Arc::clone(&self.turn).lock_owned())
    }

    fn link(&self, link: Link) {
        self.calls.send(SinkCall::Link(link)).unwrap();
    }

    fn skipped(&self, skipped: Skipped) -> BoxFuture<'_, ()> {
        self.calls.send(SinkCall::Skipped(skipped)).unwrap();
        Box::pin(ready(()))
    }
}

/// The only event, a message.
pub fn message(events: &[Event]) -> &Inbound {
    match events {
        [Event::Message(inbound)] => inbound,
        other => panic!("{other:?}"),
    }
}

/// A memory budget shared by all mailboxes.
pub struct Memory(Arc<Mutex<usize>>);

impl Memory {
    pub fn of(bytes: usize) -> Arc<dyn MemoryBudget> {
        Arc::new(Self(Arc::new(Mutex::new(bytes))))
    }
}

impl MemoryBudget for Memory {
    fn open(&self) -> Box<dyn MemoryGrant> {
        Box::new(Held { free: Arc::clone(&self.0), held: 0 })
    }
}

struct Held {
    free: Arc<Mutex<usize>>,
    held: usize,
}

impl MemoryGrant for Held {
    fn grow(&mut self, bytes: usize) -> bool {
        let mut free = self.free.lock().unwrap();
        let fits = *free >= bytes;
        if fits {
            *free -= bytes;
            self.held += bytes;
        }
        fits
    }

    fn shrink(&mut self, bytes: usize) {
        *self.free.lock().unwrap() += bytes;
        self.held -= bytes;
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        *self.free.lock().unwrap() += self.held;
    }
}
