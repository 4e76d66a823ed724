//! SQL of mails.

use std::time::Duration;

use crate::{
    base::{problem::Result, time::Timestamp},
    core::{
        Core,
        queue::Depth,
        store::{
            Transaction,
            sql::{RunSql as _, RunWritingSql as _, installation_sql, row},
        },
    },
};

row! {
    /// A mail in the queue.
    #[derive(Clone, Debug)]
    pub struct Queued {
        id: i64,
        /// A serialized [`Mail`](super::Mail).
        payload: serde_json::Value,
        attempts: i64,
        created_at: Timestamp,
        /// It is not sent after this time.
        expires_at: Timestamp,
    }
}

/// Inserts a mail when the transaction commits.
pub(super) fn insert(
    tx: &Transaction,
    payload: serde_json::Value,
    order_key: Option<String>,
    (now, expires_at): (Timestamp, Timestamp),
) {
    let sql = installation_sql!(
        "INSERT INTO mails (payload, order_key, created_at, available_at, expires_at) VALUES ($1, $2, $3, $3, $4)"
    );
    tx.execute_before_commit(sql, [payload.into(), order_key.into(), now.into(), expires_at.into()]);
}

/// The mails that are due at `$1`.
pub const DUE: &str = "mails m WHERE m.available_at <= $1";

/// The first due mail without an earlier one that has the same order key.
pub async fn due(core: &Core) -> Result<Option<Queued>> {
    let sql = installation_sql!(
        "SELECT m.id, m.payload, m.attempts, m.created_at, m.expires_at FROM ",
        DUE,
        " AND NOT EXISTS (SELECT 1 FROM mails earlier WHERE earlier.order_key = m.order_key AND earlier.id < m.id) \
         ORDER BY m.available_at, m.id LIMIT 1"
    );
    core.db.installation().one(sql, [core.clock.now().into()]).await
}

/// Claims a mail for the time of `lease`, unless another replica was faster.
pub(super) async fn claim(core: &Core, mail: &Queued, lease: Duration) -> Result<bool> {
    let sql = installation_sql!(
        "UPDATE mails SET attempts = attempts + 1, available_at = $1 WHERE id = $2 AND attempts = $3"
    );
    let values = [core.clock.now().plus(lease).into(), mail.id.into(), mail.attempts.into()];
    Ok(core.db.installation().execute(sql, values).await? == 1)
}

/// Postpones a claimed mail, unless the claim has ended and another replica has it.
pub(super) async fn put_off(core: &Core, mail: &Queued, wait: Duration) -> Result<()> {
    let sql = installation_sql!("UPDATE mails SET available_at = $1 WHERE id = $2 AND attempts = $3");
    let values = [core.clock.now().plus(wait).into(), mail.id.into(), (mail.attempts + 1).into()];
    core.db.installation().execute(sql, values).await?;
    Ok(())
}

/// Deletes a mail.
pub(super) async fn delete(core: &Core, id: i64) -> Result<()> {
    core.db.installation().execute(installation_sql!("DELETE FROM mails WHERE id = $1"), [id.into()]).await?;
    Ok(())
}

/// The number of mails in the queue.
pub async fn waiting(core: &Core) -> Result<Option<Depth>> {
    let sql =
        installation_sql!("SELECT 'MAIL' AS kind, COUNT(*) AS depth, MIN(created_at) AS oldest FROM mails");
    core.db.installation().one(sql, []).await
}
