//! A minimal client for the protocol `graphql-transport-ws`.

use std::time::Duration;

use futures::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::{net::TcpStream, time::timeout};
use tokio_tungstenite::{
    MaybeTlsStream, WebSocketStream, connect_async,
    tungstenite::{Message, client::IntoClientRequest, http::HeaderValue},
};

use super::Actor;

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

    /// The next message, or `{"closed": code}` at the end.
    pub async fn next(&mut self) -> Value {
        loop {
            match timeout(Duration::from_secs(20), self.0.next()).await.expect("a message in time") {
                Some(Ok(Message::Text(text))) => return serde_json::from_str(&text).unwrap(),
                Some(Ok(Message::Close(Some(frame)))) => return json!({"closed": u16::from(frame.code)}),
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                other => return json!({"closed": format!("{other:?}")}),
            }
        }
    }
}
