//! Sends the messages about approvals, and closes them.
//!
//! A single statement claims a row, so that only one replica wins; the row is due again if the sender dies. A question
//! may therefore arrive twice, but is decided once. Messages count against the vendor's rate limits together with those
//! of agents.

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
        queue::{self, Admission, Job, LaneKey, Outcome, SendPermit, backoff},
        resource_limits::Resource,
        store::Tx,
    },
    domain::{
        approvals::{self, Shown},
        channels::{self, Sender},
    },
};

/// Starts to send the due messages of all channels.
pub async fn send_due(core: &Arc<Core>) -> Result<u64> {
    queue::start::<Model>(core, Resource::Asking, queries::due_channels(core).await?);
    Ok(0)
}

/// If a message is given up, the panel still shows the approval.
impl Job for Model {
    const KIND: &'static str = "APPROVAL";
    type Key = LaneKey;
    type Lane = Sender;
    type Permit = SendPermit;

    fn id(&self) -> i64 {
        self.id.0
    }

    async fn open(core: &Arc<Core>, lane: &LaneKey) -> Result<Option<Sender>> {
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

    async fn admit(&self, sender: &Sender) -> Result<Admission<SendPermit>> {
        let reached = match sender.take_permit(&self.target) {
            Ok(permit) => return Ok(Admission::Run(permit)),
            Err(reached) => reached,
        };
        let tx = sender.scope.begin().await?;
        let until = tx.now.plus(reached.wait);
        if reached.is_for_all {
            channels::delay_sending(&tx, sender.channel, until).await?;
        } else {
            update_row(&tx, self, (self.state, self.attempts, until)).await?;
        }
        tx.commit().await?;
        Ok(Admission::Wait(reached))
    }

    async fn run(self, sender: &Sender, permit: SendPermit) -> Result<Option<Outcome>> {
        let Some(row) = claim(sender, &self).await? else { return Ok(None) };
        let (scope, transport) = (&sender.scope, &*sender.transport);
        let result = match row.state {
            AskState::ToAsk => ask(scope, transport, &row).await?,
            _ => close(scope, transport, &row).await?,
        };
        drop(permit);
        let outcome = result.outcome();
        store_result(scope, &row, sender.seen, result).await?;
        Ok(Some(outcome))
    }
}

async fn claim(sender: &Sender, row: &Model) -> Result<Option<Model>> {
    let tx = sender.scope.begin().await?;
    let until = tx.now.plus(sender.transport.traits().longest_send + queue::CLAIM_MARGIN);
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

/// The result of an attempt.
enum AttemptResult {
    /// The message was sent. With the digest of the request as shown, if it may be decided in the chat.
    Asked(Receipt, Option<String>),
    /// There is nothing left to do.
    Closed,
    /// Not to be tried again.
    GivenUp(String),
    /// To be tried again after this time.
    Later(Duration, String),
    /// The channel must be switched off; the row waits.
    Channel(InactiveReason, String),
}

impl AttemptResult {
    fn outcome(&self) -> Outcome {
        match self {
            Self::Asked(..) => Outcome::Done,
            Self::Closed => Outcome::Obsolete,
            Self::GivenUp(why) => Outcome::GivenUp(why.clone()),
            Self::Later(_, why) | Self::Channel(_, why) => Outcome::Later(why.clone()),
        }
    }
}

async fn ask(scope: &Scope, transport: &dyn Transport, row: &Model) -> Result<AttemptResult> {
    let Some(shown) = approvals::load_shown(scope, row.approval_id).await? else {
        return Ok(AttemptResult::Closed);
    };
    let may = rights::scope_of_member(scope, row.channel_id, row.user_id).await?.is_some();
    if shown.status != ApprovalStatus::Pending || !may {
        return Ok(AttemptResult::Closed);
    }
    let facts = transport.traits();
    let terms = load_terms(scope, &shown).await?;
    let wording = wording::write_request(&shown, &terms, message_limit(facts));
    let id = format!("ask_{}", row.id);
    let part = Part { buttons: &wording.buttons, ..part(row, &wording.text, &id) };
    let answer = send(transport, &part).await;
    Ok(match answer {
        Ok(receipt) => AttemptResult::Asked(receipt, wording.is_decidable.then_some(shown.digest)),
        Err(failure) => interpret_failure(&failure, row.attempts),
    })
}

async fn close(scope: &Scope, transport: &dyn Transport, row: &Model) -> Result<AttemptResult> {
    let facts = transport.traits();
    let (Some(vendor_id), true) = (&row.vendor_id, facts.abilities.edits) else {
        return Ok(AttemptResult::Closed);
    };
    let Some(shown) = approvals::load_shown(scope, row.approval_id).await? else {
        return Ok(AttemptResult::Closed);
    };
    let terms = load_terms(scope, &shown).await?;
    let text = wording::write_closed(&shown, &terms, message_limit(facts));
    let id = format!("ask_{}_over", row.id);
    let part = Part { replaces: Some(vendor_id), ..part(row, &text, &id) };
    let answer = send(transport, &part).await;
    Ok(match answer {
        Ok(_) => AttemptResult::Closed,
        Err(failure) => interpret_failure(&failure, row.attempts),
    })
}

/// The longest message with buttons: Slack allows less than without buttons.
fn message_limit(facts: &Traits) -> (Dialect, Longest) {
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

/// Interprets a failure. `attempts` includes this one.
fn interpret_failure(failure: &Failure, attempts: i64) -> AttemptResult {
    let why = failure.to_string();
    match failure {
        Failure::RateLimited { wait, .. } => AttemptResult::Later(backoff::asked_for(*wait), why),
        Failure::Credentials(_) => AttemptResult::Channel(InactiveReason::AuthFailed, why),
        Failure::Gone(_) => AttemptResult::Channel(InactiveReason::Gone, why),
        Failure::NotSent(_) | Failure::Taken(_) | Failure::Unknown(_) => match backoff::after(attempts) {
            Some(wait) => AttemptResult::Later(wait, why),
            None => AttemptResult::GivenUp(why),
        },
        Failure::Refused(_)
        | Failure::NotPublic(_)
        | Failure::TargetGone(_)
        | Failure::TargetMoved { .. } => AttemptResult::GivenUp(why),
    }
}

/// Stores the result of an attempt, unless another replica has claimed the row since. If the approval was closed
/// meanwhile, the message is closed next. `seen`: `updated_at` of the channel settings used.
async fn store_result(scope: &Scope, row: &Model, seen: Timestamp, result: AttemptResult) -> Result<()> {
    let tx = scope.begin().await?;
    let (now, attempts) = (tx.now, row.attempts);
    match result {
        AttemptResult::Asked(receipt, digest) => {
            // Includes the chat that it was sent to: the member may have linked another one meanwhile.
            queries::record_asked(&tx, row, receipt.vendor_id, digest).await?;
        }
        AttemptResult::Closed | AttemptResult::GivenUp(_) => {
            update_row(&tx, row, (AskState::Closed, attempts, now)).await?;
        }
        AttemptResult::Later(wait, _) => update_row(&tx, row, (row.state, attempts, now.plus(wait))).await?,
        AttemptResult::Channel(reason, why) => {
            // The channel before the row: the order in which an edit of the channel locks them.
            channels::switch_off(&tx, row.channel_id, seen, reason, &why).await?;
            update_row(&tx, row, (row.state, attempts - 1, now)).await?;
        }
    }
    tx.commit().await
}

async fn update_row(tx: &Tx, row: &Model, (state, attempts, at): (AskState, i64, Timestamp)) -> Result<()> {
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

pub(super) async fn load_terms(scope: &Scope, shown: &Shown) -> Result<Terms> {
    let found = queries::ask_settings(scope, shown.agent).await?;
    let found = found.ok_or_else(|| Problem::internal(anyhow::anyhow!("an organization without a row")))?;
    Ok(Terms {
        risk_limit: found.chat_risk_limit,
        agent: found.agent_name,
        link: approval_link(scope, shown.id),
    })
}

/// The address of an approval in the panel.
fn approval_link(scope: &Scope, id: ApprovalId) -> String {
    format!("{}/o/{}/approvals/{id}", scope.core.config.links(), scope.org)
}
