//! What callers give.

use async_graphql::InputObject;

use crate::{
    base::ids::{AgentId, ApprovalId},
    resolvers::bounds::{bounds, range},
};

/// More to spend: money or tokens, for an agent or the organization.
#[derive(InputObject)]
pub struct AllowSpendingInput {
    /// The agent whose limit is raised. Left out: the organization's budget is.
    pub agent_id: Option<AgentId>,
    /// Money on top of this month's budget, in millionths of the organization's currency. A negative amount takes back what was
    /// allowed this month, at most all of it.
    #[graphql(directive = bounds::apply(range(-1_000_000_000_000_000, 1_000_000_000_000_000)))]
    pub cost_micro: Option<i64>,
    /// Tokens on top of those of an hour, for the next 60 minutes. For an agent only.
    #[graphql(directive = bounds::apply(range(1, 2_000_000_000)))]
    pub tokens: Option<i64>,
    /// The COST_GUARD that asks for it, which is resolved with it. Needs the permission `approval.resolve` as well.
    pub approval_id: Option<ApprovalId>,
}
