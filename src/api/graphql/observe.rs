//! Metrics and traces of root fields. Part of the schema only if metrics or traces are on.

use std::{sync::Arc, time::Instant};

use async_graphql::{
    ServerResult, Value,
    extensions::{Extension, ExtensionContext, ExtensionFactory, NextResolve, ResolveInfo},
};
use tracing::Instrument;

use crate::core::telemetry::{metrics, traces};

/// Measures and traces root fields. Their selections are read and written as a whole, without resolvers.
pub struct Observe;

impl ExtensionFactory for Observe {
    fn create(&self) -> Arc<dyn Extension> {
        Arc::new(Self)
    }
}

#[async_graphql::async_trait::async_trait]
impl Extension for Observe {
    async fn resolve(
        &self,
        ctx: &ExtensionContext<'_>,
        info: ResolveInfo<'_>,
        next: NextResolve<'_>,
    ) -> ServerResult<Option<Value>> {
        // Owned, because both outlive `info`, which the next step consumes.
        let owner = match info.parent_type {
            "Query" => "query",
            "Mutation" => "mutation",
            "Subscription" => "subscription",
            _ => return next.run(ctx, info).await,
        };
        let field = &info.field.name.node;
        let began = Instant::now();
        let resolved = if traces::on() {
            let span = traces::root_field(owner, field);
            next.run(ctx, info).instrument(span).await
        } else {
            next.run(ctx, info).await
        };
        if let Some(meters) = metrics::on() {
            meters.resolved(owner, field, began.elapsed());
        }
        resolved
    }
}
