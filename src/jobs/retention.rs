//! How long each table keeps its rows: the table in docs/limits.md, and the job that removes expired rows.
//!
//! Every table of the schema has an entry, which a test checks. A table that only grows gives the reason.

use std::time::Duration;

use crate::{
    base::problem::Result,
    core::{Core, config::Config},
};

/// A table, and the bounds on its rows.
pub struct TableRetention {
    pub table: &'static str,
    /// What is kept, and for how long, in words for operators.
    pub what: &'static str,
    rules: &'static [ExpiryRule],
}

/// Rows that the job removes.
struct ExpiryRule {
    /// Whether their size counts for their organization (`stored_bytes`).
    counts_as_storage: bool,
    /// The condition in SQL: `$1` is the instant or the number that [`ExpiryBound`] gives.
    rows: &'static str,
    bound: ExpiryBound,
}

enum ExpiryBound {
    /// Rows older than this.
    Age(Duration),
    /// Rows older than a setting says.
    Setting(fn(&Config) -> Duration),
    /// Rows beyond this many newer ones.
    Newest(i64),
}

const fn days(number: u64) -> Duration {
    Duration::from_hours(24 * number)
}

const fn without_expiry(table: &'static str, what: &'static str) -> TableRetention {
    TableRetention { table, what, rules: &[] }
}

const fn with_expiry(
    table: &'static str,
    what: &'static str,
    rules: &'static [ExpiryRule],
) -> TableRetention {
    TableRetention { table, what, rules }
}

const fn after(rows: &'static str, past: Duration) -> ExpiryRule {
    ExpiryRule { counts_as_storage: false, rows, bound: ExpiryBound::Age(past) }
}

/// The tables, by name.
pub const RETENTION: &[TableRetention] = &[
    without_expiry(
        "agent_backups",
        "The complete backups of each agent that its retention allows (7 by default; all if it is frozen), and its \
         newest 20 failed ones.",
    ),
    without_expiry("agent_launches", "The newest 50 of each agent."),
    without_expiry("agent_limits", "As long as the agent may not call its model, or until it is deleted."),
    without_expiry("agent_months", "Forever: one row for each month in which the agent spent something."),
    without_expiry("agent_revisions", "The newest 200 of each agent, and the one it was launched with."),
    without_expiry(
        "agents",
        "Forever: a deleted agent is archived, so that its conversations stay readable. The plan limits the number of active ones.",
    ),
    without_expiry("allowed_hosts", "Until removed, at most 500 of each organization."),
    with_expiry(
        "approval_asks",
        "Until 30 days after the request was decided, or until the channel has another token or is deleted.",
        &[after("state = 'CLOSED' AND available_at < $1", days(30))],
    ),
    with_expiry("approval_snoozes", "Until they end.", &[after("until <= $1", Duration::ZERO)]),
    without_expiry("approvals", "Forever, as the record of who decided what."),
    without_expiry("attachment_blobs", "As long as the attachment."),
    with_expiry(
        "attachments",
        "As long as their message. A file that was never posted: a day.",
        &[ExpiryRule {
            counts_as_storage: true,
            rows: "message_id IS NULL AND created_at < $1",
            bound: ExpiryBound::Age(days(1)),
        }],
    ),
    without_expiry("audit_chains", "One row per organization, and one for the installation."),
    without_expiry("audit_checkpoints", "As long as the lines that they sign."),
    without_expiry("audit_log", "`audit.retention_days`; forever by default."),
    without_expiry("audit_unsealed", "Until the line is sealed, a moment later."),
    without_expiry("avatars", "Until they are replaced or removed."),
    with_expiry(
        "channel_link_codes",
        "For an hour after they expire, so that wrong ones are counted.",
        &[after("expires_at < $1", Duration::from_hours(1))],
    ),
    without_expiry("channel_links", "As long as the membership, or until unlinked."),
    without_expiry("channel_listeners", "One row for each channel whose vendor is polled for messages."),
    without_expiry("channel_refusals", "The newest 100 of each channel."),
    without_expiry("channel_skips", "The newest 100 of each channel."),
    without_expiry("channel_whitelist", "Until removed."),
    without_expiry(
        "channels",
        "Forever: a deleted channel is archived. The plan limits how many an agent has.",
    ),
    with_expiry(
        "commands",
        "A week after the host acknowledged it, or 30 days if it was never sent. One that was sent, and a STOP, waits \
         for its host.",
        &[
            after("acknowledged_at <= $1", days(7)),
            // `turns::free_unsent` drops the commands of turns, which must not wait for them forever.
            after(
                "kind <> 'TURN' AND acknowledged_at IS NULL AND host_seq IS NULL AND expires_at <= $1",
                Duration::ZERO,
            ),
        ],
    ),
    without_expiry("contacts", "Until they are merged or their channel is removed."),
    without_expiry("conversation_reads", "As long as the conversation and the membership."),
    without_expiry("conversation_watches", "Until the member no longer watches, or leaves."),
    without_expiry("conversations", "Forever: they are archived, not deleted."),
    without_expiry("credential_agents", "As long as the credential is assigned."),
    without_expiry("credential_fields", "As long as the credential has them."),
    without_expiry("credential_members", "As long as the credential is shared."),
    without_expiry("credentials", "Forever: a deleted credential is archived."),
    without_expiry("decisions", "`policy.decisions_kept_days`."),
    without_expiry("deliveries", "As long as their message. The text goes once it is sent."),
    without_expiry("edits", "One row per edited record."),
    with_expiry("email_tokens", "A week after they expire.", &[after("expires_at <= $1", days(7))]),
    without_expiry("erasures", "Until they are carried out or cancelled."),
    with_expiry(
        "event_deliveries",
        "30 days, or until the endpoint is deleted.",
        &[after("created_at < $1", days(30))],
    ),
    without_expiry("event_endpoints", "Until deleted, at most 20 of each organization."),
    without_expiry("first_start", "One row, until there is a user."),
    without_expiry("idempotency_keys", "A day."),
    without_expiry("identities", "As long as their contact."),
    without_expiry("images", "Forever: they are archived, not deleted."),
    with_expiry(
        "invitations",
        "90 days after they are accepted, revoked or expired.",
        &[after("COALESCE(accepted_at, revoked_at, expires_at) <= $1", days(90))],
    ),
    with_expiry("leases", "A week after they ended.", &[after("closed_at <= $1", days(7))]),
    with_expiry(
        "mails",
        "Until it is sent or no longer useful.",
        &[after("expires_at <= $1", Duration::ZERO)],
    ),
    without_expiry("mcp_server_agents", "As long as the MCP server is assigned."),
    without_expiry(
        "mcp_server_tools",
        "As long as the server lists them. With a switch or a risk, as long as the MCP server.",
    ),
    without_expiry("mcp_servers", "Forever: a deleted MCP server is archived."),
    without_expiry("members", "As long as the membership."),
    without_expiry("message_search", "As long as the message (PostgreSQL)."),
    with_expiry(
        "message_sources",
        "The source of mails: for `email.keep_source` days, and no longer than the message.",
        &[ExpiryRule {
            counts_as_storage: true,
            rows: "created_at <= $1",
            bound: ExpiryBound::Setting(|config| config.email.keep_source()),
        }],
    ),
    without_expiry(
        "messages",
        "As long as the organization's `transcriptRetentionDays` says after the last word, and until nothing in the conversation \
         is open or still to be sent (messages for a deleted agent, or in a channel that a person switched off, do not count); \
         forever by default.",
    ),
    without_expiry("messages_fts", "As long as the message (SQLite)."),
    with_expiry(
        "model_calls",
        "90 days; `model_days` has their sums.",
        &[after("started_at <= $1", days(90))],
    ),
    without_expiry("model_credentials", "Forever: they are archived, and their secrets deleted."),
    without_expiry("model_days", "Forever: one row for each day, agent and model."),
    without_expiry("notification_settings", "As long as the membership."),
    with_expiry(
        "notifications",
        "Until the person is notified, or no longer needs to be. Undeliverable ones: 40 days.",
        &[after("due_at <= $1", days(40))],
    ),
    with_expiry("notified", "An hour.", &[after("told_at <= $1", Duration::from_hours(1))]),
    without_expiry("organization_months", "Forever: one row for each month in which something was spent."),
    without_expiry("organizations", "Until the organization is deleted."),
    without_expiry("plans", "The plans from the settings."),
    with_expiry(
        "policy_versions",
        "The newest 200 of each organization.",
        &[ExpiryRule {
            counts_as_storage: false,
            rows: "id IN (SELECT id FROM (SELECT id, ROW_NUMBER() OVER (PARTITION BY organization_id \
                   ORDER BY id DESC) AS place FROM policy_versions) placed WHERE place > $1)",
            bound: ExpiryBound::Newest(200),
        }],
    ),
    without_expiry("recovery_codes", "Until they are used or replaced."),
    without_expiry("refused_destinations", "The newest 100 of each agent."),
    with_expiry(
        "replicas",
        "An hour after they were last seen.",
        &[after("seen_at <= $1", Duration::from_hours(1))],
    ),
    without_expiry("risk_categories", "One row per category of the risk rules in force."),
    with_expiry(
        "server_loads",
        "14 days, or until the server is deleted: one row for each five minutes.",
        &[after("period_at <= $1", days(14))],
    ),
    without_expiry(
        "servers",
        "Forever: a deleted server is archived, because older rows refer to it. The plan limits the number of active ones.",
    ),
    with_expiry(
        "service_tokens",
        "A year after they were revoked or expired; forever if they decided an approval or caused a turn.",
        &[after(
            "COALESCE(revoked_at, expires_at) <= $1 AND NOT EXISTS (SELECT 1 FROM approvals a \
             WHERE a.organization_id = service_tokens.organization_id AND a.decided_by_token_id = service_tokens.id) \
             AND NOT EXISTS (SELECT 1 FROM turns t \
             WHERE t.organization_id = service_tokens.organization_id AND t.caused_by_token_id = service_tokens.id)",
            days(365),
        )],
    ),
    with_expiry("sessions", "A day after they expire.", &[after("expires_at <= $1", days(1))]),
    with_expiry("sign_in_challenges", "Until they expire.", &[after("expires_at <= $1", Duration::ZERO)]),
    with_expiry(
        "sign_in_throttle",
        "12 hours after the last failure.",
        &[after("updated_at <= $1 AND blocked_until <= $1", Duration::from_hours(12))],
    ),
    with_expiry(
        "signing_keys",
        "A year after they were retired.",
        &[after("retired_at <= $1 AND COALESCE(verify_until, 0) <= $1", days(365))],
    ),
    without_expiry("skill_agents", "As long as the skill is assigned."),
    without_expiry("skill_versions", "The newest 100 of each skill, and at most 4 MiB of older text."),
    without_expiry("skills", "Forever: a deleted skill is archived."),
    without_expiry("step_versions", "One row per step of the migrations."),
    without_expiry("stored_bytes", "One row per organization."),
    with_expiry("token_allowances", "An hour.", &[after("until_at <= $1", Duration::ZERO)]),
    without_expiry("turn_waits", "As long as the turn. Written only where traces are sent."),
    without_expiry("turns", "As long as their conversation."),
    without_expiry("user_identities", "Until they are unlinked."),
    without_expiry("users", "Forever; an account is disabled, not deleted."),
];

/// Removes expired rows, and returns how many. A table that fails does not hold up the others.
///
/// # Errors
/// The first error of a table. The other tables were swept nevertheless.
pub async fn sweep(core: &Core) -> Result<u64> {
    let now = core.clock.now();
    let (mut gone, mut failed) = (0, None);
    for kept in RETENTION {
        for ExpiryRule { counts_as_storage, rows, bound } in kept.rules {
            let past = match bound {
                ExpiryBound::Age(age) => now.minus(*age).0,
                ExpiryBound::Setting(age) => now.minus(age(&core.config)).0,
                ExpiryBound::Newest(number) => *number,
            };
            let removed = if *counts_as_storage {
                core.db.sweep_counted(kept.table, rows, past).await
            } else {
                core.db.sweep(kept.table, rows, past).await
            };
            match removed {
                Ok(rows) => gone += rows,
                Err(error) => {
                    tracing::error!(table = kept.table, %error, "job.failed_for_one");
                    failed.get_or_insert(error);
                }
            }
        }
    }
    failed.map_or(Ok(gone), |error| Err(error.into()))
}
