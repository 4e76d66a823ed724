//! The memory that an organization has for mails while they are read: its share of a resource limit.

use std::sync::Arc;

use muster_channels::{MemoryBudget, MemoryGrant};

use super::entity::channels::Model;
use crate::core::{
    Core,
    resource_limits::{Held, Holder, Resource, ResourceLimit},
};

/// The part of a channel.
pub(super) struct MailRoom {
    limit: Arc<ResourceLimit>,
    holder: Holder,
}

impl MailRoom {
    /// That of this channel.
    pub fn of(core: &Core, channel: &Model) -> Self {
        let holder = Holder::Channel(channel.organization_id.0, channel.id.0);
        Self { limit: Arc::clone(core.resource_limits.limit(Resource::Mails)), holder }
    }
}

impl MemoryBudget for MailRoom {
    fn open(&self) -> Box<dyn MemoryGrant> {
        Box::new(Counted(self.limit.take_unchecked(self.holder, 0)))
    }
}

struct Counted(Held);

impl MemoryGrant for Counted {
    fn grow(&mut self, bytes: usize) -> bool {
        self.0.grow_free(bytes)
    }

    fn shrink(&mut self, bytes: usize) {
        self.0.shrink(bytes);
    }
}
