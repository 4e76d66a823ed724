//! Tests the connection to a server, as a client of the gate that starts a session and lists the tools.

use std::sync::Arc;

use muster_protocol::event::McpTest;
use serde_json::{Value, json};
use tokio::{
    io::AsyncWriteExt,
    net::{
        UnixStream,
        unix::{OwnedReadHalf, OwnedWriteHalf},
    },
    time::timeout,
};

use super::{
    client,
    lines::Lines,
    session::{INITIALIZE, INITIALIZED, LISTS, SessionKey, truncate_name},
    tools,
};
use crate::{bounds, fields::Fields, shared::Shared};

/// The newest version of the protocol at the time of writing; a server answers with its own.
const VERSION: &str = "2025-11-25";

/// A client's side of the session.
struct Tester {
    from: Lines<OwnedReadHalf>,
    to: OwnedWriteHalf,
    asked: i64,
}

/// Starts a session with a server, and lists its tools. The session reports them.
pub async fn test_connection(shared: Arc<Shared>, server_id: i64) -> McpTest {
    let mut found = McpTest { server_id, listed: None, protocol: None, program: None, error: None };
    let (own, theirs) = match UnixStream::pair() {
        Ok(pair) => pair,
        Err(error) => {
            found.error = Some(error.to_string());
            return found;
        }
    };
    let (from, to) = own.into_split();
    let tester = Tester { from: Lines::new(from, shared.memory.clone()), to, asked: 0 };
    let key = SessionKey { server_id, conversation_id: None };
    let serving = client::serve(Arc::clone(&shared), key, theirs, true);
    let testing = timeout(bounds::WAIT, tester.run(&mut found));
    // The end of either one ends the other.
    let (tested, ()) = tokio::join!(testing, serving);
    let step = if found.protocol.is_some() { "list its tools" } else { "start a session" };
    let tested = tested.unwrap_or_else(|_| Err(format!("It did not {step} in time.")));
    found.error = tested.err().map(|why| shared.secrets.hide(&why));
    // A secret that is cut would not be found.
    let shorten = |text: String| truncate_name(shared.secrets.hide(&text));
    found.protocol = found.protocol.map(shorten);
    found.program = found.program.map(shorten);
    found
}

impl Tester {
    async fn run(mut self, found: &mut McpTest) -> Result<(), String> {
        let us = json!({ "name": "muster", "version": env!("CARGO_PKG_VERSION") });
        let begin = json!({ "protocolVersion": VERSION, "capabilities": {}, "clientInfo": us });
        let begun = self.ask(INITIALIZE, begin).await;
        let begun = begun.map_err(|why| format!("It did not start a session: {why}"))?;
        let result = Fields::read(begun.as_bytes());
        found.protocol = result.as_ref().and_then(|result| result.text("protocolVersion"));
        let info = result.as_ref().and_then(|result| result.within("serverInfo"));
        let words = info.map(|info| [info.text("name"), info.text("version")]);
        let words = words.map(|words| words.into_iter().flatten().collect::<Vec<_>>().join(" "));
        found.program = words.filter(|words| !words.is_empty());
        self.write(&json!({ "jsonrpc": "2.0", "method": INITIALIZED })).await?;
        let (mut page, mut names) = (json!({}), Vec::new());
        loop {
            let listed = self.ask(LISTS, page).await;
            let listed = listed.map_err(|why| format!("It did not list its tools: {why}"))?;
            let result = Fields::read(listed.as_bytes());
            let Some(tools) = result.as_ref().and_then(tools::read_page) else { return Ok(()) };
            names.extend(tools.tools.into_iter().map(|tool| tool.name));
            // With more, the list is not known to be complete.
            names.truncate(bounds::LIST);
            let Some(cursor) = result.and_then(|result| result.text("nextCursor")) else {
                found.listed = (names.len() < bounds::LIST).then_some(names);
                return Ok(());
            };
            page = json!({ "cursor": cursor });
        }
    }

    /// Sends a request, and returns its result.
    async fn ask(&mut self, method: &str, params: Value) -> Result<String, String> {
        self.asked += 1;
        let id = self.asked.to_string();
        let request = json!({ "jsonrpc": "2.0", "id": self.asked, "method": method, "params": params });
        self.write(&request).await?;
        loop {
            let line = self.from.next().await.ok_or("The connection has ended.")?;
            let Some(answer) = Fields::read(&line.bytes) else { continue };
            if answer.raw("id") != Some(id.as_str()) || answer.has("method") {
                continue;
            }
            let words = answer.within("error").and_then(|error| error.text("message"));
            let words = words.map(|words| words.trim_start_matches("Muster: ").to_owned());
            let refused = || words.unwrap_or_else(|| "It answered with an error.".to_owned());
            return answer.raw("result").map(str::to_owned).ok_or_else(refused);
        }
    }

    async fn write(&mut self, message: &Value) -> Result<(), String> {
        let line = format!("{message}\n");
        self.to.write_all(line.as_bytes()).await.map_err(|error| error.to_string())
    }
}
