//! Model prices, as people see them.

use async_graphql::SimpleObject;

use super::{
    budget::{day, zone_of},
    queries,
};
use crate::{
    base::{column::Decimal, problem::Result},
    core::access::Scope,
};

/// The price of a model, in millionths of the currency per million tokens.
#[derive(SimpleObject)]
pub struct ModelPrice {
    /// The model. A name that ends in `*` matches all models with this prefix. The longest match counts.
    pub model: String,
    /// The currency.
    pub currency: String,
    /// The first day on which it applies.
    pub since: String,
    /// Tokens read, except cached ones.
    pub input: Decimal,
    /// Tokens written.
    pub output: Decimal,
    /// Tokens read from a cache. Null: as `input`.
    pub cache_read: Option<Decimal>,
    /// Tokens written to a cache. Null: as `input`.
    pub cache_write: Option<Decimal>,
}

/// The current model prices in the organization's currency.
pub async fn prices_of(scope: &Scope) -> Result<Vec<ModelPrice>> {
    let core = &scope.core;
    let place = queries::currency_and_zone(scope).await?;
    let prices = core.prices.on(&place.currency, day(&zone_of(&place.timezone), core.clock.now()));
    let shown = prices.into_iter().map(|since| ModelPrice {
        model: since.price.model,
        currency: place.currency.clone(),
        since: since.from.to_string(),
        input: Decimal(since.price.input),
        output: Decimal(since.price.output),
        cache_read: since.price.cache_read.map(Decimal),
        cache_write: since.price.cache_write.map(Decimal),
    });
    Ok(shown.collect())
}
