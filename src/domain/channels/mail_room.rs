//! The memory for mails while they are read: an organization's share of a resource limit.

use std::sync::Arc;

use muster_channels::{MemoryBudget, MemoryGrant};

use super::entity::channels::Model;
use crate::core::{
    Core,
    resource_limits::{Held, Holder, Resource, ResourceLimit},
};

/// The memory budget of a mail channel.
pub(super) struct MailMemory {
    limit: Arc<ResourceLimit>,
    holder: Holder,
}

impl MailMemory {
    pub fn for_channel(core: &Core, channel: &Model) -> Self {
        let holder = Holder::Channel(channel.organization_id.0, channel.id.0);
        Self { limit: Arc::clone(core.resource_limits.limit(Resource::Mails)), holder }
    }
}

impl MemoryBudget for MailMemory {
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
