//! Database rows for credentials, their fields and assignments. Private to this feature.

/// Named sets of secrets.
pub mod credentials {
    use sea_orm::entity::prelude::*;

    use crate::base::{
        enums::CredentialKind,
        ids::{CredentialId, OrgId, UserId},
        time::Timestamp,
    };

    #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
    #[sea_orm(table_name = "credentials")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub organization_id: OrgId,
        #[sea_orm(primary_key)]
        pub id: CredentialId,
        pub name: String,
        /// Derived from the name.
        pub name_folded: String,
        pub description: Option<String>,
        pub kind: CredentialKind,
        pub destinations: Json,
        /// When a person allowed agents to read it.
        pub agent_may_read_at: Option<Timestamp>,
        pub agent_may_read_by: Option<UserId>,
        pub agent_may_read_by_name: Option<String>,
        pub last_used_at: Option<Timestamp>,
        pub created_by: Option<UserId>,
        pub created_at: Timestamp,
        pub updated_at: Timestamp,
        pub archived_at: Option<Timestamp>,
    }

    crate::core::store::tenant_entity!(name_folded = folding::name(name));

    impl crate::domain::agents::assignments::Assignable for Entity {
        type Assignments = super::credential_agents::Entity;
        type Id = CredentialId;

        const ARCHIVED_AT: Column = Column::ArchivedAt;
        const ID: Column = Column::Id;
        const KIND: crate::base::enums::RecordKind = crate::base::enums::RecordKind::Credential;
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

/// The secrets of a credential.
pub mod credential_fields {
    use sea_orm::entity::prelude::*;

    use crate::base::{
        enums::FieldType,
        ids::{CredentialFieldId, CredentialId, OrgId},
    };

    #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
    #[sea_orm(table_name = "credential_fields")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub organization_id: OrgId,
        #[sea_orm(primary_key)]
        pub id: CredentialFieldId,
        pub credential_id: CredentialId,
        pub label: String,
        pub r#type: FieldType,
        pub position: i64,
        pub value_sealed: Option<Vec<u8>>,
    }

    crate::core::store::tenant_entity!();
}

/// Which agents may use a credential.
pub mod credential_agents {
    use sea_orm::{Set, entity::prelude::*};

    use crate::base::{
        ids::{AgentId, CredentialId, OrgId},
        time::Timestamp,
    };

    #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
    #[sea_orm(table_name = "credential_agents")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub organization_id: OrgId,
        #[sea_orm(primary_key, auto_increment = false)]
        pub credential_id: CredentialId,
        #[sea_orm(primary_key, auto_increment = false)]
        pub agent_id: AgentId,
        pub assigned_at: Timestamp,
    }

    crate::core::store::tenant_entity!();

    impl crate::core::store::Link for Entity {
        type Member = AgentId;
        type Owner = CredentialId;

        const MEMBER: Column = Column::AgentId;
        const OWNER: Column = Column::CredentialId;

        fn member(row: &Model) -> AgentId {
            row.agent_id
        }

        fn row(org: OrgId, owner: CredentialId, member: AgentId, at: Timestamp) -> ActiveModel {
            ActiveModel {
                organization_id: Set(org),
                credential_id: Set(owner),
                agent_id: Set(member),
                assigned_at: Set(at),
            }
        }
    }
}

/// Which members may use a credential.
pub mod credential_members {
    use sea_orm::{Set, entity::prelude::*};

    use crate::base::{
        ids::{CredentialId, OrgId, UserId},
        time::Timestamp,
    };

    #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
    #[sea_orm(table_name = "credential_members")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub organization_id: OrgId,
        #[sea_orm(primary_key, auto_increment = false)]
        pub credential_id: CredentialId,
        #[sea_orm(primary_key, auto_increment = false)]
        pub user_id: UserId,
        pub granted_at: Timestamp,
    }

    crate::core::store::tenant_entity!();

    impl crate::core::store::Link for Entity {
        type Member = UserId;
        type Owner = CredentialId;

        const MEMBER: Column = Column::UserId;
        const OWNER: Column = Column::CredentialId;

        fn member(row: &Model) -> UserId {
            row.user_id
        }

        fn row(org: OrgId, owner: CredentialId, member: UserId, at: Timestamp) -> ActiveModel {
            ActiveModel {
                organization_id: Set(org),
                credential_id: Set(owner),
                user_id: Set(member),
                granted_at: Set(at),
            }
        }
    }
}
