//! What people are due to be told becomes entries in the outbox: one at most for each person every five minutes, with
//! everything that has come meanwhile.
//!
//! Any number of replicas look. The one that moves the person's row in `notified` forward has the turn: in the same
//! transaction it deletes the rows and writes the entry, so that each is told once, regardless of crashes. A row is deleted
//! only as it was read: if the same happened again meanwhile, it stays for the next time.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use sea_orm::{ConnectionTrait, QueryResult, Statement, Value};

use super::{are_on, look};
use crate::{
    base::{ids::UserId, problem::Result},
    core::{
        Core,
        outbox::{self, About, Mail},
        store::Transaction,
    },
};

/// How long a person is left alone after being told something.
const QUIET: Duration = Duration::from_mins(5);
/// How long an entry is worth sending.
const LIFETIME: Duration = Duration::from_hours(24);
/// How many people one round looks at.
const PEOPLE: u64 = 200;
/// How many rows of a person are collected at a time.
const ROWS: u64 = 500;
/// How many things one mail names.
const NAMED: usize = 50;

/// The condition in SQL that the person has snoozed the approval of the notification `n`. `$1` is the time.
const SNOOZED: &str = "EXISTS (SELECT 1 FROM approval_snoozes z WHERE z.organization_id = n.organization_id \
     AND z.approval_id = n.approval_id AND z.user_id = n.user_id AND z.until > $1)";

/// Collects what is due, and returns how many people are notified.
///
/// # Errors
/// The database is unreachable. What has been collected by then is sent.
pub async fn collect_due(core: &Arc<Core>) -> Result<u64> {
    if !are_on(core) {
        return Ok(0);
    }
    let now = core.clock.now();
    // A mail that could not be sent yet is followed by no other.
    let sql = format!(
        "SELECT DISTINCT n.user_id FROM notifications n WHERE n.due_at <= $1 AND NOT {SNOOZED} \
         AND NOT EXISTS (SELECT 1 FROM notified d WHERE d.user_id = n.user_id AND d.told_at > $2) \
         AND NOT EXISTS (SELECT 1 FROM outbox x WHERE x.order_key = 'notifications:' || CAST(n.user_id AS TEXT) \
         AND x.acknowledged_at IS NULL) LIMIT {PEOPLE}"
    );
    let mut told = 0;
    for row in core.db.all(sql, vec![now.into(), now.minus(QUIET).into()]).await? {
        told += u64::from(collect(core, row.try_get_by(0)?).await?);
    }
    Ok(told)
}

/// Collects what one person is due to be told. Returns whether there is anything, and no one else was faster.
async fn collect(core: &Core, user: UserId) -> Result<bool> {
    let now = core.clock.now();
    let sql = format!(
        "SELECT n.id, n.raised, n.organization_id, n.what, n.approval_id, n.agent_id FROM notifications n \
         WHERE n.user_id = $2 AND n.due_at <= $1 AND NOT {SNOOZED} ORDER BY n.id LIMIT {ROWS}"
    );
    let rows = core.db.all(sql, vec![now.into(), user.into()]).await?;
    let (mut read, mut about) = (BTreeMap::<i64, Vec<i64>>::new(), Vec::new());
    for row in rows {
        read.entry(row.try_get_by(1)?).or_default().push(row.try_get_by(0)?);
        let one = about_of(&row)?;
        if look::at(core, user, &one).await?.is_some() {
            about.push(one);
        }
    }
    let tx = core.db.begin().await?;
    if !about.is_empty() && !take_turn(core, &tx, user).await? {
        return Ok(false);
    }
    let sql =
        format!("DELETE FROM notifications WHERE user_id = $1 AND id {} AND raised = $3", core.db.is_among());
    for (raised, ids) in read {
        execute(core, &tx, &sql, vec![user.into(), core.db.keys(&ids), raised.into()]).await?;
    }
    let has_any = !about.is_empty();
    if has_any {
        let more = about.len().saturating_sub(NAMED);
        about.truncate(NAMED);
        send(core, &tx, user, about, more);
    }
    tx.commit().await?;
    Ok(has_any)
}

/// Hands it to each medium that the person can be reached by. A new medium is one line here.
fn send(core: &Core, tx: &Transaction, user: UserId, about: Vec<About>, more: usize) {
    let mail = Mail::Notifications { user_id: user, about, more };
    outbox::enqueue_mail(core, tx, &mail, core.clock.now().plus(LIFETIME));
}

/// Notes that the person is notified now. Fails if that was done less than five minutes ago.
pub(super) async fn take_turn(core: &Core, tx: &Transaction, user: UserId) -> Result<bool> {
    let sql = "INSERT INTO notified (user_id, told_at) VALUES ($1, $2) ON CONFLICT (user_id) DO UPDATE \
               SET told_at = excluded.told_at WHERE notified.told_at <= $3";
    let now = core.clock.now();
    Ok(execute(core, tx, sql, vec![user.into(), now.into(), now.minus(QUIET).into()]).await? == 1)
}

fn about_of(row: &QueryResult) -> Result<About> {
    Ok(About {
        org: row.try_get_by(2)?,
        what: row.try_get_by(3)?,
        approval: row.try_get_by(4)?,
        agent: row.try_get_by(5)?,
    })
}

async fn execute(core: &Core, tx: &Transaction, sql: &str, values: Vec<Value>) -> Result<u64> {
    let statement = Statement::from_sql_and_values(core.db.backend(), sql, values);
    Ok(tx.execute_raw(statement).await?.rows_affected())
}
