//! The context for reading in one request: its loaders, its plans, and its budget for answers.

use std::sync::Arc;

use super::{AnswerBudget, Plans, fetch::Loaders};

/// The context for reading in one request. It lives as long as the request.
#[derive(Default)]
pub struct Reading {
    pub(super) loaders: Loaders,
    plans: Option<Arc<Plans>>,
    /// Whether root values may be JSON bytes, which only our own edges can write.
    raw: bool,
    /// The size of the root fields' answers.
    pub answered: AnswerBudget,
}

impl Reading {
    /// `raw` is true for an edge that copies root values as bytes, and false for one that inspects them.
    #[must_use]
    pub fn new(plans: Option<Arc<Plans>>, raw: bool, answered: AnswerBudget) -> Self {
        Self { loaders: Loaders::default(), plans, raw, answered: answered.copied(raw) }
    }

    pub(super) fn plans(&self) -> Option<&Plans> {
        self.plans.as_deref()
    }

    /// Whether root values may be JSON bytes.
    #[must_use]
    pub fn is_raw(&self) -> bool {
        self.raw
    }
}
