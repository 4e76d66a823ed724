//! Migrations under a version that still serves: what the old one says to the database still works, step by step.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use muster::core::store::{CONTRACT, Db, MARK, breaking, takes_away};
use sea_orm::{ConnectionTrait, DatabaseConnection, Statement};
use serde_json::json;
use sqlx::migrate::Migrator;

use crate::{
    harness::{TestApp, config, connect, empty_database, is_postgres},
    upgrades_constraints::{constraints, narrowed},
};

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
            let sql = fs::read_to_string(&path).unwrap();
            // An older version sees nothing of a step but its name.
            let name = path.file_stem().unwrap().to_str().unwrap();
            let name = name.split_once('_').unwrap().1;
            assert_eq!(sql.contains(MARK), takes_away(name), "{}: its name and its text", path.display());
            let found = breaking(&sql);
            assert!(
                found.is_empty(),
                "{}: {found:?}: an old version may still serve. See migrations/README.md",
                path.display()
            );
        }
    }
}

/// What the old version may say of a table: its columns.
pub type Tables = BTreeMap<String, BTreeMap<String, Column>>;

#[derive(Clone, Debug)]
pub struct Column {
    /// As the database calls its type, in capitals.
    ty: String,
    /// Whether it has to be given.
    required: bool,
    /// Whether it may be null.
    pub nullable: bool,
    /// Whether it is null where nothing is given.
    pub null_if_absent: bool,
    /// The values that its CHECK lists; none if it has no such CHECK.
    listed: Vec<String>,
}

pub async fn lines(database: &DatabaseConnection, sql: &str) -> Vec<String> {
    let rows =
        database.query_all_raw(Statement::from_string(database.get_database_backend(), sql)).await.unwrap();
    rows.iter().map(|row| row.try_get_by(0).unwrap()).collect()
}

pub async fn tables(database: &DatabaseConnection) -> Tables {
    let sql = if is_postgres() {
        "SELECT table_name || ' ' || column_name || ' ' || (is_nullable = 'NO' AND column_default IS NULL AND \
         is_identity = 'NO')::text || ' ' || (is_nullable = 'YES')::text || ' ' || \
         (is_nullable = 'YES' AND column_default IS NULL)::text || ' ' || upper(data_type) \
         FROM information_schema.columns JOIN information_schema.tables USING (table_schema, table_name) \
         WHERE table_schema = 'public' AND table_type = 'BASE TABLE' AND is_generated = 'NEVER'"
    } else {
        "SELECT m.name || ' ' || c.name || ' ' || CASE WHEN c.\"notnull\" = 1 AND c.dflt_value IS NULL \
         AND NOT (c.pk = 1 AND c.type = 'INTEGER') THEN 'true' ELSE 'false' END || ' ' || \
         iif(c.\"notnull\" = 0 AND c.pk = 0, 'true', 'false') || ' ' || \
         iif(c.\"notnull\" = 0 AND c.pk = 0 AND c.dflt_value IS NULL, 'true', 'false') || ' ' || upper(c.type) \
         FROM sqlite_schema m, pragma_table_info(m.name) c \
         WHERE m.type = 'table' AND m.name NOT LIKE 'messages_fts_%' AND m.name NOT LIKE 'sqlite_%'"
    };
    let mut tables = Tables::new();
    for line in lines(database, sql).await {
        let parts: Vec<&str> = line.splitn(6, ' ').collect();
        let [table, column, required, nullable, null_if_absent, ty] = parts[..] else { panic!("{line}") };
        let [required, nullable, null_if_absent] =
            [required, nullable, null_if_absent].map(|is| is == "true");
        if !table.starts_with("_sqlx") {
            let (ty, listed) = (ty.to_owned(), Vec::new());
            let column_is = Column { ty, required, nullable, null_if_absent, listed };
            tables.entry(table.to_owned()).or_default().insert(column.to_owned(), column_is);
        }
    }
    for (table, column, listed) in enumerations(database).await {
        if let Some(column) = tables.get_mut(&table).and_then(|columns| columns.get_mut(&column)) {
            column.listed.extend(listed);
        }
    }
    tables
}

/// The columns whose CHECK lists values, as the database has them now.
async fn enumerations(database: &DatabaseConnection) -> Vec<(String, String, Vec<String>)> {
    // `status IN ('A', 'B')` as it was written; `(status = ANY (ARRAY['A'::text, 'B'::text]))` as PostgreSQL reads it.
    let (sql, begin, end) = if is_postgres() {
        let sql = "SELECT conrelid::regclass::text || ' ' || pg_get_constraintdef(oid) FROM pg_constraint \
                   WHERE contype = 'c' AND connamespace = 'public'::regnamespace";
        (sql, " = ANY (ARRAY[", ']')
    } else {
        let sql = "SELECT name || ' ' || sql FROM sqlite_schema WHERE type = 'table' AND sql LIKE '%CHECK%'";
        (sql, " IN (", ')')
    };
    let mut found = Vec::new();
    for text in lines(database, sql).await {
        let (table, text) = text.split_once(' ').unwrap();
        let parts: Vec<&str> = text.split(begin).collect();
        for pair in parts.windows(2) {
            let column = pair[0].rsplit(|c: char| !c.is_ascii_alphanumeric() && c != '_').next().unwrap();
            let list = pair[1].split(end).next().unwrap();
            let values: Vec<String> = list.split('\'').skip(1).step_by(2).map(str::to_owned).collect();
            if !values.is_empty() {
                found.push((table.to_owned(), column.to_owned(), values));
            }
        }
    }
    found
}

/// The statements of a version that knows these tables and no others: reading, inserting, changing each column, deleting.
fn statements(tables: &Tables) -> Vec<String> {
    let mut statements = Vec::new();
    for (table, columns) in tables.iter().filter(|(table, _)| *table != "messages_fts") {
        let names: Vec<&str> = columns.keys().map(String::as_str).collect();
        let list = names.join(", ");
        let set: Vec<String> = names.iter().map(|name| format!("{name} = {name}")).collect();
        statements.push(format!("SELECT {list} FROM {table} WHERE 1 = 0"));
        statements.push(format!("INSERT INTO {table} ({list}) SELECT {list} FROM {table} WHERE 1 = 0"));
        statements.push(format!("UPDATE {table} SET {} WHERE 1 = 0", set.join(", ")));
        statements.push(format!("DELETE FROM {table} WHERE 1 = 0"));
    }
    statements
}

/// A row as the old version writes it, changes it and deletes it.
#[derive(Clone)]
struct Row {
    /// What it is about, for who reads a failure.
    about: String,
    statements: [String; 4],
}

/// What has to be in a row besides, where a condition ties columns together.
fn besides(table: &str, column: &str, value: &str) -> Vec<(&'static str, &'static str)> {
    match (table, column, value) {
        ("approvals", "status", "PENDING") => vec![],
        ("approvals", "status", _) => vec![("outcome", "'MANUAL'")],
        ("approvals", "outcome", _) => vec![("status", "'RESOLVED'")],
        ("avatars", ..) => vec![("user_id", "1")],
        _ => vec![],
    }
}

/// A row of each table with as little as it takes, and one for every value that a CHECK lists.
fn rows(tables: &Tables) -> Vec<Row> {
    let mut rows = Vec::new();
    for (table, columns) in tables.iter().filter(|(table, _)| *table != "messages_fts") {
        rows.push(row(table, columns, None));
        for (column, is) in columns {
            rows.extend(is.listed.iter().map(|value| row(table, columns, Some((column, value)))));
        }
    }
    rows
}

fn row(table: &str, columns: &BTreeMap<String, Column>, with: Option<(&str, &str)>) -> Row {
    let mut given: BTreeMap<&str, String> = columns
        .iter()
        .filter(|(_, column)| column.required)
        .map(|(name, column)| (name.as_str(), literal(column)))
        .collect();
    let (column, value) = with.unwrap_or_default();
    given.extend(besides(table, column, value).into_iter().map(|(name, value)| (name, value.to_owned())));
    if with.is_some() {
        given.insert(column, format!("'{value}'"));
    }
    let names: Vec<&str> = given.keys().copied().collect();
    let values: Vec<&str> = given.values().map(String::as_str).collect();
    let set: Vec<String> = given.iter().map(|(name, value)| format!("{name} = {value}")).collect();
    Row {
        about: format!("{table}.{column} {value}"),
        statements: [
            // What the steps have put there is out of the way.
            format!("DELETE FROM {table}"),
            format!("INSERT INTO {table} ({}) VALUES ({})", names.join(", "), values.join(", ")),
            format!("UPDATE {table} SET {}", set.join(", ")),
            format!("DELETE FROM {table}"),
        ],
    }
}

/// A value that fits wherever it may stand: `1` is a text, in capitals, and JSON as well.
fn literal(column: &Column) -> String {
    match (column.listed.first(), column.ty.as_str()) {
        (Some(first), _) => format!("'{first}'"),
        (None, "BYTEA") => r"'\x01'".to_owned(),
        (None, "BLOB") => "X'01'".to_owned(),
        (None, "BOOLEAN") => "TRUE".to_owned(),
        (None, "TSVECTOR" | "TEXT" | "JSON") => "'1'".to_owned(),
        (None, _) => "1".to_owned(),
    }
}

/// Which of the rows the database refuses, and why. Nothing of them stays. Rows that they would refer to are not asked for.
async fn refused(database: &DatabaseConnection, rows: &[Row]) -> Vec<(String, String)> {
    let run = async |sql: &str| database.execute_unprepared(sql).await.map_err(|error| error.to_string());
    if !is_postgres() {
        run("PRAGMA foreign_keys = OFF").await.unwrap();
    }
    run("BEGIN").await.unwrap();
    if is_postgres() {
        let drop = "DO $$ DECLARE fk record; BEGIN FOR fk IN SELECT conrelid::regclass AS owner, conname FROM pg_constraint \
                    WHERE contype = 'f' LOOP EXECUTE format('ALTER TABLE %s DROP CONSTRAINT %I', fk.owner, fk.conname); \
                    END LOOP; END $$";
        run(drop).await.unwrap();
    }
    let mut found = Vec::new();
    for row in rows {
        run("SAVEPOINT a_row").await.unwrap();
        for statement in &row.statements {
            if let Err(error) = run(statement).await {
                found.push((row.about.clone(), format!("{statement}: {error}")));
                break;
            }
        }
        run("ROLLBACK TO a_row").await.unwrap();
    }
    run("ROLLBACK").await.unwrap();
    if !is_postgres() {
        run("PRAGMA foreign_keys = ON").await.unwrap();
    }
    found
}

/// The steps up to a number.
async fn upto(version: i64) -> Migrator {
    let mut migrator = Migrator::new(folder()).await.unwrap();
    let steps = migrator.iter().filter(|step| step.version <= version).cloned().collect();
    migrator.migrations = Cow::Owned(steps);
    migrator
}

/// New rules for old columns in steps that nobody may edit any more: step, rule, why. The list only shrinks. The first is
/// SQLite's as well, which lets a table refer to one that is not there yet.
const EXCUSED: &[(&str, &str, &str)] = &[
    ("keys", "signing_keys: UNIQUE ", "the versions before had the table, and never wrote to it"),
    ("servers and agents", "organizations: FOREIGN KEY (id, default_image_id)", NOTHING_YET),
    ("conversations", "channels: FOREIGN KEY (organization_id, notify_conversation_id)", NOTHING_YET),
];
const NOTHING_YET: &str = "what it refers to is of this step: there was nothing to write before";

#[tokio::test]
async fn after_each_step_the_version_before_goes_on() {
    let place = tempfile::tempdir().unwrap();
    let url = empty_database(place.path()).await;
    // Makes the file, where it is one.
    Db::open(&config(place.path(), &url).database).await.unwrap().close().await;
    let database = connect(&url).await;
    let (mut known, mut rules) = (Tables::new(), BTreeSet::new());
    let (mut excused, mut refusing) = (BTreeSet::new(), Vec::new());
    for step in Migrator::new(folder()).await.unwrap().iter() {
        let written = rows(&known);
        let before = refused(&database, &written).await;
        assert!(before.is_empty(), "before {} already: tell `besides`: {before:#?}", step.description);
        let migrator = upto(step.version).await;
        if is_postgres() {
            migrator.run(database.get_postgres_connection_pool()).await.unwrap();
        } else {
            migrator.run(database.get_sqlite_connection_pool()).await.unwrap();
        }
        for statement in statements(&known) {
            let said = database.execute_unprepared(&statement).await;
            assert!(said.is_ok(), "after {}: {statement}: {said:?}", step.description);
        }
        let after = refused(&database, &written).await;
        assert!(after.is_empty(), "{} refuses what the version before writes: {after:#?}", step.description);
        let now = tables(&database).await;
        for (table, columns) in &known {
            for (column, Column { required, .. }) in &now[table] {
                let was = columns.get(column).map(|column| column.required);
                assert!(
                    !required || was == Some(true),
                    "{}: {table}.{column} has to be given now, which the version before does not do",
                    step.description
                );
            }
        }
        let rules_now = constraints(&database).await;
        for narrower in narrowed((&known, &rules), (&now, &rules_now)) {
            let excuses = |&(name, rule, _): &(&str, &str, &str)| {
                step.description == name && narrower.starts_with(rule)
            };
            match EXCUSED.iter().position(excuses) {
                Some(excuse) => excused.extend([excuse]),
                None if step.sql.as_str().contains(MARK) => {}
                None => refusing.push(format!("{}: {narrower}", step.description)),
            }
        }
        (known, rules) = (now, rules_now);
    }
    assert!(refusing.is_empty(), "what the version before writes may be refused now: {refusing:#?}");
    let needed = if is_postgres() { EXCUSED.len() } else { 1 };
    assert!(rules.len() > 100 && excused.len() == needed, "{} rules, excused: {excused:?}", rules.len());
    let listed: usize =
        known.values().flat_map(BTreeMap::values).filter(|column| !column.listed.is_empty()).count();
    assert!(known.len() > 20 && listed > 50, "{} tables, {listed} lists", known.len());
}

#[tokio::test]
async fn a_step_that_would_not_suit_the_version_before_is_found() {
    let place = tempfile::tempdir().unwrap();
    let url = empty_database(place.path()).await;
    Db::open(&config(place.path(), &url).database).await.unwrap().close().await;
    let database = connect(&url).await;
    let run = async |sql: &str| database.execute_unprepared(sql).await.unwrap();
    let kinds = |list: &str| {
        format!("CREATE TABLE things (name TEXT NOT NULL, kind TEXT NOT NULL CHECK (kind IN ({list})))")
    };
    run(&kinds("'OLD', 'BOTH'")).await;
    let written = rows(&tables(&database).await);
    assert_eq!((written.len(), refused(&database, &written).await.len()), (3, 0));
    run("DROP TABLE things").await;
    run(&kinds("'NEW', 'BOTH'")).await;
    let found: Vec<String> = refused(&database, &written).await.into_iter().map(|(about, _)| about).collect();
    // The row with as little as it takes has the first value.
    assert_eq!(found, ["things. ", "things.kind OLD"]);
    run("DROP TABLE things").await;
    run("CREATE TABLE things (name TEXT NOT NULL, kind TEXT NOT NULL, more TEXT, CHECK (more IS NOT NULL))")
        .await;
    assert_eq!(refused(&database, &written).await.len(), 3);
}

#[tokio::test]
async fn a_step_that_can_not_have_its_table_gives_up_and_says_so() {
    if !is_postgres() {
        // SQLite is one process, which does not serve while it migrates.
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let url = empty_database(place.path()).await;
    let reader = connect(&url).await;
    // The next step changes the audit log.
    upto(11).await.run(reader.get_postgres_connection_pool()).await.unwrap();
    let holder = connect(&url).await;
    holder.execute_unprepared("BEGIN; LOCK TABLE audit_log IN ACCESS SHARE MODE").await.unwrap();
    let db = Db::open(&config(place.path(), &url).database).await.unwrap();
    let began = Instant::now();
    let reading = async {
        // Behind the step, which waits for the holder.
        tokio::time::sleep(Duration::from_secs(2)).await;
        reader.execute_unprepared("SELECT COUNT(*) FROM users").await.unwrap();
        assert!(began.elapsed() < Duration::from_secs(8), "other tables are not waited for");
        reader.execute_unprepared("SELECT COUNT(*) FROM audit_log").await.unwrap();
        began.elapsed()
    };
    let (migrated, read_after) = tokio::join!(db.migrate(), reading);
    let said = format!("{:#}", migrated.unwrap_err());
    assert!(said.contains("step 12") && said.contains("10 seconds") && said.contains("again"), "{said}");
    assert!(read_after < Duration::from_secs(20), "requests wait no longer than the step: {read_after:?}");
    let pending: Vec<i64> = db.pending().await.unwrap().iter().map(|step| step.version).collect();
    assert_eq!(pending[0], 12, "nothing of the step was done");
    holder.execute_unprepared("COMMIT").await.unwrap();
    db.migrate().await.unwrap();
    assert!(db.is_migrated().await.unwrap());
    db.close().await;
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

#[tokio::test]
async fn a_version_starts_where_a_later_one_has_only_added() {
    let app = TestApp::start().await;
    let db = Db::open(&app.core.config.database).await.unwrap();
    let applied = |version: i64, name: &str| {
        let sql = "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time) \
                   VALUES ($1, $2, TRUE, $3, 1)";
        app.execute(sql, vec![version.into(), name.into(), vec![7_u8].into()])
    };
    let doctor = async || {
        let ran = app.cli(&["doctor"]).await;
        let findings = ran.out["findings"].as_array().unwrap().clone();
        findings
            .into_iter()
            .filter(|it| it["check"] == "migrations" && it["level"] != "good")
            .collect::<Vec<_>>()
    };
    assert_eq!(db.later().await.unwrap(), []);
    assert!(doctor().await.is_empty());
    applied(9_001, "contracts of customers").await;
    db.migrate().await.unwrap();
    app.cli(&["org", "create", "--name", "N", "--owner-email", "n@example.org"]).await.expect();
    let found = doctor().await;
    assert_eq!((found.len(), &found[0]["level"]), (1, &json!("look")), "{found:#?}");
    // Where it has taken something away, nothing is begun.
    applied(9_002, &format!("{CONTRACT} old columns")).await;
    let refused = db.migrate().await.unwrap_err().to_string();
    assert!(
        refused.contains("9002 (contract old columns)") && refused.contains("start that version"),
        "{refused}"
    );
    assert_eq!(doctor().await[0]["level"], "bad");
    db.close().await;
    assert_eq!(app.stranger.get(&format!("/v1/org/{}", app.org)).await.problem(), (403, "NOT_A_MEMBER"));
}
