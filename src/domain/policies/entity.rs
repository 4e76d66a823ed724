//! Database rows for policy versions. Private to this feature.

/// All versions of the text of organizations' own rules in the database.
pub mod policy_versions {
    use sea_orm::entity::prelude::*;

    use crate::base::{
        enums::PolicyAuthor,
        ids::{OrgId, PolicyVersionId},
        time::Timestamp,
    };

    #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
    #[sea_orm(table_name = "policy_versions")]
    pub struct Model {
        #[sea_orm(primary_key)]
        pub id: PolicyVersionId,
        pub organization_id: OrgId,
        /// Null: no rules of its own.
        pub text: Option<String>,
        /// Identifies the text. An edit names the version it is based on.
        pub version: String,
        pub author_kind: PolicyAuthor,
        pub author_id: Option<i64>,
        pub author_name: Option<String>,
        pub reason: String,
        /// The earlier version whose text this one restores.
        pub reverts_to: Option<PolicyVersionId>,
        pub at: Timestamp,
    }

    crate::core::store::tenant_entity!();
}
