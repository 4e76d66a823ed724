//! SQL of spending.

use muster_protocol::event::Usage;
use sea_orm::Value;

use crate::{
    base::{
        enums::{CostGuardAction, LimitKind, OverrideMode},
        ids::{AgentId, LeaseId, ModelCredentialId, OrgId, TurnId},
        problem::Result,
        time::Timestamp,
    },
    core::{
        Core,
        access::Scope,
        store::{
            FULL, Tx,
            sql::{Door as _, OrgSql, Write as _, every_org_sql, row, sql},
        },
    },
};

row! {
    /// What applies to an agent: of its organization, and its own.
    pub(super) struct AgentTerms {
        currency: String,
        timezone: String,
        organization_budget_micro: Option<i64>,
        organization_budget_action: CostGuardAction,
        organization_guard_tokens: Option<i64>,
        organization_guard_action: CostGuardAction,
        budget_micro: Option<i64>,
        budget_action: CostGuardAction,
        guard_mode: OverrideMode,
        guard_tokens: Option<i64>,
        guard_action: Option<CostGuardAction>,
        /// Tokens on top of those of an hour.
        allowed_tokens: i64,
    }
}

/// What applies to an agent. `None` if there is no such agent.
pub(super) async fn agent_terms(tx: &Tx, agent: AgentId) -> Result<Option<AgentTerms>> {
    let sql = sql!(
        "SELECT o.currency, o.timezone, o.monthly_budget_micro AS organization_budget_micro, \
         o.budget_action AS organization_budget_action, o.cost_guard_tokens_per_hour AS organization_guard_tokens, \
         o.cost_guard_action AS organization_guard_action, a.monthly_budget_micro AS budget_micro, a.budget_action, \
         a.cost_guard_mode AS guard_mode, a.cost_guard_tokens_per_hour AS guard_tokens, \
         a.cost_guard_action AS guard_action, COALESCE((SELECT w.tokens FROM token_allowances w \
         WHERE w.organization_id = a.organization_id AND w.agent_id = a.id AND w.until_at > $3), 0) AS allowed_tokens \
         FROM agents a JOIN organizations o ON o.id = a.organization_id WHERE a.organization_id = $org AND a.id = $2"
    );
    tx.one(sql, [agent.into(), tx.now.into()]).await
}

row! {
    /// What applies to the organization as a whole.
    pub(super) struct OrganizationTerms {
        currency: String,
        timezone: String,
        monthly_budget_micro: Option<i64>,
        budget_action: CostGuardAction,
    }
}

/// What applies to the organization as a whole. `None` if it is gone.
pub(super) async fn organization_terms(tx: &Tx) -> Result<Option<OrganizationTerms>> {
    let sql = sql!(
        "SELECT currency, timezone, monthly_budget_micro, budget_action FROM organizations WHERE id = $org"
    );
    tx.one(sql, []).await
}

row! {
    /// What prices depend on.
    pub(super) struct CurrencyAndZone { currency: String, timezone: String }
}

/// The organization's currency and time zone. `None` if it is gone.
pub(super) async fn currency_and_zone(scope: &Scope) -> Result<Option<CurrencyAndZone>> {
    scope.one(sql!("SELECT currency, timezone FROM organizations WHERE id = $org"), []).await
}

/// Allows an agent so many tokens until then, on top of what was allowed before and still counts.
pub(super) async fn allow_tokens(tx: &Tx, agent: AgentId, tokens: i64, until: Timestamp) -> Result<()> {
    let sql = sql!(
        "INSERT INTO token_allowances (organization_id, agent_id, tokens, until_at) VALUES ($org, $2, $3, $4) \
         ON CONFLICT (organization_id, agent_id) DO UPDATE SET until_at = excluded.until_at, \
         tokens = excluded.tokens + CASE WHEN token_allowances.until_at > $5 THEN token_allowances.tokens ELSE 0 END"
    );
    tx.execute(sql, [agent.into(), tokens.into(), until.into(), tx.now.into()]).await?;
    Ok(())
}

/// A call, as it is counted.
pub(super) struct Call {
    /// The turn, if the host names one of the agent's.
    pub turn: Option<TurnId>,
    /// The organization's model credential.
    pub credential: Option<ModelCredentialId>,
    /// The provider.
    pub provider: String,
    /// The model.
    pub model: String,
    /// The HTTP status.
    pub status: Option<i64>,
    /// When it was made.
    pub started_at: Timestamp,
    /// How long it took, in milliseconds.
    pub millis: i64,
    /// Tokens.
    pub usage: Usage,
    /// In millionths, if it is known.
    pub cost: Option<i64>,
}

/// Adds a call of a model.
pub(super) async fn add_call(tx: &Tx, agent: AgentId, call: &Call) -> Result<()> {
    let sql = sql!(
        "INSERT INTO model_calls (organization_id, agent_id, turn_id, model_credential_id, provider, model, status, \
         started_at, millis, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, cost_micro) \
         VALUES ($org, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)"
    );
    let usage = &call.usage;
    let values: [Value; 13] = [
        agent.into(),
        call.turn.into(),
        call.credential.into(),
        call.provider.as_str().into(),
        call.model.as_str().into(),
        call.status.into(),
        call.started_at.into(),
        call.millis.into(),
        usage.input.into(),
        usage.output.into(),
        usage.cache_read.into(),
        usage.cache_write.into(),
        call.cost.into(),
    ];
    tx.execute(sql, values).await?;
    Ok(())
}

/// Adds a call to what the agent's calls of this provider and model have cost in this day.
pub(super) async fn add_to_day(
    tx: &Tx,
    agent: AgentId,
    day: &str,
    (provider, model): (&str, &str),
    call: &Call,
) -> Result<()> {
    let sql = sql!(
        "INSERT INTO model_days (organization_id, agent_id, day, provider, model, calls, unpriced_calls, input_tokens, \
         output_tokens, cache_read_tokens, cache_write_tokens, cost_micro) \
         VALUES ($org, $2, $3, $4, $5, 1, $6, $7, $8, $9, $10, $11) \
         ON CONFLICT (organization_id, agent_id, day, provider, model) DO UPDATE SET calls = model_days.calls + 1, \
         unpriced_calls = model_days.unpriced_calls + excluded.unpriced_calls, \
         input_tokens = model_days.input_tokens + excluded.input_tokens, \
         output_tokens = model_days.output_tokens + excluded.output_tokens, \
         cache_read_tokens = model_days.cache_read_tokens + excluded.cache_read_tokens, \
         cache_write_tokens = model_days.cache_write_tokens + excluded.cache_write_tokens, \
         cost_micro = model_days.cost_micro + excluded.cost_micro"
    );
    let usage = &call.usage;
    let values: [Value; 10] = [
        agent.into(),
        day.into(),
        provider.into(),
        model.into(),
        i64::from(call.cost.is_none()).into(),
        usage.input.unwrap_or(0).into(),
        usage.output.unwrap_or(0).into(),
        usage.cache_read.unwrap_or(0).into(),
        usage.cache_write.unwrap_or(0).into(),
        call.cost.unwrap_or(0).into(),
    ];
    tx.execute(sql, values).await?;
    Ok(())
}

row! {
    /// The models that a day lists for an agent.
    #[derive(Default)]
    pub(super) struct ListedModels {
        /// How many.
        models: i64,
        /// How many of them are the one in question: one or none.
        same: i64,
    }
}

/// The models that a day lists for an agent, and whether this one is among them.
pub(super) async fn listed_models(
    tx: &Tx,
    agent: AgentId,
    day: &str,
    (provider, model): (&str, &str),
) -> Result<ListedModels> {
    let sql = sql!(
        "SELECT COUNT(*) AS models, COUNT(CASE WHEN provider = $4 AND model = $5 THEN 1 END) AS same FROM model_days \
         WHERE organization_id = $org AND agent_id = $2 AND day = $3"
    );
    let values = [agent.into(), day.into(), provider.into(), model.into()];
    Ok(tx.one(sql, values).await?.unwrap_or_default())
}

/// The tokens that the cost guard counts, of a row of `model_calls`.
const COUNTED: &str =
    "COALESCE(input_tokens, 0) + COALESCE(output_tokens, 0) + COALESCE(cache_write_tokens, 0)";

/// The tokens that the cost guard counts, of the agent's calls since then.
pub(super) async fn counted_tokens(tx: &Tx, agent: AgentId, since: Timestamp) -> Result<i64> {
    let sql = sql!(
        "SELECT CAST(COALESCE(SUM(",
        COUNTED,
        "), 0) AS BIGINT) FROM model_calls WHERE organization_id = $org AND agent_id = $2 AND started_at > $3"
    );
    Ok(tx.scalar(sql, [agent.into(), since.into()]).await?.unwrap_or(0))
}

row! {
    /// A call, as the cost guard counts it.
    pub(super) struct CountedCall {
        started_at: Timestamp,
        /// Tokens.
        counted: i64,
    }
}

/// The agent's calls since then, the oldest first.
pub(super) async fn counted_calls(tx: &Tx, agent: AgentId, since: Timestamp) -> Result<Vec<CountedCall>> {
    let sql = sql!(
        "SELECT started_at, ",
        COUNTED,
        " AS counted FROM model_calls WHERE organization_id = $org AND agent_id = $2 AND started_at > $3 \
         ORDER BY started_at"
    );
    tx.all(sql, [agent.into(), since.into()]).await
}

row! {
    /// What calls have used.
    pub(super) struct Sum {
        input_tokens: Option<i64>,
        output_tokens: Option<i64>,
        cache_read_tokens: Option<i64>,
        cache_write_tokens: Option<i64>,
        /// Unknown if that of one call is.
        cost_micro: Option<i64>,
        /// The one that was called last. None: there were no calls.
        model: Option<String>,
    }
}

impl Sum {
    /// Tokens and money.
    pub(super) const fn usage(&self) -> Usage {
        Usage {
            input: self.input_tokens,
            output: self.output_tokens,
            cache_read: self.cache_read_tokens,
            cache_write: self.cache_write_tokens,
            cost_micro: self.cost_micro,
        }
    }
}

/// What the calls of a turn have used.
pub(super) async fn sum_of_turn(tx: &Tx, turn: TurnId) -> Result<Option<Sum>> {
    let sql = sql!(
        "SELECT CAST(SUM(input_tokens) AS BIGINT) AS input_tokens, CAST(SUM(output_tokens) AS BIGINT) AS output_tokens, \
         CAST(SUM(cache_read_tokens) AS BIGINT) AS cache_read_tokens, \
         CAST(SUM(cache_write_tokens) AS BIGINT) AS cache_write_tokens, \
         CASE WHEN COUNT(cost_micro) = COUNT(*) THEN CAST(SUM(cost_micro) AS BIGINT) END AS cost_micro, \
         (SELECT m.model FROM model_calls m WHERE m.organization_id = $org AND m.turn_id = $2 \
         ORDER BY m.started_at DESC, m.id DESC LIMIT 1) AS model \
         FROM model_calls WHERE organization_id = $org AND turn_id = $2"
    );
    tx.one(sql, [turn.into()]).await
}

/// Whether there is a call of the agent since then.
pub(super) async fn has_call(tx: &Tx, agent: AgentId, since: Timestamp) -> Result<bool> {
    let sql = sql!(
        "SELECT started_at FROM model_calls WHERE organization_id = $org AND agent_id = $2 AND started_at >= $3 LIMIT 1"
    );
    Ok(tx.scalar::<Timestamp>(sql, [agent.into(), since.into()]).await?.is_some())
}

row! {
    /// A month's row.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct Month {
        /// What was spent.
        cost_micro: i64,
        /// What open leases may still spend.
        leased_micro: i64,
        /// What people have allowed on top of the budget.
        allowed_micro: i64,
    }
}

/// Whose month it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Of {
    /// An agent's.
    Agent(AgentId),
    /// The organization's.
    Organization,
}

/// The one of two statements that concerns this row of a month, the agent's or the organization's, and its values: an
/// agent is the last.
fn of_month(of: Of, [agents, organizations]: [OrgSql; 2], mut values: Vec<Value>) -> (OrgSql, Vec<Value>) {
    match of {
        Of::Agent(agent) => {
            values.push(agent.into());
            (agents, values)
        }
        Of::Organization => (organizations, values),
    }
}

/// The row of the month from the one instant to the other, which is made if it is missing.
pub(super) async fn month(tx: &Tx, of: Of, (from, until): (Timestamp, Timestamp)) -> Result<Month> {
    const READ: &str = "SELECT cost_micro, leased_micro, allowed_micro FROM ";
    const KEY: &str = " WHERE organization_id = $org AND from_at = $2";
    let make = [
        sql!(
            "INSERT INTO agent_months (organization_id, from_at, until_at, agent_id) VALUES ($org, $2, $3, $4) \
             ON CONFLICT DO NOTHING"
        ),
        sql!(
            "INSERT INTO organization_months (organization_id, from_at, until_at) VALUES ($org, $2, $3) \
             ON CONFLICT DO NOTHING"
        ),
    ];
    let (make, values) = of_month(of, make, vec![from.into(), until.into()]);
    tx.execute(make, values).await?;
    let read =
        [sql!(READ, "agent_months", KEY, " AND agent_id = $3"), sql!(READ, "organization_months", KEY)];
    let (read, values) = of_month(of, read, vec![from.into()]);
    Ok(tx.one(read, values).await?.unwrap_or_default())
}

/// Leases this much of a month, unless that is more than is left of the budget. `None`: there is no budget. Returns whether
/// it did.
pub(super) async fn lease_of_month(
    tx: &Tx,
    of: Of,
    from: Timestamp,
    micro: i64,
    budget: Option<i64>,
) -> Result<bool> {
    const LEASE: &str = " SET leased_micro = leased_micro + $3 WHERE organization_id = $org AND from_at = $2 \
         AND (CAST($4 AS BIGINT) IS NULL OR cost_micro + leased_micro + $3 <= CAST($4 AS BIGINT) + allowed_micro)";
    let sql =
        [sql!("UPDATE agent_months", LEASE, " AND agent_id = $5"), sql!("UPDATE organization_months", LEASE)];
    let (sql, values) = of_month(of, sql, vec![from.into(), micro.into(), budget.into()]);
    Ok(tx.execute(sql, values).await? == 1)
}

/// Adds to what was spent in a month, and takes from what is leased. A sum that is full stays as it is.
pub(super) async fn spend_of_month(
    tx: &Tx,
    of: Of,
    from: Timestamp,
    (cost, tokens, released): (i64, i64, i64),
) -> Result<()> {
    const SPEND: &str = " SET cost_micro = CASE WHEN cost_micro < $6 THEN cost_micro + $3 ELSE cost_micro END, \
         tokens = CASE WHEN tokens < $6 THEN tokens + $4 ELSE tokens END, \
         leased_micro = CASE WHEN leased_micro > $5 THEN leased_micro - $5 ELSE 0 END \
         WHERE organization_id = $org AND from_at = $2";
    let sql =
        [sql!("UPDATE agent_months", SPEND, " AND agent_id = $7"), sql!("UPDATE organization_months", SPEND)];
    let values = vec![from.into(), cost.into(), tokens.into(), released.into(), FULL.into()];
    let (sql, values) = of_month(of, sql, values);
    tx.execute(sql, values).await?;
    Ok(())
}

/// Allows this much on top of a month's budget. A negative amount takes back what was allowed, at most all of it.
pub(super) async fn allow_in_month(tx: &Tx, of: Of, from: Timestamp, micro: i64) -> Result<()> {
    const ALLOW: &str = " SET allowed_micro = CASE WHEN allowed_micro + $3 > 0 THEN allowed_micro + $3 ELSE 0 END \
         WHERE organization_id = $org AND from_at = $2";
    let sql =
        [sql!("UPDATE agent_months", ALLOW, " AND agent_id = $4"), sql!("UPDATE organization_months", ALLOW)];
    let (sql, values) = of_month(of, sql, vec![from.into(), micro.into()]);
    tx.execute(sql, values).await?;
    Ok(())
}

/// When the months of the organization and of its agents begin.
pub(super) async fn months(tx: &Tx) -> Result<Vec<Timestamp>> {
    let sql = sql!(
        "SELECT from_at FROM agent_months WHERE organization_id = $org \
         UNION SELECT from_at FROM organization_months WHERE organization_id = $org"
    );
    tx.column(sql, []).await
}

/// The month that began at this instant begins and ends at others, with its leases.
pub(super) async fn move_month(
    tx: &Tx,
    was: Timestamp,
    (begins, ends): (Timestamp, Timestamp),
) -> Result<()> {
    const MOVE: &str = " SET from_at = $3, until_at = $4 WHERE organization_id = $org AND from_at = $2";
    for sql in [sql!("UPDATE agent_months", MOVE), sql!("UPDATE organization_months", MOVE)] {
        tx.execute(sql, [was.into(), begins.into(), ends.into()]).await?;
    }
    let leases = sql!("UPDATE leases SET month_at = $3 WHERE organization_id = $org AND month_at = $2");
    tx.execute(leases, [was.into(), begins.into()]).await?;
    Ok(())
}

/// How many leases the agent holds that are not over.
pub(super) async fn open_leases(tx: &Tx, agent: AgentId) -> Result<i64> {
    let sql = sql!(
        "SELECT COUNT(*) FROM leases WHERE organization_id = $org AND agent_id = $2 AND closed_at IS NULL \
         AND until_at > $3"
    );
    Ok(tx.scalar(sql, [agent.into(), tx.now.into()]).await?.unwrap_or(0))
}

/// How many tokens these may still take.
pub(super) async fn leased_tokens(tx: &Tx, agent: AgentId) -> Result<i64> {
    let sql = sql!(
        "SELECT CAST(COALESCE(SUM(tokens - used_tokens), 0) AS BIGINT) FROM leases WHERE organization_id = $org \
         AND agent_id = $2 AND closed_at IS NULL AND until_at > $3 AND tokens > used_tokens"
    );
    Ok(tx.scalar(sql, [agent.into(), tx.now.into()]).await?.unwrap_or(0))
}

row! {
    /// A lease that was granted.
    pub(super) struct GrantedLease {
        id: LeaseId,
        cost_micro: Option<i64>,
        tokens: Option<i64>,
        until_at: Timestamp,
    }
}

/// The lease that this question of the agent's host got, if it is not over.
pub(super) async fn lease_of_question(
    tx: &Tx,
    agent: AgentId,
    question: i64,
) -> Result<Option<GrantedLease>> {
    let sql = sql!(
        "SELECT id, cost_micro, tokens, until_at FROM leases WHERE organization_id = $org AND agent_id = $2 \
         AND question = $3 AND closed_at IS NULL AND until_at > $4"
    );
    tx.one(sql, [agent.into(), question.into(), tx.now.into()]).await
}

row! {
    /// A lease.
    pub(super) struct LeaseRow {
        id: LeaseId,
        cost_micro: Option<i64>,
        tokens: Option<i64>,
        used_micro: i64,
        used_tokens: i64,
        month_at: Timestamp,
        closed_at: Option<Timestamp>,
    }
}

const LEASE: &str = "SELECT id, cost_micro, tokens, used_micro, used_tokens, month_at, closed_at FROM leases \
     WHERE organization_id = $org AND agent_id = $2";

/// The leases of an agent that are not closed.
pub(super) async fn unclosed_leases(tx: &Tx, agent: AgentId) -> Result<Vec<LeaseRow>> {
    tx.all(sql!(LEASE, " AND closed_at IS NULL"), [agent.into()]).await
}

/// A lease of an agent.
pub(super) async fn lease_of(tx: &Tx, agent: AgentId, lease: LeaseId) -> Result<Option<LeaseRow>> {
    tx.one(sql!(LEASE, " AND id = $3"), [agent.into(), lease.into()]).await
}

/// Makes a lease one of so much money and so many tokens.
pub(super) async fn cut_lease(
    tx: &Tx,
    agent: AgentId,
    lease: LeaseId,
    (cost, tokens): (Option<i64>, Option<i64>),
) -> Result<()> {
    let sql = sql!(
        "UPDATE leases SET cost_micro = $4, tokens = $5 WHERE organization_id = $org AND agent_id = $2 AND id = $3"
    );
    tx.execute(sql, [agent.into(), lease.into(), cost.into(), tokens.into()]).await?;
    Ok(())
}

/// Adds to what a lease was used for.
pub(super) async fn use_lease(
    tx: &Tx,
    agent: AgentId,
    lease: LeaseId,
    (cost, tokens): (i64, i64),
) -> Result<()> {
    let sql = sql!(
        "UPDATE leases SET used_micro = used_micro + $4, used_tokens = used_tokens + $5 \
         WHERE organization_id = $org AND agent_id = $2 AND id = $3"
    );
    tx.execute(sql, [agent.into(), lease.into(), cost.into(), tokens.into()]).await?;
    Ok(())
}

/// Adds a lease.
pub(super) async fn add_lease(
    tx: &Tx,
    agent: AgentId,
    question: i64,
    (month, until): (Timestamp, Timestamp),
    (cost, tokens): (Option<i64>, Option<i64>),
) -> Result<Option<LeaseId>> {
    let sql = sql!(
        "INSERT INTO leases (organization_id, agent_id, question, month_at, cost_micro, tokens, until_at, created_at) \
         VALUES ($org, $2, $3, $4, $5, $6, $7, $8) RETURNING id"
    );
    let values: [Value; 7] = [
        agent.into(),
        question.into(),
        month.into(),
        cost.into(),
        tokens.into(),
        until.into(),
        tx.now.into(),
    ];
    tx.scalar(sql, values).await
}

row! {
    /// A lease that was just closed.
    pub(super) struct ClosedLease {
        cost_micro: Option<i64>,
        used_micro: i64,
        tokens: Option<i64>,
        used_tokens: i64,
        month_at: Timestamp,
    }
}

/// Closes a lease. `None` if there is none, or it was closed before.
pub(super) async fn close_lease(tx: &Tx, agent: AgentId, lease: LeaseId) -> Result<Option<ClosedLease>> {
    let sql = sql!(
        "UPDATE leases SET closed_at = $4 WHERE organization_id = $org AND agent_id = $2 AND id = $3 \
         AND closed_at IS NULL RETURNING cost_micro, used_micro, tokens, used_tokens, month_at"
    );
    tx.one(sql, [agent.into(), lease.into(), tx.now.into()]).await
}

row! {
    /// A lease that is over.
    pub(super) struct DueLease { organization_id: OrgId, agent_id: AgentId, id: LeaseId }
}

/// Leases of all organizations that are over and not closed, at most so many.
pub(super) async fn due_leases(core: &Core, most: i64) -> Result<Vec<DueLease>> {
    let sql = every_org_sql!(
        "SELECT organization_id, agent_id, id FROM leases WHERE closed_at IS NULL AND until_at <= $1 \
         ORDER BY until_at LIMIT $2"
    );
    core.db.every_org().all(sql, [core.clock.now().into(), most.into()]).await
}

row! {
    /// What an agent waits for.
    pub(super) struct Wait {
        kind: LimitKind,
        /// The same in words.
        reason: String,
        /// When it looks again.
        until_at: Option<Timestamp>,
        /// The organization's model credential whose provider refuses.
        model_credential_id: Option<ModelCredentialId>,
        /// Since when a turn is being tried alone.
        probing_at: Option<Timestamp>,
        since: Timestamp,
    }
}

/// What an agent waits for.
pub(super) async fn wait_of(tx: &Tx, agent: AgentId) -> Result<Option<Wait>> {
    let sql = sql!(
        "SELECT kind, reason, until_at, model_credential_id, probing_at, since FROM agent_limits \
         WHERE organization_id = $org AND agent_id = $2"
    );
    tx.one(sql, [agent.into()]).await
}

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

/// An agent waits for this from now on, or as long as before if it waited for the same.
pub(super) async fn write_wait(tx: &Tx, agent: AgentId, limit: &Limit<'_>) -> Result<()> {
    let sql = sql!(
        "INSERT INTO agent_limits (organization_id, agent_id, kind, reason, until_at, model_credential_id, since) \
         VALUES ($org, $2, $3, $4, $5, $6, $7) ON CONFLICT (organization_id, agent_id) DO UPDATE \
         SET kind = excluded.kind, reason = excluded.reason, until_at = excluded.until_at, \
         model_credential_id = excluded.model_credential_id, probing_at = NULL, \
         since = CASE WHEN agent_limits.kind = excluded.kind THEN agent_limits.since ELSE excluded.since END"
    );
    let values: [Value; 6] = [
        agent.into(),
        limit.kind.into(),
        limit.reason.into(),
        limit.until.into(),
        limit.credential.into(),
        tx.now.into(),
    ];
    tx.execute(sql, values).await?;
    Ok(())
}

row! {
    /// What an agent no longer waits for.
    pub(super) struct EndedWait { kind: LimitKind, since: Timestamp }
}

/// An agent waits for nothing. Returns what it waited for.
pub(super) async fn delete_wait(tx: &Tx, agent: AgentId) -> Result<Option<EndedWait>> {
    let sql =
        sql!("DELETE FROM agent_limits WHERE organization_id = $org AND agent_id = $2 RETURNING kind, since");
    tx.one(sql, [agent.into()]).await
}

/// The agents of the organization that wait for this kind of limit, in the order in which several are held.
pub(super) async fn waiting_agents(tx: &Tx, kind: LimitKind) -> Result<Vec<AgentId>> {
    let sql = sql!(
        "SELECT agent_id FROM agent_limits WHERE organization_id = $org AND kind = $2 ORDER BY agent_id"
    );
    tx.column(sql, [kind.into()]).await
}

const NOW: &str = "UPDATE agent_limits SET until_at = $2 WHERE organization_id = $org";

/// All that wait for money or tokens look again now, except this agent. Written just before the commit.
pub(super) fn look_again_but(tx: &Tx, agent: AgentId) {
    let sql = sql!(NOW, " AND kind <> 'USAGE' AND agent_id <> $3");
    tx.before_commit(sql, [tx.now.into(), agent.into()]);
}

/// An agent that waits for tokens looks again now. Written just before the commit.
pub(super) fn look_for_tokens_again(tx: &Tx, agent: AgentId) {
    let sql = sql!(NOW, " AND kind = 'TOKENS' AND agent_id = $3");
    tx.before_commit(sql, [tx.now.into(), agent.into()]);
}

/// Those that wait for a model credential look again now, and no turn is being tried alone.
pub(super) async fn look_for_credential_again(tx: &Tx, credential: ModelCredentialId) -> Result<()> {
    let sql = sql!(
        "UPDATE agent_limits SET until_at = $3, probing_at = NULL \
         WHERE organization_id = $org AND model_credential_id = $2"
    );
    tx.execute(sql, [credential.into(), tx.now.into()]).await?;
    Ok(())
}

row! {
    /// An agent that looks again.
    pub(super) struct DueAgent { organization_id: OrgId, agent_id: AgentId }
}

/// Agents of all organizations that look again by now, at most so many.
pub(super) async fn due_agents(core: &Core, most: i64) -> Result<Vec<DueAgent>> {
    let sql = every_org_sql!(
        "SELECT organization_id, agent_id FROM agent_limits WHERE until_at IS NOT NULL AND until_at <= $1 \
         ORDER BY until_at LIMIT $2"
    );
    core.db.every_org().all(sql, [core.clock.now().into(), most.into()]).await
}

/// An agent looks again at this time, for this reason, unless that has changed since it was seen.
pub(super) async fn wait_on(
    tx: &Tx,
    agent: AgentId,
    seen: Option<Timestamp>,
    (until, reason): (Timestamp, &str),
) -> Result<()> {
    let sql = sql!(
        "UPDATE agent_limits SET until_at = $4, reason = $5 WHERE organization_id = $org AND agent_id = $2 \
         AND until_at = $3"
    );
    tx.execute(sql, [agent.into(), seen.into(), until.into(), reason.into()]).await?;
    Ok(())
}

/// An agent waits for this model credential, and no turn is being tried alone.
pub(super) async fn wait_for(tx: &Tx, agent: AgentId, credential: ModelCredentialId) -> Result<()> {
    let sql = sql!(
        "UPDATE agent_limits SET model_credential_id = $3, probing_at = NULL \
         WHERE organization_id = $org AND agent_id = $2"
    );
    tx.execute(sql, [agent.into(), credential.into()]).await?;
    Ok(())
}

/// An agent looks again at this time. `probing`: since when a turn is being tried alone.
pub(super) async fn put_off(
    tx: &Tx,
    agent: AgentId,
    until: Timestamp,
    probing: Option<Timestamp>,
) -> Result<()> {
    let sql = sql!(
        "UPDATE agent_limits SET until_at = $3, probing_at = $4 WHERE organization_id = $org AND agent_id = $2"
    );
    tx.execute(sql, [agent.into(), until.into(), probing.into()]).await?;
    Ok(())
}
