//! Every setting that is accepted has an effect, or docs/quirks.md and the schema say that it has none yet.
//!
//! A setting is a column of an organization or an agent that an update input sets. It counts as read if
//! something other than its own record and edit names it: a statement, or code of its slice. The lists in
//! docs/quirks.md must match what is found, so they shrink as hosts and channels arrive.

use std::{collections::BTreeSet, fs, path::PathBuf};

use crate::harness::files_below;

/// The settings of a table: who sets and shows them, and which only the operator sets.
struct Table {
    table: &'static str,
    input: &'static str,
    /// The files of the record, its edit and its history, which don't count as reading.
    own: &'static [&'static str],
    slice: &'static str,
    operators: &'static [&'static str],
}

const TABLES: [Table; 2] = [
    Table {
        table: "organizations",
        input: "UpdateOrganizationInput",
        own: &["check.rs", "edit.rs", "entity.rs", "graphql.rs"],
        slice: "orgs",
        operators: &["trial_ends_at", "grace_until", "grace_from_plan"],
    },
    Table {
        table: "agents",
        input: "UpdateAgentInput",
        own: &["check.rs", "edit.rs", "entity.rs", "graphql.rs", "input.rs", "record.rs", "revisions.rs"],
        slice: "agents",
        operators: &[],
    },
];

const NOT_YET: &str = "Not applied yet.";

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn snake(name: &str) -> String {
    name.chars().fold(String::new(), |mut out, c| {
        if c.is_ascii_uppercase() {
            out.push('_');
        }
        out.push(c.to_ascii_lowercase());
        out
    })
}

fn pascal(column: &str) -> String {
    let word = |word: &str| word[..1].to_ascii_uppercase() + &word[1..];
    column.split('_').map(word).collect()
}

fn has_word(text: &str, word: &str) -> bool {
    let part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.match_indices(word)
        .any(|(at, _)| !text[..at].ends_with(part) && !text[at + word.len()..].starts_with(part))
}

/// Whether a statement names the column, as the table's: `o.timezone` is not that of `agents a`.
fn selects(sql: &str, table: &str, column: &str) -> bool {
    let names = |word: &str| {
        let Some((alias, column_of_alias)) = word.rsplit_once('.') else { return word == column };
        column_of_alias == column && (alias == table || sql.contains(&format!("{table} {alias}")))
    };
    let part = |c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '.');
    has_word(sql, table) && sql.split(part).any(names)
}

/// The fields of a schema type, with their descriptions.
fn fields(schema: &str, kind: &str) -> Vec<(String, String)> {
    let start = schema.find(&format!("\n{kind} {{\n")).unwrap_or_else(|| panic!("{kind}"));
    let body = &schema[start + 1..];
    let body = &body[..body.find("\n}").unwrap()];
    let mut fields = Vec::new();
    let mut about = String::new();
    let mut in_text = false;
    for line in body.lines().skip(1).map(str::trim) {
        if line == "\"\"\"" {
            in_text = !in_text;
            if in_text {
                about.clear();
            }
        } else if in_text {
            about.push_str(line);
        } else if let Some((name, _)) = line.split_once([':', '(']) {
            fields.push((snake(name), about.clone()));
        }
    }
    fields
}

/// A source file without its comments, and the texts in its string literals.
struct Source {
    path: PathBuf,
    code: String,
    statements: Vec<String>,
}

fn sources() -> Vec<Source> {
    let mut all = files_below(&root().join("src"));
    all.retain(|path| path.extension().is_some_and(|end| end == "rs"));
    all.retain(|path| !path.starts_with(root().join("src/seed")));
    let read = |path: PathBuf| {
        let text = fs::read_to_string(&path).unwrap();
        let code: Vec<&str> = text.lines().map(|line| line.split("//").next().unwrap()).collect();
        let code = code.join("\n");
        // Quotes inside a statement are rare enough to ignore.
        let statements = code.split('"').skip(1).step_by(2).map(str::to_owned).collect();
        Source { path, code, statements }
    };
    all.into_iter().map(read).collect()
}

/// Whether a source other than the record and its edit names the column.
fn is_read(sources: &[Source], table: &Table, column: &str) -> bool {
    let slice = root().join("src/slices").join(table.slice);
    sources.iter().any(|source| {
        let is_own = source.path.parent() == Some(&slice)
            && table.own.iter().any(|own| source.path.file_name().unwrap() == *own);
        if is_own || !source.code.contains(column) && !source.code.contains(&pascal(column)) {
            return false;
        }
        let in_sql = source.statements.iter().any(|sql| selects(sql, table.table, column));
        let code = source.code.replace(&format!("new.{column}"), ""); // creating isn't reading
        let in_slice = source.path.starts_with(&slice)
            && (has_word(&code, &format!("Column::{}", pascal(column)))
                || code.contains(&format!(".{column}")));
        in_sql || in_slice
    })
}

/// The settings listed in docs/quirks.md: `organizations.grace_until`.
fn listed(name: &str) -> BTreeSet<String> {
    let text = fs::read_to_string(root().join("docs/quirks.md")).unwrap();
    let begin = format!("<!-- {name} -->");
    let start = text.find(&begin).unwrap_or_else(|| panic!("{begin}")) + begin.len();
    let list = &text[start..start + text[start..].find("<!-- end -->").unwrap()];
    let mut found = BTreeSet::new();
    for line in list.lines().filter(|line| !line.trim().is_empty()) {
        let mut names = line.split('`').skip(1).step_by(2);
        let table = names.next().unwrap();
        found.extend(names.map(|column| format!("{table}.{column}")));
    }
    found
}

#[test]
fn unused_settings_are_listed_and_marked() {
    let schema = fs::read_to_string(root().join("schema/schema.graphql")).unwrap();
    let (people, not_yet) = (listed("settings for people"), listed("settings not in force"));
    let sources = sources();
    let mut unread = BTreeSet::new();
    let mut silent = Vec::new();
    for table in &TABLES {
        let mut settings = fields(&schema, &format!("input {}", table.input));
        let record = if table.table == "agents" { "type Agent" } else { "type Organization" };
        let shown = fields(&schema, record);
        settings.extend(shown.into_iter().filter(|(name, _)| table.operators.contains(&name.as_str())));
        assert!(settings.len() > 20, "{}", settings.len());
        for (name, about) in settings {
            let setting = format!("{}.{name}", table.table);
            let is_unread =
                !is_read(&sources, table, &name) && !is_read(&sources, table, &format!("{name}_sealed"));
            if is_unread {
                unread.insert(setting.clone());
            }
            if about.contains(NOT_YET) != not_yet.contains(&setting) {
                silent.push(setting);
            }
        }
    }
    let known: BTreeSet<String> = people.union(&not_yet).cloned().collect();
    let missing: Vec<_> = unread.difference(&known).collect();
    let stale: Vec<_> = known.difference(&unread).collect();
    assert!(people.is_disjoint(&not_yet));
    assert!(
        missing.is_empty(),
        "nothing reads these: make them work, or list them in docs/quirks.md: {missing:#?}"
    );
    assert!(stale.is_empty(), "these are read now, so remove them from docs/quirks.md: {stale:#?}");
    assert!(silent.is_empty(), "the schema must say `{NOT_YET}` about exactly the unused ones: {silent:#?}");
}
