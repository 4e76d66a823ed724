//! Locks held for too long, changes that wait for each other, read-only servers: none of them is a failure of
//! the service or takes it away from others. And clients that leave while their change commits.

use std::{future::poll_fn, task::Poll, time::Duration};

use futures::future::join_all;
use muster::{
    core::{Request, access::Caller},
    domain::people,
};
use reqwest::Method;
use sea_orm::{ConnectionTrait, TransactionTrait};
use serde_json::json;
use tokio::time::sleep;

use crate::harness::{Answer, TestApp, until};

/// The new description of a skill makes the database raise the error it names.
const SAYS: &str = "CREATE FUNCTION says() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
                    IF NEW.description LIKE 'says %' THEN \
                    RAISE EXCEPTION USING ERRCODE = substr(NEW.description, 6); END IF; \
                    RETURN NEW; END $$; \
                    CREATE TRIGGER says BEFORE UPDATE ON skills FOR EACH ROW EXECUTE FUNCTION says()";

/// SQLite has a single writer, so there are no deadlocks.
#[tokio::test]
async fn postgres_temporary_refusals_are_not_failures() {
    let app = TestApp::start().await;
    app.expects_failures();
    let path = format!("/v1/org/{}/skill/{}", app.org, app.populate(1).await.skills[0]);
    app.database.execute_unprepared(SAYS).await.unwrap();
    for (state, status, code) in [
        ("40P01", 409, "CONFLICT"),
        ("40001", 409, "CONFLICT"),
        ("55P03", 503, "UNAVAILABLE"),
        ("25006", 503, "UNAVAILABLE"),
    ] {
        let before = connections(&app).await;
        let answer = app.owner.patch(&path, json!({ "description": format!("says {state}") })).await;
        assert_eq!(answer.problem(), (status, code), "{state}: {:#}", answer.body);
        assert_eq!(answer.header("retry-after"), if status == 503 { "5" } else { "" }, "{state}");
        let is_abandoned = async || {
            let now = connections(&app).await;
            before.iter().any(|one| !now.contains(one))
        };
        if state == "25006" {
            until("a read-only server is abandoned", is_abandoned).await;
        } else {
            assert!(!is_abandoned().await, "{state}: the connection is kept");
        }
    }
    app.owner.patch(&path, json!({ "description": "good again" })).await.expect(200);
}

/// The connections of the service, by their processes. Jobs may open others at any time.
async fn connections(app: &TestApp) -> Vec<i32> {
    let sql = "SELECT pid FROM pg_stat_activity \
               WHERE datname = current_database() AND backend_type = 'client backend'";
    app.column(sql).await
}

#[tokio::test(flavor = "multi_thread")]
async fn postgres_a_row_locked_forever_blocks_no_one_elsewhere() {
    let app = TestApp::start().await;
    app.expects_failures();
    let skills = app.populate(2).await.skills;
    let (held, free) = (skills[0], skills[1]);
    let path = |skill: i64| format!("/v1/org/{}/skill/{skill}", app.org);
    let holder = app.database.begin().await.unwrap();
    holder.execute_unprepared(&format!("SELECT 1 FROM skills WHERE id = {held} FOR UPDATE")).await.unwrap();
    let most = app.core.db.pools()[1].3;
    let waiting = (0..most).map(|n| {
        let request =
            app.owner.request(Method::PATCH, &path(held)).header("idempotency-key", format!("k-{n}"));
        Answer::of(request.json(&json!({ "description": format!("edit {n}") })))
    });
    for answer in join_all(waiting).await {
        assert_eq!(answer.problem(), (503, "UNAVAILABLE"), "{:#}", answer.body);
    }
    // Although the row is still locked.
    app.owner.patch(&path(free), json!({ "description": "done" })).await.expect(200);
    holder.rollback().await.unwrap();
    let request = app.owner.request(Method::PATCH, &path(held)).header("idempotency-key", "k-0");
    let again = Answer::of(request.json(&json!({ "description": "edit 0" }))).await;
    assert_eq!((again.status, again.header("idempotent-replayed")), (200, ""), "{:#}", again.body);
}

/// Nothing blocks readers of SQLite.
#[tokio::test]
async fn postgres_an_organization_has_one_export_at_a_time() {
    let app = TestApp::start().await;
    let holder = app.connection().await;
    let holder = holder.begin().await.unwrap();
    holder.execute_unprepared("LOCK TABLE audit_log IN ACCESS EXCLUSIVE MODE").await.unwrap();
    let export = format!("/export/audit/{}", app.org);
    let theirs = format!("/export/audit/{}", app.other_org);
    let work = async {
        let begun = "SELECT COUNT(*) FROM audit_unsealed WHERE operation = 'exportAudit'";
        until("both have begun", async || app.one::<i64>(begun, vec![]).await >= 2).await;
        let second = app.owner.get(&export).await;
        assert_eq!(second.problem(), (429, "RATE_LIMITED"));
        assert_eq!(second.header("retry-after"), "5");
        holder.rollback().await.unwrap();
    };
    let (first, other, ()) = tokio::join!(app.admin.get(&export), app.stranger.get(&theirs), work);
    assert_eq!((first.status, other.status), (200, 200), "{} {}", first.text, other.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_ended_session_is_refused_even_if_the_client_left() {
    let app = TestApp::start().await;
    app.user("ann@example.org", true).await;
    for polls in 0..1_000 {
        let (ann, _) = app.signed_in("ann@example.org").await;
        assert_eq!(ann.gql("{ viewer { user { id } } }", json!({})).await.status, 200);
        let Caller::Person(person) = app.caller(&ann).await else { panic!("a person") };
        let request = Request::system(&app.core);
        let mut work = Box::pin(people::sign_out(&request, &person));
        // Dropped after this many steps.
        let mut left = polls;
        let done = poll_fn(|cx| match work.as_mut().poll(cx) {
            Poll::Ready(done) => Poll::Ready(Some(done)),
            Poll::Pending if left == 0 => Poll::Ready(None),
            Poll::Pending => {
                left -= 1;
                Poll::Pending
            }
        })
        .await;
        drop(work);
        let sql = "SELECT CAST(COUNT(*) AS BIGINT) FROM sessions WHERE id = $1 AND revoked_at IS NOT NULL";
        // A commit in progress finishes a moment later, and may do so between the two questions.
        sleep(Duration::from_millis(10)).await;
        let mut ended = false;
        until(&format!("left after {polls} steps, it is refused if it has ended"), async || {
            ended = app.one::<i64>(sql, vec![person.session.0.into()]).await == 1;
            let refused = ann.gql("{ viewer { user { id } } }", json!({})).await.status == 401;
            ended == refused
        })
        .await;
        if let Some(done) = done {
            done.unwrap();
            assert!(ended);
            return;
        }
    }
    panic!("signing out never finished");
}
