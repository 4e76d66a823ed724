//! Migrations under a version that still serves: what the old one says to the database still works, step by step.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use muster::store::{Db, breaking};
use sea_orm::{ConnectionTrait, DatabaseConnection, Statement};
use sqlx::migrate::Migrator;

use crate::harness::{config, connect, empty_database, is_postgres};

fn folder() -> PathBuf {
    let kind = if is_postgres() { "postgres" } else { "sqlite" };
    Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations").join(kind)
}

#[test]
fn no_step_takes_anything_away_without_saying_why() {
    for kind in ["sqlite", "postgres"] {
        let steps =
            fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations").join(kind)).unwrap();
        for path in steps.map(|step| step.unwrap().path()) {
            let found = breaking(&fs::read_to_string(&path).unwrap());
            assert!(
                found.is_empty(),
                "{}: {found:?}: an old version may still serve. See migrations/README.md",
                path.display()
            );
        }
    }
}

/// What the old version may say of a table: its columns, and which of them have to be given.
type Tables = BTreeMap<String, BTreeMap<String, bool>>;

async fn tables(database: &DatabaseConnection) -> Tables {
    let sql = if is_postgres() {
        "SELECT table_name || ' ' || column_name || ' ' || (is_nullable = 'NO' AND column_default IS NULL AND \
         is_identity = 'NO' AND is_generated = 'NEVER')::text FROM information_schema.columns WHERE table_schema = 'public'"
    } else {
        "SELECT m.name || ' ' || c.name || ' ' || CASE WHEN c.\"notnull\" = 1 AND c.dflt_value IS NULL AND c.pk = 0 \
         THEN 'true' ELSE 'false' END FROM sqlite_schema m, pragma_table_info(m.name) c WHERE m.type = 'table' \
         AND m.name NOT LIKE 'messages_fts_%' AND m.name NOT LIKE 'sqlite_%'"
    };
    let rows =
        database.query_all_raw(Statement::from_string(database.get_database_backend(), sql)).await.unwrap();
    let mut tables = Tables::new();
    for row in rows {
        let line: String = row.try_get_by(0).unwrap();
        let [table, column, required] = line.split(' ').collect::<Vec<_>>()[..] else { panic!("{line}") };
        if !table.starts_with("_sqlx") {
            tables.entry(table.to_owned()).or_default().insert(column.to_owned(), required == "true");
        }
    }
    tables
}

/// The statements of a version that knows these tables and no others: reading, inserting, changing each column.
fn statements(tables: &Tables) -> Vec<String> {
    let mut statements = Vec::new();
    for (table, columns) in tables.iter().filter(|(table, _)| *table != "messages_fts") {
        let names: Vec<&str> = columns.keys().map(String::as_str).collect();
        let list = names.join(", ");
        statements.push(format!("SELECT {list} FROM {table} WHERE 1 = 0"));
        statements.push(format!("INSERT INTO {table} ({list}) SELECT {list} FROM {table} WHERE 1 = 0"));
    }
    statements
}

#[tokio::test]
async fn after_each_step_the_version_before_goes_on() {
    let place = tempfile::tempdir().unwrap();
    let url = empty_database(place.path()).await;
    // Makes the file, where it is one.
    Db::open(&config(place.path(), &url).database).await.unwrap().close().await;
    let database = connect(&url).await;
    let all = Migrator::new(folder()).await.unwrap();
    let mut known = Tables::new();
    for step in all.iter() {
        let upto: Vec<_> = all.iter().filter(|other| other.version <= step.version).cloned().collect();
        let mut migrator = Migrator::new(folder()).await.unwrap();
        migrator.migrations = Cow::Owned(upto);
        if is_postgres() {
            migrator.run(database.get_postgres_connection_pool()).await.unwrap();
        } else {
            migrator.run(database.get_sqlite_connection_pool()).await.unwrap();
        }
        for statement in statements(&known) {
            let said = database.execute_unprepared(&statement).await;
            assert!(said.is_ok(), "after {}: {statement}: {said:?}", step.description);
        }
        let now = tables(&database).await;
        for (table, columns) in &known {
            for (column, required) in &now[table] {
                let was = columns.get(column).copied();
                assert!(
                    !required || was == Some(true),
                    "{}: {table}.{column} has to be given now, which the version before does not do",
                    step.description
                );
            }
        }
        known = now;
    }
    assert!(known.len() > 20);
}

#[tokio::test]
async fn replicas_that_start_at_once_migrate_once() {
    if !is_postgres() {
        // SQLite is one process.
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let url = empty_database(place.path()).await;
    let settings = config(place.path(), &url).database;
    let replicas: Vec<Db> = futures::future::join_all((0..4).map(|_| Db::open(&settings)))
        .await
        .into_iter()
        .map(Result::unwrap)
        .collect();
    assert!(replicas[0].pending().await.unwrap().len() > 8);
    let done = futures::future::join_all(replicas.iter().map(Db::migrate)).await;
    assert!(done.iter().all(Result::is_ok), "{done:?}");
    assert!(replicas[0].is_migrated().await.unwrap());
    // A step does not wait for ever for a table that somebody holds.
    let held = connect(&url).await;
    held.execute_unprepared("BEGIN; LOCK TABLE agents IN ACCESS SHARE MODE").await.unwrap();
    for db in replicas {
        db.close().await;
    }
}

#[tokio::test]
async fn a_plan_names_what_is_missing_and_what_it_does() {
    let place = tempfile::tempdir().unwrap();
    let url = empty_database(place.path()).await;
    let db = Db::open(&config(place.path(), &url).database).await.unwrap();
    let pending = db.pending().await.unwrap();
    let names: BTreeSet<&str> = pending.iter().map(|step| step.name.as_str()).collect();
    assert!(names.contains("identity") && names.contains("idempotency"), "{names:?}");
    assert!(pending.iter().all(|step| step.safe_while_serving), "{pending:?}");
    assert!(!db.is_migrated().await.unwrap());
    db.migrate().await.unwrap();
    assert!(db.pending().await.unwrap().is_empty() && db.is_migrated().await.unwrap());
    db.close().await;
}
