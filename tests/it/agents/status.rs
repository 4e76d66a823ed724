//! Why an agent waits or has failed, and the deadline of a start.

use std::time::Duration;

use muster::{
    base::{
        enums::{ChangeOp, RecordKind, StatusReason},
        ids::{AgentId, OrgId},
    },
    core::{News, access::Caller},
    domain::{
        agents,
        launch::{self, end_late_starts},
    },
};
use muster_protocol::event::EndReason;
use serde_json::{Value, json};

use crate::{agents::revisions::switch, harness::TestApp};

const SHOWN: &str = "query($o: Id!, $id: Id!) { agent(orgId: $o, id: $id) { \
    status statusReason statusDetail lastAction uptimeSeconds } }";

async fn shown(app: &TestApp, agent: i64) -> Value {
    app.viewer.gql(SHOWN, json!({ "o": app.org, "id": agent })).await.data()["agent"].clone()
}

async fn why(app: &TestApp, agent: i64) -> (String, Value) {
    let agent = shown(app, agent).await;
    assert_eq!(agent["statusReason"].is_null(), agent["statusDetail"].is_null(), "{agent}");
    (agent["status"].as_str().unwrap().to_owned(), agent["statusReason"].clone())
}

async fn set(app: &TestApp, table: &str, set: &str) {
    app.execute(&format!("UPDATE {table} SET {set} WHERE organization_id = $1"), vec![app.org.into()]).await;
}

#[tokio::test]
async fn a_launch_says_that_it_waits_for_its_engine() {
    let app = TestApp::start().await;
    let host = app.starting_agent().await;
    set(&app, "servers", "status = 'ONLINE'").await;
    let reports = async || {
        let told = host.tell(async |tx, from| launch::reports::engine_away(tx, from, "no such socket").await);
        told.await.unwrap();
    };
    reports().await;
    assert_eq!(why(&app, host.agent).await, ("SPAWNING".to_owned(), json!("ENGINE_AWAY")));
    host.started().await;
    assert_eq!(why(&app, host.agent).await, ("RUNNING".to_owned(), Value::Null));
    reports().await;
    assert_eq!(why(&app, host.agent).await, ("RUNNING".to_owned(), Value::Null), "it is up");
}

#[tokio::test]
async fn an_agent_says_what_it_waits_for() {
    let (app, agent) = TestApp::with_agent().await;
    assert_eq!(why(&app, agent).await, ("STOPPED".to_owned(), Value::Null), "it waits for nothing");
    switch(&app, "startAgent", agent).await;
    let spawning = |reason: Value| ("SPAWNING".to_owned(), reason);
    assert_eq!(why(&app, agent).await, spawning(json!("WAITING_FOR_HOST")));
    let stop =
        "UPDATE organizations SET stopped_at = $2, stopped_by_name = 'Ann', stop_reason = 'so' WHERE id = $1";
    for status in ["ONLINE", "DEGRADED"] {
        set(&app, "servers", &format!("status = '{status}'")).await;
        assert_eq!(why(&app, agent).await, spawning(Value::Null));
    }
    app.execute(stop, vec![app.org.into(), 1_i64.into()]).await;
    assert_eq!(why(&app, agent).await, spawning(json!("ORGANIZATION_STOPPED")));
    for status in ["RUNNING", "PAUSED", "STOPPING"] {
        set(&app, "agents", &format!("status = '{status}'")).await;
        let halted = if status == "STOPPING" { Value::Null } else { json!("ORGANIZATION_STOPPED") };
        assert_eq!(why(&app, agent).await.1, halted, "{status}");
        set(&app, "servers", "status = 'OFFLINE'").await;
        assert_eq!(why(&app, agent).await.1, "HOST_AWAY", "{status}");
        set(&app, "servers", "status = 'ONLINE'").await;
    }
    set(&app, "agents", "status = 'STOPPED'").await;
    set(&app, "servers", "status = 'OFFLINE'").await;
    assert_eq!(why(&app, agent).await.1, Value::Null);
    let stored = "SELECT COUNT(*) FROM agents WHERE status_reason IS NOT NULL";
    assert_eq!(app.one::<i64>(stored, vec![]).await, 0, "what follows from other records is written nowhere");
}

#[tokio::test]
async fn a_failed_agent_says_why_until_it_is_started_again() {
    let (app, agent) = TestApp::with_agent().await;
    set(&app, "agents", "status = 'RUNNING', started_at = 1").await;
    set(&app, "servers", "status = 'ONLINE'").await;
    assert!(shown(&app, agent).await["uptimeSeconds"].as_i64().unwrap() > 0);
    let mut news = app.core.events.subscribe(OrgId(app.org), &Caller::System);
    let tx = app.scope().begin().await.unwrap();
    let detail = format!("exit code 137\u{0}{}", "x".repeat(9000));
    launch::fail(&tx, AgentId(agent), StatusReason::OutOfMemory, Some(&detail)).await.unwrap();
    tx.commit().await.unwrap();
    let failed = shown(&app, agent).await;
    assert_eq!((&failed["status"], &failed["statusReason"]), (&json!("ERROR"), &json!("OUT_OF_MEMORY")));
    let detail = failed["statusDetail"].as_str().unwrap();
    assert!(detail.starts_with("exit code 137\u{fffd}x") && detail.len() == 8 * 1024, "{}", detail.len());
    assert_eq!((&failed["lastAction"], &failed["uptimeSeconds"]), (&json!("OUT_OF_MEMORY"), &Value::Null));
    let Some((News::Changed(event), _)) = news.next().await else { panic!() };
    assert_eq!((event.kind, event.id, event.op), (RecordKind::Agent, agent, ChangeOp::Updated));
    switch(&app, "startAgent", agent).await;
    assert_eq!(why(&app, agent).await, ("SPAWNING".to_owned(), Value::Null));
    // A deleted agent has nothing to say.
    set(&app, "agents", "archived_at = 1").await;
    let tx = app.scope().begin().await.unwrap();
    launch::fail(&tx, AgentId(agent), StatusReason::Exited, None).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(app.column::<String>("SELECT status FROM agents").await, ["SPAWNING"]);
}

#[tokio::test]
async fn a_running_agent_can_wait_for_its_model() {
    let (app, agent) = TestApp::with_agent().await;
    set(&app, "agents", "status = 'RUNNING'").await;
    set(&app, "servers", "status = 'ONLINE'").await;
    let explain = async |why: Option<(StatusReason, &str)>| {
        let tx = app.scope().begin().await.unwrap();
        agents::set_status_reason(&tx, AgentId(agent), why).await.unwrap();
        tx.commit().await.unwrap();
        shown(&app, agent).await
    };
    let waiting = explain(Some((StatusReason::AuthRequired, "sign in first"))).await;
    assert_eq!((&waiting["status"], &waiting["statusReason"]), (&json!("RUNNING"), &json!("AUTH_REQUIRED")));
    assert_eq!(waiting["statusDetail"], "sign in first");
    assert_eq!(explain(None).await["statusReason"], Value::Null);
}

#[tokio::test]
async fn a_start_has_a_deadline_while_its_host_is_connected() {
    let app = TestApp::start_with(|config| config.agents.start_deadline_seconds = 60).await;
    let agent = app.agent().await;
    switch(&app, "startAgent", agent).await;
    // No one could launch it.
    for _ in 0..10 {
        app.clock.advance(Duration::from_secs(30));
        assert_eq!(end_late_starts(&app.core).await.unwrap(), 0);
    }
    set(&app, "servers", "status = 'ONLINE'").await;
    app.clock.advance(Duration::from_secs(30));
    assert_eq!(end_late_starts(&app.core).await.unwrap(), 0, "a host that is back has its time");
    app.clock.advance(Duration::from_secs(30));
    assert_eq!(end_late_starts(&app.core).await.unwrap(), 1);
    assert_eq!(end_late_starts(&app.core).await.unwrap(), 0);
    let late = shown(&app, agent).await;
    assert_eq!((&late["status"], &late["statusReason"]), (&json!("ERROR"), &json!("START_TIMEOUT")));
    assert_eq!(late["statusDetail"], "It did not come up within 60 seconds.");
    let now = app.clock.now().0;
    let commands = format!(
        "SELECT kind || ' ' || CAST(generation AS TEXT) || ' ' || CASE WHEN expires_at > {now} THEN 'waits' ELSE 'is over' END \
         FROM commands ORDER BY id"
    );
    assert_eq!(app.column::<String>(&commands).await, ["LAUNCH 1 is over", "STOP 1 waits"]);
    let audit = "SELECT operation || ' ' || actor_kind FROM audit_lines WHERE operation = 'endLateStart'";
    assert_eq!(app.column::<String>(audit).await, ["endLateStart SYSTEM"]);
    // The next start gets the full time again.
    switch(&app, "startAgent", agent).await;
    app.clock.advance(Duration::from_secs(59));
    assert_eq!(end_late_starts(&app.core).await.unwrap(), 0);
    set(&app, "agents", "status = 'RUNNING'").await;
    app.clock.advance(Duration::from_secs(600));
    assert_eq!(end_late_starts(&app.core).await.unwrap(), 0, "only starts have a deadline");
}

#[tokio::test]
async fn a_start_does_not_end_while_the_organization_is_stopped() {
    let app = TestApp::start_with(|config| config.agents.start_deadline_seconds = 60).await;
    let agent = app.agent().await;
    set(&app, "servers", "status = 'ONLINE'").await;
    switch(&app, "startAgent", agent).await;
    let stop = "UPDATE organizations SET stopped_at = 1, stopped_by_name = 'Ann', stop_reason = 'so'";
    app.execute(stop, vec![]).await;
    for _ in 0..10 {
        app.clock.advance(Duration::from_secs(30));
        assert_eq!(end_late_starts(&app.core).await.unwrap(), 0);
    }
    assert_eq!(why(&app, agent).await, ("SPAWNING".to_owned(), json!("ORGANIZATION_STOPPED")));
}

#[test]
fn every_end_that_a_host_reports_has_its_reason() {
    use EndReason::{
        DiskFull, Exited, ImageNotFound, Killed, LineTooLong, NoProtocol, OutOfMemory, ShimLost, SpawnFailed,
    };
    for end in
        [Exited, Killed, OutOfMemory, ShimLost, ImageNotFound, SpawnFailed, NoProtocol, LineTooLong, DiskFull]
    {
        let name = serde_json::to_value(end).unwrap();
        assert!(name.as_str().unwrap().parse::<StatusReason>().is_ok(), "{name}");
    }
}
