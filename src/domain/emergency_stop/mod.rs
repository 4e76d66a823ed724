//! One stop for a whole organization, for when its agents do harm and no one has time to find out which.
//!
//! From the transaction of the stop on, no agent starts or resumes ([`orgs::require_going`]), no turn is sent
//! ([`orgs::is_stopped`]), and commands wait, except those that end something or tell a host of the stop
//! ([`commands::MAY_GO`]). Running turns are cancelled; agents stay up, and their hosts let nothing of theirs out. Releasing lets
//! everything go on, queued turns at most `TURNS` a second.
//! Permissions: `organization.stop`, and `organization.release`, which fewer people have.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::{
    base::{
        bounds,
        enums::{ChangeOp, RecordKind, TurnCut},
        plain,
        problem::{Problem, Result},
    },
    core::{Core, access::Scope, audit, job_counts::Tally, store::Tx},
    domain::{agents, commands, conversations::turns, orgs},
};

/// How many queued turns are sent in each second after a release: all at once would be refused by model providers.
const TURNS: u64 = 5;

/// Stops the organization. Stopping it again changes nothing. Returns whether this call stopped it.
///
/// # Errors
/// `VALIDATION_FAILED` for a reason that is blank, too long or has several lines.
pub async fn stop(scope: &Scope, reason: &str) -> Result<bool> {
    let reason = reason.trim();
    if reason.is_empty() || !plain::is_line(reason) || reason.chars().count() > bounds::REASON {
        let detail = "A reason is required: a single line of at most 1,000 characters.";
        return Err(Problem::invalid_parameter("reason", "REQUIRED", detail));
    }
    let tx = scope.begin().await?;
    if !orgs::set_stopped(&tx, reason).await? {
        return Ok(false);
    }
    agents::mark_all(&tx).await?;
    let cancelled = turns::cancel_all(&tx, Some(TurnCut::Organization)).await?;
    record(&tx, "stopOrganization", json!({ "reason": reason, "cancelled_turns": cancelled }));
    tx.commit().await?;
    Ok(true)
}

/// Releases the organization: what waits goes on. Returns whether it was stopped.
pub async fn release(scope: &Scope, reason: Option<&str>) -> Result<bool> {
    let tx = scope.begin().await?;
    let Some((since, stopped_by)) = orgs::set_released(&tx).await? else { return Ok(false) };
    turns::record_release_wait(&tx, since).await?;
    let changes = json!({ "stopped_at": since, "stopped_by": stopped_by, "reason": reason });
    record(&tx, "releaseOrganization", changes);
    agents::mark_all(&tx).await?;
    // Commands have waited for this.
    commands::wake_hosts(&tx).await?;
    tx.commit().await?;
    Ok(true)
}

/// Sends queued turns of released organizations, a few of each. Returns how many.
///
/// # Errors
/// The database is unreachable. What was sent by then stays sent.
pub async fn let_go(core: &Arc<Core>) -> Result<u64> {
    let mut sent = Tally::default();
    for org in orgs::letting_go(core).await? {
        sent.add(org, let_some_go(&Scope::system(core, org)).await);
    }
    sent.close()
}

async fn let_some_go(scope: &Scope) -> Result<u64> {
    let tx = scope.begin().await?;
    if !orgs::begin_lot(&tx).await? {
        return Ok(0);
    }
    let sent = turns::send_queued(&tx, TURNS).await?;
    if sent < TURNS {
        orgs::end_letting_go(&tx).await?;
    }
    tx.commit().await?;
    Ok(sent)
}

fn record(tx: &Tx, operation: &'static str, changes: Value) {
    let (op, kind, id) = (ChangeOp::Updated, RecordKind::Organization, tx.scope.org.0);
    audit::record(tx, audit::Entry { operation, op, kind, id, changes });
}
