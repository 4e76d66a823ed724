//! Database rows for backups. Private to this feature.

/// Copies of agents' homes.
pub mod agent_backups {
    use sea_orm::entity::prelude::*;

    use crate::base::{
        enums::{ActorKind, BackupCause, BackupState},
        ids::{AgentId, BackupId, OrgId, ServerId},
        time::Timestamp,
    };

    #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
    #[sea_orm(table_name = "agent_backups")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub organization_id: OrgId,
        #[sea_orm(primary_key)]
        pub id: BackupId,
        pub agent_id: AgentId,
        /// The server whose host has the file.
        pub server_id: ServerId,
        pub cause: BackupCause,
        pub state: BackupState,
        /// The size of the file.
        pub bytes: Option<i64>,
        /// SHA-256 of the file, in hexadecimal.
        pub sha256: Option<String>,
        pub error: Option<String>,
        pub author_kind: ActorKind,
        pub author_id: Option<i64>,
        pub author_name: String,
        pub created_at: Timestamp,
        pub ended_at: Option<Timestamp>,
        /// The state of the last restore from it.
        pub restore_state: Option<BackupState>,
        pub restore_error: Option<String>,
        /// While it is pending, its start; after that, its end.
        pub restored_at: Option<Timestamp>,
    }

    crate::core::store::tenant_entity!();
}
