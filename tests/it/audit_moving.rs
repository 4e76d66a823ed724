//! The audit log while it is read: lines are sealed and removed meanwhile, and neither is taken for tampering.

use std::{pin::pin, sync::Arc, time::Duration};

use futures::{StreamExt, poll};
use muster::core::audit::{self, AuditKey, Report};
use serde_json::json;

use crate::harness::TestApp;

const DAY: Duration = Duration::from_hours(24);

/// Seals so many more lines.
async fn grow(app: &TestApp, lines: i64) {
    let tx = app.scope().begin().await.unwrap();
    for target_id in 0..lines {
        let (operation, changes) = ("startAgent", json!({}));
        audit::record(
            &tx,
            audit::Entry {
                operation,
                op: muster::base::enums::ChangeOp::Updated,
                kind: muster::base::enums::RecordKind::Agent,
                id: target_id,
                changes,
            },
        );
    }
    tx.commit().await.unwrap();
    while audit::seal(&app.core).await.unwrap() > 0 {}
}

async fn checkpoint(app: &TestApp) {
    assert_eq!(audit::checkpoint(&app.core, Some(app.org)).await.unwrap(), 1);
}

async fn verify(app: &TestApp) -> Report {
    let keys = AuditKey::known(&app.core.config.keys().unwrap());
    audit::verify(&app.core, app.org, &keys, None).await.unwrap()
}

/// Lines of which the first `old` are past their time.
async fn aged(old: i64) -> TestApp {
    let app = TestApp::start_with(|config| config.audit.retention_days = 30).await;
    grow(&app, old).await;
    checkpoint(&app).await;
    app.clock.advance(DAY * 20);
    grow(&app, 10).await;
    checkpoint(&app).await;
    app.clock.advance(DAY * 20);
    app
}

/// Does something else each time that the work waits for the database.
async fn amid<T>(work: impl Future<Output = T>, mut other: impl AsyncFnMut()) -> T {
    let mut work = pin!(work);
    for _ in 0..20 {
        match poll!(&mut work) {
            std::task::Poll::Ready(done) => return done,
            std::task::Poll::Pending => other().await,
        }
    }
    work.await
}

#[tokio::test]
async fn a_log_that_grows_while_it_is_verified_is_good() {
    let app = TestApp::start().await;
    grow(&app, 550).await;
    let report = amid(verify(&app), async || grow(&app, 1).await).await;
    assert!(report.ok, "{report}");
    let report = verify(&app).await;
    assert!(report.ok && report.lines > 550, "{report}");
}

#[tokio::test]
async fn a_log_whose_beginning_is_removed_while_it_is_verified_is_good() {
    let app = aged(600).await;
    let mut removed = 0;
    let report = amid(verify(&app), async || removed += audit::retain(&app.core).await.unwrap()).await;
    assert_eq!(removed, 600);
    assert!(report.ok, "{report}");
    let report = verify(&app).await;
    assert!(report.ok && report.begins_after_tombstone && report.lines == 10, "{report}");
}

#[tokio::test]
async fn an_export_that_retention_overtakes_says_so() {
    let app = aged(1_200).await;
    let lines = audit::export(Arc::clone(&app.core), app.org, (None, None)).await.unwrap();
    let mut lines = pin!(lines);
    for _ in 0..2 {
        lines.next().await.unwrap().unwrap();
    }
    assert_eq!(audit::retain(&app.core).await.unwrap(), 1_200);
    let problem = lines.next().await.unwrap().unwrap_err();
    assert!(problem.to_string().contains("Retention removed lines"), "{problem}");
    assert!(lines.next().await.is_none());
    // What nobody has signed for is exported as it is, and found by whoever checks it.
    app.execute("DELETE FROM audit_log WHERE chain_seq = 1204", vec![]).await;
    let lines = audit::export(Arc::clone(&app.core), app.org, (None, None)).await.unwrap();
    assert!(pin!(lines).all(async |page| page.is_ok()).await);
    assert!(!verify(&app).await.ok);
}

#[tokio::test]
async fn a_clock_that_has_jumped_removes_nothing() {
    let app = aged(20).await;
    app.clock.advance(DAY * 1_000);
    assert_eq!(audit::retain(&app.core).await.unwrap(), 0);
    // Nor does it once lines of that time are there.
    grow(&app, 5).await;
    checkpoint(&app).await;
    assert_eq!(audit::retain(&app.core).await.unwrap(), 0);
    assert_eq!(verify(&app).await.lines, 35);
    // What has gone on for as long as lines are kept is believed.
    app.clock.advance(DAY * 25);
    grow(&app, 5).await;
    checkpoint(&app).await;
    app.clock.advance(DAY * 6);
    assert_eq!(audit::retain(&app.core).await.unwrap(), 35);
    let report = verify(&app).await;
    assert!(report.ok && report.lines == 5, "{report}");
}

#[tokio::test]
async fn a_line_from_the_future_does_not_keep_the_log_for_ever() {
    let app = aged(20).await;
    let future = app.clock.now().plus(DAY * 900).0;
    app.execute("UPDATE audit_log SET at = $1 WHERE chain_seq = 7", vec![future.into()]).await;
    app.execute("UPDATE audit_checkpoints SET at = $1 WHERE seq = 20", vec![future.into()]).await;
    app.clock.advance(DAY * 5);
    grow(&app, 1).await;
    checkpoint(&app).await;
    app.clock.advance(DAY * 6);
    assert_eq!(audit::retain(&app.core).await.unwrap(), 30);
}

#[tokio::test]
async fn retention_with_nothing_to_remove_waits_for_nobody() {
    let app = TestApp::start_with(|config| config.audit.retention_days = 30).await;
    grow(&app, 20).await;
    checkpoint(&app).await;
    // SQLite has one writer, and this is it.
    let writing = app.scope().begin().await.unwrap();
    assert_eq!(audit::retain(&app.core).await.unwrap(), 0);
    drop(writing);
}
