//! What was refused: counted in memory, and written once a second, so that strangers can't make the service write.
//!
//! Of each channel the last [`KEPT`] origins are kept. The first message of an origin that was not known before raises an
//! ACCESS_REQUEST, unless [`REQUESTS`] of the channel are open.

use std::{collections::HashMap, mem, sync::Arc, time::Duration};

use muster_channels::Origin;
use parking_lot::Mutex;
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QuerySelect, Set, sea_query::OnConflict};
use tokio::time::{MissedTickBehavior, interval};

use super::{entity::channel_refusals, queries::trim_refusals};
use crate::{
    base::{
        bounds::{KEPT, LABEL, LIST},
        enums::{ApprovalKind, ChangeOp, RecordKind, RefusalReason},
        ids::{ChannelId, OrgId},
        plain::{bounded, is_hidden, one_line},
        problem::Result,
    },
    core::{Core, Event, access::Scope, store::Tx},
    domain::{
        approvals::{self, NewApproval},
        channels,
    },
};

/// How many ACCESS_REQUESTs of a channel may be open, however many strangers write to it.
const REQUESTS: u64 = 3;
/// The longest id or name of an origin that is kept, in bytes: as long as a whitelist's may be, so that strangers fill no table.
const ID_BYTES: usize = 255;

type Channel = (OrgId, ChannelId);

/// What was counted since the last time.
#[derive(Default)]
pub(super) struct Refused(Mutex<HashMap<Channel, HashMap<String, Count>>>);

struct Count {
    name: Option<String>,
    reason: RefusalReason,
    count: i64,
}

impl Refused {
    /// Begins to write what is counted.
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

    /// Counts a message. Beyond [`LIST`] origins a second, new ones are only counted as messages.
    pub fn count(&self, channel: Channel, origin: &Origin, reason: RefusalReason) {
        let mut all = self.0.lock();
        let origins = all.entry(channel).or_default();
        let id = bounded(&origin.id, ID_BYTES);
        if let Some(known) = origins.get_mut(&id) {
            known.count += 1;
            known.reason = reason;
        } else if origins.len() < LIST {
            let name = origin.name.as_deref().map(|name| bounded(name, ID_BYTES));
            origins.insert(id, Count { name, reason, count: 1 });
        }
    }

    async fn write(&self, core: &Arc<Core>) {
        let counted = mem::take(&mut *self.0.lock());
        for ((org, channel), origins) in counted {
            // What can't be written is lost: it is a count of what was refused.
            if let Err(problem) = write(core, (org, channel), origins).await {
                tracing::warn!(channel = channel.0, %problem, "channel.refusals_not_written");
            }
        }
    }
}

async fn write(core: &Arc<Core>, (org, channel): Channel, origins: HashMap<String, Count>) -> Result<()> {
    let tx = Scope::system(core, org).begin().await?;
    let Some(row) = channels::lock(&tx, channel).await? else { return Ok(()) };
    let strangers = strangers(&tx, channel, &origins).await?;
    upsert(&tx, channel, origins).await?;
    trim_refusals(&tx, channel, KEPT).await?;
    for (origin, name) in strangers {
        request_access(&tx, &row, &origin, name).await?;
    }
    tx.announce(Event::new(org, ChangeOp::Updated, RecordKind::Channel, channel));
    tx.commit().await
}

/// Those of the origins that were never refused before, and that someone may want to let in.
async fn strangers(
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

/// Asks people whether someone may write, unless they are asked enough.
async fn request_access(
    tx: &Tx,
    channel: &channels::Channel,
    origin: &str,
    name: Option<String>,
) -> Result<()> {
    if approvals::count_pending(tx, channel.id, ApprovalKind::AccessRequest).await? >= REQUESTS {
        return Ok(());
    }
    // A stranger chose the name: it stands behind the address, leaves room for it, hides nothing, and is no markdown.
    let shown = plain(origin);
    let name = name.map(|name| bounded(&plain(&name), LABEL)).filter(|name| !name.is_empty());
    let named = |mark: &str| name.as_ref().map(|name| format!(" ({mark}{name}{mark})")).unwrap_or_default();
    let title =
        format!("{} wants to write to {}", bounded(&format!("{shown}{}", named("")), ID_BYTES), channel.name);
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

/// A stranger's words in one line, without hidden letters and without what would end a code span.
fn plain(words: &str) -> String {
    let seen: String = words.chars().filter(|letter| !is_hidden(*letter)).collect();
    one_line(&seen).replace('`', "'")
}

/// Forgets that an origin was refused, and ends what asked about it: it may write from now on.
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
    fn strangers_take_a_bounded_place_in_memory() {
        let refused = Refused::default();
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
