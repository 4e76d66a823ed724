//! Sending what is asked, and taking its buttons away.
//!
//! A row is claimed in one statement that only one replica wins, and is due again if its sender dies. So a question may arrive
//! twice; it is decided once. It counts for the vendor's limits as what agents say does, through the same bot.

use std::{sync::Arc, time::Duration};

use muster_channels::{Dialect, Failure, Longest, Part, Receipt, Rendered, Traits, Transport};
use sea_orm::{ColumnTrait, Condition, QueryFilter, QueryOrder, QuerySelect, sea_query::Expr};

use super::{
    entity::approval_asks::{Column, Entity, Model},
    queries, rights,
    wording::{self, Terms},
};
use crate::{
    base::{
        enums::{ApprovalStatus, AskState, InactiveReason},
        ids::ApprovalId,
        problem::{Problem, Result},
        time::Timestamp,
    },
    core::{
        Core,
        access::Scope,
        queue::{self, Admission, ChannelLane, Job, Outcome, Room, backoff},
        resource_limits::Resource,
        store::Tx,
    },
    domain::{
        approvals::{self, Shown},
        channels::{self, Sender},
    },
};

/// Starts to send what is due in all channels.
pub async fn send_due(core: &Arc<Core>) -> Result<u64> {
    queue::start::<Model>(core, Resource::Asking, queries::due_channels(core).await?);
    Ok(0)
}

/// People find a request that is given up in the panel.
impl Job for Model {
    const KIND: &'static str = "APPROVAL";
    type Key = ChannelLane;
    type Lane = Sender;
    type Room = Room;

    fn id(&self) -> i64 {
        self.id.0
    }

    async fn open(core: &Arc<Core>, lane: &ChannelLane) -> Result<Option<Sender>> {
        Sender::open(core, *lane).await
    }

    async fn due(sender: &Sender) -> Result<Vec<Self>> {
        let (scope, now) = (&sender.scope, sender.scope.core.clock.now());
        let due =
            Condition::any().add(Column::State.eq(AskState::ToAsk)).add(Column::State.eq(AskState::ToClose));
        let due = scope.find::<Entity>().filter(Column::ChannelId.eq(sender.channel)).filter(due);
        let due = due.filter(Column::AvailableAt.lte(now)).order_by_asc(Column::AvailableAt).limit(1);
        Ok(due.all(scope.core.db.read()).await?)
    }

    async fn admit(&self, sender: &Sender) -> Result<Admission<Room>> {
        let full = match sender.take_room(&self.target) {
            Ok(room) => return Ok(Admission::Run(room)),
            Err(full) => full,
        };
        let tx = sender.scope.begin().await?;
        let until = tx.now.plus(full.wait);
        if full.is_for_all {
            channels::wait(&tx, sender.channel, until).await?;
        } else {
            write(&tx, self, (self.state, self.attempts, until)).await?;
        }
        tx.commit().await?;
        Ok(Admission::Wait(full))
    }

    async fn run(self, sender: &Sender, room: Room) -> Result<Option<Outcome>> {
        let Some(row) = claim(sender, &self).await? else { return Ok(None) };
        let (scope, transport) = (&sender.scope, &*sender.transport);
        let step = match row.state {
            AskState::ToAsk => ask(scope, transport, &row).await?,
            _ => close(scope, transport, &row).await?,
        };
        drop(room);
        let outcome = step.outcome();
        settle(scope, &row, sender.seen, step).await?;
        Ok(Some(outcome))
    }
}

async fn claim(sender: &Sender, row: &Model) -> Result<Option<Model>> {
    let tx = sender.scope.begin().await?;
    let until = tx.now.plus(sender.transport.traits().longest_send + queue::MARGIN);
    let taken = tx.scope.update::<Entity>().filter(Column::Id.eq(row.id));
    let taken = taken
        .filter(Column::AvailableAt.eq(row.available_at))
        .filter(Column::State.eq(row.state))
        .col_expr(Column::Attempts, Expr::cust("attempts + 1"))
        .col_expr(Column::AvailableAt, Expr::value(until));
    let taken = taken.exec_with_returning(tx.connection()).await?.pop();
    tx.commit().await?;
    Ok(taken)
}

/// What an attempt means for its row.
enum Step {
    /// The question is there; with what was shown, if it may be decided.
    Asked(Receipt, Option<String>),
    /// Nothing is left to do.
    Closed,
    /// Not to be tried again.
    GivenUp(String),
    /// Another attempt, after this.
    Later(Duration, String),
    /// The channel is over for now; the row waits.
    Channel(InactiveReason, String),
}

impl Step {
    fn outcome(&self) -> Outcome {
        match self {
            Self::Asked(..) => Outcome::Done,
            Self::Closed => Outcome::Over,
            Self::GivenUp(why) => Outcome::GivenUp(why.clone()),
            Self::Later(_, why) | Self::Channel(_, why) => Outcome::Later(why.clone()),
        }
    }
}

async fn ask(scope: &Scope, transport: &dyn Transport, row: &Model) -> Result<Step> {
    let Some(shown) = approvals::load_shown(scope, row.approval_id).await? else { return Ok(Step::Closed) };
    let may = rights::of_member(scope, row.channel_id, row.user_id).await?.is_some();
    if shown.status != ApprovalStatus::Pending || !may {
        return Ok(Step::Closed);
    }
    let facts = transport.traits();
    let terms = terms(scope, &shown).await?;
    let wording = wording::asking(&shown, &terms, room(facts));
    let id = format!("ask_{}", row.id);
    let part = Part { buttons: &wording.buttons, ..part(row, &wording.text, &id) };
    let answer = send(transport, &part).await;
    Ok(match answer {
        Ok(receipt) => Step::Asked(receipt, wording.is_decidable.then_some(shown.digest)),
        Err(failure) => after(&failure, row.attempts),
    })
}

async fn close(scope: &Scope, transport: &dyn Transport, row: &Model) -> Result<Step> {
    let facts = transport.traits();
    let (Some(vendor_id), true) = (&row.vendor_id, facts.actions.edits) else { return Ok(Step::Closed) };
    let Some(shown) = approvals::load_shown(scope, row.approval_id).await? else { return Ok(Step::Closed) };
    let terms = terms(scope, &shown).await?;
    let text = wording::ended(&shown, &terms, room(facts));
    let id = format!("ask_{}_over", row.id);
    let part = Part { replaces: Some(vendor_id), ..part(row, &text, &id) };
    let answer = send(transport, &part).await;
    Ok(match answer {
        Ok(_) => Step::Closed,
        Err(failure) => after(&failure, row.attempts),
    })
}

/// How long a message with buttons may be: Slack takes less than without.
fn room(facts: &Traits) -> (Dialect, Longest) {
    (facts.dialect, Longest { count: facts.longest.count.min(3000), ..facts.longest })
}

async fn send(transport: &dyn Transport, part: &Part<'_>) -> std::result::Result<Receipt, Failure> {
    let sent = tokio::time::timeout(transport.traits().longest_send, transport.send(part)).await;
    sent.unwrap_or_else(|_| Err(Failure::Unknown("The vendor did not answer in time.".into())))
}

fn part<'a>(row: &'a Model, text: &'a Rendered, id: &'a str) -> Part<'a> {
    Part {
        id,
        conversation: id,
        scene: None,
        target: &row.target,
        text,
        speaker: None,
        reply_to: None,
        refs: &[],
        title: None,
        buttons: &[],
        files: &[],
        replaces: None,
        written_at: jiff::Timestamp::from_millisecond(row.created_at.0).unwrap_or_default(),
    }
}

/// What a failure means. `attempts` counts this one.
fn after(failure: &Failure, attempts: i64) -> Step {
    let why = failure.to_string();
    match failure {
        Failure::RateLimited { wait, .. } => Step::Later(backoff::asked_for(*wait), why),
        Failure::Credentials(_) => Step::Channel(InactiveReason::AuthFailed, why),
        Failure::Gone(_) => Step::Channel(InactiveReason::Gone, why),
        Failure::NotSent(_) | Failure::Taken(_) | Failure::Unknown(_) => match backoff::after(attempts) {
            Some(wait) => Step::Later(wait, why),
            None => Step::GivenUp(why),
        },
        Failure::Refused(_) | Failure::TargetGone(_) | Failure::TargetMoved { .. } => Step::GivenUp(why),
    }
}

/// Writes down what became of a row, unless someone else has claimed it since. One that has ended meanwhile is closed next.
/// `seen`: of the settings that it was sent with.
async fn settle(scope: &Scope, row: &Model, seen: Timestamp, step: Step) -> Result<()> {
    let tx = scope.begin().await?;
    let (now, attempts) = (tx.now, row.attempts);
    match step {
        Step::Asked(receipt, digest) => {
            // With the chat that it went to: its member may have linked another meanwhile.
            queries::note_asked(&tx, row, receipt.vendor_id, digest).await?;
        }
        Step::Closed | Step::GivenUp(_) => write(&tx, row, (AskState::Closed, attempts, now)).await?,
        Step::Later(wait, _) => write(&tx, row, (row.state, attempts, now.plus(wait))).await?,
        Step::Channel(reason, why) => {
            // The channel first, as an edit of it locks them.
            channels::fail(&tx, row.channel_id, seen, reason, &why).await?;
            write(&tx, row, (row.state, attempts - 1, now)).await?;
        }
    }
    tx.commit().await
}

async fn write(tx: &Tx, row: &Model, (state, attempts, at): (AskState, i64, Timestamp)) -> Result<()> {
    let written = tx.scope.update::<Entity>().filter(Column::Id.eq(row.id));
    let written = written
        .filter(Column::AvailableAt.eq(row.available_at))
        .filter(Column::State.eq(row.state))
        .col_expr(Column::State, Expr::value(state.as_str()))
        .col_expr(Column::Attempts, Expr::value(attempts))
        .col_expr(Column::AvailableAt, Expr::value(at));
    written.exec(tx.connection()).await?;
    Ok(())
}

/// On what terms something is asked.
pub(super) async fn terms(scope: &Scope, shown: &Shown) -> Result<Terms> {
    let found = queries::asking(scope, shown.agent).await?;
    let found = found.ok_or_else(|| Problem::internal(anyhow::anyhow!("an organization without a row")))?;
    Ok(Terms { risk_limit: found.chat_risk_limit, agent: found.agent_name, link: link(scope, shown.id) })
}

/// Where the panel shows an approval.
fn link(scope: &Scope, id: ApprovalId) -> String {
    format!("{}/o/{}/approvals/{id}", scope.core.config.links(), scope.org)
}
