//! Plan limits. They come from a configuration file, are stored next to the organizations, and are checked
//! whenever something is created.

use std::collections::HashSet;

use sea_orm::{EntityTrait, PaginatorTrait, Select};

use super::queries;
use crate::{
    base::{
        enums::RecordKind,
        ids::OrgId,
        problem::{Code, Problem, Result},
    },
    core::{Core, access::Scope, config::Plans, store::Tx},
    domain::locks::lock_record,
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
}

/// Locks the organization until the transaction ends. Call this before counting records of a kind that you add or
/// remove, so that two concurrent calls can't both take the last place. Not needed on SQLite, which has a single
/// writer.
pub async fn lock(tx: &Tx) -> Result<()> {
    lock_record(tx, RecordKind::Organization, tx.scope.org.0).await
}

/// Fails if the organization has reached the limit. Runs in the transaction that adds another record. Locks the
/// organization before counting, so that two concurrent calls can't both take the last place.
///
/// # Errors
/// `PLAN_LIMIT_REACHED`, with the limit, its maximum, and the current use.
pub async fn check_limit(tx: &Tx, limit: Limit) -> Result<()> {
    lock(tx).await?;
    let usage = queries::usage(tx, limit).await?.ok_or_else(gone)?;
    let max = usage.in_force;
    let used = usage.used;
    let used = used.ok_or_else(|| Problem::internal(anyhow::anyhow!("{} counts nothing", limit.name())))?;
    if used < max { Ok(()) } else { Err(limit_reached(tx, limit, max, used)) }
}

/// [`check_limit`] for a limit that is not counted per organization: fails if `existing` has reached it.
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
    if used < max { Ok(()) } else { Err(limit_reached(tx, limit, max, used)) }
}

/// Fails if the `added` bytes, already stored in this transaction, take the organization over its storage limit. Runs
/// after the rows are written: by then the database has added their bytes to the organization's total and locked that
/// row, so that two calls can't both take the last bytes. Reads a single row, regardless of the amount stored.
///
/// # Errors
/// `PLAN_LIMIT_REACHED`, with the limit, its maximum, and the current use.
pub async fn check_stored(tx: &Tx, added: i64) -> Result<()> {
    if added <= 0 {
        return Ok(());
    }
    let (bytes, max) = stored(tx).await?;
    let used = (bytes - added + MIB - 1) / MIB;
    if bytes <= max.saturating_mul(MIB) {
        Ok(())
    } else {
        Err(limit_reached(tx, Limit::StoredMib, max, used))
    }
}

/// Whether optional data stored in this transaction may stay. It is dropped rather than refused, and must leave a tenth
/// of the storage for messages.
pub async fn optional_data_fits(tx: &Tx) -> Result<bool> {
    let (bytes, max) = stored(tx).await?;
    Ok(bytes <= max.saturating_mul(MIB / 10 * 9))
}

/// The bytes that the organization stores, and the MiB that its plan allows.
async fn stored(tx: &Tx) -> Result<(i64, i64)> {
    let bytes = queries::stored_bytes(tx).await?.unwrap_or_default();
    Ok((bytes, value(tx, Limit::StoredMib).await?))
}

/// Refuses a person's message if the organization's storage is full.
///
/// # Errors
/// `PLAN_LIMIT_REACHED`, as [`check_stored`].
pub async fn require_room(tx: &Tx) -> Result<()> {
    if tx.scope.core.full.has(tx.scope.org) { check_stored(tx, 1).await } else { Ok(()) }
}

/// Sums the storage of messages in each organization, and finds the full organizations. Returns those that became full.
pub async fn count_stored(core: &Core) -> Result<Vec<OrgId>> {
    let mut full = HashSet::new();
    for storage in queries::storage(core).await? {
        if storage.known_bytes != storage.message_bytes {
            queries::store_message_bytes(core, storage.organization_id, storage.message_bytes).await?;
        }
        if storage.other_bytes.saturating_add(storage.message_bytes) >= storage.most_mib.saturating_mul(MIB) {
            full.insert(storage.organization_id);
        }
    }
    Ok(core.full.replace(full))
}

fn limit_reached(tx: &Tx, limit: Limit, max: i64, used: i64) -> Problem {
    let name = limit.name();
    let detail = format!("The plan allows {max} ({name}), and {used} are in use.");
    let problem = Problem::new(Code::PlanLimitReached, detail).with("limit", name);
    tx.scope.refused(problem.with("max", max).with("used", used))
}

/// The limit in force.
pub async fn value(tx: &Tx, limit: Limit) -> Result<i64> {
    queries::limit(tx, limit).await?.ok_or_else(gone)
}

/// The limit in force, outside of a transaction: for limits on intervals, not on counts.
pub async fn pace(scope: &Scope, limit: Limit) -> Result<i64> {
    queries::limit_outside(scope, limit).await?.ok_or_else(gone)
}

fn gone() -> Problem {
    Problem::new(Code::NotFound, "The organization no longer exists.")
}

/// Writes the plans' limits from the configuration to the database, where organization records join them.
pub async fn store_plans(core: &Core, plans: &Plans) -> Result<()> {
    for (plan, limits) in plans.iter() {
        queries::store_plan(core, plan, limits).await?;
    }
    Ok(())
}
