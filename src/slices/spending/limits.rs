//! Agents that may not call their model at the moment, and how they go on: when more is allowed, when the time has come, or,
//! after a provider took no more, once a turn that is sent alone has passed.

use std::{sync::Arc, time::Duration};

use sea_orm::{QueryResult, Statement, Value};

use super::{
    guard, leases,
    months::{self, Of},
    terms::{Terms, zone_of},
};
use crate::{
    base::{
        enums::{CostGuardAction, LimitKind},
        ids::{AgentId, ModelCredentialId, OrgId},
        problem::Result,
        time::Timestamp,
    },
    core::{Core, access::Scope, store::Tx, tally::Tally},
    slices::{
        agents::{self, Standing},
        approvals, model_credentials, orgs, turns,
    },
};

/// How long a turn that is sent alone is given to pass.
const PROBE: Duration = Duration::from_mins(2);
/// How long others wait before they look again whether it has.
const LOOK: Duration = Duration::from_secs(5);
/// How many agents one round looks at.
const BATCH: u64 = 200;

/// What keeps an agent from calling its model.
pub(super) struct Limit<'a> {
    /// What was reached.
    pub kind: LimitKind,
    /// The same in words.
    pub reason: &'a str,
    /// When to go on.
    pub until: Timestamp,
    /// The organization's model credential whose provider refuses.
    pub credential: Option<ModelCredentialId>,
}

/// The agent may not call its model until then.
pub(super) async fn set(tx: &Tx, agent: AgentId, limit: &Limit<'_>) -> Result<()> {
    if let Some(last) = find(tx, agent).await?.filter(|last| last.kind != limit.kind) {
        turns::waited(tx, agent, last.kind, last.since).await?;
    }
    let sql = "INSERT INTO agent_limits (organization_id, agent_id, kind, reason, until_at, model_credential_id, since) \
               VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (organization_id, agent_id) DO UPDATE \
               SET kind = excluded.kind, reason = excluded.reason, until_at = excluded.until_at, \
               model_credential_id = excluded.model_credential_id, probing_at = NULL, \
               since = CASE WHEN agent_limits.kind = excluded.kind THEN agent_limits.since ELSE excluded.since END";
    let values = vec![
        tx.scope.org.into(),
        agent.into(),
        limit.kind.as_str().into(),
        limit.reason.into(),
        limit.until.into(),
        limit.credential.into(),
        tx.now.into(),
    ];
    tx.run(sql, values).await?;
    agents::announce(tx, agent);
    Ok(())
}

/// Whether the agent may not call its model: its turns wait.
///
/// # Errors
/// The database is unreachable.
pub async fn is_limited(tx: &Tx, agent: AgentId) -> Result<bool> {
    Ok(find(tx, agent).await?.is_some())
}

/// What keeps the agent from calling its model, and since when.
///
/// # Errors
/// The database is unreachable.
pub async fn limited_since(tx: &Tx, agent: AgentId) -> Result<Option<(LimitKind, Timestamp)>> {
    Ok(find(tx, agent).await?.map(|row| (row.kind, row.since)))
}

/// Why the agent's provider takes no more, and until when. None while it does, or while a turn is being tried.
pub(super) async fn waits_for_provider(tx: &Tx, agent: AgentId) -> Result<Option<(String, Timestamp)>> {
    let Some(row) = find(tx, agent).await? else { return Ok(None) };
    let waits = row.kind == LimitKind::Usage && row.probing.is_none();
    Ok(row.until.filter(|until| waits && *until > tx.now).map(|until| (row.reason, until)))
}

/// Nothing keeps the agent from calling its model any more: its turns go on. The caller holds it.
///
/// # Errors
/// The database is unreachable.
pub async fn eased(tx: &Tx, agent: &Standing) -> Result<()> {
    forget(tx, agent.id).await?;
    turns::go_on(tx, agent, None).await?;
    Ok(())
}

/// The same, if it is this kind of limit. Returns whether it was.
pub(super) async fn eased_of(tx: &Tx, agent: &Standing, kinds: &[LimitKind]) -> Result<bool> {
    let is = find(tx, agent.id).await?.is_some_and(|row| kinds.contains(&row.kind));
    if is {
        eased(tx, agent).await?;
    }
    Ok(is)
}

/// What an agent may spend has changed: people are asked anew if nothing is left. The caller holds it.
///
/// # Errors
/// The database is unreachable.
pub async fn changed(tx: &mut Tx, agent: &Standing) -> Result<()> {
    approvals::withdraw_guards(tx, |of| of.agent == Some(agent.id)).await?;
    eased(tx, agent).await
}

/// The same of the organization, whose time zone was and is the one of these names: agents that wait look again with the next
/// round. The caller holds all that run, so that none is refused by what was true before; and all there are if the time zone
/// changes, so that nothing is counted in a month of the old one.
///
/// # Errors
/// The database is unreachable.
pub async fn changed_for_all(tx: &mut Tx, (was, is): (&str, &str)) -> Result<()> {
    if was != is {
        months::rezone(tx, &zone_of(was), &zone_of(is)).await?;
    }
    approvals::withdraw_guards(tx, |_| true).await?;
    recheck(tx, None);
    Ok(())
}

/// What may be spent has changed: agents that wait for it look again with the next round, except one that looks now. Their rows
/// are written last of all: whoever holds rows of agents that it doesn't hold must wait for nothing more. Who has written one
/// before must hold the organization's month, or two might wait for each other's.
pub(super) fn recheck(tx: &Tx, but: Option<AgentId>) {
    let sql = "UPDATE agent_limits SET until_at = $2 WHERE organization_id = $1 AND kind <> 'USAGE' AND agent_id <> $3";
    let values: Vec<Value> = vec![tx.scope.org.into(), tx.now.into(), but.map_or(0, |agent| agent.0).into()];
    let backend = tx.scope.core.db.backend();
    tx.connection().before_commit(Statement::from_sql_and_values(backend, sql, values));
}

/// Tokens of this agent have come back. They are its own, so others that wait don't look again. The caller holds it.
pub(super) fn recheck_tokens(tx: &Tx, agent: AgentId) {
    let sql = "UPDATE agent_limits SET until_at = $2 WHERE organization_id = $1 AND kind = 'TOKENS' AND agent_id = $3";
    let values: Vec<Value> = vec![tx.scope.org.into(), tx.now.into(), agent.into()];
    let backend = tx.scope.core.db.backend();
    tx.connection().before_commit(Statement::from_sql_and_values(backend, sql, values));
}

/// Lets agents whose time has come go on, in every organization. Returns how many.
///
/// # Errors
/// The database is unreachable. Who went on by then goes on.
pub async fn release_due(core: &Arc<Core>) -> Result<u64> {
    let sql = format!(
        "SELECT organization_id, agent_id FROM agent_limits WHERE until_at IS NOT NULL AND until_at <= $1 \
         ORDER BY until_at LIMIT {BATCH}"
    );
    let mut released = Tally::default();
    for row in core.db.all(sql, vec![core.clock.now().into()]).await? {
        let (org, agent): (OrgId, AgentId) = (row.try_get_by(0)?, row.try_get_by(1)?);
        released.add(org, release_one(&Scope::system(core, org), agent).await);
    }
    released.close()
}

async fn release_one(scope: &Scope, id: AgentId) -> Result<bool> {
    let mut tx = scope.begin().await?;
    let is_released = release(&mut tx, id).await?;
    tx.commit().await?;
    Ok(is_released)
}

/// Lets one agent go on, or one of its turns. Returns whether it did.
async fn release(tx: &mut Tx, id: AgentId) -> Result<bool> {
    let Some(agent) = agents::standing(tx, id).await? else {
        // It was deleted while its limit was written.
        forget(tx, id).await?;
        return Ok(false);
    };
    // Others may have been faster.
    let row = find(tx, id).await?.filter(|row| row.until.is_some_and(|until| until <= tx.now));
    let Some(mut row) = row else { return Ok(false) };
    if !turns::waits(tx, &agent).await? {
        eased(tx, &agent).await?;
        return Ok(true);
    }
    if row.kind != LimitKind::Usage {
        return release_spender(tx, &agent, &row).await;
    }
    if !turns::takes_turns(&agent) || orgs::is_stopped(tx).await? {
        // Nothing is sent now, so nothing is tried, and nobody waits for the end of it.
        put_off(tx, id, tx.now.plus(LOOK), None).await?;
        return Ok(false);
    }
    if row.credential.is_some() {
        let Some(inherited) = agents::inherited_credential(tx, id).await? else {
            // Nor does it wait for one any more.
            eased(tx, &agent).await?;
            return Ok(true);
        };
        if row.credential != Some(inherited) {
            // It has another one by now. What the provider has said of that one counts.
            wait_for_other(tx, id, inherited).await?;
            (row.credential, row.probing) = (Some(inherited), None);
        }
    }
    let is_first = match row.credential {
        None => true,
        Some(credential) => match model_credentials::limited_until(tx, credential).await? {
            None => {
                eased(tx, &agent).await?;
                return Ok(true);
            }
            Some(until) if until > tx.now => {
                put_off(tx, id, until, row.probing).await?;
                return Ok(false);
            }
            Some(_) => model_credentials::probe(tx, credential, tx.now.minus(PROBE)).await?,
        },
    };
    if !is_first {
        put_off(tx, id, tx.now.plus(LOOK), row.probing).await?;
        return Ok(false);
    }
    put_off(tx, id, tx.now.plus(PROBE), Some(tx.now)).await?;
    Ok(turns::go_on(tx, &agent, Some(1)).await? > 0)
}

/// Lets an agent go on for which there is something to spend again. It is not prompted in vain if what came back, or was
/// allowed, was not for it. Returns whether it goes on.
async fn release_spender(tx: &mut Tx, agent: &Standing, row: &Row) -> Result<bool> {
    let terms = Terms::of(tx, agent.id).await?;
    let mut spent = leases::spent(tx, agent, &terms).await?;
    if spent.as_ref().is_some_and(|spent| spent.of == Of::Organization) {
        // Somebody may be allowing more: either that is seen now, or this agent's wait is seen there.
        months::hold(tx, &terms).await?;
        spent = leases::spent(tx, agent, &terms).await?;
    }
    // What it does not wait for, or what stops it, is up to its next call: then people are told, and it is stopped.
    let same = spent.filter(|spent| spent.kind == row.kind && spent.action == CostGuardAction::Pause);
    let Some(spent) = same else {
        eased(tx, agent).await?;
        return Ok(true);
    };
    // They are not asked any more if the limits were changed.
    guard::tell(tx, agent, &terms, &spent).await?;
    wait_on(tx, agent.id, row.until, spent.until).await?;
    Ok(false)
}

/// The agent looks again at this time; or with the next round, if somebody has changed since what it may spend.
async fn wait_on(tx: &Tx, agent: AgentId, seen: Option<Timestamp>, until: Timestamp) -> Result<()> {
    let sql = "UPDATE agent_limits SET until_at = $4 WHERE organization_id = $1 AND agent_id = $2 AND until_at = $3";
    tx.run(sql, vec![tx.scope.org.into(), agent.into(), seen.into(), until.into()]).await?;
    Ok(())
}

/// The agent waits for another model credential from now on.
async fn wait_for_other(tx: &Tx, agent: AgentId, credential: ModelCredentialId) -> Result<()> {
    let sql = "UPDATE agent_limits SET model_credential_id = $3, probing_at = NULL \
               WHERE organization_id = $1 AND agent_id = $2";
    tx.run(sql, vec![tx.scope.org.into(), agent.into(), credential.into()]).await?;
    agents::announce(tx, agent);
    Ok(())
}

async fn put_off(tx: &Tx, agent: AgentId, until: Timestamp, probing: Option<Timestamp>) -> Result<()> {
    let sql =
        "UPDATE agent_limits SET until_at = $3, probing_at = $4 WHERE organization_id = $1 AND agent_id = $2";
    tx.run(sql, vec![tx.scope.org.into(), agent.into(), until.into(), probing.into()]).await?;
    Ok(())
}

/// Nothing keeps the agent from calling its model any more. Its turns are the caller's to see to.
///
/// # Errors
/// The database is unreachable.
pub async fn forget(tx: &Tx, agent: AgentId) -> Result<()> {
    let sql = "DELETE FROM agent_limits WHERE organization_id = $1 AND agent_id = $2 RETURNING kind, since";
    let gone = tx.rows(sql, vec![tx.scope.org.into(), agent.into()]).await?;
    let Some(row) = gone.first() else { return Ok(()) };
    let (kind, since): (LimitKind, Timestamp) = (row.try_get_by(0)?, row.try_get_by(1)?);
    agents::announce(tx, agent);
    turns::waited(tx, agent, kind, since).await
}

/// The agents of the organization that wait for this kind of limit, in the order in which several are held.
pub(super) async fn waiting(tx: &Tx, kind: LimitKind) -> Result<Vec<AgentId>> {
    let sql = "SELECT agent_id FROM agent_limits WHERE organization_id = $1 AND kind = $2 ORDER BY agent_id";
    let rows = tx.rows(sql, vec![tx.scope.org.into(), kind.as_str().into()]).await?;
    rows.iter().map(|row| Ok(row.try_get_by(0)?)).collect()
}

struct Row {
    kind: LimitKind,
    reason: String,
    until: Option<Timestamp>,
    credential: Option<ModelCredentialId>,
    probing: Option<Timestamp>,
    since: Timestamp,
}

async fn find(tx: &Tx, agent: AgentId) -> Result<Option<Row>> {
    let sql = "SELECT kind, reason, until_at, model_credential_id, probing_at, since FROM agent_limits \
               WHERE organization_id = $1 AND agent_id = $2";
    let rows = tx.rows(sql, vec![tx.scope.org.into(), agent.into()]).await?;
    let read = |row: &QueryResult| -> Result<Row> {
        Ok(Row {
            kind: row.try_get_by(0)?,
            reason: row.try_get_by(1)?,
            until: row.try_get_by(2)?,
            credential: row.try_get_by(3)?,
            probing: row.try_get_by(4)?,
            since: row.try_get_by(5)?,
        })
    };
    rows.first().map(read).transpose()
}
