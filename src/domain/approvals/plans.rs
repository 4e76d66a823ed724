//! Decisions in the form that hosts receive.

use muster_protocol::plan::{Answer, Crossing, Decision, Judgement, MCP_KIND};
use sea_orm::{ColumnTrait, QueryFilter};

use super::{
    NETWORK, ToolRequest,
    entity::approvals,
    reports::audit_assessment,
    risk_check::{RiskDecision, assess_risk, rule_of_action},
};
use crate::{
    base::{
        bounds,
        enums::ApprovalOutcome,
        ids::{AgentId, ApprovalId},
        plain::{truncated_line, without_nul},
        problem::{Code, Problem, Result},
    },
    core::{access::Scope, store::Tx},
    domain::{agents, mcp_servers, network, orgs},
};

/// The refusal that an agent reads while its organization is stopped.
const STOPPED: &str = "This is not allowed, because the whole organization is stopped.";

/// The decision on a request.
///
/// # Errors
/// `AGENT_NOT_RUNNING` for a launch that is not the agent's current one; `NOT_FOUND` for an approval that this launch
/// doesn't wait for; `CONFLICT` while it is undecided.
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
    to_answer(found)
}

/// Judges a call that crosses the agent's boundary. A judgement that needs no person leaves an entry in the audit log.
///
/// # Errors
/// `AGENT_NOT_RUNNING` for a launch that is not the agent's current one.
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
    let rules = agents::load_approval_rules(&tx, agent.id).await?;
    let tool = truncated_line(&crossing.tool, bounds::NAME);
    let input = without_nul(crossing.input);
    if tool == NETWORK && !rules.disables(&crossing.tool_kind, &tool) && is_listed(&tx, &input).await? {
        return Ok(Judgement::Allowed);
    }
    let server = match crossing.mcp_server_id {
        Some(id) => mcp_servers::of_agent(&tx, agent.id).await?.into_iter().find(|server| server.id == id),
        None => None,
    };
    let tool_rule = match &server {
        Some(server) => mcp_servers::tools::rule_of_call(&tx, server, &crossing.tool).await?,
        None if crossing.mcp_server_id.is_none() && crossing.tool_kind == MCP_KIND => {
            rule_of_action(&scope.core.risk, &tool, &input)
        }
        None => None,
    };
    let mut judged = assess_risk(&scope.core.risk, &rules, tool_rule, (&crossing.tool_kind, &tool), &input);
    // The server was archived or taken from the agent, and its host has not learned of that yet.
    if crossing.mcp_server_id.is_some() && server.is_none() {
        judged.decision = RiskDecision::Unassigned;
    }
    let judgement = match judged.decision {
        RiskDecision::Asked => return Ok(Judgement::Asked),
        RiskDecision::Allowed => Judgement::Allowed,
        RiskDecision::Blocked
        | RiskDecision::Disabled
        | RiskDecision::Unassigned
        | RiskDecision::SwitchedOff
        | RiskDecision::NotAccepted
        | RiskDecision::TooLong => {
            Judgement::Refused { reason: format!("This is not allowed, because {}.", judged.refusal()) }
        }
    };
    audit_assessment(&tx, &agent, None, (&judged, None), &ToolRequest { tool, input });
    tx.commit().await?;
    Ok(judgement)
}

/// Whether the destination is on the list by now. The agent's host may have an older one.
async fn is_listed(tx: &Tx, input: &serde_json::Value) -> Result<bool> {
    let (Some(host), Some(port)) = (input["host"].as_str(), input["port"].as_i64()) else { return Ok(false) };
    let list = network::allowed(tx).await?;
    Ok(list.iter().any(|entry| i64::from(entry.port) == port && network::covers(&entry.host, host)))
}

fn to_answer(approval: approvals::Model) -> Result<Answer> {
    let not_found = || Problem::not_found("approval", approval.id);
    let request = approval.request_key.clone().ok_or_else(not_found)?;
    let undecided = || Problem::new(Code::Conflict, "The request is still undecided.");
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
