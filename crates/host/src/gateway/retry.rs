//! Pauses between attempts: short at first, then longer, and different for each host.

use std::time::Duration;

use muster_protocol::frame::RefusedCode;

use super::LinkError;

/// Interval for an unreachable control plane; for a refusal that needs a person, half as often.
const LONGEST: Duration = Duration::from_secs(30);

/// Counts failures.
#[derive(Debug, Default)]
pub struct Retry {
    failures: u32,
}

impl Retry {
    /// The pause after an error.
    pub fn after(&mut self, was_welcome: bool, error: &LinkError) -> Duration {
        if was_welcome {
            self.failures = 0;
        }
        let growing = Duration::from_millis(100).saturating_mul(1 << self.failures.min(12)).min(LONGEST);
        self.failures += 1;
        let pause = match error {
            LinkError::Refused { retry_after: Some(after), .. } => *after,
            LinkError::Refused { code: RefusedCode::Gap, .. } => growing,
            LinkError::Refused { code: RefusedCode::Stopping | RefusedCode::Unavailable, .. } => growing,
            LinkError::Refused { .. } => LONGEST * 2,
            LinkError::Handshake { status: 401 | 403 | 404, .. } => (LONGEST * 2).min(growing * 8),
            _ => growing,
        };
        jittered(pause)
    }
}

/// Between three quarters and five quarters of a pause.
fn jittered(pause: Duration) -> Duration {
    let mut random = [0];
    // Without randomness all hosts come at once, which is not worth a failure.
    let _ = getrandom::fill(&mut random);
    pause.mul_f64(0.75 + f64::from(random[0]) / 512.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(code: RefusedCode) -> LinkError {
        LinkError::Refused { code, reason: String::new(), retry_after: None }
    }

    #[test]
    fn a_lost_connection_is_retried_at_once_then_slower() {
        let mut retry = Retry::default();
        let broken = LinkError::Silent;
        assert!(retry.after(false, &broken) <= Duration::from_millis(125));
        for _ in 0..20 {
            assert!(retry.after(false, &broken) <= LONGEST.mul_f64(1.25));
        }
        assert!(retry.after(false, &broken) >= LONGEST.mul_f64(0.75));
        assert!(retry.after(true, &broken) <= Duration::from_millis(125));
    }

    #[test]
    fn errors_that_need_a_person_are_retried_slowly() {
        for code in
            [RefusedCode::Token, RefusedCode::Superseded, RefusedCode::JournalLost, RefusedCode::Version]
        {
            assert!(Retry::default().after(true, &refused(code)) >= (LONGEST * 2).mul_f64(0.75), "{code:?}");
        }
        assert!(Retry::default().after(true, &refused(RefusedCode::Stopping)) < Duration::from_secs(1));
        let told = LinkError::Refused {
            code: RefusedCode::Superseded,
            reason: String::new(),
            retry_after: Some(Duration::from_secs(2)),
        };
        assert!(Retry::default().after(true, &told) < Duration::from_secs(3));
    }
}
