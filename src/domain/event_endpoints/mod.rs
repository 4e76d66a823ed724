//! Event endpoints: addresses to which an organization's events are posted, signed by
//! [Standard Webhooks](https://www.standardwebhooks.com/). Events are [jobs](crate::core::queue).
//!
//! ```text
//! domain event ──▶ a row for each endpoint that wants it ──commit──▶ its lane ──▶ posted in order ──▶ settled
//! ```
//!
//! A payload has ids and a link, never content. Events of one subject (a conversation, an approval, an agent, a channel)
//! are sent in their order; other subjects don't wait for them. A repetition has the same `webhook-id`.
//!
//! States of an event: PENDING; WAITING while its endpoint is off; SENT; FAILED, until a person sends it again. An
//! endpoint is on, or off with a reason: a person, a receiver that is gone, or nothing accepted for five days. Events are
//! deleted after 30 days (`jobs/retention.rs`). Permission: `organization.edit`; only a person changes endpoints, because
//! they tell another system what happens in the organization.
//!
//! - `payload.rs`: what is sent, and its schema; `recording.rs`: queues events; `sending.rs`: sends them; `outcome.rs`:
//!   stores the result, and switches endpoints off; `letter.rs`: the mail about that.

mod entity;
mod input;
mod letter;
mod outcome;
mod payload;
mod queries;
mod recording;
mod sending;

use std::time::Duration;

use async_graphql::MaybeUndefined;
use base64::{Engine as _, prelude::BASE64_STANDARD};
use sea_orm::{
    ActiveModelTrait, ColumnTrait, IntoActiveModel, NotSet, PaginatorTrait, QueryFilter, Set, sea_query::Expr,
};
use secrecy::SecretString;
use serde_json::{Value, json};

use self::entity::{event_deliveries, event_endpoints};
pub use self::{
    input::{CreateEventEndpointInput, UpdateEventEndpointInput},
    letter::compose_letter,
    payload::schema,
    queries::{EVENT_DUE, waiting},
    recording::{
        agent_failed, approval_decided, approval_raised, channel_deactivated, messages_added, turn_ended,
    },
    sending::send_due,
};
use crate::{
    base::{
        enums::{ChangeOp, EventDeliveryStatus, EventType, InactiveReason, RecordKind},
        ids::{EventDeliveryId, EventEndpointId, OrgId},
        problem::{Code, Problem, Result, Violation},
        time::Timestamp,
    },
    core::{
        Core,
        access::{Caller, Scope},
        audit, queue,
        sealing::{SealContext, random_bytes},
        store::Tx,
    },
    domain::{edits, locks::lock_record, orgs, patch::patch_required},
};

/// The maximum number of endpoints of an organization: each event is stored and sent for each of them.
const MOST: u64 = 20;
/// The maximum number of events that one call replays. They are updated in one statement.
const MAX_REPLAYED: i64 = 10_000;

/// The fields of the sealed secrets.
const SECRET: &str = "secret";
const PREVIOUS_SECRET: &str = "previous_secret";

/// Creates an endpoint. The secret in the answer is shown only once.
///
/// # Errors
/// `VALIDATION_FAILED` for an address that can't be called, no types, or too many endpoints; `PERMISSION_DENIED` for a
/// service token.
pub async fn create(scope: &Scope, new: CreateEventEndpointInput) -> Result<(EventEndpointId, SecretString)> {
    require_person(scope)?;
    Problem::fail_if_any(check_url(scope, &new.url).into_iter().chain(check_types(&new.types)).collect())?;
    let tx = scope.begin().await?;
    // Two callers can't both take the last place.
    orgs::lock(&tx).await?;
    if scope.find::<event_endpoints::Entity>().count(tx.connection()).await? >= MOST {
        let detail = format!("The organization has {MOST} event endpoints already. Delete one first.");
        return Err(Problem::invalid_at("/url", "TOO_MANY", detail));
    }
    let (name, types) = (new.name.trim().to_owned(), in_order(&new.types));
    let row = event_endpoints::ActiveModel {
        organization_id: Set(scope.org),
        id: NotSet,
        name: Set(name.clone()),
        url: Set(new.url.trim().to_owned()),
        types: Set(types.clone()),
        // The secret is sealed for its own row, so the row needs an id first.
        secret_sealed: Set(Vec::new()),
        is_active: Set(true),
        created_by: Set(scope.request.caller.user()),
        created_at: Set(tx.now),
        updated_at: Set(tx.now),
        ..Default::default()
    };
    let row = row.insert(tx.connection()).await?;
    let (id, secret) = (row.id, new_secret());
    let mut row = row.into_active_model();
    row.secret_sealed = Set(seal(&tx, id, SECRET, &secret));
    row.update(tx.connection()).await?;
    record(&tx, (ChangeOp::Created, "createEventEndpoint"), id, json!({ "name": name, "types": types }));
    tx.commit().await?;
    Ok((id, secret))
}

/// Edits an endpoint. Events that wait are sent at once if it is switched on or gets another address. An edit that
/// changes nothing does nothing.
///
/// # Errors
/// `NOT_FOUND`; `VALIDATION_FAILED` as for a new endpoint; `PERMISSION_DENIED` for a service token.
pub async fn update(scope: &Scope, id: EventEndpointId, edit: UpdateEventEndpointInput) -> Result<()> {
    require_person(scope)?;
    let url = edit.url.value().and_then(|url| check_url(scope, url));
    let types = edit.types.value().and_then(|types| check_types(types));
    Problem::fail_if_any(url.into_iter().chain(types).collect())?;
    let tx = scope.begin().await?;
    let before = load(&tx, id).await?;
    let mut row = before.clone().into_active_model();
    patch_required(&mut row.name, edit.name.map_value(|name| name.trim().to_owned()));
    patch_required(&mut row.url, edit.url.map_value(|url| url.trim().to_owned()));
    patch_required(&mut row.types, edit.types.map_value(|types| in_order(&types)));
    if let MaybeUndefined::Value(is_active) = edit.is_active
        && is_active != before.is_active
    {
        row.is_active = Set(is_active);
        row.inactive_reason = Set((!is_active).then_some(InactiveReason::Manual));
        row.inactive_detail = Set(None);
    }
    if !row.is_changed() {
        return Ok(());
    }
    let (is_on, is_moved) = (*row.is_active.as_ref(), *row.url.as_ref() != before.url);
    if is_moved || is_on != before.is_active {
        // The count of days starts over.
        row.failing_since = Set(None);
    }
    let changes = audit::changed(&before, &row);
    row.updated_at = Set(tx.now);
    row.update(tx.connection()).await?;
    if is_on && (is_moved || !before.is_active) {
        queries::release(&tx, id).await?;
        queue::wake_after(&scope.core, tx.connection());
    } else if before.is_active && !is_on {
        queries::hold(&tx, id).await?;
    }
    edits::raise(&tx, RecordKind::EventEndpoint, id).await?;
    record(&tx, (ChangeOp::Updated, "updateEventEndpoint"), id, changes);
    tx.commit().await
}

/// Issues a new secret for an endpoint, shown only once. The old one signs as well for `overlap`.
///
/// # Errors
/// `NOT_FOUND`; `PERMISSION_DENIED` for a service token.
pub async fn rotate_secret(scope: &Scope, id: EventEndpointId, overlap: Duration) -> Result<SecretString> {
    require_person(scope)?;
    let tx = scope.begin().await?;
    let before = load(&tx, id).await?;
    // A secret that can't be opened need not be kept.
    let old = scope.core.sealing.open(&before.secret_sealed, &seal_context(scope.org, id, SECRET)).ok();
    let old = old.filter(|_| !overlap.is_zero()).map(|old| seal(&tx, id, PREVIOUS_SECRET, &old));
    let secret = new_secret();
    let mut row = before.clone().into_active_model();
    row.secret_sealed = Set(seal(&tx, id, SECRET, &secret));
    row.previous_until = Set(old.as_ref().map(|_| tx.now.plus(overlap)));
    row.previous_secret_sealed = Set(old);
    let changes = audit::changed(&before, &row);
    row.updated_at = Set(tx.now);
    row.update(tx.connection()).await?;
    record(&tx, (ChangeOp::Updated, "rotateEventEndpointSecret"), id, changes);
    tx.commit().await?;
    Ok(secret)
}

/// Deletes an endpoint with its events.
///
/// # Errors
/// `NOT_FOUND`; `PERMISSION_DENIED` for a service token.
pub async fn delete(scope: &Scope, id: EventEndpointId) -> Result<()> {
    require_person(scope)?;
    let tx = scope.begin().await?;
    let endpoint = load(&tx, id).await?;
    let gone = scope.delete::<event_endpoints::Entity>().filter(event_endpoints::Column::Id.eq(id));
    gone.exec(tx.connection()).await?;
    record(&tx, (ChangeOp::Deleted, "deleteEventEndpoint"), id, json!({ "name": endpoint.name }));
    tx.commit().await
}

/// Sends an event again, or sooner.
///
/// # Errors
/// `NOT_FOUND`; `CONFLICT` if the endpoint is off; `PERMISSION_DENIED` for a service token.
pub async fn retry(scope: &Scope, id: EventDeliveryId) -> Result<()> {
    use event_deliveries::Column;
    require_person(scope)?;
    let tx = scope.begin().await?;
    let found =
        scope.find::<event_deliveries::Entity>().filter(Column::Id.eq(id)).one(tx.connection()).await?;
    let event = found.ok_or_else(|| Problem::not_found("event delivery", id))?;
    let endpoint = load(&tx, event.endpoint_id).await?;
    if !endpoint.is_active {
        return Err(Problem::new(Code::Conflict, "The endpoint is off. Switch it on first."));
    }
    let queued = scope.update::<event_deliveries::Entity>().filter(Column::Id.eq(id));
    let queued = queued
        .col_expr(Column::Status, Expr::value(EventDeliveryStatus::Pending.as_str()))
        .col_expr(Column::Attempts, Expr::value(0_i64))
        .col_expr(Column::AvailableAt, Expr::value(tx.now))
        .col_expr(Column::Error, Expr::value(None::<String>))
        .col_expr(Column::SentAt, Expr::value(None::<Timestamp>));
    queued.exec(tx.connection()).await?;
    let changes = json!({ "event_delivery": id });
    record(&tx, (ChangeOp::Updated, "retryEventDelivery"), endpoint.id, changes);
    queue::wake_after(&scope.core, tx.connection());
    tx.commit().await
}

/// Sends the settled events of a period again, in their order. `until` is now by default. Returns their number.
///
/// # Errors
/// `NOT_FOUND`; `VALIDATION_FAILED` for more than [`MAX_REPLAYED`]; `PERMISSION_DENIED` for a service token.
pub async fn replay(
    scope: &Scope,
    id: EventEndpointId,
    from: Timestamp,
    until: Option<Timestamp>,
) -> Result<i64> {
    require_person(scope)?;
    let tx = scope.begin().await?;
    let endpoint = load(&tx, id).await?;
    let until = until.unwrap_or(tx.now);
    let count = queries::count_settled(&tx, id, (from, until)).await?;
    if count > MAX_REPLAYED {
        let detail = format!(
            "There are {count} events in this time, and at most {MAX_REPLAYED} can be replayed at a time. Choose a shorter one."
        );
        return Err(Problem::invalid_parameter("from", "TOO_MANY", detail));
    }
    let status = if endpoint.is_active { EventDeliveryStatus::Pending } else { EventDeliveryStatus::Waiting };
    queries::replay(&tx, id, (from, until), status).await?;
    let changes = json!({ "from": from, "until": until, "events": count });
    record(&tx, (ChangeOp::Updated, "replayEvents"), id, changes);
    queue::wake_after(&scope.core, tx.connection());
    tx.commit().await?;
    Ok(count)
}

/// Refuses service tokens.
fn require_person(scope: &Scope) -> Result<()> {
    if matches!(scope.request.caller, Caller::Token(_)) {
        let detail = "Only a person can change event endpoints, not a service token.";
        return Err(scope.refused(Problem::new(Code::PermissionDenied, detail)));
    }
    Ok(())
}

/// A name is resolved only when an event is sent: it may lead elsewhere by then.
fn check_url(scope: &Scope, url: &str) -> Option<Violation> {
    let error = scope.core.network.guard.check(url.trim()).err()?;
    Some(Violation::at("/url", "NOT_ALLOWED", format!("This address can't be called: {error}.")))
}

fn check_types(types: &[EventType]) -> Option<Violation> {
    let detail = "An endpoint needs at least one type of events.";
    types.is_empty().then(|| Violation::at("/types", "TOO_SHORT", detail))
}

/// The types without duplicates, in the order of the documentation.
fn in_order(types: &[EventType]) -> Value {
    EventType::ALL.iter().filter(|kind| types.contains(kind)).map(|kind| json!(kind)).collect()
}

/// A secret of 256 random bits, in the form of Standard Webhooks.
fn new_secret() -> SecretString {
    format!("whsec_{}", BASE64_STANDARD.encode(random_bytes::<32>())).into()
}

/// The context that a secret is sealed for.
fn seal_context(org: OrgId, id: EventEndpointId, field: &'static str) -> SealContext<'static> {
    SealContext::new(org, "event_endpoints", id.0, field)
}

fn seal(tx: &Tx, id: EventEndpointId, field: &'static str, secret: &SecretString) -> Vec<u8> {
    tx.scope.core.sealing.seal(secret, &seal_context(tx.scope.org, id, field))
}

/// The address of a page of the organization in the panel.
fn page_link(core: &Core, org: OrgId, page: &str) -> String {
    format!("{}/o/{org}/{page}", core.config.links())
}

/// Loads an endpoint and locks it: before its events, as their senders do.
async fn load(tx: &Tx, id: EventEndpointId) -> Result<event_endpoints::Model> {
    lock_record(tx, RecordKind::EventEndpoint, id.0).await?;
    let found = tx.scope.find::<event_endpoints::Entity>().filter(event_endpoints::Column::Id.eq(id));
    found.one(tx.connection()).await?.ok_or_else(|| Problem::not_found("event endpoint", id))
}

fn record(tx: &Tx, (op, operation): (ChangeOp, &'static str), id: EventEndpointId, changes: Value) {
    audit::record(tx, audit::Entry { operation, op, kind: RecordKind::EventEndpoint, id: id.0, changes });
}
