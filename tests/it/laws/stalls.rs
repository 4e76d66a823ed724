//! No work whose duration a tenant determines runs between `begin()` and `commit()`, because others wait for the locks.
//! And each organization has a share of every shared resource.

use std::collections::{BTreeMap, BTreeSet};

use crate::{harness::sources, laws::judge};

/// Calls whose time their text determines: parsers and renderers. What calls them is as slow.
const SLOW: &[&str] = &[
    "render(",
    "render_plain(",
    "CronParser",
    "ParsedCron::new(",
    "schedule.last(",
    ".find_next_occurrence(",
    ".find_previous_occurrence(",
    ".iter_after(",
    "pulldown_cmark::",
    "MessageParser",
    "mail_parser::",
    ".with_org(",
    ".changes(&policy)",
];

/// Functions that may call them within a transaction: `file: function`, and why. A stale line fails.
const SLOW_ALLOWED: &[(&str, &str)] =
    &[("domain/conversations/append.rs: summarize", "a title takes the first 2,000 bytes of a message")];

/// Places with a semaphore for all organizations, and why none of them can take all of it. A stale line fails.
const SHARED_ALLOWED: &[(&str, &str)] = &[
    ("core/access/password.rs", "passwords: each attempt is charged to the person's address"),
    (
        "core/resource_limits/mod.rs",
        "connections, before they authenticate; sockets have a maximum for each address",
    ),
    ("core/tasks.rs", "the CPU pool, with a slot for each organization"),
    ("api/gateway/reading.rs", "one for each connection of a host"),
    ("api/graphql/http/socket.rs", "one for each socket"),
    ("api/rest/etag.rs", "reads of one record each, which a deadline ends"),
];

/// Where JSON may be read by the library itself, and why. A stale line fails.
const JSON_ALLOWED: &[(&str, &str)] =
    &[("src/core/store/backup.rs", "the manifest of a backup, an operator's own file")];

fn places<'a>(allowed: &'a [(&'a str, &'a str)]) -> impl Iterator<Item = &'a str> {
    allowed.iter().map(|(place, _)| *place)
}

/// A function: its name, and its text from the name on.
type Function<'a> = (&'a str, &'a str);

/// The functions of a file. `cargo fmt` closes each with a brace as far in as its first line.
fn functions(code: &str) -> Vec<Function<'_>> {
    let mut found = Vec::new();
    for (at, _) in code.match_indices("fn ") {
        let start = code[..at].rfind('\n').map_or(0, |end| end + 1);
        let line = &code[start..];
        let before = &code[start..at];
        if !before.chars().all(|c| c.is_ascii_alphanumeric() || " ()_:\"".contains(c)) {
            continue;
        }
        let name = code[at + 3..].split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap();
        let indent = line.len() - line.trim_start().len();
        let end = line.find(&format!("\n{}}}", " ".repeat(indent))).map_or(line.len(), |end| end + 1);
        found.push((name, &line[..end]));
    }
    found
}

/// The part of a function that runs within a transaction.
fn within(text: &str) -> &str {
    let signature = &text[..text.find(" {\n").unwrap_or(text.len())];
    if ["&Tx", "tx: Tx"].iter().any(|tx| signature.contains(tx)) {
        return text;
    }
    let begun = text.find(".begin().await?;").map_or("", |at| &text[at..]);
    begun.rfind("commit()").map_or(begun, |at| &begun[..at])
}

/// Whether the code calls this function of the crate, by its name or its path.
fn calls(code: &str, name: &str) -> bool {
    let is_whole = |at: usize| !code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == '.');
    code.match_indices(&format!("{name}(")).any(|(at, _)| is_whole(at) && !code[..at].ends_with("fn "))
}

#[test]
fn no_transaction_waits_for_a_parser() {
    let files = sources("src");
    let all: Vec<(&str, Function<'_>)> = files
        .iter()
        .flat_map(|(file, code)| functions(code).into_iter().map(move |f| (file.as_str(), f)))
        .collect();
    let mut named: BTreeMap<&str, usize> = BTreeMap::new();
    for (_, (name, _)) in &all {
        *named.entry(name).or_default() += 1;
    }
    // A function that calls a slow one is slow, as far as the called name is unambiguous.
    let mut slow: BTreeSet<&str> = BTreeSet::new();
    loop {
        let is_slow = |text: &str| {
            SLOW.iter().any(|call| text.contains(call)) || slow.iter().any(|name| calls(text, name))
        };
        let more = all.iter().filter(|(_, (name, text))| named[name] == 1 && is_slow(text));
        let more: BTreeSet<&str> = more.map(|(_, (name, _))| *name).collect();
        if more.len() == slow.len() {
            break;
        }
        slow = more;
    }
    assert!(
        slow.contains("parse_cron") && slow.contains("render_text") && slow.contains("compile_candidate"),
        "the law sees nothing: {slow:?}"
    );
    let mut found = BTreeSet::new();
    for (file, (name, text)) in &all {
        let within = within(text);
        let call = SLOW.iter().find(|call| within.contains(**call)).copied();
        if call.or_else(|| slow.iter().find(|slow| calls(within, slow)).copied()).is_some() {
            found.insert(format!("{file}: {name}"));
        }
    }
    judge(&found, places(SLOW_ALLOWED), "do it before begin(), in the CPU pool");
}

#[test]
fn what_is_shared_has_a_share_for_each_organization() {
    let shared = |code: &str| code.contains("Semaphore::new(") || code.contains("Semaphore::const_new(");
    let found = sources("src").into_iter().filter(|(_, code)| shared(code)).map(|(file, _)| file).collect();
    judge(
        &found,
        places(SHARED_ALLOWED),
        "use the resource limits (core/resource_limits) or the CPU pool (core/tasks.rs)",
    );
}

#[test]
fn the_law_sees_what_it_forbids() {
    let code = "pub async fn a(tx: &Tx) -> Result<()> {\n    render(text);\n}\n\nasync fn b(scope: &Scope) {\n    render(text);\n    \
                let tx = scope.begin().await?;\n    ok(tx);\n    tx.commit().await\n}\n\nimpl X {\n    fn c(\n        tx: &Tx,\n    ) -> Y {\n        \
                calm();\n    }\n}\n";
    let found = functions(code);
    assert_eq!(found.iter().map(|(name, _)| *name).collect::<Vec<_>>(), ["a", "b", "c"]);
    let slow: Vec<bool> = found.iter().map(|(_, text)| within(text).contains("render(")).collect();
    assert_eq!(slow, [true, false, false]);
    assert!(
        calls("x::render(", "render") && !calls("a_render(", "render") && !calls("self.render(", "render")
    );
}

/// The library itself bounds neither the depth of all JSON nor, with that, the stack.
#[test]
fn json_of_others_is_read_by_muster_json() {
    let reads = [
        "serde_json::from_slice",
        "serde_json::from_str",
        "serde_json::from_reader",
        ".json().await",
        ".json::<",
    ];
    let folders = ["src", "crates/channels/src", "crates/egress/src", "crates/host/src"];
    let all = folders.iter().flat_map(|folder| {
        sources(folder).into_iter().map(move |(file, code)| (format!("{folder}/{file}"), code))
    });
    let found: BTreeSet<_> =
        all.filter(|(_, code)| reads.iter().any(|read| code.contains(read))).map(|(file, _)| file).collect();
    judge(&found, places(JSON_ALLOWED), "use muster_json");
}
