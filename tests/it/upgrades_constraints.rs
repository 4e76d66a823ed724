//! What a schema forbids: a rule that a step adds to what a version before writes, which knows nothing of it.

use std::collections::BTreeSet;

use muster::core::store::Db;
use sea_orm::{ConnectionTrait, DatabaseConnection};

use crate::{
    harness::{config, connect, empty_database, is_postgres},
    upgrades::{Tables, lines, tables},
};

/// A CHECK, a foreign key or what is unique: the table, and what it says without its name.
pub type Rules = BTreeSet<(String, String)>;

/// The rules that the database has now. That a column may not be null stands with the columns.
pub async fn constraints(database: &DatabaseConnection) -> Rules {
    let found = if is_postgres() {
        let sql = "SELECT conrelid::regclass::text || ' ' || replace(pg_get_constraintdef(oid), ' NOT VALID', '') \
                   FROM pg_constraint WHERE contype IN ('c', 'f', 'u', 'p', 'x') AND connamespace = 'public'::regnamespace \
                   UNION SELECT i.indrelid::regclass::text || ' UNIQUE ' || \
                   regexp_replace(pg_get_indexdef(i.indexrelid), '^.* USING ', '') FROM pg_index i \
                   JOIN pg_class c ON c.oid = i.indrelid AND c.relnamespace = 'public'::regnamespace WHERE i.indisunique \
                   AND NOT EXISTS (SELECT 1 FROM pg_constraint WHERE conindid = i.indexrelid AND contype IN ('u', 'p', 'x'))";
        lines(database, sql).await
    } else {
        let sql = "SELECT m.name || ' FOREIGN KEY (' || group_concat(f.\"from\", ', ') || ') REFERENCES ' || f.\"table\" \
                   FROM sqlite_schema m, pragma_foreign_key_list(m.name) f WHERE m.type = 'table' GROUP BY m.name, f.id \
                   UNION SELECT m.name || ' UNIQUE ' || COALESCE( \
                   (SELECT substr(s.sql, instr(s.sql, '(')) FROM sqlite_schema s WHERE s.name = l.name AND s.sql IS NOT NULL), \
                   (SELECT '(' || group_concat(c.name, ', ') || ')' FROM pragma_index_info(l.name) c)) \
                   FROM sqlite_schema m, pragma_index_list(m.name) l WHERE m.type = 'table' AND l.\"unique\" = 1";
        let mut found = lines(database, sql).await;
        for table in
            lines(database, "SELECT name || ' ' || sql FROM sqlite_schema WHERE type = 'table'").await
        {
            let (name, sql) = table.split_once(' ').unwrap();
            found.extend(checks(sql).into_iter().map(|check| format!("{name} CHECK {check}")));
        }
        found
    };
    let pair = |line: &String| line.split_once(' ').map(|(table, rule)| (table.to_owned(), one_line(rule)));
    found.iter().filter_map(pair).collect()
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// What stands in the parentheses after each CHECK of a table, with them.
fn checks(sql: &str) -> Vec<&str> {
    let begins = sql.match_indices("CHECK (").map(|(at, found)| &sql[at + found.len() - 1..]);
    begins
        .map(|text| {
            let (mut depth, mut quoted) = (0, false);
            let end = text.find(|c: char| {
                quoted ^= c == '\'';
                depth += i32::from(c == '(' && !quoted) - i32::from(c == ')' && !quoted);
                depth == 0
            });
            &text[..=end.expect("parentheses end")]
        })
        .collect()
}

/// The texts that a rule lists, and the rule without them.
fn parts(rule: &str) -> (BTreeSet<&str>, String) {
    let listed = rule.split('\'').skip(1).step_by(2).collect();
    let rest: String = rule.split('\'').step_by(2).collect();
    (listed, rest.replace([',', ' '], "").replace("::text", ""))
}

/// The columns of its own table that a rule is about.
fn columns<'a>(
    rule: &str,
    of: &'a std::collections::BTreeMap<String, crate::upgrades::Column>,
) -> Vec<&'a str> {
    let own = if rule.starts_with("FOREIGN KEY") { rule.split(')').next().unwrap_or(rule) } else { rule };
    let without_texts: String = own.split('\'').step_by(2).collect();
    let words: BTreeSet<&str> =
        without_texts.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').collect();
    of.keys().map(String::as_str).filter(|name| words.contains(name)).collect()
}

/// What a version that knows the tables and rules `before` may write and those of `now` may refuse: a rule that its own
/// columns have got. New columns are its own where it leaves them null and the rule lets null pass.
pub fn narrowed(before: (&Tables, &Rules), now: (&Tables, &Rules)) -> Vec<String> {
    let ((known, rules), (tables, rules_now)) = (before, now);
    let mut found = Vec::new();
    for (table, rule) in rules_now.difference(rules) {
        let (Some(old), Some(columns_now)) = (known.get(table), tables.get(table)) else { continue };
        let about = columns(rule, columns_now);
        let (written, new): (Vec<&str>, Vec<&str>) =
            about.into_iter().partition(|name| old.contains_key(*name));
        let passes_null = !rule.starts_with("CHECK") && !rule.contains("NULLS NOT DISTINCT");
        let does_not_apply = passes_null && new.iter().any(|name| columns_now[*name].null_if_absent);
        if !(written.is_empty() || does_not_apply || is_widened(table, rule, rules)) {
            found.push(format!("{table}: {rule}"));
        }
    }
    for (table, columns) in known {
        for (name, was) in columns {
            let is = tables.get(table).and_then(|columns| columns.get(name));
            if was.nullable && is.is_some_and(|is| !is.nullable) {
                found.push(format!("{table}: {name} NOT NULL"));
            }
        }
    }
    found
}

/// Whether the same rule listed fewer values before.
fn is_widened(table: &str, rule: &str, rules: &Rules) -> bool {
    let (listed, rest) = parts(rule);
    rules.iter().any(|(owner, old)| {
        let (fewer, same) = parts(old);
        owner == table && same == rest && fewer.is_subset(&listed)
    })
}

const TABLE: &str =
    "id BIGINT PRIMARY KEY, boss BIGINT, name TEXT, kind TEXT NOT NULL CHECK (kind IN ('A', 'B'))";

/// What of a step that makes the table `people` of [`TABLE`] into this one is found.
async fn found(database: &DatabaseConnection, now: &str, index: &str) -> Vec<String> {
    let run = async |sql: &str| database.execute_unprepared(sql).await.unwrap();
    run("DROP TABLE IF EXISTS people").await;
    run(&format!("CREATE TABLE people ({TABLE})")).await;
    let before = (tables(database).await, constraints(database).await);
    // As SQLite has to: the table is built anew.
    run("DROP TABLE people").await;
    run(&format!("CREATE TABLE people ({now})")).await;
    run(index).await;
    let after = (tables(database).await, constraints(database).await);
    narrowed((&before.0, &before.1), (&after.0, &after.1))
}

#[tokio::test]
async fn a_new_rule_for_old_columns_is_found_and_one_for_new_columns_is_none() {
    let place = tempfile::tempdir().unwrap();
    let url = empty_database(place.path()).await;
    Db::open(&config(place.path(), &url).database).await.unwrap().close().await;
    let database = connect(&url).await;
    let nothing = "SELECT 1";
    let more = |column: &str| format!("{TABLE}, {column}");
    for (now, index, what) in [
        (more("FOREIGN KEY (boss) REFERENCES people (id)"), nothing, "people: FOREIGN KEY (boss)"),
        (more("CHECK (boss > 0)"), nothing, "people: CHECK"),
        (more("UNIQUE (boss, name)"), nothing, "people: UNIQUE (boss, name)"),
        (
            TABLE.to_owned(),
            "CREATE UNIQUE INDEX unique_names ON people (name) WHERE boss IS NULL",
            "people: UNIQUE",
        ),
        (TABLE.replace("name TEXT", "name TEXT NOT NULL DEFAULT ''"), nothing, "people: name NOT NULL"),
        (TABLE.replace("'A', ", ""), nothing, "people: CHECK"),
        // Left out, the new column is the same for all.
        (more("more TEXT NOT NULL DEFAULT '', UNIQUE (name, more)"), nothing, "people: UNIQUE (name, more)"),
        // The version before gives the name, and never the other.
        (more("more TEXT, CHECK (name IS NULL OR more IS NOT NULL)"), nothing, "people: CHECK"),
    ] {
        let found = found(&database, &now, index).await;
        assert!(found.len() == 1 && found[0].starts_with(what), "{now}; {index}: {found:?}");
    }
    for (now, index) in [
        (TABLE.to_owned(), "CREATE INDEX names ON people (name)"),
        (TABLE.replace("'A'", "'A', 'C'"), nothing),
        (more("more BIGINT CHECK (more > 0), FOREIGN KEY (more) REFERENCES people (id)"), nothing),
        (more("more TEXT"), "CREATE UNIQUE INDEX unique_names ON people (name, more)"),
    ] {
        assert_eq!(found(&database, &now, index).await, Vec::<String>::new(), "{now}; {index}");
    }
}
