//! Decisions, as hosts get them.

use muster_protocol::plan::{Answer, Crossing, Decision, Judgement};
use sea_orm::{ColumnTrait, QueryFilter};

use super::{
    NETWORK, ToolRequest,
    entity::approvals,
    reports::trace,
    risk_check::{Verdict, judge},
};
use crate::{
    base::{
        bounds,
        enums::ApprovalOutcome,
        ids::{AgentId, ApprovalId},
        plain::{self, bounded},
        problem::{Code, Problem, Result},
    },
    core::{access::Scope, store::Tx},
    domain::{agents, mcp_servers, network, orgs},
};

/// What an agent reads while its organization is stopped.
const STOPPED: &str = "This is not allowed, because the whole organization is stopped.";

/// What was decided.
///
/// # Errors
/// `AGENT_NOT_RUNNING` for a launch that is not the agent's present one; `NOT_FOUND` for an approval that this launch doesn't
/// wait for; `CONFLICT` while no one has decided.
pub async fn answer(scope: &Scope, agent: AgentId, generation: i64, approval: ApprovalId) -> Result<Answer> {
    let tx = scope.begin().await?;
    let agent = agents::lock_present(&tx, agent, generation).await?;
    let found = tx
        .scope
        .find::<approvals::Entity>()
        .filter(approvals::Column::Id.eq(approval))
        .filter(approvals::Column::AgentId.eq(agent.id))
        .filter(approvals::Column::Generation.eq(generation));
    let found = found.one(tx.connection()).await?.ok_or_else(|| Problem::not_found("approval", approval))?;
    tx.rollback().await?;
    told(found)
}

/// Whether something that crosses the agent's boundary may. What no person has to decide leaves a line in the audit log.
///
/// # Errors
/// `AGENT_NOT_RUNNING` for a launch that is not the agent's present one.
pub async fn judgement(
    scope: &Scope,
    agent: AgentId,
    generation: i64,
    crossing: Crossing,
) -> Result<Judgement> {
    let tx = scope.begin().await?;
    let agent = agents::lock_present(&tx, agent, generation).await?;
    if orgs::is_stopped(&tx).await? {
        return Ok(Judgement::Refused { reason: STOPPED.to_owned() });
    }
    let limits = agents::limits(&tx, agent.id).await?;
    let tool = bounded(&plain::one_line(&crossing.tool), bounds::NAME);
    let input = plain::without_nul(crossing.input);
    if tool == NETWORK && !limits.disables(&crossing.tool_kind, &tool) && is_listed(&tx, &input).await? {
        return Ok(Judgement::Allowed);
    }
    let mut judged = judge(&scope.core.risk, &limits, &crossing.tool_kind, &tool, &input);
    // As what is switched off: the host learns of it later.
    if let Some(server) = crossing.mcp_server_id
        && !mcp_servers::of_agent(&tx, agent.id).await?.iter().any(|callable| callable.id == server)
    {
        judged.verdict = Verdict::Taken;
    }
    let judgement = match judged.verdict {
        Verdict::Asked => return Ok(Judgement::Asked),
        Verdict::Allowed => Judgement::Allowed,
        Verdict::Blocked | Verdict::Disabled | Verdict::Taken | Verdict::TooLong => {
            Judgement::Refused { reason: format!("This is not allowed, because {}.", judged.refusal()) }
        }
    };
    trace(&tx, &agent, None, (&judged, None), &ToolRequest { tool, input });
    tx.commit().await?;
    Ok(judgement)
}

/// Whether a host has been allowed since the agent's own host was last told the list.
async fn is_listed(tx: &Tx, input: &serde_json::Value) -> Result<bool> {
    let (Some(host), Some(port)) = (input["host"].as_str(), input["port"].as_i64()) else { return Ok(false) };
    let list = network::allowed(tx).await?;
    Ok(list.iter().any(|entry| i64::from(entry.port) == port && network::covers(&entry.host, host)))
}

fn told(approval: approvals::Model) -> Result<Answer> {
    let not_found = || Problem::not_found("approval", approval.id);
    let request = approval.request_key.clone().ok_or_else(not_found)?;
    let undecided = || Problem::new(Code::Conflict, "There is no decision yet.");
    let answer = approval.answer.unwrap_or_default();
    let text = answer["text"].as_str().map(str::to_owned);
    let closed = |reason: &str| Decision::Closed { reason: reason.to_owned() };
    let decision = match approval.outcome.ok_or_else(undecided)? {
        ApprovalOutcome::Approved => Decision::Approved { comment: text },
        ApprovalOutcome::Denied => Decision::Denied { comment: text },
        ApprovalOutcome::Answered => {
            let options = answer["options"].as_array().into_iter().flatten();
            let options = options.filter_map(|option| option.as_str()).map(str::to_owned).collect();
            Decision::Answered { options, text }
        }
        ApprovalOutcome::Manual => closed("It was marked as resolved without an answer."),
        ApprovalOutcome::Dismissed => closed("It was dismissed."),
        ApprovalOutcome::Expired => closed("There was no answer in time."),
        ApprovalOutcome::Withdrawn => closed("It was withdrawn."),
    };
    let is_person = approval.decided_by_user_id.is_some() || approval.decided_by_token_id.is_some();
    Ok(Answer { request, decision, by: approval.decided_by_name.filter(|_| is_person) })
}
