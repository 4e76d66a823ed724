//! Sets a session's model and then its mode before a turn, as far as the session offers them and has other ones. The
//! turn starts regardless of the agent's answers.

use agent_client_protocol_schema::v1::{
    SessionConfigOption, SessionConfigOptionCategory, SessionConfigOptionValue,
    SetSessionConfigOptionRequest, SetSessionModeRequest,
};
use muster_protocol::event::{TurnOutcome, Usage};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    Effects, Machine, Pending,
    offers::SessionOffers,
    options::{self, Select},
    rpc, short,
};
use crate::bounds::{LIST, NAME};

/// An option of a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Choice {
    /// The option's id. `None`: the mode, in the older protocol.
    option: Option<String>,
    /// The current value, if known.
    current: Option<String>,
    /// The offered values.
    offered: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Choices {
    model: Option<Choice>,
    mode: Option<Choice>,
}

impl Choice {
    /// Values too long to report are skipped: they can't be chosen.
    fn new(
        option: Option<String>,
        current: Option<String>,
        offered: impl Iterator<Item = String>,
    ) -> Option<Self> {
        let is_fine = |id: &String| id.len() <= NAME;
        let offered = offered.filter(is_fine).take(LIST).collect();
        option.as_ref().is_none_or(is_fine).then_some(Self {
            option,
            current: current.filter(is_fine),
            offered,
        })
    }

    /// The option of this category.
    fn from_options(options: &[SessionConfigOption], category: &SessionConfigOptionCategory) -> Option<Self> {
        let Select { id, current, values } = Select::find(options, category)?;
        Self::new(Some(id), Some(current), values.iter().map(|value| value.value.to_string()))
    }

    /// `{ "currentModeId": …, "availableModes": [{ "id": … }] }`.
    fn older_mode(answer: &Value) -> Option<Self> {
        let told = answer.get("modes")?;
        let modes = told.get("availableModes")?.as_array()?.iter();
        let offered = modes.filter_map(|mode| mode.get("id")?.as_str().map(str::to_owned));
        let current = told.get("currentModeId").and_then(Value::as_str).map(str::to_owned);
        Self::new(None, current, offered)
    }

    /// The part that also applies to sessions that report nothing; their current value is unknown.
    fn remembered(&self) -> Self {
        Self { current: None, ..self.clone() }
    }

    /// Whether the session offers this value and has another.
    fn needs(&self, wanted: &str) -> bool {
        self.current.as_deref() != Some(wanted) && self.offered.iter().any(|value| value == wanted)
    }

    /// The request to set this value.
    fn line(&self, name: &str, session: &str, value: &str) -> String {
        let (session, value) = (session.to_owned(), value.to_owned());
        match &self.option {
            Some(option) => {
                let value = SessionConfigOptionValue::value_id(value);
                let request = SetSessionConfigOptionRequest::new(session, option.clone(), value);
                rpc::request(name, "session/set_config_option", &request)
            }
            None => rpc::request(name, "session/set_mode", &SetSessionModeRequest::new(session, value)),
        }
    }
}

impl Choices {
    /// From the answer to a request that opens a session or changes its options.
    fn in_answer(answer: &Value) -> Self {
        let Self { model, mode } = Self::in_options(&options::in_answer(answer));
        Self { model, mode: mode.or_else(|| Choice::older_mode(answer)) }
    }

    /// From a session's options.
    fn in_options(options: &[SessionConfigOption]) -> Self {
        let of = |category| Choice::from_options(options, &category);
        Self { model: of(SessionConfigOptionCategory::Model), mode: of(SessionConfigOptionCategory::Mode) }
    }

    fn current_model(&self) -> Option<&str> {
        self.model.as_ref()?.current.as_deref()
    }
}

impl Machine {
    /// Sets model and mode of a newly opened session from the opening's answer, and then sends the prompt.
    pub(super) fn choose(&mut self, id: i64, answer: &Value, fx: &mut Effects) {
        let told = Choices::in_answer(answer);
        let is_silent = told == Choices::default();
        self.remember(&told);
        let older = answer.pointer("/models/currentModelId").and_then(Value::as_str);
        if let (Some(model), Some(conversation)) =
            (told.current_model().or(older), self.conversations.get_mut(&id))
        {
            conversation.model = Some(short(model, 200));
        }
        // Many agents report options of new sessions only. Then the last reported ones apply.
        let Choices { model, mode } = if is_silent { self.choices.clone() } else { told };
        if let (Some(choice), Some(wanted)) = (model, self.settings.model.clone()) {
            let pending = Pending::Model { conversation_id: id, mode: mode.clone() };
            if self.ask_for(id, &choice, &wanted, "model", pending) {
                return;
            }
        }
        self.choose_mode(id, mode, fx);
    }

    fn choose_mode(&mut self, id: i64, choice: Option<Choice>, fx: &mut Effects) {
        if let (Some(choice), Some(wanted)) = (choice, self.settings.mode.clone()) {
            let pending = Pending::Mode { conversation_id: id, mode: wanted.clone() };
            if self.ask_for(id, &choice, &wanted, "mode", pending) {
                return;
            }
        }
        self.prompt(id, fx);
    }

    /// Requests a value, if needed. Returns whether it did.
    fn ask_for(&mut self, id: i64, choice: &Choice, wanted: &str, what: &str, pending: Pending) -> bool {
        let found = self.conversations.get(&id).filter(|_| choice.needs(wanted));
        let Some(found) = found else { return false };
        let (Some(session), Some(active)) = (&found.session, &found.turn) else { return false };
        let name = format!("{}.{}.{what}", self.generation, active.turn.command_id);
        let line = choice.line(&name, session, wanted);
        self.pending.insert(name, pending);
        self.send(line);
        true
    }

    /// Handles the answer about the model. The mode, as reported before, is next.
    pub(super) fn model_chosen(
        &mut self,
        id: i64,
        mut mode: Option<Choice>,
        answer: Result<&str, rpc::Failure>,
        fx: &mut Effects,
    ) {
        if let (Ok(answer), Some(conversation)) = (answer, self.conversations.get_mut(&id)) {
            conversation.model.clone_from(&self.settings.model);
            let answer: Value = muster_json::from_str(answer).unwrap_or_default();
            self.offers(SessionOffers::in_answer(&answer), fx);
            let told = Choices::in_answer(&answer);
            self.remember(&told);
            // Another model may have other modes.
            mode = told.mode.or(mode);
        }
        if self.is_cancelled(id) {
            return self.end_unprompted(id, fx);
        }
        self.choose_mode(id, mode, fx);
    }

    /// Ends a turn cancelled during the opening of its session. The next turn sets model and mode.
    pub(super) fn end_unprompted(&mut self, id: i64, fx: &mut Effects) {
        if let Some(conversation) = self.conversations.get_mut(&id) {
            conversation.is_stale = true;
        }
        self.end_turn(id, TurnOutcome::Cancelled, None, Usage::default(), fx);
    }

    /// Handles the answer about the mode. `None`: refused.
    pub(super) fn mode_chosen(&mut self, id: i64, mode: &str, answer: Option<&str>, fx: &mut Effects) {
        if let Some(answer) = answer {
            let answer: Value = muster_json::from_str(answer).unwrap_or_default();
            self.remember(&Choices::in_answer(&answer));
            let found = SessionOffers::in_answer(&answer);
            if found == SessionOffers::default() {
                self.mode_changed(mode, fx);
            } else {
                self.offers(found, fx);
            }
        }
        if self.is_cancelled(id) {
            return self.end_turn(id, TurnOutcome::Cancelled, None, Usage::default(), fx);
        }
        self.prompt(id, fx);
    }

    /// Handles options changed by the agent itself.
    pub(super) fn options_changed(&mut self, id: i64, options: &[SessionConfigOption], fx: &mut Effects) {
        self.offers(SessionOffers::in_options(options), fx);
        let told = Choices::in_options(options);
        if let (Some(model), Some(conversation)) = (told.current_model(), self.conversations.get_mut(&id)) {
            conversation.model = Some(short(model, 200));
        }
        self.remember(&told);
    }

    fn remember(&mut self, told: &Choices) {
        let known = &mut self.choices;
        known.model = told.model.as_ref().map(Choice::remembered).or(known.model.take());
        known.mode = told.mode.as_ref().map(Choice::remembered).or(known.mode.take());
    }
}
