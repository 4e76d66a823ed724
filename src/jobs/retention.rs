//! How long each table keeps its rows: the table in docs/operations.md, and the job that removes expired rows.
//!
//! Every table of the schema has an entry, which a test checks. A table that only grows gives the reason.

use std::time::Duration;

use crate::{
    base::problem::Result,
    core::{Core, config::Config},
};

/// A table, and what bounds it.
pub struct TableRetention {
    pub table: &'static str,
    /// What is kept, and for how long, in words for operators.
    pub what: &'static str,
    goes: &'static [Goes],
}

/// Rows that the job removes.
struct Goes {
    /// Whether their size counts for their organization (`stored_bytes`).
    counted: bool,
    /// The condition in SQL: `$1` is the instant or the number that [`Past`] gives.
    rows: &'static str,
    past: Past,
}

enum Past {
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

const fn stays(table: &'static str, what: &'static str) -> TableRetention {
    TableRetention { table, what, goes: &[] }
}

const fn goes(table: &'static str, what: &'static str, goes: &'static [Goes]) -> TableRetention {
    TableRetention { table, what, goes }
}

const fn after(rows: &'static str, past: Duration) -> Goes {
    Goes { counted: false, rows, past: Past::Age(past) }
}

/// The tables, by name.
pub const KEPT: &[TableRetention] = &[
    stays(
        "agent_backups",
        "As many complete ones of each agent as its retention says (7 unless it does; all if it is frozen), and the newest \
         20 that failed.",
    ),
    stays("agent_launches", "The newest 50 of each agent."),
    stays("agent_limits", "As long as the agent may not call its model, or until it is deleted."),
    stays("agent_months", "Forever: one row for each month in which the agent spent something."),
    stays("agent_revisions", "The newest 200 of each agent, and the one it was launched with."),
    stays(
        "agents",
        "Forever: a deleted agent is archived, so that its conversations stay readable. The plan limits the number of active ones.",
    ),
    stays("allowed_hosts", "Until removed, at most 500 of each organization."),
    goes(
        "approval_asks",
        "Until 30 days after the request was decided, or until the channel has another token or is deleted.",
        &[after("state = 'CLOSED' AND available_at < $1", days(30))],
    ),
    goes("approval_snoozes", "Until they end.", &[after("until <= $1", Duration::ZERO)]),
    stays("approvals", "Forever, as the record of who decided what."),
    stays("attachment_blobs", "As long as the attachment."),
    goes(
        "attachments",
        "As long as their message. A file that was never posted: a day.",
        &[Goes { counted: true, rows: "message_id IS NULL AND created_at < $1", past: Past::Age(days(1)) }],
    ),
    stays("audit_chains", "One row per organization, and one for the instance."),
    stays("audit_checkpoints", "As long as the lines that they sign."),
    stays("audit_log", "`audit.retention_days`; forever by default."),
    stays("audit_unsealed", "Until the line is sealed, a moment later."),
    stays("avatars", "Until they are replaced or removed."),
    goes(
        "channel_link_codes",
        "An hour longer than they work, so that wrong ones are counted.",
        &[after("expires_at < $1", Duration::from_hours(1))],
    ),
    stays("channel_links", "As long as the membership, or until unlinked."),
    stays("channel_listeners", "One row for each channel whose vendor is asked for messages."),
    stays("channel_refusals", "The newest 100 of each channel."),
    stays("channel_skips", "The newest 100 of each channel."),
    stays("channel_whitelist", "Until removed."),
    stays("channels", "Forever: a deleted channel is archived. The plan limits how many an agent has."),
    goes(
        "commands",
        "A week after the host acknowledged it, or 30 days if it was never sent. One that was sent, and a STOP, waits \
         for its host.",
        &[
            after("acknowledged_at <= $1", days(7)),
            // `turns::free_unsent` drops those of turns, which must not wait for them forever.
            after(
                "kind <> 'TURN' AND acknowledged_at IS NULL AND host_seq IS NULL AND expires_at <= $1",
                Duration::ZERO,
            ),
        ],
    ),
    stays("contacts", "Until they are merged or their channel is removed."),
    stays("conversation_reads", "As long as the conversation and the membership."),
    stays("conversation_watches", "Until the member no longer watches, or leaves."),
    stays("conversations", "Forever: they are archived, not deleted."),
    stays("credential_agents", "As long as the credential is assigned."),
    stays("credential_fields", "As long as the credential has them."),
    stays("credential_members", "As long as the credential is shared."),
    stays("credentials", "Forever: a deleted credential is archived."),
    stays("decisions", "`policy.decisions_kept_days`."),
    stays("deliveries", "As long as their message. The text goes once it is sent."),
    stays("edits", "One row per edited record."),
    goes("email_tokens", "A week after they expire.", &[after("expires_at <= $1", days(7))]),
    stays("idempotency_keys", "A day."),
    stays("identities", "As long as their contact."),
    stays("images", "Forever: they are archived, not deleted."),
    goes(
        "invitations",
        "90 days after they are accepted, revoked or expired.",
        &[after("COALESCE(accepted_at, revoked_at, expires_at) <= $1", days(90))],
    ),
    goes("leases", "A week after they were returned or over.", &[after("closed_at <= $1", days(7))]),
    goes("mails", "Until it is sent or has become useless.", &[after("expires_at <= $1", Duration::ZERO)]),
    stays("mcp_server_agents", "As long as the MCP server is assigned."),
    stays("mcp_servers", "Forever: a deleted MCP server is archived."),
    stays("members", "As long as the membership."),
    stays("message_search", "As long as the message (PostgreSQL)."),
    goes(
        "message_sources",
        "Mails as they came: `email.keep_source`, and no longer than the message.",
        &[Goes {
            counted: true,
            rows: "created_at <= $1",
            past: Past::Set(|config| config.email.keep_source()),
        }],
    ),
    stays(
        "messages",
        "As long as the organization's `transcriptRetentionDays` says after the last word, and until nothing in the conversation \
         is open or still to be sent (what waits for a deleted agent, or in a channel that a person switched off, does not count); \
         forever by default.",
    ),
    stays("messages_fts", "As long as the message (SQLite)."),
    goes("model_calls", "90 days; `model_days` has their sums.", &[after("started_at <= $1", days(90))]),
    stays("model_credentials", "Forever: they are archived, and their secrets deleted."),
    stays("model_days", "Forever: one row for each day, agent and model."),
    stays("notification_settings", "As long as the membership."),
    goes(
        "notifications",
        "Until the person is notified, or no longer needs to be. Undeliverable ones: 40 days.",
        &[after("due_at <= $1", days(40))],
    ),
    goes("notified", "An hour.", &[after("told_at <= $1", Duration::from_hours(1))]),
    stays("organization_months", "Forever: one row for each month in which something was spent."),
    stays("organizations", "Forever."),
    stays("plans", "The plans from the settings."),
    goes(
        "policy_versions",
        "The newest 200 of each organization.",
        &[Goes {
            counted: false,
            rows: "id IN (SELECT id FROM (SELECT id, ROW_NUMBER() OVER (PARTITION BY organization_id \
                   ORDER BY id DESC) AS place FROM policy_versions) placed WHERE place > $1)",
            past: Past::Newest(200),
        }],
    ),
    stays("recovery_codes", "Until they are used or replaced."),
    stays("refused_destinations", "The newest 100 of each agent."),
    goes(
        "replicas",
        "An hour after they were last seen.",
        &[after("seen_at <= $1", Duration::from_hours(1))],
    ),
    stays("risk_categories", "One row per category of the risk rules in force."),
    stays(
        "servers",
        "Forever: a deleted server is archived, because older rows refer to it. The plan limits the number of active ones.",
    ),
    goes(
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
    goes("sessions", "A day after they expire.", &[after("expires_at <= $1", days(1))]),
    goes("sign_in_challenges", "Until they expire.", &[after("expires_at <= $1", Duration::ZERO)]),
    goes(
        "sign_in_throttle",
        "12 hours after the last failure.",
        &[after("updated_at <= $1 AND blocked_until <= $1", Duration::from_hours(12))],
    ),
    goes(
        "signing_keys",
        "A year after they were retired.",
        &[after("retired_at <= $1 AND COALESCE(verify_until, 0) <= $1", days(365))],
    ),
    stays("skill_agents", "As long as the skill is assigned."),
    stays("skill_versions", "The newest 100 of each skill, and at most 4 MiB of older text."),
    stays("skills", "Forever: a deleted skill is archived."),
    stays("stored_bytes", "One row per organization."),
    goes("token_allowances", "An hour.", &[after("until_at <= $1", Duration::ZERO)]),
    stays("turn_waits", "As long as the turn. Written only where traces are sent."),
    stays("turns", "As long as their conversation."),
    stays("user_identities", "Until they are unlinked."),
    stays("users", "Forever; an account is disabled, not deleted."),
];

/// Removes expired rows, and returns how many. A table that fails does not hold up the others.
///
/// # Errors
/// The first that a table failed with. The others were swept nevertheless.
pub async fn sweep(core: &Core) -> Result<u64> {
    let now = core.clock.now();
    let (mut gone, mut failed) = (0, None);
    for kept in KEPT {
        for Goes { counted, rows, past } in kept.goes {
            let past = match past {
                Past::Age(age) => now.minus(*age).0,
                Past::Set(age) => now.minus(age(&core.config)).0,
                Past::Newest(number) => *number,
            };
            let swept = if *counted {
                core.db.sweep_counted(kept.table, rows, past).await
            } else {
                core.db.sweep(kept.table, rows, past).await
            };
            match swept {
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
