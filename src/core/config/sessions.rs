//! How long people stay signed in.

use std::time::Duration;

use serde::Deserialize;

use super::tokens::days;
use crate::base::time::Timestamp;

/// How long people stay signed in.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sessions {
    /// How long an access token is valid. `MUSTER_SESSIONS_ACCESS_TOKEN_MINUTES`, 15.
    pub access_token_minutes: u64,
    /// How long a session lives after its last refresh. `MUSTER_SESSIONS_REFRESH_TOKEN_DAYS`, 30.
    pub refresh_token_days: u64,
    /// How long a browser's session lives after its last use. `MUSTER_SESSIONS_BROWSER_IDLE_DAYS`, 7.
    pub browser_idle_days: u64,
    /// How long it lives at most. `MUSTER_SESSIONS_BROWSER_MAX_DAYS`, 30.
    pub browser_max_days: u64,
}

impl Sessions {
    #[must_use]
    pub fn access_token_ttl(&self) -> Duration {
        Duration::from_secs(self.access_token_minutes * 60)
    }

    #[must_use]
    pub fn refresh_token_ttl(&self) -> Duration {
        days(self.refresh_token_days)
    }

    /// How long a browser's session lives at most.
    #[must_use]
    pub fn browser_max(&self) -> Duration {
        days(self.browser_max_days)
    }

    /// When a browser's session ends that was opened at `opened` and is used now.
    #[must_use]
    pub fn browser_end(&self, opened: Timestamp, now: Timestamp) -> Timestamp {
        now.plus(days(self.browser_idle_days)).min(opened.plus(self.browser_max()))
    }
}
