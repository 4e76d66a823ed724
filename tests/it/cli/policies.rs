//! Every `muster policy …` command as an administrator runs it: the real program on a folder and a database,
//! its answers, and its errors.

use std::{
    fs,
    path::{Path, PathBuf},
};

use muster::base::permission::Permission;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::harness::{Program, empty_database};

/// An organization named House, the folder its service reads, and a scratch folder.
struct Installation {
    room: TempDir,
    live: PathBuf,
    program: Program,
    org: i64,
    id: String,
}

async fn installation() -> Installation {
    let room = tempfile::tempdir().unwrap();
    let (url, live) = (empty_database(room.path()).await, room.path().join("live"));
    muster::cli::write_defaults(&live).unwrap();
    let program = Program::new(&[
        ("MUSTER_DATABASE_URL", &url),
        ("MUSTER_POLICY_DIR", live.to_str().unwrap()),
        ("MUSTER_LOG", "off"),
    ]);
    let make = |name, owner| {
        program.json(&["org", "create", "--name", name, "--owner-email", owner])["id"].as_i64().unwrap()
    };
    let org = make("House", "owner@example.org");
    make("Elsewhere", "stranger@example.org");
    Installation { room, live, program, org, id: org.to_string() }
}

impl Installation {
    /// Runs `muster policy …`, which must succeed.
    fn json(&self, arguments: &[&str]) -> Value {
        self.program.json(&[&["policy"], arguments].concat())
    }

    /// The output for people.
    fn text(&self, arguments: &[&str]) -> String {
        let ran = self.program.run(&[&["policy"], arguments].concat());
        assert!(ran.good(), "{arguments:?}: {}", ran.err);
        ran.text
    }

    /// The findings, with exit code 1.
    fn found(&self, arguments: &[&str]) -> Value {
        let ran = self.program.run(&[&["policy"], arguments, &["--json"]].concat());
        assert_eq!(ran.code, Some(1), "{arguments:?}: {}", ran.err);
        ran.out
    }

    /// Must fail with this exit code, error code, and text, without other output.
    #[track_caller]
    fn refused(&self, arguments: &[&str], code: i32, error: &str, words: &str) {
        let said = self.program.run(&[&["policy"], arguments, &["--json"]].concat()).refused(code, error);
        assert!(said.contains(words), "{said}");
    }

    /// A copy of the shipped policy with this text as House's own file.
    fn candidate(&self, name: &str, own: &str) -> String {
        let dir = self.room.path().join(name);
        muster::cli::write_defaults(&dir).unwrap();
        fs::write(self.own(&dir), own).unwrap();
        dir.display().to_string()
    }

    fn own(&self, dir: &Path) -> PathBuf {
        dir.join(format!("orgs/{}.csv", self.org))
    }

    fn line(&self, permission: &str) -> String {
        format!("p, VIEWER, {}, {permission}, allow\n", self.org)
    }

    fn publish(&self, dir: &str) -> Value {
        self.json(&["publish", "--org", &self.id, "--dir", dir, "--reason", "because"])
    }

    fn versions(&self) -> Vec<Value> {
        self.json(&["history", "--org", &self.id])["versions"].as_array().unwrap().clone()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn explain_works_on_a_folder_and_the_policy_in_force() {
    let site = installation().await;
    let ask = |org: &str, more: &[&str]| {
        site.json(&[&["explain", "--org", org, "--role", "VIEWER", "contact.view"], more].concat())
    };
    let asked = ask(&site.id, &[]);
    assert_eq!((&asked["allowed"], &asked["subject"]), (&json!(false), &json!("VIEWER")), "{asked:#}");
    assert_eq!(asked["remedy"]["text"], site.line("contact.view").trim());
    assert_eq!(ask("House", &[]), asked);
    let all = site.json(&["explain", "--token-cap"]);
    assert_eq!(all["explanations"].as_array().unwrap().len(), Permission::ALL.len());
    let of_user = ["explain", "--org", "House", "--user", "owner@example.org", "policy.edit"];
    assert_eq!(site.json(&of_user)["subject"], "OWNER");
    assert!(site.text(&of_user).starts_with("OWNER may policy.edit"), "{}", site.text(&of_user));
    // In the database, if the folder has no file.
    site.publish(&site.candidate("candidate", &site.line("contact.view")));
    let live = site.live.display().to_string();
    assert_eq!(ask("House", &[])["allowed"], true);
    assert_eq!(ask("House", &[])["decided_by"]["file"], format!("orgs/{}.csv", site.id));
    assert_eq!(ask("House", &["--dir", &live])["allowed"], false, "only the files");
    fs::write(site.own(&site.live), site.line("skill.edit")).unwrap();
    assert_eq!(ask("House", &[])["allowed"], false, "a file decides");
    // A bad file of another organization doesn't matter; its own does.
    fs::write(site.live.join("orgs/77.csv"), "nonsense\n").unwrap();
    assert_eq!(ask("House", &[])["allowed"], false);
    fs::write(site.own(&site.live), "nonsense\n").unwrap();
    site.refused(
        &["explain", "--org", "House", "--role", "VIEWER"],
        1,
        "VALIDATION_FAILED",
        "orgs/1.csv:1: ",
    );
    site.refused(
        &["explain", "--org", "99", "--role", "VIEWER", "contact.view"],
        1,
        "NOT_FOUND",
        "There is no organization `99`",
    );
    fs::write(site.live.join("policy.csv"), "nonsense\n").unwrap();
    site.refused(
        &["explain", "--org", "House", "--role", "VIEWER"],
        1,
        "VALIDATION_FAILED",
        "policy.csv:1: ",
    );

    let role = ["--role", "VIEWER"];
    let refused = |arguments: &[&str], code, error, words: &str| {
        site.refused(&[&["explain"], arguments].concat(), code, error, words);
    };
    refused(&["--role", "VIEWER", "agent.edti"], 2, "USAGE", "did you mean \"agent.edit\"");
    refused(&["--role", "KING", "agent.edit"], 2, "USAGE", "KING");
    refused(&["agent.edit"], 2, "USAGE", "--role");
    refused(&["--user", "owner@example.org"], 2, "USAGE", "--org");
    refused(&[&role[..], &["--org", "Absent"]].concat(), 1, "NOT_FOUND", "There is no organization `Absent`");
    refused(
        &[&role[..], &["--dir", "nowhere"]].concat(),
        1,
        "VALIDATION_FAILED",
        "nowhere: the folder does not exist",
    );
    refused(
        &["--org", "House", "--user", "x@example.org"],
        1,
        "NOT_FOUND",
        "There is no user `x@example.org`",
    );
    refused(
        &["--org", "House", "--user", "stranger@example.org"],
        1,
        "NOT_FOUND",
        "is not a member of organization",
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_matrix_marks_what_the_organizations_own_rules_decide() {
    let site = installation().await;
    let row = |arguments: &[&str]| {
        let text = site.text(&[&["matrix"], arguments].concat());
        let line = text.lines().find(|line| line.starts_with("contact.view ")).unwrap().to_owned();
        (line.split_whitespace().skip(1).collect::<Vec<_>>().join(" "), text)
    };
    let (general, text) = row(&["--org", "House"]);
    assert_eq!(general, "✓ ✓ ✓ · ✓");
    let committed = include_str!("../../../policies/matrix.txt");
    assert!(committed.ends_with(&text), "without rules of its own: the committed matrix, not {text}");
    assert_eq!(row(&[]).1, text);
    // The database's rules, and those of a folder instead.
    site.publish(&site.candidate("candidate", &site.line("contact.view")));
    let (own, text) = row(&["--org", "House"]);
    assert_eq!(own, "✓ ✓ ✓ ✓* ✓");
    assert!(text.contains("own rules"), "{text}");
    let denied = format!("p, OPERATOR, {}, contact.view, deny\n", site.org);
    let folder = site.candidate("denied", &denied);
    assert_eq!(row(&["--org", "House", "--dir", &folder]).0, "✓ ✓ ·* ·* ✓");
    assert_eq!(row(&["--dir", &folder]).0, general, "other organizations");

    let found = site.json(&["matrix", "--org", "House"]);
    let rows = found["permissions"].as_array().unwrap();
    assert_eq!((&found["organization_id"], rows.len()), (&json!(site.org), Permission::ALL.len()));
    let cells = &rows.iter().find(|row| row["permission"] == "contact.view").unwrap()["cells"];
    assert_eq!(cells.as_array().unwrap().len(), 5);
    let (operator, viewer) = (&cells[2], &cells[3]);
    assert_eq!((&operator["own"], &operator["decided_by"]["file"]), (&json!(false), &json!("policy.csv")));
    assert_eq!((&viewer["subject"], &viewer["allowed"]), (&json!("VIEWER"), &json!(true)));
    assert_eq!(viewer["decided_by"]["text"], site.line("contact.view").trim());
    site.refused(&["matrix", "--org", "Absent"], 1, "NOT_FOUND", "There is no organization `Absent`");
}

#[tokio::test(flavor = "multi_thread")]
async fn check_and_test_name_every_mistake_of_a_folder() {
    let site = installation().await;
    let checked = site.json(&["check"]);
    assert_eq!((&checked["ok"], &checked["problems"]), (&json!(true), &json!([])));
    assert!(site.json(&["test"])["expectations"].as_i64().unwrap() > 30);
    assert_eq!(site.text(&["check"]).trim_end(), "3 files, 0 organizations, 0 problems");
    let one = site.candidate("one", &site.line("contact.view"));
    assert_eq!(site.text(&["check", "--dir", &one]).trim_end(), "4 files, 1 organization, 0 problems");
    let bad = format!("{}p, VIEWER, 1\n", site.line("agent.edti"));
    let bad = site.candidate("bad", &bad);
    let found = site.found(&["check", "--dir", &bad]);
    let lines: Vec<_> =
        found["problems"].as_array().unwrap().iter().map(|problem| &problem["line"]).collect();
    assert_eq!((&found["ok"], lines), (&json!(false), vec![&json!(1), &json!(2)]), "{found:#}");
    assert!(found["problems"][0]["reason"].as_str().unwrap().contains("did you mean \"agent.edit\""));
    assert_eq!(site.found(&["test", "--dir", &bad])["ok"], false);
    // Invisible characters and duplicates.
    let marked = site.candidate("marked", &format!("\u{feff}{}", site.line("contact.view")));
    let reason = &site.found(&["check", "--dir", &marked])["problems"][0]["reason"];
    assert!(reason.as_str().unwrap().contains("byte-order mark"), "{reason}");
    let twice = site.candidate("twice", &site.line("contact.view"));
    let expectations = "VIEWER, *, skill.view, allow\nVIEWER, *, skill.view, deny\n";
    fs::write(Path::new(&twice).join("expectations.csv"), expectations).unwrap();
    let reason = &site.found(&["check", "--dir", &twice])["problems"][0]["reason"];
    assert_eq!(reason, "contradicts line 1, which expects allow");
    // Foreign line endings work too.
    let windows = site.candidate("windows", &site.line("contact.view").replace('\n', "\r\n"));
    assert_eq!(site.json(&["check", "--dir", &windows])["ok"], true);
    // Readable, but not as expected.
    let wide = site.candidate("wide", &site.line("agent.delete"));
    let found = site.found(&["test", "--dir", &wide]);
    assert!(found["problems"][0]["reason"].as_str().unwrap().contains("expected deny"), "{found:#}");
    // An organization's own expectation: the service would accept its rules all the same.
    let own = site.candidate("own", &format!("{}e, VIEWER, contact.view, deny\n", site.line("contact.view")));
    assert_eq!(site.json(&["check", "--dir", &own])["warnings"][0]["line"], 2);
    assert!(site.text(&["check", "--dir", &own]).contains("(a warning: these rules stay in force)"));
    let found = site.found(&["test", "--dir", &own]);
    assert_eq!((&found["problems"][0]["line"], &found["ok"]), (&json!(2), &json!(false)), "{found:#}");
    for command in ["check", "test"] {
        let found = site.found(&[command, "--dir", "nowhere"]);
        let problems = found["problems"].as_array().unwrap();
        assert_eq!((problems.len(), &problems[0]["file"]), (1, &json!("nowhere")), "one mistake: {found:#}");
        assert!(problems[0]["reason"].as_str().unwrap().contains("MUSTER_POLICY_DIR"), "{found:#}");
        site.refused(&[command, "--days", "3"], 2, "USAGE", "--days");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn diff_compares_folders_and_versions_with_the_policy_in_force() {
    let site = installation().await;
    let candidate = site.candidate("candidate", &site.line("contact.view"));
    let live = site.live.display().to_string();
    let change = |found: &Value| {
        let one = &found["changes"][0];
        assert_eq!(found["changes"].as_array().unwrap().len(), 1, "{found:#}");
        (one["organization_id"].clone(), one["permission"].clone(), one["allowed"].clone())
    };
    let gained = (json!(site.org), json!("contact.view"), json!(true));
    let lost = (json!(site.org), json!("contact.view"), json!(false));
    assert_eq!(change(&site.json(&["diff", "--dir", &candidate])), gained);
    assert_eq!(change(&site.json(&["diff", "--dir", &live, "--against", &candidate])), lost);
    let text = site.text(&["diff", "--dir", &candidate]);
    assert!(
        text.starts_with("+ VIEWER contact.view in organization ") && text.ends_with("1 cell changed\n"),
        "{text}"
    );
    let published = site.publish(&candidate);
    assert_eq!(site.json(&["diff", "--dir", &candidate])["changes"], json!([]), "in force from the database");
    assert_eq!(site.json(&["diff", "--dir", &live])["changes"], json!([]), "the database then has it too");
    site.publish(&site.candidate("empty", ""));
    let number = published["id"].to_string();
    assert_eq!(change(&site.json(&["diff", "--version", &number])), gained, "as if reverted to");
    // A folder that conflicts with a version in the database.
    site.publish(&candidate);
    let ceiling = site.candidate("ceiling", "");
    fs::remove_file(site.own(Path::new(&ceiling))).unwrap();
    let policy = Path::new(&ceiling).join("policy.csv");
    let text = fs::read_to_string(&policy).unwrap() + "p, VIEWER, *, contact.view, deny\n";
    fs::write(&policy, text).unwrap();
    let found = site.json(&["diff", "--dir", &ceiling]);
    assert_eq!(change(&found), lost);
    assert_eq!(found["problems"].as_array().unwrap().len(), 1, "{found:#}");
    assert!(site.text(&["diff", "--dir", &ceiling]).contains("only the denials in these rules"));

    site.refused(&["diff"], 2, "USAGE", "--dir");
    site.refused(&["diff", "--version", "1", "--against", "x"], 2, "USAGE", "cannot be used with");
    site.refused(&["diff", "--version", "999999"], 1, "NOT_FOUND", "There is no policy version 999999");
    site.refused(&["diff", "--dir", "nowhere"], 1, "VALIDATION_FAILED", "nowhere: the folder does not exist");
    site.refused(
        &["diff", "--dir", &candidate, "--against", "nowhere"],
        1,
        "VALIDATION_FAILED",
        "nowhere: the folder does not exist",
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_database_only_the_files_are_read() {
    let room = tempfile::tempdir().unwrap();
    let file = room.path().join("none.db");
    let url = format!("sqlite://{}", file.display());
    let program = Program::new(&[("MUSTER_DATABASE_URL", &url), ("MUSTER_LOG", "off")]);
    let folder = tempfile::tempdir().unwrap();
    muster::cli::write_defaults(folder.path()).unwrap();
    let folder = folder.path().to_str().unwrap();
    assert_eq!(program.json(&["policy", "check"])["ok"], true);
    // Without a database any id is accepted.
    let of = |org| ["policy", "explain", "--role", "VIEWER", "contact.view", "--org", org, "--json"];
    for more in [&[][..], &["--dir", folder]] {
        assert_eq!(program.run(&[&of("99"), more].concat()).out["allowed"], false);
        let asked = program.run(&[&of("House"), more].concat()).refused(1, "NOT_FOUND");
        assert!(asked.starts_with("There is no database") && asked.contains("none.db"), "{asked}");
    }
    for more in [&[][..], &["--against", folder]] {
        let diff = [&["policy", "diff", "--dir", folder], more].concat();
        assert_eq!(program.json(&diff)["changes"], json!([]));
    }
    program.run(&["policy", "diff", "--version", "1", "--json"]).refused(1, "NOT_FOUND");
    assert!(!file.exists(), "asking creates none");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_candidate_is_published_against_a_version_and_reverted() {
    let site = installation().await;
    let texts = [
        site.line("contact.view"),
        format!("# both\n{}{}", site.line("contact.view"), site.line("skill.edit")),
    ];
    let [first, second] = ["first", "second"];
    let (first, second) = (site.candidate(first, &texts[0]), site.candidate(second, &texts[1]));
    let against = |dir: &str, version: &'static str| {
        ["publish", "--org", "House", "--dir", dir, "--version", version, "--reason", "asked for"]
            .map(str::to_owned)
    };
    let published = against(&first, "none");
    let published = site.json(&published.each_ref().map(String::as_str));
    assert_eq!(
        (&published["organization_id"], &published["owned_by_file"]),
        (&json!(site.org), &Value::Null)
    );
    let stale = against(&second, "none");
    site.refused(&stale.each_ref().map(String::as_str), 1, "CONFLICT", "Read it again");
    let by_number = ["publish", "--org", "House", "--dir", &second, "--reason", "because", "--version"];
    let unknown = [&by_number[..], &["999999"]].concat();
    site.refused(&unknown, 1, "NOT_FOUND", "This organization has no policy version with id 999999");
    let number = published["id"].to_string();
    assert_eq!(site.json(&[&by_number[..], &[&number]].concat())["changed"], true);
    assert_eq!(site.publish(&second)["changed"], false, "it is already the newest");
    site.refused(&[&by_number[..], &[&number]].concat(), 1, "CONFLICT", "is now version");
    let versions = site.versions();
    let shown: Vec<_> = versions.iter().map(|it| (it["text"].as_str().unwrap(), &it["reason"])).collect();
    assert_eq!(shown, [(&*texts[1], &json!("because")), (&*texts[0], &json!("asked for"))]);
    assert_eq!((&versions[1]["id"], &versions[1]["version"]), (&published["id"], &published["version"]));
    assert_eq!(versions[0]["author_kind"], "OPERATOR");
    let shown = site.text(&["history", "--org", "House", "--limit", "1", "--text"]);
    assert!(
        shown.contains("asked for") != shown.contains("because") && shown.contains("    # both\n"),
        "{shown}"
    );
    let id = published["id"].to_string();
    site.refused(&["revert", &id, "--version", &id, "--reason", "x"], 1, "CONFLICT", "is now version");
    let newest = versions[0]["id"].to_string();
    let reverted = site.json(&["revert", &id, "--version", &newest, "--reason", "too wide"]);
    assert_eq!(
        reverted,
        json!({
            "reverted_to": published["id"], "organization_id": site.org, "changed": true, "owned_by_file": null
        })
    );
    assert_eq!(site.versions()[0]["text"], texts[0]);
    assert_eq!(site.versions()[0]["reverts_to"], published["id"]);

    let publish = |org: &str, dir: &str, reason: &str| {
        ["publish", "--org", org, "--dir", dir, "--reason", reason].map(str::to_owned)
    };
    let refused = |arguments: [String; 7], error, words: &str| {
        site.refused(&arguments.each_ref().map(String::as_str), 1, error, words);
    };
    let wrong = site.candidate("wrong", &site.line("agent.edti"));
    let locked = site.candidate("locked", &format!("p, OWNER, {}, policy.edit, deny\n", site.org));
    refused(publish("Absent", &first, "x"), "NOT_FOUND", "There is no organization `Absent`");
    refused(publish("Elsewhere", &first, "x"), "NOT_FOUND", "publish an empty file");
    refused(publish("House", "nowhere", "x"), "NOT_FOUND", "nowhere/orgs/");
    refused(publish("House", &second, " "), "VALIDATION_FAILED", "A reason is required");
    refused(publish("House", &wrong, "x"), "VALIDATION_FAILED", "did you mean \"agent.edit\"");
    refused(publish("House", &locked, "x"), "VALIDATION_FAILED", "could edit its policy");
    site.refused(&["publish", "--org", "House", "--dir", &first], 2, "USAGE", "--reason");
    site.refused(&["history", "--org", "Absent"], 1, "NOT_FOUND", "There is no organization `Absent`");
    site.refused(&["history"], 2, "USAGE", "--org");
    site.refused(&["revert", "999999", "--reason", "x"], 1, "NOT_FOUND", "There is no policy version 999999");
    site.refused(&["revert", &id, "--reason", " "], 1, "VALIDATION_FAILED", "A reason is required");
    site.refused(&["revert", "one", "--reason", "x"], 2, "USAGE", "one");
    assert_eq!(site.versions().len(), 3, "none of that created a version");
}

#[tokio::test(flavor = "multi_thread")]
async fn rules_move_from_a_file_into_the_database_and_back() {
    let site = installation().await;
    let file = site.own(&site.live);
    let path = file.to_str().unwrap();
    fs::write(&file, site.line("contact.view")).unwrap();
    let asked = |permission: &str| {
        site.json(&["explain", "--org", "House", "--role", "VIEWER", permission])["allowed"].clone()
    };
    // Without a folder, the service's own file is published.
    let publish = ["publish", "--org", "House", "--reason", "to the panel"];
    let published = site.json(&publish);
    assert_eq!((&published["changed"], &published["owned_by_file"]), (&json!(true), &json!(path)));
    let told = site.text(&publish);
    assert!(
        told.contains(path) && told.contains("when you delete") && told.contains("every replica"),
        "{told}"
    );
    assert!(
        site.text(&["history", "--org", "House"]).contains(&format!("Not in force: the rules are in {path}"))
    );
    assert_eq!(fs::read_to_string(&file).unwrap(), site.line("contact.view"), "only the operator deletes it");
    fs::write(&file, site.line("skill.edit")).unwrap();
    assert_eq!((asked("contact.view"), asked("skill.edit")), (json!(false), json!(true)));
    // A bad file blocks nothing: not another organization's version, nor its own.
    fs::write(&file, "nonsense\n").unwrap();
    let newer = site.candidate("newer", &site.line("mcp.edit"));
    assert_eq!(site.publish(&newer)["owned_by_file"], path);
    let back = site.json(&["revert", &published["id"].to_string(), "--reason", "back"]);
    assert_eq!((&back["changed"], &back["owned_by_file"]), (&json!(true), &json!(path)));
    assert_eq!(site.versions().len(), 3);
    fs::remove_file(&file).unwrap();
    assert_eq!((asked("contact.view"), asked("mcp.edit")), (json!(true), json!(false)));
    // And back. An existing file isn't overwritten.
    let taken = site.room.path().join("taken.csv");
    let export = ["export", "--org", "House", "--out", taken.to_str().unwrap()];
    site.json(&export);
    assert_eq!(fs::read_to_string(&taken).unwrap(), site.line("contact.view"));
    site.refused(&export, 1, "FAILED", "taken.csv can't be written");
    assert_eq!(site.text(&["export", "--org", "House"]), site.line("contact.view"));
    let third = site.versions()[1]["id"].to_string();
    assert_eq!(site.text(&["export", "--org", "House", "--version", &third]), site.line("mcp.edit"));
    fs::rename(&taken, &file).unwrap();
    fs::write(site.live.join("policy.csv"), "nonsense\n").unwrap();
    assert_eq!(site.text(&["export", "--org", "House"]), site.line("contact.view"), "despite other errors");
    site.refused(&["export", "--org", "Elsewhere"], 1, "NOT_FOUND", "has no rules of its own");
    site.refused(&["export", "--org", "Elsewhere", "--version", &third], 1, "NOT_FOUND", "no version");
    site.refused(&["export", "--org", "Absent"], 1, "NOT_FOUND", "There is no organization `Absent`");
}

#[tokio::test(flavor = "multi_thread")]
async fn simulate_replays_real_calls() {
    let site = installation().await;
    let candidate = site.candidate("candidate", &site.line("contact.view"));
    let found = site.json(&["simulate", "--dir", &candidate, "--days", "3", "--org", "House"]);
    assert_eq!((&found["calls"], &found["flipped"], &found["days"]), (&json!(0), &json!(0), &json!(3)));
    assert!(!found["unused_lines"].as_array().unwrap().is_empty(), "nothing was called");
    let text = site.text(&["simulate", "--dir", &candidate]);
    assert!(text.starts_with("No call was recorded in 14 days") && text.lines().count() == 1, "{text}");
    site.refused(&["simulate"], 2, "USAGE", "--dir");
    site.refused(&["simulate", "--dir", &candidate, "--days", "0"], 2, "USAGE", "0");
    site.refused(&["simulate", "--dir", &candidate, "--org", "Absent"], 1, "NOT_FOUND", "`Absent`");
    site.refused(
        &["simulate", "--dir", "nowhere"],
        1,
        "VALIDATION_FAILED",
        "nowhere: the folder does not exist",
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn break_glass_works_with_bad_files_and_names_them() {
    let site = installation().await;
    let own = site.own(&site.live);
    fs::write(&own, "nonsense\n").unwrap();
    fs::write(site.live.join("policy.csv"), "nonsense\n").unwrap();
    let ask = |org: &'static str, user: &'static str, reason: &'static str| {
        ["break-glass", "--org", org, "--user", user, "--reason", reason]
    };
    let user = "stranger@example.org";
    site.refused(&ask("Absent", user, "x"), 1, "NOT_FOUND", "There is no organization `Absent`");
    site.refused(&ask("House", "x@example.org", "x"), 1, "NOT_FOUND", "There is no user `x@example.org`");
    site.refused(&ask("House", user, " "), 1, "VALIDATION_FAILED", "--reason: give a reason");
    site.refused(&["break-glass", "--org", "House", "--user", user], 2, "USAGE", "--reason");
    // Commands that only read the database still work.
    assert_eq!(site.versions(), Vec::<Value>::new());
    let broken = site.json(&ask("House", user, "the owner has left"));
    assert_eq!((&broken["organization_id"], &broken["was"]), (&json!(site.org), &Value::Null), "{broken:#}");
    assert_eq!(broken["owned_by_file"], own.to_str().unwrap());
    let told = site.text(&ask("House", user, "once more"));
    assert!(told.contains("move that file out of the policy folder of every replica"), "{told}");
    assert_eq!(fs::read_to_string(&own).unwrap(), "nonsense\n", "only the operator moves it");
    fs::remove_file(&own).unwrap();
    fs::write(site.live.join("policy.csv"), muster::core::policy::DEFAULTS[1].1).unwrap();
    let explained = site.json(&["explain", "--org", "House", "--user", user, "policy.edit"]);
    assert_eq!((&explained["subject"], &explained["allowed"]), (&json!("OWNER"), &json!(true)));
    // Rules in the database are dropped on request.
    site.publish(&site.candidate("candidate", &site.line("contact.view")));
    let again = ["break-glass", "--org", &site.id, "--user", user, "--reason", "sure", "--drop-rules"];
    let again = site.json(&again);
    assert_eq!((&again["was"], &again["rules_dropped"]), (&json!("OWNER"), &json!(true)));
    assert_eq!(site.versions()[0]["text"], Value::Null);
}

#[tokio::test(flavor = "multi_thread")]
async fn break_glass_refuses_a_disabled_account() {
    let site = installation().await;
    site.publish(&site.candidate("candidate", &site.line("contact.view")));
    let user = "stranger@example.org";
    let glass = ["break-glass", "--org", &site.id, "--user", user, "--reason", "sure", "--drop-rules"];
    site.program.json(&["user", "disable", user]);
    site.refused(&glass, 1, "CONFLICT", "Enable it first: `muster user enable stranger@example.org`");
    let explain = ["explain", "--org", &site.id, "--user", user, "policy.edit"];
    site.refused(&explain, 1, "NOT_FOUND", "is not a member of organization");
    assert_eq!(site.versions().len(), 1, "the rules stay");
    site.program.json(&["user", "enable", user]);
    assert_eq!(site.json(&glass)["rules_dropped"], true);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_ambiguous_organization_name_is_refused() {
    let site = installation().await;
    let namesake = ["org", "create", "--name", "House", "--owner-email", "owner@example.org", "--same-name"];
    let other = site.program.json(&namesake)["id"].as_i64().unwrap();
    let ids = format!("Use the id instead ({}, {other})", site.org);
    for command in [&["history"][..], &["explain", "--token-cap"], &["export"]] {
        site.refused(&[command, &["--org", "House"]].concat(), 1, "CONFLICT", &ids);
    }
    site.program.json(&["seed", "--org", "Elsewhere", "--agents", "1"]);
    let numbered = ["org", "create", "--name", "4711", "--owner-email", "owner@example.org"];
    site.program.json(&numbered);
    assert_eq!(
        site.json(&["history", "--org", "4711"])["versions"],
        json!([]),
        "an unknown id may be a name"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_folder_the_built_in_policy_counts() {
    let room = tempfile::tempdir().unwrap();
    let url = empty_database(room.path()).await;
    let program = Program::new(&[("MUSTER_DATABASE_URL", &url), ("MUSTER_LOG", "off")]);
    let org = program.tenant().org.to_string();
    assert_eq!(program.json(&["policy", "check"])["ok"], true);
    assert_eq!(program.json(&["policy", "test"])["ok"], true);
    let asked = program.json(&["policy", "explain", "--org", &org, "--role", "VIEWER", "contact.view"]);
    assert_eq!(asked["allowed"], false);
    let dir = room.path().join("mine");
    let dir = dir.to_str().unwrap();
    let written = program.json(&["policy", "init", dir])["written"].as_array().unwrap().len();
    assert_eq!(written, 5);
    assert_eq!(program.json(&["policy", "diff", "--dir", dir])["changes"], json!([]));
    // Existing files are not changed.
    let file = room.path().join("mine/policy.csv");
    fs::write(&file, "mine\n").unwrap();
    fs::remove_file(room.path().join("mine/README.md")).unwrap();
    assert_eq!(program.json(&["policy", "init", dir])["written"], json!(["README.md"]));
    assert_eq!(fs::read_to_string(&file).unwrap(), "mine\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_symlink_out_of_the_folder_is_not_followed() {
    let site = installation().await;
    let secret = site.room.path().join("secret");
    fs::write(&secret, "root:*:20228:0:99999\n").unwrap();
    std::os::unix::fs::symlink(&secret, site.own(&site.live)).unwrap();
    let found = site.found(&["check"]).to_string();
    assert!(found.contains("is a link to outside the policy folder") && !found.contains("root:"), "{found}");
    fs::remove_file(site.own(&site.live)).unwrap();
    // A mounted volume's links stay inside.
    fs::create_dir(site.live.join("..data")).unwrap();
    fs::write(site.live.join("..data/1.csv"), site.line("contact.view")).unwrap();
    std::os::unix::fs::symlink("../..data/1.csv", site.own(&site.live)).unwrap();
    let asked = site.json(&["explain", "--org", &site.id, "--role", "VIEWER", "contact.view"]);
    assert_eq!(asked["allowed"], true, "{asked:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn tenants_texts_cannot_control_a_terminal() {
    let site = installation().await;
    let text = format!("# \u{1b}[31mred\n{}", site.line("contact.view"));
    fs::write(site.own(&site.live), text).unwrap();
    let folder = site.candidate("next", &site.line("skill.edit"));
    let reason = "because\u{1b}[2J\np, VIEWER, 2, member.edit, allow";
    let refused =
        site.program.run(&["policy", "publish", "--org", &site.id, "--dir", &folder, "--reason", reason]);
    assert!(!refused.good(), "{}", refused.text);
    site.publish(&folder);
    // As an earlier version accepted them.
    let database = crate::harness::connect(site.program.variable("MUSTER_DATABASE_URL")).await;
    let forged = format!("UPDATE policy_versions SET reason = '{reason}', author_name = 'a\u{1b}]0;x\u{7}'");
    sea_orm::ConnectionTrait::execute_unprepared(&database, &forged).await.unwrap();
    for arguments in [&["history", "--org", &site.id][..], &["history", "--org", &site.id, "--text"]] {
        let shown = site.text(arguments);
        assert!(!shown.contains(['\u{1b}', '\u{7}']), "{shown:?}");
        assert!(!shown.lines().any(|line| line.starts_with("p, VIEWER, 2")), "{shown}");
    }
}
