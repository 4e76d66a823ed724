//! Reading outside of transactions, on connections of their own.
//!
//! sqlx asks each connection that comes back to its pool whether it lives: a round trip and a task after every statement,
//! which is half of what a read by key costs. Here a connection is lent again as it is, if its last statement ended;
//! one that was given up in the middle (an error, a request past its deadline) is thrown away. What finds its connection
//! dead, because the database was restarted, reads once more on a new one: reading twice changes nothing.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use deadpool::{
    Runtime,
    managed::{
        Manager, Metrics, Pool, PoolError, QueueMode, RecycleError, RecycleResult, Status, TimeoutType,
    },
};
use sea_orm::{ConnAcquireErr, DbErr, QueryResult, RuntimeErr, Value, Values};
use sea_query_sqlx::SqlxValues;
use sqlx::{AssertSqlSafe, Connection, Database, Executor, IntoArguments, Postgres, Sqlite};

use crate::{
    error::is_connection_loss,
    telemetry::{self, metrics::Pool as Meter},
};

/// The longest that a connection is lent again and again: what is set for new ones comes into force in the end.
const LIFETIME: Duration = Duration::from_mins(30);
/// How long a connection that nobody needs is kept.
const IDLE: Duration = Duration::from_mins(5);

/// Connections for reading. Cheap to clone.
#[derive(Clone)]
pub(super) enum Readers {
    Postgres(Pool<Opener<Postgres>>),
    Sqlite(Pool<Opener<Sqlite>>),
}

type OptionsOf<DB> = <<DB as Database>::Connection as Connection>::Options;

/// Opens connections.
pub(super) struct Opener<DB: Database>(OptionsOf<DB>);

/// A connection, and whether its last statement has ended.
pub(super) struct Reader<DB: Database> {
    connection: DB::Connection,
    at_rest: bool,
}

impl<DB: Database> Manager for Opener<DB> {
    type Type = Reader<DB>;
    type Error = sqlx::Error;

    async fn create(&self) -> Result<Reader<DB>, sqlx::Error> {
        Ok(Reader { connection: DB::Connection::connect_with(&self.0).await?, at_rest: true })
    }

    async fn recycle(&self, reader: &mut Reader<DB>, metrics: &Metrics) -> RecycleResult<sqlx::Error> {
        if reader.at_rest && metrics.age() < LIFETIME {
            return Ok(());
        }
        Err(RecycleError::message("given up in the middle, or old"))
    }
}

impl Readers {
    pub fn postgres(options: OptionsOf<Postgres>, most: u32, patience: Duration) -> anyhow::Result<Self> {
        Ok(Self::Postgres(pool(options, most, patience)?))
    }

    pub fn sqlite(options: OptionsOf<Sqlite>, most: u32, patience: Duration) -> anyhow::Result<Self> {
        Ok(Self::Sqlite(pool(options, most, patience)?))
    }

    /// All rows of one statement.
    ///
    /// # Errors
    /// The statement is refused, or the database can't be reached.
    pub async fn all(&self, sql: String, values: Vec<Value>) -> Result<Vec<QueryResult>, DbErr> {
        match self {
            Self::Postgres(pool) => all(pool, sql, values).await,
            Self::Sqlite(pool) => all(pool, sql, values).await,
        }
    }

    /// How many connections there are, and how many of them are lent just now.
    pub fn status(&self) -> Status {
        match self {
            Self::Postgres(pool) => pool.status(),
            Self::Sqlite(pool) => pool.status(),
        }
    }

    /// Closes the connections that nobody has needed lately.
    pub fn trim(&self) {
        let needed = |metrics: Metrics| metrics.last_used() < IDLE;
        match self {
            Self::Postgres(pool) => drop(pool.retain(|_, metrics| needed(metrics))),
            Self::Sqlite(pool) => drop(pool.retain(|_, metrics| needed(metrics))),
        }
    }

    pub fn close(&self) {
        match self {
            Self::Postgres(pool) => pool.close(),
            Self::Sqlite(pool) => pool.close(),
        }
    }
}

impl std::fmt::Debug for Readers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Readers").field(&self.status()).finish()
    }
}

fn pool<DB: Database>(
    options: OptionsOf<DB>,
    most: u32,
    patience: Duration,
) -> anyhow::Result<Pool<Opener<DB>>> {
    let pool = Pool::builder(Opener(options))
        .max_size(most as usize)
        // The last one used is the next: those that are too many fall idle and are closed.
        .queue_mode(QueueMode::Lifo)
        .wait_timeout(Some(patience))
        .create_timeout(Some(patience))
        .runtime(Runtime::Tokio1)
        .build()?;
    Ok(pool)
}

async fn all<DB: Database>(
    pool: &Pool<Opener<DB>>,
    sql: String,
    values: Vec<Value>,
) -> Result<Vec<QueryResult>, DbErr>
where
    for<'c> &'c mut DB::Connection: Executor<'c, Database = DB>,
    SqlxValues: IntoArguments<DB>,
    QueryResult: From<DB::Row>,
{
    let sql: Arc<str> = sql.into();
    let rows = match once(pool, &sql, values.clone()).await {
        Err(Failed::Lost(_)) => {
            // One is dead: so are those that have waited beside it.
            drop(pool.retain(|_, _| false));
            once(pool, &sql, values).await
        }
        done => done,
    };
    Ok(rows?.into_iter().map(QueryResult::from).collect())
}

/// Why there are no rows.
enum Failed {
    /// No connection could be had.
    NotLent(PoolError<sqlx::Error>),
    /// The connection was dead.
    Lost(sqlx::Error),
    /// The database refused the statement.
    Refused(sqlx::Error),
}

async fn once<DB: Database>(
    pool: &Pool<Opener<DB>>,
    sql: &Arc<str>,
    values: Vec<Value>,
) -> Result<Vec<DB::Row>, Failed>
where
    for<'c> &'c mut DB::Connection: Executor<'c, Database = DB>,
    SqlxValues: IntoArguments<DB>,
{
    let mut reader = pool.get().await.map_err(Failed::NotLent)?;
    reader.at_rest = false;
    let began = Instant::now();
    let query = sqlx::query_with(AssertSqlSafe(Arc::clone(sql)), SqlxValues(Values(values)));
    let done = query.fetch_all(&mut reader.connection).await;
    telemetry::statement(Meter::Read, sql, began.elapsed(), done.is_err());
    match done {
        Ok(rows) => {
            reader.at_rest = true;
            Ok(rows)
        }
        Err(error) if is_connection_loss(&error) => Err(Failed::Lost(error)),
        Err(error) => Err(Failed::Refused(error)),
    }
}

impl From<Failed> for DbErr {
    fn from(failed: Failed) -> Self {
        let lost = |error: sqlx::Error| Self::Conn(RuntimeErr::SqlxError(error.into()));
        match failed {
            Failed::NotLent(PoolError::Timeout(TimeoutType::Wait)) => {
                Self::ConnectionAcquire(ConnAcquireErr::Timeout)
            }
            Failed::NotLent(PoolError::Closed) => Self::ConnectionAcquire(ConnAcquireErr::ConnectionClosed),
            Failed::NotLent(PoolError::Backend(error)) | Failed::Lost(error) => lost(error),
            Failed::NotLent(_) => lost(sqlx::Error::PoolTimedOut),
            Failed::Refused(error) => Self::Query(RuntimeErr::SqlxError(error.into())),
        }
    }
}
