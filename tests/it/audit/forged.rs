//! The audit log against someone who writes to the database but has no keys: the service signs nothing for them, removes
//! nothing for them, and verification names what they hid.

use std::time::Duration;

use muster::core::audit::{self, Fault, Report};
use serde_json::{Value, json};

use crate::{
    audit::{keys, verify},
    harness::TestApp,
};

const DAY: Duration = Duration::from_hours(24);

/// A service that signs every entry, keeps entries for 30 days, and has a metrics page.
async fn signing() -> TestApp {
    TestApp::start_with(|config| {
        config.audit.checkpoint_lines = 1;
        config.audit.retention_days = 30;
        config.metrics.listen = Some("127.0.0.1:0".parse().unwrap());
    })
    .await
}

/// Seals the three entries of an agent.
async fn grow(app: &TestApp) {
    app.agent().await;
    app.seal().await;
}

/// The number of checkpoints signed now.
async fn signed(app: &TestApp) -> u64 {
    audit::checkpoint(&app.core).await.unwrap()
}

/// Entries 1 to 9 are signed, and 10 to 12 are not.
async fn begun() -> TestApp {
    let app = signing().await;
    for _ in 0..3 {
        grow(&app).await;
    }
    assert_eq!(signed(&app).await, 1);
    grow(&app).await;
    app
}

async fn forge(app: &TestApp, sql: &str) {
    for sql in sql.split("; ") {
        app.execute(sql, vec![]).await;
    }
}

async fn verify_log(app: &TestApp, log: i64) -> Report {
    audit::verify(&app.core, log, &keys(app), None).await.unwrap()
}

async fn count(app: &TestApp, what: &str) -> i64 {
    app.one(&format!("SELECT COUNT(*) FROM {what}"), vec![]).await
}

/// Rewrites the whole log. The service itself gives it new hashes.
async fn rewrite(app: &TestApp) {
    const COLUMNS: &str =
        "id, organization_id, at, count, actor_kind, operation, outcome, target_kind, target_id, changes";
    let unsealed = format!(
        "INSERT INTO audit_unsealed ({COLUMNS}, request_id) SELECT {COLUMNS}, 'another' FROM audit_log"
    );
    for sql in [&unsealed, "DELETE FROM audit_log", "DELETE FROM audit_chains"] {
        app.execute(sql, vec![]).await;
    }
    // The sealer looks at all ids again.
    app.clock.advance(Duration::from_secs(11));
    app.seal().await;
    assert!(count(app, "audit_log").await >= 12);
}

#[tokio::test]
async fn what_does_not_continue_the_last_checkpoint_is_not_signed() {
    for sql in [
        "UPDATE audit_log SET operation = 'nothing' WHERE chain_seq = 11",
        "UPDATE audit_log SET hash = prev_hash WHERE chain_seq = 12",
        "UPDATE audit_log SET chain_seq = 13 WHERE chain_seq = 12; UPDATE audit_chains SET last_seq = 13",
        "DELETE FROM audit_log WHERE chain_seq = 11",
        "UPDATE audit_chains SET last_hash = (SELECT hash FROM audit_log WHERE chain_seq = 11)",
        "UPDATE audit_chains SET last_seq = 20",
        "UPDATE audit_checkpoints SET seq = 8",
        "UPDATE audit_checkpoints SET hash = (SELECT hash FROM audit_log WHERE chain_seq = 8)",
        "UPDATE audit_checkpoints SET at = at - 1",
        "DELETE FROM audit_checkpoints",
    ] {
        let app = begun().await;
        let before = count(&app, "audit_checkpoints").await;
        forge(&app, sql).await;
        let left = before - i64::from(sql.starts_with("DELETE FROM audit_checkpoints"));
        assert_eq!((signed(&app).await, count(&app, "audit_checkpoints").await), (0, left), "{sql}");
        let page = app.measured().await.get("/metrics").await.text;
        assert!(page.lines().any(|line| line == "muster_audit_refused 1"), "{sql}");
    }
}

#[tokio::test]
async fn a_rewritten_past_is_not_signed_by_any_process() {
    let app = begun().await;
    rewrite(&app).await;
    assert_eq!(signed(&app).await, 0);
    let other = app.replica(None).await;
    assert_eq!(audit::checkpoint(&other).await.unwrap(), 0);
    other.shut_down().await;
    assert_eq!(count(&app, "audit_checkpoints").await, 1);
    assert_eq!(verify(&app).await.broken.unwrap().fault, Fault::Changed);
    // The process that signed knows that there was a checkpoint.
    forge(&app, "DELETE FROM audit_checkpoints").await;
    app.clock.advance(Duration::from_mins(10));
    assert_eq!((signed(&app).await, count(&app, "audit_checkpoints").await), (0, 0));
}

#[tokio::test]
async fn a_chain_that_is_as_it_was_is_signed_again() {
    let app = begun().await;
    let operation: String = app.one("SELECT operation FROM audit_log WHERE chain_seq = 11", vec![]).await;
    forge(&app, "UPDATE audit_log SET operation = 'nothing' WHERE chain_seq = 11").await;
    assert_eq!(signed(&app).await, 0);
    let doctor = app.cli(&["doctor"]).await;
    let found = doctor.out["findings"].as_array().unwrap().iter().find(|found| found["check"] == "audit log");
    let found = found.unwrap();
    assert!(!doctor.good() && found["level"] == "bad", "{found}");
    let named = format!("organization {}: line 11 is not as it was sealed", app.org);
    assert_eq!(found["found"], named);
    // Another log is signed meanwhile.
    app.other_agent().await;
    app.seal().await;
    assert_eq!(signed(&app).await, 1);
    app.execute("UPDATE audit_log SET operation = $1 WHERE chain_seq = 11", vec![operation.into()]).await;
    assert_eq!(signed(&app).await, 0, "a refused chain is left alone for a while");
    app.clock.advance(Duration::from_mins(10));
    assert_eq!(signed(&app).await, 1);
    let report = verify(&app).await;
    assert_eq!((report.ok, report.signed_up_to), (true, 12), "{report}");
    let page = app.measured().await.get("/metrics").await.text;
    assert!(page.lines().any(|line| line == "muster_audit_refused 0"));
}

#[tokio::test]
async fn the_operator_resumes_a_broken_log() {
    let app = begun().await;
    let org = app.org.to_string();
    let resume = ["audit", "resume", "--org", &org];
    app.refuses(&resume, 1, "CONFLICT").await;
    forge(&app, "UPDATE audit_log SET operation = 'nothing' WHERE chain_seq = 11").await;
    assert_eq!(signed(&app).await, 0);
    assert_eq!(app.cli(&resume).await.expect(), json!({ "seq": 12 }));
    assert_eq!(count(&app, "audit_lines WHERE operation = 'resumeAuditLog'").await, 1);
    assert_eq!(signed(&app).await, 0);
    let page = app.measured().await.get("/metrics").await.text;
    assert!(page.lines().any(|line| line == "muster_audit_refused 0"), "it is no longer due");
    grow(&app).await;
    app.clock.advance(Duration::from_mins(10));
    // The instance's own log has a line now.
    assert_eq!(signed(&app).await, 2);
    let broken = verify(&app).await.broken.unwrap();
    assert_eq!((broken.seq, broken.fault), (11, Fault::Changed));
    assert!(header(&app).await["signature"].is_string());
    // Lost entries stay lost: nothing is signed below a checkpoint.
    forge(
        &app,
        "DELETE FROM audit_log WHERE chain_seq > 13 AND organization_id IS NOT NULL; \
                 UPDATE audit_chains SET last_seq = 13 WHERE chain <> 0",
    )
    .await;
    app.refuses(&resume, 1, "CONFLICT").await;
}

/// The header of an export over HTTP.
async fn header(app: &TestApp) -> Value {
    let answer = app.admin.get(&format!("/export/audit/{}", app.org)).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    serde_json::from_str(answer.text.lines().next().unwrap()).unwrap()
}

#[tokio::test]
async fn an_export_is_signed_if_it_continues_the_last_checkpoint() {
    let app = begun().await;
    let good = header(&app).await;
    assert!(good["signature"].is_string() && good["seq"] == 12, "{good}");
    forge(&app, "UPDATE audit_log SET operation = 'nothing' WHERE chain_seq = 11").await;
    let forged = header(&app).await;
    assert!(forged["signature"].is_null() && forged["seq"] == 12, "{forged}");
}

#[tokio::test]
async fn a_part_of_a_rewritten_past_is_not_signed() {
    let app = signing().await;
    grow(&app).await;
    let early = app.clock.now();
    app.clock.advance(DAY);
    for _ in 0..3 {
        grow(&app).await;
        assert_eq!(signed(&app).await, 1);
    }
    let path = format!("/export/audit/{}?to={}", app.org, early.plus(Duration::from_secs(1)));
    let part = async || -> Value {
        let answer = app.admin.get(&path).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        serde_json::from_str(answer.text.lines().next().unwrap()).unwrap()
    };
    let good = part().await;
    assert!(good["signature"].is_string() && good["seq"] == 3, "{good}");
    rewrite(&app).await;
    let forged = part().await;
    assert!(forged["signature"].is_null() && forged["seq"] == 3, "{forged}");
    // Without any checkpoint, this process remembers one.
    forge(&app, "DELETE FROM audit_checkpoints").await;
    for forged in [part().await, header(&app).await] {
        assert!(forged["signature"].is_null(), "{forged}");
    }
}

#[tokio::test]
async fn a_signature_over_a_rewritten_past_is_not_trusted() {
    let app = begun().await;
    rewrite(&app).await;
    forge(&app, "DELETE FROM audit_checkpoints").await;
    let other = app.replica(None).await;
    assert_eq!(audit::checkpoint(&other).await.unwrap(), 1, "it knows of no other past");
    other.shut_down().await;
    grow(&app).await;
    assert_eq!(signed(&app).await, 0);
    assert!(header(&app).await["signature"].is_null());
}

#[tokio::test]
async fn foreign_statements_at_the_end_are_removed_on_resume() {
    for sql in [
        // As after the loss of the key file.
        "UPDATE audit_checkpoints SET key_id = 'another'",
        "UPDATE audit_checkpoints SET seq = 1000",
    ] {
        let app = signing().await;
        grow(&app).await;
        assert_eq!(signed(&app).await, 1);
        forge(&app, sql).await;
        assert!(!verify(&app).await.ok, "{sql}");
        let org = app.org.to_string();
        assert_eq!(app.cli(&["audit", "resume", "--org", &org]).await.expect(), json!({ "seq": 3 }), "{sql}");
        grow(&app).await;
        // The instance's own log has a line now.
        assert_eq!(signed(&app).await, 2, "{sql}");
        let report = verify(&app).await;
        assert_eq!((report.ok, report.signed_up_to), (true, 6), "{sql}: {report}");
    }
}

#[tokio::test]
async fn a_checkpoint_reads_only_the_lines_since_the_last() {
    let app = begun().await;
    // Signed entries are not read again: verification finds the change, the next checkpoint doesn't.
    forge(&app, "UPDATE audit_log SET operation = 'nothing' WHERE chain_seq = 4").await;
    assert_eq!(signed(&app).await, 1);
    assert_eq!(verify(&app).await.broken.unwrap().seq, 4);
}

#[tokio::test]
async fn checkpoints_made_to_look_old_remove_nothing() {
    let app = signing().await;
    grow(&app).await;
    assert_eq!(signed(&app).await, 1);
    app.clock.advance(DAY * 20);
    for _ in 0..2 {
        grow(&app).await;
        assert_eq!(signed(&app).await, 1);
    }
    app.clock.advance(DAY * 11);
    // The entries 4 to 6, and their checkpoint, are 11 days old.
    forge(
        &app,
        "UPDATE audit_log SET at = at - 1728000000 WHERE chain_seq BETWEEN 4 AND 6; \
         UPDATE audit_checkpoints SET at = at - 1728000000 WHERE seq = 6",
    )
    .await;
    assert_eq!(audit::retain(&app.core).await.unwrap(), 0);
    assert_eq!(count(&app, "audit_checkpoints WHERE kind = 'TOMBSTONE'").await, 0);
    assert_eq!(count(&app, "audit_log").await, 9);
    forge(
        &app,
        "UPDATE audit_log SET at = at + 1728000000 WHERE chain_seq BETWEEN 4 AND 6; \
         UPDATE audit_checkpoints SET at = at + 1728000000 WHERE seq = 6",
    )
    .await;
    app.retain(3).await;
    let report = verify(&app).await;
    assert!(report.ok && report.lines == 6, "{report}");
}

#[tokio::test]
async fn a_forged_tombstone_removes_nothing() {
    let app = begun().await;
    forge(
        &app,
        "INSERT INTO audit_checkpoints (chain, kind, seq, hash, at, key_id, signature) \
         SELECT chain, 'TOMBSTONE', seq, hash, at, key_id, signature FROM audit_checkpoints",
    )
    .await;
    assert_eq!(audit::retain(&app.core).await.unwrap(), 0);
    assert_eq!(count(&app, "audit_log").await, 12);
}

#[tokio::test]
async fn a_row_that_claims_later_checkpoints_is_corrected() {
    for sql in [
        "UPDATE audit_chains SET checkpoint_seq = last_seq + 1000",
        "UPDATE audit_chains SET checkpoint_seq = last_seq",
        "UPDATE audit_chains SET checkpoint_at = checkpoint_at + 100000000000",
    ] {
        let app = TestApp::start().await;
        grow(&app).await;
        app.clock.advance(Duration::from_mins(5));
        assert_eq!((audit::mend(&app.core).await.unwrap(), signed(&app).await), (0, 1));
        grow(&app).await;
        assert_eq!(audit::mend(&app.core).await.unwrap(), 0);
        forge(&app, sql).await;
        app.clock.advance(Duration::from_mins(5));
        assert_eq!(signed(&app).await, 0, "{sql}");
        assert_eq!(audit::mend(&app.core).await.unwrap(), 1, "{sql}");
        assert_eq!((signed(&app).await, audit::mend(&app.core).await.unwrap()), (1, 0), "{sql}");
    }
    // Before the first checkpoint, only the clock's time can be compared with.
    let app = TestApp::start().await;
    grow(&app).await;
    forge(&app, "UPDATE audit_chains SET checkpoint_at = checkpoint_at + 100000000000").await;
    assert_eq!(audit::mend(&app.core).await.unwrap(), 1);
    app.clock.advance(Duration::from_mins(5));
    assert_eq!(signed(&app).await, 1);
}

#[tokio::test]
async fn a_hidden_log_falls_short_of_its_known_checkpoint() {
    let app = signing().await;
    app.agent().await;
    app.other_agent().await;
    app.seal().await;
    assert_eq!(signed(&app).await, 2);
    let mut known = Vec::new();
    for log in [app.org, app.other_org] {
        let hash: Vec<u8> =
            app.one("SELECT hash FROM audit_checkpoints WHERE chain = $1", vec![log.into()]).await;
        known.push(format!("{log}:3:{}", hex::encode(hash)));
    }
    let both = ["audit", "verify", "--at-least", &known[0], "--at-least", &known[1]];
    assert_eq!(app.cli(&both).await.expect()["ok"], true);
    for table in
        ["audit_log WHERE organization_id", "audit_chains WHERE chain", "audit_checkpoints WHERE chain"]
    {
        app.execute(&format!("DELETE FROM {table} = $1"), vec![app.org.into()]).await;
    }
    let of = |out: &Value, log: i64| {
        out["logs"].as_array().unwrap().iter().find(|report| report["organization_id"] == log).cloned()
    };
    // The database shows nothing but an organization without a log.
    let all = app.cli(&["audit", "verify"]).await.expect();
    let hidden = of(&all, app.org).unwrap();
    assert_eq!((&hidden["ok"], &hidden["lines"]), (&json!(true), &json!(0)));
    let found = app.cli(&both).await;
    assert_eq!(found.code, Some(1), "{}", found.err);
    assert_eq!(of(&found.out, app.org).unwrap()["broken"]["fault"], "TRUNCATED");
    assert_eq!(of(&found.out, app.other_org).unwrap()["ok"], true);
    // Also without its hash, and for an organization that has no row left.
    for (log, place) in [(app.org, 1), (987_654, 5)] {
        let found = app.cli(&["audit", "verify", "--at-least", &format!("{log}:{place}")]).await;
        assert_eq!(found.code, Some(1), "{}", found.err);
        assert_eq!(of(&found.out, log).unwrap()["broken"]["fault"], "TRUNCATED");
    }
    let other = app.other_org.to_string();
    let said = app
        .refuses(&["audit", "verify", "--at-least", &known[0], "--org", &other], 1, "VALIDATION_FAILED")
        .await;
    assert!(said.contains("is not verified"), "{said}");
}

#[tokio::test]
async fn what_is_left_of_a_hidden_log_is_reported() {
    let left: &[(&str, i64, Fault)] = &[
        // Entries without a row.
        ("DELETE FROM audit_checkpoints; DELETE FROM audit_chains", 1, Fault::Inserted),
        // A row without entries.
        ("DELETE FROM audit_checkpoints; DELETE FROM audit_log", 1, Fault::Truncated),
        (
            "DELETE FROM audit_checkpoints; DELETE FROM audit_log; UPDATE audit_chains SET last_seq = 0",
            1,
            Fault::Truncated,
        ),
        // A row that ends before its entries.
        ("DELETE FROM audit_checkpoints; UPDATE audit_chains SET last_seq = 10", 11, Fault::Inserted),
    ];
    for (sql, seq, fault) in left {
        let app = begun().await;
        forge(&app, sql).await;
        assert!(audit::chains(&app.core).await.unwrap().contains(&app.org));
        let broken = verify(&app).await.broken.unwrap();
        assert_eq!((broken.seq, broken.fault), (*seq, *fault), "{sql}");
    }
    // Entries given to another organization, and a row to one that does not exist.
    let app = begun().await;
    let other = app.other_org;
    forge(
        &app,
        &format!("UPDATE audit_log SET organization_id = {other}; UPDATE audit_chains SET chain = 987654"),
    )
    .await;
    assert_eq!(audit::chains(&app.core).await.unwrap(), [audit::INSTANCE, app.org, other, 987_654]);
    for (log, fault) in [(app.org, Fault::Truncated), (other, Fault::Changed), (987_654, Fault::Truncated)] {
        assert_eq!(verify_log(&app, log).await.broken.unwrap().fault, fault, "{log}");
    }
}
