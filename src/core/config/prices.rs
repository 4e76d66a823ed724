//! The prices of models: data, from `policies/prices.toml` or the operator's file in its place.

use std::path::Path;

use jiff::civil::Date;
use muster_protocol::{event::Usage, spending::Price};
use serde::Deserialize;

use super::{error::ConfigError, file};

use crate::base::bounds;

/// The prices that are built in.
const BUILT_IN: &str = include_str!("../../../policies/prices.toml");
/// The most prices: a host is sent all of a currency, and a frame of the protocol must hold them.
const MOST: usize = 500;
/// Prices are for this many tokens.
const MILLION: i128 = 1_000_000;

/// The prices in force.
#[derive(Clone, Debug)]
pub struct Prices(Vec<PriceLine>);

/// A price as it is written.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct PriceLine {
    model: String,
    #[serde(default = "dollars")]
    currency: String,
    from: toml::value::Datetime,
    input: i64,
    output: i64,
    cache_read: Option<i64>,
    cache_write: Option<i64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    price: Vec<PriceLine>,
}

fn dollars() -> String {
    "USD".to_owned()
}

/// A price, and since when it holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Since {
    /// The price.
    pub price: Price,
    /// The first day.
    pub from: Date,
}

impl Prices {
    /// The operator's prices, or the built-in ones.
    pub(super) fn read(path: Option<&Path>) -> Result<Self, ConfigError> {
        let Some(path) = path else { return Self::parse("the built-in prices", BUILT_IN) };
        let (name, text) = file::read(path)?;
        Self::parse(&name, &text)
    }

    fn parse(name: &str, text: &str) -> Result<Self, ConfigError> {
        let file: File = file::parse(name, text)?;
        let mut mistakes = Vec::new();
        if file.price.len() > MOST {
            mistakes.push(format!("{name}: {} prices; there may be at most {MOST}", file.price.len()));
        }
        for (n, line) in file.price.iter().enumerate() {
            let mut note =
                |wrong: &str| mistakes.push(format!("{name}: price of \"{}\": {wrong}", line.model));
            if line.model.trim_end_matches('*').contains('*') || line.model.is_empty() {
                note("`*` may only be at the end");
            }
            if line.currency.len() != 3 || !line.currency.bytes().all(|byte| byte.is_ascii_uppercase()) {
                note("`currency` has three capital letters");
            }
            if line.day().is_none() {
                note("`from` is a day, such as 2026-06-01");
            }
            if !line.amounts().all(|amount| (0..=bounds::AMOUNT).contains(&amount)) {
                note("an amount is negative or too large");
            }
            let is_same = |other: &PriceLine| other.key() == line.key();
            if file.price[..n].iter().any(is_same) {
                note("it is given twice for this currency and day");
            }
        }
        if mistakes.is_empty() { Ok(Self(file.price)) } else { Err(ConfigError(mistakes)) }
    }

    /// The currencies with a price.
    pub fn currencies(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|line| line.currency.as_str())
    }

    /// The prices in this currency that hold on this day: one for each model, in the order of the models.
    #[must_use]
    pub fn on(&self, currency: &str, day: Date) -> Vec<Since> {
        let of_currency = self.0.iter().filter(|line| line.currency == currency);
        let mut held: Vec<Since> =
            of_currency.filter_map(PriceLine::since).filter(|one| one.from <= day).collect();
        held.sort_by(|one, other| (&one.price.model, other.from).cmp(&(&other.price.model, one.from)));
        held.dedup_by(|next, kept| next.price.model == kept.price.model);
        held
    }
}

impl PriceLine {
    fn day(&self) -> Option<Date> {
        let date = self.from.date.filter(|_| self.from.time.is_none())?;
        let (year, month, day) = (i16::try_from(date.year).ok()?, date.month, date.day);
        Date::new(year, i8::try_from(month).ok()?, i8::try_from(day).ok()?).ok()
    }

    fn amounts(&self) -> impl Iterator<Item = i64> {
        [Some(self.input), Some(self.output), self.cache_read, self.cache_write].into_iter().flatten()
    }

    fn key(&self) -> (&str, &str, Option<Date>) {
        (&self.model, &self.currency, self.day())
    }

    fn since(&self) -> Option<Since> {
        let price = Price {
            model: self.model.clone(),
            input: self.input,
            output: self.output,
            cache_read: self.cache_read,
            cache_write: self.cache_write,
        };
        Some(Since { price, from: self.day()? })
    }
}

/// The cost of this usage, in millionths, rounded up. `None` if the usage is unknown.
#[must_use]
pub fn cost_of(price: &Price, usage: &Usage) -> Option<i64> {
    let classes = [
        (usage.input, price.input),
        (usage.output, price.output),
        (usage.cache_read, price.cache_read.unwrap_or(price.input)),
        (usage.cache_write, price.cache_write.unwrap_or(price.input)),
    ];
    if classes.iter().all(|(tokens, _)| tokens.is_none()) {
        return None;
    }
    let cost = |(tokens, price): (Option<i64>, i64)| i128::from(tokens.unwrap_or(0)) * i128::from(price);
    let sum: i128 = classes.into_iter().map(cost).sum();
    i64::try_from((sum + MILLION - 1) / MILLION).ok()
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;
    use muster_protocol::spending::price_of;

    use super::*;

    fn built_in(day: Date) -> Vec<Price> {
        let prices = Prices::read(None).unwrap();
        prices.on("USD", day).into_iter().map(|since| since.price).collect()
    }

    #[test]
    fn the_longest_name_that_has_come_counts() {
        let now = built_in(date(2026, 6, 1));
        let input = |model: &str| price_of(&now, model).map(|price| price.input);
        assert_eq!(input("claude-opus-4-5-20251101"), Some(5_000_000));
        assert_eq!(input("anthropic/claude-opus-4-1-20250805"), Some(15_000_000));
        assert_eq!(input("gpt-4o-mini-2024-07-18"), Some(150_000));
        assert_eq!(input("models/gemini-2.5-flash-lite"), Some(100_000));
        assert_eq!((input("gpt-5-pro"), input("unknown-model"), input("")), (None, None, None));
        let before = built_in(date(2025, 11, 23));
        assert_eq!(price_of(&before, "claude-opus-4-5"), None, "there was none");
        assert!(Prices::read(None).unwrap().on("EUR", date(2026, 6, 1)).is_empty());
    }

    #[test]
    fn no_model_has_the_price_of_one_that_it_is_named_after() {
        let now = built_in(date(2026, 6, 1));
        for model in [
            "gpt-4o-audio-preview",
            "gpt-4o-realtime-preview-2024-12-17",
            "gpt-4o-search-preview",
            "gpt-4o-mini-audio-preview",
            "gpt-4o-mini-search-preview-2025-03-11",
            "gpt-4.1-mini-tts",
            "gpt-5-search-api",
            "gpt-5.1-pro",
            "gpt-5.10",
            "o4-mini-deep-research",
            "o3-pro",
            "o3-deep-research",
            "gemini-3-pro-image-preview",
            "gemini-2.5-flash-image",
            "gemini-2.5-flash-image-preview",
            "gemini-2.5-flash-native-audio-preview-09-2025",
            "gemini-2.5-flash-preview-tts",
            "gemini-2.5-pro-preview-tts",
            "gemini-2.0-flash-preview-image-generation",
            "gemini-2.0-flash-live-001",
            "claude-opus-4-6",
            "claude-sonnet-4-50",
        ] {
            assert_eq!(price_of(&now, model), None, "{model}");
        }
        let old = price_of(&now, "gpt-4o-2024-05-13").unwrap();
        assert_eq!((old.input, old.output, old.cache_read), (5_000_000, 15_000_000, None));
    }

    #[test]
    fn a_price_holds_from_its_day_on() {
        let text = "[[price]]\nmodel = 'm'\nfrom = 2026-01-01\ninput = 1\noutput = 1\n\
                    [[price]]\nmodel = 'm'\nfrom = 2026-02-01\ninput = 2\noutput = 1\n";
        let prices = Prices::parse("x", text).unwrap();
        let input = |day| prices.on("USD", day).first().map(|since| since.price.input);
        assert_eq!(input(date(2025, 12, 31)), None);
        assert_eq!((input(date(2026, 1, 31)), input(date(2026, 2, 1))), (Some(1), Some(2)));
    }

    #[test]
    fn a_cost_is_rounded_up_and_cached_tokens_cost_their_own() {
        let price = Price {
            model: String::new(),
            input: 3_000_000,
            output: 15_000_000,
            cache_read: Some(300_000),
            cache_write: None,
        };
        let usage = |input, output, cache_read, cache_write| Usage {
            input,
            output,
            cache_read,
            cache_write,
            cost_micro: None,
        };
        assert_eq!(cost_of(&price, &usage(Some(1000), Some(100), None, None)), Some(4500));
        assert_eq!(cost_of(&price, &usage(Some(0), None, Some(1), None)), Some(1));
        assert_eq!(cost_of(&price, &usage(None, None, None, Some(10))), Some(30));
        assert_eq!(cost_of(&price, &usage(None, None, None, None)), None);
    }

    #[test]
    fn a_file_says_what_is_wrong_with_it() {
        for (line, wrong) in [
            ("model = 'a*b'", "at the end"),
            ("currency = 'usd'", "three capital"),
            ("from = 2026-01-01T00:00:00Z", "is a day"),
            ("input = -1", "negative"),
            ("surprise = 1", "unknown field"),
        ] {
            let name = line.split(' ').next().unwrap();
            let lines = ["model = 'm'", "currency = 'USD'", "from = 2026-01-01", "input = 1", "output = 1"];
            let kept = lines.into_iter().filter(|kept| !kept.starts_with(name)).chain([line]);
            let text = format!("[[price]]\n{}\n", kept.collect::<Vec<_>>().join("\n"));
            let said = Prices::parse("x", &text).unwrap_err().to_string();
            assert!(said.contains(wrong), "{line}: {said}");
        }
    }
}
