//! Rows of policy versions and decisions, as the migrations lay them out. Private to this slice.

/// Every text that a policy file has had.
pub mod policy_versions {
    use sea_orm::entity::prelude::*;

    use crate::base::{
        enums::PolicyAuthor,
        ids::{OrgId, PolicyVersionId},
        time::Timestamp,
    };

    /// A row of `policy_versions`.
    #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
    #[sea_orm(table_name = "policy_versions")]
    pub struct Model {
        #[sea_orm(primary_key)]
        pub id: PolicyVersionId,
        /// Null: a file for every organization, which is the operator's.
        pub organization_id: Option<OrgId>,
        /// From the policy folder on.
        pub file: String,
        /// Null: there was no such file.
        pub text: Option<String>,
        /// Identifies the text: what an edit is made against.
        pub version: String,
        pub author_kind: PolicyAuthor,
        pub author_id: Option<i64>,
        pub author_name: Option<String>,
        pub reason: Option<String>,
        /// The earlier version whose text this is again.
        pub reverts_to: Option<PolicyVersionId>,
        pub at: Timestamp,
    }

    crate::core::store::tenant_entity!();
}
