//! What was spent in a month, and what open leases may still spend: a row of the organization, and one of the agent. The
//! organization's row is always written last, after the agent's, and before what keeps agents from spending (`limits.rs`), so
//! that no two transactions wait for each other.

use jiff::tz::TimeZone;
use sea_orm::Value;

use super::terms::{Terms, month, moved};
use crate::{
    base::{enums::LimitKind, ids::AgentId, problem::Result, time::Timestamp},
    core::store::{Tx, added},
    slices::approvals::Guarded,
};

/// Whose month it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Of {
    /// An agent's.
    Agent(AgentId),
    /// The organization's.
    Organization,
}

impl Of {
    /// Its limit of this kind, as people are asked about it.
    pub const fn limit(self, kind: LimitKind) -> Guarded {
        let agent = match self {
            Self::Agent(agent) => Some(agent),
            Self::Organization => None,
        };
        Guarded { agent, kind }
    }

    const fn table(self) -> &'static str {
        match self {
            Self::Agent(_) => "agent_months",
            Self::Organization => "organization_months",
        }
    }

    /// The condition that selects the row, and its values: `$1`, `$2` and perhaps `$3`.
    fn key(self, tx: &Tx, from: Timestamp) -> (&'static str, Vec<Value>) {
        let org = tx.scope.org.into();
        match self {
            Self::Agent(agent) => (
                "organization_id = $1 AND from_at = $2 AND agent_id = $3",
                vec![org, from.into(), agent.into()],
            ),
            Self::Organization => ("organization_id = $1 AND from_at = $2", vec![org, from.into()]),
        }
    }
}

/// A month's row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Month {
    /// What was spent.
    pub cost_micro: i64,
    /// What open leases may still spend.
    pub leased_micro: i64,
    /// What people have allowed on top of the budget.
    pub allowed_micro: i64,
}

impl Month {
    /// What is left of a budget.
    pub const fn left(&self, budget: i64) -> i64 {
        budget.saturating_add(self.allowed_micro) - self.cost_micro - self.leased_micro
    }
}

/// The month in which this time is: its row, which is made if it is missing, and when it begins and ends.
pub async fn at(tx: &Tx, of: Of, terms: &Terms, at: Timestamp) -> Result<(Month, Timestamp, Timestamp)> {
    let (from, until) = month(&terms.zone, at);
    let (columns, places) = match of {
        Of::Agent(_) => ("organization_id, from_at, agent_id, until_at", "$1, $2, $3, $4"),
        Of::Organization => ("organization_id, from_at, until_at", "$1, $2, $3"),
    };
    let (key, values) = of.key(tx, from);
    let table = of.table();
    let made = format!("INSERT INTO {table} ({columns}) VALUES ({places}) ON CONFLICT DO NOTHING");
    tx.run(&made, values.iter().cloned().chain([until.into()]).collect()).await?;
    let sql = format!("SELECT cost_micro, leased_micro, allowed_micro FROM {table} WHERE {key}");
    let row = match tx.rows(&sql, values).await?.first() {
        Some(row) => Month {
            cost_micro: row.try_get_by(0)?,
            leased_micro: row.try_get_by(1)?,
            allowed_micro: row.try_get_by(2)?,
        },
        None => Month::default(),
    };
    Ok((row, from, until))
}

/// Takes this much for a lease, unless that is more than is left of the budget. The one statement that keeps hosts from
/// spending more than there is, whatever other replicas do. None: there is no budget.
pub async fn take(tx: &Tx, of: Of, from: Timestamp, micro: i64, budget: Option<i64>) -> Result<bool> {
    let (key, values) = of.key(tx, from);
    let within = budget.map_or_else(String::new, |budget| {
        format!(" AND cost_micro + leased_micro + {micro} <= {budget} + allowed_micro")
    });
    let table = of.table();
    let sql = format!("UPDATE {table} SET leased_micro = leased_micro + {micro} WHERE {key}{within}");
    Ok(tx.run(&sql, values).await? == 1)
}

/// Something was spent, and this much of a lease is no longer open.
pub async fn spend(
    tx: &Tx,
    of: Of,
    from: Timestamp,
    (cost, tokens, released): (i64, i64, i64),
) -> Result<()> {
    let (key, values) = of.key(tx, from);
    let table = of.table();
    let (cost, tokens) = (added("cost_micro", cost), added("tokens", tokens));
    let sql = format!(
        "UPDATE {table} SET cost_micro = {cost}, tokens = {tokens}, \
         leased_micro = CASE WHEN leased_micro > {released} THEN leased_micro - {released} ELSE 0 END WHERE {key}"
    );
    tx.run(&sql, values).await?;
    Ok(())
}

/// Holds the organization's month until the transaction ends.
pub async fn hold(tx: &Tx, terms: &Terms) -> Result<()> {
    spend(tx, Of::Organization, month(&terms.zone, tx.now).0, (0, 0, 0)).await
}

/// Allows this much on top of the budget. A negative amount takes back what was allowed, at most all of it.
pub async fn allow(tx: &Tx, of: Of, from: Timestamp, micro: i64) -> Result<()> {
    let (key, values) = of.key(tx, from);
    let sql = format!(
        "UPDATE {} SET allowed_micro = CASE WHEN allowed_micro + {micro} > 0 THEN allowed_micro + {micro} ELSE 0 END \
         WHERE {key}",
        of.table()
    );
    tx.run(&sql, values).await?;
    Ok(())
}

/// The organization's months begin and end at other instants now. What was spent, leased and allowed in one stays in it.
pub async fn rezone(tx: &Tx, from: &TimeZone, to: &TimeZone) -> Result<()> {
    let sql = "SELECT from_at FROM agent_months WHERE organization_id = $1 \
               UNION SELECT from_at FROM organization_months WHERE organization_id = $1";
    for row in tx.rows(sql, vec![tx.scope.org.into()]).await? {
        let was: Timestamp = row.try_get_by(0)?;
        let (begins, ends) = moved(from, to, was);
        let values = vec![tx.scope.org.into(), was.into(), begins.into(), ends.into()];
        for table in ["agent_months", "organization_months"] {
            let sql = format!(
                "UPDATE {table} SET from_at = $3, until_at = $4 WHERE organization_id = $1 AND from_at = $2"
            );
            tx.run(&sql, values.clone()).await?;
        }
        let sql = "UPDATE leases SET month_at = $3 WHERE organization_id = $1 AND month_at = $2";
        tx.run(sql, values[..3].to_vec()).await?;
    }
    Ok(())
}
