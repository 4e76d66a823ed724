//! Database rows for event endpoints. Private to this feature.

/// Addresses that get events of an organization.
pub mod event_endpoints {
    use sea_orm::entity::prelude::*;

    use crate::base::{
        enums::InactiveReason,
        ids::{EventEndpointId, OrgId, UserId},
        time::Timestamp,
    };

    #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
    #[sea_orm(table_name = "event_endpoints")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub organization_id: OrgId,
        #[sea_orm(primary_key)]
        pub id: EventEndpointId,
        pub name: String,
        pub url: String,
        /// The types of events that it gets.
        pub types: Json,
        pub secret_sealed: Vec<u8>,
        /// The secret before the last rotation.
        pub previous_secret_sealed: Option<Vec<u8>>,
        /// Until when the previous secret signs as well.
        pub previous_until: Option<Timestamp>,
        pub is_active: bool,
        pub inactive_reason: Option<InactiveReason>,
        /// The result of the last attempt before it was switched off.
        pub inactive_detail: Option<String>,
        /// Since when nothing has been accepted. `None`: the last attempt was successful.
        pub failing_since: Option<Timestamp>,
        pub created_by: Option<UserId>,
        pub created_at: Timestamp,
        pub updated_at: Timestamp,
    }

    crate::core::store::tenant_entity!();
}

/// Events for endpoints.
pub mod event_deliveries {
    use sea_orm::entity::prelude::*;

    use crate::base::{
        enums::{EventDeliveryStatus, EventType},
        ids::{EventDeliveryId, EventEndpointId, OrgId},
        time::Timestamp,
    };

    #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
    #[sea_orm(table_name = "event_deliveries")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub organization_id: OrgId,
        #[sea_orm(primary_key)]
        pub id: EventDeliveryId,
        pub endpoint_id: EventEndpointId,
        pub r#type: EventType,
        /// The record that it is about, such as `agent:7`. Events of one subject are sent in their order.
        pub subject: String,
        /// `data` of the payload.
        pub data: Json,
        pub status: EventDeliveryStatus,
        pub attempts: i64,
        /// The earliest time of the next attempt; while it is being sent, the end of the sender's lease.
        pub available_at: Timestamp,
        /// Why the last attempt failed.
        pub error: Option<String>,
        pub created_at: Timestamp,
        pub sent_at: Option<Timestamp>,
    }

    crate::core::store::tenant_entity!();
}
