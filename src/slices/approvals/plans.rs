//! What a host is told about a decision.

use muster_protocol::plan::{Answer, Decision};
use sea_orm::{ColumnTrait, QueryFilter};

use super::entity::approvals;
use crate::{
    base::{
        enums::ApprovalOutcome,
        ids::{AgentId, ApprovalId},
        problem::{Code, Problem, Result},
    },
    core::access::Scope,
    slices::agents,
};

/// What was decided.
///
/// # Errors
/// `AGENT_NOT_RUNNING` for a launch that is not the agent's present one; `NOT_FOUND` for an approval that this launch doesn't
/// wait for; `CONFLICT` while nobody has decided.
pub async fn answer(scope: &Scope, agent: AgentId, generation: i64, approval: ApprovalId) -> Result<Answer> {
    let tx = scope.begin().await?;
    let agent = agents::present(&tx, agent, generation).await?;
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

fn told(approval: approvals::Model) -> Result<Answer> {
    let not_found = || Problem::not_found("approval", approval.id);
    let request = approval.request_key.clone().ok_or_else(not_found)?;
    let undecided = || Problem::new(Code::Conflict, "Nobody has decided yet.");
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
        ApprovalOutcome::Expired => closed("Nobody answered in time."),
        ApprovalOutcome::Withdrawn => closed("It was withdrawn."),
    };
    let is_person = approval.decided_by_user_id.is_some() || approval.decided_by_token_id.is_some();
    Ok(Answer { request, decision, by: approval.decided_by_name.filter(|_| is_person) })
}
