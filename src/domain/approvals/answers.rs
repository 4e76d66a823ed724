//! How a decision reaches the agent that waits for it: exactly once, by the call that waits or as a turn.
//!
//! The decision sends a command. The host gives the decision to what waits and reports that it was delivered, or that nothing
//! waits any more; if its launch ends first, nothing waits either. One compare-and-set on the column `delivery` settles which
//! of them it was. Callers hold the agent.

use std::collections::HashMap;

use muster_protocol::Command;
use sea_orm::{ColumnTrait, Condition, PaginatorTrait, QueryFilter, QueryOrder, sea_query::Expr};
use serde_json::json;

use super::{decide::follow, end::End, entity::approvals, queries, rows::asked};
use crate::{
    base::{
        enums::{
            AnswerDelivery, ApprovalKind, ApprovalOutcome, ApprovalStatus, ChangeOp, MessageKind,
            MessageRole, MessageStatus, RecordKind, TextFormat,
        },
        ids::{AgentId, ApprovalId, ConversationId, MessageId, TurnId},
        problem::Result,
    },
    core::{Event, store::Tx},
    domain::{
        agents::{self, LockedAgent},
        commands,
        conversations::{
            self, NewMessage, PromptMessage,
            turns::{self, Cause},
        },
    },
};

/// Sends a decision on its way: as a message in the conversation, and as a command for the host.
pub(super) async fn send(tx: &Tx, approval: &approvals::Model, agent: &LockedAgent, end: &End) -> Result<()> {
    let message = write(tx, approval, end).await?;
    let sent = tx.scope.update::<approvals::Entity>().filter(approvals::Column::Id.eq(approval.id));
    let sent = sent
        .col_expr(approvals::Column::Delivery, Expr::value(AnswerDelivery::Sent.as_str()))
        .col_expr(approvals::Column::AnswerMessageId, Expr::value(message));
    sent.exec(tx.connection()).await?;
    commands::enqueue(tx, agent.host(), &Command::Answer { approval_id: approval.id.0 });
    Ok(())
}

/// Writes an answer or a verdict into the conversation. An ending that answers nothing is not a message.
async fn write(tx: &Tx, approval: &approvals::Model, end: &End) -> Result<Option<MessageId>> {
    let (Some(conversation), Some(answer)) = (approval.conversation_id, &end.answer) else { return Ok(None) };
    let said = match approval.kind {
        ApprovalKind::Question => {
            let question = asked(approval)?;
            let chosen = question.options.iter().filter(|option| answer.options.contains(&option.id));
            chosen.map(|option| option.label.as_str()).collect::<Vec<_>>().join(", ")
        }
        _ if end.outcome == ApprovalOutcome::Approved => format!("Approved: {}", approval.title),
        _ => format!("Denied: {}", approval.title),
    };
    let parts = [Some(said.as_str()), answer.text.as_deref()].into_iter().flatten();
    let text = parts.filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n");
    let caller = &tx.scope.request.caller;
    let content = json!({ "text": text, "format": TextFormat::Plain });
    let new = NewMessage {
        author_user: caller.user(),
        author_name: Some(caller.name().to_owned()),
        status: MessageStatus::Pending,
        // The agent waits for it, even if the conversation has been archived.
        reopens: false,
        ..NewMessage::new(conversation, MessageRole::User, MessageKind::Text, content)
    };
    Ok(Some(conversations::append(tx, new).await?))
}

/// What waited has the decision. If it has no place for the text that was given with it, `untold` is the agent, which is told
/// in its next turn.
pub(super) async fn direct(tx: &Tx, approval: &approvals::Model, untold: Option<&LockedAgent>) -> Result<()> {
    if !settle(tx, approval, AnswerDelivery::Direct).await? {
        return Ok(());
    }
    let untold = untold.filter(|_| comment(approval).is_some());
    match (approval.answer_message_id, approval.conversation_id, untold) {
        (Some(message), Some(conversation), Some(agent)) => {
            tell(tx, approval, agent, (message, conversation)).await
        }
        (message, _, _) => {
            if let Some(message) = message {
                conversations::mark_delivered(tx, message).await?;
            }
            go_on(tx, approval.turn_id).await
        }
    }
}

/// The text that was given with a decision.
fn comment(approval: &approvals::Model) -> Option<&str> {
    approval.answer.as_ref().and_then(|answer| answer["text"].as_str())
}

/// Nothing waits for it: the answer becomes the agent's next turn in the conversation.
pub(super) async fn as_turn(tx: &Tx, approval: &approvals::Model, agent: &LockedAgent) -> Result<()> {
    let (Some(message), Some(conversation)) = (approval.answer_message_id, approval.conversation_id) else {
        settle(tx, approval, AnswerDelivery::None).await?;
        return go_on(tx, approval.turn_id).await;
    };
    if !settle(tx, approval, AnswerDelivery::Turn).await? {
        return Ok(());
    }
    tell(tx, approval, agent, (message, conversation)).await
}

/// Makes the decision's message the agent's next turn.
async fn tell(
    tx: &Tx,
    approval: &approvals::Model,
    agent: &LockedAgent,
    (message, conversation): (MessageId, ConversationId),
) -> Result<()> {
    let cause = Cause::decision(approval.decided_by_user_id, approval.decided_by_token_id);
    let turn = turns::queue_turn(tx, agent, conversation, cause, None).await?;
    let (_, seq) = conversations::assign_to_turn(tx, message, turn).await?;
    turns::extend_turn(tx, conversation, turn, (seq, seq)).await?;
    go_on(tx, approval.turn_id).await?;
    turns::send(tx, agent, &[conversation]).await
}

/// The compare-and-set. Returns whether this call settled it.
async fn settle(tx: &Tx, approval: &approvals::Model, delivery: AnswerDelivery) -> Result<bool> {
    let at = (delivery == AnswerDelivery::Direct).then_some(tx.now);
    let settled = tx.scope.update::<approvals::Entity>().filter(approvals::Column::Id.eq(approval.id));
    let settled = settled
        .filter(approvals::Column::Delivery.eq(AnswerDelivery::Sent))
        .col_expr(approvals::Column::Delivery, Expr::value(delivery.as_str()))
        .col_expr(approvals::Column::DeliveredAt, Expr::value(at))
        .col_expr(approvals::Column::UpdatedAt, Expr::value(tx.now));
    let is_settled = settled.exec(tx.connection()).await?.rows_affected > 0;
    if is_settled {
        announce(tx, approval.id);
    }
    Ok(is_settled)
}

/// The turn goes on if nothing that was asked in it waits any more.
pub(super) async fn go_on(tx: &Tx, turn: Option<TurnId>) -> Result<()> {
    let Some(turn) = turn else { return Ok(()) };
    let waits = Condition::any()
        .add(approvals::Column::Status.eq(ApprovalStatus::Pending))
        .add(approvals::Column::Delivery.eq(AnswerDelivery::Sent));
    let waits = tx.scope.find::<approvals::Entity>().filter(approvals::Column::TurnId.eq(turn)).filter(waits);
    if waits.count(tx.connection()).await? == 0 { turns::mark_answered(tx, turn).await } else { Ok(()) }
}

/// Ends a pending approval that the agent no longer waits for.
pub(super) async fn withdraw(tx: &Tx, approval: &approvals::Model) -> Result<()> {
    let end = End::withdrawn();
    let won = tx
        .scope
        .update::<approvals::Entity>()
        .set(end.columns(tx)?)
        .filter(approvals::Column::Id.eq(approval.id))
        .filter(approvals::Column::Status.eq(ApprovalStatus::Pending))
        .exec(tx.connection())
        .await?;
    if won.rows_affected == 0 {
        return Ok(());
    }
    follow(tx, approval, None, "withdrawApproval", &end).await?;
    go_on(tx, approval.turn_id).await
}

/// Settles what the agent's launches up to `generation` asked: what is pending is withdrawn, and what was decided but has not
/// arrived becomes a turn.
pub async fn lose(tx: &Tx, agent: AgentId, generation: i64) -> Result<()> {
    let Some(agent) = agents::lock_agent(tx, agent).await? else { return Ok(()) };
    let open = Condition::any()
        .add(approvals::Column::Status.eq(ApprovalStatus::Pending))
        .add(approvals::Column::Delivery.eq(AnswerDelivery::Sent));
    let open = tx
        .scope
        .find::<approvals::Entity>()
        .filter(approvals::Column::AgentId.eq(agent.id))
        .filter(approvals::Column::RequestKey.is_not_null())
        .filter(approvals::Column::Generation.lte(generation))
        .filter(open)
        .order_by_asc(approvals::Column::Id);
    for approval in open.all(tx.connection()).await? {
        match approval.status {
            // It has expired, and the job will say so.
            ApprovalStatus::Pending if approval.expires_at.is_some_and(|at| at <= tx.now) => {}
            ApprovalStatus::Pending => withdraw(tx, &approval).await?,
            _ => as_turn(tx, &approval, &agent).await?,
        }
    }
    Ok(())
}

/// Records that the agent has got the decisions that this turn tells it.
pub async fn told_in_turn(tx: &Tx, turn: TurnId) -> Result<()> {
    for approval in queries::mark_told(tx, turn).await? {
        announce(tx, approval);
    }
    Ok(())
}

/// Writes answers that are told in a turn so that the agent knows what they answer.
pub async fn in_words(tx: &Tx, said: &mut [PromptMessage]) -> Result<()> {
    let ids = said.iter().map(|said| said.message);
    let found = tx.scope.find::<approvals::Entity>().filter(approvals::Column::AnswerMessageId.is_in(ids));
    let found = found.all(tx.connection()).await?;
    let found: HashMap<_, _> =
        found.into_iter().filter_map(|approval| Some((approval.answer_message_id?, approval))).collect();
    for said in said {
        if let Some(approval) = found.get(&said.message) {
            said.text = words(approval, &said.text)?;
        }
    }
    Ok(())
}

/// An answer in words for an agent that has been doing something else since.
fn words(approval: &approvals::Model, said: &str) -> Result<String> {
    let by = approval.decided_by_name.as_deref().unwrap_or("Someone");
    if approval.kind == ApprovalKind::Question {
        return Ok(format!("You asked: {}\n{by} answered: {said}", asked(approval)?.text));
    }
    let verdict = match approval.outcome {
        Some(ApprovalOutcome::Approved) => "allowed it",
        _ => "did not allow it",
    };
    if approval.delivery == Some(AnswerDelivery::Direct) {
        let comment = comment(approval).unwrap_or_default();
        let title = &approval.title;
        return Ok(format!(
            "About what you asked to do: {title}\n{by} {verdict}, as you know, and said: {comment}"
        ));
    }
    let comment = comment(approval).map(|comment| format!(" and said: {comment}")).unwrap_or_default();
    Ok(format!("You asked whether you may do this: {}\n{by} {verdict}{comment}.", approval.title))
}

fn announce(tx: &Tx, id: ApprovalId) {
    tx.announce(Event::new(tx.scope.org, ChangeOp::Updated, RecordKind::Approval, id));
}
