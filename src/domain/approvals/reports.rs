//! What hosts report about requests: an agent asks, or no longer waits; a decision has arrived, or came too late. Reports
//! of a launch that is not the agent's present one are ignored.

use std::time::Duration;

use muster_protocol::{
    Command,
    event::{Asked, Request},
};
use sea_orm::{ColumnTrait, PaginatorTrait, QueryFilter, QueryOrder, sea_query::Expr};
use serde_json::json;

use super::{
    NewApproval, ToolRequest, Waiting, answers,
    entity::approvals,
    question::{Choice, Question},
    raise::raise,
    risk_check::{Judged, Verdict, judge, severity},
};
use crate::{
    base::{
        bounds,
        enums::{AnswerDelivery, ApprovalKind, ApprovalOutcome, ApprovalStatus, ChangeOp, RecordKind},
        ids::{ApprovalId, ConversationId, TurnId},
        plain::{self, bounded, plain_lines},
        problem::{Problem, Result},
        time::Timestamp,
    },
    core::{audit, store::Tx},
    domain::{
        agents::{
            self, Limits, LockedAgent,
            reporter::{Reporter, lock_current, lock_live},
        },
        commands,
        conversations::{self, turns},
    },
};

/// How many requests of one agent may wait. A hostile agent could hide the one that matters among more.
const MOST_WAITING: u64 = 50;

/// What is asked, and where.
struct Place {
    conversation: ConversationId,
    turn: Option<TurnId>,
    request: String,
}

/// An agent asks, and waits. A request that has been asked before changes nothing.
///
/// # Errors
/// `NOT_FOUND`: the conversation or the turn isn't the agent's. `VALIDATION_FAILED`: the request's name is invalid.
pub async fn asked(tx: &Tx, from: &Reporter, request: Request) -> Result<()> {
    let Some(agent) = lock_live(tx, from).await? else { return Ok(()) };
    let Request { request, conversation_id, turn_id, asked } = request;
    if !is_name(&request) {
        let detail = "A request's name has 1 to 200 bytes and no control characters.";
        return Err(Problem::invalid_at("/request", "NOT_ALLOWED", detail));
    }
    let place = Place { conversation: ConversationId(conversation_id), turn: turn_id.map(TurnId), request };
    match place.turn {
        Some(turn) => drop(turns::require_of(tx, turn, agent.id, place.conversation).await?),
        None => conversations::require_of(tx, place.conversation, agent.id).await?,
    }
    if is_known(tx, &agent, &place.request).await? {
        return Ok(());
    }
    let limits = agents::limits(tx, agent.id).await?;
    let expires_at = expiry(tx.now, &limits);
    match asked {
        Asked::Question { text, options, multiple, allow_text } => {
            let options = options.into_iter().take(bounds::LIST).map(|option| Choice {
                id: bounded(&option.id, bounds::ID),
                label: one_line(&option.label, bounds::ID),
                description: option.description.map(|text| bounded(&plain_lines(&text), bounds::TEXT)),
            });
            let text = bounded(&plain_lines(&text), bounds::TEXT);
            let question = Question { text, options: options.collect(), multiple, allow_text };
            ask(tx, &agent, place, expires_at, question).await
        }
        Asked::Action { tool, tool_kind, title, input } => {
            let title = one_line(&title, bounds::NAME);
            let tool = tool.map_or_else(|| title.clone(), |tool| one_line(&tool, bounds::NAME));
            let input = plain::without_nul(input);
            let judged = judge(&tx.scope.core.risk, &limits, &tool_kind, &tool, &input);
            let request = ToolRequest { tool, input };
            match judged.verdict {
                Verdict::Asked => match honour(tx, &agent, &place, &request).await? {
                    Some(approval) => {
                        trace(tx, &agent, place.turn, (&judged, Some(approval)), &request);
                        verdict(tx, &agent, place.request, true);
                        Ok(())
                    }
                    None => confirm(tx, &agent, place, expires_at, (title, request, judged)).await,
                },
                Verdict::Allowed => {
                    trace(tx, &agent, place.turn, (&judged, None), &request);
                    verdict(tx, &agent, place.request, true);
                    Ok(())
                }
                Verdict::Blocked | Verdict::Disabled | Verdict::Taken | Verdict::TooLong => {
                    let why = judged.refusal();
                    trace(tx, &agent, place.turn, (&judged, None), &request);
                    let text = format!("The action was not allowed, because {why}: {title}");
                    refuse(tx, &agent, place, "ACTION_BLOCKED", text).await
                }
            }
        }
    }
}

/// Whether the launch has asked this before, and was not answered at once.
async fn is_known(tx: &Tx, agent: &LockedAgent, request: &str) -> Result<bool> {
    Ok(of_request(tx, agent, request).count(tx.connection()).await? > 0)
}

fn of_request(tx: &Tx, agent: &LockedAgent, request: &str) -> sea_orm::Select<approvals::Entity> {
    tx.scope
        .find::<approvals::Entity>()
        .filter(approvals::Column::AgentId.eq(agent.id))
        .filter(approvals::Column::Generation.eq(agent.generation))
        .filter(approvals::Column::RequestKey.eq(request))
}

/// Whether people have enough to decide of this agent.
async fn is_flooding(tx: &Tx, agent: &LockedAgent) -> Result<bool> {
    let waiting = tx
        .scope
        .find::<approvals::Entity>()
        .filter(approvals::Column::AgentId.eq(agent.id))
        .filter(approvals::Column::Status.eq(ApprovalStatus::Pending));
    Ok(waiting.count(tx.connection()).await? >= MOST_WAITING)
}

/// When the request fails closed: in an hour, unless the agent has a time of its own.
fn expiry(now: Timestamp, limits: &Limits) -> Timestamp {
    let minutes = limits.timeout_minutes.unwrap_or(60).max(1);
    now.plus(Duration::from_mins(minutes.cast_unsigned()))
}

/// Puts a question to people. One that no one could answer is refused.
async fn ask(
    tx: &Tx,
    agent: &LockedAgent,
    place: Place,
    expires_at: Timestamp,
    question: Question,
) -> Result<()> {
    if let Err(problem) = question.check() {
        let why = problem.errors.first().map_or(problem.detail, |violation| violation.detail.clone());
        return refuse(tx, agent, place, "QUESTION_UNCLEAR", format!("The question was not asked: {why}"))
            .await;
    }
    if is_flooding(tx, agent).await? {
        let text = format!("The question was not asked: {MOST_WAITING} requests of this agent wait already.");
        return refuse(tx, agent, place, "TOO_MANY_REQUESTS", text).await;
    }
    let title = one_line(question.text.trim().lines().next().unwrap_or_default(), bounds::NAME);
    let title = if title.is_empty() { "A question".to_owned() } else { title };
    let new = NewApproval { question: Some(question), ..NewApproval::new(ApprovalKind::Question, title) };
    raise(tx, raised(agent, place, expires_at, new)).await?;
    Ok(())
}

/// Asks people whether the action may be done.
async fn confirm(
    tx: &Tx,
    agent: &LockedAgent,
    place: Place,
    expires_at: Timestamp,
    (title, request, judged): (String, ToolRequest, Judged),
) -> Result<()> {
    let title = if title.is_empty() { request.tool.clone() } else { title };
    if is_flooding(tx, agent).await? {
        let why = format!("{MOST_WAITING} requests of this agent wait already");
        let text = format!("The action was not allowed, because {why}: {title}");
        return refuse(tx, agent, place, "TOO_MANY_REQUESTS", text).await;
    }
    let new = NewApproval {
        severity: severity(judged.risk),
        risk: Some(judged.risk),
        category: judged.category,
        request: Some(request),
        ..NewApproval::new(ApprovalKind::Action, title)
    };
    raise(tx, raised(agent, place, expires_at, new)).await?;
    Ok(())
}

fn raised(agent: &LockedAgent, place: Place, expires_at: Timestamp, new: NewApproval) -> NewApproval {
    NewApproval {
        agent_id: Some(agent.id),
        conversation_id: Some(place.conversation),
        turn_id: place.turn,
        expires_at: Some(expires_at),
        waiting: Some(Waiting { generation: agent.generation, request: place.request }),
        ..new
    }
}

/// Answers a request that no person decides.
fn verdict(tx: &Tx, agent: &LockedAgent, request: String, allowed: bool) {
    commands::enqueue(tx, agent.host(), &Command::Verdict { request, allowed });
}

/// Refuses a request, and says so in the conversation.
async fn refuse(tx: &Tx, agent: &LockedAgent, place: Place, code: &str, text: String) -> Result<()> {
    conversations::append_error(tx, place.conversation, place.turn, code, &text).await?;
    verdict(tx, agent, place.request, false);
    Ok(())
}

/// An approval that has come too late: a person allowed this very action in the launch before, which ended meanwhile. It
/// allows the action once, until it would have expired if no one had decided.
async fn honour(
    tx: &Tx,
    agent: &LockedAgent,
    place: &Place,
    request: &ToolRequest,
) -> Result<Option<ApprovalId>> {
    let honourable = || {
        tx.scope
            .find::<approvals::Entity>()
            .filter(approvals::Column::AgentId.eq(agent.id))
            .filter(approvals::Column::ConversationId.eq(place.conversation))
            .filter(approvals::Column::Kind.eq(ApprovalKind::Action))
            .filter(approvals::Column::Outcome.eq(ApprovalOutcome::Approved))
            .filter(approvals::Column::Delivery.eq(AnswerDelivery::Turn))
            .filter(approvals::Column::Generation.eq(agent.generation - 1))
            .filter(approvals::Column::ExpiresAt.gt(tx.now))
            .filter(approvals::Column::HonouredAt.is_null())
    };
    let (tool, digest) = (request.tool.as_str(), request.digest());
    let found = honourable().order_by_asc(approvals::Column::Id).all(tx.connection()).await?;
    let same = found.into_iter().find(|approval| {
        let known = approval.request.as_ref();
        known.is_some_and(|known| known["tool"] == tool && known["digest"] == digest.as_str())
    });
    let Some(approval) = same else { return Ok(None) };
    let taken = tx.scope.update::<approvals::Entity>().filter(approvals::Column::Id.eq(approval.id));
    let taken = taken
        .filter(approvals::Column::HonouredAt.is_null())
        .col_expr(approvals::Column::HonouredAt, Expr::value(tx.now));
    let is_taken = taken.exec(tx.connection()).await?.rows_affected > 0;
    Ok(is_taken.then_some(approval.id))
}

/// A line in the audit log: what was judged, how, and by which rule, or which earlier approval allows it. The input is
/// identified by its digest. Refusals for the same reason are counted together.
pub(super) fn trace(
    tx: &Tx,
    agent: &LockedAgent,
    turn: Option<TurnId>,
    (judged, approval): (&Judged, Option<ApprovalId>),
    request: &ToolRequest,
) {
    let is_allowed = judged.verdict == Verdict::Allowed || approval.is_some();
    let mut changes = json!({
        "tool": request.tool, "digest": request.digest(), "risk": judged.risk, "rule": judged.rule,
        "category": judged.category, "allowed": is_allowed,
    });
    if let Some(approval) = approval {
        changes["approval_id"] = approval.0.into();
    }
    let (kind, id) = match turn {
        Some(turn) => (RecordKind::Turn, turn.0),
        None => (RecordKind::Agent, agent.id.0),
    };
    let operation = "judgeAction";
    if is_allowed {
        audit::record(tx, audit::Entry { operation, op: ChangeOp::Updated, kind, id, changes });
        return;
    }
    let reason = judged.refusal();
    changes["reason"] = reason.as_str().into();
    let entry = audit::Entry { operation, op: ChangeOp::Updated, kind, id, changes };
    audit::refused_action(tx, agent.id, &reason, entry);
}

/// The agent no longer waits for this request. If that is because a person took over, it stays open: what is decided
/// is told with the next turn.
pub async fn withdrawn(tx: &Tx, from: &Reporter, request: String) -> Result<()> {
    let Some(agent) = lock_current(tx, from).await? else { return Ok(()) };
    let found =
        of_request(tx, &agent, &request).filter(approvals::Column::Status.eq(ApprovalStatus::Pending));
    let Some(approval) = found.one(tx.connection()).await? else { return Ok(()) };
    if let Some(turn) = approval.turn_id
        && turns::is_yielded(tx, turn).await?
    {
        return Ok(());
    }
    answers::withdraw(tx, &approval).await
}

/// How many decisions the agent's present launch waits for. They are withdrawn when it ends.
pub async fn waited_for(tx: &Tx, agent: &LockedAgent) -> Result<u64> {
    let waiting = tx.scope.find::<approvals::Entity>().filter(approvals::Column::AgentId.eq(agent.id));
    let waiting = waiting.filter(approvals::Column::Generation.eq(agent.generation));
    let waiting = waiting.filter(approvals::Column::RequestKey.is_not_null());
    let waiting = waiting.filter(approvals::Column::Status.eq(ApprovalStatus::Pending));
    Ok(waiting.count(tx.connection()).await?)
}

/// A decision has reached the agent, with the text that was given with it or without.
///
/// # Errors
/// `NOT_FOUND`: the approval isn't the launch's.
pub async fn delivered(tx: &Tx, from: &Reporter, approval: ApprovalId, without_text: bool) -> Result<()> {
    let Some(agent) = lock_current(tx, from).await? else { return Ok(()) };
    let approval = load(tx, &agent, approval).await?;
    answers::direct(tx, &approval, without_text.then_some(&agent)).await
}

/// The report of a request could not be applied, so no one will decide: it is refused.
pub async fn left_out(tx: &Tx, from: &Reporter, request: &str) -> Result<()> {
    let Some(agent) = lock_current(tx, from).await? else { return Ok(()) };
    if is_name(request) {
        verdict(tx, &agent, request.to_owned(), false);
    }
    Ok(())
}

/// Whether a request can have this name.
fn is_name(request: &str) -> bool {
    (1..=200).contains(&request.len()) && !request.contains(char::is_control)
}

/// Nothing waits for a decision any more: the agent is told in a turn.
///
/// # Errors
/// `NOT_FOUND`: the approval isn't the launch's.
pub async fn not_waiting(tx: &Tx, from: &Reporter, approval: ApprovalId) -> Result<()> {
    let Some(agent) = lock_current(tx, from).await? else { return Ok(()) };
    let approval = load(tx, &agent, approval).await?;
    answers::as_turn(tx, &approval, &agent).await
}

async fn load(tx: &Tx, agent: &LockedAgent, id: ApprovalId) -> Result<approvals::Model> {
    let found = tx.scope.find::<approvals::Entity>().filter(approvals::Column::Id.eq(id));
    let found = found.filter(approvals::Column::AgentId.eq(agent.id));
    let found = found.filter(approvals::Column::Generation.eq(agent.generation));
    found.one(tx.connection()).await?.ok_or_else(|| Problem::not_found("approval", id))
}

/// A text from an agent on one line, within bounds.
fn one_line(text: &str, most: usize) -> String {
    bounded(&plain::one_line(text), most)
}
