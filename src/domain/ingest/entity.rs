//! Database rows for refused messages. Private to this feature.

/// The origins that each channel refused last.
pub mod channel_refusals {
    use sea_orm::entity::prelude::*;

    use crate::base::{
        enums::RefusalReason,
        ids::{ChannelId, OrgId},
        time::Timestamp,
    };

    #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
    #[sea_orm(table_name = "channel_refusals")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub organization_id: OrgId,
        #[sea_orm(primary_key, auto_increment = false)]
        pub channel_id: ChannelId,
        #[sea_orm(primary_key, auto_increment = false)]
        pub origin_id: String,
        pub origin_name: Option<String>,
        /// The reason of the last refusal.
        pub reason: RefusalReason,
        pub count: i64,
        pub first_at: Timestamp,
        pub last_at: Timestamp,
    }

    crate::core::store::tenant_entity!();
}
