//! Model calls reported by hosts: pricing them, adding them to the day and the month, and counting them against hourly
//! tokens.

use std::time::Duration;

use muster_protocol::{
    event::Usage,
    spending::{ModelCall, price_of},
};

use super::{
    budget::{Terms, day, month},
    leases, limits,
    monthly_totals::{self, BudgetOwner},
    queries::{self, Call, ListedModels},
};
use crate::{
    base::{
        bounds,
        enums::{LimitKind, UsageStatus},
        ids::{AgentId, LeaseId, TurnId},
        plain::truncated_line,
        problem::Result,
        time::Timestamp,
    },
    core::{config::cost_of, store::Tx},
    domain::{
        agents::{self, LockedAgent, reporter::Reporter},
        conversations::turns,
        model_credentials,
    },
};

/// The cap on a call's tokens of one class, and on its milliseconds: far above real values. A host can report any
/// number of calls, and their sums must not overflow.
const MOST: i64 = 100_000_000;
/// How many models a day lists for an agent. The host names them and could make up any number.
const MODELS: i64 = 50;
/// The provider and model under which calls of further models are summed.
const OTHERS: &str = "other";

impl Call {
    fn has_passed(&self) -> bool {
        self.status.is_some_and(|status| (200..300).contains(&status))
    }

    /// The tokens that the cost guard counts.
    fn counted(&self) -> i64 {
        let usage = &self.usage;
        [usage.input, usage.output, usage.cache_write].into_iter().flatten().sum()
    }
}

/// Records a model call. It counts even if the launch has ended or the agent was deleted: the money is spent.
pub async fn record_call(tx: &Tx, from: &Reporter, call: ModelCall) -> Result<()> {
    let Some(agent) = agents::lock_agent_even_deleted(tx, from.agent).await? else { return Ok(()) };
    if from.generation > agent.generation {
        return Ok(());
    }
    let lease = call.lease_id.map(LeaseId);
    let terms = Terms::load(tx, agent.id).await?;
    let call = sanitize(tx, &agent, &terms, call).await?;
    let cost = call.cost.unwrap_or(0);
    let taken = match lease {
        Some(lease) => leases::charge(tx, agent.id, lease, cost, call.counted()).await?,
        None => None,
    };
    queries::add_call(tx, agent.id, &call).await?;
    add_to_day(tx, &agent, &terms, &call).await?;
    for owner in [BudgetOwner::Agent(agent.id), BudgetOwner::Organization] {
        monthly_totals::load(tx, owner, &terms, call.started_at).await?;
        let (begins, _) = month(&terms.zone, call.started_at);
        monthly_totals::spend(tx, owner, begins, (cost, call.usage.tokens(), 0)).await?;
        if let Some(taken) = &taken {
            monthly_totals::spend(tx, owner, taken.month, (0, 0, taken.micro)).await?;
        }
    }
    agents::add_cost(tx, &agent, call.usage.tokens(), cost).await?;
    if call.has_passed() {
        record_success(tx, &agent, &call).await?;
    }
    match call.turn {
        Some(turn) => turns::apply_measurement(tx, &agent, turn, call.has_passed()).await,
        None => Ok(()),
    }
}

/// Bounds a host's numbers and texts, and prices the call.
async fn sanitize(tx: &Tx, agent: &LockedAgent, terms: &Terms, call: ModelCall) -> Result<Call> {
    let name = |text: &str| truncated_line(text, bounds::NAME);
    let sane = |tokens: Option<i64>| tokens.map(|tokens| tokens.clamp(0, MOST));
    // A report may be late, but must not change a month that is long over.
    let started_at = Timestamp(call.started_at).clamp(tx.now.minus(Duration::from_hours(31 * 24)), tx.now);
    let told = call.usage;
    let usage = Usage {
        input: sane(told.input),
        output: sane(told.output),
        cache_read: sane(told.cache_read),
        cache_write: sane(told.cache_write),
        cost_micro: None,
    };
    let status = call.status.map(i64::from);
    let is_refused = status.is_some_and(|status| !(200..300).contains(&status));
    let prices = terms.prices(tx, started_at);
    let (provider, model) = (name(&call.provider), name(&call.model));
    let hour = call.cache_hour.unwrap_or(0).min(usage.cache_write.unwrap_or(0));
    let cost = price_of(&prices, &model)
        .and_then(|price| Some(cost_of(price, &usage)?.saturating_add(price.of_hour(hour))));
    // A call that was refused costs nothing, regardless of the model.
    let is_free = is_refused && cost.is_none();
    let turn = match call.turn_id.map(TurnId) {
        Some(turn) if turns::belongs_to(tx, turn, agent.id).await? => Some(turn),
        _ => None,
    };
    Ok(Call {
        turn,
        credential: model_credentials::inherited_by(tx, agent.id).await?,
        provider,
        model,
        status,
        started_at,
        millis: call.millis.clamp(0, MOST),
        usage,
        cost: cost.or(is_free.then_some(0)),
    })
}

async fn add_to_day(tx: &Tx, agent: &LockedAgent, terms: &Terms, call: &Call) -> Result<()> {
    let day = day(&terms.zone, call.started_at).to_string();
    let model = listed_as(tx, agent, &day, call).await?;
    queries::add_to_day(tx, agent.id, &day, model, call).await
}

/// The provider and the model under which the day lists the call.
async fn listed_as<'a>(
    tx: &Tx,
    agent: &LockedAgent,
    day: &str,
    call: &'a Call,
) -> Result<(&'a str, &'a str)> {
    let model = (call.provider.as_str(), call.model.as_str());
    let ListedModels { models, same } = queries::listed_models(tx, agent.id, day, model).await?;
    Ok(if same > 0 || models < MODELS { model } else { (OTHERS, OTHERS) })
}

/// The provider accepts requests: agents that wait for it resume.
async fn record_success(tx: &Tx, agent: &LockedAgent, call: &Call) -> Result<()> {
    match call.credential {
        Some(credential) => model_credentials::record_success(tx, credential).await?,
        None => {
            limits::lift_if_kind(tx, agent, &[LimitKind::Usage]).await?;
        }
    }
    // Even if another agent's call has lifted the limit before.
    if agent.usage_rejected {
        agents::store_usage(tx, agent.id, UsageStatus::Allowed, None).await?;
    }
    Ok(())
}

/// The tokens that the cost guard counts for the last 60 minutes.
pub(super) async fn tokens_of_last_hour(tx: &Tx, agent: AgentId) -> Result<i64> {
    queries::counted_tokens(tx, agent, tx.now.minus(Duration::from_hours(1))).await
}

/// When the tokens of the last 60 minutes will fall below `tokens`. At the earliest in a second: open leases return
/// their tokens when they end.
pub(super) async fn when_tokens_free(tx: &Tx, agent: AgentId, tokens: i64) -> Result<Timestamp> {
    let calls = queries::counted_calls(tx, agent, tx.now.minus(Duration::from_hours(1))).await?;
    let mut left: i64 = calls.iter().map(|call| call.counted).sum();
    let soon = tx.now.plus(Duration::from_secs(1));
    for call in calls {
        if left < tokens {
            break;
        }
        left -= call.counted;
        if left < tokens {
            return Ok(call.started_at.plus(Duration::from_hours(1)).max(soon));
        }
    }
    Ok(tx.now.plus(Duration::from_mins(1)))
}
