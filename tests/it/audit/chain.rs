//! The hash chain over the audit log: changing, removing, or inserting an entry, or cutting off the end, is
//! detected, both in the database and in an exported file by itself. Retention is distinguished from deletion.

use std::time::Duration;

use muster::core::audit::{self, Fault, Report, Verifier};
use proptest::{prelude::*, strategy::ValueTree, test_runner::TestRunner};
use sea_orm::{ConnectionTrait, Statement};
use serde_json::{Value, json};

use crate::{
    audit::{checkpoint, keys, moving::write, verify},
    harness::{TestApp, is_postgres},
};

async fn sealed(app: &TestApp, agents: usize) {
    for _ in 0..agents {
        app.agent().await;
    }
    app.seal().await;
}

/// A service that signs every entry.
async fn signing() -> TestApp {
    TestApp::start_with(|config| config.audit.checkpoint_lines = 1).await
}

async fn broken(app: &TestApp) -> (i64, Fault) {
    let report = verify(app).await;
    let broken = report.broken.unwrap_or_else(|| panic!("nothing was detected: {}", report.lines));
    (broken.seq, broken.fault)
}

#[tokio::test]
async fn an_untouched_log_verifies() {
    let app = signing().await;
    sealed(&app, 3).await;
    let report = verify(&app).await;
    assert!(report.ok, "{report}");
    assert_eq!((report.lines, report.signed_up_to, report.unsealed), (9, 0, 0));
    checkpoint(&app).await;
    app.agent().await;
    let report = verify(&app).await;
    assert_eq!((report.lines, report.signed_up_to, report.unsealed), (9, 9, 3));
    audit::seal(&app.core).await.unwrap();
    assert_eq!(verify(&app).await.lines, 12);
    // Each organization has its own chain, and so does the instance.
    app.other_agent().await;
    app.stranger.get(&format!("/v1/org/{}", app.org)).await;
    audit::write_refusals(&app.core, false).await.unwrap();
    audit::seal(&app.core).await.unwrap();
    let chains = audit::chains(&app.core).await.unwrap();
    assert_eq!(chains, [audit::INSTANCE, app.org, app.other_org]);
    for chain in chains {
        assert!(audit::verify(&app.core, chain, &keys(&app), None).await.unwrap().ok);
    }
}

#[tokio::test]
async fn tampering_is_detected() {
    let tampered: &[(&str, (i64, Fault))] = &[
        ("UPDATE audit_log SET operation = 'another' WHERE chain_seq = 4", (4, Fault::Changed)),
        ("UPDATE audit_log SET changes = '{}' WHERE chain_seq = 4", (4, Fault::Changed)),
        ("UPDATE audit_log SET organization_id = NULL WHERE chain_seq = 4", (4, Fault::Missing)),
        ("UPDATE audit_log SET at = at - 1 WHERE chain_seq = 9", (9, Fault::Changed)),
        ("DELETE FROM audit_log WHERE chain_seq = 4", (4, Fault::Missing)),
        ("DELETE FROM audit_log WHERE chain_seq = 1", (1, Fault::Missing)),
        ("DELETE FROM audit_log WHERE chain_seq >= 7", (7, Fault::Truncated)),
        (
            "DELETE FROM audit_log WHERE chain_seq >= 7; UPDATE audit_chains SET last_seq = 6",
            (7, Fault::Truncated),
        ),
        ("DELETE FROM audit_log; DELETE FROM audit_chains", (1, Fault::Truncated)),
        (
            "UPDATE audit_log SET chain_seq = -4 WHERE chain_seq = 4; UPDATE audit_log SET chain_seq = 4 WHERE \
             chain_seq = 5; UPDATE audit_log SET chain_seq = 5 WHERE chain_seq = -4",
            (4, Fault::Reordered),
        ),
        (
            "UPDATE audit_log SET chain_seq = chain_seq + 100 WHERE chain_seq > 4; INSERT INTO audit_log \
             (organization_id, at, actor_kind, operation, outcome, chain_seq, prev_hash, hash) SELECT organization_id, at, \
             actor_kind, 'forged', outcome, 5, hash, hash FROM audit_log WHERE chain_seq = 4; \
             UPDATE audit_log SET chain_seq = chain_seq - 99 WHERE chain_seq > 100",
            (5, Fault::Changed),
        ),
        ("UPDATE audit_checkpoints SET seq = 8", (8, Fault::BadStatement)),
        ("UPDATE audit_checkpoints SET kind = 'TOMBSTONE'", (9, Fault::BadStatement)),
    ];
    for (sql, expected) in tampered {
        let app = signing().await;
        sealed(&app, 3).await;
        checkpoint(&app).await;
        for sql in sql.split("; ") {
            app.execute(sql, vec![]).await;
        }
        assert_eq!(broken(&app).await, *expected, "{sql}");
    }
}

#[tokio::test]
async fn a_rehashed_chain_fails_at_its_checkpoint() {
    let app = signing().await;
    sealed(&app, 3).await;
    checkpoint(&app).await;
    // Someone with full access to the database, but without the key, lets the service seal a forged past.
    app.execute("UPDATE audit_log SET operation = 'another' WHERE chain_seq = 4", vec![]).await;
    for sql in [
        "INSERT INTO audit_unsealed (id, organization_id, at, count, actor_kind, actor_name, operation, outcome, target_kind, \
         target_id, changes) SELECT id, organization_id, at, count, actor_kind, actor_name, operation, outcome, target_kind, \
         target_id, changes FROM audit_log",
        "DELETE FROM audit_log",
        "DELETE FROM audit_chains",
    ] {
        app.execute(sql, vec![]).await;
    }
    audit::seal(&app.core).await.unwrap();
    assert_eq!(broken(&app).await, (9, Fault::Changed));
}

#[tokio::test]
async fn late_and_concurrent_entries_have_their_own_positions() {
    let (app, agent) = TestApp::with_agent().await;
    let late = app.scope().begin().await.unwrap();
    let entry = |n: i64| audit::Entry {
        operation: "startAgent",
        op: muster::base::enums::ChangeOp::Updated,
        kind: muster::base::enums::RecordKind::Agent,
        id: agent,
        changes: json!({ "n": n }),
    };
    // Its entry has a lower id than the others, like one whose transaction takes long to commit.
    let line = format!(
        "INSERT INTO audit_unsealed (organization_id, at, count, actor_kind, operation, outcome, changes) \
         VALUES ({}, 0, 1, 'SYSTEM', 'startAgent', 'ALLOWED', '{{}}')",
        app.org
    );
    let line = Statement::from_string(app.core.db.backend(), line);
    late.connection().execute_raw(line).await.unwrap();
    if is_postgres() {
        app.other_agent().await;
        app.agent().await;
        audit::seal(&app.core).await.unwrap();
        assert_eq!(verify(&app).await.lines, 6, "an uncommitted entry has no position yet");
    }
    late.commit().await.unwrap();
    let writers = (1..=40).map(|n| {
        let scope = app.scope();
        async move {
            let tx = scope.begin().await.unwrap();
            audit::record(&tx, entry(n));
            tx.commit().await.unwrap();
        }
    });
    let sealers = (0..4).map(|_| async {
        for _ in 0..10 {
            audit::seal(&app.core).await.unwrap();
            tokio::task::yield_now().await;
        }
    });
    futures::future::join(futures::future::join_all(writers), futures::future::join_all(sealers)).await;
    while audit::seal(&app.core).await.unwrap() > 0 {}
    let report = verify(&app).await;
    assert!(report.ok && report.unsealed == 0, "{report}");
    let lines: i64 =
        app.one("SELECT COUNT(*) FROM audit_log WHERE organization_id = $1", vec![app.org.into()]).await;
    assert_eq!(i64::try_from(report.lines).unwrap(), lines);
}

#[tokio::test]
async fn a_value_nested_too_deeply_is_logged_as_text() {
    let (app, agent) = TestApp::with_agent().await;
    let nested = |depth: usize| (0..depth).fold(json!("x"), |inner, _| json!({ "in": [inner] }));
    let tx = app.scope().begin().await.unwrap();
    audit::record(
        &tx,
        audit::Entry {
            operation: "updateAgent",
            op: muster::base::enums::ChangeOp::Updated,
            kind: muster::base::enums::RecordKind::Agent,
            id: agent,
            changes: json!({ "shallow": nested(40), "deep": nested(63), "name": "Marlow" }),
        },
    );
    tx.commit().await.unwrap();
    app.agent().await;
    app.seal().await;
    let report = verify(&app).await;
    assert!(report.ok && report.unsealed == 0, "it keeps no line behind it from being sealed: {report}");
    let log = "query($o: Id!) { auditLog(orgId: $o, page: 1, limit: 9, operation: \"updateAgent\") \
               { data { changes fields { field after } } } }";
    let shown = app.owner.gql(log, json!({ "o": app.org })).await.data()["auditLog"]["data"][0].clone();
    let expected = json!({ "shallow": nested(40), "deep": nested(63).to_string(), "name": "Marlow" });
    assert_eq!(shown["changes"], expected);
    assert_eq!(shown["fields"].as_array().unwrap().len(), 3);
}

#[tokio::test]
async fn an_entry_holds_exactly_what_was_written() {
    let app = TestApp::start().await;
    let create = "mutation($o: Id!, $i: CreateSkillInput!) { createSkill(orgId: $o, input: $i) { id } }";
    let new = json!({ "o": app.org, "i": { "name": "known", "content": "#" } });
    let skill = app.admin.gql(create, new).await.data()["createSkill"]["id"].clone();
    let path = format!("/v1/org/{}/skill/{skill}", app.org);
    let mean = [
        "'",
        "''",
        "\\",
        "\\'",
        "E'\\''",
        "$1",
        "?",
        "'; DROP TABLE audit_unsealed; --",
        "\n\r\t\u{8}\u{1a}\u{7f}",
        "%_\"`",
        "\u{feff}ſ̈☃𝄞",
        "\\x00",
        "\\u0041",
        "*/ COMMIT; /*",
    ];
    let any =
        proptest::collection::vec(any::<char>().prop_filter("no database takes it", |c| *c != '\0'), 1..40);
    let mut runner = TestRunner::deterministic();
    let any = std::iter::repeat_with(|| {
        any.new_tree(&mut runner).unwrap().current().into_iter().collect::<String>()
    });
    for text in mean.iter().map(|text| (*text).to_owned()).chain(any.take(60)) {
        let answer = app.admin.patch(&path, json!({ "description": text })).await;
        assert_eq!(answer.status, 200, "{text:?}: {}", answer.text);
        let written: String =
            app.one("SELECT CAST(changes AS TEXT) FROM audit_lines ORDER BY id DESC LIMIT 1", vec![]).await;
        let written: Value = serde_json::from_str(&written).unwrap();
        assert_eq!(written["description"]["after"], answer.body["description"], "{text:?}");
    }
}

#[tokio::test]
async fn postgres_entry_contents_never_appear_in_statement_texts() {
    let app = TestApp::start().await;
    let path = format!("/v1/org/{}/skill/{}", app.org, app.populate(1).await.skills[0]);
    // Statement texts end up in the service's log and in the database's statistics.
    let note = "CREATE TABLE said (query TEXT); CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
                INSERT INTO said VALUES (current_query()); RETURN NEW; END $$; \
                CREATE TRIGGER note BEFORE INSERT ON audit_unsealed FOR EACH ROW EXECUTE FUNCTION note(); \
                CREATE TRIGGER note BEFORE INSERT ON audit_log FOR EACH ROW EXECUTE FUNCTION note()";
    app.database.execute_unprepared(note).await.unwrap();
    app.owner.patch(&path, json!({ "description": "a canary" })).await.expect(200);
    app.seal().await;
    let lines = "SELECT COUNT(*) FROM audit_log WHERE CAST(changes AS TEXT) LIKE '%a canary%'";
    assert_eq!(app.one::<i64>(lines, vec![]).await, 1);
    let said: Vec<String> = app.column("SELECT query FROM said").await;
    assert!(said.len() >= 2, "{said:?}");
    assert!(said.iter().all(|query| !query.contains("canary") && !query.contains("owner")), "{said:?}");
}

#[tokio::test]
async fn checkpoints_are_signed_after_enough_entries_or_time() {
    let app = TestApp::start_with(|config| config.audit.checkpoint_lines = 5).await;
    sealed(&app, 1).await;
    assert_eq!(audit::checkpoint(&app.core).await.unwrap(), 0);
    app.clock.advance(Duration::from_secs(301));
    assert_eq!(audit::checkpoint(&app.core).await.unwrap(), 1);
    assert_eq!(audit::checkpoint(&app.core).await.unwrap(), 0, "there is nothing new");
    sealed(&app, 2).await;
    assert_eq!(audit::checkpoint(&app.core).await.unwrap(), 1);
    assert_eq!(verify(&app).await.statements, 2);
}

/// The lines of an export over HTTP.
async fn export(app: &TestApp, query: &str) -> Vec<Value> {
    let answer = app.admin.get(&format!("/export/audit/{}{query}", app.org)).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    assert_eq!(answer.header("content-type"), "application/x-ndjson");
    answer.text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn looked_at(app: &TestApp, lines: &[Value]) -> Report {
    let keys = keys(app);
    let mut verifier = Verifier::new(Some(app.org), &keys);
    for line in lines {
        verifier.take_line(line.clone());
    }
    verifier.finish(None, 0)
}

#[tokio::test]
async fn an_export_verifies_by_itself_in_full_or_in_part() {
    let app = signing().await;
    sealed(&app, 2).await;
    checkpoint(&app).await;
    app.clock.advance(Duration::from_secs(60));
    // More than one page.
    write(&app.scope(), 540).await;
    app.seal().await;
    let lines = export(&app, "").await;
    let report = looked_at(&app, &lines);
    // The header vouches for every entry, including those after the last checkpoint.
    assert_eq!((report.ok, report.lines, report.signed_up_to), (true, 546, 546), "{report}");
    assert_eq!(
        (&lines[0]["type"], &lines[7]["type"], &lines[7]["seq"]),
        (&json!("export"), &json!("checkpoint"), &json!(6))
    );
    let cut = looked_at(&app, &lines[..300]);
    assert_eq!(cut.broken.unwrap().fault, Fault::Truncated);
    app.seal().await;
    let part = export(&app, "?from=2026-06-01T12:00:30Z").await;
    assert_eq!(part.last().unwrap()["operation"], "exportAudit", "exporting the log has an entry");
    let report = looked_at(&app, &part);
    assert_eq!((report.ok, report.partial, report.first_seq), (true, true, Some(7)), "{report}");
    let nothing = export(&app, "?from=2030-06-01T12:00:30Z").await;
    assert_eq!(nothing.iter().filter(|line| line["type"] == "entry").count(), 0);
    assert!(looked_at(&app, &nothing).ok);
    let wrong = app.admin.get(&format!("/export/audit/{}?form=1&to=soon", app.org)).await;
    assert_eq!(wrong.violations(), [("form", "UNKNOWN_KEY"), ("to", "WRONG_TYPE")]);
}

#[tokio::test]
async fn only_administrators_export_the_log_and_only_their_own() {
    let app = TestApp::start().await;
    app.agent().await;
    app.other_agent().await;
    app.seal().await;
    let path = format!("/export/audit/{}", app.org);
    assert_eq!(app.operator.get(&path).await.problem(), (403, "PERMISSION_DENIED"));
    assert_eq!(app.stranger.get(&path).await.problem(), (403, "NOT_A_MEMBER"));
    assert_eq!(app.anonymous.get(&path).await.problem(), (401, "UNAUTHENTICATED"));
    let theirs = app.stranger.get(&format!("/export/audit/{}", app.other_org)).await;
    assert!(!theirs.text.contains(&format!("\"organization_id\":{}", app.org)));
    assert_eq!(theirs.text.matches("\"type\":\"entry\"").count(), 3);
}

#[tokio::test]
async fn an_export_can_be_checked_without_us() {
    let (app, agent) = TestApp::with_agent().await;
    let input = json!({ "name": "Zoë \"quoted\" \u{1f980}/", "description": "a\ttab", "cpuOverride": 1.5 });
    app.sets_agent(agent, input).await;
    app.seal().await;
    let file = app.folder().join("audit.jsonl");
    let lines: Vec<String> = export(&app, "").await.iter().map(Value::to_string).collect();
    std::fs::write(&file, lines.join("\n")).unwrap();
    let script = r#"
import hashlib, json, sys
prev, n = b"\0" * 32, 0
for line in open(sys.argv[1], encoding="utf-8"):
    entry = json.loads(line)
    if entry.pop("type") != "entry": continue
    own, before = bytes.fromhex(entry.pop("hash")), bytes.fromhex(entry.pop("prev_hash"))
    entry["actor_name"] = None
    text = json.dumps(entry, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
    assert before == prev and hashlib.sha256(before + text).digest() == own, line
    prev, n = own, n + 1
print(n)
"#;
    let checked =
        tokio::process::Command::new("python3").args(["-c", script]).arg(&file).output().await.unwrap();
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
    assert_eq!(String::from_utf8_lossy(&checked.stdout).trim(), "4");
}

#[tokio::test]
async fn retention_removes_old_entries_and_the_rest_still_verifies() {
    let app = TestApp::start_with(|config| {
        config.audit.retention_days = 30;
        config.audit.checkpoint_lines = 1;
    })
    .await;
    sealed(&app, 2).await;
    checkpoint(&app).await;
    app.clock.advance(Duration::from_secs(20 * 86_400));
    sealed(&app, 1).await;
    checkpoint(&app).await;
    assert_eq!(audit::retain(&app.core).await.unwrap(), 0, "nothing is old enough");
    app.clock.advance(Duration::from_secs(20 * 86_400));
    sealed(&app, 1).await;
    app.retain(6).await;
    assert_eq!(audit::retain(&app.core).await.unwrap(), 0);
    let report = verify(&app).await;
    assert!(report.ok && report.begins_after_tombstone, "{report}");
    assert_eq!((report.first_seq, report.lines), (Some(7), 6));
    let lines = export(&app, "").await;
    let report = looked_at(&app, &lines);
    assert!(report.ok && report.begins_after_tombstone, "{report}");
    // Without its tombstone, retention looks like deletion.
    app.execute("DELETE FROM audit_checkpoints WHERE kind = 'TOMBSTONE'", vec![]).await;
    assert_eq!(broken(&app).await, (1, Fault::Missing));
}

#[tokio::test]
async fn an_entry_names_the_policy_line_that_decided() {
    let (app, agent) = TestApp::with_agent().await;
    let path = format!("/v1/org/{}/agent/{agent}/start", app.org);
    app.viewer.post(&path, Value::Null).await;
    app.token(&["agent.view"]).await.post(&path, Value::Null).await;
    app.operator.post(&path, Value::Null).await.expect(200);
    audit::write_refusals(&app.core, false).await.unwrap();
    app.seal().await;
    let log = "query($o: Id!) { auditLog(orgId: $o, page: 1, limit: 9, permission: \"agent.edit\", operation: \"startAgent\") { data { outcome actorKind decidedBy chainSeq } } }";
    let data = app.owner.gql(log, json!({ "o": app.org })).await.data()["auditLog"]["data"].clone();
    let of = |outcome: &str, actor: &str| {
        let line =
            data.as_array().unwrap().iter().find(|l| l["outcome"] == outcome && l["actorKind"] == actor);
        line.unwrap()["decidedBy"].as_str().unwrap().to_owned()
    };
    assert!(of("ALLOWED", "USER").starts_with("policy.csv:") && of("ALLOWED", "USER").contains("OPERATOR"));
    assert_eq!(of("REFUSED", "USER"), "no line allows it");
    assert_eq!(of("REFUSED", "SERVICE_TOKEN"), "the token's own list of permissions");
    assert!(data[0]["chainSeq"].as_i64().is_some_and(|seq| seq > 3), "{data:#}");
}
