//! The request in async-graphql's context.

use std::sync::Arc;

use async_graphql::ContextBase;

use crate::core::Request;

/// Typed access to the data in async-graphql's context.
pub trait ContextExt {
    fn request(&self) -> &Arc<Request>;
}

impl<T> ContextExt for ContextBase<'_, T> {
    fn request(&self) -> &Arc<Request> {
        self.data_unchecked::<Arc<Request>>()
    }
}
