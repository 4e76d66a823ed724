//! Stops a whole organization, when its agents do harm and finding out which would take too long.
//!
//! From the transaction of the stop on, no agent starts or resumes ([`orgs::require_going`]), no turn is sent
//! ([`orgs::is_stopped`]), and commands wait, except those that end or remove something or notify a host of the stop
//! ([`commands::MAY_GO`]). Running turns are cancelled; agents stay up, and their hosts block all of their output. A
//! release resumes everything, queued turns at most `TURNS` a second. Permissions: `organization.stop`, and
//! `organization.release`, which fewer people have.

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

/// The number of queued turns sent per second after a release: model providers would refuse all of them at once.
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

/// Releases the organization: waiting work resumes. Returns whether it was stopped.
pub async fn release(scope: &Scope, reason: Option<&str>) -> Result<bool> {
    let tx = scope.begin().await?;
    let Some(since) = orgs::set_released(&tx).await? else { return Ok(false) };
    turns::record_release_wait(&tx, since).await?;
    let changes = json!({ "stopped_at": since, "reason": reason });
    record(&tx, "releaseOrganization", changes);
    agents::mark_all(&tx).await?;
    // Commands have waited for this.
    commands::wake_hosts(&tx).await?;
    tx.commit().await?;
    Ok(true)
}

/// Sends queued turns of released organizations, a batch of each. Returns how many.
pub async fn let_go(core: &Arc<Core>) -> Result<u64> {
    let mut sent = Tally::default();
    for org in orgs::letting_go(core).await? {
        sent.add(org, send_batch(&Scope::system(core, org)).await);
    }
    sent.close()
}

async fn send_batch(scope: &Scope) -> Result<u64> {
    let tx = scope.begin().await?;
    if !orgs::claim_batch(&tx).await? {
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
