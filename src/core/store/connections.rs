//! Database connections, lent out one at a time: a statement takes any free one, a transaction keeps one for its whole
//! duration.
//!
//! sqlx pings each connection that returns to its pool: a round trip and a task after every statement, which is half
//! the cost of a read by key. Here a connection is reused as it is if its last statement has completed. One that was
//! abandoned in the middle of a statement (by a client that left, or a request past its deadline) is closed, since its
//! state is unknown. The database would go on with the statement, outside the pool's limit: so SQLite is asked to stop
//! a read, which keeps its place in the pool until it has stopped, and PostgreSQL ends one that takes too long
//! ([`Opener::ending_after`]). That limit does not help if the server or the network vanishes without closing the
//! connection, so the service also stops waiting for an answer after a while, or once another server is the primary
//! (`servers.rs`), and the connection counts as lost. A read that finds its connection dead, because the database was
//! restarted, is retried once on a new one: reading twice changes nothing.

use std::{
    fmt, io,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use deadpool::{
    Runtime,
    managed::{
        Manager, Metrics, Object, Pool, PoolError, QueueMode, RecycleError, RecycleResult, Status,
        TimeoutType,
    },
};
use futures::{FutureExt, TryFutureExt, TryStreamExt, future::BoxFuture};
use sea_orm::{
    ConnAcquireErr, ConnectionTrait, DbBackend, DbErr, ExecResult, QueryResult, RuntimeErr, Statement,
    Values, prelude::async_trait::async_trait,
};
use sea_query_sqlx::SqlxValues;
use sqlx::{AssertSqlSafe, Connection, PgConnection, SqliteConnection, sqlite::SqliteConnectOptions};
use tokio::{runtime::Handle, task::yield_now, time::timeout};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    servers::{Replaced, Servers},
    transaction::Transaction,
};
use crate::{
    base::problem::is_unavailable,
    core::telemetry::{self, metrics::Pool as Meter},
};

/// How connections are opened.
pub(super) enum Opener {
    Postgres(Servers),
    Sqlite(Box<SqliteConnectOptions>),
}

/// A connection of one of the two databases.
pub enum Driver {
    /// Over the network.
    Postgres(PgConnection),
    /// To a file, in a thread of its own.
    Sqlite(SqliteConnection),
}

/// Evaluates one expression on a connection of either database.
macro_rules! with {
    ($driver:expr, $connection:ident => $done:expr) => {
        match $driver {
            Driver::Postgres($connection) => $done,
            Driver::Sqlite($connection) => $done,
        }
    };
}

impl Opener {
    /// Opens a connection. Boxed: everything that runs a statement may have to open one first, and connecting to a
    /// server is a large future.
    pub fn open(&self) -> BoxFuture<'_, Result<(Driver, Replaced), sqlx::Error>> {
        match self {
            Self::Postgres(servers) => servers
                .connect()
                .map_ok(|(connection, replaced)| (Driver::Postgres(connection), replaced))
                .boxed(),
            Self::Sqlite(options) => SqliteConnection::connect_with(options)
                .map_ok(|connection| (Driver::Sqlite(connection), None))
                .boxed(),
        }
    }

    /// The same, but PostgreSQL ends a statement that takes longer than this, even if its caller has gone.
    pub fn ending_after(self, longest: Duration) -> Self {
        match self {
            Self::Postgres(servers) => {
                Self::Postgres(servers.setting("statement_timeout", &format!("{}s", longest.as_secs())))
            }
            sqlite @ Self::Sqlite(_) => sqlite,
        }
    }

    fn backend(&self) -> DbBackend {
        match self {
            Self::Postgres(_) => DbBackend::Postgres,
            Self::Sqlite(_) => DbBackend::Sqlite,
        }
    }
}

pub(super) struct PooledConnection {
    driver: Driver,
    replaced: Replaced,
    /// A statement has started and not ended.
    in_statement: bool,
    /// A transaction is open.
    in_transaction: bool,
    /// The statement was abandoned. SQLite then stops it.
    is_abandoned: Arc<AtomicBool>,
}

impl Manager for Opener {
    type Type = PooledConnection;
    type Error = sqlx::Error;

    async fn create(&self) -> Result<PooledConnection, sqlx::Error> {
        let (mut driver, replaced) = self.open().await?;
        let is_abandoned = Arc::<AtomicBool>::default();
        if let Driver::Sqlite(connection) = &mut driver {
            let seen = Arc::clone(&is_abandoned);
            let mut handle = connection.lock_handle().await?;
            // This many instructions take well under a millisecond.
            handle.set_progress_handler(1_000, move || !seen.load(Ordering::Relaxed));
        }
        Ok(PooledConnection { driver, replaced, in_statement: false, in_transaction: false, is_abandoned })
    }

    async fn recycle(&self, pooled: &mut PooledConnection, metrics: &Metrics) -> RecycleResult<sqlx::Error> {
        if pooled.replaced.as_ref().is_some_and(CancellationToken::is_cancelled) {
            return Err(RecycleError::message("another server is the primary"));
        }
        // So that new server settings take effect eventually.
        if metrics.age() < Duration::from_mins(30) { Ok(()) } else { Err(RecycleError::message("old")) }
    }
}

/// Connections for one purpose. Cheap to clone.
#[derive(Clone)]
pub struct Connections {
    pool: Pool<Opener>,
    meter: Meter,
    /// How long to wait for an answer.
    longest: Option<Duration>,
    statements: Arc<AtomicU64>,
    /// Transactions being rolled back, and reads being stopped: only a shutdown waits for them.
    ending: TaskTracker,
}

impl Connections {
    /// A pool without connections yet, with at most `most`, and a wait of at most `patience` for one.
    pub(super) fn new(opener: Opener, meter: Meter, most: u32, patience: Duration) -> anyhow::Result<Self> {
        let pool = Pool::builder(opener)
            .max_size(most as usize)
            // The most recently used connection is next, so that surplus ones become idle and are closed.
            .queue_mode(QueueMode::Lifo)
            .wait_timeout(Some(patience))
            .create_timeout(Some(patience))
            .runtime(Runtime::Tokio1)
            .build()?;
        Ok(Self { pool, meter, longest: None, statements: Arc::default(), ending: TaskTracker::new() })
    }

    /// The same, but a connection whose server has not answered for this long counts as lost.
    pub(super) fn waiting_at_most(self, longest: Option<Duration>) -> Self {
        Self { longest, ..self }
    }

    /// How this pool's connections are opened.
    pub(super) fn opener(&self) -> &Opener {
        self.pool.manager()
    }

    /// Lends a connection until it is dropped.
    pub(super) async fn lend(&self) -> Result<ConnectionLease, DbErr> {
        let held = self.pool.get().await.map_err(not_lent)?;
        Ok(ConnectionLease { held: Some(held), pool: self.clone(), is_ending: false })
    }

    pub(super) async fn rows(&self, sql: String, values: Values) -> Result<Vec<QueryResult>, DbErr> {
        self.statements.fetch_add(1, Ordering::Relaxed);
        let sql: Arc<str> = sql.into();
        if self.meter == Meter::Write {
            return self.lend().await?.rows(&sql, values).await;
        }
        // In a statement of its own, so that the dead connection is returned before another one is lent: the pool may
        // have room for only one.
        let done = self.lend().await?.rows(&sql, values.clone()).await;
        match done {
            Err(DbErr::Conn(_)) => self.lend().await?.rows(&sql, values).await,
            done => done,
        }
    }

    /// Maps each row of a reading statement with `read`, one after another, so that the rows are never all in memory.
    /// If the connection is dead, it starts over on another one, and returns only the results of the second answer.
    ///
    /// # Errors
    /// See [`Self::rows`].
    pub(super) async fn each<T>(
        &self,
        sql: String,
        values: Values,
        mut read: impl FnMut(QueryResult) -> T,
    ) -> Result<Vec<T>, DbErr> {
        self.statements.fetch_add(1, Ordering::Relaxed);
        let sql: Arc<str> = sql.into();
        let done = self.lend().await?.each(&sql, values.clone(), &mut read).await;
        match done {
            Err(DbErr::Conn(_)) => self.lend().await?.each(&sql, values, read).await,
            done => done,
        }
    }

    /// Begins a transaction: one that writes on write connections, a snapshot on read connections.
    pub(super) async fn begin(&self) -> Result<Transaction, DbErr> {
        let mut lease = self.lend().await?;
        if let Err(DbErr::Conn(_)) = lease.begin().await {
            drop(lease);
            lease = self.lend().await?;
            lease.begin().await?;
        }
        Ok(Transaction::new(lease, self.get_database_backend()))
    }

    /// Drops all idle connections: if one connection is dead, they are too.
    fn forget(&self) {
        drop(self.pool.retain(|_, _| false));
    }

    /// The number of statements run, without those of read-only transactions.
    pub(super) fn statements(&self) -> u64 {
        self.statements.load(Ordering::Relaxed)
    }

    /// How many connections there are, and how many of them are in use.
    pub(super) fn status(&self) -> Status {
        self.pool.status()
    }

    /// Closes connections that have been idle for five minutes.
    pub(super) fn trim(&self) {
        drop(self.pool.retain(|_, metrics| metrics.last_used() < Duration::from_mins(5)));
    }

    /// Closes all connections, including those still lent as soon as they are returned.
    pub(super) async fn close(&self) {
        self.ending.close();
        self.ending.wait().await;
        // SQLite tidies up when its writer disconnects.
        if self.get_database_backend() == DbBackend::Sqlite
            && self.meter == Meter::Write
            && self.status().size > 0
            && let Ok(mut lease) = self.lend().await
            && let Some(held) = lease.held.take()
        {
            with!(Object::take(held).driver, connection => drop(connection.close().await));
        }
        self.pool.close();
    }
}

impl fmt::Debug for Connections {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Connections").field(&self.status()).finish()
    }
}

/// For sea-orm outside transactions.
#[async_trait]
impl ConnectionTrait for Connections {
    fn get_database_backend(&self) -> DbBackend {
        self.pool.manager().backend()
    }

    async fn execute_raw(&self, statement: Statement) -> Result<ExecResult, DbErr> {
        self.statements.fetch_add(1, Ordering::Relaxed);
        self.lend().await?.execute(statement).await
    }

    async fn execute_unprepared(&self, sql: &str) -> Result<ExecResult, DbErr> {
        self.statements.fetch_add(1, Ordering::Relaxed);
        self.lend().await?.run(sql).await
    }

    async fn query_one_raw(&self, statement: Statement) -> Result<Option<QueryResult>, DbErr> {
        Ok(self.query_all_raw(statement).await?.into_iter().next())
    }

    async fn query_all_raw(&self, statement: Statement) -> Result<Vec<QueryResult>, DbErr> {
        let (sql, values) = parts(statement);
        self.rows(sql, values).await
    }
}

/// A statement's text and values.
pub(super) fn parts(statement: Statement) -> (String, Values) {
    (statement.sql, statement.values.unwrap_or(Values(Vec::new())))
}

/// A connection on loan. Dropping it in the middle of a statement closes it; dropping it with a transaction open rolls
/// that back.
pub(super) struct ConnectionLease {
    /// `None` only while it is being dropped.
    held: Option<Object<Opener>>,
    /// Its pool.
    pool: Connections,
    /// Whether its transaction is being rolled back, or its read stopped. A runtime that is ending drops that work at
    /// once; it must not start again.
    is_ending: bool,
}

impl ConnectionLease {
    /// Counts a statement of a transaction that writes.
    pub fn count(&self) {
        if self.pool.meter == Meter::Write {
            self.pool.statements.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub async fn rows(&mut self, sql: &Arc<str>, values: Values) -> Result<Vec<QueryResult>, DbErr> {
        let longest = self.pool.longest;
        let pooled = self.idle_connection()?;
        let began = pooled.begin_statement();
        let query = AssertSqlSafe(Arc::clone(sql));
        let rows = with!(&mut pooled.driver, connection => {
            let rows = sqlx::query_with(query, SqlxValues(values)).fetch_all(connection);
            let rows = answer_within(longest, pooled.replaced.as_ref(), rows).await;
            rows.map(|rows| rows.into_iter().map(QueryResult::from).collect())
        });
        self.ended(sql, began, rows, DbErr::Query)
    }

    /// Maps each row of a statement with `read`. Other tasks can run between two rows.
    pub async fn each<T>(
        &mut self,
        sql: &Arc<str>,
        values: Values,
        mut read: impl FnMut(QueryResult) -> T,
    ) -> Result<Vec<T>, DbErr> {
        let longest = self.pool.longest;
        let pooled = self.idle_connection()?;
        let began = pooled.begin_statement();
        let query = AssertSqlSafe(Arc::clone(sql));
        let made = with!(&mut pooled.driver, connection => {
            let mut rows = sqlx::query_with(query, SqlxValues(values)).fetch(connection);
            let mut made = Vec::new();
            loop {
                match answer_within(longest, pooled.replaced.as_ref(), rows.try_next()).await {
                    Ok(Some(row)) => made.push(read(QueryResult::from(row))),
                    Ok(None) => break Ok(made),
                    Err(error) => break Err(error),
                }
                yield_now().await;
            }
        });
        self.ended(sql, began, made, DbErr::Query)
    }

    pub async fn execute(&mut self, statement: Statement) -> Result<ExecResult, DbErr> {
        let (sql, values) = parts(statement);
        let sql: Arc<str> = sql.into();
        let longest = self.pool.longest;
        let pooled = self.idle_connection()?;
        let began = pooled.begin_statement();
        let query = AssertSqlSafe(Arc::clone(&sql));
        let done = with!(&mut pooled.driver, connection => {
            let done = sqlx::query_with(query, SqlxValues(values)).execute(connection);
            answer_within(longest, pooled.replaced.as_ref(), done).await.map(ExecResult::from)
        });
        self.ended(&sql, began, done, DbErr::Exec)
    }

    /// Runs SQL text as it is, without values or preparation.
    pub async fn run(&mut self, sql: &str) -> Result<ExecResult, DbErr> {
        let longest = self.pool.longest;
        let pooled = self.idle_connection()?;
        let began = pooled.begin_statement();
        let query = AssertSqlSafe(sql.to_owned());
        let done = with!(&mut pooled.driver, connection => {
            let done = sqlx::raw_sql(query).execute(connection);
            answer_within(longest, pooled.replaced.as_ref(), done).await.map(ExecResult::from)
        });
        self.ended(sql, began, done, DbErr::Exec)
    }

    /// Begins a transaction. For writing, SQLite takes its lock at once, so that a transaction that reads first can't
    /// find at its first write that another one was faster. For reading, every statement sees the same state.
    async fn begin(&mut self) -> Result<(), DbErr> {
        let meter = self.pool.meter;
        let sql = match (&self.idle_connection()?.driver, meter) {
            (Driver::Postgres(_), Meter::Write) => "BEGIN",
            (Driver::Postgres(_), Meter::Read) => "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
            (Driver::Sqlite(_), Meter::Write) => "BEGIN IMMEDIATE",
            (Driver::Sqlite(_), Meter::Read) => "BEGIN",
        };
        self.run(sql).await?;
        self.idle_connection()?.in_transaction = true;
        Ok(())
    }

    /// Marks the transaction as ended.
    pub fn mark_transaction_ended(&mut self) {
        if let Some(held) = &mut self.held {
            held.in_transaction = false;
        }
    }

    /// The connection itself. After using it, call [`Self::mark_statement_ended`] if it is at rest.
    pub fn driver(&mut self) -> Result<&mut Driver, DbErr> {
        let pooled = self.idle_connection()?;
        pooled.begin_statement();
        Ok(&mut pooled.driver)
    }

    /// Marks the end of the work done with [`Self::driver`].
    pub fn mark_statement_ended(&mut self) {
        if let Some(held) = &mut self.held {
            held.in_statement = false;
        }
    }

    fn idle_connection(&mut self) -> Result<&mut PooledConnection, DbErr> {
        match &mut self.held {
            Some(held) if !held.in_statement => Ok(held),
            _ => Err(DbErr::ConnectionAcquire(ConnAcquireErr::ConnectionClosed)),
        }
    }

    fn ended<T>(
        &mut self,
        sql: &str,
        began: Instant,
        done: Result<T, sqlx::Error>,
        refused: fn(RuntimeErr) -> DbErr,
    ) -> Result<T, DbErr> {
        telemetry::statement(self.pool.meter, sql, began.elapsed(), done.is_err());
        let is_lost = done.as_ref().is_err_and(is_unavailable);
        if is_lost {
            self.pool.forget();
        } else {
            self.mark_statement_ended();
        }
        let kind = if is_lost { DbErr::Conn } else { refused };
        done.map_err(|error| kind(RuntimeErr::SqlxError(error.into())))
    }
}

impl PooledConnection {
    /// Marks the start of a statement, and returns its time.
    fn begin_statement(&mut self) -> Instant {
        self.in_statement = true;
        Instant::now()
    }
}

impl Drop for ConnectionLease {
    fn drop(&mut self) {
        let Some(held) = self.held.take() else { return };
        if !held.in_statement && !held.in_transaction {
            return;
        }
        let can_be_stopped = self.pool.meter == Meter::Read && matches!(held.driver, Driver::Sqlite(_));
        if self.is_ending || (held.in_statement && !can_be_stopped) || Handle::try_current().is_err() {
            drop(Object::take(held));
            return;
        }
        let in_statement = held.in_statement;
        let lease = Self { held: Some(held), pool: self.pool.clone(), is_ending: true };
        if in_statement {
            self.pool.ending.spawn(stop(lease));
        } else {
            self.pool.ending.spawn(roll_back(lease));
        }
    }
}

/// Waits for the database's answer, but no longer than this, and only while its server is the primary.
fn answer_within<T>(
    longest: Option<Duration>,
    replaced: Option<&CancellationToken>,
    answer: impl Future<Output = Result<T, sqlx::Error>>,
) -> impl Future<Output = Result<T, sqlx::Error>> {
    let lost = |kind: io::ErrorKind| Err(sqlx::Error::Io(kind.into()));
    let answer = match replaced {
        Some(replaced) => {
            let answer = replaced.run_until_cancelled(answer);
            answer
                .map(move |done| done.unwrap_or_else(|| lost(io::ErrorKind::ConnectionAborted)))
                .left_future()
        }
        None => answer.right_future(),
    };
    match longest {
        Some(longest) => {
            let answer = timeout(longest, answer);
            answer.map(move |done| done.unwrap_or_else(|_| lost(io::ErrorKind::TimedOut))).left_future()
        }
        None => answer.right_future(),
    }
}

/// Stops a read of SQLite that was abandoned. The connection's thread answers the ping once it has stopped; then the
/// connection is closed, and its place in the pool is free.
async fn stop(mut lease: ConnectionLease) {
    let Some(held) = &mut lease.held else { return };
    held.is_abandoned.store(true, Ordering::Relaxed);
    with!(&mut held.driver, connection => drop(connection.ping().await));
}

/// Rolls back a transaction that was not ended. SQLite itself ends one whose commit finds the disk full: then this
/// fails, and the connection is closed.
async fn roll_back(mut lease: ConnectionLease) {
    if lease.run("ROLLBACK").await.is_ok() {
        lease.mark_transaction_ended();
    }
}

fn not_lent(error: PoolError<sqlx::Error>) -> DbErr {
    let lost = |error: sqlx::Error| DbErr::Conn(RuntimeErr::SqlxError(error.into()));
    match error {
        PoolError::Timeout(TimeoutType::Wait) => DbErr::ConnectionAcquire(ConnAcquireErr::Timeout),
        PoolError::Closed => DbErr::ConnectionAcquire(ConnAcquireErr::ConnectionClosed),
        PoolError::Backend(error) => lost(error),
        _ => lost(sqlx::Error::PoolTimedOut),
    }
}
