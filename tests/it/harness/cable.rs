//! The network between the service and its PostgreSQL, which can go mute: connections stay open, but nothing arrives any
//! more.

use std::{
    path::PathBuf,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::{TcpListener, UnixStream},
    task::{AbortHandle, JoinSet},
};

use super::Postgres;

/// Relays connections until it is dropped.
pub struct Cable {
    port: u16,
    /// Whether the connections made since the last call of [`Self::mute`] are mute.
    is_mute: Arc<Mutex<Arc<AtomicBool>>>,
    serving: AbortHandle,
}

impl Drop for Cable {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl Cable {
    pub async fn to(postgres: &Postgres) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let is_mute = Arc::<Mutex<Arc<AtomicBool>>>::default();
        let (newest, socket) = (Arc::clone(&is_mute), postgres.socket());
        #[expect(clippy::disallowed_methods, reason = "it belongs to no service")]
        let serving = tokio::spawn(relay(listener, socket, newest)).abort_handle();
        Self { port, is_mute, serving }
    }

    /// The database's URL through it.
    pub fn url(&self) -> String {
        format!("postgres://postgres@127.0.0.1:{}/postgres", self.port)
    }

    /// Drops everything that is sent over the present connections from here on. Later ones work.
    pub fn mute(&self) {
        std::mem::take(&mut *self.is_mute.lock().unwrap()).store(true, Ordering::SeqCst);
    }
}

async fn relay(listener: TcpListener, socket: PathBuf, newest: Arc<Mutex<Arc<AtomicBool>>>) {
    let mut connections = JoinSet::new();
    loop {
        let (client, _) = listener.accept().await.unwrap();
        let (is_mute, socket) = (newest.lock().unwrap().clone(), socket.clone());
        connections.spawn(async move {
            let (from_client, to_client) = client.into_split();
            let (from_server, to_server) = UnixStream::connect(socket).await.unwrap().into_split();
            tokio::select! {
                () = carry(from_client, to_server, &is_mute) => {}
                () = carry(from_server, to_client, &is_mute) => {}
            }
        });
    }
}

/// Carries what is sent in one direction, until one of the two closes the connection.
async fn carry(mut from: impl AsyncRead + Unpin, mut to: impl AsyncWrite + Unpin, is_mute: &AtomicBool) {
    let mut bytes = vec![0; 8 << 10];
    while let Ok(read @ 1..) = from.read(&mut bytes).await {
        if !is_mute.load(Ordering::SeqCst) && to.write_all(&bytes[..read]).await.is_err() {
            return;
        }
    }
}
