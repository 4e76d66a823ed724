//! The organizations that have stored as much as their plan allows. Messages are counted in their conversations' rows
//! and summed each minute, so that they do not all wait for one row of the organization. Between two sums, the last
//! result counts.

use std::collections::HashSet;

use parking_lot::RwLock;

use crate::base::ids::OrgId;

/// The organizations whose storage was full at this process's last look.
#[derive(Default)]
pub struct FullStorage(RwLock<HashSet<OrgId>>);

impl FullStorage {
    /// Whether an organization's storage is full.
    #[must_use]
    pub fn has(&self, org: OrgId) -> bool {
        self.0.read().contains(&org)
    }

    /// Replaces the set. Returns the organizations that were not full before.
    pub fn replace(&self, full: HashSet<OrgId>) -> Vec<OrgId> {
        let mut known = self.0.write();
        let new = full.difference(&known).copied().collect();
        *known = full;
        new
    }
}
