//! Database rows for skills and their assignments. Private to this feature.

/// Written know-how, stored as files in an agent's volume.
pub mod skills {
    use sea_orm::entity::prelude::*;

    use crate::base::{
        enums::Effort,
        ids::{OrgId, SkillId, UserId},
        time::Timestamp,
    };

    #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
    #[sea_orm(table_name = "skills")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub organization_id: OrgId,
        #[sea_orm(primary_key)]
        pub id: SkillId,
        pub name: String,
        /// Derived from the name.
        pub name_folded: String,
        pub description: Option<String>,
        pub content: String,
        /// SHA-256 of the content, in hexadecimal.
        pub content_hash: String,
        /// The newest of its versions.
        pub version: i64,
        pub model: Option<String>,
        pub effort: Option<Effort>,
        pub created_by: Option<UserId>,
        pub created_at: Timestamp,
        pub updated_at: Timestamp,
        pub archived_at: Option<Timestamp>,
    }

    crate::core::store::tenant_entity!(name_folded = folding::name(name));

    impl crate::domain::agents::assignments::Assignable for Entity {
        type Assignments = super::skill_agents::Entity;
        type Id = SkillId;

        const ARCHIVED_AT: Column = Column::ArchivedAt;
        const ID: Column = Column::Id;
        const KIND: crate::base::enums::RecordKind = crate::base::enums::RecordKind::Skill;
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

/// Past and present versions of skills. Rows are never changed.
pub mod skill_versions {
    use sea_orm::entity::prelude::*;

    use crate::base::{
        enums::ActorKind,
        ids::{OrgId, SkillId, SkillVersionId},
        time::Timestamp,
    };

    #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
    #[sea_orm(table_name = "skill_versions")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub organization_id: OrgId,
        #[sea_orm(primary_key)]
        pub id: SkillVersionId,
        pub skill_id: SkillId,
        pub number: i64,
        /// Canonical JSON.
        pub content: String,
        /// SHA-256 of the content, in hexadecimal.
        pub content_hash: String,
        /// The length of the content, in bytes.
        pub bytes: i64,
        /// Compared with the version before.
        pub changes: Json,
        /// The earlier version whose content this restores.
        pub reverts_to: Option<i64>,
        pub author_kind: ActorKind,
        pub author_id: Option<i64>,
        pub author_name: String,
        /// The root field that wrote it.
        pub operation: Option<String>,
        pub reason: Option<String>,
        pub created_at: Timestamp,
    }

    crate::core::store::tenant_entity!();
}

/// Which agents have a skill.
pub mod skill_agents {
    use sea_orm::{Set, entity::prelude::*};

    use crate::base::{
        ids::{AgentId, OrgId, SkillId},
        time::Timestamp,
    };

    #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
    #[sea_orm(table_name = "skill_agents")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub organization_id: OrgId,
        #[sea_orm(primary_key, auto_increment = false)]
        pub skill_id: SkillId,
        #[sea_orm(primary_key, auto_increment = false)]
        pub agent_id: AgentId,
        pub assigned_at: Timestamp,
    }

    crate::core::store::tenant_entity!();

    impl crate::core::store::Link for Entity {
        type Member = AgentId;
        type Owner = SkillId;

        const MEMBER: Column = Column::AgentId;
        const OWNER: Column = Column::SkillId;

        fn member(row: &Model) -> AgentId {
            row.agent_id
        }

        fn row(org: OrgId, owner: SkillId, member: AgentId, at: Timestamp) -> ActiveModel {
            ActiveModel {
                organization_id: Set(org),
                skill_id: Set(owner),
                agent_id: Set(member),
                assigned_at: Set(at),
            }
        }
    }
}
