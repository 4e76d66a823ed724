//! Work that leaves the process: rows of the outbox, written with the change that decides them.
//!
//! A command holds ids, never secrets; whoever executes it reads what it needs then. Commands for one agent keep
//! their order. Nothing executes them yet: the host's side is a later part of the product.
//!
//! `worker.rs` is the table of what the service does by itself, again and again, `kept.rs` that of what is kept for how long.

use sea_orm::{ConnectionTrait, Statement};
use serde_json::{Value, json};

use crate::{
    base::{
        enums::CommandKind,
        ids::{AgentId, ServerId},
        problem::Result,
        time::Timestamp,
    },
    core::{Core, store::Tx},
};

/// A command for the host of a server.
#[derive(Clone, Debug)]
pub struct Command {
    /// What to do.
    pub kind: CommandKind,
    /// Whose host.
    pub server: ServerId,
    /// Which agent.
    pub agent: AgentId,
    /// The launch that it belongs to; reports of an older one are dropped.
    pub generation: i64,
    /// Ids that the command needs besides: an object.
    pub payload: Value,
}

impl Command {
    /// A command that needs no more than the agent.
    #[must_use]
    pub fn new(kind: CommandKind, server: ServerId, agent: AgentId, generation: i64) -> Self {
        Self { kind, server, agent, generation, payload: json!({}) }
    }
}

/// How many commands wait to be acknowledged, and since when the oldest does: from the index over those that wait alone.
///
/// # Errors
/// The database is out of reach.
pub async fn waiting(core: &Core) -> Result<(i64, Option<Timestamp>)> {
    let sql = "SELECT COUNT(*), MIN(available_at) FROM outbox WHERE acknowledged_at IS NULL";
    let row = core.db.one(sql.to_owned(), vec![]).await?;
    match row {
        Some(row) => Ok((row.try_get_by(0)?, row.try_get_by(1)?)),
        None => Ok((0, None)),
    }
}

/// Forgets the commands for a server that is being deleted: no host will ever take them.
///
/// # Errors
/// The database refused.
pub async fn forget_server(tx: &Tx, server: ServerId) -> Result<()> {
    let sql = "DELETE FROM outbox WHERE organization_id = $1 AND server_id = $2";
    let values = [tx.scope.org.into(), server.into()];
    let statement = Statement::from_sql_and_values(tx.scope.core.db.backend(), sql, values);
    tx.connection().execute_raw(statement).await?;
    Ok(())
}

/// Puts a command into the outbox, right before the commit of what decided it.
pub fn enqueue(tx: &Tx, command: Command) {
    let sql = "INSERT INTO outbox (organization_id, server_id, agent_id, kind, payload, generation, created_at, \
               available_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)";
    let values: [sea_orm::Value; 8] = [
        tx.scope.org.into(),
        command.server.into(),
        command.agent.into(),
        command.kind.into(),
        command.payload.into(),
        command.generation.into(),
        tx.now.into(),
        tx.now.into(),
    ];
    let backend = tx.scope.core.db.backend();
    tx.connection().before_commit(Statement::from_sql_and_values(backend, sql, values));
}
