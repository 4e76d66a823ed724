//! Calls to the vendors. Their addresses are the operator's settings, so nothing is guarded. Redirects are not
//! followed, since each call carries a token, and no error names an address, since it may contain one.

use std::{io, sync::Arc, time::Duration};

use http::header::CONTENT_TYPE;
use reqwest::{Client, RequestBuilder, multipart::Part, redirect::Policy};
use rustls::ClientConfig;
use tokio::{net::TcpStream, time::timeout};
use url::{Url, form_urlencoded};

use super::{
    response::{HttpResponse, call_failure, copy_body},
    stream::{self, Stream},
};
use crate::{
    bounds,
    contract::{Attachment, Failure, Spool},
};

/// HTTP client for vendors. Clones share connections.
#[derive(Clone)]
pub struct VendorClient {
    pub http: Client,
    tls: Arc<ClientConfig>,
}

impl VendorClient {
    pub fn new(tls: ClientConfig) -> reqwest::Result<Self> {
        let http = Client::builder()
            .tls_backend_preconfigured(tls.clone())
            .redirect(Policy::none())
            .connect_timeout(bounds::NETWORK_WAIT)
            .build()?;
        Ok(Self { http, tls: Arc::new(tls) })
    }

    /// Makes one call within `patience`.
    pub async fn call(
        &self,
        peer: &str,
        request: RequestBuilder,
        patience: Duration,
    ) -> Result<HttpResponse, Failure> {
        let answer = async {
            let response = request.timeout(patience).send().await?;
            HttpResponse::read(response, 8 << 20).await
        };
        answer.await.map_err(|error| call_failure(peer, &error))
    }

    /// Downloads a file of at most `most` bytes. Returns its length.
    pub async fn download(
        &self,
        peer: &str,
        request: RequestBuilder,
        to: Spool<'_>,
        most: u64,
    ) -> Result<u64, Failure> {
        let response =
            request.timeout(bounds::TRANSFER).send().await.map_err(|error| call_failure(peer, &error))?;
        copy_body(peer, response, to, most).await
    }

    /// Connects to a vendor's socket (`ws` or `wss`).
    pub async fn connect(&self, url: &Url) -> io::Result<Box<dyn Stream>> {
        let host = url.host_str().ok_or(io::ErrorKind::InvalidInput)?;
        let port = url.port_or_known_default().ok_or(io::ErrorKind::InvalidInput)?;
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        let connected = timeout(bounds::NETWORK_WAIT, TcpStream::connect((bare, port)));
        let stream = connected.await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))?;
        match url.scheme() {
            "ws" => Ok(Box::new(stream)),
            _ => Ok(Box::new(stream::start_tls(&self.tls, bare, stream).await?)),
        }
    }
}

/// Adds fields as a form.
pub fn with_form(request: RequestBuilder, fields: &[(&str, &str)]) -> RequestBuilder {
    let body = form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish();
    request.header(CONTENT_TYPE, "application/x-www-form-urlencoded").body(body)
}

/// A file as a part of a form. Its type may be anything.
pub fn file_part(file: &Attachment) -> Result<Part, Failure> {
    let part = || Part::stream(file.content.clone()).file_name(file.name.clone());
    let typed = part().mime_str(&file.media_type).or_else(|_| part().mime_str("application/octet-stream"));
    typed.map_err(|_| Failure::Refused("The file's type can't be sent.".into()))
}
