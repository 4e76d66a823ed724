//! Scheduled erasures in the GraphQL schema.

use std::sync::LazyLock;

use crate::{
    base::{
        enums::{ErasureState, ErasureSubject},
        ids::{ContactId, ErasureId, UserId},
        permission::Permission,
        time::Timestamp,
    },
    read::{Record, Spec},
};

pub struct Erasure;

impl Record for Erasure {
    fn spec() -> &'static Spec {
        static SPEC: LazyLock<Spec> = LazyLock::new(|| {
            Spec::new("Erasure", "erasures t", "A scheduled erasure. Removed once it is carried out.")
                .permission(Permission::OrganizationView)
                .column::<ErasureId>("id", "Identifies the erasure.")
                .column::<ErasureSubject>("subject", "What is erased.")
                .column::<Option<UserId>>("user_id", "The member.")
                .column::<Option<ContactId>>("contact_id", "The contact.")
                .column::<ErasureState>("state", "Its progress.")
                .column::<Option<UserId>>("requested_by", "The person who scheduled it; null: the operator.")
                .column::<Timestamp>("requested_at", "When it was scheduled.")
                .column::<Timestamp>("due_at", "When it begins. Until then it can be cancelled.")
        });
        &SPEC
    }
}
