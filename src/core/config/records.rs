//! Where records are stored, and how long those are kept that are never deleted explicitly.

use std::time::Duration;

use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;

/// The database.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Database {
    /// `sqlite://PATH` or `postgres://…`. `MUSTER_DATABASE_URL`, `sqlite://{data_dir}/muster.db`.
    pub url: SecretString,
    /// The most connections for reading, and the same number again for everything else (with SQLite, one writer).
    /// `MUSTER_DATABASE_MAX_CONNECTIONS`, 16.
    pub max_connections: u32,
    /// How long a request waits for a connection. `MUSTER_DATABASE_ACQUIRE_TIMEOUT_SECONDS`, 5.
    pub acquire_timeout_seconds: u64,
}

impl Database {
    /// Whether it is the embedded database.
    #[must_use]
    pub fn is_sqlite(&self) -> bool {
        self.url.expose_secret().starts_with("sqlite:")
    }
}

/// How long the audit log is kept, and how often it is signed.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Audit {
    /// How long lines are kept; 0: forever. `MUSTER_AUDIT_RETENTION_DAYS`, 0.
    pub retention_days: u32,
    /// Sign a checkpoint after this many lines. `MUSTER_AUDIT_CHECKPOINT_LINES`, 1,000.
    pub checkpoint_lines: u32,
    /// Sign a checkpoint after this long, if the log has grown at all. `MUSTER_AUDIT_CHECKPOINT_MINUTES`, 5.
    pub checkpoint_minutes: u32,
}

/// When what is to be erased is erased.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Erasure {
    /// How many days a scheduled erasure can be cancelled. `MUSTER_ERASURE_GRACE_DAYS`, 14.
    pub grace_days: u32,
}

impl Erasure {
    /// How long a scheduled erasure can be cancelled.
    #[must_use]
    pub fn grace(&self) -> Duration {
        Duration::from_hours(24).saturating_mul(self.grace_days)
    }
}

/// How long decisions are kept.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicySettings {
    /// How many days the counts of allowed and refused calls are kept. `MUSTER_POLICY_DECISIONS_KEPT_DAYS`, 14.
    pub decisions_kept_days: u64,
}
