//! Every test has its own database: a copy of a template that is made once per build of the tests.
//!
//! SQLite by default; PostgreSQL if `MUSTER_TEST_POSTGRES` names a server where databases can be created
//! (`tests/run` starts one).

use std::{
    fs::{self, File},
    hash::{DefaultHasher, Hash, Hasher},
    path::{Path, PathBuf},
    sync::atomic::{AtomicU32, Ordering},
};

use muster::core::{config::Config, store::Db};
use sea_orm::{ConnectOptions, ConnectionTrait, Database, DatabaseConnection};
use url::Url;

use super::fixtures;

/// Whether the tests run on PostgreSQL.
pub fn is_postgres() -> bool {
    postgres().is_some()
}

fn postgres() -> Option<Url> {
    let url = std::env::var_os("MUSTER_TEST_POSTGRES").filter(|url| !url.is_empty())?;
    Some(url.to_str().expect("valid UTF-8").parse().expect("MUSTER_TEST_POSTGRES is a URL"))
}

/// The URL of a new database with tables, people, and two organizations.
pub async fn fresh(folder: &Path) -> String {
    match postgres() {
        Some(server) => fresh_postgres(&server).await,
        None => fresh_sqlite(folder).await,
    }
}

/// The URL of a new, empty database.
pub async fn empty(folder: &Path) -> String {
    match postgres() {
        Some(server) => {
            let admin = connect(server.as_str()).await;
            create(&admin, &server, "template0").await
        }
        None => sqlite_url(&folder.join("empty.db")),
    }
}

/// A connection separate from the service's own.
pub async fn connect(url: &str) -> DatabaseConnection {
    let mut options = ConnectOptions::new(url);
    options.max_connections(1).sqlx_logging(false);
    Database::connect(options).await.expect("the database")
}

async fn fresh_sqlite(folder: &Path) -> String {
    let templates = Path::new(env!("CARGO_TARGET_TMPDIR")).join("templates");
    fs::create_dir_all(&templates).unwrap();
    let template = templates.join(format!("{}.db", build()));
    if !template.exists() {
        let lock = File::create(templates.join("lock")).unwrap();
        lock.lock().unwrap();
        if !template.exists() {
            for old in fs::read_dir(&templates).unwrap().map(|entry| entry.unwrap().path()) {
                if old.extension().is_some_and(|extension| extension == "db") {
                    let _ = fs::remove_file(old);
                }
            }
            let making = folder.join("template.db");
            fill(&sqlite_url(&making)).await;
            let ready = templates.join("ready");
            let _ = fs::remove_file(&ready);
            // Not a file copy: the last writes may still be in the write-ahead log.
            let connection = connect(&sqlite_url(&making)).await;
            run(&connection, &format!("VACUUM INTO '{}'", ready.display())).await;
            connection.close().await.unwrap();
            fs::rename(ready, &template).unwrap();
        }
    }
    let database = folder.join("muster.db");
    fs::copy(template, &database).unwrap();
    sqlite_url(&database)
}

fn sqlite_url(path: &Path) -> String {
    format!("sqlite://{}?mode=rwc", path.display())
}

async fn fresh_postgres(server: &Url) -> String {
    let admin = connect(server.as_str()).await;
    let template = format!("template_{}", build());
    let exists = format!("SELECT 1 FROM pg_database WHERE datname = '{template}'");
    let exists = || async { admin.query_one_raw(raw(&exists)).await.unwrap().is_some() };
    if !exists().await {
        // One connection, so that the lock ends if this process dies.
        admin.execute_unprepared("SELECT pg_advisory_lock(4711)").await.unwrap();
        if !exists().await {
            let making = format!("{template}_making");
            run(&admin, &format!("DROP DATABASE IF EXISTS {making} WITH (FORCE)")).await;
            run(&admin, &format!("CREATE DATABASE {making} TEMPLATE template0")).await;
            fill(database_url(server, &making).as_str()).await;
            run(&admin, &format!("ALTER DATABASE {making} RENAME TO {template}")).await;
        }
        admin.execute_unprepared("SELECT pg_advisory_unlock(4711)").await.unwrap();
    }
    create(&admin, server, &template).await
}

/// Creates a database. It is named after the runner's slot, so that a run keeps no more databases than it has
/// concurrent tests: the next test in a slot drops the previous one's.
async fn create(admin: &DatabaseConnection, server: &Url, template: &str) -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let slot = match std::env::var_os("NEXTEST_TEST_GLOBAL_SLOT") {
        Some(slot) => slot.into_string().unwrap(),
        None => format!("p{}", std::process::id()),
    };
    let name = format!("test_{slot}_{}", COUNT.fetch_add(1, Ordering::Relaxed));
    run(admin, &format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)")).await;
    run(admin, &format!("CREATE DATABASE {name} TEMPLATE {template}")).await;
    database_url(server, &name).into()
}

fn database_url(server: &Url, name: &str) -> Url {
    let mut url = server.clone();
    url.set_path(name);
    url
}

async fn run(connection: &DatabaseConnection, sql: &str) {
    connection.execute_unprepared(sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
}

fn raw(sql: &str) -> sea_orm::Statement {
    sea_orm::Statement::from_string(sea_orm::DbBackend::Postgres, sql)
}

/// Creates the tables with the service's own migrations, then what every test starts with.
async fn fill(url: &str) {
    let folder = tempfile::tempdir().unwrap();
    let db = Db::open(&config(folder.path(), url).database).await.unwrap();
    db.migrate().await.unwrap();
    db.close().await;
    let connection = connect(url).await;
    fixtures::found(&connection).await;
    connection.close().await.unwrap();
}

/// The service's settings in tests.
pub fn config(folder: &Path, url: &str) -> Config {
    let variables = [
        ("MUSTER_DATA_DIR", folder.to_str().unwrap()),
        ("MUSTER_DATABASE_URL", url),
        ("MUSTER_DATABASE_MAX_CONNECTIONS", "4"),
        ("MUSTER_LISTEN", "127.0.0.1:0"),
        // Time stands still, so no bucket would ever refill.
        ("MUSTER_RATE_LIMITS_ENABLED", "false"),
        // Vendors are away, unless a test starts one.
        ("MUSTER_CHANNELS_DISCORD_URL", "http://127.0.0.1:9/api/v10/"),
        ("MUSTER_CHANNELS_DISCORD_FILES_URL", "http://127.0.0.1:9/"),
        ("MUSTER_CHANNELS_GITHUB_URL", "http://127.0.0.1:9/"),
        ("MUSTER_CHANNELS_GITHUB_API_URL", "http://127.0.0.1:9/"),
        ("MUSTER_CHANNELS_GOOGLE_API_URL", "http://127.0.0.1:9/"),
        ("MUSTER_CHANNELS_GOOGLE_TOKENS_URL", "http://127.0.0.1:9/"),
        ("MUSTER_CHANNELS_TELEGRAM_URL", "http://127.0.0.1:9/"),
        ("MUSTER_CHANNELS_SLACK_URL", "http://127.0.0.1:9/api/"),
        ("MUSTER_CHANNELS_SLACK_FILES_URL", "http://127.0.0.1:9/"),
    ];
    Config::read(None, variables.map(|(name, value)| (name.to_owned(), value.to_owned())).into()).unwrap()
}

/// Identifies this build of the tests, which is all the template depends on.
pub(super) fn build() -> String {
    let program: PathBuf = std::env::current_exe().unwrap();
    let about = fs::metadata(program).unwrap();
    let mut hasher = DefaultHasher::new();
    (about.len(), about.modified().unwrap()).hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}
