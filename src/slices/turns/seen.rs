//! Each turn is a trace, by OpenTelemetry's conventions for generative AI: the calls of models, the calls of tools and the waits
//! for people, for usage windows and for what else held it back, with tokens and cost. It is sent where traces are set up. What
//! was said is in it only where the organization says so; what tools were called with, never.

use std::collections::{BTreeMap, btree_map::Entry};

use sea_orm::{QueryResult, Value};
use serde_json::json;

use super::{entity::turns, waited};
use crate::{
    base::{
        enums::{TurnState, TurnWait},
        problem::Result,
        time::Timestamp,
    },
    core::{
        store::Tx,
        telemetry::traces::{self, Known, Past},
    },
};

/// The most parts of a trace.
const MOST: u64 = 500;
/// The longest text that is repeated, in bytes.
const LONGEST: usize = 16 * 1024;
/// The status with which a provider takes no more requests for now.
const TOO_MANY: i64 = 429;

type Attributes = Vec<(&'static str, Known)>;

/// Sends the trace of a turn that has just ended. `turn`: as it was before.
pub(super) async fn seen(tx: &Tx, turn: &turns::Model, state: TurnState) -> Result<()> {
    if !traces::on() {
        return Ok(());
    }
    let sql = format!(
        "SELECT a.name, o.trace_content, t.model, t.started_at, t.ended_at, t.input_tokens, t.output_tokens, \
         t.cache_read_tokens, t.cache_write_tokens, t.cost_micro \
         FROM turns t JOIN agents a ON a.organization_id = t.organization_id AND a.id = t.agent_id \
         JOIN organizations o ON o.id = t.organization_id WHERE t.organization_id = $1 AND t.id = $2 LIMIT {MOST}"
    );
    let rows = tx.rows(&sql, key(tx, turn)).await?;
    let Some(row) = rows.first() else { return Ok(()) };
    let name: String = row.try_get_by(0)?;
    let (from, until): (Option<Timestamp>, Option<Timestamp>) = (row.try_get_by(3)?, row.try_get_by(4)?);
    let (from, until) = (from.unwrap_or(turn.created_at), until.unwrap_or(tx.now));
    let mut attributes = vec![
        ("gen_ai.operation.name", text("invoke_agent")),
        ("gen_ai.agent.id", text(turn.agent_id.to_string())),
        ("gen_ai.agent.name", text(name.clone())),
        ("gen_ai.conversation.id", text(turn.conversation_id.to_string())),
        ("muster.organization.id", Known::Number(tx.scope.org.0)),
        ("muster.turn.id", Known::Number(turn.id.0)),
        ("muster.turn.state", text(state.as_str())),
    ];
    known(&mut attributes, "gen_ai.request.model", row.try_get_by::<Option<String>, _>(2)?.map(Known::Text));
    usage(&mut attributes, row, 5)?;
    if row.try_get_by(1)? {
        said(tx, turn, &mut attributes).await?;
    }
    let mut parts = calls(tx, turn, until).await?;
    parts.extend(tools(tx, turn, until).await?);
    parts.extend(waits(tx, turn, until).await?);
    let held_back = held_back(tx, turn, until).await?;
    // It may have waited before the agent got it.
    let from = held_back.iter().fold(from, |from, wait| from.min(wait.from));
    parts.extend(held_back);
    let failed = state != TurnState::Done;
    let whole = Past { name: format!("invoke_agent {name}"), from, until, failed, attributes };
    tx.connection().after_commit(move || traces::past(whole, parts));
    Ok(())
}

fn key(tx: &Tx, turn: &turns::Model) -> Vec<Value> {
    vec![tx.scope.org.into(), turn.id.into()]
}

fn text(text: impl Into<String>) -> Known {
    Known::Text(text.into())
}

fn known(attributes: &mut Attributes, name: &'static str, value: Option<Known>) {
    attributes.extend(value.map(|value| (name, value)));
}

/// Tokens by class, and the cost, from this column on. By the conventions, what was read includes what a cache took part in.
fn usage(attributes: &mut Attributes, row: &QueryResult, from: usize) -> Result<()> {
    let mut spent: [Option<i64>; 5] = [None; 5];
    for (at, value) in spent.iter_mut().enumerate() {
        *value = row.try_get_by(from + at)?;
    }
    let [input, output, cache_read, cache_write, cost] = spent;
    let cached: i64 = [cache_read, cache_write].into_iter().flatten().sum();
    let all = [
        ("gen_ai.usage.input_tokens", input.map(|input| input + cached)),
        ("gen_ai.usage.output_tokens", output),
        ("gen_ai.usage.cache_read.input_tokens", cache_read),
        ("gen_ai.usage.cache_creation.input_tokens", cache_write),
        ("muster.usage.cost_micro", cost),
    ];
    for (name, value) in all {
        known(attributes, name, value.map(Known::Number));
    }
    Ok(())
}

/// Calls of models, and the waits for a usage window: of each model from the end of a call that its provider refused to the
/// next that it took.
async fn calls(tx: &Tx, turn: &turns::Model, until: Timestamp) -> Result<Vec<Past>> {
    let sql = format!(
        "SELECT provider, model, status, started_at, millis, input_tokens, output_tokens, cache_read_tokens, \
         cache_write_tokens, cost_micro FROM model_calls \
         WHERE organization_id = $1 AND turn_id = $2 ORDER BY started_at LIMIT {MOST}"
    );
    let (mut parts, mut waits) = (Vec::new(), BTreeMap::<String, Past>::new());
    for row in tx.rows(&sql, key(tx, turn)).await? {
        let (provider, model): (String, String) = (row.try_get_by(0)?, row.try_get_by(1)?);
        let status: Option<i64> = row.try_get_by(2)?;
        let (from, millis): (Timestamp, i64) = (row.try_get_by(3)?, row.try_get_by(4)?);
        let ended = Timestamp(from.0.saturating_add(millis));
        let of =
            vec![("gen_ai.provider.name", text(provider)), ("gen_ai.request.model", text(model.clone()))];
        let mut attributes = vec![("gen_ai.operation.name", text("chat"))];
        attributes.extend(of.iter().cloned());
        known(&mut attributes, "http.response.status_code", status.map(Known::Number));
        usage(&mut attributes, &row, 5)?;
        let failed = status.is_none_or(|status| !(200..300).contains(&status));
        parts.push(Past { name: format!("chat {model}"), from, until: ended, failed, attributes });
        match waits.entry(model) {
            Entry::Vacant(none) if status == Some(TOO_MANY) => {
                let (name, until) = ("wait limit".to_owned(), until.max(ended));
                none.insert(Past { name, from: ended, until, failed: false, attributes: of });
            }
            Entry::Occupied(wait) if !failed && wait.get().from <= from => {
                parts.push(Past { until: from, ..wait.remove() });
            }
            _ => {}
        }
    }
    parts.extend(waits.into_values());
    Ok(parts)
}

/// Calls of tools: each from its message to that of its result.
async fn tools(tx: &Tx, turn: &turns::Model, until: Timestamp) -> Result<Vec<Past>> {
    let sql = format!(
        "SELECT kind, CAST(content AS TEXT), created_at FROM messages WHERE organization_id = $1 AND turn_id = $2 \
         AND kind IN ('TOOL_CALL', 'TOOL_RESULT') ORDER BY seq LIMIT {MOST}"
    );
    let mut parts: Vec<(String, Past)> = Vec::new();
    for row in tx.rows(&sql, key(tx, turn)).await? {
        let (kind, content): (String, String) = (row.try_get_by(0)?, row.try_get_by(1)?);
        let at: Timestamp = row.try_get_by(2)?;
        let content: serde_json::Value = muster_json::from_str(&content).unwrap_or_default();
        let id = content["call_id"].as_str().unwrap_or_default().to_owned();
        if kind == "TOOL_CALL" {
            let tool = content["tool"].as_str().unwrap_or("tool").to_owned();
            let attributes = vec![
                ("gen_ai.operation.name", text("execute_tool")),
                ("gen_ai.tool.name", text(tool.clone())),
                ("gen_ai.tool.call.id", text(id.clone())),
            ];
            let name = format!("execute_tool {tool}");
            parts.push((id, Past { name, from: at, until, failed: false, attributes }));
        } else if let Some((_, call)) = parts.iter_mut().find(|(known, _)| *known == id) {
            call.until = at;
            call.failed = content["is_error"].as_bool().unwrap_or_default();
        }
    }
    Ok(parts.into_iter().map(|(_, past)| past).collect())
}

/// Waits for people.
async fn waits(tx: &Tx, turn: &turns::Model, until: Timestamp) -> Result<Vec<Past>> {
    let sql = format!(
        "SELECT id, kind, outcome, created_at, COALESCE(delivered_at, resolved_at) FROM approvals \
         WHERE organization_id = $1 AND turn_id = $2 ORDER BY id LIMIT {MOST}"
    );
    let rows = tx.rows(&sql, key(tx, turn)).await?;
    let read = |row: &QueryResult| -> Result<Past> {
        let kind: String = row.try_get_by(1)?;
        let over: Option<Timestamp> = row.try_get_by(4)?;
        let mut attributes = vec![("muster.approval.id", Known::Number(row.try_get_by(0)?))];
        known(
            &mut attributes,
            "muster.approval.outcome",
            row.try_get_by::<Option<String>, _>(2)?.map(Known::Text),
        );
        let name = format!("wait {}", kind.to_lowercase());
        let from = row.try_get_by(3)?;
        Ok(Past { name, from, until: over.unwrap_or(until), failed: false, attributes })
    };
    rows.iter().map(read).collect()
}

/// Waits for money or tokens, and for the organization's release.
async fn held_back(tx: &Tx, turn: &turns::Model, until: Timestamp) -> Result<Vec<Past>> {
    let waits = waited::waits(tx, turn, until).await?;
    let past = |(wait, from, until): (TurnWait, Timestamp, Timestamp)| {
        let name = format!("wait {}", wait.as_str().to_lowercase());
        Past { name, from, until, failed: false, attributes: Vec::new() }
    };
    Ok(waits.into_iter().map(past).collect())
}

/// What was said: prompts and answers.
async fn said(tx: &Tx, turn: &turns::Model, attributes: &mut Attributes) -> Result<()> {
    let sql = format!(
        "SELECT role, CAST(content AS TEXT) FROM messages WHERE organization_id = $1 AND turn_id = $2 AND kind = 'TEXT' \
         ORDER BY seq LIMIT {MOST}"
    );
    let (mut input, mut output) = (Vec::new(), Vec::new());
    for row in tx.rows(&sql, key(tx, turn)).await? {
        let (role, content): (String, String) = (row.try_get_by(0)?, row.try_get_by(1)?);
        let content: serde_json::Value = muster_json::from_str(&content).unwrap_or_default();
        let said = content["text"].as_str().unwrap_or_default();
        let of = |role: &str| json!({ "role": role, "parts": [{ "type": "text", "content": said }] });
        if role == "USER" { input.push(of("user")) } else { output.push(of("assistant")) }
    }
    for (name, messages) in [("gen_ai.input.messages", input), ("gen_ai.output.messages", output)] {
        let written = crate::base::plain::bounded(&json!(messages).to_string(), LONGEST);
        attributes.push((name, text(written)));
    }
    Ok(())
}
