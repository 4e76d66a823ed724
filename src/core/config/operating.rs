//! The sections of what watches and protects the service: metrics, traces, rate limits.

use std::net::SocketAddr;

use serde::Deserialize;

/// What the service measures of itself.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Metrics {
    /// Address and port of the metrics page, apart from the service's own. `MUSTER_METRICS_LISTEN`, none: nothing is
    /// measured.
    pub listen: Option<SocketAddr>,
}

/// Where traces go.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Traces {
    /// The OTLP collector, over HTTP. `MUSTER_OTLP_ENDPOINT`, none: nothing is traced.
    pub endpoint: Option<String>,
    /// Which part of the requests that nobody upstream has decided about is traced. `MUSTER_TRACES_SAMPLE_RATIO`, 1.
    pub sample_ratio: f64,
}

/// Where a trusted proxy says whom a request comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum ProxyHeader {
    /// `X-Forwarded-For`.
    #[serde(rename = "x-forwarded-for")]
    XForwardedFor,
    /// `Forwarded` (RFC 7239).
    #[serde(rename = "forwarded")]
    Forwarded,
}

/// How many requests a caller may send.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RateLimits {
    /// Whether requests are counted at all. `MUSTER_RATE_LIMITS_ENABLED`, true.
    pub enabled: bool,
    /// Reads of one caller. `MUSTER_RATE_LIMITS_READS_PER_MINUTE`, 30,000.
    pub reads_per_minute: u32,
    /// Writes of one caller. `MUSTER_RATE_LIMITS_WRITES_PER_MINUTE`, 6,000.
    pub writes_per_minute: u32,
    /// Requests of one address without a good credential. `MUSTER_RATE_LIMITS_ANONYMOUS_PER_MINUTE`, 300.
    pub anonymous_per_minute: u32,
}
