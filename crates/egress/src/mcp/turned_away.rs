//! Clients that there is no room for. They would wait for an answer that never comes.

use std::time::Duration;

use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::UnixStream,
    time::timeout,
};

use super::session::error;
use crate::fields::Fields;

/// How long a client may take to ask, and how much of it is read, in bytes: it is an agent's.
const PATIENCE: Duration = Duration::from_secs(10);
const LONGEST: u64 = 64 * 1024;

/// Answers a client's first request with the reason why it is not served, and closes the connection.
pub async fn turn_away(mut client: UnixStream, why: &str) {
    let answering = async {
        let (from, mut to) = client.split();
        let (mut from, mut line) = (BufReader::new(from.take(LONGEST)), Vec::new());
        let mut is_relay = false;
        while let Ok(1..) = from.read_until(b'\n', &mut line).await {
            is_relay |= line == b"+\n";
            let message = line.strip_prefix(b">").unwrap_or(&line);
            let fields = Fields::read(message).filter(|fields| fields.has("method"));
            if let Some(id) = fields.and_then(|fields| fields.value("id")).filter(|id| *id != Value::Null) {
                let tag = if is_relay { "<" } else { "" };
                let answer = format!("{tag}{}\n", error(Some(&id), why));
                return to.write_all(answer.as_bytes()).await;
            }
            line.clear();
        }
        Ok(())
    };
    let _ = timeout(PATIENCE, answering).await;
}
