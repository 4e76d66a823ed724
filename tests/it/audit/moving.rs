//! The audit log while it is being read: entries are sealed and removed meanwhile, and neither looks like
//! tampering.

use std::{pin::pin, sync::Arc, task::Poll, time::Duration};

use futures::{StreamExt, poll};
use muster::{
    base::{
        enums::{ChangeOp, RecordKind},
        ids::OrgId,
    },
    core::{Core, access::Scope, audit},
};
use sea_orm::{ConnectionTrait, TransactionTrait};
use serde_json::json;

use crate::{
    audit::{checkpoint, verify},
    harness::{TestApp, is_postgres, until},
};

const DAY: Duration = Duration::from_hours(24);

/// Writes this many entries in one transaction.
pub async fn write(scope: &Scope, lines: i64) {
    let tx = scope.begin().await.unwrap();
    for id in 0..lines {
        let (operation, op, kind) = ("startAgent", ChangeOp::Updated, RecordKind::Agent);
        audit::record(&tx, audit::Entry { operation, op, kind, id, changes: json!({}) });
    }
    tx.commit().await.unwrap();
}

/// Seals this many more entries.
async fn grow(app: &TestApp, lines: i64) {
    write(&app.scope(), lines).await;
    app.seal().await;
}

/// A service that removes entries after 30 days and signs every entry.
async fn retaining() -> TestApp {
    TestApp::start_with(|config| {
        config.audit.retention_days = 30;
        config.audit.checkpoint_lines = 1;
    })
    .await
}

/// Entries, with the first `old` past their retention.
async fn aged(old: i64) -> TestApp {
    let app = retaining().await;
    grow(&app, old).await;
    checkpoint(&app).await;
    app.clock.advance(DAY * 20);
    grow(&app, 10).await;
    checkpoint(&app).await;
    app.clock.advance(DAY * 20);
    app
}

/// Runs something else each time the work waits for the database. Work that never had to wait is begun again.
async fn amid<T>(work: impl AsyncFn() -> T, mut other: impl AsyncFnMut()) -> T {
    loop {
        let mut running = pin!(work());
        let mut came = false;
        for _ in 0..20 {
            match poll!(&mut running) {
                Poll::Ready(done) if came => return done,
                Poll::Ready(_) => break,
                Poll::Pending => other().await,
            }
            came = true;
        }
        if came {
            return running.await;
        }
    }
}

#[tokio::test]
async fn a_log_that_grows_during_verification_is_good() {
    let app = TestApp::start().await;
    grow(&app, 550).await;
    let report = amid(async || verify(&app).await, async || grow(&app, 1).await).await;
    assert!(report.ok, "{report}");
    let report = verify(&app).await;
    assert!(report.ok && report.lines > 550, "{report}");
}

#[tokio::test]
async fn a_log_truncated_by_retention_during_verification_is_good() {
    let app = aged(600).await;
    let mut left = 600;
    let report =
        amid(async || verify(&app).await, async || app.retain(std::mem::take(&mut left)).await).await;
    assert_eq!(left, 0);
    assert!(report.ok, "{report}");
    let report = verify(&app).await;
    assert!(report.ok && report.begins_after_tombstone && report.lines == 10, "{report}");
}

#[tokio::test]
async fn an_export_overtaken_by_retention_says_so() {
    let app = aged(1_200).await;
    let lines = audit::export(Arc::clone(&app.core), app.org, (None, None)).await.unwrap();
    let mut lines = pin!(lines);
    for _ in 0..2 {
        lines.next().await.unwrap().unwrap();
    }
    app.retain(1_200).await;
    let problem = lines.next().await.unwrap().unwrap_err();
    assert!(problem.to_string().contains("Retention removed lines"), "{problem}");
    assert!(lines.next().await.is_none());
    // Unsigned entries are exported as they are, and verification reports them.
    app.execute("DELETE FROM audit_log WHERE chain_seq = 1204", vec![]).await;
    let lines = audit::export(Arc::clone(&app.core), app.org, (None, None)).await.unwrap();
    assert!(pin!(lines).all(async |page| page.is_ok()).await);
    assert!(!verify(&app).await.ok);
}

#[tokio::test]
async fn a_clock_jump_removes_nothing() {
    let app = aged(20).await;
    app.clock.advance(DAY * 1_000);
    assert_eq!(audit::retain(&app.core).await.unwrap(), 0);
    // Not even once there are entries of that time.
    grow(&app, 5).await;
    checkpoint(&app).await;
    assert_eq!(audit::retain(&app.core).await.unwrap(), 0);
    assert_eq!(verify(&app).await.lines, 35);
    // Once the clock has been consistent for as long as entries are kept, it is believed.
    app.clock.advance(DAY * 25);
    grow(&app, 5).await;
    checkpoint(&app).await;
    app.clock.advance(DAY * 6);
    app.retain(35).await;
    let report = verify(&app).await;
    assert!(report.ok && report.lines == 5, "{report}");
}

#[tokio::test]
async fn an_entry_from_the_future_does_not_block_retention() {
    let app = aged(20).await;
    let future = app.clock.now().plus(DAY * 900).0;
    app.execute("UPDATE audit_log SET at = $1 WHERE chain_seq = 7", vec![future.into()]).await;
    app.execute("UPDATE audit_checkpoints SET at = $1 WHERE seq = 20", vec![future.into()]).await;
    app.clock.advance(DAY * 5);
    grow(&app, 1).await;
    checkpoint(&app).await;
    app.clock.advance(DAY * 6);
    app.retain(30).await;
}

#[tokio::test]
async fn retention_with_nothing_to_remove_takes_no_locks() {
    let app = retaining().await;
    grow(&app, 20).await;
    checkpoint(&app).await;
    // SQLite has a single writer, and this holds it.
    let writing = app.scope().begin().await.unwrap();
    assert_eq!(audit::retain(&app.core).await.unwrap(), 0);
    drop(writing);
}

#[tokio::test]
async fn reading_the_log_waits_for_no_one_and_writes_nothing() {
    let app = TestApp::start().await;
    grow(&app, 3).await;
    app.agent().await;
    let waiting = async || app.one::<i64>("SELECT COUNT(*) FROM audit_unsealed", vec![]).await;
    let read = async || {
        let log = "query($o: Id!) { auditLog(orgId: $o, page: 1, limit: 9) { total } }";
        let shown = app.owner.gql(log, json!({ "o": app.org })).await.data()["auditLog"]["total"].clone();
        let pages = audit::export(Arc::clone(&app.core), app.org, (None, None)).await.unwrap();
        let pages: Vec<_> = pages.map(Result::unwrap).collect().await;
        let exported = String::from_utf8(pages.concat()).unwrap().matches(r#""type":"entry""#).count();
        let report = verify(&app).await;
        (shown, exported, report.lines, report.unsealed)
    };
    assert_eq!(read().await, (json!(3), 3, 3, 3), "waiting entries are not shown yet");
    assert_eq!(waiting().await, 3, "reading seals nothing");
    // Someone else holds the sealer's lock, or SQLite's only writer.
    let writing = app.scope().begin().await.unwrap();
    if is_postgres() {
        writing.connection().execute_unprepared("SELECT pg_advisory_xact_lock(7210012)").await.unwrap();
    }
    assert_eq!(read().await, (json!(3), 3, 3, 3));
    writing.rollback().await.unwrap();
    app.seal().await;
    assert_eq!(read().await, (json!(6), 6, 6, 0));
}

/// The database's client processes.
async fn clients(app: &TestApp) -> Vec<i64> {
    let sql = "SELECT CAST(pid AS BIGINT) FROM pg_stat_activity \
               WHERE datname = current_database() AND backend_type = 'client backend'";
    app.column(sql).await
}

/// Works with a replica and ends it. The database publishes its read counts once its last client is gone.
async fn with_replica(app: &TestApp, work: impl AsyncFnOnce(&Arc<Core>)) {
    let known = clients(app).await;
    let replica = app.replica(None).await;
    work(&replica).await;
    replica.shut_down().await;
    until("the replica's connections end", async || clients(app).await.iter().all(|pid| known.contains(pid)))
        .await;
}

/// SQLite really deletes.
#[tokio::test]
async fn postgres_a_sealer_does_not_rescan_rows_of_a_snapshot() {
    let app = TestApp::start().await;
    // The database's autovacuum would be counted too.
    app.execute("ALTER TABLE audit_unsealed SET (autovacuum_enabled = false)", vec![]).await;
    let backup = app.connection().await;
    let backup = backup.begin().await.unwrap();
    backup.execute_unprepared("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ; SELECT 1").await.unwrap();
    let slow: i64 = app.one("SELECT nextval('audit_log_id_seq')", vec![]).await;
    with_replica(&app, async |writer| {
        write(&Scope::system(writer, OrgId(app.org)), 5_000).await;
        assert_eq!(audit::seal(writer).await.unwrap(), 5_000);
    })
    .await;
    app.execute("SELECT pg_stat_reset()", vec![]).await;
    with_replica(&app, async |sealer| {
        let waits = async || audit::seal(sealer).await.unwrap();
        assert_eq!(waits().await, 0);
        app.clock.advance(Duration::from_secs(11));
        for _ in 0..100 {
            assert_eq!(waits().await, 0);
        }
        // The entry of a transaction that was slow to commit has a lower id, but is still found.
        let late = "INSERT INTO audit_unsealed (id, organization_id, at, count, actor_kind, operation, outcome, changes) \
                    VALUES ($1, $2, 0, 1, 'SYSTEM', 'startAgent', 'ALLOWED', '{}')";
        app.execute(late, vec![slow.into(), app.org.into()]).await;
        app.clock.advance(Duration::from_secs(11));
        assert_eq!(waits().await, 1);
    })
    .await;
    let read = "SELECT heap_blks_read + heap_blks_hit + COALESCE(idx_blks_read + idx_blks_hit, 0) \
                FROM pg_statio_user_tables WHERE relname = 'audit_unsealed'";
    let (blocks, pages): (i64, i64) = (
        app.one(read, vec![]).await,
        app.one("SELECT pg_relation_size('audit_unsealed') / 8192", vec![]).await,
    );
    // Three scans of everything and a hundred of the end of the index.
    assert!(pages > 50 && blocks < 10 * pages + 600, "{blocks} blocks of {pages} pages");
    backup.rollback().await.unwrap();
}
