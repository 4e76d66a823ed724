//! Database rows for MCP servers and their assignments. Private to this feature.

/// MCP servers that agents may call.
pub mod mcp_servers {
    use sea_orm::entity::prelude::*;

    use crate::base::{
        enums::{McpTransport, McpWorkspace},
        ids::{McpServerId, OrgId, UserId},
        time::Timestamp,
    };

    #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
    #[sea_orm(table_name = "mcp_servers")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub organization_id: OrgId,
        #[sea_orm(primary_key)]
        pub id: McpServerId,
        pub name: String,
        /// Derived from the name.
        pub name_folded: String,
        pub description: Option<String>,
        pub transport: McpTransport,
        pub command: Option<String>,
        pub args: Json,
        pub url: Option<String>,
        /// The names of the credentials the server needs.
        pub auth: Json,
        pub workspace: McpWorkspace,
        pub created_by: Option<UserId>,
        pub created_at: Timestamp,
        pub updated_at: Timestamp,
        pub archived_at: Option<Timestamp>,
    }

    crate::core::store::tenant_entity!(name_folded = folding::name(name));

    impl crate::domain::agents::assignments::Assignable for Entity {
        type Assignments = super::mcp_server_agents::Entity;
        type Id = McpServerId;

        const ARCHIVED_AT: Column = Column::ArchivedAt;
        const ID: Column = Column::Id;
        const KIND: crate::base::enums::RecordKind = crate::base::enums::RecordKind::McpServer;
        const NAME: Column = Column::Name;
        const UPDATED_AT: Column = Column::UpdatedAt;

        fn name(row: &Model) -> &str {
            &row.name
        }

        fn archived_at(row: &Model) -> Option<Timestamp> {
            row.archived_at
        }
    }
}

/// Which agents may call an MCP server.
pub mod mcp_server_agents {
    use sea_orm::{Set, entity::prelude::*};

    use crate::base::{
        enums::McpServerStatus,
        ids::{AgentId, McpServerId, OrgId},
        time::Timestamp,
    };

    #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
    #[sea_orm(table_name = "mcp_server_agents")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub organization_id: OrgId,
        #[sea_orm(primary_key, auto_increment = false)]
        pub mcp_server_id: McpServerId,
        #[sea_orm(primary_key, auto_increment = false)]
        pub agent_id: AgentId,
        pub assigned_at: Timestamp,
        pub state: Option<McpServerStatus>,
        /// The launch of the agent that the state is about.
        pub launch_generation: Option<i64>,
        pub reported_at: Option<Timestamp>,
        pub error: Option<String>,
        pub stderr: Option<String>,
        pub tools: Json,
        /// The last test of the connection, and its result.
        pub test_asked_at: Option<Timestamp>,
        pub tested_at: Option<Timestamp>,
        pub test_error: Option<String>,
        pub protocol: Option<String>,
        pub program: Option<String>,
    }

    crate::core::store::tenant_entity!();

    impl crate::core::store::Link for Entity {
        type Member = AgentId;
        type Owner = McpServerId;

        const MEMBER: Column = Column::AgentId;
        const OWNER: Column = Column::McpServerId;

        fn member(row: &Model) -> AgentId {
            row.agent_id
        }

        fn row(org: OrgId, owner: McpServerId, member: AgentId, at: Timestamp) -> ActiveModel {
            ActiveModel {
                organization_id: Set(org),
                mcp_server_id: Set(owner),
                agent_id: Set(member),
                assigned_at: Set(at),
                ..Default::default()
            }
        }
    }
}
