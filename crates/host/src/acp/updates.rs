//! The agent's output: updates become complete messages, and live text for current viewers.

use std::collections::BTreeMap;

use agent_client_protocol_schema::v1::{
    ContentBlock, ContentChunk, EmbeddedResourceResource, NoticeSeverity, SessionNotification, SessionUpdate,
    ToolCall, ToolCallContent, ToolCallId, ToolCallStatus, ToolCallUpdateFields,
};
use muster_protocol::event::Content;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{
    Effects, LONGEST_TEXT, LONGEST_VALUE, Machine, Piece, fit_event, floor_boundary, is_too_long, short,
    usage,
};
use crate::{agent::home::LARGEST_FILE, bounds::LIST};

#[derive(Debug, Serialize, Deserialize)]
pub struct MessageInProgress {
    key: String,
    is_thinking: bool,
    /// The agent's own id of the message.
    named: Option<String>,
    text: String,
}

/// Context of a tool call.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Mention {
    /// An announcement.
    Call,
    Change,
    /// A permission request.
    Question,
}

/// A tool call of the running turn.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Tool {
    /// Its id in messages.
    pub call_id: String,
    pub name: Option<String>,
    pub title: String,
    /// The kind, as in ACP.
    pub kind: String,
    pub input: Value,
    /// Whether the input was too long or too deep, and is cut.
    pub is_cut: bool,
    /// Whether the call's message was sent.
    pub is_told: bool,
    /// Whether the result's message was sent.
    pub is_over: bool,
    /// Size of the stored data in bytes of JSON.
    bytes: usize,
}

/// The key of a tool call: the agent's id, which may have any length.
pub(super) fn name_of(id: &ToolCallId) -> String {
    short(&id.0, 200)
}

/// Frees space for a tool call's data. Finished calls are forgotten first.
fn make_room(tools: &mut BTreeMap<String, Tool>) {
    let is_full = |tools: &BTreeMap<String, Tool>| {
        // The data is stored with each step.
        tools.len() >= LIST || tools.values().map(|tool| tool.bytes).sum::<usize>() >= 10 * LONGEST_VALUE
    };
    if is_full(tools) {
        tools.retain(|_, tool| !tool.is_over);
    }
    if is_full(tools) {
        // For agents that never end their calls. A later update of a forgotten call starts a new one.
        tools.clear();
    }
}

impl Machine {
    pub(super) fn update(&mut self, params: &str, fx: &mut Effects) {
        let Ok(notification) = muster_json::from_str::<SessionNotification>(params) else {
            self.unknown += 1;
            return;
        };
        let Some(id) = self.conversation_of(&notification.session_id.0) else {
            self.unknown += 1;
            return;
        };
        if self.conversations.get(&id).is_some_and(|conversation| conversation.is_replaying) {
            return;
        }
        match notification.update {
            SessionUpdate::AgentMessageChunk(chunk) => self.chunk(id, false, chunk, fx),
            SessionUpdate::AgentThoughtChunk(chunk) => self.chunk(id, true, chunk, fx),
            SessionUpdate::ToolCall(call) => self.tool_called(id, call, fx),
            SessionUpdate::ToolCallUpdate(update) => {
                self.finish_text(id, fx);
                self.tool_changed(id, &name_of(&update.tool_call_id), update.fields, fx);
            }
            SessionUpdate::UsageUpdate(update) => {
                if let Some(conversation) = self.conversations.get_mut(&id) {
                    conversation.context_tokens = i64::try_from(update.used).ok();
                    conversation.cost = update.cost.as_ref().and_then(usage::micro).or(conversation.cost);
                }
            }
            SessionUpdate::CurrentModeUpdate(update) => {
                let mode = update.current_mode_id.to_string();
                if let Some(conversation) = self.conversations.get_mut(&id)
                    && self.settings.mode.as_ref().is_some_and(|wanted| *wanted != mode)
                {
                    // The next turn sets the chosen mode again.
                    conversation.is_stale = true;
                }
                self.mode_changed(&mode, fx);
            }
            SessionUpdate::ConfigOptionUpdate(update) => {
                self.options_changed(id, &update.config_options, fx);
            }
            SessionUpdate::Notice(notice) if notice.severity == NoticeSeverity::Error => {
                self.finish_messages(id, fx);
                let text = match notice.description {
                    Some(description) => format!("{}: {description}", notice.title),
                    None => notice.title,
                };
                let content = Content::Error { code: "AGENT".to_owned(), text: short(&text, 4000) };
                let key = self.next_key('e');
                fx.events.push(self.message(id, key, content));
            }
            _ => {}
        }
    }

    fn chunk(&mut self, id: i64, is_thinking: bool, chunk: ContentChunk, fx: &mut Effects) {
        let named = chunk.message_id.map(|name| short(&name.0, 200));
        let text = match chunk.content {
            ContentBlock::Text(content) => content.text,
            ContentBlock::ResourceLink(link) => format!("[{}]({})", link.name, link.uri),
            ContentBlock::Resource(resource) => match resource.resource {
                EmbeddedResourceResource::TextResourceContents(contents) => contents.text,
                _ => return self.unknown += 1,
            },
            ContentBlock::Image(image) if image.data.len() <= LARGEST_FILE as usize * 4 / 3 => {
                self.finish_messages(id, fx);
                let extension = image.mime_type.rsplit('/').next().unwrap_or("bin");
                let content = Content::File {
                    filename: format!("image-{}.{}", self.read, short(extension, 10)),
                    mime_type: short(&image.mime_type, 100),
                    base64: image.data,
                    caption: None,
                };
                let key = self.next_key('f');
                return fx.events.push(self.message(id, key, content));
            }
            _ => return self.unknown += 1,
        };
        self.append(id, is_thinking, named.as_ref(), &text, fx);
    }

    fn append(
        &mut self,
        id: i64,
        is_thinking: bool,
        named: Option<&String>,
        mut text: &str,
        fx: &mut Effects,
    ) {
        let continues = self.conversations.get(&id).and_then(|conversation| conversation.writing.as_ref());
        let continues = continues.is_some_and(|writing| {
            let is_same = named.is_none() || writing.named.is_none() || writing.named.as_ref() == named;
            writing.is_thinking == is_thinking && is_same
        });
        if !continues {
            self.finish_messages(id, fx);
        }
        while !text.is_empty() {
            let is_writing =
                self.conversations.get(&id).is_some_and(|conversation| conversation.writing.is_some());
            let key =
                if is_writing { String::new() } else { self.next_key(if is_thinking { 'r' } else { 't' }) };
            let Some(conversation) = self.conversations.get_mut(&id) else { return };
            let begin = || MessageInProgress { key, is_thinking, named: named.cloned(), text: String::new() };
            let writing = conversation.writing.get_or_insert_with(begin);
            let fits = floor_boundary(text, LONGEST_TEXT - writing.text.len());
            fx.pieces.push(Piece {
                conversation_id: id,
                key: writing.key.clone(),
                is_thinking,
                offset: writing.text.len(),
                text: text[..fits].to_owned(),
            });
            writing.text.push_str(&text[..fits]);
            text = &text[fits..];
            if !text.is_empty() {
                self.finish_text(id, fx);
            }
        }
    }

    fn finish_text(&mut self, id: i64, fx: &mut Effects) {
        let writing = self.conversations.get_mut(&id).and_then(|conversation| conversation.writing.take());
        if let Some(writing) = writing {
            let text = writing.text;
            let content =
                if writing.is_thinking { Content::Thinking { text } } else { Content::Text { text } };
            fx.events.push(self.message(id, writing.key, content));
        }
    }

    /// Completes the current message, and reports calls that waited for their input.
    pub(super) fn finish_messages(&mut self, id: i64, fx: &mut Effects) {
        self.finish_text(id, fx);
        let tools = self.conversations.get(&id).into_iter().flat_map(|conversation| &conversation.tools);
        let untold: Vec<String> =
            tools.filter(|(_, tool)| !tool.is_told).map(|(name, _)| name.clone()).collect();
        for name in untold {
            self.tell_call(id, &name, fx);
        }
    }

    /// Completes all messages: the agent has exited.
    pub fn finish_all(&mut self, fx: &mut Effects) {
        let all: Vec<i64> = self.conversations.keys().copied().collect();
        for id in all {
            self.finish_messages(id, fx);
        }
    }

    /// Completes messages outside of turns.
    pub fn settle(&mut self, fx: &mut Effects) {
        let idle = self.conversations.iter().filter(|(_, conversation)| conversation.turn.is_none());
        let idle: Vec<i64> = idle.filter(|(_, found)| found.writing.is_some()).map(|(id, _)| *id).collect();
        for id in idle {
            self.finish_messages(id, fx);
        }
    }

    fn tool_called(&mut self, id: i64, call: ToolCall, fx: &mut Effects) {
        self.finish_messages(id, fx);
        let name = name_of(&call.tool_call_id);
        self.known_tool(id, &name, &ToolCallUpdateFields::new(), Mention::Call);
        let fields = ToolCallUpdateFields::new()
            .kind(call.kind)
            .status(call.status)
            .title(call.title)
            .name(call.name)
            .content(call.content)
            .raw_input(call.raw_input)
            .raw_output(call.raw_output);
        self.tool_changed(id, &name, fields, fx);
    }

    fn tool_changed(&mut self, id: i64, name: &str, fields: ToolCallUpdateFields, fx: &mut Effects) {
        self.known_tool(id, name, &fields, Mention::Change);
        let is_running = matches!(
            fields.status,
            Some(ToolCallStatus::InProgress | ToolCallStatus::Completed | ToolCallStatus::Failed)
        );
        let has_input = fields.raw_input.as_ref().is_some_and(|input| !is_empty(input));
        if is_running || has_input {
            self.tell_call(id, name, fx);
        }
        let is_error = fields.status == Some(ToolCallStatus::Failed);
        if is_error || fields.status == Some(ToolCallStatus::Completed) {
            let Some(tool) = self.tool(id, name).filter(|tool| !tool.is_over) else { return };
            tool.is_over = true;
            let call_id = tool.call_id.clone();
            let content = Content::ToolResult { call_id, output: fit_event(output(fields)), is_error };
            let key = self.next_key('o');
            fx.events.push(self.message(id, key, content));
        }
    }

    /// Applies data of a tool call. An id whose call is finished starts another call.
    pub(super) fn known_tool(
        &mut self,
        id: i64,
        name: &str,
        fields: &ToolCallUpdateFields,
        mention: Mention,
    ) {
        let line = self.read;
        let Some(conversation) = self.conversations.get_mut(&id) else { return };
        make_room(&mut conversation.tools);
        let begin = |again: bool| Tool {
            call_id: if again { format!("{name}~{line}") } else { name.to_owned() },
            title: name.to_owned(),
            kind: "other".to_owned(),
            input: json!({}),
            ..Tool::default()
        };
        let tool = conversation.tools.entry(name.to_owned()).or_insert_with(|| begin(false));
        let is_other = match mention {
            Mention::Change => false,
            Mention::Call => tool.is_over,
            Mention::Question => tool.is_over || (tool.is_told && differs(tool, fields)),
        };
        if is_other {
            *tool = begin(true);
        }
        if let Some(kind) = fields.kind {
            tool.kind = serde_json::to_value(kind)
                .ok()
                .and_then(|kind| kind.as_str().map(str::to_owned))
                .unwrap_or_default();
        }
        if let Some(title) = &fields.title {
            tool.title = short(title, 1000);
        }
        if let Some(name) = &fields.name {
            tool.name = Some(short(name, 200));
        }
        if let Some(input) = fields.raw_input.as_ref().filter(|input| !is_empty(input)) {
            tool.is_cut = is_too_long(input);
            tool.input = fit_event(input.clone());
        }
        tool.bytes = serde_json::to_vec(&*tool).map_or(0, |json| json.len());
    }

    pub(super) fn tool(&mut self, id: i64, name: &str) -> Option<&mut Tool> {
        self.conversations.get_mut(&id)?.tools.get_mut(name)
    }

    pub(super) fn tell_call(&mut self, id: i64, name: &str, fx: &mut Effects) {
        let Some(tool) = self.tool(id, name).filter(|tool| !tool.is_told) else { return };
        tool.is_told = true;
        let tool = tool.clone();
        let content = Content::ToolCall {
            tool: tool.name.unwrap_or(tool.title),
            call_id: tool.call_id.clone(),
            input: tool.input,
        };
        let key = self.next_key('c');
        fx.events.push(self.message(id, key, content));
    }
}

/// Some agents use the same id for all questions: another input means another call.
fn differs(tool: &Tool, fields: &ToolCallUpdateFields) -> bool {
    let input = fields.raw_input.as_ref().filter(|input| !is_empty(input));
    let is_same =
        |input: &Value| *input == tool.input || tool.is_cut && fit_event(input.clone()) == tool.input;
    input.is_some_and(|input| !is_empty(&tool.input) && !is_same(input))
}

pub(super) fn is_empty(input: &Value) -> bool {
    input.is_null() || input.as_object().is_some_and(serde_json::Map::is_empty)
}

/// A tool's result: its own output, or else its displayed content.
fn output(fields: ToolCallUpdateFields) -> Value {
    if let Some(output) = fields.raw_output.filter(|output| !output.is_null()) {
        return output;
    }
    let content = fields.content.unwrap_or_default();
    let texts = content.iter().map(|part| match part {
        ToolCallContent::Content(content) => match &content.content {
            ContentBlock::Text(text) => Some(text.text.as_str()),
            _ => None,
        },
        _ => None,
    });
    match texts.collect::<Option<Vec<_>>>() {
        Some(texts) => Value::String(texts.join("\n")),
        None => serde_json::to_value(&content).unwrap_or_default(),
    }
}
