//! What the tests share: a world of this machine, servers, parts.

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
    Cursor, Event, Hold, Inbound, Link, Part, Reading, Rendered, Room, Sink, Skipped, Stopped, Vendors, World,
};
use rustls::pki_types::CertificateDer;
use tokio::sync::mpsc;

pub use crate::fakes::serve;

/// Names of the tests: each leads to these addresses.
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

/// A world in which `listed` networks may be reached, and vendors are at `vendor`.
pub fn world(listed: &[&str], names: Names, vendor: Option<SocketAddr>) -> World {
    world_with(listed, names, vendor, &[])
}

/// One that believes these certificates.
pub fn world_with(
    listed: &[&str],
    names: Names,
    vendor: Option<SocketAddr>,
    roots: &[CertificateDer<'static>],
) -> World {
    let networks = listed.iter().map(|network| network.parse().unwrap()).collect();
    let base = format!("http://{}/", vendor.unwrap_or_else(|| "127.0.0.1:9".parse().unwrap()));
    let at = |path: &str| format!("{base}{path}").parse().unwrap();
    let vendors = Vendors { slack: at("api/"), slack_files: at(""), telegram: at("") };
    World::with(Addresses::with(networks, Arc::new(names)), vendors, Timestamp::now, roots).unwrap()
}

/// A world in which this machine may be reached.
pub fn open_world(vendor: Option<SocketAddr>) -> World {
    world(&["127.0.0.0/8"], Names::default(), vendor)
}

/// What a server saw.
pub type Seen<T> = Arc<Mutex<Vec<T>>>;

/// A text without marks.
pub fn text(text: &str) -> Rendered {
    Rendered { text: text.to_owned(), plain: text.to_owned() }
}

/// A part that says this.
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

/// What a listener handed over.
#[derive(Debug, PartialEq)]
pub enum Told {
    Admitted(Vec<Event>, Option<Cursor>),
    Link(Link),
    Skipped(Skipped),
}

/// A sink that hands everything to the test, and commits `room` times.
pub struct Hand {
    told: mpsc::UnboundedSender<Told>,
    room: Mutex<usize>,
    /// Held while something is read.
    pub turn: Arc<tokio::sync::Mutex<()>>,
}

impl Hand {
    pub fn new(room: usize) -> (Self, mpsc::UnboundedReceiver<Told>) {
        let (told, read) = mpsc::unbounded_channel();
        (Self { told, room: Mutex::new(room), turn: Arc::default() }, read)
    }
}

impl Sink for Hand {
    fn admit(&self, events: Vec<Event>, cursor: Option<Cursor>) -> BoxFuture<'_, Result<(), Stopped>> {
        Box::pin(async move {
            self.told.send(Told::Admitted(events, cursor)).unwrap();
            let mut room = self.room.lock().unwrap();
            *room = room.checked_sub(1).ok_or(Stopped)?;
            Ok(())
        })
    }

    fn reading(&self) -> BoxFuture<'_, Reading> {
        Box::pin(Arc::clone(&self.turn).lock_owned())
    }

    fn link(&self, link: Link) {
        self.told.send(Told::Link(link)).unwrap();
    }

    fn skipped(&self, skipped: Skipped) -> BoxFuture<'_, ()> {
        self.told.send(Told::Skipped(skipped)).unwrap();
        Box::pin(ready(()))
    }
}

/// The only message among events.
pub fn message(events: &[Event]) -> &Inbound {
    match events {
        [Event::Message(inbound)] => inbound,
        other => panic!("{other:?}"),
    }
}

/// Memory for mails: so many bytes for all readers together.
pub struct Memory(Arc<Mutex<usize>>);

impl Memory {
    pub fn of(bytes: usize) -> Arc<dyn Room> {
        Arc::new(Self(Arc::new(Mutex::new(bytes))))
    }
}

impl Room for Memory {
    fn open(&self) -> Box<dyn Hold> {
        Box::new(Held { free: Arc::clone(&self.0), held: 0 })
    }
}

struct Held {
    free: Arc<Mutex<usize>>,
    held: usize,
}

impl Hold for Held {
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
