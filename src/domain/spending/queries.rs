//! SQL of spending.

use muster_protocol::event::Usage;
use sea_orm::Value;

use crate::{
    base::{
        enums::{CostGuardAction, OverrideMode},
        ids::{AgentId, ModelCredentialId, TurnId},
        problem::{Problem, Result},
        time::Timestamp,
    },
    core::{
        access::Scope,
        store::{
            FULL, Tx,
            sql::{OrgSql, RunSql as _, RunWritingSql as _, row, sql},
        },
    },
};

row! {
    /// The organization's and the agent's own spending terms.
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
        /// The allowance on top of the hourly tokens.
        allowed_tokens: i64,
    }
}

/// `None` if the agent does not exist.
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
    pub(super) struct OrganizationTerms {
        currency: String,
        timezone: String,
        monthly_budget_micro: Option<i64>,
        budget_action: CostGuardAction,
    }
}

/// `None` if the organization is gone.
pub(super) async fn organization_terms(tx: &Tx) -> Result<Option<OrganizationTerms>> {
    let sql = sql!(
        "SELECT currency, timezone, monthly_budget_micro, budget_action FROM organizations WHERE id = $org"
    );
    tx.one(sql, []).await
}

row! {
    pub(super) struct CurrencyAndZone { currency: String, timezone: String }
}

/// Fails with `NOT_FOUND` if the organization is gone.
pub(super) async fn currency_and_zone(scope: &Scope) -> Result<CurrencyAndZone> {
    let found = scope.one(sql!("SELECT currency, timezone FROM organizations WHERE id = $org"), []).await?;
    found.ok_or_else(|| Problem::not_found("organization", scope.org))
}

/// Allows an agent `tokens` until then, on top of an earlier allowance that has not expired.
pub(super) async fn allow_tokens(tx: &Tx, agent: AgentId, tokens: i64, until: Timestamp) -> Result<()> {
    let sql = sql!(
        "INSERT INTO token_allowances (organization_id, agent_id, tokens, until_at) VALUES ($org, $2, $3, $4) \
         ON CONFLICT (organization_id, agent_id) DO UPDATE SET until_at = excluded.until_at, \
         tokens = excluded.tokens + CASE WHEN token_allowances.until_at > $5 THEN token_allowances.tokens ELSE 0 END"
    );
    tx.execute(sql, [agent.into(), tokens.into(), until.into(), tx.now.into()]).await?;
    Ok(())
}

/// A priced call.
pub(super) struct Call {
    /// None unless the host names a turn of the agent.
    pub turn: Option<TurnId>,
    /// The organization's.
    pub credential: Option<ModelCredentialId>,
    pub provider: String,
    pub model: String,
    /// HTTP.
    pub status: Option<i64>,
    pub started_at: Timestamp,
    /// The duration.
    pub millis: i64,
    pub usage: Usage,
    /// In millionths. None: unknown.
    pub cost: Option<i64>,
}

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

/// Adds a call to the day's sums of the agent, the provider and the model.
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
    /// Counts of the models that a day lists for an agent.
    #[derive(Default)]
    pub(super) struct ListedModels {
        models: i64,
        /// 1 if the model in question is listed, else 0.
        same: i64,
    }
}

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

/// SQL on `model_calls`: the tokens that the cost guard counts.
const COUNTED: &str =
    "COALESCE(input_tokens, 0) + COALESCE(output_tokens, 0) + COALESCE(cache_write_tokens, 0)";

/// The tokens that the cost guard counts for the agent's calls since then.
pub(super) async fn counted_tokens(tx: &Tx, agent: AgentId, since: Timestamp) -> Result<i64> {
    let sql = sql!(
        "SELECT CAST(COALESCE(SUM(",
        COUNTED,
        "), 0) AS BIGINT) FROM model_calls WHERE organization_id = $org AND agent_id = $2 AND started_at > $3"
    );
    Ok(tx.scalar(sql, [agent.into(), since.into()]).await?.unwrap_or(0))
}

row! {
    pub(super) struct CountedCall {
        started_at: Timestamp,
        /// Tokens.
        counted: i64,
    }
}

/// The agent's calls since then, oldest first.
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
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct Month {
        /// Spent.
        cost_micro: i64,
        /// Held by open leases.
        leased_micro: i64,
        /// Allowed on top of the budget.
        allowed_micro: i64,
    }
}

/// The owner of a month's row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BudgetOwner {
    Agent(AgentId),
    Organization,
}

/// Picks the statement for the agent's or the organization's month, and completes its values: the agent's id comes
/// last.
fn for_owner(
    owner: BudgetOwner,
    [agents, organizations]: [OrgSql; 2],
    mut values: Vec<Value>,
) -> (OrgSql, Vec<Value>) {
    match owner {
        BudgetOwner::Agent(agent) => {
            values.push(agent.into());
            (agents, values)
        }
        BudgetOwner::Organization => (organizations, values),
    }
}

/// The row of the month between these instants. Creates it if it is missing.
pub(super) async fn load_month(
    tx: &Tx,
    owner: BudgetOwner,
    (from, until): (Timestamp, Timestamp),
) -> Result<Month> {
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
    let (make, values) = for_owner(owner, make, vec![from.into(), until.into()]);
    tx.execute(make, values).await?;
    let read =
        [sql!(READ, "agent_months", KEY, " AND agent_id = $3"), sql!(READ, "organization_months", KEY)];
    let (read, values) = for_owner(owner, read, vec![from.into()]);
    Ok(tx.one(read, values).await?.unwrap_or_default())
}

/// Leases `micro` in a month if the budget has that much left. Returns whether it did. `None`: without a budget.
pub(super) async fn lease_of_month(
    tx: &Tx,
    owner: BudgetOwner,
    from: Timestamp,
    micro: i64,
    budget: Option<i64>,
) -> Result<bool> {
    const LEASE: &str = " SET leased_micro = leased_micro + $3 WHERE organization_id = $org AND from_at = $2 \
         AND (CAST($4 AS BIGINT) IS NULL OR cost_micro + leased_micro + $3 <= CAST($4 AS BIGINT) + allowed_micro)";
    let sql =
        [sql!("UPDATE agent_months", LEASE, " AND agent_id = $5"), sql!("UPDATE organization_months", LEASE)];
    let (sql, values) = for_owner(owner, sql, vec![from.into(), micro.into(), budget.into()]);
    Ok(tx.execute(sql, values).await? == 1)
}

/// Adds to a month's cost and tokens, and releases leased money. A full sum stays as it is.
pub(super) async fn spend_of_month(
    tx: &Tx,
    owner: BudgetOwner,
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
    let (sql, values) = for_owner(owner, sql, values);
    tx.execute(sql, values).await?;
    Ok(())
}

/// Adds an allowance to a month. A negative amount takes back the allowance, at most all of it.
pub(super) async fn allow_in_month(tx: &Tx, owner: BudgetOwner, from: Timestamp, micro: i64) -> Result<()> {
    const ALLOW: &str = " SET allowed_micro = CASE WHEN allowed_micro + $3 > 0 THEN allowed_micro + $3 ELSE 0 END \
         WHERE organization_id = $org AND from_at = $2";
    let sql =
        [sql!("UPDATE agent_months", ALLOW, " AND agent_id = $4"), sql!("UPDATE organization_months", ALLOW)];
    let (sql, values) = for_owner(owner, sql, vec![from.into(), micro.into()]);
    tx.execute(sql, values).await?;
    Ok(())
}

/// The starts of the months of the organization and its agents.
pub(super) async fn month_starts(tx: &Tx) -> Result<Vec<Timestamp>> {
    let sql = sql!(
        "SELECT from_at FROM agent_months WHERE organization_id = $org \
         UNION SELECT from_at FROM organization_months WHERE organization_id = $org"
    );
    tx.column(sql, []).await
}

/// Changes the bounds of the month that began at `was`, with its leases.
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
