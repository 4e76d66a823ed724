//! Whole tables of an organization: read page by page, and changed or deleted in batches.
//!
//! The texts are made from the schema as committed (`migrations/schema.postgres.sql`, which a test compares with the
//! migrations) and from conditions that are constants of features; no input gets into them.

use std::{collections::BTreeMap, sync::LazyLock};

use sea_orm::{DbBackend, DbErr, QueryResult, Value};
use serde_json::{Map, Value as Json};

use super::Db;
use crate::base::{
    bounds::{BATCH, ROWS},
    ids::OrgId,
};

/// A table, as the schema has it.
#[derive(Debug)]
pub struct Table {
    pub name: &'static str,
    pub columns: Vec<Column>,
    /// The columns of its primary key, without the organization.
    key: Vec<&'static str>,
}

#[derive(Clone, Copy, Debug)]
pub struct Column {
    pub name: &'static str,
    pub kind: ColumnKind,
}

/// The kinds of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnKind {
    Number,
    Decimal,
    Flag,
    Text,
    Json,
    /// Bytes and search terms: digests, sealed secrets and files.
    Bytes,
}

impl ColumnKind {
    /// The kind in the words of JSON. `None`: it has no place there.
    #[must_use]
    pub const fn word(self) -> Option<&'static str> {
        Some(match self {
            Self::Number => "integer",
            Self::Decimal => "number",
            Self::Flag => "boolean",
            Self::Text => "string",
            Self::Json => "json",
            Self::Bytes => return None,
        })
    }
}

/// The tables of the schema by name.
pub static TABLES: LazyLock<BTreeMap<&'static str, Table>> = LazyLock::new(|| {
    let schema = include_str!("../../../migrations/schema.postgres.sql");
    schema.split("\nCREATE TABLE ").skip(1).filter_map(parse).map(|table| (table.name, table)).collect()
});

/// Reads `name (`, a line for each column and constraint, and `);`.
fn parse(text: &'static str) -> Option<Table> {
    let (name, rest) = text.split_once(" (\n")?;
    let (lines, _) = rest.split_once("\n);")?;
    let (mut columns, mut key) = (Vec::new(), Vec::new());
    for line in lines.lines().map(str::trim) {
        if let Some((_, columns)) = line.split_once("PRIMARY KEY (") {
            let columns = columns.split(')').next().unwrap_or_default();
            key = columns.split(", ").filter(|column| *column != "organization_id").collect();
        } else if !line.starts_with("CONSTRAINT ") {
            let (name, of) = line.split_once(' ')?;
            columns.push(Column { name, kind: kind(of) });
        }
    }
    Some(Table { name, columns, key })
}

fn kind(of: &str) -> ColumnKind {
    match of.split([' ', ',']).next().unwrap_or_default() {
        "bigint" | "integer" => ColumnKind::Number,
        "double" => ColumnKind::Decimal,
        "boolean" => ColumnKind::Flag,
        "text" => ColumnKind::Text,
        "json" => ColumnKind::Json,
        _ => ColumnKind::Bytes,
    }
}

/// A page of a table: its rows as objects, and the key after which the next page begins.
#[derive(Debug, Default)]
pub struct Page {
    pub rows: Vec<Map<String, Json>>,
    /// `None` after the last page.
    pub next: Option<Vec<Value>>,
}

/// A file in a table.
#[derive(Debug)]
pub struct StoredFile {
    pub id: i64,
    pub bytes: Vec<u8>,
}

impl Db {
    /// The next rows that meet a condition in which `$1` is the organization, in the order of their keys. Only the
    /// columns for which `is_shown` are read.
    pub(crate) async fn table_page(
        &self,
        table: &Table,
        condition: &str,
        org: OrgId,
        after: Option<Vec<Value>>,
        is_shown: impl Fn(&Column) -> bool + Send,
    ) -> Result<Page, DbErr> {
        let shown: Vec<&Column> = table.columns.iter().filter(|column| is_shown(column)).collect();
        let read = |column: &&Column| match column.kind {
            // The text: damaged JSON must not end the export.
            ColumnKind::Json => format!("CAST(\"{0}\" AS TEXT) AS \"{0}\"", column.name),
            _ => format!("\"{}\"", column.name),
        };
        let mut selected: Vec<String> = shown.iter().map(read).collect();
        selected.extend(table.key.iter().enumerate().map(|(n, key)| format!("\"{key}\" AS key_{n}")));
        let keys: Vec<String> = table.key.iter().map(|key| format!("\"{key}\"")).collect();
        let (name, selected, keys) = (table.name, selected.join(", "), keys.join(", "));
        let order = if keys.is_empty() { String::new() } else { format!(" ORDER BY {keys}") };
        let mut values: Vec<Value> = vec![org.into()];
        let later = after.map_or_else(String::new, |after| {
            let places: Vec<String> = (2..after.len() + 2).map(|n| format!("${n}")).collect();
            values.extend(after);
            format!(" AND ({keys}) > ({})", places.join(", "))
        });
        let sql = format!("SELECT {selected} FROM {name} WHERE ({condition}){later}{order} LIMIT {BATCH}");
        let found = self.all(sql, values).await?;
        let is_full = found.len() == BATCH as usize && !keys.is_empty();
        let next = found.last().filter(|_| is_full).map(|row| key_of(table, row)).transpose()?;
        let mut rows = Vec::with_capacity(found.len());
        for row in &found {
            let mut object = Map::new();
            for column in &shown {
                object.insert(column.name.to_owned(), value(row, column)?);
            }
            rows.push(object);
        }
        Ok(Page { rows, next })
    }

    /// The next file of a table: the first whose `id` is greater.
    pub(crate) async fn file_after(
        &self,
        (table, id, content): (&str, &str, &str),
        org: OrgId,
        after: i64,
    ) -> Result<Option<StoredFile>, DbErr> {
        let sql = format!(
            "SELECT {id} AS id, {content} AS content FROM {table} WHERE organization_id = $1 AND {id} > $2 \
             ORDER BY {id} LIMIT 1"
        );
        let Some(row) = self.one(sql, vec![org.into(), after.into()]).await? else { return Ok(None) };
        Ok(Some(StoredFile { id: row.try_get_by("id")?, bytes: row.try_get_by("content")? }))
    }

    /// Deletes a batch of the rows that meet a condition. Returns their number.
    pub(crate) async fn delete_batch(
        &self,
        table: &str,
        condition: &str,
        values: &[Value],
    ) -> Result<u64, DbErr> {
        let delete = format!("DELETE FROM {table} WHERE {}", self.batch(table, condition));
        self.execute(&delete, values.to_vec()).await
    }

    /// Changes the rows that meet a condition, a batch at a time, and returns their number. A changed row must no longer
    /// meet it.
    pub(crate) async fn rewrite(
        &self,
        table: &str,
        (assignment, condition): (&str, &str),
        values: &[Value],
    ) -> Result<u64, DbErr> {
        let update = format!("UPDATE {table} SET {assignment} WHERE {}", self.batch(table, condition));
        let mut changed = 0;
        loop {
            let now = self.execute(&update, values.to_vec()).await?;
            changed += now;
            if now < u64::from(ROWS) {
                return Ok(changed);
            }
        }
    }

    /// The condition for a batch of the rows that meet another.
    pub(super) fn batch(&self, table: &str, condition: &str) -> String {
        match self.backend() {
            // A row may change while the statement waits for it. Not every PostgreSQL version then rechecks its place,
            // but all recheck the condition, which the statement repeats.
            DbBackend::Postgres => format!(
                "ctid = ANY(ARRAY(SELECT ctid FROM {table} WHERE {condition} LIMIT {ROWS})) AND ({condition})"
            ),
            _ => format!(
                "rowid IN (SELECT rowid FROM {table} WHERE {condition} LIMIT {ROWS}) AND ({condition})"
            ),
        }
    }
}

fn key_of(table: &Table, row: &QueryResult) -> Result<Vec<Value>, DbErr> {
    let mut values = Vec::with_capacity(table.key.len());
    for (n, key) in table.key.iter().enumerate() {
        let name = format!("key_{n}");
        let kind = table.columns.iter().find(|column| column.name == *key).map(|column| column.kind);
        values.push(match kind {
            Some(ColumnKind::Text) => row.try_get_by::<String, _>(name.as_str())?.into(),
            _ => row.try_get_by::<i64, _>(name.as_str())?.into(),
        });
    }
    Ok(values)
}

fn value(row: &QueryResult, column: &Column) -> Result<Json, DbErr> {
    let name = column.name;
    Ok(match column.kind {
        ColumnKind::Number => row.try_get_by::<Option<i64>, _>(name)?.into(),
        ColumnKind::Decimal => row.try_get_by::<Option<f64>, _>(name)?.into(),
        ColumnKind::Flag => row.try_get_by::<Option<bool>, _>(name)?.into(),
        ColumnKind::Text => row.try_get_by::<Option<String>, _>(name)?.into(),
        ColumnKind::Json => row
            .try_get_by::<Option<String>, _>(name)?
            .map_or(Json::Null, |text| muster_json::from_str(&text).unwrap_or(Json::String(text))),
        ColumnKind::Bytes => Json::Null,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schema_is_read_as_it_is_committed() {
        let agents = &TABLES["agents"];
        assert_eq!(agents.key, ["id"]);
        let kind = |name: &str| agents.columns.iter().find(|column| column.name == name).unwrap().kind;
        assert_eq!((kind("name"), kind("revision")), (ColumnKind::Text, ColumnKind::Number));
        assert_eq!((kind("cpu_override"), kind("no_emoji")), (ColumnKind::Decimal, ColumnKind::Flag));
        assert_eq!(
            (kind("offered_modes"), kind("model_credential_sealed")),
            (ColumnKind::Json, ColumnKind::Bytes)
        );
        assert_eq!(TABLES["edits"].key, ["kind", "record_id"]);
        assert!(TABLES.len() > 70 && TABLES.values().all(|table| !table.columns.is_empty()));
    }
}
