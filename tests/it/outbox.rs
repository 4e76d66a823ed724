//! The outbox: rows are claimed once, retried, kept in order where order matters, and wake the worker on
//! commit.

use std::{
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use futures::FutureExt;
use muster::{
    base::{enums::OutboxKind, ids::ServerId},
    core::{
        Core,
        outbox::{self, Outcome, wake, woken},
        telemetry::metrics,
    },
    rounds::{self, Round},
    slices::notifications,
};
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::harness::{TestApp, is_postgres};

const REQUEST: &str = "mutation { requestEmailConfirmation }";

/// Waiting mails, one per key, in this order.
async fn waiting(app: &TestApp, keys: &[Option<&str>]) -> Vec<i64> {
    for key in keys {
        let sql = "INSERT INTO outbox (kind, payload, order_key, created_at, available_at, expires_at) \
                   VALUES ('MAIL', '{}', $1, $2, $2, $3)";
        let (now, end) = (app.clock.now(), app.clock.now().plus(Duration::from_hours(48)));
        app.execute(sql, vec![key.map(str::to_owned).into(), now.0.into(), end.0.into()]).await;
    }
    rows(app).await
}

async fn rows(app: &TestApp) -> Vec<i64> {
    app.column("SELECT id FROM outbox ORDER BY id").await
}

/// Runs the worker once; every attempt has this outcome. Returns which rows were attempted.
async fn work(core: &Core, outcome: impl Fn(i64) -> Outcome) -> Vec<i64> {
    let attempted = Mutex::new(Vec::new());
    let handle = |claim: outbox::Claim<Value>| {
        attempted.lock().unwrap().push(claim.id);
        let outcome = outcome(claim.id);
        async { Ok(outcome) }
    };
    outbox::work(core, OutboxKind::Mail, handle).await.unwrap();
    attempted.into_inner().unwrap()
}

fn later() -> Outcome {
    Outcome::Later("not now".to_owned())
}

/// Claims what is due, and dies with it.
async fn claim_and_die(core: &Core) {
    let claimed = Notify::new();
    let handle = |_: outbox::Claim<Value>| {
        claimed.notify_one();
        std::future::pending()
    };
    tokio::select! {
        ended = outbox::work(core, OutboxKind::Mail, handle) => panic!("nothing is claimed: {ended:?}"),
        () = claimed.notified() => {}
    }
}

#[tokio::test]
async fn a_dead_workers_row_is_taken_over_after_its_lease() {
    let app = TestApp::start().await;
    let ids = waiting(&app, &[None]).await;
    claim_and_die(&app.core).await;
    let attempts: i64 = app.one("SELECT attempts FROM outbox", vec![]).await;
    assert_eq!(attempts, 1);
    app.clock.advance(Duration::from_secs(119));
    assert!(work(&app.core, |_| Outcome::Done).await.is_empty(), "it is still claimed");
    app.clock.advance(Duration::from_secs(2));
    assert_eq!(work(&app.core, |_| Outcome::Done).await, ids);
    assert!(rows(&app).await.is_empty());
}

#[tokio::test]
async fn a_late_worker_does_not_release_another_workers_row() {
    let app = TestApp::start().await;
    waiting(&app, &[None]).await;
    let until = || app.one::<i64>("SELECT available_at FROM outbox", vec![]);
    let handle = |_: outbox::Claim<Value>| async {
        // Frozen for longer than the lease. Another replica has it now.
        app.clock.advance(Duration::from_mins(3));
        claim_and_die(&app.core).await;
        Ok(later())
    };
    outbox::work(&app.core, OutboxKind::Mail, handle).await.unwrap();
    assert_eq!(until().await, app.clock.now().plus(Duration::from_mins(2)).0, "the other worker's lease");
}

#[tokio::test]
async fn each_row_is_attempted_by_one_replica() {
    let app = TestApp::start().await;
    let ids = waiting(&app, &[None; 15]).await;
    // SQLite has one process.
    let other = if is_postgres() { app.replica(None).await } else { std::sync::Arc::clone(&app.core) };
    let replicas = (0..6).map(|n| work(if n % 2 == 0 { &app.core } else { &other }, |_| Outcome::Done));
    let mut attempted = futures::future::join_all(replicas).await.concat();
    attempted.sort_unstable();
    assert_eq!(attempted, ids);
}

#[tokio::test]
async fn rows_of_one_key_leave_in_order_and_block_no_other_key() {
    let app = TestApp::start().await;
    let ids = waiting(&app, &[Some("a"), Some("a"), Some("b"), None, Some("a")]).await;
    let fails = |id| if id == ids[0] { later() } else { Outcome::Done };
    assert_eq!(work(&app.core, fails).await, [ids[0], ids[2], ids[3]]);
    assert!(work(&app.core, fails).await.is_empty(), "the second of `a` waits for the first");
    app.clock.advance(Duration::from_secs(16));
    assert_eq!(work(&app.core, |_| Outcome::Done).await, [ids[0]]);
    assert_eq!(work(&app.core, |_| Outcome::Never("gone".to_owned())).await, [ids[1]]);
    assert_eq!(work(&app.core, |_| Outcome::Over).await, [ids[4]]);
    assert!(rows(&app).await.is_empty());
}

#[tokio::test]
async fn a_delivered_row_wakes_the_worker_for_the_next() {
    let app = TestApp::start().await;
    waiting(&app, &[Some("a"), Some("a")]).await;
    let mut woken = woken(&app.core);
    work(&app.core, |_| later()).await;
    assert!(!woken.has_changed().unwrap(), "nothing was sent");
    app.clock.advance(Duration::from_secs(16));
    work(&app.core, |_| Outcome::Done).await;
    assert!(woken.has_changed().unwrap());
    woken.mark_unchanged();
    wake(&app.core);
    assert!(woken.has_changed().unwrap(), "another replica has announced it");
}

#[tokio::test]
async fn unreadable_rows_are_counted_and_wait_while_the_rest_leaves() {
    let app = TestApp::with_mail().await;
    let meters = metrics::begin();
    app.person("VIEWER", false).await.gql(REQUEST, json!({})).await.data();
    let unread = waiting(&app, &[None]).await[1];
    app.execute("UPDATE outbox SET payload = '{\"letter\":\"POSTCARD\"}' WHERE id = $1", vec![unread.into()])
        .await;
    app.execute("UPDATE outbox SET available_at = available_at - 1 WHERE id = $1", vec![unread.into()]).await;
    assert_eq!(notifications::deliver_due(&app.core).await.unwrap(), 1);
    assert_eq!(rows(&app).await, [unread]);
    let page = meters.render();
    let count = |outcome: &str| {
        let name = format!("muster_outbox_attempts_total{{kind=\"MAIL\",outcome=\"{outcome}\"}} ");
        page.lines().find_map(|line| line.strip_prefix(&name)).map(str::to_owned)
    };
    assert_eq!([count("done"), count("unreadable")], [Some("1".to_owned()), Some("1".to_owned())]);
    // It is removed once no one could use it any more.
    app.clock.advance(Duration::from_hours(49));
    assert_eq!(notifications::deliver_due(&app.core).await.unwrap(), 0);
    assert!(rows(&app).await.is_empty());
}

#[tokio::test]
async fn a_commit_wakes_the_workers_for_its_rows() {
    let app = TestApp::start().await;
    let agent = app.agent().await;
    let server: i64 = app.one("SELECT server_id FROM agents WHERE id = $1", vec![agent.into()]).await;
    let mut mails = woken(&app.core);
    let host = app.core.outbox.hosts.open(ServerId(server), 1);
    let mut commands = host.woken();
    let mut changed = move || {
        let changed = mails.has_changed().unwrap();
        mails.mark_unchanged();
        [changed, commands.next().now_or_never().is_some()]
    };
    app.person("VIEWER", false).await.gql(REQUEST, json!({})).await.data();
    assert_eq!(changed(), [true, false]);
    let start = format!("/v1/org/{}/agent/{agent}/start", app.org);
    assert_eq!(app.stranger.post(&start, Value::Null).await.status, 403);
    assert_eq!(changed(), [false, false]);
    app.operator.post(&start, Value::Null).await.expect(200);
    assert_eq!(changed(), [false, true]);
}

static ROUNDS: AtomicU64 = AtomicU64::new(0);

/// The mail round, too infrequent for this test.
static SELDOM: [Round; 1] = [Round::every("mail.send", Duration::from_hours(1), |core| {
    let round = async {
        let sent = notifications::deliver_due(core).await;
        ROUNDS.fetch_add(1, Ordering::SeqCst);
        sent
    };
    round.boxed()
})];

#[tokio::test(flavor = "multi_thread")]
async fn a_mail_does_not_wait_for_its_round() {
    let app = TestApp::with_mail().await;
    rounds::start(&app.core, &SELDOM);
    while ROUNDS.load(Ordering::SeqCst) == 0 {
        tokio::task::yield_now().await;
    }
    app.person("VIEWER", false).await.gql(REQUEST, json!({})).await.data();
    while !rows(&app).await.is_empty() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!(ROUNDS.load(Ordering::SeqCst) >= 1);
    app.core.tasks.stopping.cancel();
}
