//! Event endpoints in the GraphQL schema. Only the answers that issue a secret show it.

use std::{sync::LazyLock, time::Duration};

use async_graphql::{Context, Json, Object};
use serde_json::Value;

use super::people::Member;
use crate::{
    base::{
        enums::{EventDeliveryStatus, EventType, InactiveReason, RecordKind, SortOrder},
        ids::{EventDeliveryId, EventEndpointId, OrgId, UserId},
        permission::Permission,
        time::Timestamp,
    },
    domain::{
        event_endpoints::{self, CreateEventEndpointInput, UpdateEventEndpointInput},
        service_tokens::{MAX_OVERLAP_SECONDS, OVERLAP},
    },
    read::{Feed, Keys, List, One, Record, Rows, Spec},
    resolvers::{
        Answer, Enter, answer,
        bounds::{bounds, items, length, range},
        permit::permit,
    },
};

pub struct EventEndpoint;

impl Record for EventEndpoint {
    fn spec() -> &'static Spec {
        static SPEC: LazyLock<Spec> = LazyLock::new(|| {
            endpoint_fields("EventEndpoint", "An address that receives events of the organization.")
                .revision(RecordKind::EventEndpoint)
        });
        &SPEC
    }
}

/// An event endpoint together with its secret, which is shown only once.
pub struct IssuedEventEndpoint;

impl Record for IssuedEventEndpoint {
    fn spec() -> &'static Spec {
        static SPEC: LazyLock<Spec> = LazyLock::new(|| {
            let about = "An event endpoint together with its secret, which is shown only once.";
            endpoint_fields("IssuedEventEndpoint", about).secret(
                "secret",
                "The secret that verifies signatures by Standard Webhooks. It is not shown again.",
            )
        });
        &SPEC
    }
}

fn endpoint_fields(type_name: &'static str, about: &'static str) -> Spec {
    Spec::new(type_name, "event_endpoints t", about)
        .permission(Permission::OrganizationEdit)
        .column::<EventEndpointId>("id", "Identifies the endpoint.")
        .column::<String>("name", "What it is for.")
        .column::<String>("url", "The receiver's address.")
        .column::<Vec<EventType>>("types", "The types of events that it receives.")
        .column::<bool>("is_active", "Whether events are sent to it. While they are not, they wait for up to 30 days.")
        .column::<Option<InactiveReason>>("inactive_reason", "Why no events are sent to it.")
        .column::<Option<String>>("inactive_detail", "The result of the last attempt, if the service switched it off.")
        .column::<Option<Timestamp>>(
            "failing_since",
            "Since when it has accepted nothing. After five days it is switched off. Null: the last attempt succeeded.",
        )
        .sql::<Option<Timestamp>>(
            "previous_secret_until",
            "CASE WHEN t.previous_until > :now THEN t.previous_until END",
            "How long the secret before the last rotation signs as well.",
        )
        .column::<Option<UserId>>("created_by", "The user who created it.")
        .one_by::<Member>("creator", "t.created_by", "t.user_id", "The member who created it. Null if that person has left.")
        .column::<Timestamp>("created_at", "When it was created.")
        .column::<Timestamp>("updated_at", "When it was last updated.")
}

pub struct EventDelivery;

impl Record for EventDelivery {
    fn spec() -> &'static Spec {
        static SPEC: LazyLock<Spec> = LazyLock::new(|| {
            Spec::new("EventDelivery", "event_deliveries t", "An event for an endpoint. Kept for 30 days.")
                .permission(Permission::OrganizationEdit)
                .column::<EventDeliveryId>(
                    "id",
                    "Identifies the event for this endpoint: `webhook-id` is `evt_<id>`.",
                )
                .column::<EventEndpointId>("endpoint_id", "The endpoint.")
                .column::<EventType>("type", "The type.")
                .column::<Json<Value>>("data", "`data` of the payload.")
                .column::<EventDeliveryStatus>("status", "The progress.")
                .column::<i64>("attempts", "The number of attempts.")
                .column::<Option<String>>("error", "Why the last attempt failed.")
                .sql::<Option<Timestamp>>(
                    "next_attempt_at",
                    "CASE WHEN t.status = 'PENDING' THEN t.available_at END",
                    "The earliest time of the next attempt. Null: there is none.",
                )
                .column::<Timestamp>("created_at", "When it happened.")
                .column::<Option<Timestamp>>("sent_at", "When the endpoint accepted it.")
        });
        &SPEC
    }
}

#[derive(Default)]
pub struct EventEndpointQuery;

#[Object]
impl EventEndpointQuery {
    /// The organization's event endpoints, ordered by id. There are at most 20.
    #[graphql(directive = permit::apply(Permission::OrganizationEdit))]
    async fn event_endpoints(&self, ctx: &Context<'_>, org_id: OrgId) -> Answer<List<EventEndpoint>> {
        answer(async { Ok(List::first(Rows::of(&ctx.enter(org_id).await?).order_by("t.id"), 100)) }).await
    }

    /// One event endpoint.
    #[graphql(directive = permit::apply(Permission::OrganizationEdit))]
    async fn event_endpoint(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        id: EventEndpointId,
    ) -> Answer<One<EventEndpoint>> {
        answer(async { Ok(One::by_id(&ctx.enter(org_id).await?, id)) }).await
    }

    /// The events of the last 30 days for the endpoints, newest first.
    #[graphql(directive = permit::apply(Permission::OrganizationEdit))]
    #[expect(clippy::too_many_arguments, reason = "each is a separate filter in the schema")]
    async fn event_deliveries(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        #[graphql(
            desc = "Where the page begins: `next` of the page before.",
            directive = bounds::apply(length(1, 2000))
        )]
        after: Option<String>,
        #[graphql(
            desc = "The maximum number to return.",
            default_with = "Some(50)",
            directive = bounds::apply(range(1, 200))
        )]
        limit: Option<i64>,
        #[graphql(desc = "Only events for this endpoint.")] endpoint_id: Option<EventEndpointId>,
        #[graphql(desc = "Only events of one of these types.", directive = bounds::apply(items(100)))]
        types: Option<Vec<EventType>>,
        #[graphql(desc = "Only those in one of these states.", directive = bounds::apply(items(4)))]
        status: Option<Vec<EventDeliveryStatus>>,
    ) -> Answer<Feed<EventDelivery>> {
        answer(async {
            let rows = Rows::of(&ctx.enter(org_id).await?)
                .filter_if("t.endpoint_id = ?", endpoint_id)
                .one_of("t.type", types.as_deref(), EventType::as_str)
                .one_of("t.status", status.as_deref(), EventDeliveryStatus::as_str);
            let keys = Keys::new("NEWEST", SortOrder::Desc);
            Feed::after(rows, keys, after.as_deref(), limit.unwrap_or(50))
        })
        .await
    }
}

#[derive(Default)]
pub struct EventEndpointMutation;

#[Object]
impl EventEndpointMutation {
    /// Creates an event endpoint. Its secret is shown only once, in this answer. Only a person can do this, not a service
    /// token.
    #[graphql(directive = permit::apply(Permission::OrganizationEdit))]
    async fn create_event_endpoint(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        input: CreateEventEndpointInput,
    ) -> Answer<One<IssuedEventEndpoint>> {
        answer(async {
            let scope = ctx.enter(org_id).await?;
            let (id, secret) = event_endpoints::create(&scope, input).await?;
            Ok(One::by_id(&scope, id).with_secret(secret))
        })
        .await
    }

    /// Edits an event endpoint, or switches it on or off. Only a person can do this, not a service token.
    #[graphql(directive = permit::apply(Permission::OrganizationEdit))]
    async fn update_event_endpoint(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        id: EventEndpointId,
        input: UpdateEventEndpointInput,
        #[graphql(desc = "The revision that the edit was made from. CONFLICT if there is a newer one.")]
        if_revision: Option<i64>,
    ) -> Answer<One<EventEndpoint>> {
        answer(async {
            let scope = ctx.enter(org_id).await?;
            let edited = scope.if_revision(RecordKind::EventEndpoint, id, if_revision);
            let done = event_endpoints::update(&edited, id, input).await;
            One::after(&scope, id, Permission::OrganizationEdit, done)
        })
        .await
    }

    /// Issues a new secret for an event endpoint, shown only once. Until the overlap ends, the old one signs as well. Only
    /// a person can do this, not a service token.
    #[graphql(directive = permit::apply(Permission::OrganizationEdit))]
    async fn rotate_event_endpoint_secret(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        id: EventEndpointId,
        #[graphql(
            desc = "How many seconds the old secret signs as well. Defaults to a day; 0 ends it at once.",
            directive = bounds::apply(range(0, MAX_OVERLAP_SECONDS))
        )]
        overlap_seconds: Option<i64>,
    ) -> Answer<One<IssuedEventEndpoint>> {
        answer(async {
            let scope = ctx.enter(org_id).await?;
            let overlap =
                overlap_seconds.map_or(OVERLAP, |seconds| Duration::from_secs(seconds.max(0) as u64));
            let secret = event_endpoints::rotate_secret(&scope, id, overlap).await?;
            Ok(One::by_id(&scope, id).with_secret(secret))
        })
        .await
    }

    /// Deletes an event endpoint with its events, and returns its id. Only a person can do this, not a service token.
    #[graphql(directive = permit::apply(Permission::OrganizationEdit))]
    async fn delete_event_endpoint(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        id: EventEndpointId,
    ) -> Answer<EventEndpointId> {
        answer(async {
            event_endpoints::delete(&ctx.enter(org_id).await?, id).await?;
            Ok(id)
        })
        .await
    }

    /// Sends an event again, or sooner. The endpoint must be on. Only a person can do this, not a service token.
    #[graphql(directive = permit::apply(Permission::OrganizationEdit))]
    async fn retry_event_delivery(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        id: EventDeliveryId,
    ) -> Answer<One<EventDelivery>> {
        answer(async {
            let scope = ctx.enter(org_id).await?;
            event_endpoints::retry(&scope, id).await?;
            Ok(One::by_id(&scope, id))
        })
        .await
    }

    /// Sends the events of an endpoint since a time again, in their order and with their ids, and returns their number:
    /// at most 10,000. Those that are yet to be sent are not counted. Only a person can do this, not a service token.
    #[graphql(directive = permit::apply(Permission::OrganizationEdit))]
    async fn replay_events(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        endpoint_id: EventEndpointId,
        #[graphql(desc = "The time of the first event.")] from: Timestamp,
        #[graphql(desc = "The time of the last event. Defaults to now.")] until: Option<Timestamp>,
    ) -> Answer<i64> {
        answer(async { event_endpoints::replay(&ctx.enter(org_id).await?, endpoint_id, from, until).await })
            .await
    }
}
