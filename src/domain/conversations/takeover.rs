//! Take-overs: a person answers in a conversation instead of the agent.
//!
//! While someone holds a conversation, no turn of the agent starts in it ([`turns::yield_to_person`]). The holder's
//! messages appear as the agent's; messages from programs are stored and wait. The agent learns of all of them with its
//! next turn. Anyone who may write to the agent may take over, even from another holder. Only the holder may hand back,
//! so that a take-over never ends unnoticed. It ends by itself if the holder is silent for [`IDLE`] or loses the
//! permission. Events in the thread name the people involved.

use std::{sync::Arc, time::Duration};

use sea_orm::{ColumnTrait, Condition, QueryFilter, QueryOrder, sea_query::Expr};
use serde_json::{Value, json};

use super::{
    append::{NewMessage, append},
    entity::{conversations, messages},
    queries::{self, TakenOver},
    rows::load,
    turns,
};
use crate::{
    base::{
        enums::{ChangeOp, ConversationStatus, MessageKind, MessageRole, RecordKind},
        ids::{ConversationId, UserId},
        permission::Permission,
        problem::{Code, Problem, Result},
        time::Timestamp,
    },
    core::{Core, access::Scope, audit, job_counts::Tally, store::Tx},
    domain::{
        agents::{self, LockedAgent},
        people,
    },
};

/// How long the holder may be silent. An absent holder must not keep the agent from answering.
const IDLE: Duration = Duration::from_mins(60);

/// The one who answers in a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Speaker {
    Agent,
    /// The caller has taken it over.
    Caller,
    /// Another person has taken it over.
    Other(Holder),
}

/// The person who has taken a conversation over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Holder {
    id: UserId,
    name: String,
    at: Option<Timestamp>,
}

impl Holder {
    /// The error for an action that only the holder may take. `advice`: a sentence.
    pub(super) fn refusal(&self, advice: &str) -> Problem {
        let name = &self.name;
        let detail =
            format!("{name} has taken this conversation over and answers instead of the agent. {advice}");
        Problem::new(Code::Conflict, detail)
            .with("taken_over_by", json!({ "id": self.id, "name": name }))
            .with("taken_over_at", json!(self.at))
    }
}

/// The one who answers in this locked conversation.
pub(super) async fn find_speaker(tx: &Tx, conversation: &conversations::Model) -> Result<Speaker> {
    let Some(id) = conversation.taken_over_by else { return Ok(Speaker::Agent) };
    if tx.scope.request.caller.user() == Some(id) {
        return Ok(Speaker::Caller);
    }
    Ok(Speaker::Other(Holder { id, name: people::name_of(tx, id).await?, at: conversation.taken_over_at }))
}

/// Makes the caller answer instead of the agent. Taking over again does nothing.
///
/// # Errors
/// `NOT_FOUND`; `PERMISSION_DENIED` for a service token; `ARCHIVED`, also if the agent was deleted.
pub async fn take_over(scope: &Scope, id: ConversationId) -> Result<()> {
    let person = scope.person()?;
    let (tx, agent, conversation) = lock_conversation(scope, id).await?;
    let Some(agent) = agent else {
        return Err(Problem::new(Code::Archived, "The conversation's agent has been deleted."));
    };
    if conversation.status == ConversationStatus::Archived {
        return Err(Problem::new(
            Code::Archived,
            "The conversation is archived. Reopen it before taking it over.",
        ));
    }
    let from = match find_speaker(&tx, &conversation).await? {
        Speaker::Caller => return Ok(()),
        Speaker::Agent => "the agent".to_owned(),
        Speaker::Other(holder) => holder.name,
    };
    set_holder(&tx, id, Some(person.id)).await?;
    append_event(&tx, id, "TAKEN_OVER", format!("{} took over from {from}.", person.name)).await?;
    turns::yield_to_person(&tx, &agent, id).await?;
    audit_and_commit(tx, "takeOverConversation", &conversation, Some(person.id)).await
}

/// Lets the agent answer again. Does nothing if no one has taken over.
///
/// # Errors
/// `NOT_FOUND`; `CONFLICT`, naming the holder, for anyone else.
pub async fn hand_back(scope: &Scope, id: ConversationId) -> Result<()> {
    let (tx, agent, conversation) = lock_conversation(scope, id).await?;
    match find_speaker(&tx, &conversation).await? {
        Speaker::Agent => return Ok(()),
        Speaker::Other(holder) => {
            return Err(
                holder.refusal(&format!("Take it over from {} before you hand it back.", holder.name))
            );
        }
        Speaker::Caller => {}
    }
    let text = format!("{} handed the conversation back to the agent.", tx.scope.request.caller.name());
    return_to_agent(&tx, agent.as_ref(), id, "HANDED_BACK", text).await?;
    audit_and_commit(tx, "handBackConversation", &conversation, None).await
}

/// Ends a take-over because the conversation is archived. No turn starts before someone writes.
pub(super) async fn end_with_archiving(
    tx: &Tx,
    agent: Option<&LockedAgent>,
    conversation: &conversations::Model,
) -> Result<()> {
    let Some(holder) = conversation.taken_over_by else { return Ok(()) };
    let (id, name) = (conversation.id, people::name_of(tx, holder).await?);
    set_holder(tx, id, None).await?;
    let text = format!("{name} no longer answers instead of the agent: the conversation was archived.");
    append_event(tx, id, "TAKE_OVER_ENDED", text).await?;
    match agent {
        Some(agent) => turns::resume(tx, agent, id, false, None).await,
        None => Ok(()),
    }
}

/// Records that the holder has written.
pub(super) async fn record_activity(tx: &Tx, id: ConversationId) -> Result<()> {
    let said = tx.scope.update::<conversations::Entity>().filter(conversations::Column::Id.eq(id));
    said.col_expr(conversations::Column::LastWordAt, Expr::value(tx.now)).exec(tx.connection()).await?;
    Ok(())
}

/// The reason why a take-over ends by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EndReason {
    /// The holder can no longer sign in to the organization.
    Gone,
    /// The holder may no longer write to agents.
    Demoted,
    /// The holder has written nothing for [`IDLE`].
    Silent,
}

impl EndReason {
    /// `None` while the take-over may continue.
    fn find(core: &Core, taken: &TakenOver) -> Result<Option<Self>> {
        let Some(role) = &taken.role else { return Ok(Some(Self::Gone)) };
        let role = role.parse().map_err(Problem::internal)?;
        if !core.policy.allows(taken.organization_id, role, Permission::AgentInteract) {
            return Ok(Some(Self::Demoted));
        }
        let is_silent = taken.last_word_at.is_some_and(|at| at <= core.clock.now().minus(IDLE));
        Ok(is_silent.then_some(Self::Silent))
    }

    /// The text of the event in the thread.
    fn text(self, name: &str) -> String {
        let why = match self {
            Self::Gone => "is no longer a member".to_owned(),
            Self::Demoted => "may no longer write to agents".to_owned(),
            Self::Silent => format!("has said nothing for {} minutes", IDLE.as_secs() / 60),
        };
        format!("{name} {why}, so the agent answers again.")
    }
}

/// Ends the take-overs of all organizations whose holder is gone, demoted or silent. Returns how many.
pub async fn end_abandoned(core: &Arc<Core>) -> Result<u64> {
    // Reads every take-over, because the database doesn't know the policies. There are only as many as people can
    // handle at once.
    let mut ended = Tally::default();
    for taken in queries::list_taken_over(core).await? {
        let org = taken.organization_id;
        ended.add(org, end_if_abandoned(&Scope::system(core, org), &taken).await);
    }
    ended.close()
}

/// Ends a take-over if there is a reason, both in the row as `seen` and under the agent's lock. Returns whether it
/// ended.
async fn end_if_abandoned(scope: &Scope, seen: &TakenOver) -> Result<bool> {
    if EndReason::find(&scope.core, seen)?.is_none() {
        return Ok(false);
    }
    let id = seen.id;
    let (tx, agent, conversation) = lock_conversation(scope, id).await?;
    let Some(holder) = conversation.taken_over_by else { return Ok(false) };
    // Another replica may have been faster.
    let Some(taken) = queries::load_taken_over(&tx, id).await? else { return Ok(false) };
    let Some(over) = EndReason::find(&scope.core, &taken)? else { return Ok(false) };
    let text = over.text(&people::name_of(&tx, holder).await?);
    return_to_agent(&tx, agent.as_ref(), id, "TAKE_OVER_ENDED", text).await?;
    audit_and_commit(tx, "endTakeOver", &conversation, None).await?;
    Ok(true)
}

/// Opens a transaction, locks the conversation's agent unless it was deleted, and loads the conversation.
async fn lock_conversation(
    scope: &Scope,
    id: ConversationId,
) -> Result<(Tx, Option<LockedAgent>, conversations::Model)> {
    let tx = scope.begin().await?;
    let agent = super::agent_of(&tx, id).await?;
    let agent = agents::lock_agent(&tx, agent).await?;
    let conversation = load(&tx, id).await?;
    Ok((tx, agent, conversation))
}

/// Returns the conversation to the agent, which starts at once if the last message waits for an answer. Messages
/// without a turn don't count: they get no answer, such as those of a program that writes too often.
async fn return_to_agent(
    tx: &Tx,
    agent: Option<&LockedAgent>,
    id: ConversationId,
    event: &str,
    text: String,
) -> Result<()> {
    let last = tx.scope.find::<messages::Entity>().filter(messages::Column::ConversationId.eq(id));
    let last = last.filter(messages::Column::Role.ne(MessageRole::System));
    let of_turns = Condition::any().add(messages::Column::TurnId.is_not_null());
    let last = last.filter(of_turns.add(messages::Column::Role.ne(MessageRole::User)));
    let last = last.order_by_desc(messages::Column::Seq).one(tx.connection()).await?;
    let unanswered = last.as_ref().is_some_and(|last| last.role == MessageRole::User);
    set_holder(tx, id, None).await?;
    append_event(tx, id, event, text).await?;
    match agent {
        Some(agent) => turns::resume(tx, agent, id, unanswered, last.and_then(|last| last.turn_id)).await,
        None => Ok(()),
    }
}

async fn set_holder(tx: &Tx, id: ConversationId, holder: Option<UserId>) -> Result<()> {
    use conversations::Column;
    let at = holder.map(|_| tx.now);
    let changed = tx.scope.update::<conversations::Entity>().filter(Column::Id.eq(id));
    let changed = changed
        .col_expr(Column::TakenOverBy, Expr::value(holder))
        .col_expr(Column::TakenOverAt, Expr::value(at))
        .col_expr(Column::LastWordAt, Expr::value(at))
        .col_expr(Column::UpdatedAt, Expr::value(tx.now));
    changed.exec(tx.connection()).await?;
    Ok(())
}

/// Appends an event to the thread. Subscribers are notified of the message and of the conversation.
async fn append_event(tx: &Tx, id: ConversationId, event: &str, text: String) -> Result<()> {
    let caller = &tx.scope.request.caller;
    let content = json!({ "event": event, "text": text });
    let new = NewMessage {
        author_user: caller.user(),
        author_name: caller.user().map(|_| caller.name().to_owned()),
        ..NewMessage::new(id, MessageRole::System, MessageKind::Event, content)
    };
    append(tx, new).await?;
    Ok(())
}

async fn audit_and_commit(
    tx: Tx,
    operation: &'static str,
    before: &conversations::Model,
    holder: Option<UserId>,
) -> Result<()> {
    let changes: Value = json!({ "taken_over_by": audit::from_to(before.taken_over_by, holder) });
    let (kind, op, id) = (RecordKind::Conversation, ChangeOp::Updated, before.id.0);
    audit::record(&tx, audit::Entry { operation, op, kind, id, changes });
    tx.commit().await
}
