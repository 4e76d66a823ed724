//! The channels that this process sends to at the moment. Each has a lane of its own, so that one whose vendor hangs
//! holds up no other; and an organization has its share of them ([`What::Lanes`](crate::core::ledger::What)), so that one
//! whose receivers all hang holds up no other organization.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use crate::{
    base::ids::{ChannelId, OrgId},
    core::ledger::{Held, Holder, Line},
};

/// All lanes. Cheap to clone.
#[derive(Clone, Default)]
pub struct Lanes(Arc<Mutex<HashSet<(OrgId, ChannelId)>>>);

/// A channel's lane. Dropping it gives it up.
pub struct Lane {
    lanes: Lanes,
    key: (OrgId, ChannelId),
    _held: Held,
}

impl Lanes {
    /// Takes a channel's lane. `None`: someone has it, or the organization has its share, or too many are taken.
    #[must_use]
    pub fn enter(&self, line: &Arc<Line>, org: OrgId, channel: ChannelId) -> Option<Lane> {
        let (mut all, key) = (self.all(), (org, channel));
        if all.contains(&key) {
            return None;
        }
        let held = line.take_free(Holder::Organization(org.0), 1)?;
        all.insert(key);
        Some(Lane { lanes: self.clone(), key, _held: held })
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

/// SQL for the channels in which something is due, the oldest first, without hiding those of one organization behind those of
/// another. Between the two parts is what selects `organization_id`, `channel_id` and `available_at` of what is due. A round
/// looks at 128 channels of an organization: those that have a lane are among them, so twice a share.
pub const OLDEST_DUE: [&str; 2] = [
    "SELECT organization_id, channel_id FROM (SELECT organization_id, channel_id, MIN(available_at) AS since, \
     ROW_NUMBER() OVER (PARTITION BY organization_id ORDER BY MIN(available_at), channel_id) AS nth FROM (",
    ") due GROUP BY organization_id, channel_id) first WHERE nth <= 128 ORDER BY since, channel_id",
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::core::{
        config::Config,
        ledger::{Ledger, What},
    };

    #[test]
    fn a_channel_has_one_lane_and_an_organization_its_share() {
        let ledger = Ledger::new(&Config::read(None, BTreeMap::new()).unwrap());
        let (lanes, line) = (Lanes::default(), ledger.line(What::Lanes));
        let enter = |org, channel| lanes.enter(line, OrgId(org), ChannelId(channel));
        let lane = enter(1, 1).unwrap();
        assert!(enter(1, 1).is_none());
        drop(lane);
        let of_one: Vec<_> = (1..=300).filter_map(|channel| enter(1, channel)).collect();
        assert_eq!((of_one.len(), line.total()), (64, 64));
        assert!(enter(2, 1).is_some());
        drop(of_one);
        assert!(enter(1, 1).is_some());
        assert_eq!(line.total(), 0);
    }
}
