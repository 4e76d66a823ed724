//! What the agent can do while it answers: say and think, call tools, ask for permission, ask a person.
//!
//! Everything is reported to the client as it happens, and kept in the session's history. Pending requests end when the turn
//! is cancelled.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
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
use tokio_util::sync::CancellationToken;

use crate::{
    history::{Call, Entry, Outcome, Said},
    mcp::Tool,
    protocol::Agent,
    say,
    session::Session,
};

/// A turn that is running.
pub struct Turn {
    /// The agent.
    pub agent: Arc<Agent>,
    /// The session.
    pub session: Arc<Session>,
    /// What was spent, if it is known.
    pub spent: Option<Spent>,
    /// How full the context is, in tokens, if it is known.
    pub context: Option<u64>,
    connection: ConnectionTo<Client>,
    cancel: CancellationToken,
    /// Its number in the session, from 1.
    pub number: u64,
    ids: u64,
    /// How much was read and written, in bytes of text.
    pub text: Text,
}

/// Bytes of text.
#[derive(Default)]
pub struct Text {
    /// What the person said, and what tools and people answered.
    pub read: AtomicUsize,
    /// What the agent said, thought and gave to tools.
    pub written: AtomicUsize,
}

/// Tokens, by class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// Read, except cached ones.
    pub input: u64,
    /// Written, thoughts included.
    pub output: u64,
    /// Read from a cache.
    pub cache_read: u64,
    /// Written to a cache.
    pub cache_write: u64,
}

impl std::ops::AddAssign for Spent {
    fn add_assign(&mut self, other: Self) {
        self.input += other.input;
        self.output += other.output;
        self.cache_read += other.cache_read;
        self.cache_write += other.cache_write;
    }
}

/// Why a turn ends before everything is said.
#[derive(Debug)]
pub enum Stop {
    /// It was cancelled.
    Cancelled,
    /// The model ended it.
    Model(StopReason),
    /// It failed.
    Failed(Error),
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        Self::Failed(Error::into_internal_error(error))
    }
}

/// What a person answered.
pub enum Answered {
    /// This.
    Text(String),
    /// Nothing.
    Declined,
}

impl Turn {
    /// Begins a turn with what the person said.
    pub async fn begin(
        agent: Arc<Agent>,
        session: Arc<Session>,
        connection: ConnectionTo<Client>,
        cancel: CancellationToken,
        prompt: &str,
    ) -> Self {
        let number = session.with(|record| {
            record.turns += 1;
            record.turns
        });
        let (spent, context) = (None, None);
        let text = Text { read: prompt.len().into(), ..Text::default() };
        let mut turn = Self { agent, session, spent, context, connection, cancel, number, ids: 0, text };
        let said = Said { id: turn.new_id(), text: prompt.to_owned() };
        turn.keep(Entry::User(said)).await;
        turn
    }

    /// Ends it: tells what was spent.
    pub async fn end(self, result: Result<(), Stop>) -> Result<PromptResponse, Error> {
        if let Some(used) = self.context {
            // Its size is unknown.
            let usage = UsageUpdate::new(used, used.max(200_000));
            // If no one reads it, no one reads the answer either.
            let _ = self.update(SessionUpdate::UsageUpdate(usage)).await;
        }
        let reason = match result {
            Ok(()) => StopReason::EndTurn,
            Err(Stop::Cancelled) => StopReason::Cancelled,
            Err(Stop::Model(reason)) => reason,
            Err(Stop::Failed(error)) => return Err(error),
        };
        let usage = self.spent.map(|Spent { input, output, cache_read, cache_write }| {
            Usage::new(input + output + cache_read + cache_write, input, output)
                .cached_read_tokens(cache_read)
                .cached_write_tokens(cache_write)
        });
        Ok(PromptResponse::new(reason).usage(usage))
    }

    /// Whatever comes first: this, or the end of the turn.
    pub async fn unless_cancelled<T>(&self, work: impl Future<Output = T>) -> Result<T, Stop> {
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => Err(Stop::Cancelled),
            done = work => Ok(done),
        }
    }

    /// An id that no other message or call of the session has.
    pub fn new_id(&mut self) -> String {
        self.ids += 1;
        format!("{}-{}-{}", self.session.id, self.number, self.ids)
    }

    /// Keeps something in the history. A disk that is full must not end the turn.
    pub async fn keep(&self, entry: Entry) {
        self.session.with(|record| record.push(entry));
        self.store().await;
    }

    /// Stores the session.
    pub async fn store(&self) {
        if let Err(error) = self.session.store().await {
            say::complain(format_args!("the session can't be stored: {error}"));
        }
    }

    /// Tells the client something.
    pub async fn update(&self, update: SessionUpdate) -> Result<(), Stop> {
        Ok(self.agent.update(&self.session, update).await?)
    }

    /// Says a piece of a message, or of a thought.
    pub async fn piece(&self, id: &str, thought: bool, text: &str) -> Result<(), Stop> {
        self.text.written.fetch_add(text.len(), Relaxed);
        let chunk = ContentChunk::new(ContentBlock::from(text)).message_id(MessageId::new(id));
        self.update(if thought {
            SessionUpdate::AgentThoughtChunk(chunk)
        } else {
            SessionUpdate::AgentMessageChunk(chunk)
        })
        .await
    }

    /// Says a whole message.
    pub async fn say(&mut self, text: impl Into<String>) -> Result<(), Stop> {
        let said = Said { id: self.new_id(), text: text.into() };
        // Kept before anyone can know of it.
        self.keep(Entry::Agent(said.clone())).await;
        self.piece(&said.id, false, &said.text).await
    }

    /// Announces a tool call.
    pub async fn announce(
        &mut self,
        name: Option<String>,
        title: String,
        tool: ToolKind,
        input: Value,
    ) -> Result<Call, Stop> {
        let call = Call { id: self.new_id(), name, title, tool, input, result: None };
        self.text.written.fetch_add(call.input.to_string().len(), Relaxed);
        self.keep(Entry::Tool(call.clone())).await;
        self.update(SessionUpdate::ToolCall(announcement(&call).status(ToolCallStatus::Pending))).await?;
        Ok(call)
    }

    /// Tells what came of a call.
    pub async fn finish(&self, call: &Call, outcome: Outcome, output: Option<Value>) -> Result<(), Stop> {
        self.text.read.fetch_add(outcome.text.len(), Relaxed);
        let fields = ToolCallUpdateFields::new()
            .status(status(&outcome))
            .content(vec![ToolCallContent::from(outcome.text.as_str())])
            .raw_output(output);
        self.session.with(|record| record.finish(&call.id, outcome.failed, outcome.text));
        self.store().await;
        self.update(SessionUpdate::ToolCallUpdate(changed(call, fields))).await
    }

    /// Asks whether a call may be made. If not, the call has failed.
    pub async fn permitted(&mut self, call: &Call) -> Result<bool, Stop> {
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
        let update = changed(call, fields);
        let request = RequestPermissionRequest::new(self.session.id.clone(), update, options);
        let answer = self.unless_cancelled(self.connection.send_request(request).block_task()).await;
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
        self.finish(call, Outcome { failed: true, text }, None).await?;
        denied
    }

    /// Tells that a call is being made.
    pub async fn started(&self, call: &Call) -> Result<(), Stop> {
        let fields = ToolCallUpdateFields::new().status(ToolCallStatus::InProgress);
        self.update(SessionUpdate::ToolCallUpdate(changed(call, fields))).await
    }

    /// Calls a tool that has been announced.
    pub async fn call(&mut self, call: &Call, tool: &Tool) -> Result<Outcome, Stop> {
        self.started(call).await?;
        let input = call.input.as_object().cloned().unwrap_or_default();
        match self.unless_cancelled(tool.call(input)).await {
            Ok((outcome, output)) => {
                self.finish(call, outcome.clone(), output).await?;
                Ok(outcome)
            }
            Err(stop) => {
                let text = "Cancelled. Whether it had an effect is not known.".to_owned();
                self.finish(call, Outcome { failed: true, text }, None).await?;
                Err(stop)
            }
        }
    }

    /// Asks a person, through the client. None if the client can't.
    pub async fn ask(&mut self, question: &str, options: &[String]) -> Result<Option<Answered>, Stop> {
        if !self.agent.can_elicit() {
            return Ok(None);
        }
        let scope = ElicitationSessionScope::new(self.session.id.clone());
        let request = CreateElicitationRequest::new(ElicitationFormMode::new(scope, form(options)), question);
        let answer = self.unless_cancelled(self.connection.send_request(request).block_task()).await?;
        Ok(Some(match answer.map_err(Stop::Failed)?.action {
            ElicitationAction::Accept(accepted) => {
                let said: Vec<String> =
                    accepted.content.unwrap_or_default().into_values().filter_map(as_text).collect();
                let said = said.join("\n");
                self.text.read.fetch_add(said.len(), Relaxed);
                if said.is_empty() { Answered::Declined } else { Answered::Text(said) }
            }
            _ => Answered::Declined,
        }))
    }
}

/// A form with a choice, if there are options, and a text.
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

fn as_text(value: ElicitationContentValue) -> Option<String> {
    match value {
        ElicitationContentValue::String(text) => Some(text).filter(|text| !text.is_empty()),
        ElicitationContentValue::StringArray(texts) => Some(texts.join(", ")),
        other => serde_json::to_string(&other).ok(),
    }
}

fn status(outcome: &Outcome) -> ToolCallStatus {
    if outcome.failed { ToolCallStatus::Failed } else { ToolCallStatus::Completed }
}

fn changed(call: &Call, fields: ToolCallUpdateFields) -> ToolCallUpdate {
    ToolCallUpdate::new(ToolCallId::new(call.id.as_str()), fields)
}

fn announcement(call: &Call) -> ToolCall {
    ToolCall::new(ToolCallId::new(call.id.as_str()), call.title.as_str())
        .name(call.name.clone())
        .kind(call.tool)
        .raw_input(call.input.clone())
}

/// An entry of the history, as it is sent to a client that loads the session.
pub fn replayed(entry: Entry) -> SessionUpdate {
    let chunk =
        |said: Said| ContentChunk::new(ContentBlock::from(said.text)).message_id(MessageId::new(said.id));
    match entry {
        Entry::User(said) => SessionUpdate::UserMessageChunk(chunk(said)),
        Entry::Agent(said) => SessionUpdate::AgentMessageChunk(chunk(said)),
        Entry::Thought(said) => SessionUpdate::AgentThoughtChunk(chunk(said)),
        Entry::Tool(call) => {
            let outcome = call.result.clone().unwrap_or_else(interrupted);
            SessionUpdate::ToolCall(
                announcement(&call)
                    .status(status(&outcome))
                    .content(vec![ToolCallContent::from(outcome.text.as_str())]),
            )
        }
    }
}

/// What came of a call during which the agent was killed.
pub fn interrupted() -> Outcome {
    Outcome { failed: true, text: "Interrupted. Whether it had an effect is not known.".to_owned() }
}
