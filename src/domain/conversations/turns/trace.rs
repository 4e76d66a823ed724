//! Traces of turns, by OpenTelemetry's conventions for generative AI: model calls, tool calls, and waits for people,
//! usage windows and limits, with tokens and cost. They are sent if traces are configured. They contain messages only
//! if the organization allows it, and never the input of tools.

use std::collections::{BTreeMap, btree_map::Entry};

use serde_json::json;

use super::{entity::turns, queries, wait_spans};
use crate::{
    base::{
        bounds,
        enums::{TurnState, TurnWait},
        plain,
        problem::Result,
        time::Timestamp,
    },
    core::{
        store::Tx,
        telemetry::traces::{self, AttributeValue, FinishedSpan},
    },
};

type Attributes = Vec<(&'static str, AttributeValue)>;

/// Sends the trace of a turn that has ended. `turn`: as it was before its end.
pub(super) async fn export(tx: &Tx, turn: &turns::Model, state: TurnState) -> Result<()> {
    if !traces::on() {
        return Ok(());
    }
    let Some(row) = queries::traced(tx, turn.id).await? else { return Ok(()) };
    let name = row.name;
    let (from, until) = (row.started_at.unwrap_or(turn.created_at), row.ended_at.unwrap_or(tx.now));
    let mut attributes = vec![
        ("gen_ai.operation.name", text("invoke_agent")),
        ("gen_ai.agent.id", text(turn.agent_id.to_string())),
        ("gen_ai.agent.name", text(name.clone())),
        ("gen_ai.conversation.id", text(turn.conversation_id.to_string())),
        ("muster.organization.id", AttributeValue::Number(tx.scope.org.0)),
        ("muster.turn.id", AttributeValue::Number(turn.id.0)),
        ("muster.turn.state", text(state.as_str())),
    ];
    push_known(&mut attributes, "gen_ai.request.model", row.model.map(AttributeValue::Text));
    let tokens = [row.input_tokens, row.output_tokens, row.cache_read_tokens, row.cache_write_tokens];
    push_usage(&mut attributes, tokens, row.cost_micro);
    if row.trace_content {
        push_content(tx, turn, &mut attributes).await?;
    }
    let mut parts = call_spans(tx, turn, until).await?;
    parts.extend(tool_spans(tx, turn, until).await?);
    parts.extend(approval_spans(tx, turn, until).await?);
    let held_back = limit_spans(tx, turn, until).await?;
    // The turn may have waited before the agent got it.
    let from = held_back.iter().fold(from, |from, wait| from.min(wait.from));
    parts.extend(held_back);
    let failed = state != TurnState::Done;
    let whole = FinishedSpan { name: format!("invoke_agent {name}"), from, until, failed, attributes };
    tx.connection().after_commit(move || traces::send_finished(whole, parts));
    Ok(())
}

fn text(text: impl Into<String>) -> AttributeValue {
    AttributeValue::Text(text.into())
}

fn push_known(attributes: &mut Attributes, name: &'static str, value: Option<AttributeValue>) {
    attributes.extend(value.map(|value| (name, value)));
}

/// Tokens by class (input, output, cache read, cache write) and the cost. The conventions count cached tokens as input,
/// too.
fn push_usage(attributes: &mut Attributes, tokens: [Option<i64>; 4], cost: Option<i64>) {
    let [input, output, cache_read, cache_write] = tokens;
    let cached: i64 = [cache_read, cache_write].into_iter().flatten().sum();
    let all = [
        ("gen_ai.usage.input_tokens", input.map(|input| input + cached)),
        ("gen_ai.usage.output_tokens", output),
        ("gen_ai.usage.cache_read.input_tokens", cache_read),
        ("gen_ai.usage.cache_creation.input_tokens", cache_write),
        ("muster.usage.cost_micro", cost),
    ];
    for (name, value) in all {
        push_known(attributes, name, value.map(AttributeValue::Number));
    }
}

/// Model calls, and waits for a usage window: for each model, from the end of a refused call to the next successful
/// one.
async fn call_spans(tx: &Tx, turn: &turns::Model, until: Timestamp) -> Result<Vec<FinishedSpan>> {
    let (mut parts, mut waits) = (Vec::new(), BTreeMap::<String, FinishedSpan>::new());
    for call in queries::model_calls(tx, turn.id).await? {
        let (provider, model, status, from) = (call.provider, call.model, call.status, call.started_at);
        let ended = Timestamp(from.0.saturating_add(call.millis));
        let of =
            vec![("gen_ai.provider.name", text(provider)), ("gen_ai.request.model", text(model.clone()))];
        let mut attributes = vec![("gen_ai.operation.name", text("chat"))];
        attributes.extend(of.iter().cloned());
        push_known(&mut attributes, "http.response.status_code", status.map(AttributeValue::Number));
        let tokens = [call.input_tokens, call.output_tokens, call.cache_read_tokens, call.cache_write_tokens];
        push_usage(&mut attributes, tokens, call.cost_micro);
        let failed = status.is_none_or(|status| !(200..300).contains(&status));
        parts.push(FinishedSpan { name: format!("chat {model}"), from, until: ended, failed, attributes });
        match waits.entry(model) {
            // The provider accepts no more requests for now.
            Entry::Vacant(none) if status == Some(429) => {
                let (name, until) = ("wait limit".to_owned(), until.max(ended));
                none.insert(FinishedSpan { name, from: ended, until, failed: false, attributes: of });
            }
            Entry::Occupied(wait) if !failed && wait.get().from <= from => {
                parts.push(FinishedSpan { until: from, ..wait.remove() });
            }
            _ => {}
        }
    }
    parts.extend(waits.into_values());
    Ok(parts)
}

/// Tool calls: each from its message to the message with its result.
async fn tool_spans(tx: &Tx, turn: &turns::Model, until: Timestamp) -> Result<Vec<FinishedSpan>> {
    let mut parts: Vec<(String, FinishedSpan)> = Vec::new();
    for message in queries::tool_messages(tx, turn.id).await? {
        let at = message.created_at;
        let content: serde_json::Value = muster_json::from_str(&message.content).unwrap_or_default();
        let id = content["call_id"].as_str().unwrap_or_default().to_owned();
        if message.kind == "TOOL_CALL" {
            let tool = content["tool"].as_str().unwrap_or("tool").to_owned();
            let attributes = vec![
                ("gen_ai.operation.name", text("execute_tool")),
                ("gen_ai.tool.name", text(tool.clone())),
                ("gen_ai.tool.call.id", text(id.clone())),
            ];
            let name = format!("execute_tool {tool}");
            parts.push((id, FinishedSpan { name, from: at, until, failed: false, attributes }));
        } else if let Some((_, call)) = parts.iter_mut().find(|(known, _)| *known == id) {
            call.until = at;
            call.failed = content["is_error"].as_bool().unwrap_or_default();
        }
    }
    Ok(parts.into_iter().map(|(_, past)| past).collect())
}

async fn approval_spans(tx: &Tx, turn: &turns::Model, until: Timestamp) -> Result<Vec<FinishedSpan>> {
    let past = |asked: queries::RaisedApproval| {
        let mut attributes = vec![("muster.approval.id", AttributeValue::Number(asked.id.0))];
        push_known(&mut attributes, "muster.approval.outcome", asked.outcome.map(AttributeValue::Text));
        let name = format!("wait {}", asked.kind.to_lowercase());
        let (from, until) = (asked.created_at, asked.over_at.unwrap_or(until));
        FinishedSpan { name, from, until, failed: false, attributes }
    };
    Ok(queries::approvals(tx, turn.id).await?.into_iter().map(past).collect())
}

/// Waits for money, for tokens, and for the organization's release.
async fn limit_spans(tx: &Tx, turn: &turns::Model, until: Timestamp) -> Result<Vec<FinishedSpan>> {
    let waits = wait_spans::load_wait_spans(tx, turn, until).await?;
    let past = |(wait, from, until): (TurnWait, Timestamp, Timestamp)| {
        let name = format!("wait {}", wait.as_str().to_lowercase());
        FinishedSpan { name, from, until, failed: false, attributes: Vec::new() }
    };
    Ok(waits.into_iter().map(past).collect())
}

/// Prompts and answers.
async fn push_content(tx: &Tx, turn: &turns::Model, attributes: &mut Attributes) -> Result<()> {
    let (mut input, mut output) = (Vec::new(), Vec::new());
    for words in queries::text_messages(tx, turn.id).await? {
        let content: serde_json::Value = muster_json::from_str(&words.content).unwrap_or_default();
        let said = content["text"].as_str().unwrap_or_default();
        let of = |role: &str| json!({ "role": role, "parts": [{ "type": "text", "content": said }] });
        if words.role == "USER" { input.push(of("user")) } else { output.push(of("assistant")) }
    }
    for (name, messages) in [("gen_ai.input.messages", input), ("gen_ai.output.messages", output)] {
        let written = plain::truncated(&json!(messages).to_string(), bounds::DETAIL);
        attributes.push((name, text(written)));
    }
    Ok(())
}
