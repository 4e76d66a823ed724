//! Limits how often a provider's refusals are reported.

use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// Interval of equal reports: a failing provider refuses every call, and each report is an event.
const QUIET: Duration = Duration::from_secs(30);

/// Past reports about the provider.
#[derive(Default)]
pub struct RefusalReports {
    pub key: Throttle,
    pub limit: RefusalWindow,
}

/// Limits an event's rate.
#[derive(Default)]
pub struct Throttle(Mutex<Option<Instant>>);

impl Throttle {
    pub fn is_due(&self) -> bool {
        let mut reported = self.0.lock();
        let is_due = reported.is_none_or(|at| at.elapsed() >= QUIET);
        if is_due {
            *reported = Some(Instant::now());
        }
        is_due
    }
}

/// The last reported rate limit: its credential, and its end.
#[derive(Default)]
pub struct RefusalWindow(Mutex<Option<(Option<i64>, Instant)>>);

impl RefusalWindow {
    /// Whether a refusal is new: after the window's end the next refusal opens another window, since its turn must wait
    /// again.
    pub fn opens(&self, credential: Option<i64>, wait: Option<Duration>, now: Instant) -> bool {
        let mut reported = self.0.lock();
        let opens = reported.is_none_or(|(of, until)| of != credential || until <= now);
        if opens {
            *reported = Some((credential, now + wait.unwrap_or(QUIET).clamp(Duration::from_secs(1), QUIET)));
        }
        opens
    }

    /// Closes the window: the provider has accepted a request.
    pub fn close(&self) {
        *self.0.lock() = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_after_the_window_is_another_one() {
        let (window, begun) = (RefusalWindow::default(), Instant::now());
        let opens = |credential, wait: Option<u64>, at: u64| {
            let wait = wait.map(Duration::from_secs);
            window.opens(Some(credential), wait, begun + Duration::from_secs(at))
        };
        assert!(opens(1, Some(5), 0));
        assert!(!opens(1, Some(5), 4), "it is known");
        assert!(opens(1, Some(5), 5), "the turn that was sent to see is refused as well");
        assert!(opens(2, Some(600), 6), "another credential");
        assert!(!opens(2, None, 35) && opens(2, None, 36), "a long window is reported again after a while");
        assert!(!opens(2, None, 65) && opens(2, Some(0), 66));
        assert!(opens(2, Some(0), 67) && !opens(2, Some(0), 67));
        window.close();
        assert!(opens(2, Some(0), 67), "calls have passed meanwhile");
    }
}
