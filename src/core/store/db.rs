//! The database: connections for reading and connections for writing. SQLite has one writer.

use std::{str::FromStr, time::Duration};

use anyhow::{Context, bail, ensure};
use rustix::{
    fs::{Access, access},
    io::Errno,
};
use sea_orm::{ConnectionTrait, DbBackend, DbErr, QueryResult, RuntimeErr, Statement, Value, Values};
use secrecy::ExposeSecret;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous};

use super::{
    connections::{Connections, Driver, Opener},
    servers::Servers,
    transaction::Transaction,
    words::Unusable,
};
use crate::{
    base::{
        bounds::{ANSWER_WAIT, ROWS},
        time::Timestamp,
    },
    core::{
        config::Database,
        sealing::random_bytes,
        telemetry::{metrics::Pool, traces},
    },
};

/// The minimum time to wait for a write: the jobs' writes are not bound by a request's deadline, and may wait for
/// several locks.
const WRITING: Duration = Duration::from_mins(1);

#[derive(Clone, Debug)]
pub struct Db {
    read: Connections,
    write: Connections,
}

impl Db {
    /// Opens the database that `settings` name. Creates a missing SQLite file, but changes nothing else.
    ///
    /// # Errors
    /// The URL is invalid, or the database can't be reached.
    pub async fn open(settings: &Database) -> anyhow::Result<Self> {
        Self::open_with(settings, None).await
    }

    /// The same. If there is a `longest` time for a read, PostgreSQL ends one that takes longer; and a connection to
    /// PostgreSQL that does not answer, although it should have by then, counts as lost.
    ///
    /// # Errors
    /// See [`Self::open`].
    pub async fn open_with(settings: &Database, longest: Option<Duration>) -> anyhow::Result<Self> {
        let most = settings.max_connections;
        let writers = if settings.is_sqlite() { 1 } else { most };
        let (reader, writer) = openers(settings)?;
        let reader = match longest {
            Some(longest) => reader.ending_after(longest),
            None => reader,
        };
        traces::database(if settings.is_sqlite() { "sqlite" } else { "postgresql" });
        let patience = Duration::from_secs(settings.acquire_timeout_seconds);
        // SQLite is in this process: it can't vanish.
        let longest = longest.filter(|_| !settings.is_sqlite());
        // PostgreSQL should have ended a read before that.
        let read = Connections::new(reader, Pool::Read, most, patience)?
            .waiting_at_most(longest.map(|longest| longest + ANSWER_WAIT));
        let write = Connections::new(writer, Pool::Write, writers, patience)?
            .waiting_at_most(longest.map(|longest| longest.max(WRITING) + ANSWER_WAIT));
        // Fails here if the database can't be reached.
        drop(write.lend().await.map_err(|error| Unusable::explain(write.opener(), error))?);
        let db = Self { read, write };
        Box::pin(db.require_sessions()).await?;
        Ok(db)
    }

    /// Fails if a pooler gives each transaction another session of PostgreSQL: a notification then does not reach the
    /// connection that listens.
    async fn require_sessions(&self) -> anyhow::Result<()> {
        let Some(servers) = self.servers() else { return Ok(()) };
        let unusable = |error: sqlx::Error| -> anyhow::Error {
            self.explained(&error).map_or_else(|| error.into(), Into::into)
        };
        let channel = format!("muster_{:016x}", u64::from_be_bytes(random_bytes()));
        let mut listener = match servers.listen(&[&channel]).await {
            Ok((listener, _)) => listener,
            // A standby, which commands may read.
            Err(sqlx::Error::Database(error)) if error.code().as_deref() == Some("25006") => return Ok(()),
            Err(error) => return Err(unusable(error)),
        };
        // Waits for no synchronous standby.
        let notify = format!("SET LOCAL synchronous_commit = off; NOTIFY {channel}");
        let sent = match self.write.lend().await {
            Ok(mut lease) => lease.run(&notify).await,
            Err(error) => Err(error),
        };
        let is_sent = match sent {
            Ok(_) => true,
            // It has come to the connection that sent it, which has not asked for it.
            Err(DbErr::Exec(RuntimeErr::SqlxError(error))) if matches!(*error, sqlx::Error::Protocol(_)) => {
                false
            }
            Err(error) => return Err(Unusable::explain(self.write.opener(), error)),
        };
        // PostgreSQL's answer follows the notification.
        sqlx::raw_sql("SELECT 1").execute(&mut listener).await.map_err(unusable)?;
        if !is_sent || listener.next_buffered().is_none() {
            bail!(
                "a pooler between Muster and PostgreSQL is in transaction mode, as pgbouncer can be (database.url): each transaction \
                 gets another session, which breaks LISTEN, prepared statements and locks. Set pool_mode = session for Muster's \
                 database, or name PostgreSQL itself in database.url: Muster keeps a pool of its own"
            );
        }
        Ok(())
    }

    /// Whether the URL in the settings is valid. Opens nothing.
    ///
    /// # Errors
    /// It is not.
    pub fn check_url(settings: &Database) -> anyhow::Result<()> {
        openers(settings).map(drop)
    }

    /// The rows of one statement outside a transaction: how requests read.
    pub async fn all(&self, sql: String, values: Vec<Value>) -> Result<Vec<QueryResult>, DbErr> {
        self.read.rows(sql, Values(values)).await
    }

    /// Maps each row of such a statement with `read`, in order. For searches, whose rows are large: only the results
    /// are kept. If the connection is lost meanwhile, the statement runs once more, so `read` may see a row twice.
    ///
    /// # Errors
    /// See [`Self::all`]; the results so far are lost. Errors of `read` are part of its results, and end nothing.
    pub async fn each<T>(
        &self,
        sql: String,
        values: Vec<Value>,
        read: impl FnMut(QueryResult) -> T,
    ) -> Result<Vec<T>, DbErr> {
        self.read.each(sql, Values(values), read).await
    }

    /// The first row of such a statement, if any.
    ///
    /// # Errors
    /// See [`Self::all`].
    pub async fn one(&self, sql: String, values: Vec<Value>) -> Result<Option<QueryResult>, DbErr> {
        Ok(self.all(sql, values).await?.into_iter().next())
    }

    /// Runs one writing statement outside a scope's transactions. Returns the number of rows affected.
    pub(in crate::core) async fn execute(&self, sql: &str, values: Vec<Value>) -> Result<u64, DbErr> {
        let statement = Statement::from_sql_and_values(self.backend(), sql, values);
        Ok(self.write.execute_raw(statement).await?.rows_affected())
    }

    /// Sends a text to all listeners of a PostgreSQL channel.
    pub(crate) async fn notify(&self, channel: &str, text: String) -> Result<(), DbErr> {
        self.execute("SELECT pg_notify($1, $2)", vec![channel.into(), text.into()]).await.map(drop)
    }

    /// Deletes the rows of a table that meet a condition in which `$1` is `past`, and returns their number. It looks
    /// for them on a read connection first and deletes in small batches, so that other writers never wait long.
    pub(crate) async fn sweep(&self, table: &str, condition: &str, past: i64) -> Result<u64, DbErr> {
        let look = format!("SELECT 1 FROM {table} WHERE {condition} LIMIT 1");
        let delete = format!("DELETE FROM {table} WHERE {}", self.batch(table, condition));
        let mut gone = 0;
        while self.one(look.clone(), vec![past.into()]).await?.is_some() {
            let now = self.execute(&delete, vec![past.into()]).await?;
            gone += now;
            if now < u64::from(ROWS) {
                break;
            }
        }
        Ok(gone)
    }

    /// The same for rows whose size counts for their organization, one organization after the other. Its sum is locked
    /// first, and rows locked by other transactions are left for the next run: those transactions may wait for the sum,
    /// so waiting for them could deadlock.
    pub(crate) async fn sweep_counted(&self, table: &str, condition: &str, past: i64) -> Result<u64, DbErr> {
        let owners = format!(
            "SELECT DISTINCT organization_id FROM {table} WHERE {condition} ORDER BY organization_id"
        );
        let own = format!("({condition}) AND organization_id = $2");
        let delete = match self.backend() {
            DbBackend::Postgres => format!(
                "WITH held AS (SELECT 1 FROM stored_bytes WHERE organization_id = $2 FOR UPDATE) DELETE FROM {table} \
                 WHERE ctid = ANY(ARRAY(SELECT ctid FROM {table} WHERE {own} AND (SELECT COUNT(*) FROM held) >= 0 \
                 LIMIT {ROWS} FOR UPDATE SKIP LOCKED)) AND {own}"
            ),
            _ => format!("DELETE FROM {table} WHERE {}", self.batch(table, &own)),
        };
        let mut gone = 0;
        for owner in self.all(owners, vec![past.into()]).await? {
            let org: i64 = owner.try_get_by("organization_id")?;
            loop {
                let now = self.execute(&delete, vec![past.into(), org.into()]).await?;
                gone += now;
                if now < u64::from(ROWS) {
                    break;
                }
            }
        }
        Ok(gone)
    }

    pub fn trim(&self) {
        self.read.trim();
        self.write.trim();
    }

    /// For sea-orm's queries outside a transaction.
    #[must_use]
    pub fn read(&self) -> &Connections {
        &self.read
    }

    /// For the few single writes outside a scope's transactions (last uses, sessions).
    #[must_use]
    pub(crate) fn writer(&self) -> &Connections {
        &self.write
    }

    /// A separate connection for writing.
    pub(super) async fn connect(&self) -> Result<Driver, sqlx::Error> {
        Ok(self.write.opener().open().await?.0)
    }

    /// The servers, if they are PostgreSQL's.
    pub(crate) fn servers(&self) -> Option<&Servers> {
        match self.write.opener() {
            Opener::Postgres(servers) => Some(servers),
            Opener::Sqlite(_) => None,
        }
    }

    /// A database error, explained to the operator.
    pub(super) fn explained(&self, error: &sqlx::Error) -> Option<Unusable> {
        Unusable::explained(self.write.opener(), error)
    }

    /// The number of statements this process has run for reading, apart from transactions.
    #[must_use]
    pub fn statements(&self) -> u64 {
        self.read.statements()
    }

    /// The number of statements this process has run on its connections for writing.
    #[must_use]
    pub fn writes(&self) -> u64 {
        self.write.statements()
    }

    #[must_use]
    pub fn backend(&self) -> DbBackend {
        self.read.get_database_backend()
    }

    /// The condition, to follow a column's name, that the column is one of the keys in `$2`, made by [`Self::keys`].
    #[must_use]
    pub fn is_among(&self) -> &'static str {
        match self.backend() {
            DbBackend::Postgres => "= ANY($2)",
            _ => "IN (SELECT value FROM json_each($2))",
        }
    }

    /// Keys as a single value of a statement.
    #[must_use]
    pub fn keys<T: Clone + Into<serde_json::Value>>(&self, keys: &[T]) -> Value
    where
        Vec<T>: Into<Value>,
    {
        match self.backend() {
            DbBackend::Postgres => keys.to_vec().into(),
            _ => serde_json::Value::from(keys).to_string().into(),
        }
    }

    /// Runs SQL about rows of no organization, outside a transaction.
    #[must_use]
    pub fn installation(&self) -> Installation<'_> {
        Installation(self)
    }

    /// Runs the SQL of jobs, about rows of all organizations, outside a transaction.
    #[must_use]
    pub fn every_org(&self) -> EveryOrg<'_> {
        EveryOrg(self)
    }

    pub async fn version(&self) -> Result<String, DbErr> {
        let version = match self.backend() {
            DbBackend::Postgres => "current_setting('server_version')",
            _ => "sqlite_version()",
        };
        let row = self.one(format!("SELECT {version} AS version"), vec![]).await?;
        Ok(row.map(|row| row.try_get_by("version")).transpose()?.unwrap_or_default())
    }

    /// Rewrites an SQLite file without free space, and empties its log, so that neither contains deleted data. Returns
    /// whether the log is empty: it is not while another process reads it.
    ///
    /// # Errors
    /// Another process keeps the file busy, or the disk has no space for a copy of it.
    pub async fn vacuum(&self) -> Result<bool, DbErr> {
        self.execute("VACUUM", vec![]).await?;
        let empty = "PRAGMA wal_checkpoint(TRUNCATE)".to_owned();
        let rows = self.write.rows(empty, Values(vec![])).await?;
        let is_busy = rows.first().map(|row| row.try_get_by_index::<i64>(0)).transpose()?;
        Ok(is_busy == Some(0))
    }

    /// PostgreSQL's clock. Fails on SQLite.
    pub async fn time(&self) -> Result<Option<Timestamp>, DbErr> {
        let now = "SELECT CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT) AS now";
        self.one(now.to_owned(), vec![]).await?.map(|row| row.try_get_by("now")).transpose()
    }

    /// The pools: purpose, connections, idle connections, maximum.
    #[must_use]
    pub fn pools(&self) -> [(&'static str, usize, usize, usize); 2] {
        [("read", &self.read), ("write", &self.write)].map(|(name, connections)| {
            let status = connections.status();
            (name, status.size, status.available.min(status.size), status.max_size)
        })
    }

    /// Checks that the database answers.
    ///
    /// # Errors
    /// It does not.
    pub async fn ping(&self) -> Result<(), DbErr> {
        self.all("SELECT 1".to_owned(), vec![]).await.map(drop)
    }

    /// Begins a transaction that may write.
    pub(crate) async fn begin(&self) -> Result<Transaction, DbErr> {
        self.write.begin().await
    }

    /// Begins a read-only transaction, which sees one state of the database from start to end.
    pub(crate) async fn snapshot(&self) -> Result<Transaction, DbErr> {
        self.read.begin().await
    }

    pub async fn close(&self) {
        self.read.close().await;
        self.write.close().await;
    }
}

/// Outside a transaction, rows of no organization.
#[derive(Clone, Copy, Debug)]
pub struct Installation<'a>(pub(super) &'a Db);

/// Outside a transaction, rows of all organizations, for jobs.
#[derive(Clone, Copy, Debug)]
pub struct EveryOrg<'a>(pub(super) &'a Db);

/// How connections for reading and for writing are opened.
fn openers(settings: &Database) -> anyhow::Result<(Opener, Opener)> {
    let url = settings.url.expose_secret();
    if settings.is_sqlite() {
        return sqlite(url);
    }
    if url.starts_with("postgres:") || url.starts_with("postgresql:") {
        return postgres(url, Duration::from_secs(settings.acquire_timeout_seconds));
    }
    bail!("database.url must start with sqlite: or postgres:")
}

/// The options for reading and writing an SQLite file. Both read only if its disk is read-only.
fn sqlite(url: &str) -> anyhow::Result<(Opener, Opener)> {
    let options = SqliteConnectOptions::from_str(url).context("database.url")?;
    let options = options.foreign_keys(true).statement_cache_capacity(256);
    if access(options.get_filename(), Access::WRITE_OK) == Err(Errno::ROFS) {
        let file = options.get_filename().display();
        let rest = format!("{file}-wal");
        ensure!(
            std::fs::metadata(&rest).map_or(0, |found| found.len()) == 0,
            "{file} is on a read-only disk, and its last changes are in {rest}, from where only a process that writes can take \
             them. Copy both to a disk that can be written, and set MUSTER_DATA_DIR or data_dir to it."
        );
        // No one can change it, so it needs no locks, and none of the files beside it.
        let options = Box::new(options.read_only(true).immutable(true));
        return Ok((Opener::Sqlite(options.clone()), Opener::Sqlite(options)));
    }
    let options = options
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        // With WAL, NORMAL can't corrupt the file; FULL also keeps acknowledged commits through a power failure.
        .synchronous(SqliteSynchronous::Full)
        .busy_timeout(Duration::from_secs(10))
        .optimize_on_close(true, None);
    let reader = options.clone().pragma("query_only", "ON");
    Ok((Opener::Sqlite(reader.into()), Opener::Sqlite(options.into())))
}

/// The same for PostgreSQL.
fn postgres(url: &str, wait: Duration) -> anyhow::Result<(Opener, Opener)> {
    let servers = Servers::of(url, wait)?;
    // A transaction that waits for a lock keeps a connection, and one that holds a lock keeps others waiting. Both are
    // limited, even if a replica freezes or is cut off in the middle of a transaction.
    let writer = servers
        .clone()
        .setting("lock_timeout", "10s")
        .setting("idle_in_transaction_session_timeout", "60s")
        .setting("tcp_keepalives_idle", "30")
        .setting("tcp_keepalives_interval", "10")
        .setting("tcp_keepalives_count", "3");
    Ok((Opener::Postgres(servers), Opener::Postgres(writer)))
}
