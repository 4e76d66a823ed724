//! The tables in the docs are generated: `UPDATE=1` writes them, a plain run compares. What the docs name exists.

use std::{fmt::Write, path::PathBuf};

use muster::{
    api::rest::Routes,
    base::permission::Permission,
    base::problem::Code,
    core::access::Permit,
    core::config::SETTINGS,
    domain::rights::{Deleted, Erased, Exported, RIGHTS},
};

#[test]
fn settings_are_documented() {
    let mut table = String::from("| Setting | Variable | Default |\n|---|---|---|\n");
    let defaults: toml::Table = muster::core::config::DEFAULT.parse().unwrap();
    for setting in SETTINGS {
        let default = match setting.key.split_once('.') {
            Some((section, key)) => defaults.get(section).and_then(|section| section.get(key)),
            None => defaults.get(setting.key),
        };
        let default = default.map_or_else(|| "none".to_owned(), |value| format!("`{value}`"));
        writeln!(table, "| `{}` | `{}` | {default} |", setting.key, setting.variable).unwrap();
    }
    check("docs/configuration.md", "settings", &table);
}

fn metric_row(name: &str, kind: &str, labels: &[&str], about: &str) -> String {
    let labels = labels.join("`, `");
    let labels = if labels.is_empty() { String::new() } else { format!("`{labels}`") };
    format!("| `{name}` | {kind} | {labels} | {about} |\n")
}

#[test]
fn metrics_are_documented() {
    let head = "| Metric | Kind | Labels | Description |\n|---|---|---|---|\n";
    let service = muster::core::telemetry::metrics::FAMILIES.iter();
    let service = service.map(|family| metric_row(family.name, family.kind, family.labels, family.about));
    check("docs/metrics.md", "metrics", &format!("{head}{}", service.collect::<String>()));
    let host = muster_host::FAMILIES.iter();
    let host = host.map(|family| metric_row(family.name, family.kind, family.labels, family.about));
    check("docs/metrics.md", "host-metrics", &format!("{head}{}", host.collect::<String>()));
}

#[test]
fn the_resource_limits_are_documented() {
    let defaults: toml::Table = muster::core::config::DEFAULT.parse().unwrap();
    // Braces contain settings.
    let filled = |text: &str| {
        let mut filled = text.to_owned();
        for setting in SETTINGS {
            let Some((section, key)) = setting.key.split_once('.') else { continue };
            if let Some(default) = defaults.get(section).and_then(|section| section.get(key)) {
                filled = filled.replace(&format!("{{{}}}", setting.key), &format!("{default} (`{key}`)"));
            }
        }
        assert!(!filled.contains('{'), "{filled}: no such setting");
        filled
    };
    let mut table = String::from(
        "| Limit | What | An address without a credential | A caller | All together | Beyond that |\n|---|---|---|---|---|---|\n",
    );
    for entry in muster::core::resource_limits::ENTRIES {
        let (anonymous, known, together) =
            (filled(entry.anonymous), filled(entry.known), filled(entry.together));
        let (name, about, beyond) = (entry.name, entry.about, filled(entry.beyond));
        writeln!(table, "| `{name}` | {about} | {anonymous} | {known} | {together} | {beyond} |").unwrap();
    }
    check("docs/limits.md", "resource-limits", &table);
}

#[test]
fn retention_is_documented() {
    let mut table = String::from("| Table | What is kept, and for how long |\n|---|---|\n");
    for kept in muster::jobs::RETENTION {
        writeln!(table, "| `{}` | {} |", kept.table, kept.what).unwrap();
    }
    check("docs/limits.md", "kept", &table);
}

#[test]
fn what_becomes_of_each_table_is_documented() {
    let mut table = String::from(
        "| Table | An export | The organization is deleted | A person is erased |\n|---|---|---|---|\n",
    );
    for rights in RIGHTS {
        let exported = match rights.exported {
            Exported::Lines => "lines".to_owned(),
            Exported::Columns(columns) => format!("lines: {}", columns.join(", ")),
            Exported::Files { folder, .. } => format!("lines, and `files/{folder}/`"),
            Exported::Mails => "lines, and `files/mails/`".to_owned(),
            Exported::No(why) => format!("no: {why}"),
        };
        let deleted = match rights.deleted {
            Deleted::Rows => "deleted".to_owned(),
            Deleted::Log | Deleted::Last => "deleted last".to_owned(),
            Deleted::With(table) => format!("deleted with `{table}`"),
            Deleted::Kept(why) => format!("kept: {why}"),
        };
        let erased = match rights.erased {
            Erased::Names(names) => {
                let columns: Vec<String> = names.iter().map(|name| format!("`{}`", name.column)).collect();
                format!("{} replaced", columns.join(", "))
            }
            Erased::Rows(_) => "their rows are deleted".to_owned(),
            Erased::Otherwise(how) => how.to_owned(),
            Erased::Nothing => "ids stay".to_owned(),
            Erased::Kept(why) => format!("kept: {why}"),
        };
        writeln!(table, "| `{}` | {exported} | {deleted} | {erased} |", rights.table).unwrap();
    }
    check("docs/personal-data.md", "rights", &table);
}

#[test]
fn the_risk_rules_are_documented() {
    let config = muster::core::config::Config::read(None, std::collections::BTreeMap::new()).unwrap();
    let mut table = String::from(
        "| Rule | Kinds of tools | Tool | Arguments | Risk | Category |\n|---|---|---|---|---|---|\n",
    );
    let code = |text: Option<&String>| {
        text.map(|text| format!("`{}`", text.replace('|', "\\|"))).unwrap_or_default()
    };
    for rule in config.risk().unwrap().iter() {
        let (tool, arguments) = (code(rule.tool.as_ref()), code(rule.arguments.as_ref()));
        let (name, kinds, risk, category) = (&rule.name, rule.kinds.join(", "), rule.risk, &rule.category);
        writeln!(table, "| {name} | {kinds} | {tool} | {arguments} | {risk} | {category} |").unwrap();
    }
    check("docs/approvals.md", "risk", &table);
}

#[test]
fn problems_are_documented() {
    let mut table = String::from("| Status | Code | Meaning |\n|---|---|---|\n");
    for code in Code::ALL {
        writeln!(table, "| {} | `{}` | {} |", code.status().as_u16(), code.as_str(), code.about()).unwrap();
    }
    check("docs/api.md", "problems", &table);
}

#[test]
fn the_profiles_are_documented() {
    let config = muster::core::config::Config::read(None, std::collections::BTreeMap::new()).unwrap();
    let mut table = String::from(
        "| Profile | What it is | How it logs in | How it behaves | Last run with |\n|---|---|---|---|---|\n",
    );
    for entry in config.profiles().unwrap().iter() {
        let name = format!("{} (`{}`)", entry.title, entry.wiring.name);
        let run = entry.last_run.as_ref().unwrap();
        let run = format!("{}, {}", run.version, run.date);
        writeln!(table, "| {name} | {} | {} | {} | {run} |", entry.description, entry.login, entry.behaviour)
            .unwrap();
    }
    check("docs/agents.md", "profiles", &table);
}

#[test]
fn each_permission_says_what_it_is_worth() {
    let text =
        std::fs::read_to_string(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("docs/security.md")).unwrap();
    let (_, section) = text.split_once("\n## What each permission is worth\n").expect("the section is there");
    let section = section.split("\n## ").next().unwrap();
    let rows = section.lines().filter_map(|line| line.strip_prefix("| `")?.split_once("` | "));
    let rows: Vec<(&str, &str)> = rows.collect();
    let named: Vec<&str> = rows.iter().map(|(permission, _)| *permission).collect();
    assert_eq!(
        named,
        Permission::ALL.map(Permission::as_str),
        "docs/security.md: a row for each permission, in this order"
    );
    let empty = rows.iter().find(|(_, worth)| worth.trim_end_matches('|').trim().is_empty());
    assert!(empty.is_none(), "{empty:?}");
}

#[test]
fn operations_are_documented() {
    let catalogue = muster::graphql::catalogue().unwrap();
    let routes = Routes::load(&catalogue).unwrap();
    let mut table = String::from("| # | Route | Permission | Operation |\n|---|---|---|---|\n");
    for (number, (route, operation)) in routes.iter().enumerate() {
        let Permit::InOrganization { permission, .. } = operation.permit else {
            panic!("{} is outside organizations", operation.name)
        };
        let (number, name) = (number + 1, &operation.name);
        writeln!(table, "| {number} | `{} {}` | `{permission}` | {name} |", route.method, route.path)
            .unwrap();
    }
    check("docs/api.md", "operations", &table);
}

#[test]
fn code_blocks_are_closed_and_named_files_exist() {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let folders = ["", "docs", "docs/decisions", "policies", "migrations", "tests"];
    let mut wrong = Vec::new();
    for file in folders.iter().flat_map(|folder| std::fs::read_dir(root.join(folder)).unwrap()) {
        let file = file.unwrap().path();
        if file.extension().is_none_or(|extension| extension != "md") {
            continue;
        }
        let text = std::fs::read_to_string(&file).unwrap();
        let (name, fences) =
            (file.display(), text.lines().filter(|line| line.trim_start().starts_with("```")));
        if fences.count() % 2 == 1 {
            wrong.push(format!("{name}: a code block is not closed"));
        }
        // A decision names the files of its time.
        let named =
            text.split('`').skip(1).step_by(2).filter(|_| !file.parent().unwrap().ends_with("decisions"));
        let is_path = |text: &&str| {
            let is_of_ours = ["src/", "crates/", "migrations/", "panel/src/", "policies/", "tests/"]
                .iter()
                .any(|folder| text.starts_with(folder));
            is_of_ours && text.chars().all(|c| c.is_ascii_alphanumeric() || "/_-.".contains(c))
        };
        let missing = named.filter(is_path).filter(|path| !root.join(path).exists());
        wrong.extend(missing.map(|path| format!("{name}: there is no {path}")));
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Compares the part of `file` between the marks of `name` with `table`, or writes it.
fn check(file: &str, name: &str, table: &str) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(file);
    let text = std::fs::read_to_string(&path).unwrap();
    let begin = format!("<!-- generated: {name} -->\n");
    let start = text.find(&begin).expect("the docs have the start mark") + begin.len();
    let end = start + text[start..].find("<!-- end -->").expect("the docs have the end mark");
    if std::env::var_os("UPDATE").is_some() {
        let text = format!("{}{table}{}", &text[..start], &text[end..]);
        std::fs::write(&path, text).unwrap();
    } else {
        assert_eq!(&text[start..end], table, "{file}: run the tests with UPDATE=1");
    }
}
