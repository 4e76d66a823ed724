//! The queue, with mails as its jobs: they are claimed once, retried, kept in order where order matters, and wake it on commit.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use futures::{
    FutureExt,
    future::{BoxFuture, ready},
};
use muster::{
    base::{ids::ServerId, problem::Result},
    core::{
        Core,
        queue::{self, Admission, Job, Outcome, wake, woken},
        telemetry::metrics,
    },
    domain::{
        mails::{self, Queued},
        notifications,
    },
    jobs::{self, PeriodicJob},
};
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::harness::{TestApp, is_postgres};

const REQUEST: &str = "mutation { requestEmailConfirmation }";

/// Waiting mails, one per key, in this order.
async fn waiting(app: &TestApp, keys: &[Option<&str>]) -> Vec<i64> {
    for key in keys {
        let sql = "INSERT INTO mails (payload, order_key, created_at, available_at, expires_at) \
                   VALUES ('{}', $1, $2, $2, $3)";
        let (now, end) = (app.clock.now(), app.clock.now().plus(Duration::from_hours(48)));
        app.execute(sql, vec![key.map(str::to_owned).into(), now.0.into(), end.0.into()]).await;
    }
    rows(app).await
}

async fn rows(app: &TestApp) -> Vec<i64> {
    app.column("SELECT id FROM mails ORDER BY id").await
}

/// Sends the mail with this id.
type Send = Arc<dyn Fn(i64) -> BoxFuture<'static, Result<Outcome>> + std::marker::Send + Sync>;

/// A mail that a test sends.
struct Tested(Queued);

impl Job for Tested {
    const KIND: &'static str = "MAIL";
    type Key = Send;
    type Lane = (Arc<Core>, Send);
    type Permit = ();

    fn id(&self) -> i64 {
        self.0.id
    }

    async fn open(core: &Arc<Core>, send: &Send) -> Result<Option<Self::Lane>> {
        Ok(Some((Arc::clone(core), Arc::clone(send))))
    }

    async fn due((core, _): &Self::Lane) -> Result<Vec<Self>> {
        Ok(mails::due(core).await?.into_iter().map(Self).collect())
    }

    async fn admit(&self, _: &Self::Lane) -> Result<Admission<()>> {
        Ok(Admission::Run(()))
    }

    async fn run(self, (core, send): &Self::Lane, (): ()) -> Result<Option<Outcome>> {
        let id = self.0.id;
        mails::attempt(core, &self.0, |_: Value| send(id)).await
    }
}

/// Works until nothing is due; every attempt has this outcome. Returns which mails were attempted.
async fn work(
    core: &Arc<Core>,
    outcome: impl Fn(i64) -> Outcome + std::marker::Send + Sync + 'static,
) -> Vec<i64> {
    let attempted = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&attempted);
    let send: Send = Arc::new(move |id| {
        seen.lock().unwrap().push(id);
        ready(Ok(outcome(id))).boxed()
    });
    queue::work::<Tested>(core, &send).await.unwrap();
    let attempted = attempted.lock().unwrap();
    attempted.clone()
}

fn later() -> Outcome {
    Outcome::Later("not now".to_owned())
}

/// Claims what is due, and dies with it.
async fn claim_and_die(core: &Arc<Core>) {
    let claimed = Arc::new(Notify::new());
    let seen = Arc::clone(&claimed);
    let send: Send = Arc::new(move |_| {
        seen.notify_one();
        std::future::pending().boxed()
    });
    tokio::select! {
        ended = queue::work::<Tested>(core, &send) => panic!("nothing is claimed: {ended:?}"),
        () = claimed.notified() => {}
    }
}

#[tokio::test]
async fn a_dead_workers_row_is_taken_over_after_its_lease() {
    let app = TestApp::start().await;
    let ids = waiting(&app, &[None]).await;
    claim_and_die(&app.core).await;
    let attempts: i64 = app.one("SELECT attempts FROM mails", vec![]).await;
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
    let until = || app.one::<i64>("SELECT available_at FROM mails", vec![]);
    let (core, clock) = (Arc::clone(&app.core), app.clock.clone());
    let send: Send = Arc::new(move |_| {
        let (core, clock) = (Arc::clone(&core), clock.clone());
        async move {
            // Frozen for longer than the lease. Another replica has it now.
            clock.advance(Duration::from_mins(3));
            claim_and_die(&core).await;
            Ok(later())
        }
        .boxed()
    });
    queue::work::<Tested>(&app.core, &send).await.unwrap();
    assert_eq!(until().await, app.clock.now().plus(Duration::from_mins(2)).0, "the other worker's lease");
}

#[tokio::test]
async fn each_row_is_attempted_by_one_replica() {
    let app = TestApp::start().await;
    let ids = waiting(&app, &[None; 15]).await;
    // SQLite has one process.
    let other = if is_postgres() { app.replica(None).await } else { Arc::clone(&app.core) };
    let replicas = (0..6).map(|n| work(if n % 2 == 0 { &app.core } else { &other }, |_| Outcome::Done));
    let mut attempted = futures::future::join_all(replicas).await.concat();
    attempted.sort_unstable();
    assert_eq!(attempted, ids);
}

#[tokio::test]
async fn rows_of_one_key_leave_in_order_and_block_no_other_key() {
    let app = TestApp::start().await;
    let ids = waiting(&app, &[Some("a"), Some("a"), Some("b"), None, Some("a")]).await;
    let first = ids[0];
    let fails = move |id| if id == first { later() } else { Outcome::Done };
    assert_eq!(work(&app.core, fails).await, [ids[0], ids[2], ids[3]]);
    assert!(work(&app.core, fails).await.is_empty(), "the second of `a` waits for the first");
    app.clock.advance(Duration::from_secs(6));
    let last = ids[4];
    let ends = move |id| match id {
        _ if id == first => Outcome::Done,
        _ if id == last => Outcome::Obsolete,
        _ => Outcome::GivenUp("gone".to_owned()),
    };
    assert_eq!(work(&app.core, ends).await, [ids[0], ids[1], ids[4]]);
    assert!(rows(&app).await.is_empty());
}

#[tokio::test]
async fn what_fails_is_tried_again_until_it_expires() {
    let app = TestApp::start().await;
    waiting(&app, &[None]).await;
    let waits = async || {
        let at: i64 = app.one("SELECT available_at FROM mails", vec![]).await;
        u64::try_from(at - app.clock.now().0).unwrap() / 1000
    };
    let mut waited = Vec::new();
    for _ in 0..9 {
        work(&app.core, |_| later()).await;
        waited.push(waits().await);
        app.clock.advance(Duration::from_secs(*waited.last().unwrap()));
    }
    assert_eq!(waited, [5, 30, 120, 600, 1800, 7200, 21600, 21600, 21600]);
    app.clock.advance(Duration::from_hours(48));
    assert!(work(&app.core, |_| Outcome::Done).await.is_empty());
    assert!(rows(&app).await.is_empty());
}

#[tokio::test]
async fn unreadable_rows_are_counted_and_wait_while_the_rest_leaves() {
    let app = TestApp::with_mail().await;
    let meters = metrics::start();
    app.person("VIEWER", false).await.gql(REQUEST, json!({})).await.data();
    let unread = waiting(&app, &[None]).await[1];
    app.execute("UPDATE mails SET payload = '{\"letter\":\"POSTCARD\"}' WHERE id = $1", vec![unread.into()])
        .await;
    app.execute("UPDATE mails SET available_at = available_at - 1 WHERE id = $1", vec![unread.into()]).await;
    assert_eq!(notifications::deliver_due(&app.core).await.unwrap(), 1);
    assert_eq!(rows(&app).await, [unread]);
    let page = meters.render();
    let count = |outcome: &str| {
        let name = format!("muster_queue_attempts_total{{kind=\"MAIL\",outcome=\"{outcome}\"}} ");
        page.lines().find_map(|line| line.strip_prefix(&name)).map(str::to_owned)
    };
    assert_eq!([count("done"), count("unreadable")], [Some("1".to_owned()), Some("1".to_owned())]);
    // The mail is removed once its link can no longer be used.
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
    let host = app.core.hosts.open(ServerId(server), 1);
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
    // As another replica does.
    wake(&app.core);
    assert_eq!(changed(), [true, false]);
}

static RUNS: AtomicU64 = AtomicU64::new(0);

/// The mail round, too infrequent for this test.
static SELDOM: [PeriodicJob; 1] = [PeriodicJob::every("mail.send", Duration::from_hours(1), |core| {
    let round = async {
        let sent = notifications::deliver_due(core).await;
        RUNS.fetch_add(1, Ordering::SeqCst);
        sent
    };
    round.boxed()
})];

#[tokio::test(flavor = "multi_thread")]
async fn a_mail_does_not_wait_for_its_round() {
    let app = TestApp::with_mail().await;
    jobs::start(&app.core, &SELDOM);
    while RUNS.load(Ordering::SeqCst) == 0 {
        tokio::task::yield_now().await;
    }
    app.person("VIEWER", false).await.gql(REQUEST, json!({})).await.data();
    while !rows(&app).await.is_empty() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!(RUNS.load(Ordering::SeqCst) >= 1);
    app.core.tasks.stopping.cancel();
}
