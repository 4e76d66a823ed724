//! Rows of the outbox, as the migrations lay them out. Private to this slice.

/// Commands for hosts, written in the transaction that decides them, resent until acknowledged, in order
/// of id per agent.
pub mod outbox {
    use sea_orm::entity::prelude::*;

    use crate::{
        clock::Timestamp,
        enums::CommandKind,
        ids::{AgentId, OrgId, OutboxId, ServerId},
    };

    /// A row of `outbox`.
    #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
    #[sea_orm(table_name = "outbox")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub organization_id: OrgId,
        #[sea_orm(primary_key)]
        pub id: OutboxId,
        pub server_id: ServerId,
        pub agent_id: Option<AgentId>,
        pub kind: CommandKind,
        /// Ids, never secrets.
        pub payload: Json,
        /// The launch that the command belongs to.
        pub generation: Option<i64>,
        pub attempts: i64,
        pub created_at: Timestamp,
        pub available_at: Timestamp,
        pub delivered_at: Option<Timestamp>,
        pub acknowledged_at: Option<Timestamp>,
        pub result: Option<Json>,
    }

    /// Relations are loaded by the read path, never through sea-orm.
    #[derive(Clone, Copy, Debug, EnumIter, DeriveRelation)]
    pub enum Relation {}

    impl ActiveModelBehavior for ActiveModel {}

    impl crate::store::TenantEntity for Entity {
        const ORG: Column = Column::OrganizationId;
    }
}
