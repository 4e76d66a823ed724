//! SQL of organizations.

use sea_orm::Value;
use serde::Serialize;

use super::Limit;
use crate::{
    base::{enums::Plan, ids::OrgId, problem::Result, time::Timestamp},
    core::{
        Core,
        access::Scope,
        config::PlanLimits,
        store::{
            Db, Tx,
            sql::{OrgSql, RunSql as _, RunWritingSql as _, every_org_sql, installation_sql, row, sql},
        },
    },
};

impl Limit {
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

    /// SQL for the organization's use. `t` is the organization. `None` if the limit is not counted per organization.
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

    /// The same, and nothing where the limit is on something else.
    const fn used_or_nothing_sql(self) -> &'static str {
        match self.used_sql() {
            Some(sql) => sql,
            None => "CAST(NULL AS BIGINT)",
        }
    }
}

/// The organization and its plan, as [`Limit::sql`] and [`Limit::used_sql`] name them.
const OF_ORGANIZATION: &str = " FROM organizations t JOIN plans p ON p.plan = t.plan WHERE t.id = $org";

/// The statement about a limit: one of several, since no value stands for a column. In `$sql`, `OF` is the limit.
macro_rules! of_limit {
    ($limit:expr, $sql:expr) => {
        of_limit!(
            $limit, $sql, Agents Servers ChannelsPerAgent MinCronInterval MinMailPoll DoctorRuns CronLlmRuns FileVersions
            Members OpenInvitations ServiceTokens Images Credentials McpServers Skills StoredMib
        )
    };
    ($limit:expr, $sql:expr, $($name:ident)+) => {
        match $limit {
            $(Limit::$name => {
                const OF: Limit = Limit::$name;
                $sql
            })+
        }
    };
}

fn in_force(limit: Limit) -> OrgSql {
    of_limit!(limit, sql!("SELECT ", OF.sql(), OF_ORGANIZATION))
}

/// The limit in force. `None`: the organization is gone.
pub(super) async fn limit(tx: &Tx, limit: Limit) -> Result<Option<i64>> {
    tx.scalar(in_force(limit), []).await
}

/// The limit in force, outside of a transaction.
pub(super) async fn limit_outside(scope: &Scope, limit: Limit) -> Result<Option<i64>> {
    scope.scalar(in_force(limit), []).await
}

row! {
    /// A limit in force, and the organization's use.
    pub(super) struct Usage {
        in_force: i64,
        /// `None` if the limit is not counted per organization.
        used: Option<i64>,
    }
}

/// The limit in force, and the organization's use. `None`: the organization is gone.
pub(super) async fn usage(tx: &Tx, limit: Limit) -> Result<Option<Usage>> {
    let sql = of_limit!(
        limit,
        sql!("SELECT ", OF.sql(), " AS in_force, ", OF.used_or_nothing_sql(), " AS used", OF_ORGANIZATION)
    );
    tx.one(sql, []).await
}

/// The bytes that the organization stores. `None` before they were counted.
pub(super) async fn stored_bytes(tx: &Tx) -> Result<Option<i64>> {
    let sql = sql!("SELECT bytes + message_bytes AS bytes FROM stored_bytes WHERE organization_id = $org");
    tx.scalar(sql, []).await
}

row! {
    /// The storage of an organization.
    pub(super) struct Storage {
        organization_id: OrgId,
        /// The MiB that its plan allows.
        most_mib: i64,
        /// The bytes of messages at the last count.
        known_bytes: i64,
        /// The bytes of messages, counted now.
        message_bytes: i64,
        /// The bytes of everything else.
        other_bytes: i64,
    }
}

/// The storage of each organization.
pub(super) async fn storage(core: &Core) -> Result<Vec<Storage>> {
    let sql = every_org_sql!(
        "SELECT t.id AS organization_id, ",
        Limit::StoredMib.sql(),
        " AS most_mib, COALESCE(s.bytes, 0) AS other_bytes, COALESCE(s.message_bytes, 0) AS known_bytes, \
         COALESCE(m.bytes, 0) AS message_bytes \
         FROM organizations t JOIN plans p ON p.plan = t.plan LEFT JOIN stored_bytes s ON s.organization_id = t.id \
         LEFT JOIN (SELECT organization_id, CAST(SUM(stored_bytes) AS BIGINT) AS bytes FROM conversations \
         GROUP BY organization_id) m ON m.organization_id = t.id"
    );
    core.db.every_org().all(sql, []).await
}

/// Stores the number of bytes of an organization's messages.
pub(super) async fn store_message_bytes(core: &Core, org: OrgId, bytes: i64) -> Result<()> {
    let sql = every_org_sql!(
        "INSERT INTO stored_bytes (organization_id, bytes, message_bytes) VALUES ($1, 0, $2) \
         ON CONFLICT (organization_id) DO UPDATE SET message_bytes = excluded.message_bytes"
    );
    core.db.every_org().execute(sql, [org.into(), bytes.into()]).await?;
    Ok(())
}

/// Stores the limits of a plan.
pub(super) async fn store_plan(core: &Core, plan: Plan, limits: &PlanLimits) -> Result<()> {
    let sql = installation_sql!(
        "UPDATE plans SET max_agents = $2, max_servers = $3, channels_per_agent = $4, \
         min_cron_interval_minutes = $5, min_mail_poll_minutes = $6, doctor_runs_per_month = $7, \
         cron_llm_runs_per_month = $8, file_versions = $9, max_members = $10, max_open_invitations = $11, \
         max_service_tokens = $12, max_images = $13, max_credentials = $14, max_mcp_servers = $15, \
         max_skills = $16, max_stored_mib = $17 WHERE plan = $1"
    );
    let values: [Value; 17] = [
        plan.into(),
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
    core.db.installation().execute(sql, values).await?;
    Ok(())
}

row! {
    /// The stop of an organization. Empty if it is not stopped.
    pub(super) struct Stop {
        stopped_at: Option<Timestamp>,
        stopped_by_name: Option<String>,
        stop_reason: Option<String>,
    }
}

const STOP: &str = "SELECT stopped_at, stopped_by_name, stop_reason FROM organizations WHERE id = $org";

/// The organization's stop.
pub(super) async fn stop(scope: &Scope) -> Result<Option<Stop>> {
    scope.one(sql!(STOP), []).await
}

/// The organization's stop. The organization can't be stopped before the transaction ends.
pub(super) async fn lock_stop(tx: &Tx) -> Result<Option<Stop>> {
    tx.one(sql!(STOP, " FOR SHARE"), []).await
}

/// The released organizations that still have queued turns to be sent.
pub const LETTING_GO: &str = "organizations WHERE letting_go_at <= $1";

/// The released organizations whose last batch of queued turns was sent before `late`.
pub(super) async fn letting_go(core: &Core, late: Timestamp) -> Result<Vec<OrgId>> {
    let sql = every_org_sql!("SELECT id AS organization_id FROM ", LETTING_GO);
    core.db.every_org().column(sql, [late.into()]).await
}

row! {
    /// The operator's view of an organization.
    #[derive(Clone, Debug, Serialize)]
    pub struct Overview {
        id: OrgId,
        name: String,
        plan: Plan,
        created_at: Timestamp,
        members: i64,
        /// The number of OWNERs who can sign in.
        owners: i64,
        /// The number of agents that are not archived.
        agents: i64,
    }
}

/// All organizations, ordered by id.
pub(super) async fn overviews(db: &Db) -> Result<Vec<Overview>> {
    let sql = every_org_sql!(
        "SELECT o.id, o.name, o.plan, o.created_at, \
         (SELECT COUNT(*) FROM members m WHERE m.organization_id = o.id) AS members, \
         (SELECT COUNT(*) FROM members m JOIN users u ON u.id = m.user_id WHERE m.organization_id = o.id \
         AND m.role = 'OWNER' AND u.disabled_at IS NULL) AS owners, \
         (SELECT COUNT(*) FROM agents a WHERE a.organization_id = o.id AND a.archived_at IS NULL) AS agents \
         FROM organizations o ORDER BY o.id"
    );
    db.every_org().all(sql, []).await
}
