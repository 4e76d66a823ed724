//! `/graphql`: the schema over HTTP, WebSocket and server-sent events, and what of a document is executed.
//!
//! - `documents`, `document_cost`: what is kept of documents, and what they may ask for
//! - `validation`, with `literals` and `conflicts`: what is valid · `execution`: what of it a request executes
//! - `introspection`: what the schema says about itself · `secrets`: what of an answer may be kept
//! - `render`: responses as bytes · `observe`: root fields, measured and traced
//! - [`http`]: the endpoint

mod conflicts;
mod document_cost;
mod documents;
mod execution;
pub mod http;
mod introspection;
mod literals;
mod observe;
mod render;
mod secrets;
mod validation;

use std::sync::Arc;

pub use self::{
    documents::{Document, Documents},
    introspection::Introspection,
    render::{problem_of, render, show, write_value},
    secrets::without_secrets,
};
use super::edge::HoldsCore;
use crate::{
    core::{Core, config::Config},
    fields::Catalogue,
    schema::{self, MusterSchema},
    slices::people::oidc::Providers,
};

/// What executes documents: those of `/graphql`, and the stored ones of `/v1` and `/mcp`.
pub struct Graphql {
    /// What every slice may hold.
    pub core: Arc<Core>,
    /// The schema.
    pub schema: MusterSchema,
    /// What the schema says about itself.
    pub catalogue: Arc<Catalogue>,
    /// Documents that are kept parsed, validated and planned.
    pub documents: Documents,
    /// What the schema says about itself to those who ask.
    pub introspection: Introspection,
}

impl Graphql {
    /// Nothing is kept yet.
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

/// The schema with what a resolver may ask for. `config` bounds what one request may ask for.
fn build(config: &Config, catalogue: &Arc<Catalogue>, providers: &Arc<Providers>) -> MusterSchema {
    let builder = schema::blueprint()
        .data(Arc::clone(catalogue))
        .data(Arc::clone(providers))
        .extension(validation::KeepValidation)
        .limit_complexity(config.limits.graphql_complexity)
        .limit_directives(10);
    let observed = config.metrics.listen.is_some() || config.traces.endpoint.is_some();
    let builder = if observed { builder.extension(observe::Observe) } else { builder };
    if config.introspection { builder.finish() } else { builder.disable_introspection().finish() }
}
