//! Notes on a request for the outermost layer, which writes the headers and the line of the log.

use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

use super::{rate_limits::Class, resource_limits::Holder};
use crate::base::ids::OrgId;

/// Notes on a request for the outermost layer: its last charge, its holder and organization, whether it is a change.
#[derive(Clone, Debug, Default)]
pub struct RequestNotes(Arc<Noted>);

#[derive(Debug, Default)]
struct Noted {
    charge: AtomicU64,
    holder: OnceLock<Holder>,
    changes: AtomicBool,
    org: OnceLock<OrgId>,
}

impl RequestNotes {
    /// Records the last charge. Packed into one word to avoid a lock: a flag, class, remaining, seconds.
    pub(super) fn record_charge(&self, class: Class, remaining: u32, seconds: u64) {
        let word = 1 << 63 | (class as u64) << 48 | u64::from(remaining) << 16 | seconds.min(0xffff);
        self.0.charge.store(word, Ordering::Relaxed);
    }

    /// Marks the request as a possible change.
    pub fn mark_change(&self) {
        self.0.changes.store(true, Ordering::Relaxed);
    }

    /// Whether the request may have changed something.
    #[must_use]
    pub fn is_change(&self) -> bool {
        self.0.changes.load(Ordering::Relaxed)
    }

    /// Records the organization for the log line. Of several in one request, the first.
    pub fn set_org(&self, org: OrgId) {
        let _ = self.0.org.set(org);
    }

    /// The organization, if the caller may act in one.
    #[must_use]
    pub fn org(&self) -> Option<OrgId> {
        self.0.org.get().copied()
    }

    pub fn set_holder(&self, holder: Holder) {
        let _ = self.0.holder.set(holder);
    }

    /// The holder, once known.
    #[must_use]
    pub fn holder(&self) -> Option<Holder> {
        self.0.holder.get().copied()
    }

    /// Takes over the charge of `other`, which was made in advance and not refunded.
    pub fn copy(&self, other: &Self) {
        self.0.charge.store(other.0.charge.load(Ordering::Relaxed), Ordering::Relaxed);
    }

    /// The last charge: class, remaining tokens, seconds.
    pub(super) fn charge(&self) -> Option<(Class, u32, u64)> {
        let word = self.0.charge.load(Ordering::Relaxed);
        let class = match word >> 48 & 0x7fff {
            0 => Class::Reads,
            1 => Class::Writes,
            _ => Class::Anonymous,
        };
        (word >> 63 == 1).then_some((class, (word >> 16) as u32, word & 0xffff))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_return_the_recorded_charge() {
        let notes = RequestNotes::default();
        assert_eq!(notes.charge(), None);
        for class in [Class::Reads, Class::Writes, Class::Anonymous] {
            for (remaining, seconds) in [(0, 1), (u32::MAX, 60), (7, 0xffff)] {
                notes.record_charge(class, remaining, seconds);
                assert_eq!(notes.charge(), Some((class, remaining, seconds)));
            }
        }
    }
}
