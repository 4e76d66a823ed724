//! Reports of hosts about requests: an agent asks, or no longer waits; a decision has arrived, or came too late.
//! Reports of a launch that is not the agent's current one are ignored.

use std::time::Duration;

use muster_protocol::{
    Command,
    event::{Asked, Request},
    plan::MCP_KIND,
};
use sea_orm::{ColumnTrait, PaginatorTrait, QueryFilter, QueryOrder, sea_query::Expr};
use serde_json::json;

use super::{
    NewApproval, ToolRequest, WaitingRequest, answers,
    entity::approvals,
    question::{Choice, Question},
    raise::raise,
    risk_check::{RiskAssessment, RiskDecision, assess_risk, rule_of_action, severity},
};
use crate::{
    base::{
        bounds,
        enums::{AnswerDelivery, ApprovalKind, ApprovalOutcome, ApprovalStatus, ChangeOp, RecordKind},
        ids::{ApprovalId, ConversationId, TurnId},
        plain::{lines_without_controls, truncated, truncated_line, without_nul},
        problem::{Problem, Result},
        time::Timestamp,
    },
    core::{audit, store::Tx},
    domain::{
        agents::{
            self, ApprovalRules, LockedAgent,
            reporter::{Reporter, lock_current, lock_live},
        },
        commands,
        conversations::{self, turns},
        mcp_servers,
    },
};

/// How many requests of one agent may wait. Among more, a hostile agent could hide the one that matters.
const MAX_WAITING: u64 = 50;

/// Where a request was made, and its name.
struct RequestOrigin {
    conversation: ConversationId,
    turn: Option<TurnId>,
    request: String,
}

/// An agent asks, and waits. A repeated request changes nothing.
///
/// # Errors
/// `NOT_FOUND`: the conversation or the turn isn't the agent's. `VALIDATION_FAILED`: the request's name is invalid.
pub async fn asked(tx: &Tx, from: &Reporter, request: Request) -> Result<()> {
    let Some(agent) = lock_live(tx, from).await? else { return Ok(()) };
    let Request { request, conversation_id, turn_id, asked } = request;
    if !is_request_name(&request) {
        let detail = "A request's name has 1 to 200 bytes and no control characters.";
        return Err(Problem::invalid_at("/request", "NOT_ALLOWED", detail));
    }
    let origin =
        RequestOrigin { conversation: ConversationId(conversation_id), turn: turn_id.map(TurnId), request };
    match origin.turn {
        Some(turn) => drop(turns::require_turn(tx, turn, agent.id, origin.conversation).await?),
        None => conversations::require_agent(tx, origin.conversation, agent.id).await?,
    }
    if is_known(tx, &agent, &origin.request).await? {
        return Ok(());
    }
    let rules = agents::load_approval_rules(tx, agent.id).await?;
    let expires_at = expiry_time(tx.now, &rules);
    match asked {
        Asked::Question { text, options, multiple, allow_text } => {
            let options = options.into_iter().take(bounds::LIST).map(|option| Choice {
                id: truncated(&option.id, bounds::ID),
                label: truncated_line(&option.label, bounds::ID),
                description: option
                    .description
                    .map(|text| truncated(&lines_without_controls(&text), bounds::TEXT)),
            });
            let text = truncated(&lines_without_controls(&text), bounds::TEXT);
            let question = Question { text, options: options.collect(), multiple, allow_text };
            ask_question(tx, &agent, origin, expires_at, question).await
        }
        Asked::Action { tool, tool_kind, title, input } => {
            let title = truncated_line(&title, bounds::NAME);
            // The model may choose a title, or the name of a tool of another kind: people's risk of an MCP server's
            // tool must not allow them.
            let input = without_nul(input);
            let risk = &tx.scope.core.risk;
            let tool_rule = match &tool {
                Some(tool) if tool_kind == MCP_KIND => match rule_of_action(risk, tool, &input) {
                    Some(rule) => Some(rule),
                    None => mcp_servers::tools::rule_of_request(tx, agent.id, tool).await?,
                },
                _ => None,
            };
            let tool = tool.map_or_else(|| title.clone(), |tool| truncated_line(&tool, bounds::NAME));
            let judged = assess_risk(risk, &rules, tool_rule, (&tool_kind, &tool), &input);
            let request = ToolRequest { tool, input };
            match judged.decision {
                RiskDecision::Asked => match use_late_approval(tx, &agent, &origin, &request).await? {
                    Some(approval) => {
                        audit_assessment(tx, &agent, origin.turn, (&judged, Some(approval)), &request);
                        send_verdict(tx, &agent, origin.request, true);
                        Ok(())
                    }
                    None => ask_approval(tx, &agent, origin, expires_at, (title, request, judged)).await,
                },
                RiskDecision::Allowed => {
                    audit_assessment(tx, &agent, origin.turn, (&judged, None), &request);
                    send_verdict(tx, &agent, origin.request, true);
                    Ok(())
                }
                RiskDecision::Blocked
                | RiskDecision::Disabled
                | RiskDecision::Unassigned
                | RiskDecision::SwitchedOff
                | RiskDecision::NotAccepted
                | RiskDecision::TooLong => {
                    let why = judged.refusal();
                    audit_assessment(tx, &agent, origin.turn, (&judged, None), &request);
                    let text = format!("The action was not allowed, because {why}: {title}");
                    refuse_request(tx, &agent, origin, "ACTION_BLOCKED", text).await
                }
            }
        }
    }
}

/// Whether the launch has made this request before, and it was not answered at once.
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

/// Whether the agent has too many pending requests.
async fn is_flooding(tx: &Tx, agent: &LockedAgent) -> Result<bool> {
    let waiting = tx
        .scope
        .find::<approvals::Entity>()
        .filter(approvals::Column::AgentId.eq(agent.id))
        .filter(approvals::Column::Status.eq(ApprovalStatus::Pending));
    Ok(waiting.count(tx.connection()).await? >= MAX_WAITING)
}

/// When the request fails closed: in an hour, unless the agent's timeout differs.
fn expiry_time(now: Timestamp, rules: &ApprovalRules) -> Timestamp {
    let minutes = rules.timeout_minutes.unwrap_or(60).max(1);
    now.plus(Duration::from_mins(minutes.cast_unsigned()))
}

/// Raises a QUESTION. One without a possible answer is refused.
async fn ask_question(
    tx: &Tx,
    agent: &LockedAgent,
    origin: RequestOrigin,
    expires_at: Timestamp,
    question: Question,
) -> Result<()> {
    if let Err(problem) = question.check() {
        let why = problem.errors.first().map_or(problem.detail, |violation| violation.detail.clone());
        return refuse_request(
            tx,
            agent,
            origin,
            "QUESTION_UNCLEAR",
            format!("The question was not asked: {why}"),
        )
        .await;
    }
    if is_flooding(tx, agent).await? {
        let text =
            format!("The question was not asked: {MAX_WAITING} requests of this agent are already waiting.");
        return refuse_request(tx, agent, origin, "TOO_MANY_REQUESTS", text).await;
    }
    let title = truncated_line(question.text.trim().lines().next().unwrap_or_default(), bounds::NAME);
    let title = if title.is_empty() { "A question".to_owned() } else { title };
    let new = NewApproval { question: Some(question), ..NewApproval::new(ApprovalKind::Question, title) };
    raise(tx, with_request(agent, origin, expires_at, new)).await?;
    Ok(())
}

/// Raises an ACTION.
async fn ask_approval(
    tx: &Tx,
    agent: &LockedAgent,
    origin: RequestOrigin,
    expires_at: Timestamp,
    (title, request, judged): (String, ToolRequest, RiskAssessment),
) -> Result<()> {
    let title = if title.is_empty() { request.tool.clone() } else { title };
    if is_flooding(tx, agent).await? {
        let why = format!("{MAX_WAITING} requests of this agent are already waiting");
        let text = format!("The action was not allowed, because {why}: {title}");
        return refuse_request(tx, agent, origin, "TOO_MANY_REQUESTS", text).await;
    }
    let new = NewApproval {
        severity: severity(judged.risk),
        risk: Some(judged.risk),
        category: judged.category,
        request: Some(request),
        ..NewApproval::new(ApprovalKind::Action, title)
    };
    raise(tx, with_request(agent, origin, expires_at, new)).await?;
    Ok(())
}

fn with_request(
    agent: &LockedAgent,
    origin: RequestOrigin,
    expires_at: Timestamp,
    new: NewApproval,
) -> NewApproval {
    NewApproval {
        agent_id: Some(agent.id),
        conversation_id: Some(origin.conversation),
        turn_id: origin.turn,
        expires_at: Some(expires_at),
        waiting: Some(WaitingRequest { generation: agent.generation, request: origin.request }),
        ..new
    }
}

/// Answers a request that no person decides.
fn send_verdict(tx: &Tx, agent: &LockedAgent, request: String, allowed: bool) {
    commands::enqueue(tx, agent.host(), &Command::Verdict { request, allowed });
}

/// Refuses a request, with an error in the conversation.
async fn refuse_request(
    tx: &Tx,
    agent: &LockedAgent,
    origin: RequestOrigin,
    code: &str,
    text: String,
) -> Result<()> {
    conversations::append_error(tx, origin.conversation, origin.turn, code, &text).await?;
    send_verdict(tx, agent, origin.request, false);
    Ok(())
}

/// Finds and uses up an approval that came too late: a person allowed the same action for the previous launch, which
/// had ended. It allows the action once, until the original deadline.
async fn use_late_approval(
    tx: &Tx,
    agent: &LockedAgent,
    origin: &RequestOrigin,
    request: &ToolRequest,
) -> Result<Option<ApprovalId>> {
    let honourable = || {
        tx.scope
            .find::<approvals::Entity>()
            .filter(approvals::Column::AgentId.eq(agent.id))
            .filter(approvals::Column::ConversationId.eq(origin.conversation))
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

/// Writes an assessment to the audit log, with the rule or the earlier approval that decided. A digest identifies the
/// input. Refusals for the same reason are counted together.
pub(super) fn audit_assessment(
    tx: &Tx,
    agent: &LockedAgent,
    turn: Option<TurnId>,
    (judged, approval): (&RiskAssessment, Option<ApprovalId>),
    request: &ToolRequest,
) {
    let is_allowed = judged.decision == RiskDecision::Allowed || approval.is_some();
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

/// The agent no longer waits for this request. If the reason is a takeover by a person, the request stays open, and the
/// next turn carries the decision.
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

/// How many decisions the agent's current launch waits for. They are withdrawn when it ends.
pub async fn count_waiting(tx: &Tx, agent: &LockedAgent) -> Result<u64> {
    let waiting = tx.scope.find::<approvals::Entity>().filter(approvals::Column::AgentId.eq(agent.id));
    let waiting = waiting.filter(approvals::Column::Generation.eq(agent.generation));
    let waiting = waiting.filter(approvals::Column::RequestKey.is_not_null());
    let waiting = waiting.filter(approvals::Column::Status.eq(ApprovalStatus::Pending));
    Ok(waiting.count(tx.connection()).await?)
}

/// A decision has reached the agent, with or without its text.
///
/// # Errors
/// `NOT_FOUND`: the approval isn't the launch's.
pub async fn delivered(tx: &Tx, from: &Reporter, approval: ApprovalId, without_text: bool) -> Result<()> {
    let Some(agent) = lock_current(tx, from).await? else { return Ok(()) };
    let approval = load(tx, &agent, approval).await?;
    answers::settle_direct(tx, &approval, without_text.then_some(&agent)).await
}

/// Refuses a request whose report could not be applied, because no person will see it.
pub async fn refuse_skipped(tx: &Tx, from: &Reporter, request: &str) -> Result<()> {
    let Some(agent) = lock_current(tx, from).await? else { return Ok(()) };
    if is_request_name(request) {
        send_verdict(tx, &agent, request.to_owned(), false);
    }
    Ok(())
}

fn is_request_name(request: &str) -> bool {
    (1..=200).contains(&request.len()) && !request.contains(char::is_control)
}

/// No call waits for the decision any longer: it becomes a turn.
///
/// # Errors
/// `NOT_FOUND`: the approval isn't the launch's.
pub async fn not_waiting(tx: &Tx, from: &Reporter, approval: ApprovalId) -> Result<()> {
    let Some(agent) = lock_current(tx, from).await? else { return Ok(()) };
    let approval = load(tx, &agent, approval).await?;
    answers::settle_as_turn(tx, &approval, &agent).await
}

async fn load(tx: &Tx, agent: &LockedAgent, id: ApprovalId) -> Result<approvals::Model> {
    let found = tx.scope.find::<approvals::Entity>().filter(approvals::Column::Id.eq(id));
    let found = found.filter(approvals::Column::AgentId.eq(agent.id));
    let found = found.filter(approvals::Column::Generation.eq(agent.generation));
    found.one(tx.connection()).await?.ok_or_else(|| Problem::not_found("approval", id))
}
