//! Who is asked where: rows, written in the transaction that raises a request, and changed in the one that ends it.

use crate::{
    base::{
        ids::{ApprovalId, UserId},
        problem::Result,
    },
    core::{outbox, store::Tx},
};

/// Asks those of these people who have linked a chat, in each of theirs, if it is something that has an answer.
///
/// # Errors
/// The database is unreachable.
pub async fn ask(tx: &Tx, approval: ApprovalId, people: &[UserId]) -> Result<()> {
    if people.is_empty() {
        return Ok(());
    }
    let db = &tx.scope.core.db;
    let sql = format!(
        "INSERT INTO approval_asks (organization_id, approval_id, channel_id, user_id, target, state, attempts, available_at, created_at) \
         SELECT l.organization_id, a.id, l.channel_id, l.user_id, l.target, 'TO_ASK', 0, $4, $4 FROM channel_links l \
         JOIN channels c ON c.organization_id = l.organization_id AND c.id = l.channel_id \
         JOIN approvals a ON a.organization_id = l.organization_id AND a.id = $3 \
         WHERE l.organization_id = $1 AND a.kind IN ('ACTION', 'QUESTION') AND a.status = 'PENDING' \
         AND c.archived_at IS NULL AND c.direction = 'BIDIRECTIONAL' AND l.user_id {} \
         ON CONFLICT (organization_id, approval_id, channel_id, user_id) DO NOTHING",
        db.is_among()
    );
    let people: Vec<i64> = people.iter().map(|user| user.0).collect();
    let values = vec![tx.scope.org.into(), db.keys(&people), approval.into(), tx.now.into()];
    if tx.run(&sql, values).await? > 0 {
        outbox::wake_after(tx);
    }
    Ok(())
}

/// The request has ended: what was asked loses its buttons, and says how. What was not asked yet is no longer asked.
///
/// # Errors
/// The database is unreachable.
pub async fn over(tx: &Tx, approval: ApprovalId) -> Result<()> {
    // Who is sending it at this moment keeps the claim, and finds out afterwards.
    let sql = "UPDATE approval_asks SET available_at = CASE WHEN state = 'ASKED' THEN $3 ELSE available_at END, attempts = 0, \
               state = 'TO_CLOSE' WHERE organization_id = $1 AND approval_id = $2 AND state IN ('TO_ASK', 'ASKED')";
    if tx.run(sql, vec![tx.scope.org.into(), approval.into(), tx.now.into()]).await? > 0 {
        outbox::wake_after(tx);
    }
    Ok(())
}
