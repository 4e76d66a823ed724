//! Database rows for launches. Private to this feature.

/// Launches of agents, with their outcome.
pub mod agent_launches {
    use sea_orm::entity::prelude::*;

    use crate::base::{
        enums::{ActorKind, StatusReason},
        ids::{AgentId, AgentLaunchId, OrgId},
        time::Timestamp,
    };

    #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
    #[sea_orm(table_name = "agent_launches")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub organization_id: OrgId,
        #[sea_orm(primary_key)]
        pub id: AgentLaunchId,
        pub agent_id: AgentId,
        /// Counts the agent's launches.
        pub generation: i64,
        pub revision: i64,
        pub started_by_kind: ActorKind,
        pub started_by_id: Option<i64>,
        pub started_by_name: String,
        pub started_at: Timestamp,
        pub up_at: Option<Timestamp>,
        pub ended_at: Option<Timestamp>,
        pub reason: Option<StatusReason>,
        pub detail: Option<String>,
    }

    crate::core::store::tenant_entity!();
}
