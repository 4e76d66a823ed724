//! Logs of agents: a host sends lines to viewers who may see them, and none are stored.

use muster::core::resource_limits::Resource;
use serde_json::{Value, json};

use crate::{
    gateway::hosted,
    harness::{
        Actor, Socket, TestApp,
        gateway::{Host, Line},
        until,
    },
};

const WATCH: &str = "subscription($o: Id!, $a: Id!) { agentLogs(orgId: $o, id: $a) { begunAt position lines { source text time } } }";

async fn viewer(app: &TestApp, actor: &Actor, agent: i64) -> Socket {
    let mut socket = Socket::of(actor).await;
    socket.subscribe("1", WATCH, json!({ "o": app.org, "a": agent })).await;
    socket
}

/// The next request for the end of a log.
async fn asked(line: &mut Line) -> Value {
    loop {
        let asked = line.wait_for("WATCH_LOG").await;
        if asked["tail"] == true {
            return asked;
        }
    }
}

fn batch(agent: i64, position: i64, text: &str) -> Value {
    let lines = json!([{ "time": 5, "source": "GATE", "text": text }]);
    json!({ "frame": "LOG", "agent_id": agent, "begun_at": 4, "position": position, "lines": lines })
}

async fn code(socket: &mut Socket) -> String {
    let next = socket.next().await;
    next["payload"]["errors"][0]["extensions"]["code"].as_str().unwrap_or_else(|| panic!("{next}")).to_owned()
}

#[tokio::test]
async fn a_host_sends_a_log_while_somebody_looks() {
    let (app, agent, host) = hosted().await;
    let mut line = host.connect().await;
    // No one looks.
    line.send(batch(agent, 1, "unseen")).await;
    assert!(line.is_quiet().await);
    let mut first = viewer(&app, &app.viewer, agent).await;
    let watch = asked(&mut line).await;
    let until_then = watch["until"].as_i64().unwrap() - app.clock.now().0;
    assert_eq!((watch["agent_id"].as_i64(), until_then), (Some(agent), 30_000));
    line.send(batch(agent, 2, "x.example:443 was refused")).await;
    let lines = json!([{ "source": "GATE", "text": "x.example:443 was refused", "time": "1970-01-01T00:00:00.005Z" }]);
    let expected = json!({ "begunAt": "1970-01-01T00:00:00.004Z", "position": 2, "lines": lines });
    assert_eq!(first.next().await["payload"]["data"]["agentLogs"], expected);
    // The end of the log for another viewer, and for a connection that knows of no viewers.
    let mut second = viewer(&app, &app.operator, agent).await;
    asked(&mut line).await;
    let mut line = Host { journal: [0, 0], ..host }.connect().await;
    asked(&mut line).await;
    line.send(batch(agent, 3, "seen by both")).await;
    for socket in [&mut first, &mut second] {
        assert_eq!(socket.next().await["payload"]["data"]["agentLogs"]["position"], 3);
    }
    drop((first, second));
    let is_watched = || app.core.events.logs.is_watched(app.scope().org, muster::base::ids::AgentId(agent));
    until("no one looks", async || !is_watched()).await;
}

#[tokio::test]
async fn only_those_who_may_see_an_agents_output_see_its_log() {
    let (app, agent, host) = hosted().await;
    let mut line = host.connect().await;
    let mut stranger = viewer(&app, &app.stranger, agent).await;
    assert_eq!(code(&mut stranger).await, "NOT_A_MEMBER");
    let mut stranger = Socket::of(&app.stranger).await;
    stranger.subscribe("1", WATCH, json!({ "o": app.other_org, "a": agent })).await;
    assert_eq!(code(&mut stranger).await, "NOT_FOUND");
    let mut token = viewer(&app, &app.token(&["agent.view"]).await, agent).await;
    assert_eq!(code(&mut token).await, "PERMISSION_DENIED");
    assert!(line.is_quiet().await, "the host is not asked");

    // A host has a say only about the agents of its server.
    let other = app.agent().await;
    let mut of_other = viewer(&app, &app.viewer, other).await;
    let mut own = viewer(&app, &app.viewer, agent).await;
    assert_eq!(asked(&mut line).await["agent_id"], agent);
    let both = app.core.resource_limits.limit(Resource::Subscriptions);
    until("both look", async || both.total() == 2).await;
    line.send(batch(other, 1, "forged")).await;
    line.send(batch(agent, 1, "own")).await;
    assert_eq!(own.next().await["payload"]["data"]["agentLogs"]["lines"][0]["text"], "own");
    of_other.settled().await;
    // A member who loses the right gets nothing more.
    app.execute("DELETE FROM members WHERE user_id = $1", vec![app.viewer.user.unwrap().into()]).await;
    app.forget_sessions();
    assert_eq!(code(&mut own).await, "NOT_A_MEMBER");

    line.send(batch(agent, 2, &"x".repeat(17_000))).await;
    line.refused("MALFORMED").await;
}

#[tokio::test]
async fn an_invalid_position_or_time_ends_the_connection() {
    let (_app, agent, host) = hosted().await;
    for wrong in [json!({ "position": 0 }), json!({ "begun_at": -1 }), json!({ "begun_at": i64::MAX })] {
        let mut line = host.connect().await;
        let mut frame = batch(agent, 1, "x");
        frame.as_object_mut().unwrap().extend(wrong.as_object().unwrap().clone());
        line.send(frame).await;
        line.refused("MALFORMED").await;
    }
}
