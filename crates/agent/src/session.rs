//! A session: one conversation, with its history, its MCP servers and at most one running turn.

use std::{collections::HashSet, io, sync::Arc};

use agent_client_protocol::v1::schema::SessionId;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::{
    history::{Folder, Record},
    mcp::Servers,
    options::Mode,
};

/// A session that is open.
pub struct Session {
    /// Its name.
    pub id: SessionId,
    /// Its MCP servers.
    pub servers: Servers,
    folder: Folder,
    record: Mutex<Record>,
    /// As long as it is open; then it begins again.
    mode: Mutex<Mode>,
    /// What a person has allowed until the session is closed.
    allowed: Mutex<HashSet<String>>,
    /// Cancels the running turn.
    running: Mutex<Option<CancellationToken>>,
    ended: Notify,
}

impl Session {
    /// Opens a session.
    pub fn new(record: Record, folder: Folder, servers: Servers) -> Arc<Self> {
        let id = SessionId::new(record.id.as_str());
        let (mode, allowed, running) = (Mutex::default(), Mutex::default(), Mutex::default());
        let (record, ended) = (Mutex::new(record), Notify::new());
        Arc::new(Self { id, servers, folder, record, mode, allowed, running, ended })
    }

    /// Begins a turn. None if one is running.
    pub fn begin(&self) -> Option<CancellationToken> {
        let mut running = self.running.lock();
        if running.is_some() {
            return None;
        }
        Some(running.insert(CancellationToken::new()).clone())
    }

    /// Ends the turn.
    pub fn end(&self) {
        *self.running.lock() = None;
        self.ended.notify_waiters();
    }

    /// Waits until no turn is running.
    pub async fn idle(&self) {
        loop {
            let ended = self.ended.notified();
            if !self.is_busy() {
                return;
            }
            ended.await;
        }
    }

    /// Whether a turn is running.
    pub fn is_busy(&self) -> bool {
        self.running.lock().is_some()
    }

    /// Cancels the running turn, if there is one.
    pub fn cancel(&self) {
        if let Some(running) = &*self.running.lock() {
            running.cancel();
        }
    }

    /// Ends what belongs to the session. Its file stays.
    pub fn close(&self) {
        self.cancel();
        self.servers.close();
    }

    /// The mode that it is in.
    pub fn mode(&self) -> Mode {
        *self.mode.lock()
    }

    /// Changes to another mode.
    pub fn change_to(&self, mode: Mode) {
        *self.mode.lock() = mode;
    }

    /// Whether a person has allowed this until the session is closed.
    pub fn allows(&self, action: &str) -> bool {
        self.allowed.lock().contains(action)
    }

    /// Notes that a person has allowed this until the session is closed.
    pub fn allow(&self, action: String) {
        self.allowed.lock().insert(action);
    }

    /// Reads or changes the record.
    pub fn with<T>(&self, change: impl FnOnce(&mut Record) -> T) -> T {
        change(&mut self.record.lock())
    }

    /// Stores the record.
    pub async fn store(&self) -> io::Result<()> {
        let record = self.with(|record| record.clone());
        self.folder.store(&record).await
    }
}
