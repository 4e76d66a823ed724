//! Sends the parts of outgoing messages: at most [`queue::MAX_CONCURRENT`] of a channel at a time, each of a different conversation.
//!
//! Vendors' rate limits are checked first (`core/queue/send_limit.rs`): if a chat is at its limit, its part becomes due
//! later, which is not an attempt, and the others go on.

use std::{sync::Arc, time::Duration};

use muster_channels::{ActionCall, Attachment, Failure, Part, Receipt, Rendered, Traits, Transport};
use sea_orm::{ColumnTrait, QueryFilter, sea_query::Expr};
use serde_json::Value;

use super::{
    attempt_result::{AttemptResult, Repeatable, interpret},
    entity::deliveries,
    outcome::{result_without_answer, store_result},
    parts::{insert_rest, split},
    queries::{DuePart, due_channels, due_parts},
};
use crate::{
    base::{
        enums::{DeliveryCode, DeliveryStatus},
        ids::DeliveryId,
        problem::{Problem, Result},
    },
    core::{
        Core,
        access::Scope,
        queue::{self, Admission, Job, LaneKey, LimitReached, Outcome, SendPermit},
        resource_limits::Resource,
    },
    domain::{
        channels::{self, Sender},
        conversations::{self, DeliveryTarget},
    },
};

/// Starts sending the due parts of all channels.
pub async fn send_due(core: &Arc<Core>) -> Result<u64> {
    queue::start::<DuePart>(core, Resource::Lanes, due_channels(core).await?);
    Ok(0)
}

impl Job for DuePart {
    const KIND: &'static str = "DELIVERY";
    type Key = LaneKey;
    type Lane = Sender;
    type Permit = SendPermit;

    fn id(&self) -> i64 {
        self.part.id.0
    }

    async fn open(core: &Arc<Core>, lane: &LaneKey) -> Result<Option<Sender>> {
        Sender::open(core, *lane).await
    }

    async fn due(sender: &Sender) -> Result<Vec<Self>> {
        due_parts(&sender.scope, sender.channel, queue::MAX_CONCURRENT).await
    }

    /// Settles a part that its sender abandoned.
    async fn admit(&self, sender: &Sender) -> Result<Admission<SendPermit>> {
        if self.part.status != DeliveryStatus::Pending {
            settle_abandoned(sender, self.part.id).await?;
            return Ok(Admission::Settled);
        }
        match sender.take_permit(&self.target) {
            Ok(permit) => Ok(Admission::Run(permit)),
            Err(reached) => {
                postpone(sender, self.part.id, reached).await?;
                Ok(Admission::Wait(reached))
            }
        }
    }

    async fn run(self, sender: &Sender, permit: SendPermit) -> Result<Option<Outcome>> {
        attempt(sender, self.part, permit).await
    }
}

/// Postpones an unclaimed part, or its whole channel.
async fn postpone(sender: &Sender, id: DeliveryId, reached: LimitReached) -> Result<()> {
    let tx = sender.scope.begin().await?;
    let until = tx.now.plus(reached.wait);
    if reached.is_for_all {
        channels::delay_sending(&tx, sender.channel, until).await?;
    } else {
        let held = tx.scope.update::<deliveries::Entity>().filter(deliveries::Column::Id.eq(id));
        let held = held.filter(deliveries::Column::Status.eq(DeliveryStatus::Pending));
        // Another replica may have postponed it further.
        let held = held.filter(deliveries::Column::AvailableAt.lte(tx.now));
        held.col_expr(deliveries::Column::AvailableAt, Expr::value(until)).exec(tx.connection()).await?;
    }
    tx.commit().await
}

/// Claims a part before it is sent, unless another replica was faster. The row of a whole message becomes its `parts`,
/// the first of which is claimed.
async fn claim(
    scope: &Scope,
    id: DeliveryId,
    facts: &Traits,
    parts: &[deliveries::Model],
) -> Result<Option<deliveries::Model>> {
    use deliveries::Column;
    let tx = scope.begin().await?;
    let until = tx.now.plus(facts.longest_send + queue::CLAIM_MARGIN);
    let taken = tx.scope.update::<deliveries::Entity>().filter(Column::Id.eq(id));
    let mut taken = taken
        .filter(Column::Status.eq(DeliveryStatus::Pending))
        // Another replica may have tried and failed meanwhile.
        .filter(Column::AvailableAt.lte(tx.now))
        .col_expr(Column::Status, Expr::value(DeliveryStatus::Sending.as_str()))
        .col_expr(Column::Attempts, Expr::cust("attempts + 1"))
        .col_expr(Column::AvailableAt, Expr::value(until));
    if let Some(first) = parts.first() {
        // Another replica may have split it.
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
    insert_rest(&tx, parts).await?;
    tx.commit().await?;
    Ok(Some(taken))
}

/// Sends a part once and stores the result. The content is read before the claim: if that fails, the part is still
/// PENDING and is postponed without delaying others. A part that stays SENDING may have been sent.
async fn attempt(sender: &Sender, due: deliveries::Model, permit: SendPermit) -> Result<Option<Outcome>> {
    let (scope, facts) = (&sender.scope, sender.transport.traits());
    let parts = split(scope, &due, facts).await?;
    let first = parts.first().unwrap_or(&due);
    let outgoing = match OutgoingPart::read(scope, first, facts.largest_out).await {
        Ok(outgoing) => outgoing,
        Err(problem) => {
            let wait = Duration::from_secs(10);
            postpone(sender, due.id, LimitReached { wait, is_for_all: false }).await?;
            return Ok(Some(Outcome::Later(problem.to_string())));
        }
    };
    let Some(part) = claim(scope, due.id, facts, &parts).await? else { return Ok(None) };
    let result = match outgoing {
        Ok(outgoing) => {
            match tokio::time::timeout(facts.longest_send, outgoing.send(&*sender.transport)).await {
                Ok(answer) => interpret(answer, part.attempts, Repeatable::of(part.action.as_deref(), facts)),
                Err(_) => result_without_answer(&part, facts, "The vendor did not answer in time."),
            }
        }
        Err(unsent) => unsent,
    };
    drop(permit);
    conclude(sender, &part, result).await.map(Some)
}

/// Settles a part whose sender died during the call.
async fn settle_abandoned(sender: &Sender, id: DeliveryId) -> Result<()> {
    let scope = &sender.scope;
    let found = scope.find::<deliveries::Entity>().filter(deliveries::Column::Id.eq(id));
    let found = found.filter(deliveries::Column::Status.eq(DeliveryStatus::Sending));
    // Another replica may be sending it again.
    let found = found.filter(deliveries::Column::AvailableAt.lte(scope.core.clock.now()));
    let Some(part) = found.one(scope.core.db.read()).await? else { return Ok(()) };
    let result = result_without_answer(
        &part,
        sender.transport.traits(),
        "The service ended while this was being sent.",
    );
    conclude(sender, &part, result).await.map(drop)
}

/// Stores a result. If it is uncertain, asks the vendor first.
async fn conclude(sender: &Sender, part: &deliveries::Model, result: AttemptResult) -> Result<Outcome> {
    let scope = &sender.scope;
    let result = match result {
        AttemptResult::Ask(why) => match reconcile(scope, &*sender.transport, part).await? {
            Some(receipt) => AttemptResult::Sent(receipt),
            None => AttemptResult::Failed(DeliveryCode::UnknownOutcome, why),
        },
        result => result,
    };
    let outcome = result.outcome();
    store_result(scope, part, sender.seen, result).await?;
    Ok(outcome)
}

/// Asks the vendor whether it has a part. `None`: it does not have it, or can't tell.
async fn reconcile(
    scope: &Scope,
    transport: &dyn Transport,
    part: &deliveries::Model,
) -> Result<Option<Receipt>> {
    let Ok(outgoing) = OutgoingPart::read(scope, part, transport.traits().largest_out).await? else {
        return Ok(None);
    };
    Ok(transport.reconcile(&outgoing.part()).await.ok().flatten())
}

/// The content of a part to be sent.
struct OutgoingPart {
    id: String,
    place: DeliveryTarget,
    /// The name and the arguments, if it is an action.
    action: Option<(String, Value)>,
    text: Rendered,
    files: Vec<Attachment>,
    written_at: jiff::Timestamp,
}

impl OutgoingPart {
    /// Reads the content. The inner error says why the part can't be sent.
    async fn read(
        scope: &Scope,
        part: &deliveries::Model,
        largest: u64,
    ) -> Result<std::result::Result<Self, AttemptResult>> {
        let Some(place) = conversations::load_delivery_target(scope, part.message_id).await? else {
            let why = "The conversation has no target.".to_owned();
            return Ok(Err(AttemptResult::Unsent(DeliveryCode::TargetGone, why)));
        };
        let files = match read_files(scope, part, largest).await? {
            Ok(files) => files,
            Err(unsent) => return Ok(Err(unsent)),
        };
        let text = Rendered {
            text: part.text.clone().unwrap_or_default(),
            plain: part.plain.clone().unwrap_or_default(),
        };
        let action = match &part.action {
            Some(name) => {
                let arguments = muster_json::from_str(&text.text).map_err(Problem::internal)?;
                Some((name.clone(), arguments))
            }
            None => None,
        };
        let id = format!("{}_{}", place.reference, part.id);
        let written_at = jiff::Timestamp::from_millisecond(place.written_at.0).unwrap_or_default();
        Ok(Ok(Self { id, place, action, text, files, written_at }))
    }

    /// Sends the part, or performs the action, once.
    async fn send(&self, transport: &dyn Transport) -> std::result::Result<Receipt, Failure> {
        let Some((name, arguments)) = &self.action else { return transport.send(&self.part()).await };
        let DeliveryTarget { target, received, .. } = &self.place;
        transport.act(&ActionCall { id: &self.id, name, arguments, target, received }).await
    }

    /// The part in the transport's form.
    fn part(&self) -> Part<'_> {
        let place = &self.place;
        Part {
            id: &self.id,
            conversation: &place.reference,
            scene: place.scene.as_ref(),
            target: &place.target,
            text: &self.text,
            speaker: place.speaker.as_deref(),
            reply_to: place.received.first().map(String::as_str),
            refs: &place.refs,
            title: place.title.as_deref(),
            buttons: &[],
            files: &self.files,
            replaces: None,
            written_at: self.written_at,
        }
    }
}

/// Reads the files of a part.
async fn read_files(
    scope: &Scope,
    part: &deliveries::Model,
    most: u64,
) -> Result<std::result::Result<Vec<Attachment>, AttemptResult>> {
    let which = (part.first_file.cast_unsigned(), part.files.cast_unsigned());
    if which.1 == 0 {
        return Ok(Ok(Vec::new()));
    }
    let found = conversations::load_message_files(scope, part.message_id, which, most).await?;
    Ok(found
        .into_iter()
        .map(|(file, content)| {
            let content = content.ok_or_else(|| {
                let name = &file.filename;
                let why = format!("{name} is longer than {most} bytes, which is the most that can be sent.");
                AttemptResult::Unsent(DeliveryCode::Refused, why)
            })?;
            Ok(Attachment { name: file.filename, media_type: file.mime_type, content: content.into() })
        })
        .collect())
}
