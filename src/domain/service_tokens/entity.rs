//! Database rows for service tokens. Private to this feature.

/// Credentials for integrations. Only the hashes are stored.
pub mod service_tokens {
    use sea_orm::entity::prelude::*;

    use crate::base::{
        ids::{OrgId, TokenId, UserId},
        time::Timestamp,
    };

    #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
    #[sea_orm(table_name = "service_tokens")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub organization_id: OrgId,
        #[sea_orm(primary_key)]
        pub id: TokenId,
        pub name: String,
        pub name_folded: String,
        pub token_hash: Vec<u8>,
        /// The last four characters of the secret.
        pub hint: String,
        pub permissions: Json,
        pub created_by: Option<UserId>,
        pub created_at: Timestamp,
        pub expires_at: Option<Timestamp>,
        pub last_used_at: Option<Timestamp>,
        pub revoked_at: Option<Timestamp>,
        pub rotated_at: Option<Timestamp>,
        /// The hash of the secret before the last rotation.
        pub previous_token_hash: Option<Vec<u8>>,
        pub previous_hint: Option<String>,
        /// When the previous secret stops working.
        pub previous_expires_at: Option<Timestamp>,
        pub previous_last_used_at: Option<Timestamp>,
    }

    crate::core::store::tenant_entity!(name_folded = folding::name(name));
}
