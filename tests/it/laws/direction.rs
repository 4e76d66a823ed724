//! The laws of one direction: each layer may use the layers below it, and none above; each feature of the product may use
//! the features before it, and tells those after it by events.
//!
//! Works on the source text: the paths of every `use` and every `crate::…` in `src`, without comments and unit
//! tests.

use std::collections::BTreeSet;

use crate::{harness::sources, laws::judge};

/// The layers from the bottom up. Modules of one layer may use each other.
const FLOORS: &[&[&str]] = &[
    &["base"],
    &["core"],
    &["read"],
    &["resolvers"],
    &["domain"],
    &["graphql"],
    &["api::middleware"],
    &["api"],
    &["handlers"],
    &["service", "jobs"],
    &["seed", "cli"],
];

/// Files shared by the features, below all of them. They may use each other.
const SHARED: &[&str] = &["edits", "locks", "patch", "queries", "versions"];

/// The features from the bottom up. Each has a place of its own, so no two can use each other.
const FEATURES: &[&str] = &[
    "mails",
    "audit",
    "orgs",
    "people",
    "policies",
    "service_tokens",
    "commands",
    "servers",
    "agents",
    "avatars",
    "network",
    "skills",
    "credentials",
    "mcp_servers",
    "model_credentials",
    "channels",
    "contacts",
    "conversations",
    "spending",
    "approvals",
    "backups",
    "launch",
    "emergency_stop",
    "rights",
    "hosts",
    "chat_approvals",
    "event_endpoints",
    "notifications",
    "deliveries",
    "ingest",
    "search",
    "dashboard",
];

/// Imports of features that point up, as `file -> domain::feature`. The list only gets shorter; between layers there are none.
const EXCEPTIONS: &[&str] = &[];

#[test]
fn no_import_points_upward() {
    let mut upward = BTreeSet::new();
    let sources = sources("src").into_iter();
    for (file, text) in sources.filter(|(file, _)| !matches!(file.as_str(), "lib.rs" | "main.rs")) {
        let own =
            floor(&module_of(&file)).unwrap_or_else(|| panic!("{file} has no place in the lists above"));
        for path in paths(&text, &module_of(&file)) {
            if floor(&path).is_some_and(|used| used > own) {
                upward.insert(format!("{file} -> {}", path[..path.len().min(2)].join("::")));
            }
        }
    }
    let help =
        "move what they need down or their code up, pass it in, or emit an event (src/core/handlers.rs)";
    judge(&upward, EXCEPTIONS.iter().copied(), help);
    assert!(EXCEPTIONS.iter().all(|exception| exception.contains(" -> domain::")), "layers have none");
}

#[test]
fn every_event_and_question_has_its_line_in_handlers() {
    let sources = sources("src");
    let (_, handlers) = sources.iter().find(|(file, _)| file == "handlers.rs").unwrap();
    let mut left = Vec::new();
    for (file, text) in &sources {
        for (before, call) in [("impl DomainEvent for ", ".on::<"), ("impl Question for ", ".answer::<")] {
            for declared in text.split(before).skip(1) {
                let name = declared.split([' ', '{']).next().unwrap();
                let is_it = |line: &str| {
                    let path: Vec<&str> = line.split('>').next().unwrap().split("::").collect();
                    path.last() == Some(&name) && module_of(file).iter().any(|module| module == path[0])
                };
                if !handlers.split(call).skip(1).any(is_it) {
                    left.push(format!("{file}: {name}"));
                }
            }
        }
    }
    assert!(left.is_empty(), "nothing in src/handlers.rs handles these: {left:#?}");
}

#[test]
fn features_have_an_order() {
    let floor = |module: &str| floor(&module_of(module));
    assert!(
        floor("domain/spending/cost_guard") < floor("domain/approvals")
            && floor("domain/search") < floor("api")
    );
    assert!(floor("domain/edits") < floor("domain/audit") && floor("read") < floor("domain/edits"));
    assert_eq!(floor("domain/unknown"), None);
}

#[test]
fn every_way_to_write_a_path_is_read() {
    let text = "use crate::{a::{b, self}, c::D as E}; pub(crate) use super::f::{G}; fn x() { crate::h::i(); super::super::j::k() }";
    let mut found: Vec<String> =
        paths(text, &["m".to_owned(), "n".to_owned()]).iter().map(|path| path.join("::")).collect();
    found.sort();
    assert_eq!(found, ["a", "a::b", "c::D", "h::i", "j::k", "m::f::G"]);
}

/// The layer of a module, and its place there if it is of a feature.
fn floor(module: &[String]) -> Option<(usize, usize)> {
    let is_in =
        |room: &str| room.split("::").zip(module).filter(|(a, b)| a == b).count() == room.split("::").count();
    let layer = FLOORS.iter().position(|rooms| rooms.iter().any(|room| is_in(room)))?;
    let place = match module {
        [layer, name, ..] if layer == "domain" && !SHARED.contains(&name.as_str()) => {
            FEATURES.iter().position(|feature| feature == name)? + 1
        }
        _ => 0,
    };
    Some((layer, place))
}

fn module_of(file: &str) -> Vec<String> {
    let path = file.trim_end_matches(".rs").trim_end_matches("/mod");
    path.split('/').map(str::to_owned).collect()
}

/// Every path in the crate that the text names, from the crate's root. `own` is the module of the text.
fn paths(text: &str, own: &[String]) -> Vec<Vec<String>> {
    let code: Vec<&str> = text.lines().map(|line| line.split("//").next().unwrap()).collect();
    let code = code.join("\n");
    let mut found = Vec::new();
    for (at, _) in code.match_indices("crate::") {
        tree(&code[at + "crate::".len()..], &[], &mut found);
    }
    for (at, _) in code.match_indices("super::") {
        let before = &code[..at];
        if before.ends_with("super::") {
            continue; // already read with the first of several
        }
        let rest = &code[at..];
        let ups = rest.split("super::").take_while(|part| part.is_empty()).count();
        let base = &own[..own.len().saturating_sub(ups)];
        tree(&rest[ups * "super::".len()..], base, &mut found);
    }
    found
}

/// Reads one tree of a `use`, or one path: `a::b`, `a::{b, c::D}`. Returns the rest of the text.
fn tree<'a>(mut text: &'a str, base: &[String], found: &mut Vec<Vec<String>>) -> &'a str {
    let mut path = base.to_vec();
    loop {
        text = text.trim_start();
        if let Some(mut inner) = text.strip_prefix('{') {
            loop {
                inner = inner.trim_start_matches([',', ' ', '\n']);
                if let Some(rest) = inner.strip_prefix('}') {
                    return rest;
                }
                inner = tree(inner, &path, found);
            }
        }
        let end = text.find(|c: char| !c.is_alphanumeric() && c != '_' && c != '*').unwrap_or(text.len());
        let (name, rest) = text.split_at(end);
        if !matches!(name, "self" | "*" | "") {
            path.push(name.to_owned());
        }
        if let Some(rest) = rest.strip_prefix("::") {
            text = rest;
            continue;
        }
        found.push(path);
        // An alias doesn't matter.
        return match rest.trim_start().strip_prefix("as ") {
            Some(alias) => alias.trim_start_matches(|c: char| c.is_alphanumeric() || c == '_'),
            None if end == 0 => &rest[rest.chars().next().map_or(0, char::len_utf8)..],
            None => rest,
        };
    }
}
