//! Hosts' reports about conversations: the messages of their agents.
//!
//! A message is stored once: its key is unique in the conversation, so a host may report it again.

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
    append::{NewMessage, append_all},
    attachments,
    entity::messages,
    rows::load,
    storage::{append_full_event, is_full},
    turns,
};
use crate::{
    base::{
        bounds,
        enums::{MessageKind, MessageRole},
        ids::{AttachmentId, ConversationId, TurnId},
        plain::{self, truncated},
        problem::{Code, Problem, Result},
        time::Timestamp,
    },
    core::store::Tx,
    domain::agents::{
        LockedAgent,
        reporter::{Reporter, lock_live},
    },
};

/// Stores agents' messages: those of one conversation together, in their order.
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
        store_messages(tx, ConversationId(conversation), reported).await?;
    }
    Ok(())
}

/// Stores messages of one launch in one conversation.
async fn store_messages(
    tx: &Tx,
    conversation: ConversationId,
    reported: Vec<(Reporter, Message)>,
) -> Result<()> {
    let Some((from, _)) = reported.first() else { return Ok(()) };
    let Some(agent) = lock_live(tx, from).await? else { return Ok(()) };
    let thread = load(tx, conversation).await?;
    if thread.agent_id != agent.id {
        return Err(Problem::not_found("conversation", conversation));
    }
    if is_full(tx) {
        return append_full_event(tx, &thread).await;
    }
    let mut known = find_known_keys(tx, conversation, &reported).await?;
    let mut turns: BTreeMap<TurnId, Timestamp> = BTreeMap::new();
    let (mut new, mut files) = (Vec::new(), Vec::new());
    for (from, message) in reported {
        let turn = message.turn_id.map(TurnId);
        if let Some(turn) = turn
            && !turns.contains_key(&turn)
        {
            turns.insert(turn, turns::require_turn(tx, turn, agent.id, conversation).await?);
        }
        let key = key_of(&message);
        if !known.insert(key.clone()) {
            continue;
        }
        let ((role, kind, content), file) = stored_form(tx, &agent, message.content).await?;
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
    for ((message, _), file) in append_all(tx, slice::from_ref(&thread), new).await?.into_iter().zip(files) {
        if let Some(file) = file {
            attachments::attach(tx, message, file).await?;
        }
    }
    Ok(())
}

fn key_of(message: &Message) -> String {
    truncated(&message.key, bounds::NAME)
}

/// The keys of messages that the conversation has already.
async fn find_known_keys(
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

/// The stored form of a message.
type StoredForm = (MessageRole, MessageKind, Value);

/// The stored form of a message, and its stored file.
async fn stored_form(
    tx: &Tx,
    agent: &LockedAgent,
    content: Content,
) -> Result<(StoredForm, Option<AttachmentId>)> {
    let Content::File { filename, mime_type, base64, caption } = content else {
        return Ok((form_of(content), None));
    };
    let (code, why) = match STANDARD.decode(base64) {
        Ok(content) if content.len() <= bounds::MESSAGE => {
            let upload = super::Upload { filename: filename.clone(), mime_type: Some(mime_type), content };
            match attachments::store_from_agent(tx, agent.id, upload).await {
                Ok(id) => {
                    let content = json!({ "caption": caption.map(|caption| bounded_text(&caption)) });
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
    let text = format!("The agent's file {} was not stored: {why}.", truncated(&filename, bounds::ID));
    let content = json!({ "code": code, "text": text });
    Ok(((MessageRole::System, MessageKind::Error, content), None))
}

/// The stored form of a message without a file.
fn form_of(content: Content) -> StoredForm {
    match content {
        Content::Text { text: said } => (
            MessageRole::Assistant,
            MessageKind::Text,
            json!({ "text": bounded_text(&said), "format": "markdown" }),
        ),
        Content::Thinking { text: thought } => {
            (MessageRole::Assistant, MessageKind::Thinking, json!({ "text": bounded_text(&thought) }))
        }
        Content::ToolCall { tool, call_id, input } => (
            MessageRole::Assistant,
            MessageKind::ToolCall,
            json!({ "tool": truncated(&tool, bounds::ID), "call_id": truncated(&call_id, bounds::ID), "input": bounded_value(input) }),
        ),
        Content::ToolResult { call_id, output, is_error } => (
            MessageRole::Tool,
            MessageKind::ToolResult,
            json!({ "call_id": truncated(&call_id, bounds::ID), "output": bounded_value(output), "is_error": is_error }),
        ),
        Content::Error { code, text: why } => (
            MessageRole::System,
            MessageKind::Error,
            json!({ "code": truncated(&code, bounds::ID), "text": bounded_text(&why) }),
        ),
        // `stored_form` handles files.
        Content::File { caption, .. } => {
            (MessageRole::Assistant, MessageKind::File, json!({ "caption": caption }))
        }
    }
}

/// Cuts a text to the bound. A cut text ends with an ellipsis.
fn bounded_text(text: &str) -> String {
    truncated(text, bounds::MESSAGE)
}

/// Bounds a value: one that is too large, or nested too deep to be read again, becomes the beginning of its text.
fn bounded_value(value: Value) -> Value {
    let value = plain::without_nul(value);
    let written = value.to_string();
    if written.len() <= bounds::MESSAGE && !is_too_deep(&value) {
        value
    } else {
        Value::String(bounded_text(&written))
    }
}
