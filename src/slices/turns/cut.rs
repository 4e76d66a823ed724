//! Turns that people end early: by cancelling one, by stopping the agent or by stopping all agents. Each says who did it, in
//! its row and in its conversation. What the service itself ends says why elsewhere.

use sea_orm::{ColumnTrait, QueryFilter, QueryOrder, sea_query::Expr};

use super::{entity::turns, rows::open};
use crate::{
    base::{enums::TurnCut, problem::Result},
    core::{access::Caller, store::Tx},
    slices::{agents::Standing, conversations},
};

/// The caller stops the agent, or restarts it: names them in the turns that it has begun. Returns how many.
///
/// # Errors
/// The database is unreachable.
pub async fn cut_open(tx: &mut Tx, agent: &Standing, with: TurnCut) -> Result<u64> {
    let begun = open(tx).filter(turns::Column::AgentId.eq(agent.id)).order_by_asc(turns::Column::Id);
    let begun = begun.all(tx.connection()).await?;
    for turn in &begun {
        cut(tx, turn, with).await?;
    }
    Ok(begun.len() as u64)
}

/// The caller ends a turn.
pub(super) async fn cut(tx: &mut Tx, turn: &turns::Model, with: TurnCut) -> Result<()> {
    let Some(by) = who(&tx.scope.request.caller, with) else { return Ok(()) };
    let named = tx.scope.update::<turns::Entity>().filter(turns::Column::Id.eq(turn.id));
    let named = named.col_expr(turns::Column::CutBy, Expr::value(by.as_str()));
    named.col_expr(turns::Column::Cut, Expr::value(with.as_str())).exec(tx.connection()).await?;
    let (event, did) = match with {
        TurnCut::Turn => ("TURN_CANCELLED", "cancelled the turn"),
        TurnCut::Agent => ("AGENT_STOPPED", "stopped the agent"),
        TurnCut::Restart => ("AGENT_RESTARTED", "restarted the agent"),
        TurnCut::Organization => ("ORGANIZATION_STOPPED", "stopped all agents"),
    };
    conversations::note(tx, turn.conversation_id, event, format!("{by} {did}.")).await
}

/// Who ends it. The operator, who has no name, stops organizations; else the service acts by itself.
fn who(caller: &Caller, with: TurnCut) -> Option<String> {
    match caller {
        Caller::System if with == TurnCut::Organization => Some("The operator".to_owned()),
        Caller::System | Caller::Anonymous => None,
        caller => Some(caller.name().to_owned()),
    }
}
