//! An organization as a tar archive, streamed: `manifest.json`, the lines of each table in files of a page, and files.
//!
//! The archive is as consistent as its pages: each row that exists from start to end is there once. Secrets are not.

use bytes::Bytes;
use futures::{Stream, StreamExt, stream};
use sea_orm::Value;
use serde_json::{Map, json};

use super::{
    queries,
    tables::{Exported, RIGHTS, SECRETS, TableRights},
};
use crate::{
    base::problem::{Problem, Result},
    core::{
        access::Scope,
        store::{Column, TABLES},
    },
    domain::conversations,
};

/// The size of a block of tar.
const BLOCK: usize = 512;

/// The end of an archive.
const END: [u8; 2 * BLOCK] = [0; 2 * BLOCK];

/// The archive, piece by piece. It is complete if the stream ends without an error.
pub fn export(scope: &Scope) -> impl Stream<Item = Result<Bytes>> + Send + use<> {
    let begin = entry(scope, "manifest.json", manifest(scope).to_string().as_bytes());
    let scope = scope.clone();
    let tables = stream::iter(RIGHTS).flat_map(move |table| of_table(&scope, table));
    stream::once(async move { begin })
        .chain(tables)
        .chain(stream::once(async { Ok(Bytes::from_static(&END)) }))
}

/// What the archive contains.
fn manifest(scope: &Scope) -> serde_json::Value {
    let (mut tables, mut left_out) = (Map::new(), Map::new());
    for table in RIGHTS.iter().filter(|table| table.rows.is_some()) {
        if let Exported::No(why) = table.exported {
            left_out.insert(table.table.to_owned(), why.into());
            continue;
        }
        let columns = columns(table).map(|column| (column.name.to_owned(), column.kind.word().into()));
        tables.insert(table.table.to_owned(), json!({ "columns": columns.collect::<Map<_, _>>() }));
    }
    json!({
        "format": 1,
        "muster": env!("CARGO_PKG_VERSION"),
        "organization_id": scope.org,
        "exported_at": scope.core.clock.now(),
        "tables": tables,
        "left_out": left_out,
    })
}

/// The exported columns of a table.
fn columns(table: &TableRights) -> impl Iterator<Item = &'static Column> {
    let known = TABLES.get(table.table).into_iter().flat_map(|known| &known.columns);
    known.filter(move |column| is_exported(table, column))
}

/// Whether a column is exported: it holds no secret, and no bytes, and is not made from another one.
fn is_exported(table: &TableRights, column: &Column) -> bool {
    let is_chosen = match table.exported {
        Exported::Columns(chosen) => chosen.contains(&column.name),
        _ => true,
    };
    let is_secret = column.name.ends_with("_sealed") || SECRETS.contains(&(table.table, column.name));
    is_chosen && !is_secret && !column.name.ends_with("_folded") && column.kind.word().is_some()
}

fn of_table(scope: &Scope, table: &'static TableRights) -> stream::BoxStream<'static, Result<Bytes>> {
    let Some(rows) = table.rows else { return stream::empty().boxed() };
    let lines = Lines { scope: scope.clone(), table, rows, after: None, part: 1, is_last: false };
    let lines = stream::try_unfold(lines, Lines::next);
    match table.exported {
        Exported::No(_) => stream::empty().boxed(),
        Exported::Lines | Exported::Columns(_) => lines.boxed(),
        Exported::Files { folder, id, content } => {
            let source = (table.table, id, content);
            let files = Files { scope: scope.clone(), source, folder, after: 0 };
            lines.chain(stream::try_unfold(files, Files::next)).boxed()
        }
        Exported::Mails => {
            let mails = Mails { scope: scope.clone(), after: 0 };
            lines.chain(stream::try_unfold(mails, Mails::next)).boxed()
        }
    }
}

/// The rest of a table's lines.
struct Lines {
    scope: Scope,
    table: &'static TableRights,
    rows: &'static str,
    after: Option<Vec<Value>>,
    /// The number of the next file.
    part: u32,
    is_last: bool,
}

impl Lines {
    async fn next(self) -> Result<Option<(Bytes, Self)>> {
        let Some(known) = TABLES.get(self.table.table).filter(|_| !self.is_last) else { return Ok(None) };
        let (scope, table) = (&self.scope, self.table);
        let shown = move |column: &Column| is_exported(table, column);
        let page = scope.core.db.table_page(known, self.rows, scope.org, self.after, shown).await?;
        if page.rows.is_empty() {
            return Ok(None);
        }
        let mut lines = Vec::new();
        for row in page.rows {
            lines.extend_from_slice(serde_json::Value::Object(row).to_string().as_bytes());
            lines.push(b'\n');
        }
        let file = entry(scope, &format!("tables/{}/{:06}.jsonl", table.table, self.part), &lines)?;
        let (is_last, part) = (page.next.is_none(), self.part + 1);
        Ok(Some((file, Self { scope: self.scope, after: page.next, part, is_last, ..self })))
    }
}

/// The rest of a table's files.
struct Files {
    scope: Scope,
    /// The table, and the columns of its ids and contents.
    source: (&'static str, &'static str, &'static str),
    folder: &'static str,
    after: i64,
}

impl Files {
    async fn next(self) -> Result<Option<(Bytes, Self)>> {
        let scope = &self.scope;
        let Some(found) = scope.core.db.file_after(self.source, scope.org, self.after).await? else {
            return Ok(None);
        };
        let file = entry(scope, &format!("files/{}/{}", self.folder, found.id), &found.bytes)?;
        Ok(Some((file, Self { after: found.id, ..self })))
    }
}

/// The rest of the raw mails.
struct Mails {
    scope: Scope,
    after: i64,
}

impl Mails {
    async fn next(mut self) -> Result<Option<(Bytes, Self)>> {
        while let Some(message) = queries::next_mail(&self.scope, self.after).await? {
            self.after = message.0;
            // One that is sealed with a lost key is left out.
            if let Some(mail) = conversations::source(&self.scope, message).await? {
                let file = entry(&self.scope, &format!("files/mails/{message}.eml"), &mail)?;
                return Ok(Some((file, self)));
            }
        }
        Ok(None)
    }
}

/// A file in the archive.
fn entry(scope: &Scope, name: &str, content: &[u8]) -> Result<Bytes> {
    let mut header = tar::Header::new_gnu();
    header.set_path(name).map_err(Problem::internal)?;
    header.set_size(content.len() as u64);
    header.set_mode(0o600);
    header.set_mtime(u64::try_from(scope.core.clock.now().0 / 1_000).unwrap_or_default());
    header.set_cksum();
    let mut out = Vec::with_capacity(content.len() + 2 * BLOCK);
    out.extend_from_slice(header.as_bytes());
    out.extend_from_slice(content);
    out.resize(out.len().next_multiple_of(BLOCK), 0);
    Ok(out.into())
}
