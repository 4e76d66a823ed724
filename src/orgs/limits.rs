//! Plan limits: data in a configuration file, stored beside the organizations, checked where something is made.

use sea_orm::{ConnectionTrait, Statement, Value};

use crate::{
    app::App,
    config::Plans,
    error::{Code, Problem, Result},
    store::Tx,
};

/// What a plan limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Agents of an organization.
    Agents,
    /// Servers of an organization.
    Servers,
    /// External channels of one agent.
    ChannelsPerAgent,
}

impl Limit {
    /// The name in the organization's record.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Agents => "max_agents",
            Self::Servers => "max_servers",
            Self::ChannelsPerAgent => "channels_per_agent",
        }
    }

    /// The effective limit: the organization's own, or its plan's. `o` and `p` are the two tables.
    #[must_use]
    pub const fn sql(self) -> &'static str {
        match self {
            Self::Agents => "COALESCE(o.contracted_agents, p.max_agents)",
            Self::Servers => "COALESCE(o.max_servers_override, p.max_servers)",
            Self::ChannelsPerAgent => "COALESCE(o.max_channels_per_agent, p.channels_per_agent)",
        }
    }
}

/// Refuses one more where `used` have reached the limit. Runs in the transaction that makes it, and locks the
/// organization, so that two who make one at the same time can't both be the last.
///
/// # Errors
/// `PLAN_LIMIT_REACHED`, naming limit, maximum and use.
pub async fn check_limit(tx: &Tx, limit: Limit, used: u64) -> Result<()> {
    let sql = format!(
        "SELECT {} FROM organizations o JOIN plans p ON p.plan = o.plan WHERE o.id = $1",
        limit.sql()
    );
    let statement = Statement::from_sql_and_values(tx.scope.app.db.backend(), sql, [tx.scope.org.0.into()]);
    let row = tx.connection().query_one_raw(statement).await?;
    let max: i64 = match row {
        Some(row) => row.try_get_by(0)?,
        None => return Err(Problem::new(Code::NotFound, "The organization is gone.")),
    };
    if i64::try_from(used).unwrap_or(i64::MAX) < max {
        return Ok(());
    }
    let name = limit.name();
    let detail = format!("The plan allows {max} ({name}); {used} are in use.");
    Err(Problem::new(Code::PlanLimitReached, detail).with("limit", name).with("max", max).with("used", used))
}

/// Writes the plans' limits from the configuration to the database, where organizations' records join them.
///
/// # Errors
/// The database is out of reach.
pub async fn store_plans(app: &App, plans: &Plans) -> Result<()> {
    let sql = "UPDATE plans SET max_agents = $2, max_servers = $3, channels_per_agent = $4, \
               min_cron_interval_minutes = $5, min_mail_poll_minutes = $6, doctor_runs_per_month = $7, \
               cron_llm_runs_per_month = $8, file_versions = $9 WHERE plan = $1";
    for (plan, limits) in plans.iter() {
        let values: Vec<Value> = vec![
            plan.as_str().into(),
            limits.max_agents.into(),
            limits.max_servers.into(),
            limits.channels_per_agent.into(),
            limits.min_cron_interval_minutes.into(),
            limits.min_mail_poll_minutes.into(),
            limits.doctor_runs_per_month.into(),
            limits.cron_llm_runs_per_month.into(),
            limits.file_versions.into(),
        ];
        let statement = Statement::from_sql_and_values(app.db.backend(), sql, values);
        app.db.writer().execute_raw(statement).await?;
    }
    Ok(())
}
