//! The queue of this process: how it is woken, and the lanes in which it works at the moment. Each organization has a
//! share of the lanes, so that one whose receivers all hang does not hold up the others.

use std::{collections::HashSet, sync::Arc};

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::watch;

use super::send_limit::SendLimits;
use crate::{
    base::ids::OrgId,
    core::{
        resource_limits::{Held, Holder, ResourceLimit},
        store::sql::row,
    },
};

row! {
    /// A lane: the jobs of one kind of a channel, or of an event endpoint.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct LaneKey {
        organization_id: OrgId,
        /// The id of the channel or the endpoint.
        lane_id: i64,
    }
}

/// The queue of a process. Cheap to clone.
#[derive(Clone, Default)]
pub struct Queue {
    pub(super) wake: watch::Sender<()>,
    pub(super) lanes: Lanes,
    /// How often channels may send.
    pub send_limits: SendLimits,
}

type Key = (&'static str, LaneKey);

/// All lanes, by kind. Cheap to clone.
#[derive(Clone, Default)]
pub(super) struct Lanes(Arc<Mutex<HashSet<Key>>>);

/// A lane in which a task works. Dropping it leaves the lane.
pub(super) struct LaneGuard {
    lanes: Lanes,
    key: Key,
    _held: Held,
}

impl Lanes {
    /// Enters a lane. `None` if a task is in it, the organization has used its share, or all lanes are taken.
    pub(super) fn enter(
        &self,
        limit: &Arc<ResourceLimit>,
        kind: &'static str,
        lane: LaneKey,
    ) -> Option<LaneGuard> {
        let (mut all, key) = (self.all(), (kind, lane));
        if all.contains(&key) {
            return None;
        }
        let held = limit.take_free(Holder::Organization(lane.organization_id.0), 1)?;
        all.insert(key);
        Some(LaneGuard { lanes: self.clone(), key, _held: held })
    }

    fn all(&self) -> MutexGuard<'_, HashSet<Key>> {
        self.0.lock()
    }
}

impl Drop for LaneGuard {
    fn drop(&mut self) {
        self.lanes.all().remove(&self.key);
    }
}

/// SQL for the lanes with due jobs, the oldest first, so that no organization's lanes are hidden behind another's.
/// Between the two parts stands a SELECT of `organization_id`, `lane_id` and `available_at` of the due rows. A poll
/// takes 128 lanes of an organization, twice its share, because lanes that already have a task are among them.
pub const OLDEST_DUE: [&str; 2] = [
    "SELECT organization_id, lane_id FROM (SELECT organization_id, lane_id, MIN(available_at) AS since, \
     ROW_NUMBER() OVER (PARTITION BY organization_id ORDER BY MIN(available_at), lane_id) AS nth FROM (",
    ") due GROUP BY organization_id, lane_id) first WHERE nth <= 128 ORDER BY since, lane_id",
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::core::{
        config::Config,
        resource_limits::{Resource, ResourceLimits},
    };

    #[test]
    fn a_channel_has_one_lane_and_an_organization_its_share() {
        let resource_limits = ResourceLimits::new(&Config::read(None, BTreeMap::new()).unwrap());
        let (lanes, limit) = (Lanes::default(), resource_limits.limit(Resource::Lanes));
        let enter = |org, channel| {
            let lane = LaneKey { organization_id: OrgId(org), lane_id: channel };
            lanes.enter(limit, "DELIVERY", lane)
        };
        let lane = enter(1, 1).unwrap();
        assert!(enter(1, 1).is_none());
        drop(lane);
        let of_one: Vec<_> = (1..=300).filter_map(|channel| enter(1, channel)).collect();
        assert_eq!((of_one.len(), limit.total()), (64, 64));
        assert!(enter(2, 1).is_some());
        drop(of_one);
        assert!(enter(1, 1).is_some());
        assert_eq!(limit.total(), 0);
    }
}
