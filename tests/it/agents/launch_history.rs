//! The answers to why an agent failed, and why it doesn't know of a change: its last launches, and the changes that
//! only its next launch can apply.

use std::time::Duration;

use muster::domain::launch;
use muster_protocol::event::EndReason;
use serde_json::{Value, json};

use crate::{
    agents::revisions::{assign, let_agents_read},
    harness::{Host, TestApp},
};

const LAUNCHES: &str = "query($o: Id!, $a: Id!, $l: Int) { agentLaunches(orgId: $o, agentId: $a, limit: $l) { \
    generation revision startedAt upAt endedAt reason detail startedByKind startedByName } }";

async fn launches(app: &TestApp, agent: i64, limit: Option<i64>) -> Vec<Value> {
    let variables = match limit {
        Some(limit) => json!({ "o": app.org, "a": agent, "l": limit }),
        None => json!({ "o": app.org, "a": agent }),
    };
    app.viewer.gql(LAUNCHES, variables).await.data()["agentLaunches"].as_array().unwrap().clone()
}

async fn ends(host: &Host<'_>, reason: EndReason, said: Option<&str>) {
    let said = said.map(str::to_owned);
    let told =
        host.tell(async |tx, from| launch::reports::ended(tx, from, reason, Some(3), None, said).await);
    told.await.unwrap();
}

/// Whether the agent has to be started again, and why.
async fn restart(app: &TestApp, agent: i64) -> (bool, Option<String>) {
    let query = "query($o: Id!, $a: Id!) { agent(orgId: $o, id: $a) { restartPending restartReason } }";
    let shown = app.viewer.gql(query, json!({ "o": app.org, "a": agent })).await.data()["agent"].clone();
    (shown["restartPending"].as_bool().unwrap(), shown["restartReason"].as_str().map(str::to_owned))
}

async fn credential(app: &TestApp, value: &str) -> i64 {
    let fields = json!([{ "label": "key", "type": "secret", "value": value }]);
    let body = json!({ "name": "github", "kind": "api-key", "fields": fields });
    let path = format!("/v1/org/{}/credential", app.org);
    let id = app.owner.post(&path, body).await.expect(201)["id"].as_i64().unwrap();
    let_agents_read(app, id).await;
    id
}

#[tokio::test]
async fn the_last_launches_say_how_each_went() {
    let app = TestApp::start().await;
    let host = app.running_agent().await;
    app.clock.advance(Duration::from_mins(1));
    ends(&host, EndReason::Exited, Some("panic: no such model\n")).await;
    let host = host.launched().await;
    ends(&host, EndReason::ImageNotFound, None).await;
    let host = host.relaunched().await;
    host.act("stop").await;
    // It would not go by itself.
    ends(&host, EndReason::Killed, None).await;
    let host = host.launched().await;
    app.clock.advance(Duration::from_secs(app.core.config.agents.start_deadline_seconds + 1));
    app.execute("UPDATE servers SET status = 'ONLINE'", vec![]).await;
    assert_eq!(launch::end_late_starts(&app.core).await.unwrap(), 1);
    // The host's own report comes too late to say anything else.
    ends(&host, EndReason::Stopped, None).await;
    let host = host.launched().await;

    let shown = launches(&app, host.agent, None).await;
    let told: Vec<_> =
        shown.iter().map(|l| (l["generation"].as_i64().unwrap(), l["reason"].as_str())).collect();
    let expected =
        [(5, None), (4, Some("START_TIMEOUT")), (3, None), (2, Some("IMAGE_NOT_FOUND")), (1, Some("EXITED"))];
    assert_eq!(told, expected);
    assert_eq!(shown[4]["detail"], "its program ended by itself (code 3)\npanic: no such model");
    assert!(shown[2]["detail"].as_str().unwrap().contains("killed"), "{}", shown[2]);
    let is_up: Vec<bool> = shown.iter().map(|launch| !launch["upAt"].is_null()).collect();
    assert_eq!(is_up, [false, false, true, false, true]);
    let has_ended: Vec<bool> = shown.iter().map(|launch| !launch["endedAt"].is_null()).collect();
    assert_eq!(has_ended, [false, true, true, true, true]);
    assert!(shown[4]["startedAt"].as_str() <= shown[4]["upAt"].as_str());
    assert!(shown[4]["upAt"].as_str() < shown[4]["endedAt"].as_str());
    assert!(
        shown.iter().all(|launch| launch["startedByKind"] == "USER" && launch["revision"] == 1),
        "{shown:?}"
    );
    assert!(shown.iter().all(|launch| !launch["startedByName"].as_str().unwrap().is_empty()));
    assert_eq!(launches(&app, host.agent, Some(2)).await, shown[..2]);
}

#[tokio::test]
async fn fifty_launches_are_kept_for_readers_of_messages() {
    let app = TestApp::start().await;
    let other = app.running_agent().await;
    let mut host = app.starting_agent().await;
    for _ in 0..54 {
        ends(&host, EndReason::SpawnFailed, None).await;
        host = host.launched().await;
    }
    let shown = launches(&app, host.agent, Some(50)).await;
    let kept: Vec<i64> = shown.iter().map(|launch| launch["generation"].as_i64().unwrap()).collect();
    assert_eq!(kept, (6..=55).rev().collect::<Vec<_>>());
    assert_eq!(launches(&app, host.agent, None).await.len(), 20);
    assert_eq!(launches(&app, other.agent, None).await.len(), 1);
    let variables = json!({ "o": app.org, "a": host.agent });
    assert_eq!(app.token(&["agent.view"]).await.gql(LAUNCHES, variables).await.code(), "PERMISSION_DENIED");
    assert_eq!(app.viewer.gql(LAUNCHES, json!({ "o": app.org, "a": 99_999 })).await.code(), "NOT_FOUND");
    let many = app.viewer.gql(LAUNCHES, json!({ "o": app.org, "a": host.agent, "l": 201 })).await;
    assert_eq!(many.code(), "VALIDATION_FAILED");
    // A deleted agent keeps them.
    ends(&host, EndReason::Exited, None).await;
    app.delete_agent(host.agent).await;
    assert_eq!(launches(&app, host.agent, Some(50)).await.len(), 50);
}

#[tokio::test]
async fn a_running_agent_says_what_only_its_next_launch_can_give_it() {
    let (app, agent) = TestApp::with_agent().await;
    let github = credential(&app, "first").await;
    assign(&app, "Credential", github, &[agent]).await;
    let host = Host { app: &app, agent, generation: 0 }.launched().await;
    host.launch_plan().await.unwrap();
    host.started().await;
    assert_eq!(restart(&app, agent).await, (false, None));
    // A change that reaches its sessions is not a reason; the host asks again after each.
    app.sets_agent(agent, json!({ "noEmoji": true })).await;
    host.launch_plan().await.unwrap();
    assert_eq!(restart(&app, agent).await, (false, None));

    // Sessions can switch to a model that they offer. Any other model needs a new launch.
    app.sets_agent(agent, json!({ "modelOverride": "large" })).await;
    host.launch_plan().await.unwrap();
    let model = "Its model has changed, and its sessions don't offer the new one.";
    assert_eq!(restart(&app, agent).await, (true, Some(model.to_owned())));
    let offered = r#"UPDATE agents SET offered_models = '[{"id":"large"}]'"#;
    app.execute(offered, vec![]).await;
    host.launch_plan().await.unwrap();
    assert_eq!(restart(&app, agent).await, (false, None));
    app.sets_agent(agent, json!({ "modelOverride": null })).await;
    host.launch_plan().await.unwrap();
    assert_eq!(restart(&app, agent).await, (false, None));

    let environment = "The credentials in its environment have changed.";
    assign(&app, "Credential", github, &[]).await;
    host.launch_plan().await.unwrap();
    assert_eq!(restart(&app, agent).await, (true, Some(environment.to_owned())));
    // As it was: there is nothing to do.
    assign(&app, "Credential", github, &[agent]).await;
    host.launch_plan().await.unwrap();
    assert_eq!(restart(&app, agent).await, (false, None));
    let path = format!("/v1/org/{}/credential/{github}", app.org);
    let fields = json!([{ "label": "key", "type": "secret", "value": "second" }]);
    app.owner.patch(&path, json!({ "fields": fields })).await.expect(200);
    app.sets_agent(agent, json!({ "modelCredential": "sk-new", "memoryMbOverride": 512 })).await;
    host.launch_plan().await.unwrap();
    let all = format!(
        "Its access to the model has changed. {environment} Its memory or processor limits have changed."
    );
    assert_eq!(restart(&app, agent).await, (true, Some(all)));

    host.act("stop").await;
    assert_eq!(restart(&app, agent).await, (false, None));
    host.ended(EndReason::Stopped).await;
    let next = host.launched().await;
    next.launch_plan().await.unwrap();
    next.started().await;
    assert_eq!(restart(&app, agent).await, (false, None));
    // The plan of the launch is stored only sealed.
    let kept: Vec<Vec<u8>> = app.column("SELECT launched_with_sealed FROM agents").await;
    let kept = String::from_utf8_lossy(&kept[0]).into_owned();
    assert!(!kept.contains("environment") && !kept.contains("generation"), "{kept}");
}

#[tokio::test]
async fn a_model_credential_is_used_once_it_is_given() {
    let (app, agent) = TestApp::with_agent().await;
    let query = "mutation($o: Id!, $a: Id!, $i: UpdateAgentInput!) { updateAgent(orgId: $o, id: $a, input: $i) { credentialChoice } }";
    let choice = async |input: Value| {
        let edited = app.operator.gql(query, json!({ "o": app.org, "a": agent, "i": input })).await.data();
        edited["updateAgent"]["credentialChoice"].clone()
    };
    assert_eq!(choice(json!({ "modelCredential": "sk-1" })).await, "OWN");
    assert_eq!(choice(json!({ "modelCredential": "sk-2", "credentialChoice": "NONE" })).await, "NONE");
    assert_eq!(choice(json!({ "modelCredential": null })).await, "NONE");
    assert_eq!(choice(json!({ "modelCredentialProvider": "openai" })).await, "NONE");
}
