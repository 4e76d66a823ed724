//! What hosts report about conversations: the messages of their agents.
//!
//! A message is stored once: its key is unique in the conversation, so that a host which has lost its place and reports
//! again adds nothing.

use base64::{Engine, engine::general_purpose::STANDARD};
use muster_protocol::event::{Content, Message};
use sea_orm::{ColumnTrait, PaginatorTrait, QueryFilter};
use serde_json::{Value, json};

use super::{
    append::{NewMessage, add},
    attachments,
    entity::messages,
    of_turns::require_of,
};
use crate::{
    base::{
        enums::{MessageKind, MessageRole},
        ids::{ConversationId, TurnId},
        plain,
        problem::{Code, Result},
    },
    core::store::Tx,
    slices::{
        agents::reports::{Reporter, bounded, current},
        turns,
    },
};

/// The longest text of a message, in bytes. A longer one is cut, and says so.
const TEXT_BYTES: usize = 512 * 1024;
/// The longest name, in bytes: of a tool, a call, a code.
const NAME_BYTES: usize = 500;
/// The largest file, in bytes.
const FILE_BYTES: usize = 512 * 1024;
/// The longest key, in bytes.
const KEY_BYTES: usize = 200;

/// An agent's message is complete.
///
/// # Errors
/// `NOT_FOUND`: the conversation or the turn isn't the agent's.
pub async fn message(tx: &mut Tx, from: &Reporter, message: Message) -> Result<()> {
    let Some(agent) = current(tx, from).await? else { return Ok(()) };
    let conversation = ConversationId(message.conversation_id);
    let turn = message.turn_id.map(TurnId);
    let not_before = match turn {
        Some(turn) => turns::require_of(tx, turn, agent.id, conversation).await?,
        None => {
            require_of(tx, conversation, agent.id).await?;
            tx.now
        }
    };
    let key = bounded(&message.key, KEY_BYTES);
    let known = tx.scope.find::<messages::Entity>().filter(messages::Column::ConversationId.eq(conversation));
    let known = known.filter(messages::Column::HostKey.eq(&key));
    if known.count(tx.connection()).await? > 0 {
        return Ok(());
    }
    let place = |(role, kind, content): (MessageRole, MessageKind, Value)| NewMessage {
        turn,
        host_key: Some(key.clone()),
        created_at: Some(from.time(tx, not_before)),
        ..NewMessage::new(conversation, role, kind, content)
    };
    let Content::File { filename, mime_type, base64, caption } = message.content else {
        let new = place(shown(message.content));
        add(tx, new).await?;
        return Ok(());
    };
    let file = match STANDARD.decode(base64) {
        Ok(content) if content.len() <= FILE_BYTES => {
            let upload = super::Upload { filename: filename.clone(), mime_type: Some(mime_type), content };
            match attachments::of_agent(tx, agent.id, upload).await {
                Ok(id) => Ok(id),
                Err(problem) if problem.code == Code::PlanLimitReached => Err("STORAGE_LIMIT"),
                Err(problem) => return Err(problem),
            }
        }
        Ok(_) => Err("FILE_TOO_LARGE"),
        Err(_) => Err("FILE_UNREADABLE"),
    };
    match file {
        Ok(file) => {
            let caption = caption.map(|caption| text(&caption));
            let new = place((MessageRole::Assistant, MessageKind::File, json!({ "caption": caption })));
            let (id, _) = add(tx, new).await?;
            attachments::attach(tx, id, file).await?;
        }
        Err(code) => {
            let name = bounded(&filename, NAME_BYTES);
            let words = match code {
                "STORAGE_LIMIT" => "the organization's storage is full",
                "FILE_TOO_LARGE" => "it is larger than 512 KiB",
                _ => "it could not be read",
            };
            let content =
                json!({ "code": code, "text": format!("The agent's file {name} was not kept: {words}.") });
            let new = place((MessageRole::System, MessageKind::Error, content));
            add(tx, new).await?;
        }
    }
    Ok(())
}

/// Who says it, what it is, and its content as records show it.
fn shown(content: Content) -> (MessageRole, MessageKind, Value) {
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
            json!({ "tool": bounded(&tool, NAME_BYTES), "call_id": bounded(&call_id, NAME_BYTES), "input": value(input) }),
        ),
        Content::ToolResult { call_id, output, is_error } => (
            MessageRole::Tool,
            MessageKind::ToolResult,
            json!({ "call_id": bounded(&call_id, NAME_BYTES), "output": value(output), "is_error": is_error }),
        ),
        Content::Error { code, text: why } => (
            MessageRole::System,
            MessageKind::Error,
            json!({ "code": bounded(&code, NAME_BYTES), "text": text(&why) }),
        ),
        // Stored apart, with its bytes.
        Content::File { caption, .. } => {
            (MessageRole::Assistant, MessageKind::File, json!({ "caption": caption }))
        }
    }
}

/// A text within bounds. One that is cut ends with an ellipsis.
fn text(text: &str) -> String {
    bounded(text, TEXT_BYTES)
}

/// A value within bounds: what is too large becomes the beginning of its text.
fn value(value: Value) -> Value {
    let value = plain::without_nul(value);
    let written = value.to_string();
    if written.len() <= TEXT_BYTES { value } else { Value::String(text(&written)) }
}
