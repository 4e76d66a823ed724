//! How long service tokens last, and the keys that sign access tokens.

use std::time::Duration;

use serde::Deserialize;

/// How the signing keys of access tokens are rotated.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Signing {
    /// The maximum age of a key; 0: no maximum. `MUSTER_SIGNING_ROTATION_DAYS`, 90.
    pub rotation_days: u64,
    /// How long a new key is published before it signs. `MUSTER_SIGNING_PUBLISH_MINUTES`, 60.
    pub publish_minutes: u64,
}

impl Signing {
    /// The maximum age of a key; `None`: no maximum.
    #[must_use]
    pub fn rotation(&self) -> Option<Duration> {
        (self.rotation_days > 0).then(|| days(self.rotation_days))
    }

    #[must_use]
    pub fn publish(&self) -> Duration {
        Duration::from_secs(self.publish_minutes * 60)
    }
}

/// How long service tokens last.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServiceTokens {
    /// The default lifetime; 0: unlimited. `MUSTER_SERVICE_TOKENS_DEFAULT_DAYS`, 365.
    pub default_days: u64,
    /// The maximum lifetime; 0: no maximum. `MUSTER_SERVICE_TOKENS_MAX_DAYS`, 0.
    pub max_days: u64,
}

impl ServiceTokens {
    /// The default lifetime; `None`: unlimited.
    #[must_use]
    pub fn default_lifetime(&self) -> Option<Duration> {
        (self.default_days > 0).then(|| days(self.default_days)).or(self.max_lifetime())
    }

    /// The maximum lifetime; `None`: no maximum.
    #[must_use]
    pub fn max_lifetime(&self) -> Option<Duration> {
        (self.max_days > 0).then(|| days(self.max_days))
    }
}

pub(super) fn days(count: u64) -> Duration {
    Duration::from_secs(count * 24 * 60 * 60)
}
