//! Turns: one at a time per conversation, in parallel across conversations.

use agent_client_protocol_schema::v1::{
    CancelNotification, ContentBlock, PromptRequest, PromptResponse, StopReason,
};
use indexmap::IndexMap;
use muster_protocol::{
    HostEvent,
    event::{Content, Message, TurnEnd, TurnOutcome, Usage},
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::{Effects, MAX_SESSIONS, Machine, Opening, Pending, prompts::agent_note, rpc, usage};

/// The note before instructions that an open session gets again.
pub(super) const REPLACED: &str = "These instructions replace those that you got before:";

/// A turn for the agent.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Turn {
    pub turn_id: i64,
    /// The command's id, which names the prompt.
    pub command_id: i64,
    pub conversation_id: i64,
    /// The session to resume.
    pub session: Option<String>,
    /// The session's instructions besides those of the plan.
    pub instructions: String,
    pub prompt: Vec<ContentBlock>,
}

/// A running turn.
#[derive(Debug, Serialize, Deserialize)]
pub struct Active {
    pub(super) turn: Turn,
    pub(super) is_prompted: bool,
    pub(super) is_cancelled: bool,
}

impl Machine {
    /// Starts a turn, or queues it behind the conversation's current one. The control plane chooses the session to
    /// continue: none, if the old one is too full.
    pub fn begin(&mut self, turn: Turn, fx: &mut Effects) {
        let conversation = self.conversations.entry(turn.conversation_id).or_default();
        if conversation.turn.is_some() {
            conversation.waiting.push_back(turn);
        } else {
            if conversation.session.is_some() && conversation.session != turn.session {
                conversation.session = None;
            }
            self.start(turn, fx);
        }
    }

    /// Whether this turn runs or waits.
    pub fn has_turn(&self, turn_id: i64) -> bool {
        self.conversations.values().any(|conversation| {
            conversation.turn.as_ref().is_some_and(|active| active.turn.turn_id == turn_id)
                || conversation.waiting.iter().any(|turn| turn.turn_id == turn_id)
        })
    }

    fn start(&mut self, turn: Turn, fx: &mut Effects) {
        let id = turn.conversation_id;
        let resumed = turn.session.clone();
        let conversation = self.conversations.entry(id).or_default();
        conversation.turn = Some(Active { turn, is_prompted: false, is_cancelled: false });
        let is_stale = std::mem::take(&mut conversation.is_stale);
        match conversation.session.clone() {
            Some(session) => match self.reopen_method(&session).filter(|_| is_stale) {
                Some(opening) => self.reopen(id, &session, opening),
                // It can't be reopened, but it may accept choices.
                None if is_stale => self.choose(id, &Value::Null, fx),
                None => self.prompt(id, fx),
            },
            None => {
                let opening =
                    resumed.and_then(|session| self.reopen_method(&session)).unwrap_or(Opening::New);
                self.open_rested(id, opening);
            }
        }
    }

    /// Sends the turn's prompt. The session is open.
    pub(super) fn prompt(&mut self, id: i64, fx: &mut Effects) {
        let Some(conversation) = self.conversations.get_mut(&id) else { return };
        let (Some(active), Some(session)) = (&mut conversation.turn, &conversation.session) else { return };
        let is_new = std::mem::take(&mut conversation.is_new);
        let of_turn = std::mem::take(&mut active.turn.instructions);
        let instructions = [self.settings.instructions.clone(), of_turn];
        let mut prompt = instruct(&mut self.told, session, is_new, instructions);
        prompt.append(&mut active.turn.prompt);
        active.is_prompted = true;
        let name = format!("{}.{}", self.generation, active.turn.command_id);
        let request = PromptRequest::new(session.clone(), prompt);
        let turn_id = active.turn.turn_id;
        self.pending.insert(name.clone(), Pending::Prompt { conversation_id: id, turn_id });
        fx.events.push(HostEvent::TurnStarted { turn_id });
        self.send(rpc::request(&name, "session/prompt", &request));
    }

    /// Cancels a running or queued turn. Returns false for an unknown one.
    pub fn cancel(&mut self, turn_id: i64, fx: &mut Effects) -> bool {
        let found = self.conversations.iter().find_map(|(id, conversation)| {
            let is_running = conversation.turn.as_ref().is_some_and(|active| active.turn.turn_id == turn_id);
            let is_waiting = conversation.waiting.iter().any(|turn| turn.turn_id == turn_id);
            (is_running || is_waiting).then_some((*id, is_running))
        });
        let Some((id, is_running)) = found else { return false };
        let Some(conversation) = self.conversations.get_mut(&id) else { return false };
        if !is_running {
            conversation.waiting.retain(|turn| turn.turn_id != turn_id);
            fx.events.push(ended(turn_id, TurnOutcome::Cancelled, Some("It was cancelled before it began.")));
            return true;
        }
        let session = conversation.session.clone();
        let Some(active) = &mut conversation.turn else { return false };
        if !std::mem::replace(&mut active.is_cancelled, true)
            && active.is_prompted
            && let Some(session) = session
        {
            self.send(rpc::notification("session/cancel", &CancelNotification::new(session)));
            self.withdraw_all(id, fx);
        }
        true
    }

    /// Cancelled turns that the agent has not ended.
    pub fn cancelled(&self) -> impl Iterator<Item = i64> {
        let active = self.conversations.values().filter_map(|conversation| conversation.turn.as_ref());
        active.filter(|active| active.is_cancelled).map(|active| active.turn.turn_id)
    }

    /// Ends a cancelled turn that the agent doesn't end, and gives up its session, which is still busy.
    pub fn give_up(&mut self, turn_id: i64, fx: &mut Effects) {
        let mut all = self.conversations.iter();
        let found = all.find_map(|(id, conversation)| {
            let active = conversation.turn.as_ref()?;
            (active.is_cancelled && active.turn.turn_id == turn_id).then_some(*id)
        });
        if let Some(id) = found {
            self.finish_messages(id, fx);
            let used = Usage { cost_micro: self.cost_of_turn(id), ..Usage::default() };
            self.give_up_session(id, fx);
            let error = "The agent did not confirm that it has stopped, and may still be working on it. The \
                         conversation goes on in a new session."
                .to_owned();
            self.end_turn(id, TurnOutcome::Cancelled, Some(error), used, fx);
        }
    }

    /// Cancels all turns: the agent is to stop.
    pub fn cancel_all(&mut self, fx: &mut Effects) {
        let turns = self.conversations.values().filter_map(|conversation| conversation.turn.as_ref());
        let turns: Vec<i64> = turns.map(|active| active.turn.turn_id).collect();
        for turn_id in turns {
            self.cancel(turn_id, fx);
        }
    }

    pub(super) fn prompt_ended(&mut self, id: i64, answer: Result<&str, rpc::Failure>, fx: &mut Effects) {
        self.finish_messages(id, fx);
        self.withdraw_all(id, fx);
        let is_cancelled = self.is_cancelled(id);
        let (outcome, error, used) = match answer.map(muster_json::from_str::<PromptResponse>) {
            Ok(Ok(response)) => {
                let (outcome, error) = self.outcome(id, response.stop_reason, fx);
                (outcome, error, usage::tokens(&response))
            }
            Ok(Err(_)) => {
                let error = "The agent's answer doesn't follow the Agent Client Protocol.".to_owned();
                (TurnOutcome::Failed, Some(error), Usage::default())
            }
            Err(_) if is_cancelled => (TurnOutcome::Cancelled, None, Usage::default()),
            Err(failure) => {
                // The agent may have kept nothing of the prompt.
                if let Some(session) = self.conversations.get(&id).and_then(|found| found.session.as_ref()) {
                    self.told.shift_remove(session);
                }
                (TurnOutcome::Failed, Some(failed(&failure, fx)), Usage::default())
            }
        };
        self.end_turn(id, outcome, error, used, fx);
    }

    /// A refused turn has failed. One that reached a limit is done, with a message about the limit.
    fn outcome(&mut self, id: i64, reason: StopReason, fx: &mut Effects) -> (TurnOutcome, Option<String>) {
        let (code, text) = match reason {
            StopReason::Cancelled => return (TurnOutcome::Cancelled, None),
            StopReason::Refusal => {
                return (TurnOutcome::Failed, Some("The agent refused to continue.".to_owned()));
            }
            StopReason::MaxTokens => {
                ("MAX_TOKENS", "The answer ends here: it reached the model's limit of tokens.")
            }
            StopReason::MaxTurnRequests => (
                "MAX_TURN_REQUESTS",
                "The answer ends here: the agent reached its limit of requests in one turn.",
            ),
            _ => return (TurnOutcome::Done, None),
        };
        let content = Content::Error { code: code.to_owned(), text: text.to_owned() };
        let key = self.next_key('e');
        fx.events.push(self.message(id, key, content));
        (TurnOutcome::Done, None)
    }

    pub(super) fn end_turn(
        &mut self,
        id: i64,
        outcome: TurnOutcome,
        error: Option<String>,
        mut used: Usage,
        fx: &mut Effects,
    ) {
        used.cost_micro = self.cost_of_turn(id).or(used.cost_micro);
        let Some(conversation) = self.conversations.get_mut(&id) else { return };
        conversation.tools.clear();
        let Some(active) = conversation.turn.take() else { return };
        fx.events.push(HostEvent::TurnEnded(TurnEnd {
            turn_id: active.turn.turn_id,
            outcome,
            error,
            model: conversation.model.clone(),
            usage: used,
            context_tokens: conversation.context_tokens,
        }));
        if let Some(next) = conversation.waiting.pop_front() {
            self.start(next, fx);
        }
    }

    /// The session's total cost now, minus the total at the end of its last turn.
    fn cost_of_turn(&mut self, id: i64) -> Option<i64> {
        let conversation = self.conversations.get(&id)?;
        let (session, now) = (conversation.session.clone()?, conversation.cost?);
        let before = remember(&mut self.costs, session, now).unwrap_or(0);
        // A smaller total means a reset.
        Some(if now >= before { now - before } else { now })
    }

    pub(super) fn is_cancelled(&self, id: i64) -> bool {
        let active = self.conversations.get(&id).and_then(|conversation| conversation.turn.as_ref());
        active.is_some_and(|active| active.is_cancelled)
    }

    /// The conversation's current turn.
    pub fn turn_of(&self, id: i64) -> Option<i64> {
        let active = self.conversations.get(&id)?.turn.as_ref()?;
        active.is_prompted.then_some(active.turn.turn_id)
    }

    /// Conversations with a running turn.
    pub fn conversations_in_turn(&self) -> impl Iterator<Item = i64> {
        self.conversations.keys().copied().filter(|id| self.turn_of(*id).is_some())
    }

    /// A message in the conversation's current turn.
    pub fn message(&self, id: i64, key: String, content: Content) -> HostEvent {
        HostEvent::Message(Message { conversation_id: id, turn_id: self.turn_of(id), key, content })
    }
}

/// The notes with a session's instructions, if it is new, or if its last ones were different or are unknown.
fn instruct(
    told: &mut IndexMap<String, u64>,
    session: &str,
    is_new: bool,
    instructions: [String; 2],
) -> Vec<ContentBlock> {
    let texts: Vec<String> = instructions.into_iter().filter(|text| !text.is_empty()).collect();
    let digest = digest(&texts);
    let before = remember(told, session.to_owned(), digest);
    if texts.is_empty() || (!is_new && before == Some(digest)) {
        return Vec::new();
    }
    let heading = (!is_new).then(|| REPLACED.to_owned());
    heading.into_iter().chain(texts).map(agent_note).collect()
}

/// The first eight bytes of a digest, which is enough to detect a change.
fn digest(texts: &[String]) -> u64 {
    let hash = Sha256::digest(texts.join("\n"));
    hash.iter().take(8).fold(0, |digest, byte| (digest << 8) | u64::from(*byte))
}

/// Stores a value for a session, as the last of the used ones, and returns the one before. Forgets the longest unused
/// session.
fn remember<T>(known: &mut IndexMap<String, T>, session: String, value: T) -> Option<T> {
    let before = known.shift_remove(&session);
    if known.len() >= MAX_SESSIONS {
        known.shift_remove_index(0);
    }
    known.insert(session, value);
    before
}

/// The text of a failure. Reports missing access to the model.
pub(super) fn failed(failure: &rpc::Failure, fx: &mut Effects) -> String {
    let text = failure.text();
    if failure.is_auth_required() {
        fx.events.push(HostEvent::AuthRequired { detail: text.clone() });
    }
    text
}

/// The event of a turn that ended without the agent.
pub fn ended(turn_id: i64, outcome: TurnOutcome, error: Option<&str>) -> HostEvent {
    HostEvent::TurnEnded(TurnEnd {
        turn_id,
        outcome,
        error: error.map(str::to_owned),
        model: None,
        usage: Usage::default(),
        context_tokens: None,
    })
}
