//! Collects due notifications into mails: at most one for each person every five minutes, with all notifications that
//! have become due meanwhile.
//!
//! Any number of replicas collect. The one that advances the person's row in `notified` has the turn: the same
//! transaction deletes the notifications and enqueues the mail, so that each is sent once, even after a crash. A
//! notification that was raised again after it was read is not deleted: it stays for the next mail.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use super::{are_on, content, queries};
use crate::{
    base::{ids::UserId, problem::Result},
    core::{Core, store::Transaction},
    domain::mails::{self, About, Mail},
};

/// The maximum number of notifications that one mail lists.
const NAMED: usize = 50;

/// Collects all due notifications. Returns the number of notified people.
pub async fn collect_due(core: &Arc<Core>) -> Result<u64> {
    if !are_on(core) {
        return Ok(0);
    }
    let mut notified = 0;
    for person in queries::due_people(core, core.clock.now()).await? {
        notified += u64::from(collect(core, person).await?);
    }
    Ok(notified)
}

/// Collects one person's due notifications. Returns whether there were any, and no other replica was faster.
async fn collect(core: &Core, user: UserId) -> Result<bool> {
    let rows = queries::due(core, user, core.clock.now()).await?;
    let (mut read, mut about) = (BTreeMap::<i64, Vec<i64>>::new(), Vec::new());
    for row in rows {
        read.entry(row.raised).or_default().push(row.id);
        let (org, what, approval, agent) = (row.organization_id, row.what, row.approval_id, row.agent_id);
        let one = About { org, what, approval, agent };
        if content::load(core, user, &one).await?.is_some() {
            about.push(one);
        }
    }
    let tx = core.db.begin().await?;
    if !about.is_empty() && !queries::take_turn(&tx, user, core.clock.now()).await? {
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

/// Passes the notifications to each medium of the person. A new medium is one line here.
fn send(core: &Core, tx: &Transaction, user: UserId, about: Vec<About>, more: usize) {
    let mail = Mail::Notifications { user_id: user, about, more };
    // A day later the mail is not worth sending.
    mails::enqueue(core, tx, &mail, core.clock.now().plus(Duration::from_hours(24)));
}
