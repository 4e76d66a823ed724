//! A minimal client for the protocol `graphql-transport-ws`.

use std::time::{Duration, Instant};

use futures::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::{net::TcpStream, time::timeout};
use tokio_tungstenite::{
    MaybeTlsStream, WebSocketStream, connect_async,
    tungstenite::{Error, Message, client::IntoClientRequest, http::HeaderValue},
};

use super::{Actor, PATIENCE};

pub struct Socket(WebSocketStream<MaybeTlsStream<TcpStream>>);

/// A socket's first message.
pub fn introduction(actor: &Actor) -> Value {
    json!({"type": "connection_init", "payload": {"Authorization": format!("Bearer {}", actor.bearer())}})
}

impl Socket {
    /// Connects to a service without sending `connection_init`.
    pub async fn connect(base: &str, protocol: &'static str) -> Self {
        let mut request = format!("{}/graphql", base.replace("http", "ws")).into_client_request().unwrap();
        request.headers_mut().insert("sec-websocket-protocol", HeaderValue::from_static(protocol));
        Self(connect_async(request).await.unwrap().0)
    }

    /// Connects with these headers. The status, if the handshake is refused.
    pub async fn shake(base: &str, headers: &[(&'static str, &str)]) -> Result<Self, u16> {
        let mut request = format!("{}/graphql", base.replace("http", "ws")).into_client_request().unwrap();
        let protocol = ("sec-websocket-protocol", "graphql-transport-ws");
        for (name, value) in headers.iter().chain([&protocol]) {
            request.headers_mut().insert(*name, HeaderValue::from_str(value).unwrap());
        }
        match connect_async(request).await {
            Ok((socket, _)) => Ok(Self(socket)),
            Err(Error::Http(refused)) => Err(refused.status().as_u16()),
            Err(error) => panic!("{error}"),
        }
    }

    /// Connects and sends `connection_init` as `actor`.
    pub async fn of(actor: &Actor) -> Self {
        let mut client = Self::connect(actor.base(), "graphql-transport-ws").await;
        client.send(introduction(actor)).await;
        assert_eq!(client.next().await["type"], "connection_ack");
        client
    }

    pub async fn send(&mut self, message: Value) {
        self.0.send(Message::text(message.to_string())).await.unwrap();
    }

    pub async fn subscribe(&mut self, id: &str, query: &str, variables: Value) {
        let payload = json!({"query": query, "variables": variables});
        self.send(json!({"type": "subscribe", "id": id, "payload": payload})).await;
    }

    /// Waits until the service has received what was sent before: a query on the same socket is answered. Nothing
    /// else comes before its answer.
    pub async fn settled(&mut self) {
        self.subscribe("settled", "{ __typename }", json!({})).await;
        assert_eq!(self.next().await["payload"]["data"]["__typename"], "Query");
        assert_eq!(self.next().await, json!({"type": "complete", "id": "settled"}));
    }

    /// The next message, or `{"closed": code}` at the end.
    pub async fn next(&mut self) -> Value {
        loop {
            match timeout(PATIENCE, self.0.next()).await.expect("a message in time") {
                Some(Ok(Message::Text(text))) => return serde_json::from_str(&text).unwrap(),
                Some(Ok(Message::Close(Some(frame)))) => return json!({"closed": u16::from(frame.code)}),
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                other => return json!({"closed": format!("{other:?}")}),
            }
        }
    }
}

/// Waits until changes that `actor` makes reach a subscriber on this socket, to another replica. While the database is
/// away a subscription ends with UNAVAILABLE, and clients subscribe again.
pub async fn reaches(client: &mut Socket, actor: &Actor, org: i64, round: &str) {
    let changes = "subscription($o: Id!) { changes(orgId: $o, kinds: [SKILL]) { kind id op } }";
    let create = "mutation($o: Id!, $n: String!) { createSkill(orgId: $o, input: { name: $n, content: \"c\" }) { id } }";
    let begun = Instant::now();
    for n in 0.. {
        assert!(begun.elapsed() < PATIENCE, "no change arrives {round}");
        let name = format!("{round} {n}");
        client.subscribe(&name, changes, json!({ "o": org })).await;
        let made = actor.gql(create, json!({ "o": org, "n": name })).await.data();
        let arrives = async {
            loop {
                let next = client.next().await;
                assert!(next["closed"].is_null(), "{next}");
                if next["payload"]["data"]["changes"]["id"] == made["createSkill"]["id"] {
                    break;
                }
            }
        };
        // The other replica may only just have started listening.
        if timeout(Duration::from_secs(1), arrives).await.is_ok() {
            return;
        }
    }
}
