//! The agent's MCP servers. Each has a socket for each conversation, on which the agent's client speaks as over stdio, one message
//! a line. Each call of a tool is judged before it leaves, whatever kind of server it is for, and by the rules of that moment.
//!
//! - `session.rs`: one client: what it says, what the server says, and what becomes of both.
//! - `message.rs`: a message of a client, as it is understood. `lines.rs`: lines and their memory.
//! - `program.rs`: servers that the host runs outside of the agent's sandbox, since they have secrets. `starts.rs`: how often.
//! - `turned_away.rs`: clients that there is no room for.
//! - `states.rs`: how servers are doing, for people to see.
//! - `remote.rs`: servers over HTTP, with headers that the agent never sees. `events.rs`: their streams.
//!
//! A server that is a program without secrets is started by the relay of the agent (`muster-shim mcp SOCKET -- PROGRAM`), in the
//! agent's sandbox. What it reads and writes passes here all the same.

mod events;
mod lines;
mod message;
mod program;
mod remote;
mod session;
mod starts;
mod states;
mod turned_away;

use std::{sync::Arc, time::Duration};

use tokio::{net::UnixListener, sync::Semaphore, task::JoinSet};

pub use self::{
    session::Place,
    starts::Starts,
    states::{States, flush as report_states},
    turned_away::turn_away,
};
use crate::shared::Shared;

/// The longest message, in bytes.
const LONGEST: usize = 8 * 1024 * 1024;
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
            let Ok((client, _)) = listener.accept().await else {
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            };
            let shared = Arc::clone(&shared);
            if let Ok(held) = Arc::clone(&room).try_acquire_owned() {
                clients.spawn(async move {
                    session::serve(shared, place, client).await;
                    drop(held);
                });
            } else if let Ok(held) = Arc::clone(&lobby).try_acquire_owned() {
                clients.spawn(async move {
                    turn_away(client, CROWDED).await;
                    drop(held);
                });
            }
            while clients.try_join_next().is_some() {}
        }
    };
    closing.run_until_cancelled(listening).await;
}
