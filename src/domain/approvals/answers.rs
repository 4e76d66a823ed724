//! Delivery of a decision to the agent that waits for it: exactly once, to the waiting call or as a turn.
//!
//! A decision sends a command. The host passes the decision to the waiting call and reports that it was delivered, or
//! that no call waits any longer; once the launch has ended, no call waits either. A single compare-and-set on the
//! column `delivery` picks one of these. Callers have locked the agent.

use std::collections::HashMap;

use muster_protocol::Command;
use sea_orm::{ColumnTrait, Condition, PaginatorTrait, QueryFilter, QueryOrder, sea_query::Expr};
use serde_json::json;

use super::{decide::apply_consequences, end::ApprovalEnd, entity::approvals, queries, rows::question_of};
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

/// Sends a decision: as a message in the conversation, and as a command for the host.
pub(super) async fn send_decision(
    tx: &Tx,
    approval: &approvals::Model,
    agent: &LockedAgent,
    end: &ApprovalEnd,
) -> Result<()> {
    let message = append_message(tx, approval, end).await?;
    let sent = tx.scope.update::<approvals::Entity>().filter(approvals::Column::Id.eq(approval.id));
    let sent = sent
        .col_expr(approvals::Column::Delivery, Expr::value(AnswerDelivery::Sent.as_str()))
        .col_expr(approvals::Column::AnswerMessageId, Expr::value(message));
    sent.exec(tx.connection()).await?;
    commands::enqueue(tx, agent.host(), &Command::Answer { approval_id: approval.id.0 });
    Ok(())
}

/// Appends an answer, approval or denial to the conversation. Other endings are not messages.
async fn append_message(
    tx: &Tx,
    approval: &approvals::Model,
    end: &ApprovalEnd,
) -> Result<Option<MessageId>> {
    let (Some(conversation), Some(answer)) = (approval.conversation_id, &end.answer) else { return Ok(None) };
    let said = match approval.kind {
        ApprovalKind::Question => {
            let question = question_of(approval)?;
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

/// Records that the waiting call has the decision. If the call could not carry the decision's text, the text becomes
/// the next turn of `agent_to_tell`.
pub(super) async fn settle_direct(
    tx: &Tx,
    approval: &approvals::Model,
    agent_to_tell: Option<&LockedAgent>,
) -> Result<()> {
    if !settle_delivery(tx, approval, AnswerDelivery::Direct).await? {
        return Ok(());
    }
    let agent = agent_to_tell.filter(|_| answer_text(approval).is_some());
    match (approval.answer_message_id, approval.conversation_id, agent) {
        (Some(message), Some(conversation), Some(agent)) => {
            queue_turn(tx, approval, agent, (message, conversation)).await
        }
        (message, _, _) => {
            if let Some(message) = message {
                conversations::mark_delivered(tx, message).await?;
            }
            resume_turn(tx, approval.turn_id).await
        }
    }
}

/// The text of a decision.
fn answer_text(approval: &approvals::Model) -> Option<&str> {
    approval.answer.as_ref().and_then(|answer| answer["text"].as_str())
}

/// No call waits for the decision: the answer becomes the agent's next turn in the conversation.
pub(super) async fn settle_as_turn(tx: &Tx, approval: &approvals::Model, agent: &LockedAgent) -> Result<()> {
    let (Some(message), Some(conversation)) = (approval.answer_message_id, approval.conversation_id) else {
        settle_delivery(tx, approval, AnswerDelivery::None).await?;
        return resume_turn(tx, approval.turn_id).await;
    };
    if !settle_delivery(tx, approval, AnswerDelivery::Turn).await? {
        return Ok(());
    }
    queue_turn(tx, approval, agent, (message, conversation)).await
}

/// Queues a turn for the decision's message.
async fn queue_turn(
    tx: &Tx,
    approval: &approvals::Model,
    agent: &LockedAgent,
    (message, conversation): (MessageId, ConversationId),
) -> Result<()> {
    let cause = Cause::decision(approval.decided_by_user_id, approval.decided_by_token_id);
    let turn = turns::queue_turn(tx, agent, conversation, cause, None).await?;
    let (_, seq) = conversations::assign_to_turn(tx, message, turn).await?;
    turns::extend_turn(tx, conversation, turn, (seq, seq)).await?;
    resume_turn(tx, approval.turn_id).await?;
    turns::send(tx, agent, &[conversation]).await
}

/// The compare-and-set. Returns whether this call won it.
async fn settle_delivery(tx: &Tx, approval: &approvals::Model, delivery: AnswerDelivery) -> Result<bool> {
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

/// Resumes the turn unless another of its requests still waits.
pub(super) async fn resume_turn(tx: &Tx, turn: Option<TurnId>) -> Result<()> {
    let Some(turn) = turn else { return Ok(()) };
    let waits = Condition::any()
        .add(approvals::Column::Status.eq(ApprovalStatus::Pending))
        .add(approvals::Column::Delivery.eq(AnswerDelivery::Sent));
    let waits = tx.scope.find::<approvals::Entity>().filter(approvals::Column::TurnId.eq(turn)).filter(waits);
    if waits.count(tx.connection()).await? == 0 { turns::mark_answered(tx, turn).await } else { Ok(()) }
}

/// Withdraws a pending approval that the agent no longer waits for.
pub(super) async fn withdraw(tx: &Tx, approval: &approvals::Model) -> Result<()> {
    let end = ApprovalEnd::withdrawn();
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
    apply_consequences(tx, approval, None, "withdrawApproval", &end).await?;
    resume_turn(tx, approval.turn_id).await
}

/// Settles the requests of the agent's launches up to `generation`: pending ones are withdrawn, and decisions that have
/// not arrived become turns.
pub async fn settle_ended_launches(tx: &Tx, agent: AgentId, generation: i64) -> Result<()> {
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
            // It has expired; the expiry job ends it.
            ApprovalStatus::Pending if approval.expires_at.is_some_and(|at| at <= tx.now) => {}
            ApprovalStatus::Pending => withdraw(tx, &approval).await?,
            _ => settle_as_turn(tx, &approval, &agent).await?,
        }
    }
    Ok(())
}

/// Records that this turn has delivered its decisions to the agent.
pub async fn mark_delivered_in_turn(tx: &Tx, turn: TurnId) -> Result<()> {
    for approval in queries::mark_delivered(tx, turn).await? {
        announce(tx, approval);
    }
    Ok(())
}

/// Rewrites answers for a turn so that the agent knows which request they answer.
pub async fn describe_answers(tx: &Tx, said: &mut [PromptMessage]) -> Result<()> {
    let ids = said.iter().map(|said| said.message);
    let found = tx.scope.find::<approvals::Entity>().filter(approvals::Column::AnswerMessageId.is_in(ids));
    let found = found.all(tx.connection()).await?;
    let found: HashMap<_, _> =
        found.into_iter().filter_map(|approval| Some((approval.answer_message_id?, approval))).collect();
    for said in said {
        if let Some(approval) = found.get(&said.message) {
            said.text = describe_answer(approval, &said.text)?;
        }
    }
    Ok(())
}

/// The text of a decision, for an agent that has worked on other things since it asked.
fn describe_answer(approval: &approvals::Model, said: &str) -> Result<String> {
    let by = approval.decided_by_name.as_deref().unwrap_or("Someone");
    if approval.kind == ApprovalKind::Question {
        return Ok(format!("You asked: {}\n{by} answered: {said}", question_of(approval)?.text));
    }
    let decision = match approval.outcome {
        Some(ApprovalOutcome::Approved) => "allowed it",
        _ => "did not allow it",
    };
    if approval.delivery == Some(AnswerDelivery::Direct) {
        let comment = answer_text(approval).unwrap_or_default();
        let title = &approval.title;
        return Ok(format!(
            "About your request: {title}\n{by} {decision}. You know this already; the comment: {comment}"
        ));
    }
    let comment = answer_text(approval).map(|comment| format!(" and said: {comment}")).unwrap_or_default();
    Ok(format!("You requested approval: {}\n{by} {decision}{comment}.", approval.title))
}

fn announce(tx: &Tx, id: ApprovalId) {
    tx.announce(Event::new(tx.scope.org, ChangeOp::Updated, RecordKind::Approval, id));
}
