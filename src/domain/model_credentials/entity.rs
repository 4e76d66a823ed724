//! Database rows for model credentials. Private to this feature.

/// The organization's model credentials.
pub mod model_credentials {
    use sea_orm::entity::prelude::*;

    use crate::base::{
        enums::ModelCredentialType,
        ids::{ModelCredentialId, OrgId, UserId},
        time::Timestamp,
    };

    #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
    #[sea_orm(table_name = "model_credentials")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub organization_id: OrgId,
        #[sea_orm(primary_key)]
        pub id: ModelCredentialId,
        pub name: String,
        /// In lower case.
        pub provider: String,
        /// None: the provider's own.
        pub base_url: Option<String>,
        pub r#type: ModelCredentialType,
        /// None once it is archived.
        pub secret_sealed: Option<Vec<u8>>,
        pub is_default: bool,
        /// When the provider accepts calls again.
        pub limited_until: Option<Timestamp>,
        pub limit_detail: Option<String>,
        /// When a single turn was sent to probe whether calls succeed again.
        pub probing_at: Option<Timestamp>,
        pub auth_failed_at: Option<Timestamp>,
        pub created_by: Option<UserId>,
        pub created_at: Timestamp,
        pub updated_at: Timestamp,
        pub archived_at: Option<Timestamp>,
    }

    crate::core::store::tenant_entity!();
}
