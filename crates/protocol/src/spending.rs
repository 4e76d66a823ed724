//! Money and tokens: prices of model calls, leases to pay for them, and actual costs.
//!
//! The control plane leases a part of the remaining budget to a host. The host deducts from it in memory before each
//! call and reports the actual cost. So a disconnected host spends at most its leases.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::event::Usage;

/// The prices of a model, in millionths of the currency per million tokens. Null is unknown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Price {
    /// The model; a trailing `*` matches any suffix. The longest match wins.
    pub model: String,
    /// Tokens read, except cached ones.
    pub input: i64,
    /// Tokens written.
    pub output: i64,
    /// Tokens read from a cache.
    pub cache_read: Option<i64>,
    /// Tokens written to a cache.
    pub cache_write: Option<i64>,
}

impl Price {
    /// The surcharge for caching these tokens for an hour, in millionths, rounded up. Only Anthropic offers that, at
    /// twice the input price.
    #[must_use]
    pub fn of_hour(&self, tokens: i64) -> i64 {
        let usual = self.cache_write.unwrap_or(self.input);
        let more = i128::from(self.input) * 2 - i128::from(usual);
        let sum = i128::from(tokens.max(0)) * more.max(0);
        i64::try_from((sum + 999_999) / 1_000_000).unwrap_or(i64::MAX)
    }
}

/// The price of a model: the longest matching name; an exact name beats the same one with a star. A provider prefix
/// (`anthropic/claude-…`) is ignored.
#[must_use]
pub fn price_of<'a>(prices: impl IntoIterator<Item = &'a Price>, model: &str) -> Option<&'a Price> {
    let bare = model.rsplit('/').next().unwrap_or(model);
    let matches = |price: &&Price| match price.model.strip_suffix('*') {
        Some(begin) => model.starts_with(begin) || bare.starts_with(begin),
        None => price.model == model || price.model == bare,
    };
    let worth = |price: &&Price| (price.model.trim_end_matches('*').len(), !price.model.ends_with('*'));
    prices.into_iter().filter(matches).max_by_key(worth)
}

/// Permission to spend. Null is unlimited.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Lease {
    /// Identifies it.
    pub id: i64,
    /// Money, in millionths of the currency.
    pub cost_micro: Option<i64>,
    /// Tokens: input, output and those written to a cache.
    pub tokens: Option<i64>,
    /// When it expires.
    pub until: i64,
}

/// A request for a lease.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LeaseAsked {
    /// The model of the waiting call.
    pub model: String,
    /// Identifies the request among those about the agent. If it is repeated because the answer was lost, it gets the
    /// same lease.
    pub question: i64,
    /// Leases that are no longer drawn on. Their remainders are returned before the request is decided.
    pub finished: Vec<Finished>,
}

/// A lease that is no longer drawn on, and the total drawn by its calls. Some of them may not be reported yet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Finished {
    /// The lease.
    pub lease_id: i64,
    /// Money, in millionths of the currency.
    pub cost_micro: i64,
    /// Tokens.
    pub tokens: i64,
}

/// A completed model call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ModelCall {
    /// The turn. Null if none or several were running.
    pub turn_id: Option<i64>,
    /// The provider.
    pub provider: String,
    /// The model.
    pub model: String,
    /// When the call was made.
    pub started_at: i64,
    /// How long it took, in milliseconds.
    pub millis: i64,
    /// The HTTP status; null: the model could not be reached, or the agent disconnected.
    pub status: Option<u16>,
    /// Its usage.
    pub usage: Usage,
    /// How many of the cached tokens are kept for an hour; null: none or unknown.
    pub cache_hour: Option<i64>,
    /// The lease that paid for it.
    pub lease_id: Option<i64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_hour_in_a_cache_costs_twice_the_input() {
        let price = |input, cache_write| Price {
            model: String::new(),
            input,
            output: 0,
            cache_read: None,
            cache_write,
        };
        let of_hour = |input, cache_write, tokens| price(input, cache_write).of_hour(tokens);
        assert_eq!(of_hour(3_000_000, Some(3_750_000), 1000), 2250);
        assert_eq!(of_hour(3_000_000, None, 1000), 3000);
        assert_eq!(of_hour(3_000_000, Some(9_000_000), 1000), 0, "it is the price of an hour already");
        assert_eq!((of_hour(1, None, 1), of_hour(1, None, -1)), (1, 0));
        assert_eq!(of_hour(i64::MAX, Some(0), i64::MAX), i64::MAX);
    }

    #[test]
    fn the_longest_name_counts_for_every_provider() {
        let price = |model: &str, input| Price {
            model: model.to_owned(),
            input,
            output: 0,
            cache_read: None,
            cache_write: None,
        };
        let prices =
            [price("large-*", 2), price("large-2", 3), price("large-2*", 4), price("house/small", 5)];
        let input = |model| price_of(&prices, model).map(|price| price.input);
        assert_eq!([input("large-2"), input("large-2x"), input("large-1")], [Some(3), Some(4), Some(2)]);
        assert_eq!(
            [input("vendor/large-2"), input("models/large-1"), input("a/b/large-2x")],
            [Some(3), Some(2), Some(4)]
        );
        assert_eq!(
            [input("house/small"), input("small"), input("x"), input("")],
            [Some(5), None, None, None]
        );
    }
}
