//! The emergency stop of an organization: who may stop and release it, what it holds back, and who is notified.

use std::time::Duration;

use muster::{
    base::{
        enums::{ChangeOp, RecordKind},
        ids::OrgId,
    },
    core::{News, access::Caller},
    domain::{commands, conversations::turns, emergency_stop, orgs, spending},
};
use muster_protocol::event::RefusedReason;
use serde_json::{Value, json};

use crate::{
    agents::revisions::switch,
    conversations::{takeover::take_over, turns::write},
    harness::{Actor, Answer, TestApp, is_postgres},
};

const STOP: &str = "mutation($o: Id!, $r: String!) { stopOrganization(orgId: $o, reason: $r) { stopped { by userId at reason } } }";
const RELEASE: &str = "mutation($o: Id!) { releaseOrganization(orgId: $o) { stopped { by } } }";
const SHOWN: &str = "query($o: Id!) { organization(orgId: $o) { stopped { by userId at reason } } }";

pub async fn stop(app: &TestApp, actor: &Actor, reason: &str) -> Answer {
    actor.gql(STOP, json!({ "o": app.org, "r": reason })).await
}

pub async fn release(app: &TestApp, actor: &Actor) -> Answer {
    actor.gql(RELEASE, json!({ "o": app.org })).await
}

async fn act(app: &TestApp, verb: &str, agent: i64) -> Answer {
    let call = format!("mutation($o: Id!, $id: Id!) {{ {verb}Agent(orgId: $o, id: $id) {{ status }} }}");
    app.operator.gql(&call, json!({ "o": app.org, "id": agent })).await
}

async fn set_status(app: &TestApp, agent: i64, status: &str) {
    let sql = "UPDATE agents SET status = $1 WHERE id = $2";
    app.execute(sql, vec![status.into(), agent.into()]).await;
}

/// The waiting commands that a host may get.
async fn free(app: &TestApp) -> Vec<String> {
    let sql = format!(
        "SELECT kind FROM commands c WHERE {} AND acknowledged_at IS NULL AND expires_at > {} ORDER BY id",
        commands::MAY_GO,
        app.clock.now().0
    );
    app.column(&sql).await
}

#[tokio::test]
async fn an_operator_stops_everything_and_an_admin_lets_go() {
    let app = TestApp::start().await;
    let agent = app.agent().await;
    assert_eq!(
        app.viewer.gql(SHOWN, json!({ "o": app.org })).await.data()["organization"]["stopped"],
        Value::Null
    );
    assert_eq!(stop(&app, &app.viewer, "no").await.code(), "PERMISSION_DENIED");
    for blank in ["", "  ", "two\nlines"] {
        assert_eq!(stop(&app, &app.operator, blank).await.code(), "VALIDATION_FAILED");
    }
    let mut news = app.core.events.subscribe(OrgId(app.org), &Caller::System);
    let stopped = stop(&app, &app.operator, " it deletes everything ").await.data();
    let at = "2026-06-01T12:00:00.000Z";
    let expected =
        json!({ "by": "operator", "userId": app.operator.user, "at": at, "reason": "it deletes everything" });
    assert_eq!(stopped["stopOrganization"]["stopped"], expected);
    let Some((News::Changed(event), _)) = news.next().await else { panic!() };
    assert_eq!((event.kind, event.id, event.op), (RecordKind::Organization, app.org, ChangeOp::Updated));
    for (scope, expected) in [(app.scope(), true), (app.other_scope(), false)] {
        assert_eq!(orgs::is_stopped(&scope.begin().await.unwrap()).await.unwrap(), expected);
    }
    app.clock.advance(Duration::from_mins(1));
    let again = stop(&app, &app.admin, "me too").await.data();
    assert_eq!(again["stopOrganization"]["stopped"], expected, "the first one counts");
    assert_eq!(
        app.viewer.gql(SHOWN, json!({ "o": app.org })).await.data()["organization"]["stopped"],
        expected
    );

    let refused = app.operator.post(&format!("/v1/org/{}/agent/{agent}/start", app.org), Value::Null).await;
    assert_eq!(refused.problem(), (409, "ORGANIZATION_STOPPED"));
    let details = json!({ "stopped_by": "operator", "stopped_at": at, "reason": "it deletes everything" });
    assert_eq!(refused.body["details"], details);
    assert!(
        refused.body["detail"]
            .as_str()
            .unwrap()
            .starts_with(&format!("operator stopped the whole organization at {at}"))
    );
    set_status(&app, agent, "PAUSED").await;
    assert_eq!(act(&app, "resume", agent).await.code(), "ORGANIZATION_STOPPED");
    // Stopping and pausing still work, and other organizations are not affected.
    set_status(&app, agent, "RUNNING").await;
    act(&app, "pause", agent).await.data();
    act(&app, "stop", agent).await.data();
    let theirs = app.other_agent().await;
    app.stranger
        .post(&format!("/v1/org/{}/agent/{theirs}/start", app.other_org), Value::Null)
        .await
        .expect(200);

    assert_eq!(release(&app, &app.operator).await.code(), "PERMISSION_DENIED");
    let released = release(&app, &app.admin).await.data();
    assert_eq!(released["releaseOrganization"]["stopped"], Value::Null);
    release(&app, &app.admin).await.data();
    set_status(&app, agent, "STOPPED").await;
    act(&app, "start", agent).await.data();
    let audit = "SELECT operation || ' ' || actor_name || ' ' || CAST(changes AS TEXT) FROM audit_lines \
                 WHERE operation IN ('stopOrganization', 'releaseOrganization') AND outcome = 'ALLOWED' ORDER BY id";
    let audit: Vec<String> = app.column(audit).await;
    let [pulled, let_go] = &audit[..] else { panic!("what changes nothing leaves no entry: {audit:?}") };
    assert!(
        pulled.starts_with("stopOrganization operator") && pulled.contains("it deletes everything"),
        "{pulled}"
    );
    assert!(let_go.starts_with("releaseOrganization admin") && let_go.contains(at), "{let_go}");
}

#[tokio::test]
async fn a_monitor_may_stop_but_not_let_go() {
    let app = TestApp::start().await;
    let monitor = app.token(&["organization.stop", "organization.view"]).await;
    let stopped = stop(&app, &monitor, "too many tokens").await.data()["stopOrganization"]["stopped"].clone();
    assert_eq!((&stopped["userId"], &stopped["reason"]), (&Value::Null, &json!("too many tokens")));
    assert!(stopped["by"].as_str().unwrap().starts_with("token "), "{stopped}");
    let release_token = app.token(&["organization.release", "organization.view"]).await;
    assert_eq!(release(&app, &release_token).await.code(), "PERMISSION_DENIED", "the policy's cap");
}

#[tokio::test]
async fn commands_wait_except_those_that_end_something() {
    let app = TestApp::start().await;
    let (starting, running) = (app.agent().await, app.agent().await);
    switch(&app, "startAgent", starting).await;
    set_status(&app, running, "RUNNING").await;
    assert_eq!(free(&app).await, ["LAUNCH"]);
    stop(&app, &app.operator, "so").await.data();
    assert_eq!(free(&app).await, ["SYNC", "SYNC"]);
    act(&app, "pause", running).await.data();
    act(&app, "stop", running).await.data();
    assert_eq!(free(&app).await, ["SYNC", "STOP"]);
    release(&app, &app.admin).await.data();
    assert_eq!(free(&app).await, ["LAUNCH", "SYNC", "STOP"], "what the stop of an agent overtook is over");
}

#[tokio::test]
async fn hosts_let_nothing_out_until_the_release() {
    let app = TestApp::start().await;
    let host = app.running_agent().await;
    assert!(!host.launch_plan().await.unwrap().stopped);
    stop(&app, &app.operator, "so").await.data();
    assert_eq!(free(&app).await, ["SYNC"]);
    assert!(host.launch_plan().await.unwrap().stopped);
    release(&app, &app.admin).await.data();
    assert!(!host.launch_plan().await.unwrap().stopped);
}

#[tokio::test]
async fn an_agent_stopped_meanwhile_is_not_launched_later() {
    let app = TestApp::start().await;
    let agent = app.agent().await;
    switch(&app, "startAgent", agent).await;
    stop(&app, &app.operator, "so").await.data();
    act(&app, "stop", agent).await.data();
    release(&app, &app.admin).await.data();
    assert_eq!(free(&app).await, ["STOP"]);
}

async fn letting_go_at(app: &TestApp) -> Option<i64> {
    app.one("SELECT letting_go_at FROM organizations WHERE id = $1", vec![app.org.into()]).await
}

#[tokio::test]
async fn letting_go_takes_rounds_and_another_stop_ends_them() {
    let app = TestApp::start().await;
    assert_eq!(emergency_stop::let_go(&app.core).await.unwrap(), 0);
    stop(&app, &app.operator, "so").await.data();
    assert_eq!(letting_go_at(&app).await, None);
    release(&app, &app.admin).await.data();
    assert!(letting_go_at(&app).await.is_some());
    stop(&app, &app.operator, "again").await.data();
    assert_eq!(letting_go_at(&app).await, None);
    release(&app, &app.admin).await.data();
    emergency_stop::let_go(&app.core).await.unwrap();
    assert_eq!(letting_go_at(&app).await, None, "nothing waits");
}

#[tokio::test]
async fn a_turn_refused_during_a_stop_is_sent_afterwards() {
    let app = TestApp::start().await;
    let host = app.running_agent().await;
    let conversation = app.conversation(host.agent).await;
    let post = "mutation($o: Id!, $c: Id!) { postMessage(orgId: $o, conversationId: $c, input: { text: \"Hi\" }) { turn { id } } }";
    let posted = app.operator.gql(post, json!({ "o": app.org, "c": conversation })).await.data();
    let turn = posted["postMessage"]["turn"]["id"].as_i64().unwrap();
    assert_eq!(host.given().await, [turn]);
    stop(&app, &app.operator, "so").await.data();
    release(&app, &app.admin).await.data();
    emergency_stop::let_go(&app.core).await.unwrap();
    emergency_stop::let_go(&app.core).await.unwrap();
    // The host asked what to say while everything was stopped, and reports only now that it was refused.
    host.refuses(RefusedReason::Forbidden).await;
    assert_eq!(turns::send_left(&app.core).await.unwrap(), 0, "something may be about to send it");
    app.clock.advance(Duration::from_secs(31));
    set_status(&app, host.agent, "PAUSED").await;
    assert_eq!(turns::send_left(&app.core).await.unwrap(), 0, "a paused agent takes no turns");
    set_status(&app, host.agent, "RUNNING").await;
    stop(&app, &app.operator, "again").await.data();
    assert_eq!(turns::send_left(&app.core).await.unwrap(), 0, "stopped again");
    release(&app, &app.admin).await.data();
    app.execute("UPDATE organizations SET letting_go_at = NULL", vec![]).await;
    assert_eq!(turns::send_left(&app.core).await.unwrap(), 1);
    assert_eq!(host.given().await, [turn, turn]);
    app.clock.advance(Duration::from_secs(31));
    assert_eq!(turns::send_left(&app.core).await.unwrap(), 0, "it is on its way");
    host.takes(turn).await;
}

/// Makes a turn that was never sent wait for this agent, which runs.
async fn left(app: &TestApp, agent: i64, held: bool) {
    let conversation = app.conversation(agent).await;
    app.execute(
        "UPDATE agents SET status = 'RUNNING', launch_generation = 1 WHERE id = $1",
        vec![agent.into()],
    )
    .await;
    let waiting = "INSERT INTO turns (organization_id, conversation_id, agent_id, cause, state, held, created_at, updated_at) \
                   SELECT organization_id, $1, id, 'PANEL', 'QUEUED', $3, 0, 0 FROM agents WHERE id = $2";
    app.execute(waiting, vec![conversation.into(), agent.into(), held.into()]).await;
}

/// The agents that were given a turn, in the order in which they were.
async fn agents_given(app: &TestApp) -> Vec<i64> {
    app.column("SELECT agent_id FROM commands WHERE kind = 'TURN' ORDER BY id").await
}

#[tokio::test]
async fn turns_that_wait_for_people_keep_no_others_waiting() {
    let app = TestApp::start().await;
    let first = app.agent().await;
    let more = "INSERT INTO agents (organization_id, server_id, image_id, name, name_folded, created_at, updated_at) \
                SELECT organization_id, server_id, image_id, $2, $2, 0, 0 FROM agents WHERE id = $1 RETURNING id";
    // More than are looked for at a time.
    let mut answered = Vec::new();
    for n in 0..110 {
        let agent: i64 = app.one(more, vec![first.into(), format!("one of many {n}").into()]).await;
        left(&app, agent, true).await;
        answered.push(agent);
    }
    let host = app.running_agent().await;
    let conversation = app.conversation(host.agent).await;
    let taken_over = write(&app, conversation, "Hi").await;
    take_over(&app, &app.operator, conversation).await;
    app.clock.advance(Duration::from_secs(31));
    assert_eq!(turns::send_left(&app.core).await.unwrap(), 0);
    assert_eq!(host.given().await, [taken_over], "before a person took it over, and not again");
    let last = app.agent().await;
    left(&app, last, false).await;
    assert_eq!(turns::send_left(&app.core).await.unwrap(), 1);
    assert_eq!(agents_given(&app).await, [host.agent, last]);
    app.execute("UPDATE turns SET held = FALSE WHERE held", vec![]).await;
    assert_eq!(turns::send_left(&app.core).await.unwrap(), 110, "one round is enough");
    assert_eq!(agents_given(&app).await[2..], answered);
}

#[tokio::test]
async fn a_turn_that_cannot_be_sent_keeps_no_others_waiting() {
    let app = TestApp::start().await;
    let (broken, theirs) = (app.agent().await, app.other_agent().await);
    assert!(app.org < app.other_org, "the broken one is looked after first");
    for agent in [broken, theirs] {
        left(&app, agent, false).await;
    }
    let (stop, go) = if is_postgres() {
        let stop = "CREATE FUNCTION stop() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'stop'; END $$";
        app.execute(stop, vec![]).await;
        ("FOR EACH ROW WHEN (NEW.agent_id = ID) EXECUTE FUNCTION stop()", "DROP TRIGGER stop ON turns")
    } else {
        ("WHEN NEW.agent_id = ID BEGIN SELECT RAISE(ABORT, 'stop'); END", "DROP TRIGGER stop")
    };
    let stop = format!("CREATE TRIGGER stop BEFORE UPDATE ON turns {stop}");
    app.execute(&stop.replace("ID", &broken.to_string()), vec![]).await;
    turns::send_left(&app.core).await.unwrap_err();
    assert_eq!(agents_given(&app).await, [theirs]);
    app.execute(go, vec![]).await;
    assert_eq!(turns::send_left(&app.core).await.unwrap(), 1);
    assert_eq!(agents_given(&app).await, [theirs, broken]);
}

#[tokio::test]
async fn a_blocked_agent_delays_no_other_after_a_stop() {
    let app = TestApp::start().await;
    let (limited, free) = (app.agent().await, app.agent().await);
    // As many as are sent at a time.
    for _ in 0..5 {
        left(&app, limited, false).await;
    }
    left(&app, free, false).await;
    let limit = "INSERT INTO agent_limits (organization_id, agent_id, kind, reason, since) VALUES ($1, $2, 'MONEY', 'spent', 0)";
    app.execute(limit, vec![app.org.into(), limited.into()]).await;
    stop(&app, &app.operator, "so").await.data();
    release(&app, &app.admin).await.data();
    assert_eq!(emergency_stop::let_go(&app.core).await.unwrap(), 1);
    assert_eq!(agents_given(&app).await, [free]);
    assert_eq!(letting_go_at(&app).await, None, "what waits for money goes on by itself");
}

#[tokio::test]
async fn a_provider_is_tried_only_after_the_release() {
    let app = TestApp::start().await;
    let host = app.running_agent().await;
    host.is_limited(None, 60).await;
    let conversation = app.conversation(host.agent).await;
    let turn = app.posts(conversation).await;
    assert!(host.given().await.is_empty());
    stop(&app, &app.operator, "so").await.data();
    app.clock.advance(Duration::from_secs(61));
    assert_eq!(spending::release_due(&app.core).await.unwrap(), 0);
    release(&app, &app.admin).await.data();
    app.clock.advance(Duration::from_secs(5));
    assert_eq!(spending::release_due(&app.core).await.unwrap(), 1);
    assert_eq!(host.given().await, [turn]);
}

#[tokio::test]
async fn a_cancelled_turn_does_not_run_after_the_release() {
    let app = TestApp::start().await;
    let host = app.running_agent().await;
    let turn = host.is_sent_again().await;
    // Its host is away. When it returns, the cancellation overtakes the turn, of which it knows nothing.
    stop(&app, &app.operator, "so").await.data();
    let cancelled: Vec<String> = free(&app).await.into_iter().filter(|kind| kind == "CANCEL").collect();
    assert_eq!(cancelled.len(), 1);
    release(&app, &app.admin).await.data();
    assert_eq!(host.plan(turn).await.unwrap_err().code.as_str(), "CONFLICT");
    host.refuses(RefusedReason::Forbidden).await;
    assert_eq!(app.turn_is(turn).await, "CANCELLED");
    app.clock.advance(Duration::from_secs(31));
    turns::send_left(&app.core).await.unwrap();
    assert_eq!(host.given().await, [turn, turn]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_is_before_a_stop_or_refused() {
    let app = TestApp::start().await;
    let agent = app.agent().await;
    for round in 0..10 {
        set_status(&app, agent, "STOPPED").await;
        let (started, stopped) = tokio::join!(act(&app, "start", agent), stop(&app, &app.operator, "so"));
        stopped.data();
        let launched: i64 =
            app.one("SELECT launch_generation FROM agents WHERE id = $1", vec![agent.into()]).await;
        let audited: i64 = app
            .one(
                "SELECT COUNT(*) FROM audit_lines WHERE operation = 'startAgent' AND outcome = 'ALLOWED'",
                vec![],
            )
            .await;
        assert_eq!(launched, audited, "{round}");
        if started.body["errors"].is_null() {
            let first = "SELECT MAX(CASE WHEN operation = 'startAgent' THEN id ELSE 0 END) < \
                         MAX(CASE WHEN operation = 'stopOrganization' THEN id ELSE 0 END) FROM audit_lines WHERE outcome = 'ALLOWED'";
            assert!(app.one::<bool>(first, vec![]).await, "{round}");
        } else {
            assert_eq!(started.code(), "ORGANIZATION_STOPPED");
        }
        release(&app, &app.admin).await.data();
    }
}

#[tokio::test]
async fn the_operator_stops_and_releases_on_the_command_line() {
    let app = TestApp::start().await;
    let org = app.org.to_string();
    let ran = app.cli(&["org", "stop", "--org", &org, "--reason", "an incident"]).await;
    assert!(ran.good(), "{}", ran.err);
    let stopped = ran.out["stopped"].clone();
    assert_eq!((&stopped["by"], &stopped["reason"]), (&json!("The operator"), &json!("an incident")));
    let shown =
        app.viewer.gql(SHOWN, json!({ "o": app.org })).await.data()["organization"]["stopped"].clone();
    assert_eq!((&shown["by"], &shown["userId"]), (&json!("The operator"), &Value::Null));
    assert_eq!(ran.out["was_stopped"], false);
    let ran = app.cli(&["org", "stop", "--org", &org, "--reason", "another"]).await;
    assert_eq!(
        (ran.good(), &ran.out["was_stopped"], &ran.out["stopped"]["reason"]),
        (true, &json!(true), &json!("an incident"))
    );
    let ran = app.cli(&["org", "stop", "--org", "99999", "--reason", "x"]).await;
    assert!(!ran.good());
    let ran = app.cli(&["org", "stop", "--org", &org, "--reason", " "]).await;
    assert!(!ran.good() && ran.err.contains("reason"), "{}", ran.err);
    for was in [true, false] {
        let ran = app.cli(&["org", "release", "--org", &org, "--reason", "it is over"]).await;
        assert_eq!((ran.good(), &ran.out["was_stopped"]), (true, &json!(was)), "{}", ran.err);
    }
}
