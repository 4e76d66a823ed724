//! The `/v1` interface: stored GraphQL documents behind paths.
//!
//! - `routes.rs` is the table: method, path, operation, success status. A new route is one line there and one
//!   document in `schema/rest/`. There are no handlers.
//! - `etag.rs`: conditional requests.
//! - `operation.rs` turns a document into an operation, and a request into its variables.
//! - `openapi.rs` describes all of it, from the same table and schema, with the schemas from `shapes.rs`;
//!   `file_paths.rs` adds the routes of files.

mod etag;
mod file_paths;
pub mod openapi;
mod operation;
mod routes;
mod serve;
mod shapes;

use std::sync::Arc;

pub use self::{
    etag::EtagSource,
    operation::{Given, Operation, Source},
    routes::{ROUTES, Route, Routes},
    serve::router,
};
pub(crate) use self::{
    serve::{execute, prepared},
    shapes::{Shapes, is_required},
};
use super::{graphql::Graphql, middleware::HoldsCore};
use crate::core::Core;

pub struct Rest {
    pub core: Arc<Core>,
    pub graphql: Arc<Graphql>,
    pub routes: Routes,
}

impl Rest {
    /// Prepares the operations.
    ///
    /// # Errors
    /// A stored document that doesn't fit the schema.
    pub fn new(graphql: &Arc<Graphql>) -> anyhow::Result<Self> {
        let routes = Routes::load(&graphql.catalogue)?;
        Ok(Self { core: Arc::clone(&graphql.core), graphql: Arc::clone(graphql), routes })
    }
}

impl HoldsCore for Arc<Rest> {
    fn core(&self) -> &Arc<Core> {
        &self.core
    }
}
