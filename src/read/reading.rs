//! What reading for one request takes: its loaders, its plans, and the room for what it is answered with.

use std::sync::Arc;

use super::{Plans, Share, fetch::Loaders};

/// What reading for one request takes. It lives as long as the request.
#[derive(Default)]
pub struct Reading {
    /// The data loaders.
    pub(super) loaders: Loaders,
    /// The plans of the document, where the service keeps the document.
    plans: Option<Arc<Plans>>,
    /// Whether root values may be JSON bytes, which only our own edges know how to write.
    raw: bool,
    /// How much room what root fields are answered with takes.
    pub answered: Share,
}

impl Reading {
    /// For an edge that copies root values as `raw` bytes, or takes values apart.
    #[must_use]
    pub fn new(plans: Option<Arc<Plans>>, raw: bool, answered: Share) -> Self {
        Self { loaders: Loaders::default(), plans, raw, answered: answered.copied(raw) }
    }

    /// The plans of the document, where the service keeps the document.
    pub(super) fn plans(&self) -> Option<&Plans> {
        self.plans.as_deref()
    }

    /// Whether root values may be JSON bytes.
    #[must_use]
    pub fn is_raw(&self) -> bool {
        self.raw
    }
}
