//! Addresses for programs that must know theirs before they listen, and servers that tests play.

use std::net::SocketAddr;

use tokio::net::TcpSocket;

/// An address of this machine at which no one listens, and which the system gives to no one else as long as this lives.
///
/// The socket is bound and never listens: a program that has the address can listen there, and again after its end.
pub struct Address {
    _held: TcpSocket,
    text: String,
    port: u16,
}

impl Address {
    pub fn free() -> Self {
        let held = TcpSocket::new_v4().unwrap();
        held.set_reuseaddr(true).unwrap();
        held.bind(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        let address = held.local_addr().unwrap();
        Self { _held: held, text: address.to_string(), port: address.port() }
    }

    /// Host and port.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    pub fn port(&self) -> u16 {
        self.port
    }
}

/// Serves these routes until the test ends, as a server of others. Returns its address.
#[expect(clippy::disallowed_methods, reason = "it belongs to no service")]
pub async fn served(routes: axum::Router) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    tokio::task::spawn(async move { axum::serve(listener, routes).await.unwrap() });
    address
}
