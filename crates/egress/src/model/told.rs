//! When a provider's refusals were reported.

use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// How long the same refusal isn't reported again: a provider that is out refuses each call, and each report is an event.
const QUIET: Duration = Duration::from_secs(30);

/// When refusals of the provider were reported.
#[derive(Default)]
pub struct Told {
    pub key: Once,
    pub limit: Window,
}

/// Something that is reported once in a while.
#[derive(Default)]
pub struct Once(Mutex<Option<Instant>>);

impl Once {
    pub fn is_due(&self) -> bool {
        let mut told = self.0.lock();
        let is_due = told.is_none_or(|at| at.elapsed() >= QUIET);
        if is_due {
            *told = Some(Instant::now());
        }
        is_due
    }
}

/// The time for which a provider takes no requests, as it was reported last: with which credential, and until when.
#[derive(Default)]
pub struct Window(Mutex<Option<(Option<i64>, Instant)>>);

impl Window {
    /// Whether a refusal is news: one that comes when the window is over opens the next one, and its turn has to wait again.
    pub fn opens(&self, credential: Option<i64>, wait: Option<Duration>, now: Instant) -> bool {
        let mut told = self.0.lock();
        let opens = told.is_none_or(|(of, until)| of != credential || until <= now);
        if opens {
            *told = Some((credential, now + wait.unwrap_or(QUIET).clamp(Duration::from_secs(1), QUIET)));
        }
        opens
    }

    /// The provider has taken a request.
    pub fn close(&self) {
        *self.0.lock() = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_after_the_window_is_another_one() {
        let (window, begun) = (Window::default(), Instant::now());
        let opens = |credential, wait: Option<u64>, at: u64| {
            let wait = wait.map(Duration::from_secs);
            window.opens(Some(credential), wait, begun + Duration::from_secs(at))
        };
        assert!(opens(1, Some(5), 0));
        assert!(!opens(1, Some(5), 4), "it is known");
        assert!(opens(1, Some(5), 5), "the turn that was sent to see is refused as well");
        assert!(opens(2, Some(600), 6), "another credential");
        assert!(!opens(2, None, 35) && opens(2, None, 36), "a long window is told again after a while");
        assert!(!opens(2, None, 65) && opens(2, Some(0), 66));
        assert!(opens(2, Some(0), 67) && !opens(2, Some(0), 67));
        window.close();
        assert!(opens(2, Some(0), 67), "calls have passed meanwhile");
    }
}
