//! Database rows for contacts. Private to this feature.

/// Addresses of contacts, each on one transport.
pub mod identities {
    use sea_orm::entity::prelude::*;

    use crate::base::{
        enums::Transport,
        ids::{ChannelId, ContactId, IdentityId, OrgId},
        time::Timestamp,
    };

    #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
    #[sea_orm(table_name = "identities")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub organization_id: OrgId,
        #[sea_orm(primary_key)]
        pub id: IdentityId,
        pub contact_id: ContactId,
        /// The channel where the address was first seen. A webhook's address belongs only to that channel.
        pub channel_id: Option<ChannelId>,
        pub transport: Transport,
        pub origin_id: String,
        pub origin_id_folded: String,
        pub display_name: Option<String>,
        pub display_name_folded: Option<String>,
        pub created_at: Timestamp,
        pub updated_at: Timestamp,
        pub last_seen_at: Option<Timestamp>,
    }

    crate::core::store::tenant_entity!(
        origin_id_folded = folding::name(origin_id),
        display_name_folded = folding::name(display_name)
    );
}

/// People on the other side of channels.
pub mod contacts {
    use sea_orm::entity::prelude::*;

    use crate::base::{
        ids::{ContactId, OrgId},
        time::Timestamp,
    };

    #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
    #[sea_orm(table_name = "contacts")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub organization_id: OrgId,
        #[sea_orm(primary_key)]
        pub id: ContactId,
        pub name: String,
        pub name_folded: String,
        pub note: Option<String>,
        pub avatar_version: Option<i64>,
        pub created_at: Timestamp,
        pub updated_at: Timestamp,
        pub archived_at: Option<Timestamp>,
    }

    crate::core::store::tenant_entity!(name_folded = folding::name(name));
}
