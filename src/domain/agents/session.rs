//! When a session of an agent starts over: a pure rule, applied at the end of a turn.

use crate::base::enums::OverrideMode;

/// The number of tokens in the context at which a session starts over. `None`: never. `own` is the agent's setting and
/// `inherited` the organization's.
#[must_use]
pub const fn limit(mode: OverrideMode, own: Option<i64>, inherited: Option<i64>) -> Option<i64> {
    match mode {
        OverrideMode::Off => None,
        OverrideMode::Custom => own,
        OverrideMode::Inherit => inherited,
    }
}

/// Whether the next turn begins a new session. An agent that doesn't report the size of its context keeps its session.
#[must_use]
pub fn is_full(limit: Option<i64>, context_tokens: Option<i64>) -> bool {
    matches!((limit, context_tokens), (Some(limit), Some(tokens)) if tokens >= limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agents_own_limit_replaces_the_organizations() {
        let limits = [OverrideMode::Inherit, OverrideMode::Off, OverrideMode::Custom]
            .map(|mode| limit(mode, Some(10), Some(20)));
        assert_eq!(limits, [Some(20), None, Some(10)]);
        assert_eq!(limit(OverrideMode::Inherit, Some(10), None), None);
    }

    #[test]
    fn a_session_is_full_from_its_limit_on_if_the_agent_tells() {
        let full = [Some(99), Some(100), None].map(|tokens| is_full(Some(100), tokens));
        assert_eq!(full, [false, true, false]);
        assert!(!is_full(None, Some(i64::MAX)));
    }
}
