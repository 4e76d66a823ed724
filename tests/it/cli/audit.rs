//! `muster audit`, and what `backup` and `restore` refuse, with the real program.

use std::{fs, os::unix::fs::PermissionsExt, path::Path};

use muster::core::audit;
use serde_json::{Value, json};

use crate::harness::{TestApp, muster};

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[tokio::test]
async fn an_export_is_verified_and_a_changed_one_detected() {
    let app = TestApp::start().await;
    app.agent().await;
    app.seal().await;
    let (org, out) = (app.org.to_string(), app.folder().join("log.jsonl"));
    let path = out.to_str().unwrap();
    let made = app.cli(&["audit", "export", "--org", &org, "--out", path]).await.expect();
    let text = fs::read_to_string(&out).unwrap();
    let entries = lines(&text).iter().filter(|line| line["type"] == "entry").count();
    assert!(entries > 0 && entries < text.lines().count());
    assert_eq!((&made["file"], &made["lines"]), (&json!(path), &json!(entries)));
    // A range without entries has none, though its file has a header.
    let nothing = app.folder().join("nothing.jsonl");
    let nothing = nothing.to_str().unwrap();
    let range = ["--from", "2001-01-01T00:00:00Z", "--to", "2001-01-02T00:00:00Z"];
    let made = app
        .cli(&[&["audit", "export", "--org", &org, "--out", nothing][..], &range[..]].concat())
        .await
        .expect();
    assert_eq!((&made["lines"], fs::read_to_string(nothing).unwrap().lines().count()), (&json!(0), 1));
    assert!(lines(&text).iter().any(|line| line["operation"] == "createAgent"));
    assert_eq!(fs::metadata(&out).unwrap().permissions().mode() & 0o777, 0o600, "it contains names");
    // Standard output gets the same lines and nothing else.
    let shown = app.cli(&["audit", "export", "--org", "Meridian Freight"]).await;
    assert!(shown.good(), "{}", shown.err);
    let entries =
        |text: &str| lines(text).into_iter().filter(|line| line["type"] == "entry").collect::<Vec<_>>();
    assert_eq!(entries(&shown.text), entries(&text));

    // Verified with only the public key, without database and keys.
    let key = app.cli(&["audit", "key"]).await.expect()["key"].as_str().unwrap().to_owned();
    let place = tempfile::tempdir().unwrap();
    let nothing = [("MUSTER_DATA_DIR", place.path().to_str().unwrap())];
    let verify = ["audit", "verify", "--key", &key, "--file"];
    let good = muster(&[&verify[..], &[path]].concat(), &nothing).await.expect();
    assert_eq!((&good["ok"], good["logs"].as_array().unwrap().len()), (&json!(true), 1));
    let changed = app.folder().join("changed.jsonl");
    fs::write(&changed, text.replace("createAgent", "removeAgent")).unwrap();
    let found = muster(&[&verify[..], &[changed.to_str().unwrap()]].concat(), &nothing).await;
    assert_eq!((found.code, &found.out["ok"]), (Some(1), &json!(false)), "{}", found.err);

    // The database's own log, for all organizations, before and after tampering.
    let all = app.cli(&["audit", "verify"]).await.expect();
    assert_eq!(all["ok"], true, "{all:#}");
    app.execute("UPDATE audit_log SET operation = 'nothing' WHERE operation = 'createAgent'", vec![]).await;
    let found = app.cli(&["audit", "verify", "--org", &org]).await;
    assert_eq!((found.code, &found.out["ok"]), (Some(1), &json!(false)), "{}", found.err);
    let other = app.cli(&["audit", "verify", "--org", &app.other_org.to_string()]).await.expect();
    assert_eq!(other["ok"], true, "the stranger's log is separate");
}

#[tokio::test]
async fn a_cut_log_falls_short_of_a_known_checkpoint() {
    let app = TestApp::start_with(|config| config.audit.checkpoint_lines = 1).await;
    app.agent().await;
    app.seal().await;
    assert_eq!(audit::checkpoint(&app.core).await.unwrap(), 1);
    let (org, out) = (app.org.to_string(), app.folder().join("log.jsonl"));
    app.cli(&["audit", "export", "--org", &org, "--out", out.to_str().unwrap()]).await.expect();
    let text = fs::read_to_string(&out).unwrap();
    let last = lines(&text).into_iter().rfind(|line| line["type"] == "checkpoint").unwrap();
    let known = format!("{}:{}", last["seq"], last["hash"].as_str().unwrap());
    let verify = ["audit", "verify", "--at-least", &known];
    let of_org = [&verify[..], &["--org", &org]].concat();
    let file = [&verify[..], &["--file", out.to_str().unwrap()]].concat();
    for arguments in [&of_org, &file] {
        assert_eq!(app.cli(arguments).await.expect()["ok"], true, "{arguments:?}");
    }
    for sql in [
        "DELETE FROM audit_log WHERE chain_seq > 1",
        "DELETE FROM audit_checkpoints",
        "UPDATE audit_chains SET last_seq = 1",
    ] {
        app.execute(sql, vec![]).await;
    }
    assert_eq!(
        app.cli(&["audit", "verify", "--org", &org]).await.expect()["ok"],
        true,
        "nothing in it shows that"
    );
    let found = app.cli(&of_org).await;
    assert_eq!((found.code, &found.out["logs"][0]["broken"]["fault"]), (Some(1), &json!("TRUNCATED")));
    // A different hash from the known one.
    let other = format!("1:{}", "00".repeat(32));
    let found = app.cli(&["audit", "verify", "--at-least", &other, "--org", &org]).await;
    assert_eq!((found.code, &found.out["logs"][0]["broken"]["fault"]), (Some(1), &json!("CHANGED")));
    app.refuses(&["audit", "verify", "--at-least", &known], 1, "VALIDATION_FAILED").await;
    app.refuses(&["audit", "verify", "--at-least", "7", "--org", &org], 2, "USAGE").await;
}

#[tokio::test]
async fn the_operators_actions_are_in_the_instance_log() {
    let app = TestApp::start().await;
    app.agent().await;
    let person =
        ["user", "create", "--email", "ann@example.org", "--name", "Ann", "--confirmed", "--password-stdin"];
    let kid = app.cli(&["key", "list"]).await.expect()["signing"][0]["kid"].as_str().unwrap().to_owned();
    let steps: [(&[&str], &str, &str); 13] = [
        (&["org", "create", "--name", "N", "--owner-email", "ann@example.org"], "createUser", "\"email\""),
        (&person, "createUser", "\"changed\""),
        (&["session", "create", "--email", "ann@example.org"], "createSession", "session"),
        (&["session", "create", "--link", "--email", "ann@example.org"], "createSignInLink", "{}"),
        (&["user", "disable", "ann@example.org"], "disableUser", "revoked"),
        (&["user", "enable", "ann@example.org"], "enableUser", "null"),
        (&["user", "reset-password", "ann@example.org"], "resetUserPassword", "\"changed\""),
        (&["key", "rotate", "--signing"], "rotateSigningKey", "false"),
        (&["key", "rotate", "--signing", "--now"], "rotateSigningKey", "true"),
        (&["key", "retire", &kid], "retireSigningKey", &kid),
        (&["key", "rotate", "--encryption"], "rotateSealingKey", "true"),
        (&["key", "rewrap", "--rest", "0"], "rewrapSecrets", "moved"),
        (&["key", "retire", "1", "--no-wait"], "retireSealingKey", "1"),
    ];
    let sql = "SELECT operation || ' ' || actor_kind || ' ' || CAST(changes AS TEXT) FROM audit_lines \
               WHERE organization_id IS NULL AND id > $1 ORDER BY id DESC LIMIT 1";
    for (arguments, operation, words) in steps {
        let last: i64 = app.one("SELECT COALESCE(MAX(id), 0) FROM audit_lines", vec![]).await;
        app.cli_with_input(arguments, "a secret of hers").await.expect();
        let line: String = app.one(sql, vec![last.into()]).await;
        assert!(
            line.starts_with(&format!("{operation} SYSTEM ")) && line.contains(words),
            "{arguments:?}: {line}"
        );
        assert!(!line.contains("a secret of hers"), "{line}");
    }
    let hidden = app.stranger.get(&format!("/export/audit/{}", app.org)).await;
    assert_eq!(hidden.problem(), (403, "NOT_A_MEMBER"));
}

#[tokio::test]
async fn a_refused_command_writes_and_replaces_no_file() {
    let app = TestApp::start().await;
    let (org, out) = (app.org.to_string(), app.folder().join("log.jsonl"));
    let path = out.to_str().unwrap();
    let export = ["audit", "export", "--out", path];
    for (rest, exit, code) in [
        (&[][..], 2, "USAGE"),
        (&["--instance", "--org", "1"], 2, "USAGE"),
        (&["--org", &org, "--from", "yesterday"], 2, "USAGE"),
        (
            &["--org", &org, "--from", "2027-01-01T00:00:00Z", "--to", "2026-01-01T00:00:00Z"],
            1,
            "VALIDATION_FAILED",
        ),
        (&["--org", "Nowhere"], 1, "NOT_FOUND"),
    ] {
        app.refuses(&[&export[..], rest].concat(), exit, code).await;
        assert!(!out.exists(), "{rest:?}");
    }
    fs::write(&out, "mine").unwrap();
    let said = app.refuses(&[&export[..], &["--instance"]].concat(), 1, "FAILED").await;
    assert!(said.contains(path) && said.contains("will not be overwritten"), "{said}");
    assert_eq!(fs::read_to_string(&out).unwrap(), "mine");
    let nowhere = app.folder().join("nowhere/log.jsonl");
    app.refuses(&["audit", "export", "--instance", "--out", nowhere.to_str().unwrap()], 1, "NOT_FOUND").await;

    for (rest, exit, code) in [
        (&["--file", "/nowhere/log"][..], 1, "NOT_FOUND"),
        (&["--file", path], 1, "VALIDATION_FAILED"),
        (&["--file", path, "--key", "junk"], 1, "VALIDATION_FAILED"),
        (&["--file", path, "--org", "1"], 2, "USAGE"),
        (&["--org", "Nowhere"], 1, "NOT_FOUND"),
    ] {
        let said = app.refuses(&[&["audit", "verify"][..], rest].concat(), exit, code).await;
        assert!(said.len() > 10, "{said}");
    }
}

#[tokio::test]
async fn sqlite_failed_backups_and_restores_leave_nothing_behind() {
    let app = TestApp::start().await;
    let names = |folder: &Path| -> Vec<_> {
        let mut names: Vec<_> =
            fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    };
    let before = names(app.folder());
    let nowhere = app.folder().join("nowhere/muster.backup");
    let said = app.refuses(&["backup", "--out", nowhere.to_str().unwrap()], 1, "FAILED").await;
    assert!(said.starts_with("folder ") && said.contains("nowhere does not exist"), "{said}");
    app.refuses(&["backup"], 2, "USAGE").await;
    app.refuses(&["restore", "/nowhere/muster.backup"], 1, "NOT_FOUND").await;
    assert_eq!(names(app.folder()), before);
    // A folder without a database.
    let place = tempfile::tempdir().unwrap();
    let empty = [("MUSTER_DATA_DIR", place.path().to_str().unwrap())];
    let out = app.folder().join("muster.backup");
    let said = muster(&["backup", "--out", out.to_str().unwrap()], &empty).await.refused(1, "NOT_FOUND");
    assert!(said.contains("no database"), "{said}");
    let said = muster(&["restore", "/nowhere/muster.backup"], &empty).await.refused(1, "NOT_FOUND");
    assert!(said.contains("/nowhere/muster.backup"), "{said}");
    muster(&["restore"], &empty).await.refused(2, "USAGE");
    assert_eq!((names(app.folder()), names(place.path()).len()), (before, 0));
}
