//! `/graphql`: the schema over HTTP, WebSocket, and server-sent events, and the execution of documents.
//!
//! - `documents`, `document_cost`: the document cache, and limits on the size of documents
//! - `validation`, with `literals` and `conflicts`: the validity of documents · `execution`: the part of a document
//!   that a request executes
//! - `introspection`: cached introspection · `secrets`: removes secrets from stored answers
//! - `render`: responses as bytes · `observe`: metrics and traces of root fields
//! - [`http`]: the endpoint

mod conflicts;
mod document_cost;
mod documents;
mod escapes;
mod execution;
pub mod http;
mod introspection;
mod literals;
mod observe;
mod render;
mod secrets;
mod single_root;
mod validation;

use std::sync::Arc;

pub use self::{
    documents::{Document, Documents},
    introspection::Introspection,
    render::{problem_of, render, show, write_value},
    secrets::without_secrets,
};
use super::middleware::HoldsCore;
use crate::{
    core::{Core, config::Config},
    domain::people::oidc::Providers,
    graphql::{self as schema, MusterSchema},
    resolvers::Catalogue,
};

/// Executes documents: those of `/graphql`, and the stored ones of `/v1` and `/mcp`.
pub struct Graphql {
    pub core: Arc<Core>,
    pub schema: MusterSchema,
    pub catalogue: Arc<Catalogue>,
    /// Cached documents: parsed, validated, and planned.
    pub documents: Documents,
    pub introspection: Introspection,
}

impl Graphql {
    /// Starts with empty caches.
    #[must_use]
    pub fn new(core: &Arc<Core>, catalogue: &Arc<Catalogue>, providers: &Arc<Providers>) -> Self {
        Self {
            core: Arc::clone(core),
            schema: build(&core.config, catalogue, providers),
            catalogue: Arc::clone(catalogue),
            documents: Documents::new(&core.config.limits),
            introspection: Introspection::default(),
        }
    }
}

impl HoldsCore for Arc<Graphql> {
    fn core(&self) -> &Arc<Core> {
        &self.core
    }
}

/// The schema with the data its resolvers need. `config` limits what one request may ask for.
fn build(config: &Config, catalogue: &Arc<Catalogue>, providers: &Arc<Providers>) -> MusterSchema {
    let builder = schema::schema_builder()
        .data(Arc::clone(catalogue))
        .data(Arc::clone(providers))
        .extension(validation::KeepValidation)
        .limit_complexity(config.limits.graphql_complexity)
        .limit_directives(10);
    let observed = config.metrics.listen.is_some() || config.traces.endpoint.is_some();
    let builder = if observed { builder.extension(observe::Observe) } else { builder };
    if config.introspection { builder.finish() } else { builder.disable_introspection().finish() }
}
