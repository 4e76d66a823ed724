//! The calls of all gates of a host, counted for its metrics.

use std::sync::atomic::{AtomicU64, Ordering};

use http::{Method, Request, StatusCode};

/// What a call is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallKind {
    /// The agent's model.
    Model = 0,
    /// The address of a credential.
    Credential = 1,
    /// A tunnel to a host.
    Tunnel = 2,
    /// Plain HTTP to a host.
    Http = 3,
}

const KINDS: [&str; 4] = ["model", "credential", "tunnel", "http"];
const OUTCOMES: [&str; 2] = ["ok", "failed"];

impl CallKind {
    /// `None` for an address that the gate does not have.
    pub(crate) fn of<B>(request: &Request<B>) -> Option<Self> {
        if request.method() == Method::CONNECT {
            return Some(Self::Tunnel);
        }
        if request.uri().authority().is_some() {
            return Some(Self::Http);
        }
        match request.uri().path().trim_start_matches('/').split('/').next() {
            Some("model") => Some(Self::Model),
            Some("c") => Some(Self::Credential),
            _ => None,
        }
    }
}

/// The number of calls, by kind and outcome.
#[derive(Debug, Default)]
pub struct CallCounts([[AtomicU64; OUTCOMES.len()]; KINDS.len()]);

impl CallCounts {
    /// Counts a call that was answered with this status.
    pub(crate) fn count(&self, kind: CallKind, status: StatusCode) {
        let is_failed = status.as_u16() >= 400;
        self.0[kind as usize][usize::from(is_failed)].fetch_add(1, Ordering::Relaxed);
    }

    /// The kind, the outcome (`ok`, or `failed`: status 400 or above) and the number of calls.
    pub fn all(&self) -> Vec<(&'static str, &'static str, u64)> {
        let mut all = Vec::new();
        for (kind, counts) in KINDS.iter().zip(&self.0) {
            for (outcome, count) in OUTCOMES.iter().zip(counts) {
                all.push((*kind, *outcome, count.load(Ordering::Relaxed)));
            }
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_counted_by_their_kind_and_outcome() {
        let counts = CallCounts::default();
        let calls = [
            ("POST", "/model/v1/messages", StatusCode::OK),
            ("GET", "/c/shop/orders", StatusCode::FORBIDDEN),
            ("CONNECT", "example.org:443", StatusCode::OK),
            ("GET", "http://example.org/x", StatusCode::BAD_GATEWAY),
            ("GET", "/nothing", StatusCode::NOT_FOUND),
        ];
        for (method, uri, status) in calls {
            let request = Request::builder().method(method).uri(uri).body(()).unwrap();
            if let Some(kind) = CallKind::of(&request) {
                counts.count(kind, status);
            }
        }
        let counted: Vec<_> = counts.all().into_iter().filter(|(_, _, count)| *count > 0).collect();
        let once =
            [("model", "ok", 1), ("credential", "failed", 1), ("tunnel", "ok", 1), ("http", "failed", 1)];
        assert_eq!(counted, once);
    }
}
