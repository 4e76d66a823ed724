//! The agent's MCP servers. Each has a socket for each conversation, on which the agent's client speaks as over stdio, one message
//! a line. Each call of a tool is judged before it leaves, whatever kind of server it is for, and by the rules of that moment.
//!
//! - `client.rs`: one client, and what it says; `session.rs`: what the server says to it, and what is judged.
//! - `message.rs`: a message of a client, as it is understood. `lines.rs`: lines and their memory.
//! - `program.rs`: servers that the host runs outside of the agent's sandbox, since they have secrets. `starts.rs`: how often.
//! - `states.rs`: how servers are doing, for people to see.
//! - `remote.rs`: servers over HTTP, with headers that the agent never sees. `events.rs`: their streams.
//!
//! A server that is a program without secrets is started by the relay of the agent (`muster-shim mcp SOCKET -- PROGRAM`), in the
//! agent's sandbox. What it reads and writes passes here all the same.

mod client;
mod events;
mod lines;
mod message;
mod program;
mod remote;
mod session;
mod starts;
mod states;

use std::{sync::Arc, time::Duration};

use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::{UnixListener, UnixStream},
    sync::Semaphore,
    task::JoinSet,
    time::timeout,
};

pub use self::{session::Place, starts::Starts, states::States};
use crate::{bounds, fields::Fields, shared::Shared};

/// How many clients a server may have in a conversation: the agent begins them, and each holds memory and perhaps a process.
const CLIENTS: usize = 8;
const CROWDED: &str = "This conversation has too many clients of this MCP server. End one of them first.";

/// Serves the clients of a server in one conversation, until it is dropped or the gate closes.
pub async fn serve(shared: Arc<Shared>, place: Place, listener: UnixListener) {
    let (mut clients, room) = (JoinSet::new(), Arc::new(Semaphore::new(CLIENTS)));
    let lobby = Arc::new(Semaphore::new(CLIENTS));
    let closing = shared.closing.clone();
    let listening = async {
        loop {
            let Ok((stream, _)) = listener.accept().await else {
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            };
            let shared = Arc::clone(&shared);
            if let Ok(held) = Arc::clone(&room).try_acquire_owned() {
                clients.spawn(async move {
                    client::serve(shared, place, stream).await;
                    drop(held);
                });
            } else if let Ok(held) = Arc::clone(&lobby).try_acquire_owned() {
                clients.spawn(async move {
                    turn_away(stream, CROWDED).await;
                    drop(held);
                });
            }
            while clients.try_join_next().is_some() {}
        }
    };
    closing.run_until_cancelled(listening).await;
}

/// Answers a client's first request with the reason why it is not served, and closes the connection: it would wait for an answer that
/// never comes.
pub async fn turn_away(mut client: UnixStream, why: &str) {
    let answering = async {
        let (from, mut to) = client.split();
        let (mut from, mut line) = (BufReader::new(from.take(bounds::TEXT as u64)), Vec::new());
        let mut is_relay = false;
        while let Ok(1..) = from.read_until(b'\n', &mut line).await {
            is_relay |= line == b"+\n";
            let message = line.strip_prefix(b">").unwrap_or(&line);
            let fields = Fields::read(message).filter(|fields| fields.has("method"));
            if let Some(id) = fields.and_then(|fields| fields.value("id")).filter(|id| *id != Value::Null) {
                let tag = if is_relay { "<" } else { "" };
                let answer = format!("{tag}{}\n", session::error(Some(&id), why));
                return to.write_all(answer.as_bytes()).await;
            }
            line.clear();
        }
        Ok(())
    };
    let _ = timeout(bounds::NETWORK_WAIT, answering).await;
}
