//! The agent's MCP servers. Each has a socket per conversation, with the stdio protocol: one message per line. Every
//! tool call is judged before it leaves, for any kind of server, by the current rules.
//!
//! - `client.rs`: a client and its messages; `session.rs`: the server's messages, and the judgement of calls.
//! - `message.rs`: a parsed message of a client. `lines.rs`: lines and their memory.
//! - `program.rs`: servers with secrets, run by the host outside of the agent's sandbox. `start_limit.rs`: how often.
//! - `server_states.rs`: the servers' states, for people. `tools.rs`: their tools, and which are hidden.
//! - `connection_test.rs`: tests of a server, for people.
//! - `remote.rs`: servers over HTTP, with headers hidden from the agent. `events.rs`: their streams.
//!
//! The agent's relay starts servers without secrets in the agent's sandbox (`muster-shim mcp SOCKET -- PROGRAM`). Their
//! messages pass through here as well.

mod client;
mod connection_test;
mod events;
mod lines;
mod message;
mod program;
mod remote;
mod server_states;
mod session;
mod start_limit;
mod tools;

use std::{sync::Arc, time::Duration};

use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::{UnixListener, UnixStream},
    sync::Semaphore,
    task::JoinSet,
    time::timeout,
};

pub use self::{
    connection_test::test_connection,
    server_states::ServerStates,
    session::{ASKED, AWAY, SessionKey},
    start_limit::StartLimit,
};
use crate::{bounds, fields::Fields, shared::Shared};

/// Clients of a server per conversation: the agent starts them, and each takes memory and perhaps a process.
const CLIENTS: usize = 8;
const CROWDED: &str = "This conversation has too many clients of this MCP server. End one of them first.";

/// Serves the clients of a server in one conversation, until dropped or the gate closes.
pub async fn serve(shared: Arc<Shared>, key: SessionKey, listener: UnixListener) {
    let (mut clients, slots) = (JoinSet::new(), Arc::new(Semaphore::new(CLIENTS)));
    let lobby = Arc::new(Semaphore::new(CLIENTS));
    let closing = shared.closing.clone();
    let listening = async {
        loop {
            let Ok((stream, _)) = listener.accept().await else {
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            };
            let shared = Arc::clone(&shared);
            if let Ok(held) = Arc::clone(&slots).try_acquire_owned() {
                clients.spawn(async move {
                    client::serve(shared, key, stream, false).await;
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

/// Answers a client's first request with a reason, and closes the connection. Otherwise the client would wait forever.
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
