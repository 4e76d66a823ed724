//! Keeps made-up names of signing keys from causing database queries (`signing.rs`).

use std::time::Instant;

use moka::sync::Cache;
use tokio::sync::Mutex;

use crate::base::bounds;

/// Keeps unknown names from querying the database.
pub struct Lookups {
    /// The names that were unknown at the last lookup.
    pub(super) unknown: Cache<String, ()>,
    /// The lookups of the current second.
    pub(super) recent: Mutex<(Option<Instant>, u32)>,
}

impl Default for Lookups {
    fn default() -> Self {
        Self {
            unknown: Cache::builder().max_capacity(1_000).time_to_live(bounds::CACHE_AGE).build(),
            recent: Mutex::default(),
        }
    }
}
