//! Settings for monitoring and protection: logs, metrics, traces, rate limits.

use std::net::SocketAddr;

use serde::Deserialize;

/// The level and format of the log.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Log {
    /// A level, or `target=level` pairs. `MUSTER_LOG`, `info,sqlx=warn`.
    pub filter: String,
    /// The format. `MUSTER_LOG_FORMAT`, text.
    pub format: LogFormat,
}

/// The format of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// Lines for people.
    Text,
    /// One JSON object per line.
    Json,
}

/// Where metrics are served.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Metrics {
    /// Address and port of the metrics page, separate from the service's own. `MUSTER_METRICS_LISTEN`, none: no metrics
    /// are collected.
    pub listen: Option<SocketAddr>,
}

/// Where traces are sent.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Traces {
    /// The OTLP collector, over HTTP. `MUSTER_OTLP_ENDPOINT`, none: nothing is traced.
    pub endpoint: Option<String>,
    /// The fraction of requests to trace, unless the caller has already decided. `MUSTER_TRACES_SAMPLE_RATIO`, 1.
    pub sample_ratio: f64,
}

/// The header in which a trusted proxy names the client.
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
    /// Whether requests are limited. `MUSTER_RATE_LIMITS_ENABLED`, true.
    pub enabled: bool,
    /// Reads per caller, and events and questions per host. `MUSTER_RATE_LIMITS_READS_PER_MINUTE`, 30,000.
    pub reads_per_minute: u32,
    /// Writes per caller. `MUSTER_RATE_LIMITS_WRITES_PER_MINUTE`, 6,000.
    pub writes_per_minute: u32,
    /// Requests per address without a valid credential. `MUSTER_RATE_LIMITS_ANONYMOUS_PER_MINUTE`, 300.
    pub anonymous_per_minute: u32,
}
