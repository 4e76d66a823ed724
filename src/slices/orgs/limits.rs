//! Plan limits. They come from a configuration file, are stored next to the organizations, and are checked
//! whenever something is created.

use std::collections::HashSet;

use sea_orm::{ConnectionTrait, EntityTrait, PaginatorTrait, QueryResult, Select, Statement, Value};

use crate::{
    base::{
        enums::RecordKind,
        ids::OrgId,
        problem::{Code, Problem, Result},
    },
    core::{Core, access::Scope, config::Plans, store::Tx},
    slices::locks::lock_record,
};

const MIB: i64 = 1 << 20;

/// Something that a plan limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Agents of an organization.
    Agents,
    /// Servers of an organization.
    Servers,
    /// External channels per agent.
    ChannelsPerAgent,
    /// The minimum number of minutes between two scheduled runs.
    MinCronInterval,
    /// The minimum number of minutes between two checks of a mailbox.
    MinMailPoll,
    /// Doctor runs per month.
    DoctorRuns,
    /// Scheduled runs per month.
    CronLlmRuns,
    /// Versions per file.
    FileVersions,
    /// Members.
    Members,
    /// Open invitations.
    OpenInvitations,
    /// Service tokens that have not been revoked.
    ServiceTokens,
    /// Images, including archived ones.
    Images,
    /// Credentials, including archived ones.
    Credentials,
    /// MCP servers, including archived ones.
    McpServers,
    /// Skills, including archived ones.
    Skills,
    /// Storage for messages, attachments, kept mails, pictures, and skills, in MiB.
    StoredMib,
}

impl Limit {
    /// All limits, in the order of the organization's record.
    pub const ALL: [Self; 16] = [
        Self::Agents,
        Self::Servers,
        Self::ChannelsPerAgent,
        Self::MinCronInterval,
        Self::MinMailPoll,
        Self::DoctorRuns,
        Self::CronLlmRuns,
        Self::FileVersions,
        Self::Members,
        Self::OpenInvitations,
        Self::ServiceTokens,
        Self::Images,
        Self::Credentials,
        Self::McpServers,
        Self::Skills,
        Self::StoredMib,
    ];

    /// The limit's name in the organization's record.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Agents => "max_agents",
            Self::Servers => "max_servers",
            Self::ChannelsPerAgent => "channels_per_agent",
            Self::MinCronInterval => "min_cron_interval_minutes",
            Self::MinMailPoll => "min_mail_poll_minutes",
            Self::DoctorRuns => "doctor_runs_per_month",
            Self::CronLlmRuns => "cron_llm_runs_per_month",
            Self::FileVersions => "file_versions",
            Self::Members => "max_members",
            Self::OpenInvitations => "max_open_invitations",
            Self::ServiceTokens => "max_service_tokens",
            Self::Images => "max_images",
            Self::Credentials => "max_credentials",
            Self::McpServers => "max_mcp_servers",
            Self::Skills => "max_skills",
            Self::StoredMib => "max_stored_mib",
        }
    }

    /// The limit's description in the schema.
    #[must_use]
    pub const fn about(self) -> &'static str {
        match self {
            Self::Agents => "Agents.",
            Self::Servers => "Servers.",
            Self::ChannelsPerAgent => "External channels per agent.",
            Self::MinCronInterval => "The minimum number of minutes between two scheduled runs.",
            Self::MinMailPoll => "The minimum number of minutes between two checks of a mailbox.",
            Self::DoctorRuns => "Doctor runs per month. Not applied yet.",
            Self::CronLlmRuns => "Scheduled runs per month. Not applied yet.",
            Self::FileVersions => "Versions per file. Not applied yet.",
            Self::Members => "Members.",
            Self::OpenInvitations => "Open invitations.",
            Self::ServiceTokens => "Service tokens that have not been revoked.",
            Self::Images => "Images, including archived ones.",
            Self::Credentials => "Credentials, including archived ones.",
            Self::McpServers => "MCP servers, including archived ones.",
            Self::Skills => "Skills, including archived ones.",
            Self::StoredMib => "Storage for messages, attachments, kept mails, pictures, and skills, in MiB.",
        }
    }

    /// SQL for the limit in force: the organization's own or its plan's. `t` is the organization, `p` its plan.
    #[must_use]
    pub const fn sql(self) -> &'static str {
        match self {
            Self::Agents => "COALESCE(t.contracted_agents, p.max_agents)",
            Self::Servers => "COALESCE(t.max_servers_override, p.max_servers)",
            Self::ChannelsPerAgent => "COALESCE(t.max_channels_per_agent, p.channels_per_agent)",
            Self::MinCronInterval => {
                "COALESCE(t.min_cron_interval_minutes_override, p.min_cron_interval_minutes)"
            }
            Self::MinMailPoll => "COALESCE(t.min_mail_poll_minutes_override, p.min_mail_poll_minutes)",
            Self::DoctorRuns => "COALESCE(t.doctor_runs_per_month, p.doctor_runs_per_month)",
            Self::CronLlmRuns => "COALESCE(t.cron_llm_runs_per_month, p.cron_llm_runs_per_month)",
            Self::FileVersions => "COALESCE(t.file_versions, p.file_versions)",
            Self::Members => "p.max_members",
            Self::OpenInvitations => "p.max_open_invitations",
            Self::ServiceTokens => "p.max_service_tokens",
            Self::Images => "p.max_images",
            Self::Credentials => "p.max_credentials",
            Self::McpServers => "p.max_mcp_servers",
            Self::Skills => "p.max_skills",
            Self::StoredMib => "p.max_stored_mib",
        }
    }

    /// SQL for how much of it the organization has. `t` is the organization. None where the limit is on something else.
    #[must_use]
    pub const fn used_sql(self) -> Option<&'static str> {
        Some(match self {
            Self::Agents => {
                "(SELECT COUNT(*) FROM agents u WHERE u.organization_id = t.id AND u.archived_at IS NULL)"
            }
            Self::Servers => {
                "(SELECT COUNT(*) FROM servers u WHERE u.organization_id = t.id AND u.archived_at IS NULL)"
            }
            Self::Members => "(SELECT COUNT(*) FROM members u WHERE u.organization_id = t.id)",
            Self::OpenInvitations => {
                "(SELECT COUNT(*) FROM invitations u WHERE u.organization_id = t.id AND u.accepted_at IS NULL \
                 AND u.revoked_at IS NULL)"
            }
            Self::ServiceTokens => {
                "(SELECT COUNT(*) FROM service_tokens u WHERE u.organization_id = t.id AND u.revoked_at IS NULL)"
            }
            Self::Images => "(SELECT COUNT(*) FROM images u WHERE u.organization_id = t.id)",
            Self::Credentials => "(SELECT COUNT(*) FROM credentials u WHERE u.organization_id = t.id)",
            Self::McpServers => "(SELECT COUNT(*) FROM mcp_servers u WHERE u.organization_id = t.id)",
            Self::Skills => "(SELECT COUNT(*) FROM skills u WHERE u.organization_id = t.id)",
            Self::StoredMib => {
                "COALESCE((SELECT (s.bytes + s.message_bytes + 1048575) / 1048576 FROM stored_bytes s \
                 WHERE s.organization_id = t.id), 0)"
            }
            Self::ChannelsPerAgent
            | Self::MinCronInterval
            | Self::MinMailPoll
            | Self::DoctorRuns
            | Self::CronLlmRuns
            | Self::FileVersions => return None,
        })
    }
}

/// Locks the organization until the transaction ends. Call this before counting what you are about to add or
/// remove, so that two concurrent calls can't both take the last place. SQLite has a single writer anyway.
///
/// # Errors
/// The database is unreachable.
pub async fn lock(tx: &Tx) -> Result<()> {
    lock_record(tx, RecordKind::Organization, tx.scope.org.0).await
}

/// Fails if the organization has as many as the limit allows. Runs in the transaction that adds one more. Locks the
/// organization before counting, so that two concurrent calls can't both take the last place.
///
/// # Errors
/// `PLAN_LIMIT_REACHED`, with the limit, its maximum, and the current use.
pub async fn check_limit(tx: &Tx, limit: Limit) -> Result<()> {
    let counted = limit.used_sql();
    let counted =
        counted.ok_or_else(|| Problem::internal(anyhow::anyhow!("{} counts nothing", limit.name())))?;
    lock(tx).await?;
    let sql = format!("SELECT {}, {counted} {OF_ORGANIZATION}", limit.sql());
    let row = tx.rows(&sql, vec![tx.scope.org.into()]).await?.into_iter().next().ok_or_else(gone)?;
    let (max, used): (i64, i64) = (row.try_get_by(0)?, row.try_get_by(1)?);
    if used < max { Ok(()) } else { Err(reached(tx, limit, max, used)) }
}

/// [`check_limit`] for what counts apart: fails if `existing` has reached the limit.
///
/// # Errors
/// As [`check_limit`].
pub async fn check_count<E>(tx: &Tx, limit: Limit, existing: Select<E>) -> Result<()>
where
    E: EntityTrait,
    E::Model: Sync,
{
    lock(tx).await?;
    let max = value(tx, limit).await?;
    let used = existing.count(tx.connection()).await?;
    let used = i64::try_from(used).unwrap_or(i64::MAX);
    if used < max { Ok(()) } else { Err(reached(tx, limit, max, used)) }
}

/// Fails if the `added` bytes, which have just been stored, take the organization over its storage limit. Runs
/// after the rows are written: by then the database has added their bytes to the organization's total, and
/// everyone else who stores something waits for that row, so two calls can't both take the last bytes. Costs
/// one row, however much is stored.
///
/// # Errors
/// `PLAN_LIMIT_REACHED`, with the limit, its maximum, and the current use.
pub async fn check_stored(tx: &Tx, added: i64) -> Result<()> {
    if added <= 0 {
        return Ok(());
    }
    let (bytes, max) = stored(tx).await?;
    let used = (bytes - added + MIB - 1) / MIB;
    if bytes <= max.saturating_mul(MIB) { Ok(()) } else { Err(reached(tx, Limit::StoredMib, max, used)) }
}

/// Whether optional data that has just been stored may stay: it is dropped rather than refused, and leaves a tenth to messages.
///
/// # Errors
/// The database is unreachable.
pub async fn fits(tx: &Tx) -> Result<bool> {
    let (bytes, max) = stored(tx).await?;
    Ok(bytes <= max.saturating_mul(MIB / 10 * 9))
}

/// The bytes that the organization stores, and how many MiB its plan allows.
async fn stored(tx: &Tx) -> Result<(i64, i64)> {
    let sql = "SELECT bytes + message_bytes FROM stored_bytes WHERE organization_id = $1";
    let statement = Statement::from_sql_and_values(tx.scope.core.db.backend(), sql, [tx.scope.org.0.into()]);
    let bytes: i64 = match tx.connection().query_one_raw(statement).await? {
        Some(row) => row.try_get_by(0)?,
        None => 0,
    };
    Ok((bytes, value(tx, Limit::StoredMib).await?))
}

/// Refuses a person's message if the organization's storage is full.
///
/// # Errors
/// `PLAN_LIMIT_REACHED`, as [`check_stored`].
pub async fn require_room(tx: &Tx) -> Result<()> {
    if tx.scope.core.full.has(tx.scope.org) { check_stored(tx, 1).await } else { Ok(()) }
}

/// Sums what messages take in each organization, and finds those that have no room left. Returns those that had some before.
///
/// # Errors
/// The database is unreachable.
pub async fn count_stored(core: &Core) -> Result<Vec<OrgId>> {
    let sql = format!(
        "SELECT t.id, {}, COALESCE(s.bytes, 0), COALESCE(s.message_bytes, 0), COALESCE(m.bytes, 0) \
         FROM organizations t JOIN plans p ON p.plan = t.plan LEFT JOIN stored_bytes s ON s.organization_id = t.id \
         LEFT JOIN (SELECT organization_id, CAST(SUM(stored_bytes) AS BIGINT) AS bytes FROM conversations \
         GROUP BY organization_id) m ON m.organization_id = t.id",
        Limit::StoredMib.sql()
    );
    let mut full = HashSet::new();
    for row in core.db.all(sql, vec![]).await? {
        let org: OrgId = row.try_get_by(0)?;
        let [most, others, known, counted]: [i64; 4] =
            [row.try_get_by(1)?, row.try_get_by(2)?, row.try_get_by(3)?, row.try_get_by(4)?];
        if known != counted {
            let sql = "INSERT INTO stored_bytes (organization_id, bytes, message_bytes) VALUES ($1, 0, $2) \
                       ON CONFLICT (organization_id) DO UPDATE SET message_bytes = excluded.message_bytes";
            core.db.execute(sql, vec![org.into(), counted.into()]).await?;
        }
        if others.saturating_add(counted) >= most.saturating_mul(MIB) {
            full.insert(org);
        }
    }
    Ok(core.full.become_of(full))
}

fn reached(tx: &Tx, limit: Limit, max: i64, used: i64) -> Problem {
    let name = limit.name();
    let detail = format!("The plan allows {max} ({name}), and {used} are in use.");
    let problem = Problem::new(Code::PlanLimitReached, detail).with("limit", name);
    tx.scope.refused(problem.with("max", max).with("used", used))
}

/// The limit in force.
///
/// # Errors
/// The database is unreachable.
pub async fn value(tx: &Tx, limit: Limit) -> Result<i64> {
    let (backend, of) = (tx.scope.core.db.backend(), [tx.scope.org.0.into()]);
    let statement = Statement::from_sql_and_values(backend, in_force(limit), of);
    read(tx.connection().query_one_raw(statement).await?)
}

/// The limit in force, outside a transaction: for what it paces, not for what it counts.
///
/// # Errors
/// The database is unreachable.
pub async fn pace(scope: &Scope, limit: Limit) -> Result<i64> {
    read(scope.core.db.one(in_force(limit), vec![scope.org.into()]).await?)
}

/// SQL: the organization and its plan, as [`Limit::sql`] and [`Limit::used_sql`] name them.
const OF_ORGANIZATION: &str = "FROM organizations t JOIN plans p ON p.plan = t.plan WHERE t.id = $1";

fn in_force(limit: Limit) -> String {
    format!("SELECT {} {OF_ORGANIZATION}", limit.sql())
}

fn read(row: Option<QueryResult>) -> Result<i64> {
    Ok(row.ok_or_else(gone)?.try_get_by(0)?)
}

fn gone() -> Problem {
    Problem::new(Code::NotFound, "The organization no longer exists.")
}

/// Writes the plans' limits from the configuration to the database, where organization records join them.
///
/// # Errors
/// The database is unreachable.
pub async fn store_plans(core: &Core, plans: &Plans) -> Result<()> {
    let sql = "UPDATE plans SET max_agents = $2, max_servers = $3, channels_per_agent = $4, \
               min_cron_interval_minutes = $5, min_mail_poll_minutes = $6, doctor_runs_per_month = $7, \
               cron_llm_runs_per_month = $8, file_versions = $9, max_members = $10, max_open_invitations = $11, \
               max_service_tokens = $12, max_images = $13, max_credentials = $14, max_mcp_servers = $15, \
               max_skills = $16, max_stored_mib = $17 WHERE plan = $1";
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
            limits.max_members.into(),
            limits.max_open_invitations.into(),
            limits.max_service_tokens.into(),
            limits.max_images.into(),
            limits.max_credentials.into(),
            limits.max_mcp_servers.into(),
            limits.max_skills.into(),
            limits.max_stored_mib.into(),
        ];
        core.db.execute(sql, values).await?;
    }
    Ok(())
}
