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
    counted: bool,
    /// The condition in SQL: `$1` is the instant or the number that [`ExpiryBound`] gives.
    rows: &'static str,
    past: ExpiryBound,
}

enum ExpiryBound {
    /// Rows older than this.
    Age(Duration),
    /// Rows older than a setting says.
    Set(fn(&Config) -> Duration),
    /// Rows beyond this many newer ones.
    Newest(i64),
}

const fn days(number: u64) -> Duration {
    Duration::from_hours(24 * number)
}

const fn unswept(table: &'static str, what: &'static str) -> TableRetention {
    TableRetention { table, what, rules: &[] }
}

const fn swept(table: &'static str, what: &'static str, rules: &'static [ExpiryRule]) -> TableRetention {
    TableRetention { table, what, rules }
}

const fn after(rows: &'static str, past: Duration) -> ExpiryRule {
    ExpiryRule { counted: false, rows, past: ExpiryBound::Age(past) }
}

/// The tables, by name.
pub const KEPT: &[TableRetention] = &[
    unswept(
        "agent_backups",
        "As many complete ones of each agent as its retention says (7 by default; all if it is frozen), and the newest \
         20 failed ones.",
    ),
    unswept("agent_launches", "The newest 50 of each agent."),
    unswept("agent_limits", "As long as the agent may not call its model, or until it is deleted."),
    unswept("agent_months", "Forever: one row for each month in which the agent spent something."),
    unswept("agent_revisions", "The newest 200 of each agent, and the one it was launched with."),
    unswept(
        "agents",
        "Forever: a deleted agent is archived, so that its conversations stay readable. The plan limits the number of active ones.",
    ),
    unswept("allowed_hosts", "Until removed, at most 500 of each organization."),
    swept(
        "approval_asks",
        "Until 30 days after the request was decided, or until the channel has another token or is deleted.",
        &[after("state = 'CLOSED' AND available_at < $1", days(30))],
    ),
    swept("approval_snoozes", "Until they end.", &[after("until <= $1", Duration::ZERO)]),
    unswept("approvals", "Forever, as the record of who decided what."),
    unswept("attachment_blobs", "As long as the attachment."),
    swept(
        "attachments",
        "As long as their message. A file that was never posted: a day.",
        &[ExpiryRule {
            counted: true,
            rows: "message_id IS NULL AND created_at < $1",
            past: ExpiryBound::Age(days(1)),
        }],
    ),
    unswept("audit_chains", "One row per organization, and one for the instance."),
    unswept("audit_checkpoints", "As long as the lines that they sign."),
    unswept("audit_log", "`audit.retention_days`; forever by default."),
    unswept("audit_unsealed", "Until the line is sealed, a moment later."),
    unswept("avatars", "Until they are replaced or removed."),
    swept(
        "channel_link_codes",
        "For an hour after they expire, so that wrong ones are counted.",
        &[after("expires_at < $1", Duration::from_hours(1))],
    ),
    unswept("channel_links", "As long as the membership, or until unlinked."),
    unswept("channel_listeners", "One row for each channel whose vendor is polled for messages."),
    unswept("channel_refusals", "The newest 100 of each channel."),
    unswept("channel_skips", "The newest 100 of each channel."),
    unswept("channel_whitelist", "Until removed."),
    unswept("channels", "Forever: a deleted channel is archived. The plan limits how many an agent has."),
    swept(
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
    unswept("contacts", "Until they are merged or their channel is removed."),
    unswept("conversation_reads", "As long as the conversation and the membership."),
    unswept("conversation_watches", "Until the member no longer watches, or leaves."),
    unswept("conversations", "Forever: they are archived, not deleted."),
    unswept("credential_agents", "As long as the credential is assigned."),
    unswept("credential_fields", "As long as the credential has them."),
    unswept("credential_members", "As long as the credential is shared."),
    unswept("credentials", "Forever: a deleted credential is archived."),
    unswept("decisions", "`policy.decisions_kept_days`."),
    unswept("deliveries", "As long as their message. The text goes once it is sent."),
    unswept("edits", "One row per edited record."),
    swept("email_tokens", "A week after they expire.", &[after("expires_at <= $1", days(7))]),
    unswept("erasures", "Until they are carried out or cancelled."),
    swept(
        "event_deliveries",
        "30 days, or until the endpoint is deleted.",
        &[after("created_at < $1", days(30))],
    ),
    unswept("event_endpoints", "Until deleted, at most 20 of each organization."),
    unswept("first_start", "One row, until there is a user."),
    unswept("idempotency_keys", "A day."),
    unswept("identities", "As long as their contact."),
    unswept("images", "Forever: they are archived, not deleted."),
    swept(
        "invitations",
        "90 days after they are accepted, revoked or expired.",
        &[after("COALESCE(accepted_at, revoked_at, expires_at) <= $1", days(90))],
    ),
    swept("leases", "A week after they were returned or over.", &[after("closed_at <= $1", days(7))]),
    swept("mails", "Until it is sent or no longer useful.", &[after("expires_at <= $1", Duration::ZERO)]),
    unswept("mcp_server_agents", "As long as the MCP server is assigned."),
    unswept("mcp_servers", "Forever: a deleted MCP server is archived."),
    unswept("members", "As long as the membership."),
    unswept("message_search", "As long as the message (PostgreSQL)."),
    swept(
        "message_sources",
        "The source of mails: for `email.keep_source` days, and no longer than the message.",
        &[ExpiryRule {
            counted: true,
            rows: "created_at <= $1",
            past: ExpiryBound::Set(|config| config.email.keep_source()),
        }],
    ),
    unswept(
        "messages",
        "As long as the organization's `transcriptRetentionDays` says after the last word, and until nothing in the conversation \
         is open or still to be sent (what waits for a deleted agent, or in a channel that a person switched off, does not count); \
         forever by default.",
    ),
    unswept("messages_fts", "As long as the message (SQLite)."),
    swept("model_calls", "90 days; `model_days` has their sums.", &[after("started_at <= $1", days(90))]),
    unswept("model_credentials", "Forever: they are archived, and their secrets deleted."),
    unswept("model_days", "Forever: one row for each day, agent and model."),
    unswept("notification_settings", "As long as the membership."),
    swept(
        "notifications",
        "Until the person is notified, or no longer needs to be. Undeliverable ones: 40 days.",
        &[after("due_at <= $1", days(40))],
    ),
    swept("notified", "An hour.", &[after("told_at <= $1", Duration::from_hours(1))]),
    unswept("organization_months", "Forever: one row for each month in which something was spent."),
    unswept("organizations", "Forever."),
    unswept("plans", "The plans from the settings."),
    swept(
        "policy_versions",
        "The newest 200 of each organization.",
        &[ExpiryRule {
            counted: false,
            rows: "id IN (SELECT id FROM (SELECT id, ROW_NUMBER() OVER (PARTITION BY organization_id \
                   ORDER BY id DESC) AS place FROM policy_versions) placed WHERE place > $1)",
            past: ExpiryBound::Newest(200),
        }],
    ),
    unswept("recovery_codes", "Until they are used or replaced."),
    unswept("refused_destinations", "The newest 100 of each agent."),
    swept(
        "replicas",
        "An hour after they were last seen.",
        &[after("seen_at <= $1", Duration::from_hours(1))],
    ),
    unswept("risk_categories", "One row per category of the risk rules in force."),
    unswept(
        "servers",
        "Forever: a deleted server is archived, because older rows refer to it. The plan limits the number of active ones.",
    ),
    swept(
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
    swept("sessions", "A day after they expire.", &[after("expires_at <= $1", days(1))]),
    swept("sign_in_challenges", "Until they expire.", &[after("expires_at <= $1", Duration::ZERO)]),
    swept(
        "sign_in_throttle",
        "12 hours after the last failure.",
        &[after("updated_at <= $1 AND blocked_until <= $1", Duration::from_hours(12))],
    ),
    swept(
        "signing_keys",
        "A year after they were retired.",
        &[after("retired_at <= $1 AND COALESCE(verify_until, 0) <= $1", days(365))],
    ),
    unswept("skill_agents", "As long as the skill is assigned."),
    unswept("skill_versions", "The newest 100 of each skill, and at most 4 MiB of older text."),
    unswept("skills", "Forever: a deleted skill is archived."),
    unswept("step_versions", "One row per step of the migrations."),
    unswept("stored_bytes", "One row per organization."),
    swept("token_allowances", "An hour.", &[after("until_at <= $1", Duration::ZERO)]),
    unswept("turn_waits", "As long as the turn. Written only where traces are sent."),
    unswept("turns", "As long as their conversation."),
    unswept("user_identities", "Until they are unlinked."),
    unswept("users", "Forever; an account is disabled, not deleted."),
];

/// Removes expired rows, and returns how many. A table that fails does not hold up the others.
///
/// # Errors
/// The first error of a table. The other tables were swept nevertheless.
pub async fn sweep(core: &Core) -> Result<u64> {
    let now = core.clock.now();
    let (mut gone, mut failed) = (0, None);
    for kept in KEPT {
        for ExpiryRule { counted, rows, past } in kept.rules {
            let past = match past {
                ExpiryBound::Age(age) => now.minus(*age).0,
                ExpiryBound::Set(age) => now.minus(age(&core.config)).0,
                ExpiryBound::Newest(number) => *number,
            };
            let removed = if *counted {
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
