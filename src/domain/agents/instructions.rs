//! The instructions that people write for an agent. It gets them with its turns.

use sea_orm::{ColumnTrait, QueryFilter, QuerySelect};

use super::{entity::agents, rows::not_deleted};
use crate::{
    base::{ids::AgentId, problem::Result},
    core::store::Tx,
};

/// The agent's instructions, with an introduction. `None`: it has none.
pub async fn instructions(tx: &Tx, id: AgentId) -> Result<Option<String>> {
    let found = not_deleted(&tx.scope).select_only().column(agents::Column::Instructions);
    let found = found.filter(agents::Column::Id.eq(id));
    let found: Option<Option<String>> = found.into_tuple().one(tx.connection()).await?;
    let text = found.flatten().filter(|text| !text.trim().is_empty());
    Ok(text.map(|text| format!("Your instructions:\n{text}")))
}
