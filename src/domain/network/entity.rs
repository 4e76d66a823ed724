//! Database rows for allowed hosts. Private to this feature.

/// Hosts that the organization's agents may reach.
pub mod allowed_hosts {
    use sea_orm::entity::prelude::*;

    use crate::base::{
        ids::{AllowedHostId, OrgId, UserId},
        time::Timestamp,
    };

    #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
    #[sea_orm(table_name = "allowed_hosts")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub organization_id: OrgId,
        #[sea_orm(primary_key)]
        pub id: AllowedHostId,
        /// A name in lower case, or `*.` and a name of at least two labels.
        pub host: String,
        pub port: i64,
        pub created_by: Option<UserId>,
        pub created_by_name: String,
        pub created_at: Timestamp,
    }

    crate::core::store::tenant_entity!();
}
