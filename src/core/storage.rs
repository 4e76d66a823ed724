//! Which organizations have stored as much as their plan allows. Messages are counted in their conversations' rows and summed each
//! minute, so that none of them waits for a row that all of an organization's messages change; in between this is what is known.

use std::collections::HashSet;

use parking_lot::RwLock;

use crate::base::ids::OrgId;

/// The organizations whose storage is full, as this process has found last.
#[derive(Default)]
pub struct Full(RwLock<HashSet<OrgId>>);

impl Full {
    /// Whether an organization's storage is full.
    #[must_use]
    pub fn has(&self, org: OrgId) -> bool {
        self.0.read().contains(&org)
    }

    /// Remembers which are full. Returns those that were not before.
    pub fn become_of(&self, full: HashSet<OrgId>) -> Vec<OrgId> {
        let mut known = self.0.write();
        let new = full.difference(&known).copied().collect();
        *known = full;
        new
    }
}
