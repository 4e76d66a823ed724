//! Tenancy by construction: entities and SQL texts reach an organization's rows through a scope or its transaction,
//! which add the organization.
//!
//! Everywhere else, `clippy.toml` bans sea-orm's own finders.

use sea_orm::{
    ColumnTrait, ConnectionTrait, DeleteMany, EntityTrait, QueryFilter, QueryResult, QuerySelect, Select,
    UpdateMany, Value, sea_query::LockType,
};

use super::sql::{OrgSql, Row, RunSql, RunWritingSql};
use crate::{
    base::problem::Result,
    core::{
        access::Scope,
        store::{Transaction, Tx},
    },
};

/// An entity whose rows belong to organizations.
pub trait TenantEntity: EntityTrait {
    const ORG: Self::Column;
}

/// Locks the selected rows against changes until the transaction ends. FOR NO KEY UPDATE: rows that only refer to them
/// can still be written. Writing such a row locks the row that its foreign key refers to, and with the stronger lock
/// two transactions that had each written one would deadlock.
pub fn for_update<E: EntityTrait>(found: Select<E>) -> Select<E> {
    found.lock(LockType::NoKeyUpdate)
}

/// A text, or none, with a folded form.
pub trait Foldable {
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

/// Implements the parts of an entity that sea-orm requires apart from its columns. Lists the columns that are the
/// folded form of another (`email_folded = folding::address(email)`): they are written here, together with their
/// source.
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

    /// Goes on with a transaction that has inserted the scope's organization.
    #[must_use]
    pub fn resume(&self, transaction: Transaction) -> Tx {
        Tx::new(self.clone(), transaction)
    }
}

/// Within a transaction, one organization's rows.
impl RunSql for Tx {
    type Sql = OrgSql;

    async fn query(&self, sql: OrgSql, values: Vec<Value>) -> Result<Vec<QueryResult>> {
        let values = of_org(&self.scope, values);
        Ok(self.connection().query_all_raw(sql.0.statement(self.scope.core.db.backend(), values)).await?)
    }
}

impl RunWritingSql for Tx {
    async fn execute(&self, sql: OrgSql, values: impl Into<Vec<Value>> + Send) -> Result<u64> {
        let values = of_org(&self.scope, values.into());
        let statement = sql.0.statement(self.scope.core.db.backend(), values);
        Ok(self.connection().execute_raw(statement).await?.rows_affected())
    }
}

impl Tx {
    /// Runs a writing statement just before the commit. If it fails, nothing is committed.
    pub fn before_commit(&self, sql: OrgSql, values: impl Into<Vec<Value>>) {
        let values = of_org(&self.scope, values.into());
        self.connection().before_commit(sql.0.statement(self.scope.core.db.backend(), values));
    }
}

/// Outside a transaction, one organization's rows are read.
impl RunSql for Scope {
    type Sql = OrgSql;

    async fn query(&self, sql: OrgSql, values: Vec<Value>) -> Result<Vec<QueryResult>> {
        let db = &self.core.db;
        Ok(db.read().query_all_raw(sql.0.statement(db.backend(), of_org(self, values))).await?)
    }
}

impl Scope {
    /// Maps each row of a statement with `read`, in order. For searches, whose rows are large: only the results are
    /// kept. If the connection is lost meanwhile, the statement runs once more, so `read` may see a row twice.
    ///
    /// # Errors
    /// See [`RunSql::query`]; or a row can't be read.
    pub async fn each<R: Row, T>(
        &self,
        sql: OrgSql,
        values: impl Into<Vec<Value>>,
        mut read: impl FnMut(R) -> T,
    ) -> Result<Vec<T>> {
        let db = &self.core.db;
        let text = sql.0.for_backend(db.backend()).to_owned();
        let made = db.each(text, of_org(self, values.into()), |row| R::read(&row).map(&mut read)).await?;
        Ok(made.into_iter().collect::<std::result::Result<_, _>>()?)
    }

    /// The rows of these statements, joined into one between `before` and `after`. For searches whose places are chosen
    /// at run time.
    ///
    /// # Errors
    /// See [`RunSql::query`]; or a row can't be read.
    pub async fn union<R: Row>(
        &self,
        statements: &[OrgSql],
        (before, after): (&'static str, &'static str),
        values: impl Into<Vec<Value>>,
    ) -> Result<Vec<R>> {
        let db = &self.core.db;
        let texts: Vec<_> = statements.iter().map(|sql| sql.0.for_backend(db.backend())).collect();
        let text = [before, &texts.join(" UNION ALL "), after].concat();
        let rows = db.all(text, of_org(self, values.into())).await?;
        Ok(rows.iter().map(R::read).collect::<std::result::Result<_, _>>()?)
    }
}

fn of_org(scope: &Scope, values: Vec<Value>) -> Vec<Value> {
    std::iter::once(scope.org.into()).chain(values).collect()
}
