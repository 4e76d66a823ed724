//! The migrations work on an empty database and run once, a database of another version is refused, and the
//! tables match the entities and each other.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use muster::core::store::{Db, newest_step};
use sea_orm::{ConnectionTrait, DatabaseConnection};
use serde_json::json;
use sqlx::migrate::Migrator;

use crate::harness::{TestApp, config, connect, empty_database, files_below, is_postgres};

#[tokio::test]
async fn migrating_twice_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let url = empty_database(folder.path()).await;
    let db = Db::open(&config(folder.path(), &url).database).await.unwrap();
    db.migrate().await.unwrap();
    let sent = db.statements();
    db.migrate().await.unwrap();
    assert_eq!(db.statements(), sent + 2, "the second run checks what there is and has nothing to do");
    db.close().await;
    let again = Db::open(&config(folder.path(), &url).database).await.unwrap();
    again.migrate().await.unwrap();
    again.ping().await.unwrap();
    again.close().await;
}

fn folder(kind: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations").join(kind)
}

#[test]
fn both_databases_have_the_same_steps() {
    let steps = |kind: &str| -> BTreeSet<String> {
        let files = fs::read_dir(folder(kind)).unwrap();
        files.map(|step| step.unwrap().file_name().into_string().unwrap()).collect()
    };
    assert_eq!(steps("sqlite"), steps("postgres"));
}

/// Indexes that only one of the databases has: PostgreSQL's search, where SQLite has a table of its own; how a list puts nulls
/// last; and the newest row, which SQLite finds by its row id.
const INDEXES_OF_ONE: [&str; 5] = [
    "CREATE INDEX conversations_model ON conversations (organization_id, model DESC NULLS LAST, id)",
    "CREATE INDEX conversations_model ON conversations (organization_id, model DESC, id)",
    "CREATE INDEX message_search_seq ON message_search (organization_id, conversation_id, seq)",
    "CREATE INDEX message_search_terms ON message_search USING gin (search_terms(tokens, organization_id, message_id, \
     conversation_id, seq)) WITH (fastupdate = off)",
    "CREATE INDEX policy_versions_newest ON policy_versions (id)",
];

#[test]
fn both_databases_have_the_same_indexes_and_checks() {
    let [sqlite, postgres] = ["sqlite", "postgres"].map(statements);
    let of_one: BTreeSet<String> = INDEXES_OF_ONE.iter().map(ToString::to_string).collect();
    assert_eq!(
        indexes(&sqlite).symmetric_difference(&indexes(&postgres)).cloned().collect::<BTreeSet<_>>(),
        of_one
    );
    // PostgreSQL has types for these.
    let typed = |check: &(String, String)| check.1.ends_with("IN (0, 1)") || check.1.contains("json_valid(");
    let of_sqlite: BTreeSet<_> = checks(&sqlite).into_iter().filter(|check| !typed(check)).collect();
    assert_eq!(of_sqlite, checks(&postgres));
    assert!(of_sqlite.len() > 90, "only {} were found", of_sqlite.len());
}

/// The statements of all steps, without comments, each on one line.
fn statements(kind: &str) -> Vec<String> {
    let files = files_below(&folder(kind)).into_iter().map(|file| fs::read_to_string(file).unwrap());
    let text: Vec<String> = files.collect();
    let lines = text.iter().flat_map(|text| text.lines());
    let code: Vec<&str> = lines.map(|line| line.split("--").next().unwrap()).collect();
    let one_line = |statement: &str| statement.split_whitespace().collect::<Vec<_>>().join(" ");
    code.join("\n").split(';').map(one_line).collect()
}

fn indexes(statements: &[String]) -> BTreeSet<String> {
    let is_index = |it: &&String| it.starts_with("CREATE INDEX ") || it.starts_with("CREATE UNIQUE INDEX ");
    statements.iter().filter(is_index).cloned().collect()
}

/// Each table's checks.
fn checks(statements: &[String]) -> BTreeSet<(String, String)> {
    let mut found = BTreeSet::new();
    for statement in statements {
        let Some(table) = statement.strip_prefix("CREATE TABLE ") else { continue };
        let name = table.split(' ').next().unwrap();
        for check in table.split("CHECK (").skip(1) {
            let mut depth = 1;
            let end = check.find(|c| {
                depth += i32::from(c == '(') - i32::from(c == ')');
                depth == 0
            });
            found.insert((name.to_owned(), check[..end.unwrap()].to_owned()));
        }
    }
    found
}

/// Migrates as far as a version would that knows only the steps up to this number.
async fn migrate_to(version: i64, database: &DatabaseConnection) {
    let mut migrator =
        Migrator::new(folder(if is_postgres() { "postgres" } else { "sqlite" })).await.unwrap();
    migrator.migrations =
        Cow::Owned(migrator.iter().filter(|step| step.version <= version).cloned().collect());
    if is_postgres() {
        migrator.run(database.get_postgres_connection_pool()).await.unwrap();
    } else {
        migrator.run(database.get_sqlite_connection_pool()).await.unwrap();
    }
}

#[tokio::test]
async fn a_migration_is_added_to_the_previous_version() {
    let place = tempfile::tempdir().unwrap();
    let url = empty_database(place.path()).await;
    let db = Db::open(&config(place.path(), &url).database).await.unwrap();
    let all = db.pending().await.unwrap();
    let (last, before) = all.split_last().unwrap();
    let database = connect(&url).await;
    migrate_to(before.last().unwrap().version, &database).await;
    let user = "INSERT INTO users (email, email_folded, name, name_folded, created_at, updated_at) \
                VALUES ('a@example.org', 'a@example.org', 'A', 'a', 0, 0)";
    database.execute_unprepared(user).await.unwrap();
    assert_eq!(db.pending().await.unwrap(), std::slice::from_ref(last));
    assert!(!db.is_migrated().await.unwrap());
    db.migrate().await.unwrap();
    assert!(db.pending().await.unwrap().is_empty() && db.is_migrated().await.unwrap());
    let kept = database.execute_unprepared("DELETE FROM users").await.unwrap();
    assert_eq!(kept.rows_affected(), 1);
    db.close().await;
}

#[tokio::test]
async fn a_database_of_a_later_version_is_refused() {
    let app = TestApp::start().await;
    assert!(app.core.db.mismatch().await.unwrap().is_none());
    let sql = "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time) \
               VALUES (9001, 'customers', TRUE, $1, 1)";
    app.execute(sql, vec![vec![7_u8].into()]).await;
    let said = all_refuse(&app).await;
    assert!(said.starts_with("a later version has migrated the database (step 9001 customers)"), "{said}");
    assert!(said.contains("Start that version, or restore a backup"), "{said}");
    // That version has said which one it is.
    app.execute("INSERT INTO step_versions (step, muster) VALUES (9001, '7.8.9')", vec![]).await;
    let said = all_refuse(&app).await;
    assert!(said.starts_with("Muster 7.8.9 has migrated the database (step 9001 customers)"), "{said}");
    assert!(said.contains("Start Muster 7.8.9 or later, or restore a backup"), "{said}");
    assert!(said.contains(concat!("this is Muster ", env!("CARGO_PKG_VERSION"))), "{said}");
    // Replicas that already run continue.
    assert!(app.core.db.is_migrated().await.unwrap());
}

#[tokio::test]
async fn a_database_with_a_changed_migration_is_refused() {
    let app = TestApp::start().await;
    app.execute("UPDATE _sqlx_migrations SET checksum = $1 WHERE version = 2", vec![vec![7_u8].into()]).await;
    let said = all_refuse(&app).await;
    assert!(said.contains("0002 servers and agents") && said.contains("use a new database"), "{said}");
}

#[tokio::test]
async fn a_database_with_an_unfinished_migration_is_refused() {
    let app = TestApp::start().await;
    app.execute("UPDATE _sqlx_migrations SET success = FALSE WHERE version = 2", vec![]).await;
    let said = all_refuse(&app).await;
    assert!(said.contains("0002 servers and agents") && said.contains("not finished"), "{said}");
}

/// What everything that compares the steps says about the database, which must be the same.
async fn all_refuse(app: &TestApp) -> String {
    let db = Db::open(&app.core.config.database).await.unwrap();
    let said = db.migrate().await.unwrap_err().to_string();
    db.close().await;
    let make = ["org", "create", "--name", "N", "--owner-email", "n@example.org"];
    for arguments in [&["migrate", "--plan"][..], &["serve", "--no-migrate"], &["audit", "verify"], &make] {
        let refused = app.cli(arguments).await;
        assert!(!refused.good() && refused.err.contains(&said), "{arguments:?}: {}", refused.err);
    }
    let ran = app.cli(&["doctor"]).await;
    let findings = ran.out["findings"].as_array().unwrap();
    let found = findings.iter().find(|it| it["check"] == "migrations").unwrap();
    assert_eq!((ran.good(), &found["level"]), (false, &json!("bad")));
    let [found, advice] = ["found", "advice"].map(|part| found[part].as_str().unwrap());
    assert_eq!(format!("{found}. {advice}"), said);
    said
}

#[tokio::test]
async fn every_step_has_the_version_that_applied_it() {
    let app = TestApp::start().await;
    // As after a crash before the last steps were noted.
    app.execute("DELETE FROM step_versions WHERE step > 9", vec![]).await;
    app.core.db.migrate().await.unwrap();
    let steps: Vec<i64> = app.column("SELECT step FROM step_versions ORDER BY step").await;
    let applied: Vec<i64> = app.column("SELECT version FROM _sqlx_migrations ORDER BY version").await;
    assert_eq!((steps.last(), &steps), (Some(&newest_step()), &applied));
    let by: Vec<String> = app.column("SELECT DISTINCT muster FROM step_versions").await;
    assert_eq!(by, [env!("CARGO_PKG_VERSION")]);
}

/// SQLite has one process.
#[tokio::test]
async fn postgres_replicas_starting_together_migrate_once() {
    let place = tempfile::tempdir().unwrap();
    let url = empty_database(place.path()).await;
    let settings = config(place.path(), &url).database;
    let replicas: Vec<Db> = futures::future::join_all((0..4).map(|_| Db::open(&settings)))
        .await
        .into_iter()
        .map(Result::unwrap)
        .collect();
    assert!(!replicas[0].pending().await.unwrap().is_empty());
    let done = futures::future::join_all(replicas.iter().map(Db::migrate)).await;
    assert!(done.iter().all(Result::is_ok), "{done:?}");
    assert!(replicas[0].is_migrated().await.unwrap());
    for db in replicas {
        db.close().await;
    }
}

/// SQLite has one process, which doesn't serve while it migrates.
#[tokio::test]
async fn postgres_a_migration_without_its_lock_gives_up() {
    let place = tempfile::tempdir().unwrap();
    let url = empty_database(place.path()).await;
    let writer = connect(&url).await;
    // The next step refers to organizations.
    migrate_to(1, &writer).await;
    let holder = connect(&url).await;
    holder.execute_unprepared("BEGIN; LOCK TABLE organizations IN ROW EXCLUSIVE MODE").await.unwrap();
    let db = Db::open(&config(place.path(), &url).database).await.unwrap();
    let writing = async {
        let waits = "SELECT 1 FROM pg_locks WHERE relation = 'organizations'::regclass AND NOT granted";
        while writer.execute_unprepared(waits).await.unwrap().rows_affected() == 0 {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        // Queued behind the step, which waits for the holder: it continues once the step has given up.
        writer.execute_unprepared("UPDATE organizations SET name = name").await.unwrap();
    };
    let (migrated, ()) = tokio::join!(db.migrate(), writing);
    let said = format!("{:#}", migrated.unwrap_err());
    assert!(said.contains("step 2") && said.contains("10 seconds") && said.contains("again"), "{said}");
    assert_eq!(db.pending().await.unwrap()[0].version, 2, "the step has changed nothing");
    holder.execute_unprepared("COMMIT").await.unwrap();
    db.migrate().await.unwrap();
    assert!(db.is_migrated().await.unwrap());
    db.close().await;
}

/// Columns, and whether each is nullable, by table.
type Tables = BTreeMap<String, BTreeMap<String, bool>>;

#[tokio::test]
async fn entities_have_the_columns_of_their_tables() {
    let app = TestApp::start().await;
    let tables = tables(&app).await;
    let entities = entities();
    assert!(entities.len() > 15, "{entities:#?}");
    for (table, columns) in &entities {
        assert_eq!(tables.get(table), Some(columns), "entity of {table} (name: may it be null)");
    }
}

async fn tables(app: &TestApp) -> Tables {
    let sql = if is_postgres() {
        "SELECT table_name || ' ' || column_name || ' ' || (is_nullable = 'YES')::text FROM \
         information_schema.columns WHERE table_schema = 'public'"
    } else {
        "SELECT m.name || ' ' || c.name || ' ' || CASE WHEN c.\"notnull\" = 1 OR c.pk > 0 THEN 'false' ELSE 'true' \
         END FROM sqlite_schema m, pragma_table_info(m.name) c WHERE m.type = 'table'"
    };
    let mut tables = Tables::new();
    for line in app.column::<String>(sql).await {
        let [table, column, nullable] = line.split(' ').collect::<Vec<_>>()[..] else { panic!("{line}") };
        tables.entry(table.to_owned()).or_default().insert(column.to_owned(), nullable == "true");
    }
    tables
}

/// The columns declared in the `entity.rs` files. They are private to their features, so they are read as text.
fn entities() -> Tables {
    let mut tables = Tables::new();
    let files = files_below(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src/domain")).into_iter();
    for file in files.filter(|file| file.ends_with("entity.rs")) {
        let text = fs::read_to_string(&file).unwrap();
        let (mut table, mut inside) = (String::new(), false);
        let mut column_name = None;
        for line in text.lines().map(str::trim) {
            if let Some((_, name)) = line.split_once("table_name = \"") {
                name.split('"').next().unwrap().clone_into(&mut table);
            } else if line.starts_with("pub struct Model") {
                inside = true;
            } else if line == "}" {
                inside = false;
            } else if let Some((_, name)) = line.split_once("column_name = \"").filter(|_| inside) {
                column_name = Some(name.split('"').next().unwrap().to_owned());
            } else if let Some((name, ty)) = line.strip_prefix("pub ").and_then(|line| line.split_once(": "))
                && inside
            {
                let name = column_name.take().unwrap_or_else(|| name.trim_start_matches("r#").to_owned());
                tables.entry(table.clone()).or_default().insert(name, ty.starts_with("Option<"));
            }
        }
    }
    tables
}
