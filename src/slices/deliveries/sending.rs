//! Lanes: who sends what is due.
//!
//! A round finds the channels with something to send, and gives each that nobody in this process serves a lane of its own: a
//! task that sends until nothing is due, at most [`AT_ONCE`] parts at a time, each of another conversation. So a vendor that
//! hangs holds up its own channel. Replicas share channels: a row is claimed in one statement that only one of them wins.
//!
//! Vendors' limits are counted beforehand (`core/outbox/pace.rs`): where a chat has no room, its part is due later, and the
//! others go on. That is not an attempt.

use std::{sync::Arc, time::Duration};

use futures::future::join_all;
use muster_channels::{Attachment, Part, Receipt, Rendered, Traits, Transport};
use sea_orm::{ColumnTrait, QueryFilter, sea_query::Expr};

use super::{
    entity::deliveries,
    parts::{add_rest, split},
    queries::{Due, due_channels, due_parts},
    settling::{settle, uncertain},
    verdict::{Verdict, judge},
};
use crate::{
    base::{
        enums::{DeliveryCode, DeliveryStatus},
        ids::{ChannelId, DeliveryId, OrgId},
        problem::Result,
    },
    core::{
        Core,
        access::Scope,
        ledger::What,
        outbox::{self, Full, Room},
    },
    slices::{
        channels::{self, Sender},
        conversations::{self, Place},
    },
};

/// How long a part waits that can't be read.
const UNREAD: Duration = Duration::from_secs(10);
/// How many parts a channel sends at a time.
const AT_ONCE: i64 = 4;
/// How much longer than a call its claim lasts: for asking the vendor, and for writing down what became of it.
const MARGIN: Duration = Duration::from_secs(30);

/// Gives every channel with something to send a lane. A lane is not news, so this returns 0: what it sent is seen on messages.
///
/// # Errors
/// The database is unreachable.
pub async fn send_due(core: &Arc<Core>) -> Result<u64> {
    let line = core.ledger.line(What::Lanes);
    for due in due_channels(core).await? {
        let (org, channel) = (due.organization_id, due.channel_id);
        let Some(lane) = core.outbox.lanes.enter(line, org, channel) else { continue };
        let task = Arc::clone(core);
        core.tasks.spawn(async move {
            let served = serve(&task, org, channel).await;
            drop(lane);
            match served {
                Ok(held) => {
                    if let Some(wait) = held {
                        outbox::wake_in(&task, wait);
                    }
                    // What came while the lane was being given up would wait for the next round.
                    outbox::wake(&task);
                }
                Err(problem) => tracing::error!(channel = channel.0, %problem, "deliveries.lane_failed"),
            }
        });
    }
    Ok(0)
}

/// Sends what is due in a channel, until nothing is. Returns how long the first of those waits that found no room.
async fn serve(core: &Arc<Core>, org: OrgId, channel: ChannelId) -> Result<Option<Duration>> {
    let (scope, mut soonest) = (Scope::system(core, org), None);
    while !core.tasks.stopping.is_cancelled() {
        let Some(sender) = channels::sender(&scope, channel).await? else { break };
        let Ready { parts, held } = ready(&scope, channel, &sender).await?;
        if parts.is_empty() && held.is_none() {
            break;
        }
        soonest = soonest.into_iter().chain(held).min();
        let sent = parts.into_iter().map(|(part, room)| attempt(&scope, &sender, part, room));
        join_all(sent).await.into_iter().collect::<Result<Vec<()>>>()?;
    }
    Ok(soonest)
}

/// What a lane does next.
#[derive(Default)]
struct Ready {
    /// Sent now.
    parts: Vec<(deliveries::Model, Room)>,
    /// How long the first of those waits that found no room.
    held: Option<Duration>,
}

/// What is due and has room. What somebody left behind is settled.
async fn ready(scope: &Scope, channel: ChannelId, sender: &Sender) -> Result<Ready> {
    let mut ready = Ready::default();
    for due in due_parts(scope, channel, AT_ONCE).await? {
        if !consider(scope, channel, sender, due, &mut ready).await? {
            break;
        }
    }
    Ok(ready)
}

/// Finds room for a part, or settles it if somebody left it behind. Returns whether there may be room for others.
async fn consider(
    scope: &Scope,
    channel: ChannelId,
    sender: &Sender,
    Due { part, target }: Due,
    ready: &mut Ready,
) -> Result<bool> {
    if part.status != DeliveryStatus::Pending {
        abandoned(scope, sender, part.id).await?;
        return Ok(true);
    }
    let core = &scope.core;
    match core.outbox.pace.take(&core.clock, (scope.org, channel), &*sender.transport, &target) {
        Ok(room) => {
            ready.parts.push((part, room));
            Ok(true)
        }
        Err(full) => {
            hold(scope, channel, part.id, full).await?;
            ready.held = ready.held.into_iter().chain([full.wait]).min();
            Ok(!full.is_for_all)
        }
    }
}

/// Makes a part wait that nobody has claimed, or its whole channel.
async fn hold(scope: &Scope, channel: ChannelId, id: DeliveryId, full: Full) -> Result<()> {
    let tx = scope.begin().await?;
    let until = tx.now.plus(full.wait);
    if full.is_for_all {
        channels::wait(&tx, channel, until).await?;
    } else {
        let held = tx.scope.update::<deliveries::Entity>().filter(deliveries::Column::Id.eq(id));
        let held = held.filter(deliveries::Column::Status.eq(DeliveryStatus::Pending));
        // Another replica may have put it off for longer.
        let held = held.filter(deliveries::Column::AvailableAt.lte(tx.now));
        held.col_expr(deliveries::Column::AvailableAt, Expr::value(until)).exec(tx.connection()).await?;
    }
    tx.commit().await
}

/// Claims a part, unless somebody else was faster. The intent is written before the call. The row of a whole message becomes
/// its `parts`, the first of which is claimed.
async fn claim(
    scope: &Scope,
    id: DeliveryId,
    facts: &Traits,
    parts: &[deliveries::Model],
) -> Result<Option<deliveries::Model>> {
    use deliveries::Column;
    let tx = scope.begin().await?;
    let until = tx.now.plus(facts.longest_send + MARGIN);
    let taken = tx.scope.update::<deliveries::Entity>().filter(Column::Id.eq(id));
    let mut taken = taken
        .filter(Column::Status.eq(DeliveryStatus::Pending))
        // Another replica may have tried it meanwhile, in vain.
        .filter(Column::AvailableAt.lte(tx.now))
        .col_expr(Column::Status, Expr::value(DeliveryStatus::Sending.as_str()))
        .col_expr(Column::Attempts, Expr::cust("attempts + 1"))
        .col_expr(Column::AvailableAt, Expr::value(until));
    if let Some(first) = parts.first() {
        // And another one may have split it.
        taken = taken
            .filter(Column::Draft.is_not_null())
            .col_expr(Column::Draft, Expr::value(None::<String>))
            .col_expr(Column::Text, Expr::value(first.text.clone()))
            .col_expr(Column::Plain, Expr::value(first.plain.clone()))
            .col_expr(Column::FirstFile, Expr::value(first.first_file))
            .col_expr(Column::Files, Expr::value(first.files));
    }
    let Some(taken) = taken.exec_with_returning(tx.connection()).await?.into_iter().next() else {
        return Ok(None);
    };
    add_rest(&tx, parts).await?;
    tx.commit().await?;
    Ok(Some(taken))
}

/// Sends a part once, and writes down what became of it. What goes out is read before the claim: if the database does not give it,
/// the part is still PENDING, waits a little, and keeps no other waiting. What stays SENDING may have been sent.
async fn attempt(scope: &Scope, sender: &Sender, due: deliveries::Model, room: Room) -> Result<()> {
    let facts = sender.transport.traits();
    let parts = split(scope, &due, facts).await?;
    let first = parts.first().unwrap_or(&due);
    let outgoing = match Outgoing::of(scope, first, facts.largest_out).await {
        Ok(outgoing) => outgoing,
        Err(problem) => {
            tracing::warn!(channel = due.channel_id.0, delivery = due.id.0, %problem, "deliveries.not_read");
            return hold(scope, due.channel_id, due.id, Full { wait: UNREAD, is_for_all: false }).await;
        }
    };
    let Some(part) = claim(scope, due.id, facts, &parts).await? else { return Ok(()) };
    let verdict = match outgoing {
        Ok(outgoing) => {
            let sent = outgoing.part();
            match tokio::time::timeout(facts.longest_send, sender.transport.send(&sent)).await {
                Ok(answer) => judge(answer, part.attempts, facts.idempotent_send, facts.reconciles),
                Err(_) => uncertain(&part, facts, "The vendor did not answer in time."),
            }
        }
        Err(unsent) => unsent,
    };
    drop(room);
    conclude(scope, sender, &part, verdict).await
}

/// Settles a part whose sender died during the call.
async fn abandoned(scope: &Scope, sender: &Sender, id: DeliveryId) -> Result<()> {
    let found = scope.find::<deliveries::Entity>().filter(deliveries::Column::Id.eq(id));
    let found = found.filter(deliveries::Column::Status.eq(DeliveryStatus::Sending));
    // Another replica may be sending it again.
    let found = found.filter(deliveries::Column::AvailableAt.lte(scope.core.clock.now()));
    let Some(part) = found.one(scope.core.db.read()).await? else { return Ok(()) };
    let verdict = uncertain(&part, sender.transport.traits(), "The service ended while this was being sent.");
    conclude(scope, sender, &part, verdict).await
}

/// Writes a verdict down. Where nobody knows, the vendor is asked first.
async fn conclude(scope: &Scope, sender: &Sender, part: &deliveries::Model, verdict: Verdict) -> Result<()> {
    let verdict = match verdict {
        Verdict::Ask(why) => match asked(scope, &*sender.transport, part).await? {
            Some(receipt) => Verdict::Sent(receipt),
            None => Verdict::Failed(DeliveryCode::UnknownOutcome, why),
        },
        verdict => verdict,
    };
    settle(scope, part, sender.seen, verdict).await
}

/// Asks the vendor whether it has a part. `None`: it has not, or can't tell.
async fn asked(
    scope: &Scope,
    transport: &dyn Transport,
    part: &deliveries::Model,
) -> Result<Option<Receipt>> {
    let Ok(outgoing) = Outgoing::of(scope, part, transport.traits().largest_out).await? else {
        return Ok(None);
    };
    Ok(transport.reconcile(&outgoing.part()).await.ok().flatten())
}

/// What goes out.
struct Outgoing {
    id: String,
    place: Place,
    text: Rendered,
    files: Vec<Attachment>,
    written_at: jiff::Timestamp,
}

impl Outgoing {
    /// Reads it. The inner error: it can't go out.
    async fn of(
        scope: &Scope,
        part: &deliveries::Model,
        largest: u64,
    ) -> Result<std::result::Result<Self, Verdict>> {
        let Some(place) = conversations::place_of(scope, part.message_id).await? else {
            let why = "The conversation has no target.".to_owned();
            return Ok(Err(Verdict::Unsent(DeliveryCode::TargetGone, why)));
        };
        let files = match files_of(scope, part, largest).await? {
            Ok(files) => files,
            Err(unsent) => return Ok(Err(unsent)),
        };
        let text = Rendered {
            text: part.text.clone().unwrap_or_default(),
            plain: part.plain.clone().unwrap_or_default(),
        };
        let id = format!("{}_{}", place.reference, part.id);
        let written_at = jiff::Timestamp::from_millisecond(place.written_at.0).unwrap_or_default();
        Ok(Ok(Self { id, place, text, files, written_at }))
    }

    /// As the transport takes it.
    fn part(&self) -> Part<'_> {
        let place = &self.place;
        Part {
            id: &self.id,
            conversation: &place.reference,
            scene: place.scene.as_ref(),
            target: &place.target,
            text: &self.text,
            speaker: place.speaker.as_deref(),
            reply_to: place.reply_to.as_deref(),
            refs: &place.refs,
            title: place.title.as_deref(),
            buttons: &[],
            files: &self.files,
            replaces: None,
            written_at: self.written_at,
        }
    }
}

/// The files that go with a part.
async fn files_of(
    scope: &Scope,
    part: &deliveries::Model,
    most: u64,
) -> Result<std::result::Result<Vec<Attachment>, Verdict>> {
    let which = (part.first_file.cast_unsigned(), part.files.cast_unsigned());
    if which.1 == 0 {
        return Ok(Ok(Vec::new()));
    }
    let found = conversations::of_message(scope, part.message_id, which, most).await?;
    Ok(found
        .into_iter()
        .map(|(file, content)| {
            let content = content.ok_or_else(|| {
                let name = &file.filename;
                let why = format!("{name} is longer than {most} bytes, which is the most that can be sent.");
                Verdict::Unsent(DeliveryCode::Refused, why)
            })?;
            Ok(Attachment { name: file.filename, media_type: file.mime_type, content: content.into() })
        })
        .collect())
}
