//! Database rows for pictures. Private to this feature.

/// Pictures of agents, organizations, and people.
pub mod avatars {
    use sea_orm::entity::prelude::*;

    use crate::base::{
        ids::{AgentId, OrgId, UserId},
        time::Timestamp,
    };

    #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
    #[sea_orm(table_name = "avatars")]
    pub struct Model {
        /// Random, because anyone who knows a picture's URL may see it.
        #[sea_orm(primary_key, auto_increment = false)]
        pub version: i64,
        /// Null: a person's picture.
        pub organization_id: Option<OrgId>,
        /// Null: the organization's own picture, or a person's.
        pub agent_id: Option<AgentId>,
        pub user_id: Option<UserId>,
        pub mime_type: String,
        pub content: Vec<u8>,
        pub created_at: Timestamp,
    }

    crate::core::store::tenant_entity!();
}
