//! Back-off of a listener: 1 s, 2 s, 4 s … one minute.

use std::time::Duration;

pub struct Backoff(Duration);

impl Backoff {
    pub fn new() -> Self {
        Self(Duration::from_secs(1))
    }

    pub fn reset(&mut self) {
        *self = Self::new();
    }

    /// Waits, at least as long as the vendor asks.
    pub async fn wait(&mut self, asked: Option<Duration>) {
        tokio::time::sleep(self.0.max(asked.unwrap_or_default())).await;
        self.0 = (self.0 * 2).min(Duration::from_secs(60));
    }
}
