//! SQL as text: three macros, and rows by name.
//!
//! | Macro | Run by | Its statements |
//! |---|---|---|
//! | [`sql!`] | [`Tx`](super::Tx), [`Scope`](crate::core::access::Scope) | one organization's rows: `$org` occurs in the text, or it does not compile |
//! | [`installation_sql!`] | [`Installation`], [`Transaction`], [`Connections`] | people, keys, the audit log's chains and other rows of no organization |
//! | [`every_org_sql!`] | [`EveryOrg`] | jobs over all organizations: `organization_id` occurs where rows are selected |
//!
//! Texts are constants, which features keep in `queries.rs` files, and are joined at compile time. They are
//! PostgreSQL's: for SQLite `= ANY($2)` becomes a list, and locks (`FOR …`) go. Values are `$2, $3, …` beside `$org`,
//! and `$1, $2, …` elsewhere.

use sea_orm::{ConnectionTrait, DbBackend, QueryResult, Statement, TryGetable, Value};

use super::{Connections, EveryOrg, Installation, Transaction};
use crate::base::problem::Result;

/// A statement in the dialects of both databases.
#[derive(Clone, Copy, Debug)]
pub struct Text {
    pub postgres: &'static str,
    pub sqlite: &'static str,
}

impl Text {
    pub(super) fn for_backend(self, backend: DbBackend) -> &'static str {
        if backend == DbBackend::Postgres { self.postgres } else { self.sqlite }
    }

    pub(crate) fn statement(self, backend: DbBackend, values: Vec<Value>) -> Statement {
        Statement::from_sql_and_values(backend, self.for_backend(backend), values)
    }
}

/// A statement about one organization. Made by [`sql!`].
#[derive(Clone, Copy, Debug)]
pub struct OrgSql(pub Text);

/// A statement about rows of no organization. Made by [`installation_sql!`].
#[derive(Clone, Copy, Debug)]
pub struct InstallationSql(pub Text);

/// A statement about all organizations. Made by [`every_org_sql!`].
#[derive(Clone, Copy, Debug)]
pub struct EveryOrgSql(pub Text);

/// A statement about one organization, from one text or several: `sql!("SELECT … WHERE organization_id = $org", MORE)`.
macro_rules! sql {
    ($($part:expr),+ $(,)?) => {{
        const { assert!($crate::core::store::sql::names(&[$($part),+], "$org"), "the text has no $org") };
        $crate::core::store::sql::OrgSql($crate::core::store::sql::text!($($part),+))
    }};
}

/// A statement about rows of no organization (people, sessions, keys), or one that looks up a row's organization.
macro_rules! installation_sql {
    ($($part:expr),+ $(,)?) => {{
        const { assert!(!$crate::core::store::sql::names(&[$($part),+], "$org"), "the text has an $org") };
        $crate::core::store::sql::InstallationSql($crate::core::store::sql::text!($($part),+))
    }};
}

/// A statement about all organizations, for jobs.
macro_rules! every_org_sql {
    ($($part:expr),+ $(,)?) => {{
        const {
            assert!(!$crate::core::store::sql::names(&[$($part),+], "$org"), "the text has an $org");
            assert!(
                $crate::core::store::sql::names(&[$($part),+], "organization_id") || !$crate::core::store::sql::is_select(&[$($part),+]),
                "the SELECT does not name organization_id"
            )
        };
        $crate::core::store::sql::EveryOrgSql($crate::core::store::sql::text!($($part),+))
    }};
}

/// Joins parts of a text at compile time.
macro_rules! text {
    ($($part:expr),+) => {{
        const PARTS: &[&str] = &[$($part),+];
        const POSTGRES: &[u8] = &{
            let mut text = [b' '; $crate::core::store::sql::length(PARTS)];
            assert!($crate::core::store::sql::join(PARTS, &mut text) == text.len());
            text
        };
        const SQLITE: &[u8] = &{
            let mut text = [b' '; $crate::core::store::sql::length_for_sqlite(POSTGRES)];
            assert!($crate::core::store::sql::translate(POSTGRES, &mut text) == text.len());
            text
        };
        $crate::core::store::sql::Text {
            postgres: $crate::core::store::sql::utf8(POSTGRES),
            sqlite: $crate::core::store::sql::utf8(SQLITE),
        }
    }};
}

/// A row, read by the names of its columns:
///
/// ```ignore
/// row! {
///     /// A lease that has run out.
///     pub struct Due { organization_id: OrgId, agent_id: AgentId, id: LeaseId }
/// }
/// ```
macro_rules! row {
    ($(#[$meta:meta])* $vis:vis struct $name:ident { $($(#[$about:meta])* $column:ident: $ty:ty),+ $(,)? }) => {
        $(#[$meta])*
        $vis struct $name {
            $($(#[$about])* pub $column: $ty),+
        }

        impl $crate::core::store::sql::Row for $name {
            fn read(row: &sea_orm::QueryResult) -> Result<Self, sea_orm::DbErr> {
                Ok(Self { $($column: row.try_get_by(stringify!($column))?),+ })
            }
        }
    };
}

pub(crate) use {every_org_sql, installation_sql, row, sql, text};

pub trait Row: Sized + Send {
    /// Reads it.
    ///
    /// # Errors
    /// A column is missing, or of another type.
    fn read(row: &QueryResult) -> std::result::Result<Self, sea_orm::DbErr>;
}

/// A row of one column.
struct Only<T>(T);

impl<T: TryGetable + Send> Row for Only<T> {
    fn read(row: &QueryResult) -> std::result::Result<Self, sea_orm::DbErr> {
        row.try_get_by_index(0).map(Self)
    }
}

/// Runs statements of one kind.
pub trait RunSql: Sync {
    type Sql: Send;

    /// The rows of a statement, as they come.
    ///
    /// # Errors
    /// The database refused it, or can't be reached. This holds for all methods.
    fn query(
        &self,
        sql: Self::Sql,
        values: Vec<Value>,
    ) -> impl Future<Output = Result<Vec<QueryResult>>> + Send;

    fn all<R: Row>(
        &self,
        sql: Self::Sql,
        values: impl Into<Vec<Value>> + Send,
    ) -> impl Future<Output = Result<Vec<R>>> + Send {
        async move {
            let rows = self.query(sql, values.into()).await?;
            Ok(rows.iter().map(R::read).collect::<std::result::Result<_, _>>()?)
        }
    }

    /// The first row.
    fn one<R: Row>(
        &self,
        sql: Self::Sql,
        values: impl Into<Vec<Value>> + Send,
    ) -> impl Future<Output = Result<Option<R>>> + Send {
        async move { Ok(self.all(sql, values).await?.into_iter().next()) }
    }

    /// The only column.
    fn column<T: TryGetable + Send>(
        &self,
        sql: Self::Sql,
        values: impl Into<Vec<Value>> + Send,
    ) -> impl Future<Output = Result<Vec<T>>> + Send {
        async move { Ok(self.all::<Only<T>>(sql, values).await?.into_iter().map(|only| only.0).collect()) }
    }

    /// The only column of the first row.
    fn scalar<T: TryGetable + Send>(
        &self,
        sql: Self::Sql,
        values: impl Into<Vec<Value>> + Send,
    ) -> impl Future<Output = Result<Option<T>>> + Send {
        async move { Ok(self.one::<Only<T>>(sql, values).await?.map(|only| only.0)) }
    }
}

/// Also runs statements that write.
pub trait RunWritingSql: RunSql {
    /// Runs a writing statement. Returns the number of rows affected.
    ///
    /// # Errors
    /// The database refused it, or can't be reached.
    fn execute(
        &self,
        sql: Self::Sql,
        values: impl Into<Vec<Value>> + Send,
    ) -> impl Future<Output = Result<u64>> + Send;
}

/// Within a transaction, rows of no organization.
impl RunSql for Transaction {
    type Sql = InstallationSql;

    async fn query(&self, sql: InstallationSql, values: Vec<Value>) -> Result<Vec<QueryResult>> {
        Ok(self.query_all_raw(sql.0.statement(self.get_database_backend(), values)).await?)
    }
}

impl RunWritingSql for Transaction {
    async fn execute(&self, sql: InstallationSql, values: impl Into<Vec<Value>> + Send) -> Result<u64> {
        let statement = sql.0.statement(self.get_database_backend(), values.into());
        Ok(self.execute_raw(statement).await?.rows_affected())
    }
}

impl Transaction {
    /// Runs a writing statement just before the commit. If it fails, nothing is committed.
    pub fn execute_before_commit(&self, sql: InstallationSql, values: impl Into<Vec<Value>>) {
        self.before_commit(sql.0.statement(self.get_database_backend(), values.into()));
    }
}

/// On chosen connections: those for writing see every committed row.
impl RunSql for Connections {
    type Sql = InstallationSql;

    async fn query(&self, sql: InstallationSql, values: Vec<Value>) -> Result<Vec<QueryResult>> {
        Ok(self.query_all_raw(sql.0.statement(self.get_database_backend(), values)).await?)
    }
}

impl RunSql for Installation<'_> {
    type Sql = InstallationSql;

    async fn query(&self, sql: InstallationSql, values: Vec<Value>) -> Result<Vec<QueryResult>> {
        self.0.read().query(sql, values).await
    }
}

impl RunWritingSql for Installation<'_> {
    async fn execute(&self, sql: InstallationSql, values: impl Into<Vec<Value>> + Send) -> Result<u64> {
        let statement = sql.0.statement(self.0.backend(), values.into());
        Ok(self.0.writer().execute_raw(statement).await?.rows_affected())
    }
}

impl RunSql for EveryOrg<'_> {
    type Sql = EveryOrgSql;

    async fn query(&self, sql: EveryOrgSql, values: Vec<Value>) -> Result<Vec<QueryResult>> {
        Ok(self.0.read().query_all_raw(sql.0.statement(self.0.backend(), values)).await?)
    }
}

impl RunWritingSql for EveryOrg<'_> {
    async fn execute(&self, sql: EveryOrgSql, values: impl Into<Vec<Value>> + Send) -> Result<u64> {
        let statement = sql.0.statement(self.0.backend(), values.into());
        Ok(self.0.writer().execute_raw(statement).await?.rows_affected())
    }
}

/// Whether a word occurs in the parts.
#[doc(hidden)]
#[must_use]
pub const fn names(parts: &[&str], word: &str) -> bool {
    let mut part = 0;
    while part < parts.len() {
        let text = parts[part].as_bytes();
        let mut at = 0;
        while at < text.len() {
            if starts(text, at, word.as_bytes()) {
                return true;
            }
            at += 1;
        }
        part += 1;
    }
    false
}

/// Whether the statement is a SELECT.
#[doc(hidden)]
#[must_use]
pub const fn is_select(parts: &[&str]) -> bool {
    starts(parts[0].as_bytes(), 0, b"SELECT")
}

#[doc(hidden)]
#[must_use]
pub const fn length(parts: &[&str]) -> usize {
    let (mut length, mut part) = (0, 0);
    while part < parts.len() {
        length += parts[part].len();
        part += 1;
    }
    length
}

/// Joins the parts, with `$1` in place of `$org`. Returns the length.
///
/// Writes into a buffer, because a `const fn` can't return an array whose length depends on its arguments.
#[doc(hidden)]
#[must_use]
pub const fn join(parts: &[&str], joined: &mut [u8]) -> usize {
    let (mut end, mut part) = (0, 0);
    while part < parts.len() {
        let text = parts[part].as_bytes();
        let mut at = 0;
        while at < text.len() {
            if starts(text, at, b"$org") {
                // Padded with blanks to the length of `$org`.
                joined[end] = b'$';
                joined[end + 1] = b'1';
                at += 4;
                end += 4;
            } else {
                joined[end] = text[at];
                at += 1;
                end += 1;
            }
        }
        part += 1;
    }
    end
}

const ANY: &[u8] = b"= ANY(";
const LIST: &[u8] = b"IN (SELECT value FROM json_each(";
const LOCKS: [&[u8]; 5] = [
    b" FOR NO KEY UPDATE OF d SKIP LOCKED",
    b" FOR UPDATE SKIP LOCKED",
    b" FOR NO KEY UPDATE",
    b" FOR UPDATE",
    b" FOR SHARE",
];

#[doc(hidden)]
#[must_use]
pub const fn length_for_sqlite(text: &[u8]) -> usize {
    let (mut length, mut at) = (text.len(), 0);
    while at < text.len() {
        if starts(text, at, ANY) {
            length += LIST.len() + 1 - ANY.len();
        }
        at += 1;
    }
    length
}

/// Translates a text for SQLite: lists as JSON, and no locks, since it has a single writer. Returns the length.
#[doc(hidden)]
#[must_use]
pub const fn translate(text: &[u8], made: &mut [u8]) -> usize {
    let (mut end, mut at, mut is_list) = (0, 0, false);
    while at < text.len() {
        if starts(text, at, ANY) {
            let mut byte = 0;
            while byte < LIST.len() {
                made[end] = LIST[byte];
                end += 1;
                byte += 1;
            }
            at += ANY.len();
            is_list = true;
            continue;
        }
        let mut lock = 0;
        while lock < LOCKS.len() {
            if starts(text, at, LOCKS[lock]) {
                at += LOCKS[lock].len();
                end += LOCKS[lock].len();
            }
            lock += 1;
        }
        if at < text.len() {
            made[end] = text[at];
            end += 1;
            if is_list && text[at] == b')' {
                made[end] = b')';
                end += 1;
                is_list = false;
            }
            at += 1;
        }
    }
    end
}

const fn starts(text: &[u8], at: usize, word: &[u8]) -> bool {
    if at + word.len() > text.len() {
        return false;
    }
    let mut byte = 0;
    while byte < word.len() {
        if text[at + byte] != word[byte] {
            return false;
        }
        byte += 1;
    }
    true
}

/// Bytes that were text before.
#[doc(hidden)]
#[must_use]
pub const fn utf8(bytes: &[u8]) -> &str {
    match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(_) => panic!("the text was cut inside a character"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_organization_is_the_first_value() {
        const OPEN: &str = " AND closed_at IS NULL";
        let OrgSql(text) = sql!("SELECT id FROM leases WHERE organization_id = $org AND id = $2", OPEN);
        let joined = "SELECT id FROM leases WHERE organization_id = $1   AND id = $2 AND closed_at IS NULL";
        assert_eq!((text.postgres, text.sqlite), (joined, joined));
    }

    #[test]
    fn sqlite_has_lists_as_json_and_no_locks() {
        let EveryOrgSql(text) = every_org_sql!(
            "SELECT organization_id FROM t WHERE a = ANY($2) AND b = ANY($3) ORDER BY a FOR UPDATE SKIP LOCKED"
        );
        assert_eq!(
            text.sqlite.trim_end(),
            "SELECT organization_id FROM t WHERE a IN (SELECT value FROM json_each($2)) \
             AND b IN (SELECT value FROM json_each($3)) ORDER BY a"
        );
        assert!(text.postgres.ends_with(" FOR UPDATE SKIP LOCKED"));
    }
}
