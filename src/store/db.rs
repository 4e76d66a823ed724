//! Connections. Requests read through `readers.rs`; what is written, and what sea-orm finds, has a pool. SQLite has one
//! writer.

use std::{
    str::FromStr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use anyhow::Context;
use sea_orm::{
    ConnectionTrait, DatabaseConnection, DbBackend, DbErr, QueryResult, SqliteTransactionMode,
    SqlxPostgresConnector, SqlxSqliteConnector, Statement, TransactionOptions, TransactionTrait, Value,
};
use secrecy::ExposeSecret;
use sqlx::{
    Connection,
    postgres::{PgConnectOptions, PgPoolOptions},
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous},
};
use tracing::Instrument;

use super::{flights::Flights, readers::Readers};
use crate::{
    config::Database,
    telemetry::{self, metrics::Pool, traces},
};

/// Records that several may have asked for.
type Found = Result<Vec<Arc<QueryResult>>, DbErr>;

/// The database, open.
#[derive(Clone, Debug)]
pub struct Db {
    readers: Readers,
    read: DatabaseConnection,
    write: DatabaseConnection,
    statements: Arc<AtomicU64>,
    /// Who finds records by keys just now.
    finding: Flights<(String, Vec<i64>), Found>,
}

impl Db {
    /// Opens the database that `settings` name. Creates an SQLite file that does not exist; changes nothing else.
    ///
    /// # Errors
    /// An address that is none, or a database that can't be reached.
    pub async fn open(settings: &Database) -> anyhow::Result<Self> {
        let url = settings.url.expose_secret();
        let (readers, mut read, mut write) = if settings.is_sqlite() {
            open_sqlite(url, settings).await?
        } else if url.starts_with("postgres:") || url.starts_with("postgresql:") {
            let (readers, pool) = open_postgres(url, settings).await?;
            (readers, pool.clone(), pool)
        } else {
            anyhow::bail!("database_url must begin with sqlite: or postgres:");
        };
        traces::database(if settings.is_sqlite() { "sqlite" } else { "postgresql" });
        let statements = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&statements);
        read.set_metric_callback(move |statement| {
            counted.fetch_add(1, Ordering::Relaxed);
            telemetry::statement(Pool::Read, &statement.statement.sql, statement.elapsed, statement.failed);
        });
        write.set_metric_callback(|statement| {
            telemetry::statement(Pool::Write, &statement.statement.sql, statement.elapsed, statement.failed);
        });
        Ok(Self { readers, read, write, statements, finding: Flights::default() })
    }

    /// The rows of one statement outside of a transaction: what requests read with.
    ///
    /// # Errors
    /// The statement is refused, or the database can't be reached.
    pub async fn all(&self, sql: String, values: Vec<Value>) -> Result<Vec<QueryResult>, DbErr> {
        self.statements.fetch_add(1, Ordering::Relaxed);
        self.readers.all(sql, values).await
    }

    /// The first row of such a statement, if it has one.
    ///
    /// # Errors
    /// Those of [`Self::all`].
    pub async fn one(&self, sql: String, values: Vec<Value>) -> Result<Option<QueryResult>, DbErr> {
        Ok(self.all(sql, values).await?.into_iter().next())
    }

    /// The rows of a statement that finds records by their keys: whoever asks the same at the same time shares them.
    ///
    /// # Errors
    /// Those of [`Self::all`].
    pub async fn shared(&self, sql: String, keys: Vec<i64>) -> Found {
        let (db, question) = (self.clone(), (sql.clone(), keys.clone()));
        let ask = async move {
            let rows = db.all(sql, keys.into_iter().map(Value::from).collect()).await?;
            Ok(rows.into_iter().map(Arc::new).collect())
        };
        self.finding.share(question, ask).await
    }

    /// One writing statement that belongs to no transaction of a scope; how many rows it touched.
    pub(crate) async fn execute(&self, sql: &str, values: Vec<Value>) -> Result<u64, DbErr> {
        let statement = Statement::from_sql_and_values(self.backend(), sql, values);
        Ok(self.write.execute_raw(statement).await?.rows_affected())
    }

    /// Lets go of what nobody has needed lately.
    pub fn trim(&self) {
        self.readers.trim();
        self.finding.trim();
    }

    /// For sea-orm's finders outside of a transaction.
    #[must_use]
    pub fn read(&self) -> &DatabaseConnection {
        &self.read
    }

    /// For the few single writes that belong to no transaction of a scope (notes of last use, sessions).
    #[must_use]
    pub(crate) fn writer(&self) -> &DatabaseConnection {
        &self.write
    }

    /// How many statements this process has read with, transactions aside.
    #[must_use]
    pub fn statements(&self) -> u64 {
        self.statements.load(Ordering::Relaxed)
    }

    /// Which of the two databases it is.
    #[must_use]
    pub fn backend(&self) -> DbBackend {
        self.read.get_database_backend()
    }

    /// The pools: name, connections, how many of them are idle, and the most there may be.
    #[must_use]
    pub fn pools(&self) -> Vec<(&'static str, usize, usize, u32)> {
        let of = |name, size: u32, idle, most| (name, size as usize, idle, most);
        let readers = self.readers.status();
        let lent = readers.size.saturating_sub(readers.available);
        let mut pools = vec![("read", readers.size, readers.size - lent, readers.max_size as u32)];
        match self.backend() {
            DbBackend::Postgres => {
                let pool = self.write.get_postgres_connection_pool();
                pools.push(of("write", pool.size(), pool.num_idle(), pool.options().get_max_connections()));
            }
            _ => pools.extend([("find", &self.read), ("write", &self.write)].map(|(name, connection)| {
                let pool = connection.get_sqlite_connection_pool();
                of(name, pool.size(), pool.num_idle(), pool.options().get_max_connections())
            })),
        }
        pools
    }

    /// Whether the database answers.
    ///
    /// # Errors
    /// It does not.
    pub async fn ping(&self) -> Result<(), DbErr> {
        self.read.execute_unprepared("SELECT 1").await.map(drop)
    }

    /// Begins a transaction that may write. SQLite takes its write lock at once, so that a transaction which
    /// reads first can't find at its first write that somebody else was faster.
    pub(crate) async fn begin(&self) -> Result<sea_orm::DatabaseTransaction, DbErr> {
        let options = TransactionOptions {
            sqlite_transaction_mode: Some(SqliteTransactionMode::Immediate),
            ..TransactionOptions::default()
        };
        let write = self.write.clone();
        // A client that goes away while PostgreSQL answers would leave behind a connection that is in a transaction and of
        // which the driver does not know it: the next single write on it would be acknowledged and never committed.
        to_the_end(async move { write.begin_with_options(options).await }).await
    }

    /// Closes every connection.
    pub async fn close(&self) {
        self.readers.close();
        for connection in [self.read.clone(), self.write.clone()] {
            let _ = connection.close().await;
        }
    }
}

/// Does work that must not be given up in the middle, whether or not anybody still waits for it.
pub(super) async fn to_the_end<T: Send + 'static>(
    work: impl Future<Output = Result<T, DbErr>> + Send + 'static,
) -> Result<T, DbErr> {
    #[expect(clippy::disallowed_methods, reason = "a shutdown waits for the connection that it holds")]
    let working = tokio::spawn(work.in_current_span());
    working.await.unwrap_or_else(|failed| Err(DbErr::Custom(failed.to_string())))
}

async fn open_sqlite(
    url: &str,
    settings: &Database,
) -> anyhow::Result<(Readers, DatabaseConnection, DatabaseConnection)> {
    let options = SqliteConnectOptions::from_str(url)
        .context("database_url")?
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        // With WAL, NORMAL can't corrupt; FULL keeps a commit that was acknowledged through a power cut.
        .synchronous(SqliteSynchronous::Full)
        .busy_timeout(Duration::from_secs(10))
        .foreign_keys(true)
        .optimize_on_close(true, None)
        .statement_cache_capacity(256);
    // A commit that fails (a full disk) has ended SQLite's transaction, but the driver counts it still: what comes next would be
    // a part of it, acknowledged and never committed. Such a connection is closed instead of lent.
    let write = SqlitePoolOptions::new()
        .max_connections(1)
        .before_acquire(|connection, _| Box::pin(std::future::ready(Ok(!connection.is_in_transaction()))))
        .connect_with(options.clone())
        .await?;
    let patience = Duration::from_secs(settings.acquire_timeout_seconds);
    let options = options.pragma("query_only", "ON");
    let readers = Readers::sqlite(options.clone(), settings.max_connections, patience)?;
    let find = SqlitePoolOptions::new().max_connections(settings.max_connections).acquire_timeout(patience);
    let find = SqlxSqliteConnector::from_sqlx_sqlite_pool(find.connect_lazy_with(options));
    Ok((readers, find, SqlxSqliteConnector::from_sqlx_sqlite_pool(write)))
}

async fn open_postgres(url: &str, settings: &Database) -> anyhow::Result<(Readers, DatabaseConnection)> {
    let options = PgConnectOptions::from_str(url)
        .context("database_url")?
        .application_name("muster")
        .statement_cache_capacity(256);
    let patience = Duration::from_secs(settings.acquire_timeout_seconds);
    let readers = Readers::postgres(options.clone(), settings.max_connections, patience)?;
    let pool = PgPoolOptions::new()
        .max_connections(settings.max_connections)
        .acquire_timeout(patience)
        // A dead connection shows at its first statement, and the pool replaces it; asking each time before
        // costs a round trip a request.
        .test_before_acquire(false)
        .connect_with(options)
        .await?;
    Ok((readers, SqlxPostgresConnector::from_sqlx_postgres_pool(pool)))
}
