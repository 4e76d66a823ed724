//! Input of mutations.

use async_graphql::InputObject;

use crate::{
    base::ids::{AgentId, ApprovalId},
    resolvers::bounds::{bounds, range},
};

/// More to spend: money or tokens, for an agent or the organization.
#[derive(InputObject)]
pub struct AllowSpendingInput {
    /// The agent whose limit is raised. Without it, the organization's budget is raised.
    pub agent_id: Option<AgentId>,
    /// Money on top of this month's budget, in millionths of the organization's currency. A negative amount takes back
    /// this month's allowance, at most all of it.
    #[graphql(directive = bounds::apply(range(-1_000_000_000_000_000, 1_000_000_000_000_000)))]
    pub cost_micro: Option<i64>,
    /// Tokens on top of the hourly limit, for the next 60 minutes. Only for an agent.
    #[graphql(directive = bounds::apply(range(1, 2_000_000_000)))]
    pub tokens: Option<i64>,
    /// The COST_GUARD approval to resolve with it. Also needs the permission `approval.resolve`.
    pub approval_id: Option<ApprovalId>,
}
