//! The actions of a turn: messages, thoughts, tool calls, permission requests, and questions to a person.
//!
//! Each is reported to the client immediately and stored in the session's history. Cancelling the turn ends pending
//! requests.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use agent_client_protocol::{
    Client, Error,
    v1::{
        ConnectionTo,
        schema::{
            ContentBlock, ContentChunk, CreateElicitationRequest, ElicitationAction, ElicitationContentValue,
            ElicitationFormMode, ElicitationSchema, ElicitationSessionScope, EnumOption, MessageId,
            PermissionOption, PermissionOptionKind, PromptResponse, RequestPermissionOutcome,
            RequestPermissionRequest, SessionUpdate, StopReason, StringPropertySchema, ToolCall,
            ToolCallContent, ToolCallId, ToolCallStatus, ToolCallUpdate, ToolCallUpdateFields, ToolKind,
            Usage, UsageUpdate,
        },
    },
};
use serde_json::{Value, json};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::{
    history::{Call, Entry, Message, Outcome},
    mcp::Tool,
    output,
    protocol::Agent,
    session::Session,
};

pub struct Turn {
    pub agent: Arc<Agent>,
    pub session: Arc<Session>,
    /// If known.
    pub usage: Option<TokenUsage>,
    /// Tokens in the context, if known.
    pub context: Option<u64>,
    connection: ConnectionTo<Client>,
    cancel: CancellationToken,
    /// The number of the turn in the session, from 1.
    pub number: u64,
    ids: u64,
    pub text_bytes: TextBytes,
}

#[derive(Default)]
pub struct TextBytes {
    /// The prompt, and the answers of tools and people.
    pub read: AtomicUsize,
    /// Messages, thoughts and tool inputs of the agent.
    pub written: AtomicUsize,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TokenUsage {
    /// Without cached tokens.
    pub input: u64,
    /// Including thoughts.
    pub output: u64,
    pub cache_read: u64,
    pub cache_write: u64,
}

impl std::ops::AddAssign for TokenUsage {
    fn add_assign(&mut self, other: Self) {
        self.input += other.input;
        self.output += other.output;
        self.cache_read += other.cache_read;
        self.cache_write += other.cache_write;
    }
}

/// Why a turn ends early.
#[derive(Debug)]
pub enum Stop {
    Cancelled,
    Model(StopReason),
    Failed(Error),
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        Self::Failed(Error::into_internal_error(error))
    }
}

pub enum PersonAnswer {
    Text(String),
    Declined,
}

impl Turn {
    /// Begins a turn with a person's message.
    pub async fn begin(
        agent: Arc<Agent>,
        session: Arc<Session>,
        connection: ConnectionTo<Client>,
        cancel: CancellationToken,
        prompt: &str,
    ) -> Self {
        let number = session.with_record(|record| {
            record.turns += 1;
            record.turns
        });
        let (usage, context) = (None, None);
        let text_bytes = TextBytes { read: prompt.len().into(), ..TextBytes::default() };
        let mut turn =
            Self { agent, session, usage, context, connection, cancel, number, ids: 0, text_bytes };
        let message = Message { id: turn.new_id(), text: prompt.to_owned() };
        turn.record(Entry::User(message)).await;
        turn
    }

    pub async fn end(self, result: Result<(), Stop>) -> Result<PromptResponse, Error> {
        if let Some(used) = self.context {
            // The size of the context is unknown.
            let usage = UsageUpdate::new(used, used.max(200_000));
            // If this fails, so does the response.
            let _ = self.update(SessionUpdate::UsageUpdate(usage)).await;
        }
        let reason = match result {
            Ok(()) => StopReason::EndTurn,
            Err(Stop::Cancelled) => StopReason::Cancelled,
            Err(Stop::Model(reason)) => reason,
            Err(Stop::Failed(error)) => return Err(error),
        };
        let usage = self.usage.map(|TokenUsage { input, output, cache_read, cache_write }| {
            Usage::new(input + output + cache_read + cache_write, input, output)
                .cached_read_tokens(cache_read)
                .cached_write_tokens(cache_write)
        });
        Ok(PromptResponse::new(reason).usage(usage))
    }

    /// Runs `work` until the turn is cancelled.
    pub async fn until_cancelled<T>(&self, work: impl Future<Output = T>) -> Result<T, Stop> {
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => Err(Stop::Cancelled),
            done = work => Ok(done),
        }
    }

    /// A unique id for a message or call of the session.
    pub fn new_id(&mut self) -> String {
        self.ids += 1;
        format!("{}-{}-{}", self.session.id, self.number, self.ids)
    }

    /// Adds an entry to the history. A full disk must not end the turn.
    pub async fn record(&self, entry: Entry) {
        self.session.with_record(|record| record.push(entry));
        self.save_session().await;
    }

    pub async fn save_session(&self) {
        if let Err(error) = self.session.save().await {
            output::report_error(format_args!("the session can't be stored: {error}"));
        }
    }

    pub async fn update(&self, update: SessionUpdate) -> Result<(), Stop> {
        Ok(self.agent.update(&self.session, update).await?)
    }

    /// Sends a chunk of a message or a thought.
    pub async fn send_chunk(&self, id: &str, thought: bool, text: &str) -> Result<(), Stop> {
        self.text_bytes.written.fetch_add(text.len(), Relaxed);
        let chunk = ContentChunk::new(ContentBlock::from(text)).message_id(MessageId::new(id));
        self.update(if thought {
            SessionUpdate::AgentThoughtChunk(chunk)
        } else {
            SessionUpdate::AgentMessageChunk(chunk)
        })
        .await
    }

    pub async fn send_message(&mut self, text: impl Into<String>) -> Result<(), Stop> {
        let message = Message { id: self.new_id(), text: text.into() };
        // Stored before the client sees it.
        self.record(Entry::Agent(message.clone())).await;
        self.send_chunk(&message.id, false, &message.text).await
    }

    /// Sends a message in pieces, with pauses between them. If it is cancelled, the sent pieces are stored.
    pub async fn send_pieces(
        &mut self,
        pieces: impl IntoIterator<Item = String>,
        pause: Duration,
    ) -> Result<(), Stop> {
        let id = self.new_id();
        let mut text = String::new();
        let mut result = Ok(());
        for piece in pieces {
            if !text.is_empty() {
                result = self.until_cancelled(sleep(pause)).await;
            }
            if result.is_err() {
                break;
            }
            self.send_chunk(&id, false, &piece).await?;
            text.push_str(&piece);
        }
        self.record(Entry::Agent(Message { id, text })).await;
        result
    }

    pub async fn announce_call(
        &mut self,
        name: Option<String>,
        title: String,
        tool: ToolKind,
        input: Value,
    ) -> Result<Call, Stop> {
        let call = Call { id: self.new_id(), name, title, tool, input, result: None };
        self.text_bytes.written.fetch_add(call.input.to_string().len(), Relaxed);
        self.record(Entry::Tool(call.clone())).await;
        self.update(SessionUpdate::ToolCall(tool_call(&call).status(ToolCallStatus::Pending))).await?;
        Ok(call)
    }

    pub async fn finish_call(
        &self,
        call: &Call,
        outcome: Outcome,
        output: Option<Value>,
    ) -> Result<(), Stop> {
        self.text_bytes.read.fetch_add(outcome.text.len(), Relaxed);
        let fields = ToolCallUpdateFields::new()
            .status(status(&outcome))
            .content(vec![ToolCallContent::from(outcome.text.as_str())])
            .raw_output(output);
        self.session.with_record(|record| record.finish_call(&call.id, outcome.failed, outcome.text));
        self.save_session().await;
        self.update(SessionUpdate::ToolCallUpdate(call_update(call, fields))).await
    }

    /// Requests permission for a call. A denied call is reported as failed.
    pub async fn request_permission(&mut self, call: &Call) -> Result<bool, Stop> {
        let action = format!("{} {}", json!(call.tool), call.name.as_ref().unwrap_or(&call.title));
        if self.session.allows(&action) {
            return Ok(true);
        }
        let fields = ToolCallUpdateFields::new()
            .title(call.title.clone())
            .name(call.name.clone())
            .kind(call.tool)
            .status(ToolCallStatus::Pending)
            .raw_input(call.input.clone());
        let options = vec![
            PermissionOption::new("allow", "Allow", PermissionOptionKind::AllowOnce),
            PermissionOption::new("always", "Always allow", PermissionOptionKind::AllowAlways),
            PermissionOption::new("reject", "Deny", PermissionOptionKind::RejectOnce),
        ];
        let update = call_update(call, fields);
        let request = RequestPermissionRequest::new(self.session.id.clone(), update, options);
        let answer = self.until_cancelled(self.connection.send_request(request).block_task()).await;
        let (text, denied) = match answer.map(|answer| answer.map(|answer| answer.outcome)) {
            Ok(Ok(RequestPermissionOutcome::Selected(chosen))) => match &*chosen.option_id.0 {
                "allow" => return Ok(true),
                "always" => {
                    self.session.allow(action);
                    return Ok(true);
                }
                _ => ("Not permitted.".to_owned(), Ok(false)),
            },
            Ok(Ok(_)) | Err(_) => ("Cancelled before it was permitted.".to_owned(), Err(Stop::Cancelled)),
            Ok(Err(error)) => (format!("Permission could not be asked for: {error}"), Ok(false)),
        };
        self.finish_call(call, Outcome { failed: true, text }, None).await?;
        denied
    }

    pub async fn report_start(&self, call: &Call) -> Result<(), Stop> {
        let fields = ToolCallUpdateFields::new().status(ToolCallStatus::InProgress);
        self.update(SessionUpdate::ToolCallUpdate(call_update(call, fields))).await
    }

    /// Calls a tool after its announcement.
    pub async fn call(&mut self, call: &Call, tool: &Tool) -> Result<Outcome, Stop> {
        self.report_start(call).await?;
        let input = call.input.as_object().cloned().unwrap_or_default();
        match self.until_cancelled(tool.call(input)).await {
            Ok((outcome, output)) => {
                self.finish_call(call, outcome.clone(), output).await?;
                Ok(outcome)
            }
            Err(stop) => {
                let text = "Cancelled. Whether it had an effect is not known.".to_owned();
                self.finish_call(call, Outcome { failed: true, text }, None).await?;
                Err(stop)
            }
        }
    }

    /// Asks a person through the client. None if the client doesn't support it.
    pub async fn ask_person(
        &mut self,
        question: &str,
        options: &[String],
    ) -> Result<Option<PersonAnswer>, Stop> {
        if !self.agent.can_elicit() {
            return Ok(None);
        }
        let scope = ElicitationSessionScope::new(self.session.id.clone());
        let request = CreateElicitationRequest::new(ElicitationFormMode::new(scope, form(options)), question);
        let answer = self.until_cancelled(self.connection.send_request(request).block_task()).await?;
        Ok(Some(match answer.map_err(Stop::Failed)?.action {
            ElicitationAction::Accept(accepted) => {
                let text: Vec<String> =
                    accepted.content.unwrap_or_default().into_values().filter_map(value_text).collect();
                let text = text.join("\n");
                self.text_bytes.read.fetch_add(text.len(), Relaxed);
                if text.is_empty() { PersonAnswer::Declined } else { PersonAnswer::Text(text) }
            }
            _ => PersonAnswer::Declined,
        }))
    }
}

/// A form with a text, and a choice if there are options.
fn form(options: &[String]) -> ElicitationSchema {
    let text = StringPropertySchema::new().title("In your own words".to_owned());
    if options.is_empty() {
        return ElicitationSchema::new().property("text", text, true);
    }
    let options =
        options.iter().map(|option| EnumOption::new(option.as_str(), option.as_str())).collect::<Vec<_>>();
    let choice = StringPropertySchema::new().title("Choice".to_owned()).one_of(options);
    ElicitationSchema::new().property("choice", choice, false).property("text", text, false)
}

fn value_text(value: ElicitationContentValue) -> Option<String> {
    match value {
        ElicitationContentValue::String(text) => Some(text).filter(|text| !text.is_empty()),
        ElicitationContentValue::StringArray(texts) => Some(texts.join(", ")),
        other => serde_json::to_string(&other).ok(),
    }
}

fn status(outcome: &Outcome) -> ToolCallStatus {
    if outcome.failed { ToolCallStatus::Failed } else { ToolCallStatus::Completed }
}

fn call_update(call: &Call, fields: ToolCallUpdateFields) -> ToolCallUpdate {
    ToolCallUpdate::new(ToolCallId::new(call.id.as_str()), fields)
}

fn tool_call(call: &Call) -> ToolCall {
    ToolCall::new(ToolCallId::new(call.id.as_str()), call.title.as_str())
        .name(call.name.clone())
        .kind(call.tool)
        .raw_input(call.input.clone())
}

pub fn replay_entry(entry: Entry) -> SessionUpdate {
    let chunk = |message: Message| {
        ContentChunk::new(ContentBlock::from(message.text)).message_id(MessageId::new(message.id))
    };
    match entry {
        Entry::User(message) => SessionUpdate::UserMessageChunk(chunk(message)),
        Entry::Agent(message) => SessionUpdate::AgentMessageChunk(chunk(message)),
        Entry::Thought(message) => SessionUpdate::AgentThoughtChunk(chunk(message)),
        Entry::Tool(call) => {
            let outcome = call.result.clone().unwrap_or_else(interrupted_outcome);
            SessionUpdate::ToolCall(
                tool_call(&call)
                    .status(status(&outcome))
                    .content(vec![ToolCallContent::from(outcome.text.as_str())]),
            )
        }
    }
}

/// The outcome of a call during which the agent was killed.
pub fn interrupted_outcome() -> Outcome {
    Outcome { failed: true, text: "Interrupted. Whether it had an effect is not known.".to_owned() }
}
