//! Background jobs: they leave SQLite's single writer to those who wait for it, and limit what would only
//! grow.

use std::{
    collections::BTreeSet,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use futures::{FutureExt, future::join_all};
use muster::jobs::{self, PERIODIC_JOBS, PeriodicJob, RETENTION};
use serde_json::json;

use crate::harness::{TestApp, is_postgres};

const DAY: i64 = 86_400_000;

#[tokio::test]
async fn sqlite_writers_wait_in_one_queue() {
    let app = TestApp::start().await;
    let held = app.scope().begin().await.unwrap();
    let order = Arc::new(Mutex::new(Vec::new()));
    let writers = (0..16).map(|n| {
        let (scope, order) = (app.scope(), Arc::clone(&order));
        async move {
            let tx = scope.begin().await.unwrap();
            order.lock().unwrap().push(n);
            tx.commit().await.unwrap();
        }
    });
    let ((), _) = tokio::join!(async { held.commit().await.unwrap() }, join_all(writers));
    assert_eq!(*order.lock().unwrap(), (0..16).collect::<Vec<_>>());
}

#[tokio::test]
async fn idle_jobs_do_not_wait_for_writers() {
    let app = TestApp::start().await;
    // The keys of a service under test are only those in its file; a replica refreshes its row each time.
    let jobs = || PERIODIC_JOBS.iter().filter(|job| !["keys.signing", "replicas.report"].contains(&job.name));
    // All due work is done.
    for job in jobs() {
        (job.run)(&app.core).await.unwrap();
    }
    // SQLite has a single writer, and this holds it.
    let writing = app.scope().begin().await.unwrap();
    for job in jobs() {
        assert_eq!((job.run)(&app.core).await.unwrap(), 0, "{}", job.name);
    }
    drop(writing);
}

static FRAGILE_RUNS: AtomicU64 = AtomicU64::new(0);

/// Its first run panics before its work begins, the second in the middle of it.
static FRAGILE: [PeriodicJob; 1] = [PeriodicJob::every("test.fragile", Duration::from_millis(1), |_| {
    let run = FRAGILE_RUNS.fetch_add(1, Ordering::SeqCst);
    assert!(run != 0, "the first run fails");
    let job = async move {
        tokio::task::yield_now().await;
        assert!(run != 1, "so does the second");
        Ok(0)
    };
    job.boxed()
})];

#[tokio::test]
async fn a_job_that_panics_runs_again() {
    let app = TestApp::start().await;
    app.expects_failures();
    jobs::start(&app.core, &FRAGILE);
    while FRAGILE_RUNS.load(Ordering::SeqCst) < 3 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    app.core.tasks.stopping.cancel();
}

#[tokio::test]
async fn every_table_declares_what_bounds_it() {
    let app = TestApp::start().await;
    let tables = if is_postgres() {
        "SELECT CAST(table_name AS TEXT) FROM information_schema.tables WHERE table_schema = 'public' AND table_type = 'BASE TABLE'"
    } else {
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' \
         AND name NOT LIKE 'messages\\_fts\\_%' ESCAPE '\\'"
    };
    let mut tables: BTreeSet<String> = app.column(tables).await.into_iter().collect();
    tables.remove("_sqlx_migrations");
    let other = if is_postgres() { "messages_fts" } else { "message_search" };
    let known: BTreeSet<String> =
        RETENTION.iter().map(|kept| kept.table.to_owned()).filter(|table| table != other).collect();
    assert_eq!(known, tables, "src/jobs/retention.rs has a line for each table");
    assert!(RETENTION.is_sorted_by_key(|kept| kept.table));
}

#[tokio::test]
async fn expired_rows_are_removed_and_nothing_else_is() {
    let app = TestApp::start().await;
    let (now, org, user) = (app.clock.now().0, app.org, app.owner.user);
    let count = async |table: &str| app.one::<i64>(&format!("SELECT COUNT(*) FROM {table}"), vec![]).await;
    muster::jobs::sweep(&app.core).await.unwrap();
    let before = [count("sessions").await, count("service_tokens").await];
    for (n, end) in [now - 2 * DAY, now + DAY].into_iter().enumerate() {
        let sql = "INSERT INTO sessions (user_id, family, kind, token_hash, created_at, expires_at) \
                   VALUES ($1, 'f', 'TOKENS', $2, 0, $3)";
        app.execute(sql, vec![user.into(), vec![u8::try_from(n).unwrap(); 32].into(), end.into()]).await;
    }
    let long_ago = now - 400 * DAY;
    for (n, revoked) in [long_ago, long_ago, long_ago, now - DAY].into_iter().enumerate() {
        let sql = "INSERT INTO service_tokens (organization_id, name, name_folded, token_hash, hint, created_at, revoked_at) \
                   VALUES ($1, $2, $2, $3, 'abcd', 0, $4)";
        let hash = vec![100 + u8::try_from(n).unwrap(); 32];
        app.execute(sql, vec![org.into(), n.to_string().into(), hash.into(), revoked.into()]).await;
    }
    // The first has decided something; the second has caused a turn.
    let sql = "INSERT INTO approvals (organization_id, kind, title, title_folded, status, outcome, decided_by_token_id, created_at, updated_at) \
               SELECT $1, 'ACTION', 'x', 'x', 'RESOLVED', 'APPROVED', id, 0, 0 FROM service_tokens WHERE name = '0'";
    app.execute(sql, vec![org.into()]).await;
    let agent = app.agent().await;
    let sql = "INSERT INTO turns (organization_id, conversation_id, agent_id, cause, caused_by_token_id, state, ended_at, \
               created_at, updated_at) SELECT $1, $2, $3, 'API', id, 'DONE', 0, 0, 0 FROM service_tokens WHERE name = '1'";
    app.execute(sql, vec![org.into(), app.conversation(agent).await.into(), agent.into()]).await;
    for (n, end) in [now - 91 * DAY, now - DAY].into_iter().enumerate() {
        let sql = "INSERT INTO invitations (organization_id, email, email_folded, role, token_hash, created_at, expires_at) \
                   VALUES ($1, $2, $2, 'VIEWER', $3, 0, $4)";
        let (email, hash) = (format!("{n}@example.org"), vec![200 + u8::try_from(n).unwrap(); 32]);
        app.execute(sql, vec![org.into(), email.into(), hash.into(), end.into()]).await;
    }
    for (created, acknowledged) in
        [(now - 31 * DAY, None), (now - DAY, None), (now - 9 * DAY, Some(now - 8 * DAY)), (now, Some(now))]
    {
        let sql = "INSERT INTO commands (organization_id, server_id, agent_id, generation, kind, payload, created_at, \
                   expires_at, acknowledged_at) SELECT organization_id, server_id, id, 1, 'SYNC', '{\"kind\":\"SYNC\"}', $1, \
                   $2, $3 FROM agents WHERE id = $4";
        let end = created + 30 * DAY;
        app.execute(sql, vec![created.into(), end.into(), acknowledged.into(), agent.into()]).await;
    }
    for n in 0..203 {
        let sql = "INSERT INTO policy_versions (organization_id, text, version, author_kind, reason, at) \
                   VALUES ($1, $2, $2, 'OPERATOR', 'so', 0)";
        app.execute(sql, vec![org.into(), n.to_string().into()]).await;
    }
    assert_eq!(muster::jobs::sweep(&app.core).await.unwrap(), 1 + 1 + 1 + 2 + 3);
    assert_eq!(muster::jobs::sweep(&app.core).await.unwrap(), 0);
    assert_eq!([count("sessions").await, count("service_tokens").await], [before[0] + 1, before[1] + 3]);
    assert_eq!(app.column::<String>("SELECT name FROM service_tokens WHERE name = '2'").await, [""; 0]);
    assert_eq!((count("invitations").await, count("commands").await), (1, 2));
    let oldest: i64 = app.one("SELECT MIN(CAST(text AS BIGINT)) FROM policy_versions", vec![]).await;
    assert_eq!(oldest, 3, "the newest 200 stay");
}

async fn insert_expired_session(app: &TestApp) {
    let sql = "INSERT INTO sessions (user_id, family, kind, token_hash, created_at, expires_at) \
               VALUES ($1, 'over', 'TOKENS', $2, 0, 0)";
    app.execute(sql, vec![app.owner.user.into(), vec![7_u8; 32].into()]).await;
}

/// How many of them are left.
async fn expired_sessions(app: &TestApp) -> i64 {
    app.one("SELECT COUNT(*) FROM sessions WHERE family = 'over'", vec![]).await
}

/// SQLite has a single writer.
#[tokio::test]
async fn postgres_a_row_that_changes_while_it_is_swept_stays() {
    let app = TestApp::start().await;
    jobs::sweep(&app.core).await.unwrap();
    insert_expired_session(&app).await;
    let longer = "UPDATE sessions SET expires_at = 9223372036854775807 WHERE family = 'over'";
    let swept = Box::pin(app.while_changed(longer, None, jobs::sweep(&app.core))).await;
    assert_eq!(swept.unwrap(), 0);
    assert_eq!(expired_sessions(&app).await, 1);
}

#[tokio::test]
async fn a_table_that_can_not_be_swept_keeps_no_other_waiting() {
    let app = TestApp::start().await;
    insert_expired_session(&app).await;
    app.execute("ALTER TABLE approval_snoozes RENAME TO away", vec![]).await;
    assert!(jobs::sweep(&app.core).await.is_err());
    assert_eq!(expired_sessions(&app).await, 0);
    app.execute("ALTER TABLE away RENAME TO approval_snoozes", vec![]).await;
    assert_eq!(jobs::sweep(&app.core).await.unwrap(), 0);
}

#[tokio::test]
async fn a_list_without_pages_is_bounded() {
    let app = TestApp::start().await;
    let image = app.image().await;
    let numbers = if is_postgres() {
        "SELECT n FROM generate_series(1, 1200) AS n"
    } else {
        "WITH RECURSIVE s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < 1200) SELECT n FROM s"
    };
    let sql = format!(
        "INSERT INTO images (organization_id, name, name_folded, reference, created_at, updated_at) \
         SELECT organization_id, name || '-' || CAST(n AS TEXT), name || '-' || CAST(n AS TEXT), reference, 0, 0 FROM images, ({numbers}) AS more WHERE id = $1"
    );
    app.execute(&sql, vec![image.into()]).await;
    let query = "query($o: Id!) { images(orgId: $o) { id } }";
    let images = app.viewer.gql(query, json!({ "o": app.org })).await.data()["images"].clone();
    assert_eq!(images.as_array().unwrap().len(), 1_000);
}

#[tokio::test]
async fn postgres_a_page_computes_nothing_for_skipped_rows() {
    let app = TestApp::start().await;
    let agent = app.agent().await;
    for _ in 0..30 {
        app.conversation(agent).await;
    }
    // Counts how often a conversation's contact is looked up.
    app.contact("Ann").await;
    for sql in [
        "UPDATE conversations SET contact_id = (SELECT id FROM contacts)",
        "CREATE SEQUENCE looks",
        "ALTER TABLE contacts RENAME TO contacts_stored",
        "CREATE VIEW contacts AS SELECT * FROM contacts_stored WHERE nextval('looks') > 0",
    ] {
        app.execute(sql, vec![]).await;
    }
    let path = format!("/v1/org/{}/conversation?limit=5&offset=20", app.org);
    let page = app.admin.get(&path).await.expect(200);
    assert_eq!((page["data"].as_array().unwrap().len(), &page["total"]), (5, &json!(30)));
    let looks: i64 = app.one("SELECT last_value FROM looks", vec![]).await;
    assert_eq!(page["data"][0]["contact_name"], "Ann", "{page}");
    assert!((5..=20).contains(&looks), "{looks}");
}
