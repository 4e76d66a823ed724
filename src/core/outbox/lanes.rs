//! The channels that this process sends to at the moment. Each has a lane of its own, so that one whose vendor hangs
//! holds up no other.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use crate::base::ids::{ChannelId, OrgId};

/// How many channels a process sends to at a time.
const MOST: usize = 256;

/// All lanes. Cheap to clone.
#[derive(Clone, Default)]
pub struct Lanes(Arc<Mutex<HashSet<(OrgId, ChannelId)>>>);

/// A channel's lane. Dropping it gives it up.
pub struct Lane {
    lanes: Lanes,
    key: (OrgId, ChannelId),
}

impl Lanes {
    /// Takes a channel's lane. `None`: somebody has it, or too many are taken.
    #[must_use]
    pub fn enter(&self, org: OrgId, channel: ChannelId) -> Option<Lane> {
        let (mut all, key) = (self.all(), (org, channel));
        (all.len() < MOST && all.insert(key)).then(|| Lane { lanes: self.clone(), key })
    }

    /// How many more lanes there are.
    #[must_use]
    pub fn free(&self) -> usize {
        MOST - self.all().len()
    }

    fn all(&self) -> MutexGuard<'_, HashSet<(OrgId, ChannelId)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Lane {
    fn drop(&mut self) {
        self.lanes.all().remove(&self.key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_channel_has_one_lane() {
        let lanes = Lanes::default();
        let lane = lanes.enter(OrgId(1), ChannelId(1)).unwrap();
        assert!(lanes.enter(OrgId(1), ChannelId(1)).is_none());
        assert!(lanes.enter(OrgId(2), ChannelId(1)).is_some());
        drop(lane);
        assert!(lanes.enter(OrgId(1), ChannelId(1)).is_some());
        assert_eq!(lanes.free(), MOST);
    }
}
