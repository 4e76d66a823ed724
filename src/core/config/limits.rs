//! Limits on requests and connections.

use std::time::Duration;

use serde::Deserialize;

/// Limits on requests and connections.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RequestLimits {
    /// The largest request body. `MUSTER_LIMITS_BODY_BYTES`, 1 MiB.
    pub body_bytes: usize,
    /// The largest attachment. `MUSTER_LIMITS_ATTACHMENT_BYTES`, 25 MiB.
    pub attachment_bytes: usize,
    /// The most open connections. `MUSTER_LIMITS_CONNECTIONS`, 15,000.
    pub connections: usize,
    /// How long a connection may be idle, or a request's head may take. `MUSTER_LIMITS_HEADER_TIMEOUT_SECONDS`, 30.
    pub header_timeout_seconds: u64,
    /// How long one request may take. `MUSTER_LIMITS_REQUEST_TIMEOUT_SECONDS`, 30.
    pub request_timeout_seconds: u64,
    /// How long a client may take to read 64 KiB. `MUSTER_LIMITS_WRITE_TIMEOUT_SECONDS`, 30.
    pub write_timeout_seconds: u64,
    /// The largest body without a credential. `MUSTER_LIMITS_ANONYMOUS_BODY_BYTES`, 64 KiB.
    pub anonymous_body_bytes: usize,
    /// The most bytes of request bodies in memory. `MUSTER_LIMITS_BODIES_BYTES`, 256 MiB.
    pub bodies_bytes: usize,
    /// The most bytes of responses waiting to be sent. `MUSTER_LIMITS_ANSWERS_BYTES`, 256 MiB.
    pub answers_bytes: usize,
    /// The most unauthenticated sockets per address. `MUSTER_LIMITS_SOCKETS_ANONYMOUS`, 10.
    pub sockets_anonymous: usize,
    /// The most sockets per caller. `MUSTER_LIMITS_SOCKETS_PER_CALLER`, 50.
    pub sockets_per_caller: usize,
    /// How long a socket may be open without a credential. `MUSTER_LIMITS_SOCKET_INIT_SECONDS`, 10.
    pub socket_init_seconds: u64,
    /// The most subscriptions per caller. `MUSTER_LIMITS_SUBSCRIPTIONS_PER_CALLER`, 300.
    pub subscriptions_per_caller: usize,
    /// The most subscriptions per organization. `MUSTER_LIMITS_SUBSCRIPTIONS_PER_ORGANIZATION`, 3,000.
    pub subscriptions_per_organization: usize,
    /// How deep selections may nest. `MUSTER_LIMITS_GRAPHQL_DEPTH`, 12.
    pub graphql_depth: usize,
    /// How many fields a document may request. `MUSTER_LIMITS_GRAPHQL_COMPLEXITY`, 5,000.
    pub graphql_complexity: usize,
    /// How many aliases a document may have. `MUSTER_LIMITS_GRAPHQL_ALIASES`, 100.
    pub graphql_aliases: usize,
    /// How many operations a request may carry. `MUSTER_LIMITS_GRAPHQL_BATCH`, 10.
    pub graphql_batch: usize,
    /// The size of the cache of validated documents, in bytes. `MUSTER_LIMITS_DOCUMENT_CACHE_BYTES`, 64 MiB.
    pub document_cache_bytes: u64,
}

impl RequestLimits {
    #[must_use]
    pub fn header_timeout(&self) -> Duration {
        Duration::from_secs(self.header_timeout_seconds)
    }

    #[must_use]
    pub fn request_timeout(&self) -> Duration {
        Duration::from_secs(self.request_timeout_seconds)
    }

    #[must_use]
    pub fn write_timeout(&self) -> Duration {
        Duration::from_secs(self.write_timeout_seconds)
    }

    #[must_use]
    pub fn socket_init(&self) -> Duration {
        Duration::from_secs(self.socket_init_seconds)
    }
}
