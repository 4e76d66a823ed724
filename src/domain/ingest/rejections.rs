//! Refused messages: counted in memory and written once a second, so that strangers can't cause a write for each
//! message.
//!
//! Each channel keeps its last [`HISTORY`] refused origins. The first message of a new origin raises an ACCESS_REQUEST,
//! unless the channel has [`REQUESTS`] open ones.

use std::{collections::HashMap, mem, sync::Arc, time::Duration};

use muster_channels::Origin;
use parking_lot::Mutex;
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QuerySelect, Set, sea_query::OnConflict};
use tokio::time::{MissedTickBehavior, interval};

use super::{entity::channel_refusals, queries::trim_refusals};
use crate::{
    base::{
        bounds::{HISTORY, LABEL, LIST},
        enums::{ApprovalKind, ChangeOp, RecordKind, RefusalReason},
        ids::{ChannelId, OrgId},
        plain::{is_hidden, one_line, truncated},
        problem::Result,
    },
    core::{Core, Event, access::Scope, store::Tx},
    domain::{
        approvals::{self, NewApproval},
        channels,
    },
};

/// The maximum number of open ACCESS_REQUESTs of a channel.
const REQUESTS: u64 = 3;
/// The longest stored id or name of an origin, in bytes. As in whitelists, so that strangers can't fill the table.
const ID_BYTES: usize = 255;

type Channel = (OrgId, ChannelId);

/// The refused messages since the last write.
#[derive(Default)]
pub(super) struct RejectionCounter(Mutex<HashMap<Channel, HashMap<String, Count>>>);

struct Count {
    name: Option<String>,
    reason: RefusalReason,
    count: i64,
}

impl RejectionCounter {
    /// Starts the task that writes the counts.
    pub fn start(core: &Arc<Core>) -> Arc<Self> {
        let refused = Arc::new(Self::default());
        let (core, counted) = (Arc::clone(core), Arc::clone(&refused));
        let tasks = Arc::clone(&core);
        tasks.tasks.spawn(async move {
            let mut tick = interval(Duration::from_secs(1));
            tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
            while core.tasks.stopping.run_until_cancelled(tick.tick()).await.is_some() {
                counted.write(&core).await;
            }
            counted.write(&core).await;
        });
        refused
    }

    /// Counts a message. Ignores new origins beyond [`LIST`] a second.
    pub fn count(&self, channel: Channel, origin: &Origin, reason: RefusalReason) {
        let mut all = self.0.lock();
        let origins = all.entry(channel).or_default();
        let id = truncated(&origin.id, ID_BYTES);
        if let Some(known) = origins.get_mut(&id) {
            known.count += 1;
            known.reason = reason;
        } else if origins.len() < LIST {
            let name = origin.name.as_deref().map(|name| truncated(name, ID_BYTES));
            origins.insert(id, Count { name, reason, count: 1 });
        }
    }

    async fn write(&self, core: &Arc<Core>) {
        let counted = mem::take(&mut *self.0.lock());
        for ((org, channel), origins) in counted {
            // Losing a count is acceptable.
            if let Err(problem) = write(core, (org, channel), origins).await {
                tracing::warn!(org = org.0, channel = channel.0, %problem, "channel.refusals_not_written");
            }
        }
    }
}

async fn write(core: &Arc<Core>, (org, channel): Channel, origins: HashMap<String, Count>) -> Result<()> {
    let tx = Scope::system(core, org).begin().await?;
    let Some(row) = channels::lock(&tx, channel).await? else { return Ok(()) };
    let strangers = find_strangers(&tx, channel, &origins).await?;
    upsert(&tx, channel, origins).await?;
    trim_refusals(&tx, channel, HISTORY).await?;
    for (origin, name) in strangers {
        request_access(&tx, &row, &origin, name).await?;
    }
    tx.announce(Event::new(org, ChangeOp::Updated, RecordKind::Channel, channel));
    tx.commit().await
}

/// Finds the origins that were never refused before and that a person may want to admit.
async fn find_strangers(
    tx: &Tx,
    channel: ChannelId,
    origins: &HashMap<String, Count>,
) -> Result<Vec<(String, Option<String>)>> {
    let known = tx.scope.find::<channel_refusals::Entity>();
    let known = known.filter(channel_refusals::Column::ChannelId.eq(channel));
    let known = known.filter(channel_refusals::Column::OriginId.is_in(origins.keys().cloned()));
    let known = known.select_only().column(channel_refusals::Column::OriginId).into_tuple::<String>();
    let known = known.all(tx.connection()).await?;
    let is_new =
        |id: &String, count: &Count| count.reason == RefusalReason::NotWhitelisted && !known.contains(id);
    let new = origins.iter().filter(|(id, count)| is_new(id, count));
    Ok(new.map(|(id, count)| (id.clone(), count.name.clone())).collect())
}

async fn upsert(tx: &Tx, channel: ChannelId, origins: HashMap<String, Count>) -> Result<()> {
    use channel_refusals::Column;
    let rows = origins.into_iter().map(|(origin, count)| channel_refusals::ActiveModel {
        organization_id: Set(tx.scope.org),
        channel_id: Set(channel),
        origin_id: Set(origin),
        origin_name: Set(count.name),
        reason: Set(count.reason),
        count: Set(count.count),
        first_at: Set(tx.now),
        last_at: Set(tx.now),
    });
    let again = OnConflict::columns([Column::OrganizationId, Column::ChannelId, Column::OriginId])
        .update_columns([Column::Reason, Column::LastAt, Column::OriginName])
        .value(Column::Count, sea_orm::sea_query::Expr::cust("channel_refusals.count + excluded.count"))
        .to_owned();
    let rows = channel_refusals::Entity::insert_many(rows).on_conflict(again);
    rows.exec_without_returning(tx.connection()).await?;
    Ok(())
}

/// Asks people whether the origin may write, unless enough requests are open.
async fn request_access(
    tx: &Tx,
    channel: &channels::Channel,
    origin: &str,
    name: Option<String>,
) -> Result<()> {
    if approvals::count_pending(tx, channel.id, ApprovalKind::AccessRequest).await? >= REQUESTS {
        return Ok(());
    }
    // A stranger chose the name: put it after the address, limit its length, and remove hidden characters and Markdown.
    let shown = plain(origin);
    let name = name.map(|name| truncated(&plain(&name), LABEL)).filter(|name| !name.is_empty());
    let named = |mark: &str| name.as_ref().map(|name| format!(" ({mark}{name}{mark})")).unwrap_or_default();
    let title = format!(
        "{} wants to write to {}",
        truncated(&format!("{shown}{}", named("")), ID_BYTES),
        channel.name
    );
    let body = format!(
        "A message of `{shown}`{} was refused, because the channel's whitelist does not name them. \
         Add `{shown}` to it to let them in.",
        named("`")
    );
    let new = NewApproval {
        body: Some(body),
        agent_id: Some(channel.agent_id),
        channel_id: Some(channel.id),
        origin_id: Some(origin.to_owned()),
        ..NewApproval::new(ApprovalKind::AccessRequest, title)
    };
    approvals::raise(tx, new).await?;
    Ok(())
}

/// A stranger's text in one line, without hidden characters and without backticks, which would end a code span.
fn plain(words: &str) -> String {
    let seen: String = words.chars().filter(|letter| !is_hidden(*letter)).collect();
    one_line(&seen).replace('`', "'")
}

/// Removes an origin that may now write from the refused ones, and withdraws its access requests.
pub async fn forget_refusal(tx: &Tx, channel: ChannelId, origin: &str) -> Result<()> {
    let refused = tx.scope.delete::<channel_refusals::Entity>();
    let refused = refused.filter(channel_refusals::Column::ChannelId.eq(channel));
    refused.filter(channel_refusals::Column::OriginId.eq(origin)).exec(tx.connection()).await?;
    approvals::withdraw_access_requests(tx, channel, origin).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strangers_take_bounded_memory() {
        let refused = RejectionCounter::default();
        let channel = (OrgId(1), ChannelId(1));
        for n in 0..1_000 {
            let origin = Origin { id: format!("stranger {n}"), place: None, name: None };
            refused.count(channel, &origin, RefusalReason::NotWhitelisted);
            refused.count(channel, &origin, RefusalReason::Label);
        }
        let all = refused.0.lock();
        assert_eq!(all[&channel].len(), LIST);
        assert_eq!(all[&channel]["stranger 7"].count, 2);
    }
}
