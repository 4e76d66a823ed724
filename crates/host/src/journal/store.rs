//! The tables of the journal. Only `writer.rs` writes here.

use std::path::{Path, PathBuf};

use muster_protocol::{Event, HostEvent, command::CommandEnvelope};
use parking_lot::RwLock;
use redb::{
    Database, Durability, ReadableDatabase, ReadableTable, ReadableTableMetadata, TableDefinition,
    WriteTransaction,
};
use serde::Deserialize;

use super::{Change, JournalPosition};

const META: TableDefinition<&str, i64> = TableDefinition::new("meta");
const EVENTS: TableDefinition<i64, &[u8]> = TableDefinition::new("events");
const PENDING_COMMANDS: TableDefinition<i64, &[u8]> = TableDefinition::new("orders");
const KNOWN: TableDefinition<i64, i64> = TableDefinition::new("known");
const AGENTS: TableDefinition<i64, &[u8]> = TableDefinition::new("agents");

#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("The journal {path}: {source}. If the file is damaged, run `muster host rejoin`.")]
    Database { path: PathBuf, source: Box<redb::Error> },
    /// The record was not written by the host.
    #[error("The journal holds a record that can't be read: {0}.")]
    Record(#[from] serde_json::Error),
    /// The writer thread can't be started.
    #[error("The journal's thread can't be started: {0}.")]
    Thread(std::io::Error),
}

/// Contents of the journal when it was opened.
#[derive(Debug, Default)]
pub struct Contents {
    /// Number of the last command.
    pub commands: i64,
    /// Number of the last event.
    pub events: i64,
    /// Number of the last acknowledged event.
    pub acknowledged: i64,
    /// Bytes of unacknowledged events.
    pub waiting: u64,
    /// Pending commands, oldest first.
    pub pending_commands: Vec<CommandEnvelope>,
    /// The agents' records.
    pub agents: Vec<(i64, Vec<u8>)>,
}

impl Contents {
    /// The journal's position.
    pub fn position(&self, window: u64) -> JournalPosition {
        JournalPosition {
            commands: self.commands,
            events: self.events,
            acknowledged: self.acknowledged,
            waiting: self.waiting,
            window,
            pending_commands: self.pending_commands.len(),
        }
    }
}

/// The database. It is reopened after a disk failure.
#[derive(Debug)]
pub struct Store {
    path: PathBuf,
    database: RwLock<Option<Database>>,
}

/// A write transaction.
pub struct WriteStep {
    tx: WriteTransaction,
}

type Result<T, E = redb::Error> = std::result::Result<T, E>;

impl Store {
    /// Opens the file, and reads its contents.
    pub fn open(path: &Path) -> Result<(Self, Contents), StoreError> {
        let store = Self { path: path.to_owned(), database: RwLock::new(None) };
        store.reopen().map_err(|source| store.error(source))?;
        let contents = store.contents()?;
        Ok((store, contents))
    }

    /// Reopens the file, or creates it.
    pub fn reopen(&self) -> Result<()> {
        let mut held = self.database.write();
        *held = None;
        if !self.path.try_exists()? {
            make(&self.path)?;
        }
        *held = Some(Database::open(&self.path)?);
        Ok(())
    }

    /// Starts a write transaction.
    pub fn write(&self) -> Result<WriteStep> {
        let held = self.database.read();
        let database = held.as_ref().ok_or(redb::Error::DatabaseClosed)?;
        Ok(WriteStep { tx: database.begin_write()? })
    }

    /// Bytes of all stored events.
    pub fn waiting(&self) -> Result<u64> {
        let held = self.database.read();
        let tx = held.as_ref().ok_or(redb::Error::DatabaseClosed)?.begin_read()?;
        let mut waiting = 0;
        for row in tx.open_table(EVENTS)?.iter()? {
            waiting += row?.1.value().len() as u64;
        }
        Ok(waiting)
    }

    /// The events after this number.
    pub fn events_after(&self, seq: i64, most_bytes: usize) -> Result<Vec<Event>, StoreError> {
        let rows = self.read_events(seq, most_bytes).map_err(|source| self.error(source))?;
        let events = rows.into_iter().map(|(seq, bytes)| match muster_json::from_slice::<Event>(&bytes) {
            Ok(event) => Event { seq, ..event },
            Err(error) => unreadable(seq, &bytes, &error),
        });
        Ok(events.collect())
    }

    fn read_events(&self, seq: i64, most_bytes: usize) -> Result<Vec<(i64, Vec<u8>)>> {
        let held = self.database.read();
        let tx = held.as_ref().ok_or(redb::Error::DatabaseClosed)?.begin_read()?;
        let (mut rows, mut size) = (Vec::new(), 0);
        for row in tx.open_table(EVENTS)?.range(seq + 1..)? {
            let (seq, bytes) = row?;
            size += bytes.value().len();
            if size > most_bytes && !rows.is_empty() {
                break;
            }
            rows.push((seq.value(), bytes.value().to_vec()));
        }
        Ok(rows)
    }

    fn contents(&self) -> Result<Contents, StoreError> {
        let read = || -> Result<_> {
            let held = self.database.read();
            let tx = held.as_ref().ok_or(redb::Error::DatabaseClosed)?.begin_read()?;
            let meta = tx.open_table(META)?;
            let number = |name| meta.get(name).map(|found| found.map_or(0, |value| value.value()));
            let mut contents = Contents {
                commands: number("commands")?,
                events: number("events")?,
                acknowledged: number("acknowledged")?,
                ..Contents::default()
            };
            for row in tx.open_table(AGENTS)?.iter()? {
                let (id, bytes) = row?;
                contents.agents.push((id.value(), bytes.value().to_vec()));
            }
            let mut envelopes = Vec::new();
            for row in tx.open_table(PENDING_COMMANDS)?.iter()? {
                envelopes.push(row?.1.value().to_vec());
            }
            Ok((contents, envelopes))
        };
        let (mut contents, envelopes) = read().map_err(|source| self.error(source))?;
        contents.waiting = self.waiting().map_err(|source| self.error(source))?;
        for bytes in envelopes {
            contents.pending_commands.push(muster_json::from_slice(&bytes)?);
        }
        Ok(contents)
    }

    fn error(&self, source: redb::Error) -> StoreError {
        StoreError::Database { path: self.path.clone(), source: Box::new(source) }
    }
}

/// Replaces an unreadable event, so that it doesn't block all others: its request is withdrawn. An event without a
/// request changes nothing, but its number must exist.
fn unreadable(seq: i64, bytes: &[u8], error: &serde_json::Error) -> Event {
    /// The parts that are readable, however deeply the others are nested.
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Parts {
        agent_id: i64,
        generation: i64,
        at: i64,
        what: Asked,
    }
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Asked {
        request: String,
    }
    let Parts { agent_id, generation, at, what } = muster_json::from_slice(bytes).unwrap_or_default();
    tracing::error!(seq, agent = agent_id, %error, "an event of the journal can't be read, and is left out");
    Event { seq, agent_id, generation, at, what: HostEvent::Withdrawn { request: what.request } }
}

/// Creates an empty journal under another name first: a host killed meanwhile leaves no partial one.
fn make(path: &Path) -> Result<()> {
    let new = path.with_extension("new");
    match std::fs::remove_file(&new) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
        _ => {}
    }
    let database = Database::create(&new)?;
    let tx = database.begin_write()?;
    for table in [EVENTS, PENDING_COMMANDS, AGENTS] {
        tx.open_table(table)?;
    }
    tx.open_table(META)?;
    tx.open_table(KNOWN)?;
    tx.commit()?;
    drop(database);
    std::fs::rename(&new, path)?;
    Ok(sync_folder(path)?)
}

/// Puts the file aside, and starts one with these records in its place. After a kill in between, the old file is still
/// in place.
pub fn begin_again(
    path: &Path,
    aside: &Path,
    records: Vec<(i64, Vec<u8>)>,
) -> std::result::Result<(), StoreError> {
    let next = path.with_extension("next");
    let at = |source: redb::Error| StoreError::Database { path: path.to_owned(), source: Box::new(source) };
    let replaced = || -> Result<()> {
        match std::fs::remove_file(&next) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
            _ => {}
        }
        let store = Store { path: next.clone(), database: RwLock::new(None) };
        store.reopen()?;
        let writing = store.write()?;
        for record in records {
            writing.change(&Change { record: Some(record), ..Change::default() }, &mut 0)?;
        }
        writing.commit(true)?;
        drop(store);
        keep_aside(path, aside)?;
        std::fs::rename(&next, path)?;
        Ok(sync_folder(path)?)
    };
    replaced().map_err(at)
}

/// Links the file under another name, if it exists.
pub fn keep_aside(path: &Path, aside: &Path) -> std::io::Result<()> {
    match std::fs::hard_link(path, aside) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
        Err(_) => Ok(()),
        Ok(()) => sync_folder(aside),
    }
}

/// Makes the names of the files in this file's folder durable.
fn sync_folder(path: &Path) -> std::io::Result<()> {
    path.parent().map_or(Ok(()), |folder| std::fs::File::open(folder)?.sync_all())
}

impl WriteStep {
    /// Writes a change, and returns by how many bytes its events grow the journal. A change is written again if its
    /// commit failed, and may already be there.
    pub fn change(&self, change: &Change, last_event: &mut i64) -> Result<u64> {
        let (mut size, mut there) = (0_u64, 0);
        let mut events = self.tx.open_table(EVENTS)?;
        for draft in &change.events {
            *last_event += 1;
            let event = Event {
                seq: *last_event,
                agent_id: draft.agent_id,
                generation: draft.generation,
                at: draft.at,
                what: draft.what.clone(),
            };
            let bytes =
                serde_json::to_vec(&event).map_err(|error| redb::Error::Corrupted(error.to_string()))?;
            size += bytes.len() as u64;
            let before = events.insert(*last_event, bytes.as_slice())?;
            there += before.map_or(0, |before| before.value().len() as u64);
        }
        if !change.events.is_empty() {
            self.tx.open_table(META)?.insert("events", *last_event)?;
        }
        if let Some((id, bytes)) = &change.record {
            self.tx.open_table(AGENTS)?.insert(id, bytes.as_slice())?;
        }
        let mut envelopes = self.tx.open_table(PENDING_COMMANDS)?;
        for seq in &change.done {
            envelopes.remove(seq)?;
        }
        Ok(size.saturating_sub(there))
    }

    /// Stores commands, and returns the new ones: those above the last number whose id was not seen under another
    /// number. An id seen under the same number is this command itself, written by a commit that failed but took
    /// effect.
    pub fn receive(
        &self,
        envelopes: &[CommandEnvelope],
        last_command: &mut i64,
    ) -> Result<Vec<CommandEnvelope>> {
        let mut fresh = Vec::new();
        let mut kept = self.tx.open_table(PENDING_COMMANDS)?;
        let mut known = self.tx.open_table(KNOWN)?;
        for envelope in envelopes {
            if envelope.seq <= *last_command {
                continue;
            }
            *last_command = envelope.seq;
            let before = known.insert(envelope.id, envelope.seq)?.map(|seq| seq.value());
            if let Some(first) = before.filter(|first| *first != envelope.seq) {
                known.insert(envelope.id, first)?;
                continue;
            }
            let bytes =
                serde_json::to_vec(envelope).map_err(|error| redb::Error::Corrupted(error.to_string()))?;
            kept.insert(envelope.seq, bytes.as_slice())?;
            fresh.push(envelope.clone());
        }
        // The control plane sends at most 64 before they are confirmed.
        while known.len()? > 65_536 {
            known.pop_first()?;
        }
        self.tx.open_table(META)?.insert("commands", *last_command)?;
        Ok(fresh)
    }

    /// Drops events, stores the last acknowledged number, and returns the freed bytes.
    pub fn acknowledge(&self, through: i64, last: &mut i64) -> Result<u64> {
        let mut freed = 0;
        *last = through.max(*last);
        self.tx.open_table(META)?.insert("acknowledged", *last)?;
        let mut events = self.tx.open_table(EVENTS)?;
        for row in events.extract_from_if(..=through, |_, _| true)? {
            freed += row?.1.value().len() as u64;
        }
        Ok(freed)
    }

    /// The number of pending commands.
    pub fn pending_commands(&self) -> Result<usize> {
        Ok(self.tx.open_table(PENDING_COMMANDS)?.len()? as usize)
    }

    /// Commits. A crash may lose a commit that is not `is_lasting`, a mere acknowledgement: the control plane repeats
    /// it.
    pub fn commit(mut self, is_lasting: bool) -> Result<()> {
        let durability = if is_lasting { Durability::Immediate } else { Durability::None };
        self.tx.set_durability(durability).map_err(|error| redb::Error::Corrupted(error.to_string()))?;
        self.tx.commit()?;
        Ok(())
    }
}
