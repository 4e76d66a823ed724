//! Deletes an organization, in steps that can be repeated: its members lose access, its channels, events and agents
//! stop; hosts remove what they keep; the rows go in small batches, table by table; at last the log and the organization
//! itself.

use std::time::Duration;

use sea_orm::Value;

use super::{
    Notice, queries,
    tables::{Deleted, RIGHTS, TableRights},
    tell_owners,
};
use crate::{
    base::{
        bounds::ROWS,
        enums::{AgentStatus, ErasureState},
        ids::AgentId,
        problem::{Code, Problem, Result},
        time::Timestamp,
    },
    core::{access::Scope, audit::Origin},
    domain::{agents, emergency_stop, launch, people},
};

/// How long hosts have to stop agents and remove backups. One that is away for longer must not keep the data.
const PATIENCE: Duration = Duration::from_hours(24);

/// Longer than refusals wait in memory to be written to the log.
const REFUSALS_WRITTEN: Duration = Duration::from_mins(2);

/// How many batches are deleted in a run: the service must be able to end between two runs.
const BATCHES: u32 = 200;

/// Locks everyone out, and tells the OWNERs. Returns whether this call did.
pub(super) async fn begin(scope: &Scope) -> Result<bool> {
    let tx = scope.begin().await?;
    if !queries::move_on(&tx, ErasureState::Scheduled, ErasureState::Ending).await? {
        return Ok(false);
    }
    tell_owners(&tx, Notice::DeletionBegun, None).await?;
    queries::revoke_tokens(&tx).await?;
    queries::deactivate_channels(&tx).await?;
    queries::deactivate_endpoints(&tx).await?;
    scope.core.access.cache.invalidate_after(tx.connection());
    tx.commit().await?;
    Ok(true)
}

/// Removes the members, stops and deletes the agents, and waits for their hosts. Returns whether it is done.
pub(super) async fn end_work(scope: &Scope, since: Timestamp) -> Result<bool> {
    emergency_stop::stop(scope, "The organization is being deleted.").await?;
    while people::remove_next_member(scope).await? {}
    let mut are_gone = true;
    for agent in queries::agents(scope).await? {
        are_gone &= end_agent(scope, agent.id, agent.status).await?;
    }
    let is_late = since.plus(PATIENCE) <= scope.core.clock.now();
    if !is_late && (!are_gone || queries::has_commands(scope).await?) {
        return Ok(false);
    }
    let tx = scope.begin().await?;
    queries::cut_off_hosts(&tx).await?;
    queries::cut_circles(&tx).await?;
    let is_first = queries::move_on(&tx, ErasureState::Ending, ErasureState::Deleting).await?;
    tx.commit().await?;
    Ok(is_first)
}

/// Stops an agent, or deletes it once it is at rest. Returns whether it is deleted.
async fn end_agent(scope: &Scope, id: AgentId, status: AgentStatus) -> Result<bool> {
    if status.is_at_rest() {
        if_there(agents::delete(scope, id).await)?;
        return Ok(true);
    }
    if status != AgentStatus::Stopping {
        if_there(launch::stop(scope, id).await)?;
    }
    Ok(false)
}

/// Another replica may have been faster, or the host may have reported another state.
fn if_there(done: Result<()>) -> Result<()> {
    match done {
        Err(Problem { code: Code::NotFound | Code::AgentAlreadyRunning | Code::AgentNotRunning, .. }) => {
            Ok(())
        }
        done => done,
    }
}

/// Deletes a number of rows. Returns whether there were any, or the organization itself was deleted.
pub(super) async fn delete_rows(scope: &Scope, since: Timestamp) -> Result<bool> {
    let is_of = |deleted: fn(&Deleted) -> bool| RIGHTS.iter().filter(move |table| deleted(&table.deleted));
    let mut left = BATCHES;
    for table in is_of(|deleted| matches!(deleted, Deleted::Rows)) {
        delete_table(scope, table, &mut left).await?;
    }
    let may_be_written = since.plus(REFUSALS_WRITTEN) > scope.core.clock.now();
    if left == 0 || may_be_written || queries::has_unsealed(scope).await? {
        return Ok(left < BATCHES);
    }
    for table in is_of(|deleted| matches!(deleted, Deleted::Log)) {
        delete_table(scope, table, &mut left).await?;
    }
    if left == 0 {
        return Ok(true);
    }
    let tx = scope.begin().await?;
    queries::delete_organization(&tx).await?;
    let target = ("organization", Some(scope.org.0));
    Origin::operator(&scope.core).record(
        tx.connection(),
        "deleteOrganization",
        target,
        serde_json::json!({}),
    );
    tx.commit().await?;
    Ok(true)
}

/// Deletes the organization's rows of a table, in batches while any are left.
async fn delete_table(scope: &Scope, table: &TableRights, left: &mut u32) -> Result<()> {
    let Some(rows) = table.rows else { return Ok(()) };
    while *left > 0 {
        let deleted = scope.core.db.delete_batch(table.table, rows, &[Value::from(scope.org.0)]).await?;
        if deleted > 0 {
            *left -= 1;
        }
        if deleted < u64::from(ROWS) {
            break;
        }
    }
    Ok(())
}
