//! The agent's permission requests and questions. A request stays open until someone decides, the turn ends, or the
//! agent withdraws it.

use agent_client_protocol_schema::v1::{
    CreateElicitationRequest, CreateElicitationResponse, ElicitationAcceptAction, ElicitationAction,
    ElicitationMode, ElicitationScope, ErrorCode,
};
use muster_protocol::{
    HostEvent,
    event::{Asked, Request},
    plan::Decision,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{
    Delivery, Effects, MAX_OPEN, Machine, Settings,
    forms::{self, Form},
    not_judged,
    permission::{self, NO_YES, PermissionChoice, PermissionRequest, response_for},
    rpc, short,
    updates::{Mention, is_empty, name_of},
};
use crate::bounds::LIST;

/// An open request.
#[derive(Debug, Serialize, Deserialize)]
pub struct Open {
    conversation_id: i64,
    /// The agent's id of it.
    id: Value,
    waits: RequestKind,
}

#[derive(Debug, Serialize, Deserialize)]
enum RequestKind {
    Permission(Vec<PermissionChoice>),
    Form(Form),
    /// A call of Muster's own MCP server, whose caller may be gone.
    Own,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecisionEffect {
    /// A line delivers it to the agent.
    Said,
    /// A call of Muster's own MCP server may still wait for it.
    Own,
    /// Nothing waits for it.
    NotWaiting,
}

impl Machine {
    pub(super) fn request(&mut self, id: Value, method: &str, params: &str, fx: &mut Effects) {
        // An agent that doesn't read gets no answers.
        if self.lines.len() >= LIST {
            self.unknown += 1;
            return;
        }
        match method {
            "session/request_permission" => match muster_json::from_str(params) {
                Ok(request) => self.request_permission(id, &request, fx),
                Err(error) => self.reject_malformed(&id, &error),
            },
            "elicitation/create" => match muster_json::from_str(params) {
                Ok(request) => self.request_answer(id, &request, fx),
                Err(error) => self.reject_malformed(&id, &error),
            },
            _ => {
                self.unknown += 1;
                self.reject(&id, ErrorCode::MethodNotFound, "Muster doesn't offer this method.");
            }
        }
    }

    fn reject_malformed(&mut self, id: &Value, error: &serde_json::Error) {
        self.reject(id, ErrorCode::InvalidParams, &short(&format!("The request is invalid: {error}."), 1000));
    }

    fn reject(&mut self, id: &Value, code: ErrorCode, message: &str) {
        self.send(rpc::error(id, code, message));
    }

    fn request_permission(&mut self, id: Value, request: &PermissionRequest, fx: &mut Effects) {
        let choices = request.choices();
        let found = self.conversation_of(&request.session_id.0);
        let key = found.and_then(|found| self.waiting_key(&id, found, &choices));
        let Some((key, conversation_id)) = key else {
            self.send(rpc::response(&id, &permission::cancelled()));
            return;
        };
        self.finish_messages(conversation_id, fx);
        let name = name_of(&request.tool_call.tool_call_id);
        self.known_tool(conversation_id, &name, &request.tool_call.fields, Mention::Question);
        self.tell_call(conversation_id, &name, fx);
        let tool = self.tool(conversation_id, &name).map(|tool| tool.clone()).unwrap_or_default();
        if tool.is_cut {
            // People can't allow what they can't read completely.
            return self.reject(
                &id,
                ErrorCode::InvalidParams,
                &format!("{} It was not allowed.", not_judged()),
            );
        }
        if self.settings.has_disabled(tool.name.as_deref(), &tool.kind) {
            let refused = response_for(&choices, &Decision::Denied { comment: None });
            self.send(rpc::response(&id, &refused.unwrap_or_else(permission::cancelled)));
            return;
        }
        // Some agents put the request into the title only, and the rules check the input.
        let input = if is_empty(&tool.input) { json!({ "title": tool.title }) } else { tool.input };
        let title = request.title(&tool.title, &choices);
        // The rules match the agent's original words.
        let name = tool.name.or_else(|| (title != tool.title).then_some(tool.title));
        let asked = Asked::Action { tool: name, tool_kind: tool.kind, title, input };
        self.ask(key, conversation_id, id, RequestKind::Permission(choices), asked, fx);
    }

    fn request_answer(&mut self, id: Value, request: &CreateElicitationRequest, fx: &mut Effects) {
        let form = match &request.mode {
            ElicitationMode::Form(form) => match &form.scope {
                ElicitationScope::Session(scope) => {
                    self.conversation_of(&scope.session_id.0).map(|found| (form, found))
                }
                _ => None,
            },
            _ => None,
        };
        let asked = form.and_then(|(form, found)| {
            let (asked, form) = forms::question(&request.message, &form.requested_schema)?;
            Some((self.waiting_key(&id, found, &form)?, asked, form))
        });
        let Some(((key, conversation_id), asked, form)) = asked else {
            self.send(rpc::response(&id, &CreateElicitationResponse::new(ElicitationAction::Decline)));
            return;
        };
        self.finish_messages(conversation_id, fx);
        self.ask(key, conversation_id, id, RequestKind::Form(form), asked, fx);
    }

    /// The key of a request that may stay open: its turn runs, and there is room for its data. The key is the host's
    /// own and used once, since an agent may reuse its ids, and a decision must not reach another request.
    fn waiting_key(
        &mut self,
        id: &Value,
        conversation_id: i64,
        kept: &impl Serialize,
    ) -> Option<(String, i64)> {
        let is_fine = rpc::name(id).is_some()
            && serde_json::to_vec(kept).is_ok_and(|json| json.len() <= 16 * 1024)
            && !self.is_cancelled(conversation_id)
            && self.turn_of(conversation_id).is_some()
            && self.open.len() < MAX_OPEN
            && self.key_of(id).is_none();
        is_fine.then(|| (self.own_name(), conversation_id))
    }

    /// The key of the open request with the agent's id.
    fn key_of(&self, id: &Value) -> Option<String> {
        let name = rpc::name(id)?;
        let mut open = self.open.iter().filter(|(_, open)| !matches!(open.waits, RequestKind::Own));
        open.find(|(_, open)| rpc::name(&open.id).as_ref() == Some(&name)).map(|(key, _)| key.clone())
    }

    /// Opens a request for Muster's own MCP server. `None` if too many are open.
    pub fn ask_own(&mut self, conversation_id: i64, asked: Asked, fx: &mut Effects) -> Option<String> {
        if self.open.len() >= MAX_OPEN {
            // The oldest is probably abandoned. It is forgotten, and its answer becomes a turn.
            let mut own = self.open.iter().filter(|(_, open)| matches!(open.waits, RequestKind::Own));
            let oldest = own.next().map(|(key, _)| key.clone())?;
            self.open.remove(&oldest);
        }
        self.finish_messages(conversation_id, fx);
        let key = self.own_name();
        self.ask(key.clone(), conversation_id, Value::Null, RequestKind::Own, asked, fx);
        Some(key)
    }

    fn ask(
        &mut self,
        key: String,
        conversation_id: i64,
        id: Value,
        waits: RequestKind,
        asked: Asked,
        fx: &mut Effects,
    ) {
        let asked = match asked {
            Asked::Action { tool, tool_kind, title, input } => {
                Asked::Action { tool, tool_kind, title: short(&title, 1000), input }
            }
            question @ Asked::Question { .. } => question,
        };
        let turn_id = self.turn_of(conversation_id);
        fx.events.push(HostEvent::Asked(Request { request: key.clone(), conversation_id, turn_id, asked }));
        self.open.insert(key, Open { conversation_id, id, waits });
    }

    /// A test for open requests.
    pub fn is_open(&self) -> impl Fn(&str) -> bool {
        |key| self.open.contains_key(key)
    }

    /// Applies a decision of the control plane's rules.
    pub fn verdict(&mut self, key: &str, is_allowed: bool) -> DecisionEffect {
        let comment = None;
        self.decide(
            key,
            &if is_allowed { Decision::Approved { comment } } else { Decision::Denied { comment } },
            None,
        )
    }

    /// Applies a person's decision.
    pub fn decide(&mut self, key: &str, decision: &Decision, approval_id: Option<i64>) -> DecisionEffect {
        let Some(open) = self.open.remove(key) else { return DecisionEffect::NotWaiting };
        let (line, without_text) = match &open.waits {
            RequestKind::Own => return DecisionEffect::Own,
            RequestKind::Permission(choices) => {
                let answer = response_for(choices, decision);
                if answer.is_none() && matches!(decision, Decision::Approved { .. }) {
                    // The agent learns about the approval in words, with its next turn.
                    self.reject(&open.id, ErrorCode::InvalidParams, NO_YES);
                    return DecisionEffect::NotWaiting;
                }
                let line = rpc::response(&open.id, &answer.unwrap_or_else(permission::cancelled));
                (line, has_comment(decision))
            }
            RequestKind::Form(form) => {
                let answer = fill_form(form, decision);
                let line = rpc::response(&open.id, &answer);
                let is_declined = matches!(answer.action, ElicitationAction::Decline);
                if is_declined && matches!(decision, Decision::Answered { .. }) {
                    // The form has no field for it: the agent learns about it in words, with its next turn.
                    self.send(line);
                    return DecisionEffect::NotWaiting;
                }
                (line, false)
            }
        };
        self.send(line).delivers = approval_id.map(|approval_id| Delivery { approval_id, without_text });
        DecisionEffect::Said
    }

    /// Withdraws a conversation's requests: its turn ends.
    pub(super) fn withdraw_all(&mut self, conversation_id: i64, fx: &mut Effects) {
        let mine = self.open.iter().filter(|(_, open)| {
            open.conversation_id == conversation_id && !matches!(open.waits, RequestKind::Own)
        });
        let mine: Vec<String> = mine.map(|(key, _)| key.clone()).collect();
        for key in mine {
            self.withdraw(&key, None, fx);
        }
    }

    fn withdraw(&mut self, key: &str, error: Option<(ErrorCode, &str)>, fx: &mut Effects) {
        let Some(open) = self.open.remove(key) else { return };
        let line = match (&open.waits, error) {
            (_, Some((code, message))) => rpc::error(&open.id, code, message),
            (RequestKind::Form(_), None) => {
                rpc::response(&open.id, &CreateElicitationResponse::new(ElicitationAction::Cancel))
            }
            (_, None) => rpc::response(&open.id, &permission::cancelled()),
        };
        self.send(line);
        fx.events.push(HostEvent::Withdrawn { request: key.to_owned() });
    }

    pub(super) fn withdrawn_by_agent(&mut self, params: &str, fx: &mut Effects) {
        let params: Value = muster_json::from_str(params).unwrap_or_default();
        if let Some(key) = params.get("requestId").and_then(|id| self.key_of(id)) {
            self.withdraw(&key, Some((ErrorCode::RequestCancelled, "The agent withdrew the request.")), fx);
        }
    }
}

impl Settings {
    /// Whether the tool's group is disabled: its kind, or the MCP server in its name's prefix, as agents write it.
    fn has_disabled(&self, tool: Option<&str>, kind: &str) -> bool {
        let tool = tool.unwrap_or_default().to_lowercase();
        let tool = tool.strip_prefix("mcp__").unwrap_or(&tool);
        self.disabled.iter().map(|group| group.trim().to_lowercase()).filter(|group| !group.is_empty()).any(
            |group| {
                let rest = tool.strip_prefix(group.as_str());
                group == kind
                    || rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '_', '/', ':', '-']))
            },
        )
    }
}

/// Whether a decision has a comment, which the protocol can't transport.
fn has_comment(decision: &Decision) -> bool {
    let (Decision::Approved { comment } | Decision::Denied { comment }) = decision else { return false };
    comment.as_deref().is_some_and(|comment| !comment.trim().is_empty())
}

fn fill_form(form: &Form, decision: &Decision) -> CreateElicitationResponse {
    let content = match decision {
        Decision::Answered { options, text } => form.fill(options, text.as_deref()),
        Decision::Denied { .. } => None,
        Decision::Approved { .. } | Decision::Closed { .. } => {
            return CreateElicitationResponse::new(ElicitationAction::Cancel);
        }
    };
    CreateElicitationResponse::new(match content {
        Some(content) => ElicitationAction::Accept(ElicitationAcceptAction::new().content(content)),
        None => ElicitationAction::Decline,
    })
}

/// A decision as the result of a call of Muster's own MCP server.
pub fn decision_text(decision: &Decision, by: Option<&str>) -> Value {
    let by = by.map(str::to_owned);
    match decision {
        Decision::Approved { comment } => json!({ "decision": "approved", "comment": comment, "by": by }),
        Decision::Denied { comment } => json!({ "decision": "denied", "comment": comment, "by": by }),
        Decision::Answered { options, text } => {
            json!({ "decision": "answered", "options": options, "text": text, "by": by })
        }
        Decision::Closed { reason } => json!({ "decision": "closed", "reason": reason }),
    }
}
