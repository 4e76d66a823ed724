//! A restart: a stop, and a launch that follows it, also after its requester has left.

use muster_protocol::event::EndReason;
use serde_json::{Value, json};

use crate::harness::{Host, TestApp};

const STATE: &str = "status statusReason statusDetail";

/// The kinds of the commands that this launch was given.
async fn kinds(host: &Host<'_>) -> Vec<Value> {
    host.commands().await.iter().map(|command| command["kind"].clone()).collect()
}

impl TestApp {
    /// The names of those who started the agent's launches, newest first.
    async fn starters(&self, agent: i64) -> Value {
        let query = "query($o: Id!, $a: Id!) { agentLaunches(orgId: $o, agentId: $a) { generation startedByName revision } }";
        self.viewer.gql(query, json!({ "o": self.org, "a": agent })).await.data()["agentLaunches"].clone()
    }
}

#[tokio::test]
async fn an_agent_that_was_restarted_starts_as_soon_as_it_is_down() {
    let app = TestApp::start().await;
    let host = app.running_agent().await;
    app.execute("UPDATE servers SET status = 'ONLINE'", vec![]).await;
    // A change that only the next launch applies.
    app.sets_agent(host.agent, json!({ "role": "Tester" })).await;
    host.act("restart").await;
    host.act("restart").await;
    let shown = host.agent_shows(STATE).await;
    let detail = "It starts again as soon as it is down.";
    assert_eq!(shown, json!({ "status": "STOPPING", "statusReason": "RESTARTING", "statusDetail": detail }));
    assert_eq!(kinds(&host).await, ["LAUNCH", "STOP"], "one stop, however often it was asked for");
    let coming = "SELECT COUNT(*) FROM commands WHERE kind = 'STOP' AND expires_at > created_at + 1000";
    assert_eq!(app.one::<i64>(coming, vec![]).await, 1, "and it still reaches the host");
    let lines = "SELECT COUNT(*) FROM audit_lines WHERE operation = 'restartAgent'";
    assert_eq!(app.one::<i64>(lines, vec![]).await, 1);
    // Someone changes it until then.
    app.sets_agent(host.agent, json!({ "role": "Writer" })).await;
    host.ended(EndReason::Stopped).await;
    assert_eq!(
        host.agent_shows("status statusReason").await,
        json!({ "status": "SPAWNING", "statusReason": null })
    );
    let next = Host { generation: 2, ..host };
    assert_eq!(kinds(&next).await, ["LAUNCH"]);
    let starters = app.starters(host.agent).await;
    assert_eq!(
        starters[0],
        json!({ "generation": 2, "startedByName": starters[1]["startedByName"], "revision": 3 })
    );
    next.started().await;
    assert_eq!(host.agent_shows("status").await["status"], "RUNNING");
    // The restarts requested only one launch.
    next.act("stop").await;
    next.ended(EndReason::Stopped).await;
    assert_eq!(host.agent_shows("status").await["status"], "STOPPED");
}

#[tokio::test]
async fn one_that_is_at_rest_is_launched_right_away() {
    let app = TestApp::start().await;
    let host = Host { app: &app, agent: app.agent().await, generation: 1 };
    host.act("restart").await;
    assert_eq!(host.agent_shows("status").await["status"], "SPAWNING");
    assert_eq!(kinds(&host).await, ["LAUNCH"]);
    assert_eq!(app.starters(host.agent).await.as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_stop_in_between_takes_the_restart_back() {
    let app = TestApp::start().await;
    let host = app.running_agent().await;
    app.execute("UPDATE servers SET status = 'ONLINE'", vec![]).await;
    host.act("restart").await;
    host.act("stop").await;
    assert_eq!(
        host.agent_shows("status statusReason").await,
        json!({ "status": "STOPPING", "statusReason": null })
    );
    host.ended(EndReason::Stopped).await;
    assert_eq!(host.agent_shows("status").await["status"], "STOPPED");
    assert_eq!(app.starters(host.agent).await.as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_limit_that_stops_agents_takes_the_restart_back() {
    let app = TestApp::start().await;
    let host = app.running_agent().await;
    host.act("restart").await;
    host.is_over_limit("Nothing is left.").await;
    host.ended(EndReason::Stopped).await;
    assert_eq!(host.agent_shows("status").await["status"], "STOPPED");
}

#[tokio::test]
async fn in_a_stopped_organization_nothing_is_restarted() {
    let app = TestApp::start().await;
    let host = app.running_agent().await;
    let stop =
        "UPDATE organizations SET stopped_at = 1, stopped_by_name = 'Ann', stop_reason = 'so' WHERE id = $1";
    app.execute(stop, vec![app.org.into()]).await;
    let query = "mutation($o: Id!, $i: Id!) { restartAgent(orgId: $o, id: $i) { id } }";
    let agent = json!({ "o": app.org, "i": host.agent });
    assert_eq!(app.operator.gql(query, agent.clone()).await.code(), "ORGANIZATION_STOPPED");
    assert_eq!(app.viewer.gql(query, agent).await.code(), "PERMISSION_DENIED");
    assert_eq!(kinds(&host).await, ["LAUNCH"]);
}
