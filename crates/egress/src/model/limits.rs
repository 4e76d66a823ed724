//! A provider's refusal: its text, and when to retry.

use http::{HeaderMap, header};
use serde_json::Value;

pub fn refusal_text(body: &[u8]) -> String {
    let text = match muster_json::from_slice::<Value>(body) {
        Ok(body) => {
            let error = body.get("error").or(body.pointer("/0/error")).unwrap_or(&body);
            let message = error.get("message").and_then(Value::as_str).or(error.as_str());
            message.map_or_else(|| error.to_string(), str::to_owned)
        }
        Err(_) => String::from_utf8_lossy(body).trim().to_owned(),
    };
    text.chars().take(500).collect()
}

/// Time until the provider takes calls again, in milliseconds since 1970.
pub fn retry_at(headers: &HeaderMap, body: &[u8], now: i64) -> Option<i64> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    let after = text("retry-after-ms").and_then(|value| value.parse::<f64>().ok());
    let after = after.or_else(|| Some(text(header::RETRY_AFTER.as_str())?.parse::<f64>().ok()? * 1000.0));
    let date = || {
        let date = jiff::fmt::rfc2822::parse(text(header::RETRY_AFTER.as_str())?).ok()?;
        Some(date.timestamp().as_millisecond())
    };
    let unified =
        || Some(text("anthropic-ratelimit-unified-reset")?.parse::<i64>().ok()?.saturating_mul(1000));
    // Of several windows, only the exhausted one counts.
    let windows = || {
        let found =
            ["requests", "tokens", "input-tokens", "output-tokens"].into_iter().filter_map(|window| {
                let is_empty = |name: &str| text(name).is_none_or(|left| left == "0");
                let anthropic = format!("anthropic-ratelimit-{window}");
                let openai = format!("x-ratelimit-reset-{window}");
                if let Some(reset) = text(&format!("{anthropic}-reset")) {
                    let at = reset.parse::<jiff::Timestamp>().ok()?.as_millisecond();
                    return is_empty(&format!("{anthropic}-remaining")).then_some(at);
                }
                let wait = parse_span(text(&openai)?)?;
                is_empty(&format!("x-ratelimit-remaining-{window}")).then_some(now.saturating_add(wait))
            });
        found.max()
    };
    let google = || {
        let body = muster_json::from_slice::<Value>(body).ok()?;
        let details = body.pointer("/error/details").or(body.pointer("/0/error/details"))?.as_array()?;
        let delay = details.iter().find_map(|detail| detail.get("retryDelay")?.as_str())?;
        Some(now.saturating_add(parse_span(delay)?))
    };
    let found = after
        .map(|wait| now.saturating_add(wait as i64))
        .or_else(date)
        .or_else(unified)
        .or_else(windows)
        .or_else(google);
    // Waits beyond 35 days are ignored.
    found.filter(|at| (now..now + 35 * 24 * 3600 * 1000).contains(at))
}

/// Parses a span such as `6m0s`, `1.5s` or `20ms` into milliseconds.
fn parse_span(text: &str) -> Option<i64> {
    let (mut sum, mut rest) = (0.0, text);
    while !rest.is_empty() {
        let end = rest.find(|char: char| !char.is_ascii_digit() && char != '.')?;
        let number: f64 = rest[..end].parse().ok()?;
        let unit = &rest[end..];
        let length = unit.find(|char: char| char.is_ascii_digit()).unwrap_or(unit.len());
        sum += number
            * match &unit[..length] {
                "ms" => 1.0,
                "s" => 1000.0,
                "m" => 60_000.0,
                "h" => 3_600_000.0,
                "d" => 86_400_000.0,
                _ => return None,
            };
        rest = &unit[length..];
    }
    Some(sum as i64)
}

#[cfg(test)]
mod tests {
    use http::{HeaderName, HeaderValue};

    use super::*;

    const NOW: i64 = 1_700_000_000_000;

    fn announced(headers: &[(&'static str, &'static str)], body: &str) -> Option<i64> {
        let all = headers
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)));
        retry_at(&all.collect(), body.as_bytes(), NOW).map(|at| at - NOW)
    }

    #[test]
    fn each_provider_says_until_when_in_its_own_way() {
        assert_eq!(announced(&[("retry-after", "20")], ""), Some(20_000));
        assert_eq!(announced(&[("retry-after", "Tue, 14 Nov 2023 22:14:20 GMT")], ""), Some(60_000));
        assert_eq!(announced(&[("anthropic-ratelimit-unified-reset", "1700000100")], ""), Some(100_000));
        let openai = [
            ("x-ratelimit-reset-requests", "1s"),
            ("x-ratelimit-remaining-requests", "7"),
            ("x-ratelimit-reset-tokens", "6m0.5s"),
            ("x-ratelimit-remaining-tokens", "0"),
        ];
        assert_eq!(announced(&openai, ""), Some(360_500));
        let google = r#"{"error":{"details":[{"@type":"x"},{"retryDelay":"34.5s"}]}}"#;
        assert_eq!(announced(&[], google), Some(34_500));
        assert_eq!(announced(&[], "{}"), None);
        assert_eq!(announced(&[("retry-after", "99999999")], ""), None, "an implausible wait is ignored");
    }

    #[test]
    fn a_time_beyond_all_times_is_none() {
        for far in ["9223372036854775807", "-9223372036854775808", "1e300", "NaN", "inf"] {
            assert_eq!(announced(&[("retry-after", far)], ""), (far == "NaN").then_some(0), "{far}");
            assert_eq!(announced(&[("anthropic-ratelimit-unified-reset", far)], ""), None, "{far}");
        }
        assert_eq!(announced(&[("x-ratelimit-reset-tokens", "99999999999999999999d")], ""), None);
        assert_eq!(announced(&[], r#"{"error":{"details":[{"retryDelay":"99999999999999999999d"}]}}"#), None);
    }

    #[test]
    fn a_refusals_text_is_extracted() {
        let body = br#"{"error":{"message":"Incorrect API key provided: ***."}}"#;
        assert_eq!(refusal_text(body), "Incorrect API key provided: ***.");
        assert_eq!(refusal_text(b"plain"), "plain");
    }
}
