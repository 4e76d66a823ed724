//! People's actions in the panel: starting a conversation, writing to the agent, resolving, archiving, renaming.

use std::collections::HashSet;

use async_graphql::MaybeUndefined;
use sea_orm::{ActiveModelTrait, ColumnTrait, IntoActiveModel, NotSet, PaginatorTrait, QueryFilter, Set};
use serde_json::json;

use super::{
    append::{NewMessage, append_with_seq},
    attachments,
    entity::conversations,
    queries::insert_watch,
    reads,
    rows::{awaiting_or, load},
    state::StatusEvent,
    takeover::{self, Speaker},
    turns,
};
use crate::{
    base::{
        enums::{
            ChangeOp, ConversationStatus, MessageKind, MessageRole, MessageStatus, RecordKind, TextFormat,
            Transport,
        },
        ids::{AgentId, AttachmentId, ConversationId, MessageId},
        problem::{Code, Problem, Result, Violation},
    },
    core::{access::Scope, audit, sealing::random_bytes, store::Tx},
    domain::{agents, edits, orgs, patch::patch},
};

/// A conversation to start from the panel.
#[derive(Clone, Debug)]
pub struct NewConversation {
    pub agent: AgentId,
    pub title: Option<String>,
    /// The first message.
    pub text: Option<String>,
}

/// A message from the panel.
#[derive(Clone, Debug)]
pub struct Post {
    pub text: String,
    pub format: TextFormat,
    pub attachments: Vec<AttachmentId>,
}

/// Changes to a conversation.
#[derive(Clone, Debug, Default)]
pub struct ConversationEdit {
    pub status: MaybeUndefined<ConversationStatus>,
    pub title: MaybeUndefined<String>,
}

/// Starts a conversation with an agent from the panel.
///
/// # Errors
/// `VALIDATION_FAILED` for an agent that the organization doesn't have.
pub async fn start(scope: &Scope, new: NewConversation) -> Result<ConversationId> {
    let tx = scope.begin().await?;
    if !agents::missing(&tx, &[new.agent]).await?.is_empty() {
        return Err(Problem::invalid(vec![Violation::unknown("/agent_id", "agent", new.agent)]));
    }
    let reference = free_reference(&tx).await?;
    let conversation = conversations::ActiveModel {
        organization_id: Set(scope.org),
        id: NotSet,
        r#ref: Set(reference.clone()),
        title: Set(new.title.map(|title| title.trim().to_owned())),
        created_by: Set(scope.request.caller.user()),
        status: Set(ConversationStatus::Open),
        agent_id: Set(new.agent),
        transport: Set(Transport::Internal),
        message_count: Set(0),
        last_seq: Set(0),
        opened_at: Set(tx.now),
        last_activity_at: Set(tx.now),
        created_at: Set(tx.now),
        updated_at: Set(tx.now),
        ..Default::default()
    }
    .insert(tx.connection())
    .await?;
    if let Some(user) = scope.request.caller.user() {
        insert_watch(&tx, conversation.id, user).await?;
    }
    record_change(
        &tx,
        (ChangeOp::Created, "startConversation"),
        conversation.id,
        json!({ "ref": reference, "agent_id": new.agent }),
    );
    match new.text {
        Some(text) => {
            let post = Post { text, format: TextFormat::Markdown, attachments: Vec::new() };
            write_message(&tx, conversation.id, new.agent, post).await?;
        }
        // A message would have announced it.
        None => super::rows::announce(&tx, new.agent, conversation.id),
    }
    tx.commit().await?;
    Ok(conversation.id)
}

/// Posts a message to a conversation. It is stored right away, and the agent gets a turn.
///
/// # Errors
/// `NOT_FOUND`; `ARCHIVED`, also if the agent was deleted; `CONFLICT` if someone else has taken the conversation over;
/// `VALIDATION_FAILED` for attachments that aren't the caller's to post; `PLAN_LIMIT_REACHED` if the storage is full.
pub async fn post(scope: &Scope, id: ConversationId, post: Post) -> Result<MessageId> {
    let tx = scope.begin().await?;
    let agent = super::agent_of(&tx, id).await?;
    let message = write_message(&tx, id, agent, post).await?;
    record_change(&tx, (ChangeOp::Updated, "postMessage"), id, json!({ "message_id": message }));
    tx.commit().await?;
    Ok(message)
}

async fn write_message(
    tx: &Tx,
    conversation: ConversationId,
    agent: AgentId,
    post: Post,
) -> Result<MessageId> {
    // The agent is locked first, as everywhere: starting and stopping it wait until the message has its turn.
    let Some(agent) = agents::lock_agent(tx, agent).await? else {
        let detail = "The conversation's agent has been deleted, so no one would read this message. Start a conversation with another agent.";
        return Err(Problem::new(Code::Archived, detail));
    };
    orgs::require_room(tx).await?;
    let row = load(tx, conversation).await?;
    let caller = tx.scope.request.caller.clone();
    let speaker = takeover::find_speaker(tx, &row).await?;
    if let (Speaker::Other(holder), Some(_)) = (&speaker, caller.user()) {
        return Err(holder.refusal("Take it over yourself to write in it, or wait until it is handed back."));
    }
    let content = json!({ "text": post.text, "format": post.format });
    let (role, status) = match speaker {
        // The agent learns of it with its next turn.
        Speaker::Caller => (MessageRole::Assistant, MessageStatus::Delivered),
        // DELIVERED once the agent has received its turn. A program's message waits while a person answers.
        Speaker::Agent | Speaker::Other(_) => (MessageRole::User, MessageStatus::Pending),
    };
    let mut new = NewMessage {
        author_user: caller.user(),
        author_name: Some(caller.name().to_owned()),
        status,
        cause: Some((turns::Cause::caller(tx), &agent)),
        files: post.attachments.iter().collect::<HashSet<_>>().len(),
        ..NewMessage::new(conversation, role, MessageKind::Text, content)
    };
    if role == MessageRole::Assistant {
        new.via_channel = row.channel_id;
        takeover::record_activity(tx, conversation).await?;
    }
    let (message, seq) = append_with_seq(tx, new).await?;
    if let Some(user) = caller.user() {
        reads::read_to(tx, conversation, user, seq).await?;
    }
    attachments::attach_uploads(tx, message, &post.attachments).await?;
    turns::send(tx, &agent, &[conversation]).await?;
    Ok(message)
}

/// Edits a conversation: resolves, reopens, archives, or renames it. An edit that changes nothing does nothing.
///
/// # Errors
/// `NOT_FOUND`; `ARCHIVED` unless the edit reopens it; `VALIDATION_FAILED` for a status that can't be set.
pub async fn update(scope: &Scope, id: ConversationId, edit: ConversationEdit) -> Result<()> {
    let tx = scope.begin().await?;
    let agent = super::agent_of(&tx, id).await?;
    // Locked before the conversation, as everywhere.
    let standing = match edit.status.value() {
        Some(ConversationStatus::Archived) => agents::lock_agent(&tx, agent).await?,
        _ => None,
    };
    let conversation = load(&tx, id).await?;
    let status = match edit.status.value() {
        Some(status) => {
            let set = StatusEvent::Set(*status).apply(conversation.status)?;
            awaiting_or(&tx, &conversation, set).await?
        }
        None => conversation.status,
    };
    let stays_archived = conversation.status == ConversationStatus::Archived && status == conversation.status;
    if stays_archived && !edit.title.is_undefined() {
        return Err(Problem::new(
            Code::Archived,
            "The conversation is archived. Reopen it before changing it.",
        ));
    }
    let moved = status != conversation.status;
    if moved && status == ConversationStatus::Archived {
        takeover::end_with_archiving(&tx, standing.as_ref(), &conversation).await?;
    }
    let before = conversation.clone();
    let mut conversation = conversation.into_active_model();
    if moved {
        conversation.status = Set(status);
        conversation.archived_at = Set((status == ConversationStatus::Archived).then_some(tx.now));
        match status {
            ConversationStatus::Archived => {} // keeps the time it was resolved
            ConversationStatus::Resolved => conversation.resolved_at = Set(Some(tx.now)),
            ConversationStatus::Open | ConversationStatus::Pending => conversation.resolved_at = Set(None),
        }
    }
    let is_titled = !edit.title.is_undefined();
    patch(&mut conversation.title, edit.title.map_value(|title| title.trim().to_owned()));
    if is_titled {
        conversation.titled_by_message.set_if_not_equals(false);
    }
    if !conversation.is_changed() {
        return Ok(());
    }
    conversation.updated_at = Set(tx.now);
    let changes = audit::changed(&before, &conversation);
    conversation.update(tx.connection()).await?;
    edits::raise(&tx, RecordKind::Conversation, id).await?;
    record_change(&tx, (ChangeOp::Updated, "updateConversation"), id, changes);
    super::rows::announce(&tx, agent, id);
    tx.commit().await
}

/// A short code that no conversation of the organization has yet.
pub(super) async fn free_reference(tx: &Tx) -> Result<String> {
    // With forty random bits a second attempt is rare, and a fourth means that something else is wrong.
    for _ in 0..4 {
        let reference = reference(random_bytes());
        let same = tx.scope.find::<conversations::Entity>();
        if same.filter(conversations::Column::Ref.eq(&reference)).count(tx.connection()).await? == 0 {
            return Ok(reference);
        }
    }
    Err(Problem::internal(anyhow::anyhow!("no free reference was found")))
}

/// Encodes forty bits as eight characters of Crockford's base32.
#[must_use]
pub fn reference(random: [u8; 5]) -> String {
    const ALPHABET: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";
    let bits = random.iter().fold(0_u64, |bits, byte| bits << 8 | u64::from(*byte));
    (0..8).rev().map(|place| char::from(ALPHABET[(bits >> (place * 5) & 31) as usize])).collect()
}

fn record_change(
    tx: &Tx,
    (op, operation): (ChangeOp, &'static str),
    id: ConversationId,
    changes: serde_json::Value,
) {
    audit::record(tx, audit::Entry { operation, op, kind: RecordKind::Conversation, id: id.0, changes });
}

#[cfg(test)]
mod tests {
    use super::reference;

    #[test]
    fn a_reference_is_forty_bits() {
        assert_eq!(reference([0; 5]), "00000000");
        assert_eq!(reference([255; 5]), "ZZZZZZZZ");
        assert_eq!(reference([0, 0, 0, 0, 33]), "00000011");
    }
}
