//! Raises approvals. Only agents and the service itself do this, never a caller.

use muster_protocol::is_too_deep;
use sea_orm::{ActiveModelTrait, ColumnTrait, NotSet, QueryFilter, Set, sea_query::Expr};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::{assignment::reminder_time, entity::approvals, question::Question};
use crate::{
    base::{
        enums::{ApprovalKind, ApprovalStatus, ChangeOp, MessageKind, MessageRole, RecordKind, Severity},
        ids::{AgentId, ApprovalId, ChannelId, ConversationId, ModelCredentialId, ServerId, TurnId},
        problem::{Problem, Result},
        time::Timestamp,
    },
    core::{
        Event,
        handlers::{DomainEvent, emit},
        store::Tx,
    },
    domain::conversations::{self, NewMessage, turns},
};

/// An approval was raised.
#[derive(Debug)]
pub struct Raised {
    pub approval: ApprovalId,
    pub kind: ApprovalKind,
    pub agent: Option<AgentId>,
    pub conversation: Option<ConversationId>,
}

impl DomainEvent for Raised {}

/// A new approval.
#[derive(Clone, Debug)]
pub struct NewApproval {
    pub kind: ApprovalKind,
    pub title: String,
    pub body: Option<String>,
    pub severity: Severity,
    /// One of the agent's categories.
    pub category: Option<String>,
    /// The risk of the action, from 0 to 100.
    pub risk: Option<i64>,
    pub agent_id: Option<AgentId>,
    /// The server that a SERVER_ALERT is about.
    pub server_id: Option<ServerId>,
    /// The channel that a CHANNEL_ERROR or an ACCESS_REQUEST is about.
    pub channel_id: Option<ChannelId>,
    /// The sender that an ACCESS_REQUEST would admit.
    pub origin_id: Option<String>,
    pub conversation_id: Option<ConversationId>,
    /// The seq of the message it is raised at.
    pub message_seq: Option<i64>,
    /// The tool call that the agent wants to make.
    pub request: Option<ToolRequest>,
    /// An ACTION without a question asks to approve or deny.
    pub question: Option<Question>,
    /// The model credential that an AUTH_REQUIRED is about.
    pub model_credential_id: Option<ModelCredentialId>,
    /// The limit that a COST_GUARD proposes: {agent_id, cost_micro, tokens}.
    pub spending: Option<Value>,
    /// When it fails closed.
    pub expires_at: Option<Timestamp>,
    pub turn_id: Option<TurnId>,
    /// The request that waits for the decision. Without it, no agent is notified.
    pub waiting: Option<WaitingRequest>,
}

/// A request of an agent's launch, which waits for the decision.
#[derive(Clone, Debug)]
pub struct WaitingRequest {
    pub generation: i64,
    /// The request's name, unique in the launch.
    pub request: String,
}

/// A tool call that needs a decision.
#[derive(Clone, Debug)]
pub struct ToolRequest {
    pub tool: String,
    /// The input of the call. Values under keys that name secrets are removed before it is stored.
    pub input: Value,
}

impl NewApproval {
    /// An approval with only a kind and a title.
    pub fn new(kind: ApprovalKind, title: impl Into<String>) -> Self {
        Self {
            kind,
            title: title.into(),
            body: None,
            severity: Severity::Medium,
            category: None,
            risk: None,
            agent_id: None,
            server_id: None,
            channel_id: None,
            origin_id: None,
            conversation_id: None,
            message_seq: None,
            request: None,
            question: None,
            model_credential_id: None,
            spending: None,
            expires_at: None,
            turn_id: None,
            waiting: None,
        }
    }
}

/// Raises an approval: it and its conversation are PENDING. One that an agent waits for is also a message of the
/// conversation.
///
/// # Errors
/// `VALIDATION_FAILED` for a question without a possible answer; `CONFLICT` for references to records that the
/// organization doesn't have.
pub async fn raise(tx: &Tx, new: NewApproval) -> Result<ApprovalId> {
    let question = match new.question {
        None if new.kind == ApprovalKind::Action => Some(Question::approve_or_deny(&new.title)),
        question => question,
    };
    question.as_ref().map_or(Ok(()), Question::check)?;
    let question = question.map(serde_json::to_value).transpose().map_err(Problem::internal)?;
    // A COST_GUARD needs no reminder: nothing is lost when its limit's period ends undecided.
    let fails_closed_at = new.expires_at.filter(|_| new.kind != ApprovalKind::CostGuard);
    let (generation, request_key) = match new.waiting {
        Some(WaitingRequest { generation, request }) => (Some(generation), Some(request)),
        None => (None, None),
    };
    let approval = approvals::ActiveModel {
        organization_id: Set(tx.scope.org),
        id: NotSet,
        kind: Set(new.kind),
        status: Set(ApprovalStatus::Pending),
        title: Set(new.title),
        body: Set(new.body),
        severity: Set(new.severity),
        category: Set(new.category),
        risk: Set(new.risk.map(|risk| risk.clamp(0, 100))),
        agent_id: Set(new.agent_id),
        server_id: Set(new.server_id),
        channel_id: Set(new.channel_id),
        origin_id: Set(new.origin_id),
        conversation_id: Set(new.conversation_id),
        message_seq: Set(new.message_seq),
        request: Set(new.request.map(ToolRequest::into_stored)),
        question: Set(question),
        model_credential_id: Set(new.model_credential_id),
        spending: Set(new.spending),
        turn_id: Set(new.turn_id),
        generation: Set(generation),
        request_key: Set(request_key),
        expires_at: Set(new.expires_at),
        remind_at: Set(reminder_time(tx.now, fails_closed_at)),
        created_at: Set(tx.now),
        updated_at: Set(tx.now),
        ..Default::default()
    }
    .insert(tx.connection())
    .await?;
    if let Some(conversation) = approval.conversation_id {
        if approval.request_key.is_some() {
            append_message(tx, &approval, conversation).await?;
        }
        conversations::await_decision(tx, conversation).await?;
    }
    tx.announce(Event::new(tx.scope.org, ChangeOp::Created, RecordKind::Approval, approval.id));
    let approvals::Model { id, kind, agent_id: agent, conversation_id: conversation, .. } = approval;
    emit(tx, Raised { approval: id, kind, agent, conversation }).await?;
    Ok(id)
}

/// Appends the approval to its conversation.
async fn append_message(tx: &Tx, approval: &approvals::Model, conversation: ConversationId) -> Result<()> {
    let content = json!({ "approval_id": approval.id });
    let new = NewMessage::new(conversation, MessageRole::Assistant, MessageKind::Approval, content);
    let (_, seq) = conversations::append_with_seq(tx, NewMessage { turn: approval.turn_id, ..new }).await?;
    let shown = tx.scope.update::<approvals::Entity>().filter(approvals::Column::Id.eq(approval.id));
    shown.col_expr(approvals::Column::MessageSeq, Expr::value(seq)).exec(tx.connection()).await?;
    match approval.turn_id {
        Some(turn) => turns::mark_asked(tx, turn).await,
        None => Ok(()),
    }
}

impl ToolRequest {
    /// SHA-256 of the complete input, in hexadecimal.
    pub(super) fn digest(&self) -> String {
        hex::encode(Sha256::digest(self.input.to_string()))
    }

    /// The digest covers the complete input, so that a later action can be compared with the approved one.
    pub(super) fn into_stored(self) -> Value {
        let digest = self.digest();
        json!({ "tool": self.tool, "input": without_secrets(self.input), "digest": digest })
    }
}

/// The longest input that people decide on, in bytes of JSON as it is shown. A longer one is refused, because an agent
/// could hide something in the part that is not shown.
pub(super) const INPUT_BYTES: usize = 256 * 1024;

/// Whether an input exceeds [`INPUT_BYTES`], or is nested too deep for the parser of answers.
pub(super) fn is_too_long(input: &Value) -> bool {
    is_too_deep(input) || without_secrets(input.clone()).to_string().len() > INPUT_BYTES
}

/// The placeholder for a removed value.
const REMOVED: &str = "[removed]";

/// A key that contains one of these words names a secret.
const SECRET_WORDS: [&str; 10] = [
    "password",
    "passwd",
    "passphrase",
    "secret",
    "token",
    "apikey",
    "privatekey",
    "authorization",
    "cookie",
    "credential",
];

fn without_secrets(value: Value) -> Value {
    match value {
        Value::Object(fields) => fields
            .into_iter()
            .map(|(key, value)| {
                let value = if names_a_secret(&key) { REMOVED.into() } else { without_secrets(value) };
                (key, value)
            })
            .collect(),
        Value::Array(items) => items.into_iter().map(without_secrets).collect(),
        other => other,
    }
}

fn names_a_secret(key: &str) -> bool {
    let key: String = key.chars().filter(|c| c.is_alphanumeric()).collect::<String>().to_lowercase();
    SECRET_WORDS.iter().any(|word| key.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_under_secret_names_are_removed_at_any_depth() {
        let input = json!({
            "url": "https://example.org", "headers": [{ "X-Api-Key": "canary", "Accept": "*/*" }],
            "auth": { "clientSecret": ["canary"], "user": "u" }, "GITHUB_TOKEN": "canary",
        });
        let stored = ToolRequest { tool: "http".to_owned(), input }.into_stored();
        assert!(!stored.to_string().contains("canary"));
        assert_eq!(stored["input"]["headers"][0]["Accept"], "*/*");
        assert_eq!(stored["digest"].as_str().map(str::len), Some(64));
    }

    #[test]
    fn inputs_that_differ_only_in_a_secret_have_different_digests() {
        let digest = |key: &str| {
            ToolRequest { tool: "http".to_owned(), input: json!({ "token": key }) }.into_stored()["digest"]
                .clone()
        };
        assert_ne!(digest("one"), digest("two"));
    }
}
