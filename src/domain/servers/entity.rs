//! Database rows for servers and images. Private to this feature.

/// Servers, with the state of their hosts.
pub mod servers {
    use sea_orm::entity::prelude::*;

    use crate::base::{
        enums::{ActorKind, HostRefusal, Runtime, ServerStatus},
        ids::{OrgId, ServerId, UserId},
        time::Timestamp,
    };

    #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
    #[sea_orm(table_name = "servers")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub organization_id: OrgId,
        #[sea_orm(primary_key)]
        pub id: ServerId,
        pub name: String,
        /// Derived from the name.
        pub name_folded: String,
        pub description: Option<String>,
        pub hostname: Option<String>,
        pub address: Option<String>,
        pub region: Option<String>,
        /// An object whose values are strings.
        pub labels: Json,
        pub status: ServerStatus,
        pub version: Option<String>,
        pub protocol_version: Option<i64>,
        pub os: Option<String>,
        pub arch: Option<String>,
        pub cpu_cores: Option<i64>,
        pub memory_mb: Option<i64>,
        pub disk_mb: Option<i64>,
        pub cpu_pct: Option<f64>,
        pub ram_pct: Option<f64>,
        pub load_1: Option<f64>,
        pub load_5: Option<f64>,
        pub load_15: Option<f64>,
        pub uptime_seconds: Option<i64>,
        pub runtime: Option<Runtime>,
        pub runtime_version: Option<String>,
        pub provisioning_token_hash: Option<Vec<u8>>,
        pub provisioning_token_expires_at: Option<Timestamp>,
        /// The token the host uses after its first connection.
        pub host_token_hash: Option<Vec<u8>>,
        /// The author of the provisioning token.
        pub provisioned_by_kind: Option<ActorKind>,
        pub provisioned_by_id: Option<i64>,
        pub provisioned_by_name: Option<String>,
        /// Whether the provisioning token confirms the host that joins with it.
        pub provisioning_confirms: bool,
        /// Counts the hosts that have joined.
        pub joins: i64,
        /// The address from which the host joined.
        pub joined_from: Option<String>,
        /// Null: the host gets no plan that holds a secret.
        pub host_confirmed_at: Option<Timestamp>,
        /// Identifies the host's folder. The host generated it when it joined.
        pub machine_id: Option<String>,
        /// Counts the host's accepted connections. Writes of a connection name its epoch (`domain/hosts`).
        pub host_epoch: i64,
        /// The replica that holds the connection.
        pub host_replica: Option<String>,
        /// The last number given to a command.
        pub command_seq: i64,
        /// The last command in the host's journal.
        pub command_ack: i64,
        /// The last event of the host that is stored.
        pub event_seq: i64,
        /// Why its host was refused, until it is accepted again.
        pub refused_code: Option<HostRefusal>,
        pub refused_reason: Option<String>,
        pub refused_at: Option<Timestamp>,
        pub provisioned_at: Option<Timestamp>,
        pub last_seen_at: Option<Timestamp>,
        pub created_by: Option<UserId>,
        pub created_at: Timestamp,
        pub updated_at: Timestamp,
        /// When it was deleted.
        pub archived_at: Option<Timestamp>,
    }

    crate::core::store::tenant_entity!(name_folded = folding::name(name));
}

/// Container images that agents run from.
pub mod images {
    use sea_orm::entity::prelude::*;

    use crate::base::{
        ids::{ImageId, OrgId, UserId},
        time::Timestamp,
    };

    #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
    #[sea_orm(table_name = "images")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub organization_id: OrgId,
        #[sea_orm(primary_key)]
        pub id: ImageId,
        pub name: String,
        /// Derived from the name.
        pub name_folded: String,
        /// The image reference: registry.example/agent:1.2
        pub reference: String,
        pub description: Option<String>,
        pub digest: Option<String>,
        /// The model for agents that don't override it.
        pub default_model: Option<String>,
        /// The name of the profile that says how its program is wired.
        pub profile: Option<String>,
        pub created_by: Option<UserId>,
        pub created_at: Timestamp,
        pub updated_at: Timestamp,
        pub archived_at: Option<Timestamp>,
    }

    crate::core::store::tenant_entity!(name_folded = folding::name(name));
}
