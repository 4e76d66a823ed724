//! Requests of a host before it acts: for the plan of a launch or a turn, or for a decision.
//!
//! Answers may hold secrets. Only the current connection of the agent's own server gets them; the features that build
//! them answer only for the current launch, and only while the agent should be running.

use futures::future::BoxFuture;
use muster_protocol::plan::{PlanRequest, PlanResponse};

use super::{Ended, Link, queries, turn_plan};
use crate::{
    base::{
        ids::{AgentId, ApprovalId, ConversationId, TurnId},
        problem::{Code, Result},
    },
    domain::{approvals, conversations, launch, spending},
};

/// The answer to a request.
pub enum PlanAnswer {
    Now(PlanResponse),
    /// Once the outcome of an action is known, which takes as long as its vendor.
    Later(BoxFuture<'static, PlanResponse>),
}

/// Answers a host. `None`: the agent is not on its server.
///
/// # Errors
/// The connection is not the current one.
pub async fn answer(
    link: &Link,
    agent: i64,
    generation: i64,
    wanted: PlanRequest,
) -> Result<Option<PlanAnswer>, Ended> {
    let Some(trust) = queries::trust(link, AgentId(agent)).await? else {
        link.fence().await?;
        return Ok(None);
    };
    if trust.host_confirmed_at.is_none() && matches!(wanted, PlanRequest::Lease(_)) {
        let reason = "The host is not confirmed, so it calls no models, and spends nothing.".to_owned();
        return Ok(Some(PlanAnswer::Now(PlanResponse::Refused { reason })));
    }
    match build_answer(link, AgentId(agent), generation, wanted).await {
        Ok(answer) => Ok(Some(answer)),
        Err(problem) if matches!(problem.code, Code::Unavailable) => Err(problem.into()),
        Err(problem) => {
            if let Some(cause) = problem.cause() {
                let (org, cause) = (link.scope.org.0, format!("{cause:#}"));
                tracing::error!(org, agent, generation, cause, "hosts.no_answer");
            }
            Ok(Some(PlanAnswer::Now(PlanResponse::Refused { reason: problem.detail })))
        }
    }
}

async fn build_answer(
    link: &Link,
    agent: AgentId,
    generation: i64,
    wanted: PlanRequest,
) -> Result<PlanAnswer> {
    let scope = &link.scope;
    Ok(PlanAnswer::Now(match wanted {
        PlanRequest::Launch => {
            PlanResponse::Launch(Box::new(launch::plans::launch(scope, agent, generation).await?))
        }
        PlanRequest::Turn { turn_id } => {
            PlanResponse::Turn(turn_plan(scope, agent, generation, TurnId(turn_id)).await?)
        }
        PlanRequest::Answer { approval_id } => {
            let approval = ApprovalId(approval_id);
            PlanResponse::Answer(approvals::plans::answer(scope, agent, generation, approval).await?)
        }
        PlanRequest::Judgement(crossing) => {
            PlanResponse::Judgement(approvals::plans::judgement(scope, agent, generation, crossing).await?)
        }
        PlanRequest::Lease(asked) => spending::grant_lease(scope, agent, generation, &asked).await?,
        PlanRequest::Actions { conversation_id } => {
            let conversation = ConversationId(conversation_id);
            let actions = conversations::offered_actions(scope, agent, generation, conversation).await?;
            PlanResponse::Actions { actions }
        }
        PlanRequest::Act(call) => {
            let acting = conversations::act(scope, agent, generation, call).await?;
            let outcome = async move { PlanResponse::Acted(acting.outcome().await) };
            return Ok(PlanAnswer::Later(Box::pin(outcome)));
        }
    }))
}
