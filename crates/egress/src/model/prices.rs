//! Prices of tokens.

use muster_protocol::{event::Usage, spending::Price};

use super::call::Question;
pub use super::lease_pool::Bound;

/// The maximal cost of a question.
pub fn bound(price: Option<&Price>, question: &Question) -> Bound {
    let cost = price.map(|price| {
        let dearest = price.input.max(price.cache_write.unwrap_or(0));
        micro([(question.input, dearest), (question.output, price.output)])
    });
    Bound { tokens: question.input.saturating_add(question.output), cost }
}

/// The cost of a call. `hour`: cache writes kept for an hour.
pub fn call_cost(price: Option<&Price>, usage: &Usage, hour: Option<i64>) -> Bound {
    let [input, output, read, write] =
        [usage.input, usage.output, usage.cache_read, usage.cache_write].map(|tokens| tokens.unwrap_or(0));
    let cost = price.map(|price| {
        let (cached, kept) =
            (price.cache_read.unwrap_or(price.input), price.cache_write.unwrap_or(price.input));
        let cost = micro([(input, price.input), (output, price.output), (read, cached), (write, kept)]);
        cost.saturating_add(price.of_hour(hour.unwrap_or(0).min(write)))
    });
    Bound { tokens: input.saturating_add(output).saturating_add(write), cost }
}

/// Rounded up, so that many small calls are not free.
fn micro(parts: impl IntoIterator<Item = (i64, i64)>) -> i64 {
    let sum: i128 = parts.into_iter().map(|(tokens, price)| i128::from(tokens) * i128::from(price)).sum();
    i64::try_from((sum + 999_999) / 1_000_000).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_have_their_prices() {
        let price = |input| Price {
            model: "m".to_owned(),
            input,
            output: 10_000_000,
            cache_read: Some(100_000),
            cache_write: None,
        };
        let usage = Usage { input: Some(1000), output: Some(10), cache_read: Some(1000), ..Usage::default() };
        // 1000 × 1 + 10 × 10 + 1000 × 0.1
        assert_eq!(
            call_cost(Some(&price(1_000_000)), &usage, None),
            Bound { tokens: 1010, cost: Some(1200) }
        );
        assert_eq!(call_cost(None, &usage, None).cost, None);
        let one = Usage { input: Some(1), ..Usage::default() };
        assert_eq!(call_cost(Some(&price(1)), &one, None).cost, Some(1), "rounded up");
        let kept = Usage { cache_write: Some(1000), ..Usage::default() };
        let price = Price { cache_write: Some(1_250_000), ..price(1_000_000) };
        // All for five minutes, 400 of them for an hour, and more than there are.
        for (hour, cost) in [(None, 1250), (Some(400), 750 + 800), (Some(5000), 2000)] {
            assert_eq!(call_cost(Some(&price), &kept, hour).cost, Some(cost), "{hour:?}");
        }
    }
}
