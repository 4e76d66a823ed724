//! The host of a server, as the gateway sees it: a WebSocket that sends and receives frames.

use std::time::Duration;

use futures::{SinkExt, StreamExt};
use muster::{
    base::ids::ServerId,
    core::access::token::{Token, TokenKind},
    domain::servers,
};
use reqwest::Method;
use secrecy::ExposeSecret;
use serde_json::{Value, json};
use tokio::{net::TcpStream, time::timeout};
use tokio_tungstenite::{
    MaybeTlsStream, WebSocketStream, connect_async,
    tungstenite::{Error, Message, client::IntoClientRequest},
};

use super::{Actor, Answer, PATIENCE, TestApp};

/// A host that has joined.
#[derive(Clone)]
pub struct Host {
    pub base: String,
    pub server: i64,
    pub token: String,
    pub machine: Value,
    /// The last command and the last event in its journal.
    pub journal: [i64; 2],
}

/// A connection of a host.
pub struct Line {
    pub socket: WebSocketStream<MaybeTlsStream<TcpStream>>,
    /// The answer to HELLO.
    pub welcome: Value,
    seq: i64,
}

pub fn machine(id: &str) -> Value {
    json!({
        "id": id, "hostname": format!("{id}.example"), "os": "linux", "arch": "x86_64", "cpu_cores": 4,
        "memory_mb": 8192, "disk_mb": 100_000, "version": "0.1.0",
    })
}

/// A new token for a host.
pub fn host_token() -> String {
    Token::generate(TokenKind::Host).0.expose_secret().to_owned()
}

/// Asks to join.
pub async fn join(anonymous: &Actor, provisioning: &str, token: &str, machine: &Value) -> Answer {
    let request = anonymous.with_bearer(provisioning).request(Method::POST, "/gateway/join");
    Answer::of(request.json(&json!({ "host_token": token, "machine": machine }))).await
}

impl TestApp {
    /// A server's new provisioning token.
    pub async fn provisioning_token(&self, server: i64) -> String {
        let token = servers::regenerate_token(&self.scope(), ServerId(server)).await.unwrap();
        token.expose_secret().to_owned()
    }

    /// A host that has joined this server.
    pub async fn joined(&self, server: i64) -> Host {
        let (provisioning, token, machine) =
            (self.provisioning_token(server).await, host_token(), machine("machine-1"));
        join(&self.anonymous, &provisioning, &token, &machine).await.expect(200);
        Host { base: self.base.clone(), server, token, machine, journal: [0, 0] }
    }

    /// The host that has joined the server of this agent.
    pub async fn host_of(&self, agent: i64) -> Host {
        let server = self.one("SELECT server_id FROM agents WHERE id = $1", vec![agent.into()]).await;
        self.joined(server).await
    }

    /// The launch and the status of an agent.
    pub async fn launch_of(&self, agent: i64) -> (i64, String) {
        let of = |column: &str| format!("SELECT {column} FROM agents WHERE id = $1");
        let generation = self.one(&of("launch_generation"), vec![agent.into()]).await;
        (generation, self.one(&of("status"), vec![agent.into()]).await)
    }

    /// Starts an agent. Returns its launch.
    pub async fn start_agent(&self, agent: i64) -> i64 {
        let path = format!("/v1/org/{}/agent/{agent}/start", self.org);
        self.operator.post(&path, json!(null)).await.expect(200);
        self.launch_of(agent).await.0
    }
}

impl Host {
    /// HELLO as this host says it.
    pub fn hello(&self) -> Value {
        let [commands, events] = self.journal;
        json!({
            "frame": "HELLO", "versions": [1, 1], "machine": self.machine, "runtime": "PROCESS",
            "runtime_version": null, "commands": commands, "events": events, "acknowledged": 0,
            "agents": [],
        })
    }

    /// Opens a WebSocket: the status if it is refused.
    pub async fn dial(&self) -> Result<Line, u16> {
        dial(&self.base, Some(&self.token)).await
    }

    /// Connects, and is welcome.
    pub async fn connect(&self) -> Line {
        let mut line = self.dial().await.unwrap();
        line.send(self.hello()).await;
        let welcome = line.next().await;
        assert_eq!(welcome["frame"], "WELCOME", "{welcome}");
        line.seq = self.journal[1];
        line.welcome = welcome;
        line
    }

    /// Connects, and is refused with this code. Returns the frame.
    pub async fn is_refused(&self, hello: Value, code: &str) -> Value {
        let mut line = self.dial().await.unwrap();
        line.send(hello).await;
        line.refused(code).await
    }
}

/// Opens a WebSocket to the gateway.
pub async fn dial(base: &str, token: Option<&str>) -> Result<Line, u16> {
    let mut request = format!("{}/gateway", base.replace("http", "ws")).into_client_request().unwrap();
    if let Some(token) = token {
        request.headers_mut().insert("authorization", format!("Bearer {token}").parse().unwrap());
    }
    match connect_async(request).await {
        Ok((socket, _)) => Ok(Line { socket, welcome: Value::Null, seq: 0 }),
        Err(Error::Http(response)) => Err(response.status().as_u16()),
        Err(error) => panic!("{error}"),
    }
}

impl Line {
    pub async fn send(&mut self, frame: Value) {
        self.socket.send(Message::text(frame.to_string())).await.unwrap();
    }

    /// Sends, unless the service has closed.
    pub async fn try_send(&mut self, frame: Value) -> Result<(), Error> {
        self.socket.send(Message::text(frame.to_string())).await
    }

    /// An event about an agent, with the next number.
    pub fn event(&mut self, (agent, generation): (i64, i64), what: Value) -> Value {
        self.seq += 1;
        let mut event = json!({ "frame": "EVENT", "seq": self.seq, "agent_id": agent, "generation": generation, "at": 1 });
        event["what"] = what;
        event
    }

    /// Reports an event. Returns its number.
    pub async fn report(&mut self, of: (i64, i64), what: Value) -> i64 {
        let event = self.event(of, what);
        self.send(event).await;
        self.seq
    }

    /// The next frame, or `{"closed": …}` at the end.
    pub async fn next(&mut self) -> Value {
        loop {
            match timeout(PATIENCE, self.socket.next()).await.expect("a frame in time") {
                Some(Ok(Message::Text(text))) => return serde_json::from_str(&text).unwrap(),
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                other => return json!({ "closed": format!("{other:?}") }),
            }
        }
    }

    /// The next frame of this kind. Others are dropped.
    pub async fn wait_for(&mut self, kind: &str) -> Value {
        loop {
            let frame = self.next().await;
            assert!(frame["closed"].is_null(), "{kind} does not come: {frame}");
            if frame["frame"] == kind {
                return frame;
            }
        }
    }

    /// Waits until the events up to this number are acknowledged.
    pub async fn stored(&mut self, through: i64) {
        while self.wait_for("ACK").await["through"].as_i64().unwrap() < through {}
    }

    /// Whether nothing comes before the answer to a ping, nor for a moment after it.
    pub async fn is_quiet(&mut self) -> bool {
        const MARK: &[u8] = b"quiet?";
        self.socket.send(Message::Ping(MARK.into())).await.unwrap();
        loop {
            match timeout(PATIENCE, self.socket.next()).await.expect("a frame in time") {
                Some(Ok(Message::Pong(bytes))) if bytes[..] == *MARK => break,
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                _ => return false,
            }
        }
        timeout(Duration::from_millis(200), self.next()).await.is_err()
    }

    /// Waits for REFUSED with this code, and the end of the connection.
    pub async fn refused(&mut self, code: &str) -> Value {
        let refused = self.wait_for("REFUSED").await;
        assert_eq!(refused["code"], code, "{refused}");
        assert!(!self.next().await["closed"].is_null(), "the connection ends");
        refused
    }
}
