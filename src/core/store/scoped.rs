//! Tenancy by construction: entities are reached through a scope, and the scope adds the organization.
//!
//! Everywhere else, `clippy.toml` bans sea-orm's own finders.

use sea_orm::{
    ColumnTrait, DeleteMany, EntityTrait, QueryFilter, QuerySelect, Select, UpdateMany, sea_query::LockType,
};

use crate::{
    base::problem::Result,
    core::{access::Scope, store::Tx},
};

/// An entity whose rows belong to organizations.
pub trait TenantEntity: EntityTrait {
    /// The organization's column.
    const ORG: Self::Column;
}

/// Locks the selected rows against changes until the transaction ends. FOR NO KEY UPDATE: rows that only refer to them
/// can still be written. Writing such a row locks what its foreign key refers to, and with the stronger lock two
/// transactions that had each written one would deadlock.
pub fn held<E: EntityTrait>(found: Select<E>) -> Select<E> {
    found.lock(LockType::NoKeyUpdate)
}

/// A text, or none, of which a folded form is kept.
pub trait Foldable {
    /// The folded form.
    #[must_use]
    fn folded(&self, fold: fn(&str) -> String) -> Self;
}

impl Foldable for String {
    fn folded(&self, fold: fn(&str) -> String) -> Self {
        fold(self)
    }
}

impl Foldable for Option<String> {
    fn folded(&self, fold: fn(&str) -> String) -> Self {
        self.as_deref().map(fold)
    }
}

/// What sea-orm requires of an entity apart from its columns, and which of them are the folded form of another
/// (`email_folded = folding::address(email)`). Those are written here, together with the column they are made from.
macro_rules! entity {
    () => {
        $crate::core::store::entity!(@relations);

        impl sea_orm::ActiveModelBehavior for ActiveModel {}
    };
    (@relations) => {
        /// Relations are loaded by the read path, never through sea-orm.
        #[derive(Clone, Copy, Debug, sea_orm::EnumIter, sea_orm::DeriveRelation)]
        pub enum Relation {}
    };
    ($($folded:ident = folding::$fold:ident($from:ident)),+) => {
        $crate::core::store::entity!(@relations);

        #[sea_orm::prelude::async_trait::async_trait]
        impl sea_orm::ActiveModelBehavior for ActiveModel {
            async fn before_save<C>(mut self, _: &C, _: bool) -> Result<Self, sea_orm::DbErr>
            where
                C: sea_orm::ConnectionTrait,
            {
                $(
                    if let sea_orm::Set(from) = &self.$from {
                        self.$folded = sea_orm::Set($crate::core::store::Foldable::folded(from, $crate::base::folding::$fold));
                    }
                )+
                Ok(self)
            }
        }
    };
}

/// The same for an entity with a column `organization_id`.
macro_rules! tenant_entity {
    ($($folded:tt)*) => {
        $crate::core::store::entity!($($folded)*);

        impl $crate::core::store::TenantEntity for Entity {
            const ORG: Column = Column::OrganizationId;
        }
    };
}

pub(crate) use {entity, tenant_entity};

#[expect(clippy::disallowed_methods, reason = "the one place that adds the organization")]
impl Scope {
    /// Selects rows of the scope's organization.
    #[must_use]
    pub fn find<E: TenantEntity>(&self) -> Select<E> {
        E::find().filter(E::ORG.eq(self.org))
    }

    /// Updates rows of the scope's organization; add a filter.
    #[must_use]
    pub fn update<E: TenantEntity>(&self) -> UpdateMany<E> {
        E::update_many().filter(E::ORG.eq(self.org))
    }

    /// Deletes rows of the scope's organization; add a filter.
    #[must_use]
    pub fn delete<E: TenantEntity>(&self) -> DeleteMany<E> {
        E::delete_many().filter(E::ORG.eq(self.org))
    }

    /// Opens a transaction as the scope's caller, in the scope's organization.
    ///
    /// # Errors
    /// The database can't be reached; `PRECONDITION_FAILED` or `CONFLICT` for a request that requires another
    /// state.
    pub async fn begin(&self) -> Result<Tx> {
        let tx = Tx::new(self.clone(), self.request.begin().await?);
        if let Some(precondition) = self.request.precondition() {
            precondition.check(&tx).await?;
        }
        if let Some(expected) = &self.expected {
            expected.check(&tx).await?;
        }
        Ok(tx)
    }
}
