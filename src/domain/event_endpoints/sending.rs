//! Sends events: at most [`queue::MAX_CONCURRENT`] of an endpoint at a time, each of a different subject. A receiver recognizes a
//! repetition by `webhook-id`, so an event whose sender died is sent again.

use std::sync::Arc;

use muster_channels::{Failure, LONGEST_POST, post_signed};
use sea_orm::{ColumnTrait, QueryFilter, sea_query::Expr};
use secrecy::SecretString;
use tokio::time::timeout;

use super::{
    PREVIOUS_SECRET, SECRET,
    entity::{
        event_deliveries::{Column, Entity, Model},
        event_endpoints,
    },
    outcome::store_result,
    payload::write_body,
    queries, seal_context,
};
use crate::{
    base::{
        enums::EventDeliveryStatus,
        ids::EventEndpointId,
        problem::{Problem, Result},
    },
    core::{
        Core,
        access::Scope,
        queue::{self, Admission, Job, LaneKey, Outcome},
        resource_limits::Resource,
    },
};

/// Starts sending the due events of all endpoints.
pub async fn send_due(core: &Arc<Core>) -> Result<u64> {
    queue::start::<Model>(core, Resource::Events, queries::due_endpoints(core).await?);
    Ok(0)
}

/// An endpoint that is on.
pub struct Receiver {
    pub(super) scope: Scope,
    pub(super) endpoint: event_endpoints::Model,
    /// Each of them signs.
    secrets: Vec<SecretString>,
}

impl Receiver {
    async fn open(core: &Arc<Core>, lane: &LaneKey) -> Result<Option<Self>> {
        use event_endpoints::Column;
        let scope = Scope::system(core, lane.organization_id);
        let found = scope.find::<event_endpoints::Entity>().filter(Column::IsActive.eq(true));
        let found = found.filter(Column::Id.eq(EventEndpointId(lane.lane_id)));
        let Some(endpoint) = found.one(core.db.read()).await? else { return Ok(None) };
        let open =
            |sealed: &[u8], field| core.sealing.open(sealed, &seal_context(scope.org, endpoint.id, field));
        let mut secrets = vec![open(&endpoint.secret_sealed, SECRET).map_err(Problem::internal)?];
        let is_valid = endpoint.previous_until.is_some_and(|until| until > core.clock.now());
        if let Some(previous) = endpoint.previous_secret_sealed.as_ref().filter(|_| is_valid) {
            secrets.push(open(previous, PREVIOUS_SECRET).map_err(Problem::internal)?);
        }
        Ok(Some(Self { scope, endpoint, secrets }))
    }
}

impl Job for Model {
    const KIND: &'static str = "EVENT";
    type Key = LaneKey;
    type Lane = Receiver;
    type Permit = ();

    fn id(&self) -> i64 {
        self.id.0
    }

    async fn open(core: &Arc<Core>, lane: &LaneKey) -> Result<Option<Receiver>> {
        Receiver::open(core, lane).await
    }

    async fn due(to: &Receiver) -> Result<Vec<Self>> {
        queries::due_events(&to.scope, to.endpoint.id, queue::MAX_CONCURRENT).await
    }

    async fn admit(&self, _: &Receiver) -> Result<Admission<()>> {
        Ok(Admission::Run(()))
    }

    async fn run(self, to: &Receiver, (): ()) -> Result<Option<Outcome>> {
        let Some(event) = claim(&to.scope, &self).await? else { return Ok(None) };
        let sent = timeout(LONGEST_POST, post(to, &event)?).await;
        let sent =
            sent.unwrap_or_else(|_| Err(Failure::NotSent("The receiver did not answer in time.".into())));
        store_result(to, &event, sent).await.map(Some)
    }
}

/// The request of an event, with the same id for every attempt.
fn post<'a>(
    to: &'a Receiver,
    event: &Model,
) -> Result<impl Future<Output = std::result::Result<(), Failure>> + Send + use<'a>> {
    let (network, url) = (&to.scope.core.network, &to.endpoint.url);
    let (id, body) = (format!("evt_{}", event.id), write_body(event.r#type, event.created_at, &event.data)?);
    Ok(async move { post_signed(network, url, &id, &to.secrets, body).await })
}

/// Claims an event before it is sent, unless another replica was faster.
async fn claim(scope: &Scope, due: &Model) -> Result<Option<Model>> {
    let tx = scope.begin().await?;
    let until = tx.now.plus(LONGEST_POST.saturating_add(queue::CLAIM_MARGIN));
    let taken = tx.scope.update::<Entity>().filter(Column::Id.eq(due.id));
    let taken = taken
        .filter(Column::Status.eq(EventDeliveryStatus::Pending))
        .filter(Column::Attempts.eq(due.attempts))
        .filter(Column::AvailableAt.eq(due.available_at))
        .col_expr(Column::Attempts, Expr::cust("attempts + 1"))
        .col_expr(Column::AvailableAt, Expr::value(until))
        .col_expr(Column::Error, Expr::value(None::<String>));
    let taken = taken.exec_with_returning(tx.connection()).await?.pop();
    tx.commit().await?;
    Ok(taken)
}
