//! Channels: connections of an agent to a messaging transport; and who is on the far side ([`contacts`]).
//!
//! States: active or not, with the reason. Who may: `agent.view` and `agent.edit`; connecting and editing takes
//! a confirmed e-mail address besides. What leaves the process: nothing here. Deleting hides a channel, wipes its
//! secrets and its path, and keeps its conversations.

pub mod contacts;
mod entity;
pub mod graphql;
mod record;

use sea_orm::{ColumnTrait, QueryFilter, sea_query::Expr};

use self::entity::channels;
use crate::{enums::InactiveReason, error::Result, ids::AgentId, store::Tx};

/// Switches off the channels of an agent that is deleted. Those that are off keep their reason.
///
/// # Errors
/// The database refused.
pub async fn deactivate_for_archived_agent(tx: &Tx, agent: AgentId) -> Result<()> {
    tx.scope
        .update::<channels::Entity>()
        .col_expr(channels::Column::IsActive, Expr::value(false))
        .col_expr(channels::Column::InactiveReason, Expr::value(InactiveReason::AgentArchived))
        .col_expr(channels::Column::UpdatedAt, Expr::value(tx.now))
        .filter(channels::Column::AgentId.eq(agent))
        .filter(channels::Column::IsActive.eq(true))
        .exec(tx.connection())
        .await?;
    Ok(())
}
