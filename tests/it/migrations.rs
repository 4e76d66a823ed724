//! The steps work on an empty database, twice is once, and the tables are what the entities say.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use muster::core::store::Db;

use crate::harness::{TestApp, config, empty_database, is_postgres};

#[tokio::test]
async fn an_empty_database_is_migrated_and_migrating_again_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let url = empty_database(folder.path()).await;
    let db = Db::open(&config(folder.path(), &url).database).await.unwrap();
    db.migrate().await.unwrap();
    let sent = db.statements();
    db.migrate().await.unwrap();
    assert_eq!(db.statements(), sent + 1, "the second time asks what there is, and has nothing to do");
    db.close().await;
    let again = Db::open(&config(folder.path(), &url).database).await.unwrap();
    again.migrate().await.unwrap();
    again.ping().await.unwrap();
    again.close().await;
}

#[test]
fn both_databases_have_the_same_steps() {
    let steps = |kind: &str| -> BTreeSet<String> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations").join(kind);
        fs::read_dir(folder).unwrap().map(|step| step.unwrap().file_name().into_string().unwrap()).collect()
    };
    assert_eq!(steps("sqlite"), steps("postgres"));
}

/// Columns and whether each may be null, by table.
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

/// What the `entity.rs` files declare. They are private to their slices, so they are read as text.
fn entities() -> Tables {
    let mut tables = Tables::new();
    let slices = fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/slices")).unwrap();
    for file in slices.map(|slice| slice.unwrap().path().join("entity.rs")).filter(|file| file.exists()) {
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
