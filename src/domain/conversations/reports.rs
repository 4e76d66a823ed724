//! What hosts report about conversations: the messages of their agents.
//!
//! A message is stored once: its key is unique in the conversation, so that a host which has lost its place and reports
//! again adds nothing.

use std::{
    collections::{BTreeMap, BTreeSet},
    slice,
};

use base64::{Engine, engine::general_purpose::STANDARD};
use muster_protocol::{
    event::{Content, Message},
    is_too_deep,
};
use sea_orm::{ColumnTrait, QueryFilter, QuerySelect};
use serde_json::{Value, json};

use super::{
    append::{NewMessage, add_all},
    attachments,
    entity::messages,
    rows::load,
    storage::{is_full, tell},
    turns,
};
use crate::{
    base::{
        bounds,
        enums::{MessageKind, MessageRole},
        ids::{AttachmentId, ConversationId, TurnId},
        plain::{self, bounded},
        problem::{Code, Problem, Result},
        time::Timestamp,
    },
    core::store::Tx,
    domain::agents::{
        LockedAgent,
        reporter::{Reporter, lock_live},
    },
};

/// Messages of agents are complete. Those of one conversation are stored together, in their order.
///
/// # Errors
/// `NOT_FOUND`: a conversation or a turn isn't the agent's.
pub async fn messages(tx: &Tx, reported: Vec<(Reporter, Message)>) -> Result<()> {
    let mut threads: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for (from, message) in reported {
        let thread = (from.agent, from.generation, message.conversation_id);
        threads.entry(thread).or_default().push((from, message));
    }
    for ((.., conversation), reported) in threads {
        of_thread(tx, ConversationId(conversation), reported).await?;
    }
    Ok(())
}

/// Stores messages of one launch in one conversation.
async fn of_thread(tx: &Tx, conversation: ConversationId, reported: Vec<(Reporter, Message)>) -> Result<()> {
    let Some((from, _)) = reported.first() else { return Ok(()) };
    let Some(agent) = lock_live(tx, from).await? else { return Ok(()) };
    let thread = load(tx, conversation).await?;
    if thread.agent_id != agent.id {
        return Err(Problem::not_found("conversation", conversation));
    }
    if is_full(tx) {
        return tell(tx, &thread).await;
    }
    let mut known = known(tx, conversation, &reported).await?;
    let mut turns: BTreeMap<TurnId, Timestamp> = BTreeMap::new();
    let (mut new, mut files) = (Vec::new(), Vec::new());
    for (from, message) in reported {
        let turn = message.turn_id.map(TurnId);
        if let Some(turn) = turn
            && !turns.contains_key(&turn)
        {
            turns.insert(turn, turns::require_of(tx, turn, agent.id, conversation).await?);
        }
        let key = key_of(&message);
        if !known.insert(key.clone()) {
            continue;
        }
        let ((role, kind, content), file) = shown(tx, &agent, message.content).await?;
        let not_before = turn.and_then(|turn| turns.get(&turn).copied()).unwrap_or(tx.now);
        new.push(NewMessage {
            turn,
            host_key: Some(key),
            files: usize::from(file.is_some()),
            created_at: Some(from.time(tx, not_before)),
            ..NewMessage::new(conversation, role, kind, content)
        });
        files.push(file);
    }
    for ((message, _), file) in add_all(tx, slice::from_ref(&thread), new).await?.into_iter().zip(files) {
        if let Some(file) = file {
            attachments::attach(tx, message, file).await?;
        }
    }
    Ok(())
}

fn key_of(message: &Message) -> String {
    bounded(&message.key, bounds::NAME)
}

/// Those of the messages' keys that the conversation has already.
async fn known(
    tx: &Tx,
    conversation: ConversationId,
    reported: &[(Reporter, Message)],
) -> Result<BTreeSet<String>> {
    let keys = reported.iter().map(|(_, message)| key_of(message));
    let known = tx.scope.find::<messages::Entity>().filter(messages::Column::ConversationId.eq(conversation));
    let known = known.filter(messages::Column::HostKey.is_in(keys));
    let known = known.select_only().column(messages::Column::HostKey).into_tuple::<String>();
    Ok(known.all(tx.connection()).await?.into_iter().collect())
}

/// A message as it is stored: who says it, what it is, its content.
type Shown = (MessageRole, MessageKind, Value);

/// A message as it is stored, and its file.
async fn shown(tx: &Tx, agent: &LockedAgent, content: Content) -> Result<(Shown, Option<AttachmentId>)> {
    let Content::File { filename, mime_type, base64, caption } = content else {
        return Ok((in_words(content), None));
    };
    let (code, why) = match STANDARD.decode(base64) {
        Ok(content) if content.len() <= bounds::MESSAGE => {
            let upload = super::Upload { filename: filename.clone(), mime_type: Some(mime_type), content };
            match attachments::of_agent(tx, agent.id, upload).await {
                Ok(id) => {
                    let content = json!({ "caption": caption.map(|caption| text(&caption)) });
                    return Ok(((MessageRole::Assistant, MessageKind::File, content), Some(id)));
                }
                Err(problem) if problem.code == Code::PlanLimitReached => {
                    ("STORAGE_LIMIT", "the organization's storage is full")
                }
                Err(problem) => return Err(problem),
            }
        }
        Ok(_) => ("FILE_TOO_LARGE", "it is larger than 512 KiB"),
        Err(_) => ("FILE_UNREADABLE", "it could not be read"),
    };
    let text = format!("The agent's file {} was not kept: {why}.", bounded(&filename, bounds::ID));
    let content = json!({ "code": code, "text": text });
    Ok(((MessageRole::System, MessageKind::Error, content), None))
}

/// The same for a message without bytes.
fn in_words(content: Content) -> Shown {
    match content {
        Content::Text { text: said } => {
            (MessageRole::Assistant, MessageKind::Text, json!({ "text": text(&said), "format": "markdown" }))
        }
        Content::Thinking { text: thought } => {
            (MessageRole::Assistant, MessageKind::Thinking, json!({ "text": text(&thought) }))
        }
        Content::ToolCall { tool, call_id, input } => (
            MessageRole::Assistant,
            MessageKind::ToolCall,
            json!({ "tool": bounded(&tool, bounds::ID), "call_id": bounded(&call_id, bounds::ID), "input": value(input) }),
        ),
        Content::ToolResult { call_id, output, is_error } => (
            MessageRole::Tool,
            MessageKind::ToolResult,
            json!({ "call_id": bounded(&call_id, bounds::ID), "output": value(output), "is_error": is_error }),
        ),
        Content::Error { code, text: why } => (
            MessageRole::System,
            MessageKind::Error,
            json!({ "code": bounded(&code, bounds::ID), "text": text(&why) }),
        ),
        // Stored apart, with its bytes: see `shown`.
        Content::File { caption, .. } => {
            (MessageRole::Assistant, MessageKind::File, json!({ "caption": caption }))
        }
    }
}

/// A text within bounds. One that is cut ends with an ellipsis.
fn text(text: &str) -> String {
    bounded(text, bounds::MESSAGE)
}

/// A value within bounds: what is too large becomes the beginning of its text, and so does what is nested too deep to be read
/// again in an answer.
fn value(value: Value) -> Value {
    let value = plain::without_nul(value);
    let written = value.to_string();
    if written.len() <= bounds::MESSAGE && !is_too_deep(&value) {
        value
    } else {
        Value::String(text(&written))
    }
}
