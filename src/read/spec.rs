//! What a record is made of. Slices write [`Spec`]s in their `graphql.rs`; the rest of the module reads them.

use std::collections::HashMap;

use async_graphql::{OutputType, registry::Registry};
use sea_orm::DbBackend;

use crate::{
    base::{
        column::{Column, Kind},
        permission::Permission,
        spelling::camel_case,
    },
    core::access::Scope,
};

/// A GraphQL object that is a row of a table (alias `t`), or of a join around it.
pub trait Record: Send + Sync + 'static {
    /// The record's description; the same one each time.
    fn spec() -> &'static Spec;
}

/// A record type: its GraphQL name, where its rows come from, and its fields.
pub struct Spec {
    /// The GraphQL type's name.
    pub name: &'static str,
    /// The `FROM` clause; the record's own table has the alias `t`.
    pub from: &'static str,
    /// The column of `t` that holds the tenant.
    pub tenant: &'static str,
    /// What a caller needs to see records of this type where another record relates to them.
    pub permission: Option<Permission>,
    /// What a row has to meet to be seen at all; empty where every row is.
    pub living: &'static str,
    pub(super) about: &'static str,
    pub(super) fields: Vec<Field>,
    by_name: HashMap<String, usize>,
}

pub(super) struct Field {
    /// The GraphQL name (camelCase).
    pub name: String,
    pub about: &'static str,
    pub source: Source,
    /// What a caller needs to see the value; without it the value is null.
    pub permission: Option<Permission>,
}

/// Registers a GraphQL type and returns its qualified name.
pub(super) type Register = fn(&mut Registry) -> String;

pub(super) enum Source {
    /// One value of the row.
    Value { sql: Sql, kind: Kind, register: Register },
    /// A value that depends on the caller and on no row, as JSON.
    Caller { json: fn(&Scope) -> String, register: Register },
    /// A secret that this one answer shows: no row has it.
    Secret { register: Register },
    /// JSON whose parts can be selected; the stored keys are the snake_case of the GraphQL names.
    Parts { sql: String, register: Register },
    /// An object made of values of the same row; null where `present` is false.
    Embedded { spec: fn() -> &'static Spec, present: &'static str, register: Register },
    /// Another record, by a key that the row holds.
    One { spec: fn() -> &'static Spec, key: &'static str, load: Load, register: Register },
    /// Other records that hold the row's key.
    Many { spec: fn() -> &'static Spec, key: &'static str, load: Load, register: Register },
}

/// An expression over the row.
pub(super) struct Sql {
    pub sqlite: String,
    /// `None` where the two databases share one.
    pub postgres: Option<String>,
}

impl Sql {
    pub fn on(&self, backend: DbBackend) -> &str {
        match &self.postgres {
            Some(sql) if backend == DbBackend::Postgres => sql,
            _ => &self.sqlite,
        }
    }
}

impl From<String> for Sql {
    fn from(sqlite: String) -> Self {
        Self { sqlite, postgres: None }
    }
}

/// How the rows of a relation are found. The related record's own spec is named by a function and not read
/// when the relation is declared: two records may relate to each other.
#[derive(Clone, Copy, Debug)]
pub(super) struct Load {
    /// Another `FROM` clause than the related record's own.
    pub from: Option<&'static str>,
    /// The related rows' column that holds the key.
    pub by: &'static str,
    pub filter: &'static str,
    pub order: &'static str,
}

/// A relation to many. What is left out has the related record's own default.
#[derive(Clone, Copy, Debug)]
pub struct Many {
    /// The row's key, mostly `t.id`.
    pub key: &'static str,
    /// The related rows' column that holds the key: `t.server_id`.
    pub by: &'static str,
    /// Another `FROM` clause, for relations through a join table.
    pub from: Option<&'static str>,
    /// A condition that each related row must meet: `t.archived_at IS NULL`.
    pub filter: &'static str,
    /// The order of the related rows.
    pub order: &'static str,
}

impl Default for Many {
    fn default() -> Self {
        Self { key: "t.id", by: "", from: None, filter: "", order: "t.id" }
    }
}

impl Spec {
    /// Begins a record type whose rows come from `from` (the table with the alias `t`).
    #[must_use]
    pub fn new(name: &'static str, from: &'static str, about: &'static str) -> Self {
        Self {
            name,
            from,
            tenant: "t.organization_id",
            permission: None,
            living: "",
            about,
            fields: Vec::new(),
            by_name: HashMap::new(),
        }
    }

    /// Names the permission that a caller needs to reach records of this type through a relation. A record
    /// without one shows no more than the records that relate to it may show anyway.
    #[must_use]
    pub fn permission(mut self, permission: Permission) -> Self {
        self.permission = Some(permission);
        self
    }

    /// Records of this type are deleted by hiding them: a row that does not meet `condition` is in no list, behind no id
    /// and behind no relation. What only names it (an `AgentSummary`) is a record type of its own and goes on doing so.
    #[must_use]
    pub fn living(mut self, condition: &'static str) -> Self {
        self.living = condition;
        self
    }

    /// Names another tenant column than `t.organization_id`.
    #[must_use]
    pub fn tenant(mut self, column: &'static str) -> Self {
        self.tenant = column;
        self
    }

    /// A field that is the column of the same name.
    #[must_use]
    pub fn column<T: Column>(self, name: &'static str, about: &'static str) -> Self {
        self.sql::<T>(name, format!("t.{name}"), about)
    }

    /// A field that is an SQL expression over the row (portable between SQLite and PostgreSQL).
    #[must_use]
    pub fn sql<T: Column>(self, name: &'static str, sql: impl Into<String>, about: &'static str) -> Self {
        self.field(
            name,
            about,
            Source::Value { sql: sql.into().into(), kind: T::KIND, register: T::create_type_info },
        )
    }

    /// [`Self::sql`] for the few things that the two databases spell differently, such as lists made of rows.
    #[must_use]
    pub fn sql_by_backend<T: Column>(
        self,
        name: &'static str,
        sqlite: impl Into<String>,
        postgres: impl Into<String>,
        about: &'static str,
    ) -> Self {
        let sql = Sql { sqlite: sqlite.into(), postgres: Some(postgres.into()) };
        self.field(name, about, Source::Value { sql, kind: T::KIND, register: T::create_type_info })
    }

    /// Whole seconds that have passed since the instant that the SQL expression gives.
    #[must_use]
    pub fn elapsed(self, name: &'static str, since: &'static str, about: &'static str) -> Self {
        let register = <Option<i64> as OutputType>::create_type_info;
        self.field(name, about, Source::Value { sql: since.to_owned().into(), kind: Kind::Elapsed, register })
    }

    /// A field whose value depends on the caller alone: `json` writes it.
    #[must_use]
    pub fn caller<T: OutputType>(
        self,
        name: &'static str,
        json: fn(&Scope) -> String,
        about: &'static str,
    ) -> Self {
        self.field(name, about, Source::Caller { json, register: T::create_type_info })
    }

    /// The permissions about such records that the caller holds, as [`Scope::can`] writes them: for a panel that greys
    /// out. The policy knows no single record, so it is the same for all of a list; `viewerCan` of the root says why.
    #[must_use]
    pub fn viewer_can(self, json: fn(&Scope) -> String) -> Self {
        let about =
            "The permissions about it that the caller holds; the root field `viewerCan` says why or why not.";
        self.caller::<Vec<Permission>>("viewer_can", json, about)
    }

    /// A secret that only the answer which made it shows (see [`One::with_secret`](super::One::with_secret)).
    #[must_use]
    pub fn secret(self, name: &'static str, about: &'static str) -> Self {
        self.field(name, about, Source::Secret { register: <Option<String> as OutputType>::create_type_info })
    }

    /// A field that is JSON whose parts can be selected. `T` gives the GraphQL type; the stored JSON has its
    /// names in snake_case.
    #[must_use]
    pub fn parts<T: OutputType>(
        self,
        name: &'static str,
        sql: impl Into<String>,
        about: &'static str,
    ) -> Self {
        self.field(name, about, Source::Parts { sql: sql.into(), register: T::create_type_info })
    }

    /// An object made of values of the same row, null where the SQL expression `present` is not true.
    #[must_use]
    pub fn embedded<R: Record>(self, name: &'static str, present: &'static str, about: &'static str) -> Self {
        let register = super::schema::register_nullable::<R>;
        self.field(name, about, Source::Embedded { spec: R::spec, present, register })
    }

    /// Another record, found by the id that the SQL expression `key` gives.
    #[must_use]
    pub fn one<R: Record>(self, name: &'static str, key: &'static str, about: &'static str) -> Self {
        self.one_by::<R>(name, key, "t.id", about)
    }

    /// Another record, found by a column of its own.
    #[must_use]
    pub fn one_by<R: Record>(
        self,
        name: &'static str,
        key: &'static str,
        by: &'static str,
        about: &'static str,
    ) -> Self {
        let load = Load { from: None, by, filter: "", order: "" };
        let register = super::schema::register_nullable::<R>;
        self.field(name, about, Source::One { spec: R::spec, key, load, register })
    }

    /// Related records, as a list.
    #[must_use]
    pub fn many<R: Record>(self, name: &'static str, many: Many, about: &'static str) -> Self {
        let Many { key, by, from, filter, order } = many;
        let load = Load { from, by, filter, order };
        let register = super::schema::register_list::<R>;
        self.field(name, about, Source::Many { spec: R::spec, key, load, register })
    }

    /// Whether its rows are made of more than one table.
    pub(super) fn is_joined(&self) -> bool {
        self.from.contains(" JOIN ")
    }

    fn field(mut self, name: &str, about: &'static str, source: Source) -> Self {
        let name = camel_case(name);
        self.by_name.insert(name.clone(), self.fields.len());
        self.fields.push(Field { name, about, source, permission: None });
        self
    }

    /// The field just named is null for a caller without this permission: its type has to be nullable. A list that can be
    /// filtered or sorted by the value would still tell it, so those need the permission as well.
    #[must_use]
    pub fn needs(mut self, permission: Permission) -> Self {
        if let Some(field) = self.fields.last_mut() {
            field.permission = Some(permission);
        }
        self
    }

    pub(super) fn get(&self, name: &str) -> Option<&Field> {
        self.by_name.get(name).map(|&index| &self.fields[index])
    }
}
