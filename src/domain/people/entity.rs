//! Database rows for users, members, sessions, links, and invitations. Private to this feature.

/// People who can sign in. A person may belong to several organizations.
pub mod users {
    use sea_orm::entity::prelude::*;

    use crate::base::{ids::UserId, time::Timestamp};

    #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
    #[sea_orm(table_name = "users")]
    pub struct Model {
        #[sea_orm(primary_key)]
        pub id: UserId,
        /// As the person typed it.
        pub email: String,
        /// Unique.
        pub email_folded: String,
        pub name: String,
        pub name_folded: String,
        /// Argon2id in PHC format. Null until the person sets a password.
        pub password_hash: Option<String>,
        pub email_confirmed_at: Option<Timestamp>,
        pub avatar_version: Option<i64>,
        pub disabled_at: Option<Timestamp>,
        /// The secret of the second factor. In effect only once confirmed.
        pub totp_secret_sealed: Option<Vec<u8>>,
        pub totp_confirmed_at: Option<Timestamp>,
        /// The last accepted time step, so that each code works only once.
        pub totp_last_step: Option<i64>,
        /// The settings of the panel: an object.
        pub preferences: Option<Json>,
        /// The time zone of the preferences, if they name one.
        pub time_zone: Option<String>,
        pub created_at: Timestamp,
        pub updated_at: Timestamp,
    }

    crate::core::store::entity!(email_folded = folding::address(email), name_folded = folding::name(name));
}

/// Memberships of users in organizations.
pub mod members {
    use sea_orm::entity::prelude::*;

    use crate::base::{
        ids::{OrgId, UserId},
        permission::Role,
        time::Timestamp,
    };

    #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
    #[sea_orm(table_name = "members")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub organization_id: OrgId,
        #[sea_orm(primary_key, auto_increment = false)]
        pub user_id: UserId,
        pub role: Role,
        pub created_at: Timestamp,
    }

    crate::core::store::tenant_entity!();
}

/// A person's sessions. A program's refresh token works once; its successor is the next generation of the same family.
/// Using an old one again revokes the family. A browser's session has one generation.
pub mod sessions {
    use sea_orm::entity::prelude::*;

    use crate::base::{
        enums::SessionKind,
        ids::{SessionId, UserId},
        time::Timestamp,
    };

    #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
    #[sea_orm(table_name = "sessions")]
    pub struct Model {
        #[sea_orm(primary_key)]
        pub id: SessionId,
        pub user_id: UserId,
        /// Groups the generations of one sign-in.
        pub family: String,
        pub generation: i64,
        pub kind: SessionKind,
        /// The hash of the refresh token or the cookie.
        pub token_hash: Vec<u8>,
        pub user_agent: Option<String>,
        pub ip: Option<String>,
        pub created_at: Timestamp,
        pub last_used_at: Option<Timestamp>,
        pub expires_at: Timestamp,
        pub revoked_at: Option<Timestamp>,
    }

    crate::core::store::entity!();
}

/// Mailed links that confirm an address or reset a password.
pub mod email_tokens {
    use sea_orm::entity::prelude::*;

    use crate::base::{ids::UserId, time::Timestamp};

    #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
    #[sea_orm(table_name = "email_tokens")]
    pub struct Model {
        #[sea_orm(primary_key)]
        pub id: i64,
        pub user_id: UserId,
        /// `CONFIRM` or `RESET`.
        pub kind: String,
        pub token_hash: Vec<u8>,
        pub created_at: Timestamp,
        pub expires_at: Timestamp,
        pub used_at: Option<Timestamp>,
        /// The address the link was mailed to and proves.
        pub email: Option<String>,
    }

    crate::core::store::entity!();
}

/// Invitations to join an organization.
pub mod invitations {
    use sea_orm::entity::prelude::*;

    use crate::base::{
        ids::{InvitationId, OrgId, UserId},
        permission::Role,
        time::Timestamp,
    };

    #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
    #[sea_orm(table_name = "invitations")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub organization_id: OrgId,
        #[sea_orm(primary_key)]
        pub id: InvitationId,
        pub email: String,
        pub email_folded: String,
        pub role: Role,
        pub token_hash: Vec<u8>,
        pub invited_by: Option<UserId>,
        pub created_at: Timestamp,
        pub expires_at: Timestamp,
        pub accepted_at: Option<Timestamp>,
        pub accepted_by: Option<UserId>,
        pub revoked_at: Option<Timestamp>,
        /// When it was last mailed.
        pub sent_at: Option<Timestamp>,
    }

    crate::core::store::tenant_entity!(email_folded = folding::address(email));
}
