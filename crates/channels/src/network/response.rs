//! HTTP responses, and the meaning of failed calls.

use std::{error::Error, time::Duration};

use bytes::{Bytes, BytesMut};
use http::{
    HeaderMap, StatusCode,
    header::{DATE, RETRY_AFTER},
};
use jiff::{Timestamp, fmt::rfc2822};
use muster_certificates::Remedy;
use reqwest::Response;
use tokio::io::AsyncWriteExt;

use crate::contract::{Cause, Failure, Spool};

/// A response with a bounded body.
#[derive(Debug)]
pub struct HttpResponse {
    pub status: StatusCode,
    pub headers: HeaderMap,
    /// The body, or its beginning. Never shown to tenants.
    pub body: Bytes,
}

impl HttpResponse {
    /// Reads at most `most` bytes of the body, and leaves the rest.
    pub async fn read(mut response: Response, most: usize) -> reqwest::Result<Self> {
        let (status, headers) = (response.status(), std::mem::take(response.headers_mut()));
        let mut body = BytesMut::new();
        while body.len() < most {
            let Some(chunk) = response.chunk().await? else { break };
            body.extend_from_slice(&chunk[..chunk.len().min(most - body.len())]);
        }
        Ok(Self { status, headers, body: body.freeze() })
    }

    /// The server's time.
    pub fn date(&self) -> Option<Timestamp> {
        parse_date(self.headers.get(DATE)?.to_str().ok()?)
    }

    /// The wait that `Retry-After` asks for, in seconds or until a date. At most a day.
    pub fn retry_after(&self, now: Timestamp) -> Option<Duration> {
        let text = self.headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
        let seconds = match text.parse::<u64>() {
            Ok(seconds) => seconds,
            Err(_) => {
                let until = parse_date(text)?;
                u64::try_from(until.as_second() - now.as_second()).unwrap_or_default()
            }
        };
        Some(Duration::from_secs(seconds).min(Duration::from_secs(24 * 60 * 60)))
    }
}

/// `Mon, 30 Nov 2026 09:00:00 GMT`
pub fn parse_date(text: &str) -> Option<Timestamp> {
    rfc2822::parse(text.trim()).ok().map(|date| date.timestamp())
}

/// Copies a body of at most `most` bytes. Returns its length.
pub async fn copy_body(peer: &str, mut response: Response, to: Spool<'_>, most: u64) -> Result<u64, Failure> {
    if !response.status().is_success() {
        let status = response.status().as_u16();
        return Err(Failure::Refused(format!("{peer} does not give this file (status {status}).").into()));
    }
    let mut length = 0;
    while let Some(chunk) = response.chunk().await.map_err(|error| call_failure(peer, &error))? {
        length += chunk.len() as u64;
        if length > most {
            return Err(Failure::Refused(format!("The file is longer than {most} bytes.").into()));
        }
        to.write_all(&chunk).await.map_err(|error| Failure::NotSent(error.to_string().into()))?;
    }
    Ok(length)
}

/// A failed call's meaning for a message. The address stays out of the text: it may hold a token.
pub fn call_failure(peer: &str, error: &reqwest::Error) -> Failure {
    if error.is_builder() || error.is_connect() {
        return Failure::NotSent(Cause::from(format!("{peer} can't be reached: {}", root_cause(error))));
    }
    let why = if error.is_timeout() { "there was no answer in time".to_owned() } else { root_cause(error) };
    Failure::Unknown(Cause::from(format!("{peer} did not answer: {why}")))
}

/// The root cause: the system's or the TLS library's error, or what is wrong with a certificate.
fn root_cause(error: &(dyn Error + 'static)) -> String {
    if let Some(text) = muster_certificates::explain(error, Remedy::ServiceSetting) {
        return text;
    }
    let mut last = error;
    while let Some(source) = last.source() {
        last = source;
    }
    last.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_of_retry_after_are_read() {
        let now: Timestamp = "2026-11-23T08:00:00Z".parse().unwrap();
        let of = |text: &str| {
            let headers = [(RETRY_AFTER, text.parse().unwrap())].into_iter().collect();
            HttpResponse { status: StatusCode::SERVICE_UNAVAILABLE, headers, body: Bytes::new() }
                .retry_after(now)
        };
        assert_eq!(of("120"), Some(Duration::from_secs(120)));
        assert_eq!(of("Mon, 23 Nov 2026 08:00:30 GMT"), Some(Duration::from_secs(30)));
        assert_eq!(of("Mon, 23 Nov 2026 07:00:30 GMT"), Some(Duration::ZERO));
        assert_eq!(of("99999999999"), Some(Duration::from_secs(86_400)));
        assert_eq!(of("soon"), None);
    }
}
