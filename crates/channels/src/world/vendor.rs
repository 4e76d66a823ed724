//! Calls to the vendors. Their addresses are the operator's settings, so nothing is guarded; but redirects are not followed,
//! since a token goes with each call, and no error names an address, since a token may be in it.

use std::{io, sync::Arc, time::Duration};

use reqwest::{Client, RequestBuilder, redirect::Policy};
use rustls::ClientConfig;
use tokio::{net::TcpStream, time::timeout};
use url::Url;

use super::{
    answer::{Answer, failed, pour},
    stream::{self, Stream},
};
use crate::contract::{Failure, Spool};

/// How long a connection may take.
const CONNECT: Duration = Duration::from_secs(5);
/// How long a file may take to be read.
const DOWNLOAD: Duration = Duration::from_secs(120);
/// The longest answer that is not a file.
const LONGEST_ANSWER: usize = 8 * 1024 * 1024;

/// Calls vendors. Clones share their connections.
#[derive(Clone)]
pub struct Vendor {
    pub http: Client,
    tls: Arc<ClientConfig>,
}

impl Vendor {
    pub fn new(tls: ClientConfig) -> reqwest::Result<Self> {
        let http = Client::builder()
            .tls_backend_preconfigured(tls.clone())
            .redirect(Policy::none())
            .connect_timeout(CONNECT)
            .build()?;
        Ok(Self { http, tls: Arc::new(tls) })
    }

    /// Makes one call, which may take `patience` in all.
    pub async fn call(
        &self,
        peer: &str,
        request: RequestBuilder,
        patience: Duration,
    ) -> Result<Answer, Failure> {
        let answer = async {
            let response = request.timeout(patience).send().await?;
            Answer::read(response, LONGEST_ANSWER).await
        };
        answer.await.map_err(|error| failed(peer, &error))
    }

    /// Reads a file of at most `most` bytes. Returns its length.
    pub async fn download(
        &self,
        peer: &str,
        request: RequestBuilder,
        to: Spool<'_>,
        most: u64,
    ) -> Result<u64, Failure> {
        let response = request.timeout(DOWNLOAD).send().await.map_err(|error| failed(peer, &error))?;
        pour(peer, response, to, most).await
    }

    /// Connects to a vendor's socket (`ws` or `wss`).
    pub async fn connect(&self, url: &Url) -> io::Result<Box<dyn Stream>> {
        let host = url.host_str().ok_or(io::ErrorKind::InvalidInput)?;
        let port = url.port_or_known_default().ok_or(io::ErrorKind::InvalidInput)?;
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        let connected = timeout(CONNECT, TcpStream::connect((bare, port)));
        let stream = connected.await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))?;
        match url.scheme() {
            "ws" => Ok(Box::new(stream)),
            _ => Ok(Box::new(stream::handshake(&self.tls, bare, stream).await?)),
        }
    }
}
