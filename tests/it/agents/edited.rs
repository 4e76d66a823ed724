//! Effects of editing an agent beyond its own row, and settings that contradict each other.

use muster_protocol::event::TurnOutcome;
use serde_json::{Value, json};

use crate::{
    agents::revisions::history,
    conversations::turns::write,
    harness::{Answer, TestApp},
};

const UPDATE: &str = "mutation($o: Id!, $id: Id!, $i: UpdateAgentInput!) { updateAgent(orgId: $o, id: $id, input: $i) { \
    serverId syncPending resolvedModel modelCredentialType } }";

async fn edit(app: &TestApp, agent: i64, input: Value) -> Answer {
    app.operator.gql(UPDATE, json!({ "o": app.org, "id": agent, "i": input })).await
}

async fn set_status(app: &TestApp, agent: i64, status: &str) {
    app.execute("UPDATE agents SET status = $1 WHERE id = $2", vec![status.into(), agent.into()]).await;
}

#[tokio::test]
async fn a_running_agent_stays_on_its_server() {
    let (app, agent) = TestApp::with_agent().await;
    let (server, image) = (app.server().await, app.image().await);
    let home: i64 = app.one("SELECT server_id FROM agents WHERE id = $1", vec![agent.into()]).await;
    for status in ["SPAWNING", "RUNNING", "PAUSED", "STOPPING"] {
        set_status(&app, agent, status).await;
        for moved in [json!({ "serverId": server }), json!({ "imageId": image })] {
            let refused = edit(&app, agent, moved).await;
            assert_eq!(refused.code(), "AGENT_ALREADY_RUNNING");
            assert_eq!(refused.body["errors"][0]["extensions"]["details"]["status"], status);
        }
        edit(&app, agent, json!({ "serverId": home })).await.data();
    }
    for (status, moved) in
        [("STOPPED", json!({ "serverId": server })), ("ERROR", json!({ "imageId": image }))]
    {
        set_status(&app, agent, status).await;
        assert_eq!(edit(&app, agent, moved).await.data()["updateAgent"]["serverId"], server);
    }
}

#[tokio::test]
async fn the_host_hears_of_settings_it_uses() {
    let (app, agent) = TestApp::with_agent().await;
    set_status(&app, agent, "RUNNING").await;
    let commands = || app.column::<String>("SELECT kind FROM commands ORDER BY id");
    // The operator may not open the network.
    let opened = async |is_open: bool| {
        let input = json!({ "networkPrivileged": is_open, "role": "z" });
        app.admin.gql(UPDATE, json!({ "o": app.org, "id": agent, "i": input })).await.data()
    };
    let not_its = json!({ "name": "Grace", "description": "x", "role": "y", "instructions": "z" });
    let told = edit(&app, agent, not_its).await.data();
    assert_eq!((&told["updateAgent"]["syncPending"], commands().await.len()), (&json!(false), 0));
    let told = edit(&app, agent, json!({ "disabledToolGroups": ["shell"] })).await.data();
    assert_eq!(told["updateAgent"]["syncPending"], true);
    assert_eq!(commands().await, ["SYNC"]);
    edit(&app, agent, json!({ "disabledToolGroups": ["shell"] })).await.data();
    assert_eq!(commands().await, ["SYNC"], "nothing changed");
    opened(true).await;
    assert_eq!(commands().await, ["SYNC"], "the first one brings both changes");
    app.execute("UPDATE commands SET host_seq = 1", vec![]).await;
    edit(&app, agent, json!({ "disabledToolGroups": [] })).await.data();
    edit(&app, agent, json!({ "disabledToolGroups": ["mail"] })).await.data();
    assert_eq!(commands().await, ["SYNC", "SYNC"], "the host may have asked for what it had to know by then");
    app.execute("UPDATE agents SET launch_generation = launch_generation + 1", vec![]).await;
    edit(&app, agent, json!({ "disabledToolGroups": [] })).await.data();
    assert_eq!(commands().await, ["SYNC"; 3], "another launch is announced by itself");
    set_status(&app, agent, "STOPPED").await;
    opened(false).await;
    assert_eq!(commands().await, ["SYNC"; 3], "there is no host to notify");
}

#[tokio::test]
async fn the_resolved_model_follows_the_image() {
    let (app, agent) = TestApp::with_agent().await;
    let image: i64 = app.one("SELECT image_id FROM agents WHERE id = $1", vec![agent.into()]).await;
    let update = "mutation($o: Id!, $id: Id!, $m: String) { \
                  updateImage(orgId: $o, id: $id, input: { defaultModel: $m }) { id } }";
    let resolved = async || {
        let get = "query($o: Id!, $id: Id!) { agent(orgId: $o, id: $id) { resolvedModel } }";
        app.viewer.gql(get, json!({ "o": app.org, "id": agent })).await.data()["agent"]["resolvedModel"]
            .clone()
    };
    assert_eq!(resolved().await, "model-1");
    app.admin.gql(update, json!({ "o": app.org, "id": image, "m": "model-2" })).await.data();
    assert_eq!(resolved().await, "model-2");
    edit(&app, agent, json!({ "modelOverride": "own" })).await.data();
    assert_eq!(resolved().await, "own");
    edit(&app, agent, json!({ "modelOverride": null })).await.data();
    app.admin.gql(update, json!({ "o": app.org, "id": image, "m": null })).await.data();
    assert_eq!(resolved().await, Value::Null);
}

#[tokio::test]
async fn revisions_have_the_mode_that_was_set() {
    let (app, agent) = TestApp::with_agent().await;
    edit(&app, agent, json!({ "modeOverride": "act" })).await.data();
    edit(&app, agent, json!({ "modeOverride": "plan" })).await.data();
    let newest = history(&app, agent).await.remove(0);
    assert_eq!(newest["content"]["modeOverride"], "plan");
    assert_eq!(newest["changes"], json!({ "modeOverride": ["act", "plan"] }));
    let long = "x".repeat(201);
    for (mode, code) in [(" ", "TOO_SHORT"), (long.as_str(), "TOO_LONG"), ("a\nb", "NOT_ALLOWED")] {
        let refused = edit(&app, agent, json!({ "modeOverride": mode })).await;
        assert_eq!(refused.wrong_inputs(), [("/input/modeOverride", code)]);
    }
}

#[tokio::test]
async fn instructions_come_with_each_turn_and_are_in_the_revisions() {
    let app = TestApp::start().await;
    let (host, conversation) = app.talking_agent().await;
    let told = async || {
        write(&app, conversation, "Hello").await;
        let turn = *host.given().await.last().unwrap();
        let plan = host.takes(turn).await;
        host.turn_ended(turn, TurnOutcome::Done).await;
        plan.instructions
    };
    assert_eq!(told().await, "");
    edit(&app, host.agent, json!({ "instructions": "Promise nothing." })).await.data();
    assert_eq!(told().await, "Your instructions:\nPromise nothing.");
    edit(&app, host.agent, json!({ "instructions": " Promise\nless." })).await.data();
    assert_eq!(told().await, "Your instructions:\n Promise\nless.");
    let newest = history(&app, host.agent).await.remove(0);
    assert_eq!(newest["changes"], json!({ "instructions": ["Promise nothing.", " Promise\nless."] }));
    edit(&app, host.agent, json!({ "instructions": " \n" })).await.data();
    assert_eq!(told().await, "");
    let refused = edit(&app, host.agent, json!({ "instructions": "x".repeat(8001) })).await;
    assert_eq!(refused.wrong_inputs(), [("/input/instructions", "TOO_LONG")]);
}

#[tokio::test]
async fn an_agent_is_created_with_instructions_that_the_schema_shows() {
    let (app, agent) = TestApp::with_agent().await;
    let server: i64 = app.one("SELECT server_id FROM agents WHERE id = $1", vec![agent.into()]).await;
    let image: i64 = app.one("SELECT image_id FROM agents WHERE id = $1", vec![agent.into()]).await;
    let input = json!({ "name": "Ada", "serverId": server, "imageId": image, "instructions": "Be kind." });
    let create =
        "mutation($o: Id!, $i: CreateAgentInput!) { createAgent(orgId: $o, input: $i) { id instructions } }";
    let made =
        app.operator.gql(create, json!({ "o": app.org, "i": input })).await.data()["createAgent"].clone();
    assert_eq!(made["instructions"], "Be kind.");
    let shown = app.viewer.get(&format!("/v1/org/{}/agent/{}", app.org, made["id"])).await.expect(200);
    assert!(!shown.as_object().unwrap().contains_key("instructions"), "{shown}");
}

#[tokio::test]
async fn the_plan_binds_an_agents_schedule_too() {
    let (app, agent) = TestApp::with_agent().await;
    app.execute("UPDATE organizations SET min_cron_interval_minutes_override = 60", vec![]).await;
    let often = edit(&app, agent, json!({ "backupSchedule": "CRON", "backupCron": "*/30 * * * *" })).await;
    assert_eq!(often.wrong_inputs(), [("/input/backupCron", "TOO_SMALL")]);
    edit(&app, agent, json!({ "backupSchedule": "CRON", "backupCron": "0 * * * *" })).await.data();
    let never = edit(&app, agent, json!({ "backupCron": "0 0 30 2 *" })).await;
    assert_eq!(never.wrong_inputs(), [("/input/backupCron", "NOT_ALLOWED")]);
    let nowhere = edit(&app, agent, json!({ "timezone": "Factory" })).await;
    assert_eq!(nowhere.wrong_inputs(), [("/input/timezone", "NOT_ALLOWED")]);
    let whole = "mutation($o: Id!) { updateOrganization(orgId: $o, input: { backupCron: \"59 23 31 2,4,6,9,11 *\" }) { id } }";
    let never = app.owner.gql(whole, json!({ "o": app.org })).await;
    assert_eq!(never.wrong_inputs(), [("/input/backupCron", "NOT_ALLOWED")]);
}

#[tokio::test]
async fn a_refusal_names_fields_as_the_schema_spells_them() {
    let (app, agent) = TestApp::with_agent().await;
    let refused = edit(&app, agent, json!({ "credentialChoice": "OWN" })).await;
    let told = &refused.body["errors"][0]["extensions"]["errors"][0];
    assert_eq!(told["detail"], "`modelCredential` is required when `credentialChoice` is OWN.");
    let conversation = app.conversation(agent).await;
    let query = "query($o: Id!, $a: Id!, $c: Id!) { \
        messages(orgId: $o, agentId: $a, conversationId: $c, beforeSeq: 5, afterSeq: 1) { data { id } } }";
    let refused = app.viewer.gql(query, json!({ "o": app.org, "a": agent, "c": conversation })).await;
    assert_eq!(refused.wrong_inputs(), [("/afterSeq", "NOT_ALLOWED")]);
    let detail = refused.body["errors"][0]["extensions"]["errors"][0]["detail"].as_str().unwrap();
    assert!(detail.contains("`afterSeq`") && !detail.contains('_'), "{detail}");
}

#[tokio::test]
async fn settings_that_contradict_each_other_are_refused() {
    let (app, agent) = TestApp::with_agent().await;
    let cases = [
        (json!({ "backupSchedule": "CRON" }), vec![("/input/backupCron", "REQUIRED")]),
        (
            json!({ "costGuardMode": "CUSTOM" }),
            vec![("/input/costGuardTokensPerHour", "REQUIRED"), ("/input/costGuardAction", "REQUIRED")],
        ),
        (json!({ "sessionResetMode": "CUSTOM" }), vec![("/input/sessionResetTokens", "REQUIRED")]),
        (json!({ "credentialChoice": "OWN" }), vec![("/input/modelCredential", "REQUIRED")]),
        (
            json!({ "approvalAskThreshold": 90, "approvalBlockThreshold": 10 }),
            vec![("/input/approvalAskThreshold", "TOO_LARGE")],
        ),
        (json!({ "cpuOverride": 0 }), vec![("/input/cpuOverride", "TOO_SMALL")]),
        (json!({ "language": "zz-nonsense-!!" }), vec![("/input/language", "NOT_ALLOWED")]),
        (json!({ "voiceId": " " }), vec![("/input/voiceId", "TOO_SHORT")]),
        (
            json!({ "modelCredentialBaseUrl": "https://user:hunter2@models.example" }),
            vec![("/input/modelCredentialBaseUrl", "NOT_ALLOWED")],
        ),
    ];
    for (input, wrong) in cases {
        let refused = edit(&app, agent, input.clone()).await;
        assert_eq!(refused.wrong_inputs(), wrong, "{input}");
        assert!(!refused.text.contains("hunter2"), "{}", refused.text);
    }
    // Stored settings count as well.
    edit(&app, agent, json!({ "backupCron": "0 3 * * *", "approvalBlockThreshold": 50 })).await.data();
    edit(&app, agent, json!({ "backupSchedule": "CRON", "approvalAskThreshold": 50 })).await.data();
    let gone = edit(&app, agent, json!({ "backupCron": null })).await;
    assert_eq!(gone.wrong_inputs(), [("/input/backupCron", "REQUIRED")]);
    let all = json!({
        "costGuardMode": "CUSTOM", "costGuardTokensPerHour": 5, "costGuardAction": "PAUSE", "sessionResetMode": "CUSTOM",
        "sessionResetTokens": 5, "credentialChoice": "OWN", "modelCredential": "k", "modelCredentialType": "API_KEY",
        "language": "zh-Hant-TW", "cpuOverride": 0.5, "voiceId": "v",
    });
    edit(&app, agent, all).await.data();
    let gone = edit(&app, agent, json!({ "modelCredential": null })).await;
    assert_eq!(gone.wrong_inputs(), [("/input/modelCredential", "REQUIRED")]);
    let gone = json!({ "modelCredential": null, "credentialChoice": "INHERIT" });
    assert_eq!(edit(&app, agent, gone).await.data()["updateAgent"]["modelCredentialType"], Value::Null);
}

#[tokio::test]
async fn no_one_writes_to_a_deleted_agent() {
    let (app, agent, conversation) = TestApp::with_conversation().await;
    app.delete_agent(agent).await;
    let post = "mutation($o: Id!, $c: Id!) { postMessage(orgId: $o, conversationId: $c, input: { text: \"hello\" }) { id } }";
    let refused = app.operator.gql(post, json!({ "o": app.org, "c": conversation })).await;
    assert_eq!(refused.code(), "ARCHIVED");
    assert!(refused.text.contains("deleted"), "{}", refused.text);
    assert_eq!(app.one::<i64>("SELECT COUNT(*) FROM messages", vec![]).await, 0);
    // The conversation stays and names the agent, but the agent's record is gone everywhere.
    let get =
        "query($o: Id!, $c: Id!) { conversation(orgId: $o, id: $c) { agent { id } agentDetails { id } } }";
    let shown = app.viewer.gql(get, json!({ "o": app.org, "c": conversation })).await.data();
    assert_eq!(shown["conversation"], json!({ "agent": { "id": agent }, "agentDetails": null }));
}
