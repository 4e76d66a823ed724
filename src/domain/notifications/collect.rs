//! What people are due to be told becomes mails: one at most for each person every five minutes, with
//! everything that has come meanwhile.
//!
//! Any number of replicas look. The one that moves the person's row in `notified` forward has the turn: in the same
//! transaction it deletes the rows and writes the entry, so that each is told once, regardless of crashes. A row is deleted
//! only as it was read: if the same happened again meanwhile, it stays for the next time.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use super::{are_on, content, queries};
use crate::{
    base::{ids::UserId, problem::Result},
    core::{Core, store::Transaction},
    domain::mails::{self, About, Mail},
};

/// How long a person is left alone after being told something.
const QUIET: Duration = Duration::from_mins(5);
/// How long an entry is worth sending.
const LIFETIME: Duration = Duration::from_hours(24);
/// How many things one mail names.
const NAMED: usize = 50;

/// Collects what is due, and returns how many people are notified.
///
/// # Errors
/// The database is unreachable. What has been collected by then is sent.
pub async fn collect_due(core: &Arc<Core>) -> Result<u64> {
    if !are_on(core) {
        return Ok(0);
    }
    let now = core.clock.now();
    let mut told = 0;
    // A mail that could not be sent yet is followed by no other.
    for person in queries::due_people(core, now, now.minus(QUIET)).await? {
        told += u64::from(collect(core, person).await?);
    }
    Ok(told)
}

/// Collects what one person is due to be told. Returns whether there is anything, and no one else was faster.
async fn collect(core: &Core, user: UserId) -> Result<bool> {
    let rows = queries::due(core, user, core.clock.now()).await?;
    let (mut read, mut about) = (BTreeMap::<i64, Vec<i64>>::new(), Vec::new());
    for row in rows {
        read.entry(row.raised).or_default().push(row.id);
        let (org, what, approval, agent) = (row.organization_id, row.what, row.approval_id, row.agent_id);
        let one = About { org, what, approval, agent };
        if content::at(core, user, &one).await?.is_some() {
            about.push(one);
        }
    }
    let tx = core.db.begin().await?;
    if !about.is_empty() && !take_turn(core, &tx, user).await? {
        return Ok(false);
    }
    for (raised, ids) in read {
        queries::remove(core, &tx, user, (&ids, raised)).await?;
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
    mails::enqueue(core, tx, &mail, core.clock.now().plus(LIFETIME));
}

/// Notes that the person is notified now. Fails if that was done less than five minutes ago.
pub(super) async fn take_turn(core: &Core, tx: &Transaction, user: UserId) -> Result<bool> {
    let now = core.clock.now();
    queries::take_turn(tx, user, (now, now.minus(QUIET))).await
}
