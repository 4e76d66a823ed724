//! Work that leaves the process: rows of the outbox, written with the change that decides them.
//!
//! A command holds ids, never secrets; whoever executes it reads what it needs then. Commands for one agent keep
//! their order. Nothing executes them yet: the host's side is a later part of the product.
//!
//! `worker.rs` is the table of what the service does by itself, again and again.

mod entity;
pub mod worker;

use sea_orm::{ActiveModelTrait, NotSet, Set};
use serde_json::{Value, json};

use self::entity::outbox;
use crate::{
    app::App,
    clock::Timestamp,
    enums::CommandKind,
    error::Result,
    ids::{AgentId, ServerId},
    store::Tx,
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

/// How many commands wait to be acknowledged, and since when the oldest does.
///
/// # Errors
/// The database is out of reach.
pub async fn waiting(app: &App) -> Result<(i64, Option<Timestamp>)> {
    let sql = "SELECT COUNT(*), MIN(created_at) FROM outbox WHERE acknowledged_at IS NULL";
    let row = app.db.one(sql.to_owned(), vec![]).await?;
    match row {
        Some(row) => Ok((row.try_get_by(0)?, row.try_get_by(1)?)),
        None => Ok((0, None)),
    }
}

/// Puts a command into the outbox.
///
/// # Errors
/// The database refused; then the change that decided it does not happen either.
pub async fn enqueue(tx: &Tx, command: Command) -> Result<()> {
    outbox::ActiveModel {
        organization_id: Set(tx.scope.org),
        id: NotSet,
        server_id: Set(command.server),
        agent_id: Set(Some(command.agent)),
        kind: Set(command.kind),
        payload: Set(command.payload),
        generation: Set(Some(command.generation)),
        attempts: Set(0),
        created_at: Set(tx.now),
        available_at: Set(tx.now),
        delivered_at: Set(None),
        acknowledged_at: Set(None),
        result: Set(None),
    }
    .insert(tx.connection())
    .await?;
    Ok(())
}
