//! Rows of the audit log, as the migrations lay them out. Private to this slice.

/// Who did what, or was refused it. Rows are only ever added; they hold names as they were, and no
/// foreign keys to what may be deleted.
pub mod audit_log {
    use sea_orm::entity::prelude::*;

    use crate::{
        clock::Timestamp,
        enums::{ActorKind, AuditOutcome, CredentialUsed},
        ids::{AuditId, OrgId},
    };

    /// A row of `audit_log`.
    #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
    #[sea_orm(table_name = "audit_log")]
    pub struct Model {
        #[sea_orm(primary_key)]
        pub id: AuditId,
        /// Null: concerns the whole instance.
        pub organization_id: Option<OrgId>,
        pub at: Timestamp,
        pub actor_kind: ActorKind,
        pub actor_id: Option<i64>,
        pub actor_name: Option<String>,
        pub credential_hint: Option<String>,
        pub operation: String,
        pub permission: Option<String>,
        pub outcome: AuditOutcome,
        pub target_kind: Option<String>,
        pub target_id: Option<i64>,
        pub changes: Json,
        pub request_id: Option<String>,
        pub ip: Option<String>,
        /// The hash of the line before, in the chain of the organization; set when the line is sealed, like the
        /// next and `chain_seq`.
        pub prev_hash: Option<Vec<u8>>,
        pub hash: Option<Vec<u8>>,
        pub credential_kind: Option<CredentialUsed>,
        pub credential_id: Option<i64>,
        /// The deciding line of the policy.
        pub decided_by: Option<String>,
        /// The problem's code, where something was refused.
        pub code: Option<String>,
        /// How often: a burst of the same refusal is one line.
        pub count: i64,
        /// When the last of a burst was.
        pub last_at: Option<Timestamp>,
        pub chain_seq: Option<i64>,
    }

    /// Relations are loaded by the read path, never through sea-orm.
    #[derive(Clone, Copy, Debug, EnumIter, DeriveRelation)]
    pub enum Relation {}

    impl ActiveModelBehavior for ActiveModel {}

    impl crate::store::TenantEntity for Entity {
        const ORG: Column = Column::OrganizationId;
    }
}
