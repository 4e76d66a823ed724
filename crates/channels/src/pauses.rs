//! How long a listener waits before it tries again: 1 s, 2 s, 4 s … a minute.

use std::time::Duration;

/// The pauses between attempts.
pub struct Pauses(Duration);

impl Pauses {
    pub fn new() -> Self {
        Self(Duration::from_secs(1))
    }

    /// It worked: the next pause is short again.
    pub fn reset(&mut self) {
        *self = Self::new();
    }

    /// Waits, at least as long as the vendor asks.
    pub async fn wait(&mut self, asked: Option<Duration>) {
        tokio::time::sleep(self.0.max(asked.unwrap_or_default())).await;
        self.0 = (self.0 * 2).min(Duration::from_secs(60));
    }
}
