//! Usage of a turn. Agents report it in three places: in the prompt's answer (`usage`), in its `_meta.quota`, and as a
//! session's total cost in updates.

use agent_client_protocol_schema::v1::{Cost, PromptResponse};
use muster_protocol::event::Usage;
use serde_json::Value;

/// Tokens from the prompt's answer.
pub fn tokens(response: &PromptResponse) -> Usage {
    if let Some(usage) = &response.usage {
        let number = |count: u64| i64::try_from(count).ok();
        return Usage {
            input: number(usage.input_tokens),
            output: number(usage.output_tokens),
            cache_read: usage.cached_read_tokens.and_then(number),
            cache_write: usage.cached_write_tokens.and_then(number),
            cost_micro: None,
        };
    }
    let quota = response.meta.as_ref().and_then(|meta| meta.get("quota")?.get("token_count"));
    let count = |name| quota.and_then(|quota: &Value| quota.get(name)?.as_i64());
    Usage {
        input: count("input_tokens"),
        output: count("output_tokens"),
        cache_read: count("cached_input_tokens"),
        ..Usage::default()
    }
}

/// An amount of money in millionths of its currency.
pub fn micro(cost: &Cost) -> Option<i64> {
    let micro = (cost.amount * 1e6).round();
    (0.0..1e15).contains(&micro).then_some(micro as i64)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn tokens_come_from_usage_or_else_from_the_quota() {
        let read = |value| tokens(&serde_json::from_value(value).unwrap());
        let usage = json!({ "totalTokens": 9, "inputTokens": 5, "outputTokens": 4, "cachedReadTokens": 2 });
        let told = read(json!({ "stopReason": "end_turn", "usage": usage }));
        assert_eq!(
            (told.input, told.output, told.cache_read, told.cache_write),
            (Some(5), Some(4), Some(2), None)
        );
        let quota = json!({ "quota": { "token_count": { "input_tokens": 7, "output_tokens": 1 } } });
        let told = read(json!({ "stopReason": "end_turn", "_meta": quota }));
        assert_eq!((told.input, told.output), (Some(7), Some(1)));
        assert_eq!(read(json!({ "stopReason": "end_turn" })), Usage::default());
    }
}
