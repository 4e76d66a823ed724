//! Calls of models, as hosts measure them: priced, summed by day and by month, and counted against the tokens of an hour.

use std::time::Duration;

use muster_protocol::{
    event::Usage,
    spending::{ModelCall, price_of},
};

use super::{
    budget::{Terms, day, month},
    leases, limits,
    monthly_totals::{self, Of},
    queries::{self, Call, ListedModels},
};
use crate::{
    base::{
        bounds,
        enums::{LimitKind, UsageStatus},
        ids::{AgentId, LeaseId, TurnId},
        plain::{self, bounded},
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

/// The most tokens of a class in one call, and the most milliseconds of one: far more than there can be. A host can report any
/// number of calls, and their sums must not overflow.
const MOST: i64 = 100_000_000;
/// How many models of a day are listed for an agent. Its host names them, and could make up any number.
const MODELS: i64 = 50;
/// What calls of further ones are added to, as provider and as model.
const OTHERS: &str = "other";

impl Call {
    fn has_passed(&self) -> bool {
        self.status.is_some_and(|status| (200..300).contains(&status))
    }

    /// The tokens that the cost guard counts.
    fn counted(&self) -> i64 {
        let of = &self.usage;
        [of.input, of.output, of.cache_write].into_iter().flatten().sum()
    }
}

/// A model was called. It is counted whatever has become of the launch, and of the agent: it was spent.
pub async fn called(tx: &Tx, from: &Reporter, call: ModelCall) -> Result<()> {
    let Some(agent) = agents::lock_agent_even_deleted(tx, from.agent).await? else { return Ok(()) };
    if from.generation > agent.generation {
        return Ok(());
    }
    let lease = call.lease_id.map(LeaseId);
    let terms = Terms::of(tx, agent.id).await?;
    let call = read(tx, &agent, &terms, call).await?;
    let cost = call.cost.unwrap_or(0);
    let taken = match lease {
        Some(lease) => leases::paid(tx, agent.id, lease, cost, call.counted()).await?,
        None => None,
    };
    queries::add_call(tx, agent.id, &call).await?;
    add_up(tx, &agent, &terms, &call).await?;
    for of in [Of::Agent(agent.id), Of::Organization] {
        months::at(tx, of, &terms, call.started_at).await?;
        let (begins, _) = month(&terms.zone, call.started_at);
        months::spend(tx, of, begins, (cost, call.usage.tokens(), 0)).await?;
        if let Some(taken) = &taken {
            months::spend(tx, of, taken.month, (0, 0, taken.micro)).await?;
        }
    }
    agents::add_cost(tx, &agent, call.usage.tokens(), cost).await?;
    if call.has_passed() {
        passed(tx, &agent, &call).await?;
    }
    match call.turn {
        Some(turn) => turns::remeasured(tx, &agent, turn, call.has_passed()).await,
        None => Ok(()),
    }
}

/// What a host says, within reason.
async fn read(tx: &Tx, agent: &LockedAgent, terms: &Terms, call: ModelCall) -> Result<Call> {
    let name = |text: &str| bounded(&plain::one_line(text), bounds::NAME);
    let sane = |tokens: Option<i64>| tokens.map(|tokens| tokens.clamp(0, MOST));
    // A report may be late, but no call begins in a month that is long over.
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
        Some(turn) if turns::is_of(tx, turn, agent.id).await? => Some(turn),
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

/// Adds the call to its day.
async fn add_up(tx: &Tx, agent: &LockedAgent, terms: &Terms, call: &Call) -> Result<()> {
    let day = day(&terms.zone, call.started_at).to_string();
    let model = listed(tx, agent, &day, call).await?;
    queries::add_to_day(tx, agent.id, &day, model, call).await
}

/// Under which provider and model the day lists the call.
async fn listed<'a>(tx: &Tx, agent: &LockedAgent, day: &str, call: &'a Call) -> Result<(&'a str, &'a str)> {
    let model = (call.provider.as_str(), call.model.as_str());
    let ListedModels { models, same } = queries::listed_models(tx, agent.id, day, model).await?;
    Ok(if same > 0 || models < MODELS { model } else { (OTHERS, OTHERS) })
}

/// The provider takes requests: anyone who waits for it goes on.
async fn passed(tx: &Tx, agent: &LockedAgent, call: &Call) -> Result<()> {
    match call.credential {
        Some(credential) => model_credentials::record_success(tx, credential).await?,
        None => {
            limits::eased_of(tx, agent, &[LimitKind::Usage]).await?;
        }
    }
    // Also if others have found out before.
    if agent.usage_rejected {
        agents::store_usage(tx, agent.id, UsageStatus::Allowed, None).await?;
    }
    Ok(())
}

/// The tokens of the last 60 minutes that the cost guard counts.
pub(super) async fn of_hour(tx: &Tx, agent: AgentId) -> Result<i64> {
    queries::counted_tokens(tx, agent, tx.now.minus(Duration::from_hours(1))).await
}

/// When so much of the last 60 minutes will have passed that fewer tokens than these count. At the earliest in a second: what
/// open leases hold comes back when they end.
pub(super) async fn eases(tx: &Tx, agent: AgentId, tokens: i64) -> Result<Timestamp> {
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
