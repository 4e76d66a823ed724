//! Every setting that is accepted has an effect, or docs/quirks.md and the schema say that it has none yet.
//!
//! A setting is a column of an organization, an agent or a channel that an update input sets, or a limit of a plan. It counts
//! as read if something other than its own record and edit names it: a statement, or code of its feature. The lists in
//! docs/quirks.md must match what is found, so they shrink as things arrive.

use std::{collections::BTreeSet, fs, path::PathBuf};

use muster::domain::orgs::Limit;

use crate::{harness::files_below, laws::sql};

/// The settings of a table: who sets and shows them, and which only the operator sets.
struct Table {
    table: &'static str,
    record: &'static str,
    input: &'static str,
    /// The files of its rows, its edit and its history, which don't count as reading, as its objects in the schema don't.
    own: &'static [&'static str],
    /// The feature, and those that use its rows as well.
    features: &'static [&'static str],
    operators: &'static [&'static str],
    /// Where a setting's column has another name, what of the name is another.
    columns: &'static [(&'static str, &'static str)],
}

const TABLES: [Table; 3] = [
    Table {
        table: "organizations",
        record: "Organization",
        input: "UpdateOrganizationInput",
        own: &["check.rs", "edit.rs", "entity.rs"],
        features: &["orgs"],
        operators: &["trial_ends_at", "grace_until", "grace_from_plan"],
        columns: &[],
    },
    Table {
        table: "agents",
        record: "Agent",
        input: "UpdateAgentInput",
        own: &["check.rs", "edit.rs", "entity.rs", "input.rs", "revisions.rs"],
        features: &["agents", "launch"],
        operators: &[],
        columns: &[],
    },
    Table {
        table: "channels",
        record: "Channel",
        input: "UpdateChannelInput",
        own: &["check.rs", "create.rs", "edit.rs", "entity.rs", "input.rs", "merge.rs", "recipients.rs"],
        features: &["channels", "ingest"],
        operators: &[],
        columns: &[
            ("destination", "target"),
            ("webhook_echo_filter_", "webhook_"),
            ("calendar_calendar_", "calendar_"),
        ],
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

/// A field of the schema.
struct Field {
    name: String,
    kind: String,
    about: String,
}

/// The settings of an input, by the names of their columns: those of the objects in it begin with the object's name.
fn settings(schema: &str, table: &Table) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut inputs = vec![(table.input.to_owned(), String::new())];
    while let Some((input, prefix)) = inputs.pop() {
        for Field { name, kind, about } in fields(schema, &format!("input {input}")) {
            let name = format!("{prefix}{name}");
            if schema.contains(&format!("\ninput {kind} {{\n")) {
                inputs.push((kind, format!("{name}_")));
            } else {
                let renamed = |name: String, (from, to): &(&str, &str)| name.replace(from, to);
                found.push((table.columns.iter().fold(name, renamed), about));
            }
        }
    }
    let known = columns(table.table);
    for (name, _) in &found {
        let is_column = known.contains(name) || known.contains(&format!("{name}_sealed"));
        assert!(is_column, "{} has no column for the setting {name}", table.table);
    }
    found
}

/// The columns of a table.
fn columns(table: &str) -> BTreeSet<String> {
    let dump = fs::read_to_string(root().join("migrations/schema.sqlite.sql")).unwrap();
    let begin = format!("CREATE TABLE {table} (\n");
    let start = dump.find(&begin).unwrap_or_else(|| panic!("{begin}")) + begin.len();
    let names = dump[start..].lines().take_while(|line| !line.starts_with(')'));
    names.filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect()
}

/// The fields of a schema type, with their descriptions.
fn fields(schema: &str, kind: &str) -> Vec<Field> {
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
        } else if let Some((name, rest)) = line.split_once([':', '(']) {
            let kind = rest.split_whitespace().next().unwrap_or_default().trim_end_matches('!');
            fields.push(Field { name: snake(name), kind: kind.to_owned(), about: about.clone() });
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
    // Neither invented data nor the deletion of an organization uses its settings.
    all.retain(|path| {
        ["src/seed", "src/domain/rights"].iter().all(|folder| !path.starts_with(root().join(folder)))
    });
    let read = |path: PathBuf| {
        let text = fs::read_to_string(&path).unwrap();
        let code: Vec<&str> = text.lines().map(|line| line.split("//").next().unwrap()).collect();
        let code = code.join("\n");
        // Quotes inside a statement are rare enough to ignore.
        let mut statements: Vec<String> = code.split('"').skip(1).step_by(2).map(str::to_owned).collect();
        statements.extend(sql::statements(&code, sql::MACROS));
        Source { path, code, statements }
    };
    all.into_iter().map(read).collect()
}

/// Whether a source other than the record and its edit names the column.
fn is_read(sources: &[Source], table: &Table, column: &str) -> bool {
    let features: Vec<PathBuf> =
        table.features.iter().map(|feature| root().join("src/domain").join(feature)).collect();
    let objects = root().join("src/graphql").join(table.features[0]);
    sources.iter().any(|source| {
        let is_own = source.path.parent() == Some(&features[0])
            && table.own.iter().any(|own| source.path.file_name().unwrap() == *own)
            || source.path.starts_with(&objects)
            || source.path.with_extension("") == objects;
        if is_own || !source.code.contains(column) && !source.code.contains(&pascal(column)) {
            return false;
        }
        let in_sql = source.statements.iter().any(|sql| selects(sql, table.table, column));
        // Creating isn't reading, nor is clearing.
        let code = source.code.replace(&format!("new.{column}"), "");
        let code = code.replace(&format!("row.{column} = Set"), "");
        let in_feature = features.iter().any(|feature| source.path.starts_with(feature))
            && (has_word(&code, &format!("Column::{}", pascal(column)))
                || code.contains(&format!(".{column}")));
        in_sql || in_feature
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
        let mut settings = settings(&schema, table);
        let shown = fields(&schema, &format!("type {}", table.record));
        let shown = shown.into_iter().filter(|field| table.operators.contains(&field.name.as_str()));
        settings.extend(shown.map(|field| (field.name, field.about)));
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

#[test]
fn limits_without_effect_are_listed_and_marked() {
    let (not_yet, sources) = (listed("limits not in force"), sources());
    let (mut unread, mut silent) = (BTreeSet::new(), Vec::new());
    for limit in Limit::ALL {
        let (name, variant) = (format!("limits.{}", limit.name()), format!("Limit::{limit:?}"));
        if !sources.iter().any(|source| has_word(&source.code, &variant)) {
            unread.insert(name.clone());
        }
        if limit.about().contains(NOT_YET) != not_yet.contains(&name) {
            silent.push(name);
        }
    }
    assert_eq!(unread, not_yet, "docs/quirks.md must list exactly the limits that nothing applies");
    assert!(silent.is_empty(), "the schema must say `{NOT_YET}` about exactly these: {silent:#?}");
}
