//! Generated and committed files are current. `UPDATE=1` writes them; reviewers read the diff.

use std::{fs, path::Path};

use async_graphql::registry::MetaType;
use muster::resolvers::Catalogue;

use crate::harness::{TestApp, files_below, is_postgres, named};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Compares a committed file with what it should be, or writes it.
#[track_caller]
pub fn committed(path: &str, current: &str) {
    let file = root().join(path);
    if std::env::var_os("UPDATE").is_some() {
        fs::write(&file, current).unwrap();
    }
    let committed = fs::read_to_string(&file).unwrap_or_default();
    let differing = committed.lines().zip(current.lines()).position(|(one, other)| one != other);
    let line = differing.unwrap_or_else(|| committed.lines().count().min(current.lines().count())) + 1;
    assert!(committed == current, "{path}:{line} is out of date: UPDATE=1 tests/run writes it");
}

#[test]
fn the_schema_is_as_committed() {
    committed("schema/schema.graphql", &muster::graphql::sdl());
}

#[tokio::test]
async fn the_openapi_document_is_as_committed_and_is_served() {
    let app = TestApp::start().await;
    let served = app.anonymous.get("/openapi.json").await.expect(200);
    let current = muster::api::rest::openapi::text(&app.service.rest.routes, &app.service.graphql.catalogue);
    assert_eq!(served, serde_json::from_str::<serde_json::Value>(&current).unwrap());
    committed("schema/openapi.json", &current);
}

#[test]
fn the_frames_of_the_gateway_are_as_committed() {
    committed("schema/gateway.json", &format!("{:#}\n", muster_protocol::schema()));
}

#[test]
fn the_payloads_of_events_are_as_committed() {
    committed("schema/events.json", &format!("{:#}\n", muster::domain::event_endpoints::schema()));
}

#[test]
fn everything_in_the_schema_is_described() {
    let catalogue = muster::graphql::catalogue().unwrap();
    let built_in = ["Boolean", "Float", "ID", "Int", "String"];
    let mut bare = Vec::new();
    let mut look = |place: String, text: Option<&String>| {
        if text.is_none_or(|text| text.trim().is_empty()) {
            bare.push(place);
        }
    };
    for ty in reachable(&catalogue).into_iter().filter(|ty| !built_in.contains(&ty.name())) {
        let name = ty.name();
        match ty {
            MetaType::Scalar { description, .. } => look(name.to_owned(), description.as_ref()),
            MetaType::Object { description, fields, .. } => {
                look(name.to_owned(), description.as_ref());
                for field in fields.values() {
                    look(format!("{name}.{}", field.name), field.description.as_ref());
                }
            }
            MetaType::InputObject { description, input_fields, .. } => {
                look(name.to_owned(), description.as_ref());
                for field in input_fields.values() {
                    look(format!("{name}.{}", field.name), field.description.as_ref());
                }
            }
            MetaType::Enum { description, enum_values, .. } => {
                look(name.to_owned(), description.as_ref());
                for value in enum_values.values() {
                    look(format!("{name}.{}", value.name), value.description.as_ref());
                }
            }
            MetaType::Interface { description, .. } | MetaType::Union { description, .. } => {
                look(name.to_owned(), description.as_ref());
            }
        }
    }
    assert!(bare.is_empty(), "without a description: {bare:#?}");
}

/// The types reachable from the roots. The registry also has the types that the roots were merged from.
fn reachable(catalogue: &Catalogue) -> Vec<&MetaType> {
    let mut names = vec!["Query", "Mutation", "Subscription"];
    let mut next = 0;
    while let Some(name) = names.get(next) {
        next += 1;
        let refers: Vec<&str> = match &catalogue.registry.types[*name] {
            MetaType::Object { fields, .. } => fields
                .values()
                .filter(|field| !field.name.starts_with("__"))
                .flat_map(|field| field.args.values().map(|arg| named(&arg.ty)).chain([named(&field.ty)]))
                .collect(),
            MetaType::InputObject { input_fields, .. } => {
                input_fields.values().map(|field| named(&field.ty)).collect()
            }
            _ => Vec::new(),
        };
        let new: Vec<&str> = refers.into_iter().filter(|name| !names.contains(name)).collect();
        names.extend(new);
    }
    names.sort_unstable();
    names.dedup();
    names.into_iter().map(|name| &catalogue.registry.types[name]).collect()
}

#[tokio::test]
async fn the_tables_are_as_committed() {
    let app = TestApp::start().await;
    let (file, dump) = if is_postgres() {
        ("postgres", postgres_dump(&app).await)
    } else {
        ("sqlite", sqlite_dump(&app).await)
    };
    committed(&format!("migrations/schema.{file}.sql"), &dump);
}

async fn sqlite_dump(app: &TestApp) -> String {
    let sql = "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%' \
               AND name NOT LIKE '_sqlx%' AND name NOT LIKE 'messages_fts_%' \
               ORDER BY tbl_name, CASE type WHEN 'table' THEN 0 ELSE 1 END, name";
    let lines: Vec<String> = app.column(sql).await;
    format!("-- Generated from the migrations, for reading and comparing.\n\n{};\n", lines.join(";\n\n"))
}

async fn postgres_dump(app: &TestApp) -> String {
    let tables: Vec<String> = app
        .column(
            "SELECT c.oid::regclass::text FROM pg_class c WHERE c.relnamespace = 'public'::regnamespace \
             AND c.relkind IN ('r', 'p') AND c.relname NOT LIKE '\\_sqlx%' ORDER BY c.relname COLLATE \"C\"",
        )
        .await;
    let mut dump = String::from("-- Generated from the migrations, for reading and comparing.\n");
    for table in tables {
        let columns = format!(
            "SELECT '    ' || a.attname || ' ' || format_type(a.atttypid, a.atttypmod) \
             || COALESCE((SELECT ' COLLATE \"' || l.collname || '\"' FROM pg_collation l \
                WHERE l.oid = a.attcollation AND l.collname <> 'default'), '') \
             || CASE WHEN a.attnotnull THEN ' NOT NULL' ELSE '' END \
             || CASE a.attidentity WHEN 'd' THEN ' GENERATED BY DEFAULT AS IDENTITY' WHEN 'a' THEN \
                ' GENERATED ALWAYS AS IDENTITY' ELSE '' END \
             || CASE WHEN d.adbin IS NULL THEN '' WHEN a.attgenerated = 's' \
                THEN ' GENERATED ALWAYS AS (' || pg_get_expr(d.adbin, d.adrelid) || ') STORED' \
                ELSE ' DEFAULT ' || pg_get_expr(d.adbin, d.adrelid) END \
             FROM pg_attribute a LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum \
             WHERE a.attrelid = '{table}'::regclass AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum"
        );
        let constraints = format!(
            "SELECT '    CONSTRAINT ' || conname || ' ' || pg_get_constraintdef(oid) FROM pg_constraint \
             WHERE conrelid = '{table}'::regclass ORDER BY contype, conname COLLATE \"C\""
        );
        let mut parts: Vec<String> = app.column(&columns).await;
        parts.extend(app.column::<String>(&constraints).await);
        dump.push_str(&format!("\nCREATE TABLE {table} (\n{}\n);\n", parts.join(",\n")));
        let indexes = format!(
            "SELECT pg_get_indexdef(indexrelid) FROM pg_index i WHERE indrelid = '{table}'::regclass AND NOT \
             EXISTS (SELECT 1 FROM pg_constraint c WHERE c.conindid = i.indexrelid AND c.contype IN ('p', 'u')) \
             ORDER BY pg_get_indexdef(indexrelid) COLLATE \"C\""
        );
        let triggers = format!(
            "SELECT pg_get_triggerdef(oid) FROM pg_trigger WHERE tgrelid = '{table}'::regclass \
             AND NOT tgisinternal ORDER BY tgname"
        );
        for sql in [indexes, triggers] {
            for line in app.column::<String>(&sql).await {
                dump.push_str(&format!("{line};\n"));
            }
        }
    }
    let functions = "SELECT pg_get_functiondef(p.oid) FROM pg_proc p WHERE p.pronamespace = 'public'::regnamespace \
                     ORDER BY p.proname";
    for function in app.column::<String>(functions).await {
        dump.push_str(&format!("\n{};\n", function.trim_end()));
    }
    dump
}

#[test]
fn every_snapshot_is_in_use() {
    let files: Vec<_> =
        ["src", "tests"].iter().flat_map(|folder| files_below(&root().join(folder))).collect();
    let snapshots = files.iter().filter(|file| file.extension().is_some_and(|extension| extension == "snap"));
    for snapshot in snapshots {
        let text = fs::read_to_string(snapshot).unwrap();
        let source =
            text.lines().find_map(|line| line.strip_prefix("source: ")).expect("a source").trim_matches('"');
        let code = fs::read_to_string(root().join(source)).unwrap_or_default();
        let stem = snapshot.file_stem().unwrap().to_str().unwrap();
        let name = stem.rsplit("__").next().unwrap();
        let name = name.trim_end_matches(|c: char| c.is_ascii_digit()).trim_end_matches('-');
        assert!(
            code.contains(&format!("fn {name}")) || code.contains(&format!("\"{name}\"")),
            "{}: nothing in {source} produces this snapshot",
            snapshot.display()
        );
    }
    let pending = files.iter().find(|file| file.to_string_lossy().ends_with(".snap.new"));
    assert!(pending.is_none(), "{pending:?} waits to be accepted: UPDATE=1 tests/run");
}
