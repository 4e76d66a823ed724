//! What hosts report about agents. Each function runs in a transaction that applies a batch of a host's events, about an agent
//! that is known to be on that host's server.
//!
//! Reports of a launch that is not the agent's present one are ignored, with one exception: the end of an earlier launch still
//! settles what is left of that launch. Reports of a launch that never was are ignored and logged.

use muster_protocol::event::{EndReason, RefusedReason};
use sea_orm::{ActiveModelTrait, ConnectionTrait, IntoActiveModel, Set, Statement};

use super::{
    announce,
    entity::agents,
    explain, fail, find,
    standing::{Standing, standing},
    state::Report,
};
use crate::{
    base::{
        enums::{AgentStatus, OutboxKind, StatusReason},
        ids::{AgentId, ServerId, TurnId},
        problem::Result,
        time::Timestamp,
    },
    core::store::Tx,
    slices::{approvals, orgs, turns},
};

/// The longest text that is kept of a report, in bytes.
const DETAIL_BYTES: usize = 8 * 1024;
/// The longest name, in bytes: of a container, a model.
const NAME_BYTES: usize = 500;

/// What reports: a host, about a launch of one of its agents.
#[derive(Clone, Copy, Debug)]
pub struct Reporter {
    /// The agent.
    pub agent: AgentId,
    /// The host's server.
    pub server: ServerId,
    /// The launch.
    pub generation: i64,
    /// When it happened, by the host's clock.
    pub at: Timestamp,
}

impl Reporter {
    /// When it happened, as far as the host's clock can be believed: not in the future, and not before this.
    #[must_use]
    pub fn time(&self, tx: &Tx, not_before: Timestamp) -> Timestamp {
        self.at.max(not_before).min(tx.now)
    }
}

/// Holds the agents that a batch is about, in the order in which everything else holds several, so that no two transactions
/// wait for each other. `stores` says whether the batch brings files, whose bytes are counted. Call it first in the
/// transaction.
///
/// # Errors
/// The database is unreachable.
pub async fn hold(tx: &Tx, agents: &[AgentId], stores: bool) -> Result<()> {
    if stores {
        orgs::lock(tx).await?;
    }
    let mut agents = agents.to_vec();
    agents.sort_unstable();
    agents.dedup();
    for agent in agents {
        standing(tx, agent).await?;
    }
    Ok(())
}

/// The agent, held, if this is its present launch.
///
/// # Errors
/// The database is unreachable.
pub async fn current(tx: &Tx, from: &Reporter) -> Result<Option<Standing>> {
    let agent = standing(tx, from.agent).await?;
    Ok(agent.filter(|agent| !of_no_launch(agent, from) && agent.generation == from.generation))
}

/// Whether the report is about a launch that never was.
fn of_no_launch(agent: &Standing, from: &Reporter) -> bool {
    let is_unknown = from.generation > agent.generation;
    if is_unknown {
        let (server, generation) = (from.server.0, from.generation);
        tracing::warn!(agent = agent.id.0, server, generation, "report.of_no_launch");
    }
    is_unknown
}

/// The agent runs and takes turns: what waits for it is sent.
///
/// # Errors
/// The database is unreachable.
pub async fn started(
    tx: &mut Tx,
    from: &Reporter,
    container_id: String,
    program: Option<String>,
    model: Option<String>,
) -> Result<()> {
    let Some(agent) = held_row(tx, from).await? else { return Ok(()) };
    let Some(status) = Report::Started.apply(agent.status) else { return Ok(()) };
    tracing::info!(agent = agent.id.0, generation = from.generation, program, "agent.started");
    let (was, since) = (agent.status, agent.status_changed_at.unwrap_or(agent.created_at));
    let is_given = agent.sync_given == agent.sync_version;
    let mut row = agent.into_active_model();
    if status != was {
        row.status = Set(status);
        row.status_changed_at = Set(Some(tx.now));
        row.status_reason = Set(None);
        row.status_detail = Set(None);
        row.started_at = Set(Some(from.time(tx, since)));
    }
    row.container_id = Set(Some(bounded(&container_id, NAME_BYTES)));
    row.running_model = Set(model.map(|model| bounded(&model, NAME_BYTES)));
    if is_given {
        row.sync_pending = Set(false);
    }
    row.updated_at = Set(tx.now);
    let agent = Standing::of(&row.update(tx.connection()).await?);
    announce(tx, agent.id);
    turns::send_due(tx, &agent).await
}

/// The agent has ended, or never began. Its open turns are interrupted and its requests withdrawn; what was decided and has
/// not reached it waits as a turn.
///
/// # Errors
/// The database is unreachable.
pub async fn ended(
    tx: &mut Tx,
    from: &Reporter,
    reason: EndReason,
    code: Option<i32>,
    signal: Option<i32>,
    detail: Option<String>,
) -> Result<()> {
    let Some(agent) = find(tx, from.agent).await? else { return Ok(()) };
    let present = Standing::of(&agent);
    let why = words(reason, code, signal);
    if of_no_launch(&present, from) {
        return Ok(());
    }
    if from.generation == present.generation
        && let Some(status) = Report::Ended(reason).apply(agent.status)
    {
        let generation = from.generation;
        tracing::info!(agent = agent.id.0, generation, ?reason, code, signal, "agent.ended");
        let said = detail.as_deref().map(str::trim).filter(|detail| !detail.is_empty());
        let said = said.map_or_else(|| why.clone(), |said| format!("{why}\n{said}"));
        let mut row = agent.into_active_model();
        row.status = Set(status);
        row.status_changed_at = Set(Some(tx.now));
        row.started_at = Set(None);
        row.container_id = Set(None);
        row.running_model = Set(None);
        row.updated_at = Set(tx.now);
        row.update(tx.connection()).await?;
        announce(tx, from.agent);
        if status == AgentStatus::Error
            && let Some(reason) = reason_of(reason)
        {
            fail(tx, from.agent, reason, Some(&said)).await?;
        }
    }
    settle(tx, &present, from.generation, &why).await
}

/// The reason of an agent's status.
const fn reason_of(reason: EndReason) -> Option<StatusReason> {
    Some(match reason {
        EndReason::Stopped => return None,
        EndReason::Exited => StatusReason::Exited,
        EndReason::Killed => StatusReason::Killed,
        EndReason::OutOfMemory => StatusReason::OutOfMemory,
        EndReason::ShimLost => StatusReason::ShimLost,
        EndReason::ImageNotFound => StatusReason::ImageNotFound,
        EndReason::SpawnFailed => StatusReason::SpawnFailed,
        EndReason::NoProtocol => StatusReason::NoProtocol,
        EndReason::LineTooLong => StatusReason::LineTooLong,
        EndReason::DiskFull => StatusReason::DiskFull,
    })
}

/// Settles what is left of the agent's launches up to `generation`.
///
/// # Errors
/// The database is unreachable.
pub(super) async fn settle(tx: &mut Tx, agent: &Standing, generation: i64, why: &str) -> Result<()> {
    turns::lose(tx, agent, generation, why).await?;
    approvals::lose(tx, agent.id, generation).await
}

/// The agent's skills, MCP servers and credentials are as its host was last told.
///
/// # Errors
/// The database is unreachable.
pub async fn synced(tx: &mut Tx, from: &Reporter) -> Result<()> {
    let Some(agent) = held_row(tx, from).await? else { return Ok(()) };
    // Something has changed since the host asked, and another command is on its way.
    if agent.sync_given != agent.sync_version || !agent.sync_pending {
        return Ok(());
    }
    let mut row = agent.into_active_model();
    row.sync_pending = Set(false);
    row.updated_at = Set(tx.now);
    row.update(tx.connection()).await?;
    announce(tx, from.agent);
    Ok(())
}

/// The agent has no valid access to its model. People are asked once, however often it says so.
///
/// # Errors
/// The database is unreachable.
pub async fn auth_required(tx: &mut Tx, from: &Reporter, detail: String) -> Result<()> {
    let Some(agent) = held_row(tx, from).await? else { return Ok(()) };
    let mut row = agent.into_active_model();
    row.auth_failed_at = Set(Some(tx.now));
    row.updated_at = Set(tx.now);
    row.update(tx.connection()).await?;
    let detail = bounded(&detail, DETAIL_BYTES);
    explain(tx, from.agent, Some((StatusReason::AuthRequired, &detail))).await?;
    announce(tx, from.agent);
    approvals::require_access(tx, from.agent, detail).await
}

/// A command had no effect. A turn that the agent could not be given waits again.
///
/// # Errors
/// The database is unreachable.
pub async fn refused(tx: &mut Tx, from: &Reporter, command_id: i64, reason: RefusedReason) -> Result<()> {
    tracing::warn!(
        agent = from.agent.0,
        server = from.server.0,
        command = command_id,
        ?reason,
        "command.refused"
    );
    let Some(agent) = current(tx, from).await? else { return Ok(()) };
    if let Some(turn) = turn_of(tx, &agent, command_id).await? {
        turns::resent(tx, &agent, turn).await?;
    }
    Ok(())
}

/// The turn that this command is about.
async fn turn_of(tx: &Tx, agent: &Standing, command: i64) -> Result<Option<TurnId>> {
    let sql =
        "SELECT payload FROM outbox WHERE id = $1 AND organization_id = $2 AND agent_id = $3 AND kind = $4";
    let values = [command.into(), tx.scope.org.0.into(), agent.id.0.into(), OutboxKind::Turn.into()];
    let found = Statement::from_sql_and_values(tx.scope.core.db.backend(), sql, values);
    let Some(row) = tx.connection().query_one_raw(found).await? else { return Ok(None) };
    let payload: serde_json::Value = row.try_get_by_index(0)?;
    Ok(payload["turn_id"].as_i64().map(TurnId))
}

/// The agent's row, held, if this is its present launch.
async fn held_row(tx: &Tx, from: &Reporter) -> Result<Option<agents::Model>> {
    let agent = find(tx, from.agent).await?;
    Ok(agent.filter(|agent| {
        let agent = Standing::of(agent);
        !of_no_launch(&agent, from) && agent.generation == from.generation
    }))
}

/// Why an agent ended, in words that follow "because" or a colon.
fn words(reason: EndReason, code: Option<i32>, signal: Option<i32>) -> String {
    let why = match reason {
        EndReason::Stopped => "it was stopped",
        EndReason::Exited => "its program ended by itself",
        EndReason::Killed => "its program was killed",
        EndReason::OutOfMemory => "its memory did not suffice",
        EndReason::ShimLost => "its process is gone and left no record",
        EndReason::ImageNotFound => "its image was not found on the host",
        EndReason::SpawnFailed => "its program could not be started",
        EndReason::NoProtocol => "its program does not speak the Agent Client Protocol",
        EndReason::LineTooLong => "its program wrote a line that is too long",
        EndReason::DiskFull => "the host's disk is full",
    };
    match (code, signal) {
        (Some(code), _) => format!("{why} (code {code})"),
        (None, Some(signal)) => format!("{why} (signal {signal})"),
        (None, None) => why.to_owned(),
    }
}

/// A text from a host within bounds, without the character that PostgreSQL's text can't hold. One that is cut ends with an
/// ellipsis.
#[must_use]
pub fn bounded(text: &str, most: usize) -> String {
    let text = text.replace('\0', "\u{fffd}");
    if text.len() <= most {
        return text;
    }
    format!("{}…", &text[..text.floor_char_boundary(most - '…'.len_utf8())])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hosts_text_is_cut_at_a_character() {
        assert_eq!(bounded("Grüße", 20), "Grüße");
        assert_eq!(bounded("a\0b", 20), "a\u{fffd}b");
        let cut = bounded(&"ü".repeat(100), 20);
        assert!(cut.len() <= 20 && cut.ends_with("ü…"), "{cut}");
    }

    #[test]
    fn an_end_is_explained() {
        assert_eq!(words(EndReason::Exited, Some(3), None), "its program ended by itself (code 3)");
        assert_eq!(words(EndReason::Killed, None, Some(9)), "its program was killed (signal 9)");
        assert_eq!(words(EndReason::ShimLost, None, None), "its process is gone and left no record");
    }
}
