//! A session: one conversation with its history, its MCP servers and at most one running turn.

use std::{collections::HashSet, io, sync::Arc};

use agent_client_protocol::v1::schema::SessionId;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::{
    history::{Record, SessionStore},
    mcp::Servers,
    options::Mode,
};

pub struct Session {
    pub id: SessionId,
    pub servers: Servers,
    store: SessionStore,
    record: Mutex<Record>,
    /// Not stored: a reopened session starts in the default mode.
    mode: Mutex<Mode>,
    /// Actions that a person always allows, until the session closes.
    allowed: Mutex<HashSet<String>>,
    /// For the running turn.
    running: Mutex<Option<CancellationToken>>,
    ended: Notify,
}

impl Session {
    pub fn new(record: Record, store: SessionStore, servers: Servers) -> Arc<Self> {
        let id = SessionId::new(record.id.as_str());
        let (mode, allowed, running) = (Mutex::default(), Mutex::default(), Mutex::default());
        let (record, ended) = (Mutex::new(record), Notify::new());
        Arc::new(Self { id, servers, store, record, mode, allowed, running, ended })
    }

    /// Begins a turn. None if one is already running.
    pub fn begin_turn(&self) -> Option<CancellationToken> {
        let mut running = self.running.lock();
        if running.is_some() {
            return None;
        }
        Some(running.insert(CancellationToken::new()).clone())
    }

    pub fn end_turn(&self) {
        *self.running.lock() = None;
        self.ended.notify_waiters();
    }

    pub async fn wait_until_idle(&self) {
        loop {
            let ended = self.ended.notified();
            if !self.is_busy() {
                return;
            }
            ended.await;
        }
    }

    pub fn is_busy(&self) -> bool {
        self.running.lock().is_some()
    }

    pub fn cancel(&self) {
        if let Some(running) = &*self.running.lock() {
            running.cancel();
        }
    }

    /// Cancels the turn and disconnects the servers. The file remains.
    pub fn close(&self) {
        self.cancel();
        self.servers.close();
    }

    pub fn mode(&self) -> Mode {
        *self.mode.lock()
    }

    pub fn set_mode(&self, mode: Mode) {
        *self.mode.lock() = mode;
    }

    pub fn allows(&self, action: &str) -> bool {
        self.allowed.lock().contains(action)
    }

    pub fn allow(&self, action: String) {
        self.allowed.lock().insert(action);
    }

    pub fn with_record<T>(&self, change: impl FnOnce(&mut Record) -> T) -> T {
        change(&mut self.record.lock())
    }

    pub async fn save(&self) -> io::Result<()> {
        let record = self.with_record(|record| record.clone());
        self.store.save(&record).await
    }
}
