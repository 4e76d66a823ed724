//! The laws of SQL as text: features have it in `queries.rs` files only, it goes through the macros of
//! `core::store::sql`, and what is about one organization asks for the organization of each table.
//!
//! Works on the source text, beside what the macros of `core::store::sql` check when they are compiled.

use std::collections::{BTreeMap, BTreeSet};

use crate::{harness::sources, laws::judge};

/// Files whose texts are made while they run, of a request's selection or of a list of columns. The
/// list only gets shorter.
const BESIDE_THE_MACROS: &[&str] = &["core/keys/present.rs", "core/keys/rewrap.rs", "read/fetch.rs"];

#[test]
fn features_have_their_sql_in_queries() {
    let found =
        sources("src/domain").into_iter().filter(|(file, text)| !is_of_queries(file) && has_sql(text));
    let found: Vec<String> = found.map(|(file, _)| file).collect();
    assert!(found.is_empty(), "move the SQL of these files to queries.rs: {found:#?}");
}

#[test]
fn statements_go_through_the_macros() {
    const PAST: &[&str] = &[
        "Statement::from_",
        "query_all_raw(",
        "query_one_raw(",
        "execute_raw(",
        "execute_unprepared(",
        "db.all(",
        "db.one(",
        "db.each(",
        "db.execute(",
    ];
    let passes = |text: &str| {
        let text: String = text.split_whitespace().collect();
        PAST.iter().any(|call| text.contains(call))
    };
    let found = sources("src").into_iter();
    let found = found.filter(|(file, text)| !file.starts_with("core/store/") && passes(text));
    let found = found.map(|(file, _)| file).collect();
    judge(&found, BESIDE_THE_MACROS.iter().copied(), "these run SQL past core::store::sql");
}

#[test]
fn statements_ask_for_the_organization_of_each_table() {
    let tables = tenant_tables();
    assert!(tables.contains("agents") && !tables.contains("users"), "{tables:?}");
    let mut count = 0;
    for (file, text) in sources("src/domain").into_iter().filter(|(file, _)| is_of_queries(file)) {
        for statement in statements(&text, &["sql!("]) {
            count += 1;
            let open = unasked(&statement, &tables);
            assert!(open.is_empty(), "{file}: {open:?} without organization_id in\n{statement}");
        }
    }
    assert!(count > 50, "only {count} statements were found");
}

#[test]
fn a_table_without_its_organization_is_found() {
    let tables = BTreeSet::from(["agents".to_owned(), "turns".to_owned()]);
    let asked = |text| unasked(text, &tables);
    assert!(asked("SELECT 1 FROM agents WHERE organization_id = $org AND id = $2").is_empty());
    let joined = "SELECT 1 FROM agents a JOIN turns t ON t.agent_id = a.id WHERE a.organization_id = $org";
    assert_eq!(asked(joined), ["turns t"]);
    assert_eq!(asked("UPDATE turns SET state = $2 WHERE id = $org"), ["turns"]);
    let text = r#"sql!("SELECT 1 FROM turns \
        WHERE ", MINE); const MINE: &str = "organization_id = $org"; every_org_sql!("SELECT 2")"#;
    assert_eq!(statements(text, &["sql!("]), ["SELECT 1 FROM turns WHERE organization_id = $org"]);
}

fn is_of_queries(file: &str) -> bool {
    file.ends_with("queries.rs")
}

fn has_sql(text: &str) -> bool {
    let is_sql = |literal: String| {
        let words: Vec<&str> = literal.split(|c: char| !c.is_ascii_alphanumeric()).collect();
        let has = |word: &str| words.contains(&word);
        (has("SELECT") && has("FROM"))
            || (has("UPDATE") && has("SET"))
            || (has("INSERT") && has("INTO"))
            || (has("DELETE") && has("FROM"))
    };
    literals(text).into_iter().map(|(_, literal)| literal).any(is_sql)
}

/// The literals of a source, with where each begins.
fn literals(source: &str) -> Vec<(usize, String)> {
    let (mut found, mut at) = (Vec::new(), 0);
    while let Some(next) = source[at..].find('"') {
        let begin = at + next;
        let is_character = source[..begin].ends_with('\'') && source[begin + 1..].starts_with('\'');
        if is_character {
            at = begin + 1;
            continue;
        }
        let (mut literal, mut end) = (String::new(), begin + 1);
        let mut rest = source[end..].chars();
        while let Some(letter) = rest.next() {
            end += letter.len_utf8();
            match letter {
                '"' => break,
                '\\' => {
                    let Some(escaped) = rest.next() else { break };
                    end += escaped.len_utf8();
                    if escaped == '\n' {
                        let blank: usize = rest.as_str().len() - rest.as_str().trim_start().len();
                        end += blank;
                        rest = source[end..].chars();
                    } else {
                        literal.push(escaped);
                    }
                }
                letter => literal.push(letter),
            }
        }
        found.push((begin, literal));
        at = end;
    }
    found
}

/// The macros that make statements of texts.
pub const MACROS: &[&str] = &["sql!(", "installation_sql!(", "every_org_sql!("];

/// The texts in these macros, put together.
pub fn statements(source: &str, macros: &[&str]) -> Vec<String> {
    let literals: BTreeMap<usize, String> = literals(source).into_iter().collect();
    let constants: BTreeMap<String, String> = constants(source, &literals);
    let calls = macros.iter().flat_map(|name| source.match_indices(name));
    let calls = calls.filter(|(at, _)| !source[..*at].ends_with('_'));
    calls.map(|(at, call)| together(source, at + call.len(), &literals, &constants)).collect()
}

fn constants(source: &str, literals: &BTreeMap<usize, String>) -> BTreeMap<String, String> {
    let named = source.match_indices("const ").filter_map(|(at, _)| {
        let (name, _) = source[at + 6..].split_once(": &str")?;
        let (_, literal) = literals.range(at..).next()?;
        name.chars()
            .all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
            .then(|| (name.to_owned(), literal.clone()))
    });
    named.collect()
}

/// The parts of a call that begins here.
fn together(
    source: &str,
    begin: usize,
    literals: &BTreeMap<usize, String>,
    constants: &BTreeMap<String, String>,
) -> String {
    let (mut text, mut at) = (String::new(), begin);
    while at < source.len() && !source[at..].starts_with(')') {
        if let Some(literal) = literals.get(&at) {
            text.push_str(literal);
            at = literals
                .range(at + 1..)
                .next()
                .map_or(source.len(), |(next, _)| *next)
                .min(end_of_literal(source, at));
            continue;
        }
        let name: String =
            source[at..].chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
        if let Some(constant) = constants.get(&name) {
            text.push_str(constant);
        }
        at += name.len().max(source[at..].chars().next().map_or(1, char::len_utf8));
    }
    text
}

fn end_of_literal(source: &str, begin: usize) -> usize {
    let (mut at, mut is_escaped) = (begin + 1, false);
    for letter in source[at..].chars() {
        at += letter.len_utf8();
        match letter {
            '"' if !is_escaped => break,
            '\\' => is_escaped = !is_escaped,
            _ => is_escaped = false,
        }
    }
    at
}

/// The tables of a statement whose organization it does not ask for, with their aliases.
fn unasked(statement: &str, tables: &BTreeSet<String>) -> Vec<String> {
    const NO_ALIAS: &[&str] = &[
        "SET",
        "WHERE",
        "ON",
        "VALUES",
        "ORDER",
        "GROUP",
        "JOIN",
        "LEFT",
        "CROSS",
        "USING",
        "LIMIT",
        "UNION",
        "SELECT",
        "RETURNING",
        "FOR",
    ];
    let spaced = statement.replace(['(', ')', ','], " , ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut open = Vec::new();
    for (at, word) in words.iter().enumerate() {
        let is_named = at > 0 && ["FROM", "JOIN", "UPDATE", "INTO"].contains(&words[at - 1]);
        if !is_named || !tables.contains(*word) {
            continue;
        }
        let after = words.get(at + 1).copied().filter(|word| *word != "AS").or(words.get(at + 2).copied());
        let alias = after.filter(|word| word.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'));
        let asked = match alias.filter(|alias| !NO_ALIAS.contains(alias)) {
            Some(alias) if spaced.contains(&format!("{alias}.organization_id")) => continue,
            Some(alias) => format!("{word} {alias}"),
            None if words
                .iter()
                .any(|other| *other == "organization_id" || *other == format!("{word}.organization_id")) =>
            {
                continue;
            }
            None => (*word).to_owned(),
        };
        open.push(asked);
    }
    open
}

fn tenant_tables() -> BTreeSet<String> {
    let schema = include_str!("../../../migrations/schema.sqlite.sql");
    let tables = schema.split("CREATE TABLE ").skip(1).filter_map(|table| {
        let (name, rest) = table.split_once(|c: char| c.is_whitespace() || c == '(')?;
        let columns = rest.split(';').next()?;
        columns.contains("organization_id").then(|| name.trim_matches('"').to_owned())
    });
    tables.collect()
}
