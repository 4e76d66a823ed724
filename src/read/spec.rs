//! The definition of records. `src/graphql` writes [`Spec`]s; the rest of the module reads them.

use std::collections::HashMap;

use async_graphql::{OutputType, registry::Registry};
use sea_orm::DbBackend;

use crate::{
    base::{
        column::{Column, Kind},
        enums::RecordKind,
        permission::Permission,
        problem::Result,
        spelling::camel_case,
    },
    core::access::Scope,
};

/// A GraphQL object backed by a row of a table (alias `t`) or of a join around it.
pub trait Record: Send + Sync + 'static {
    /// The record's definition. Always the same one.
    fn spec() -> &'static Spec;
}

/// A record type: its GraphQL name, where its rows come from, and its fields.
pub struct Spec {
    /// The GraphQL type's name.
    pub name: &'static str,
    /// The `FROM` clause. The record's own table has the alias `t`.
    pub from: &'static str,
    /// The tenant column of `t`.
    pub tenant: &'static str,
    /// The permission needed to see records of this type through a relation.
    pub permission: Option<Permission>,
    /// A condition that rows must meet to be visible at all. Empty if all are.
    pub visible: &'static str,
    pub(super) about: &'static str,
    pub(super) fields: Vec<Field>,
    by_name: HashMap<String, usize>,
}

pub(super) struct Field {
    /// The GraphQL name (camelCase).
    pub name: String,
    pub about: &'static str,
    pub source: Source,
    /// The permission needed to see the value. Without it, the value is null.
    pub permission: Option<Permission>,
    /// Whether a service token never sees the value, regardless of its permissions.
    pub is_for_people: bool,
}

/// Makes the JSON of a field from the stored text.
pub type Make = fn(&str) -> Result<String>;

/// Registers a GraphQL type and returns its qualified name.
pub(super) type Register = fn(&mut Registry) -> String;

pub(super) enum Source {
    /// One value of the row.
    Value { sql: Sql, kind: Kind, register: Register },
    /// A value that depends on the caller and not on the row, as JSON.
    Caller { json: fn(&Scope) -> String, register: Register },
    /// A secret shown in this answer only. It is in no row.
    Secret { register: Register },
    /// JSON whose parts can be selected. The stored keys are the GraphQL names in snake_case.
    Parts { sql: String, make: Option<Make>, register: Register },
    /// An object made of values of the same row. Null if `present` is false.
    Embedded { spec: fn() -> &'static Spec, present: &'static str, register: Register },
    /// Another record, by a key in this row.
    One { spec: fn() -> &'static Spec, key: &'static str, load: Load, register: Register },
    /// Other records that hold this row's key.
    Many { spec: fn() -> &'static Spec, key: &'static str, load: Load, register: Register },
}

/// An expression over the row.
pub(super) struct Sql {
    pub sqlite: String,
    /// `None` if both databases use the same SQL.
    pub postgres: Option<String>,
}

impl Sql {
    pub fn for_backend(&self, backend: DbBackend) -> &str {
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

/// How the rows of a relation are found. The related record's spec is given as a function and isn't read when
/// the relation is declared, because two records may relate to each other.
#[derive(Clone, Copy, Debug)]
pub(super) struct Load {
    /// A `FROM` clause to use instead of the related record's own.
    pub from: Option<&'static str>,
    /// The related rows' column that holds the key.
    pub by: &'static str,
    pub filter: &'static str,
    pub order: &'static str,
}

/// A relation to many. Empty fields take the related record's own defaults.
#[derive(Clone, Copy, Debug)]
pub struct Many {
    /// The row's key, usually `t.id`.
    pub key: &'static str,
    /// The related rows' column that holds the key: `t.server_id`.
    pub by: &'static str,
    /// A different `FROM` clause, for relations through a join table.
    pub from: Option<&'static str>,
    /// A condition on each related row: `t.archived_at IS NULL`.
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
    /// A record type whose rows come from `from` (the table with the alias `t`).
    #[must_use]
    pub fn new(name: &'static str, from: &'static str, about: &'static str) -> Self {
        Self {
            name,
            from,
            tenant: "t.organization_id",
            permission: None,
            visible: "",
            about,
            fields: Vec::new(),
            by_name: HashMap::new(),
        }
    }

    /// The permission needed to reach records of this type through a relation. A record without one shows no
    /// more than the records that relate to it already show.
    #[must_use]
    pub fn permission(mut self, permission: Permission) -> Self {
        self.permission = Some(permission);
        self
    }

    /// Deleting records of this type hides them: a row that doesn't meet `condition` appears in no list, under no id,
    /// and in no relation. A short form that only names it (such as `AgentSummary`) is a separate record type and still
    /// appears.
    #[must_use]
    pub fn visible(mut self, condition: &'static str) -> Self {
        self.visible = condition;
        self
    }

    /// Sets a tenant column other than `t.organization_id`.
    #[must_use]
    pub fn tenant(mut self, column: &'static str) -> Self {
        self.tenant = column;
        self
    }

    /// A field backed by the column of the same name.
    #[must_use]
    pub fn column<T: Column>(self, name: &'static str, about: &'static str) -> Self {
        self.sql::<T>(name, format!("t.{name}"), about)
    }

    /// A field computed by an SQL expression over the row (portable between SQLite and PostgreSQL).
    #[must_use]
    pub fn sql<T: Column>(self, name: &'static str, sql: impl Into<String>, about: &'static str) -> Self {
        self.field(
            name,
            about,
            Source::Value { sql: sql.into().into(), kind: T::KIND, register: T::create_type_info },
        )
    }

    /// The number of edits that callers made of the record (`domain/edits.rs`).
    #[must_use]
    pub fn revision(self, kind: RecordKind) -> Self {
        let (tenant, kind) = (self.tenant, kind.noun());
        let sql = format!(
            "COALESCE((SELECT e.revision FROM edits e WHERE e.organization_id = {tenant} AND e.kind = '{kind}' \
             AND e.record_id = t.id), 0)"
        );
        self.sql::<i64>(
            "revision",
            sql,
            "Counts the edits that people made. Send it as `ifRevision` to detect another edit.",
        )
    }

    /// [`Self::sql`] for the few expressions that differ between the two databases, such as lists built from
    /// rows.
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

    /// Whole seconds since the time given by the SQL expression.
    #[must_use]
    pub fn elapsed(self, name: &'static str, since: &'static str, about: &'static str) -> Self {
        let register = <Option<i64> as OutputType>::create_type_info;
        self.field(name, about, Source::Value { sql: since.to_owned().into(), kind: Kind::Elapsed, register })
    }

    /// A field whose value depends only on the caller. `json` writes it.
    #[must_use]
    pub fn caller<T: OutputType>(
        self,
        name: &'static str,
        json: fn(&Scope) -> String,
        about: &'static str,
    ) -> Self {
        self.field(name, about, Source::Caller { json, register: T::create_type_info })
    }

    /// The caller's permissions on these records, as [`Scope::can`] writes them, so that a panel can grey out
    /// actions. The policy knows no individual records, so the value is the same for a whole list. The root
    /// field `viewerCan` explains it.
    #[must_use]
    pub fn viewer_can(self, json: fn(&Scope) -> String) -> Self {
        let about = "The caller's permissions on it. The root field `viewerCan` explains why or why not.";
        self.caller::<Vec<Permission>>("viewer_can", json, about)
    }

    /// A secret shown only in the answer that created it (see [`One::with_secret`](super::One::with_secret)).
    #[must_use]
    pub fn secret(self, name: &'static str, about: &'static str) -> Self {
        self.field(name, about, Source::Secret { register: <Option<String> as OutputType>::create_type_info })
    }

    /// A JSON field whose parts can be selected. `T` gives the GraphQL type; the stored JSON has its names in
    /// snake_case.
    #[must_use]
    pub fn parts<T: OutputType>(
        self,
        name: &'static str,
        sql: impl Into<String>,
        about: &'static str,
    ) -> Self {
        self.field(name, about, Source::Parts { sql: sql.into(), make: None, register: T::create_type_info })
    }

    /// The same, where `make` builds the JSON from the stored text.
    #[must_use]
    pub fn parts_made_by<T: OutputType>(
        self,
        name: &'static str,
        sql: impl Into<String>,
        make: Make,
        about: &'static str,
    ) -> Self {
        let (sql, make) = (sql.into(), Some(make));
        self.field(name, about, Source::Parts { sql, make, register: T::create_type_info })
    }

    /// An object made of values of the same row. Null unless the SQL expression `present` is true.
    #[must_use]
    pub fn embedded<R: Record>(self, name: &'static str, present: &'static str, about: &'static str) -> Self {
        let register = super::schema::register_nullable::<R>;
        self.field(name, about, Source::Embedded { spec: R::spec, present, register })
    }

    /// Another record, by the id that the SQL expression `key` gives.
    #[must_use]
    pub fn one<R: Record>(self, name: &'static str, key: &'static str, about: &'static str) -> Self {
        self.one_by::<R>(name, key, "t.id", about)
    }

    /// Another record, by one of its own columns.
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

    /// Whether its rows come from more than one table.
    pub(super) fn is_joined(&self) -> bool {
        self.from.contains(" JOIN ")
    }

    fn field(mut self, name: &str, about: &'static str, source: Source) -> Self {
        let name = camel_case(name);
        self.by_name.insert(name.clone(), self.fields.len());
        self.fields.push(Field { name, about, source, permission: None, is_for_people: false });
        self
    }

    /// Makes the last field null for a caller without this permission, so its type must be nullable. Filtering
    /// or sorting a list by the value would still reveal it, so those need the permission as well.
    #[must_use]
    pub fn needs(mut self, permission: Permission) -> Self {
        if let Some(field) = self.fields.last_mut() {
            field.permission = Some(permission);
        }
        self
    }

    /// The same, and a service token never sees the value.
    #[must_use]
    pub fn needs_person(self, permission: Permission) -> Self {
        let mut spec = self.needs(permission);
        if let Some(field) = spec.fields.last_mut() {
            field.is_for_people = true;
        }
        spec
    }

    pub(super) fn get(&self, name: &str) -> Option<&Field> {
        self.by_name.get(name).map(|&index| &self.fields[index])
    }
}
