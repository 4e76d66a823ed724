//! Profiles: which there are, which an image has, and what a host gets of them.

use serde_json::{Value, json};

use crate::harness::{Actor, Host, TestApp};

const CREATE: &str =
    "mutation($o: Id!, $i: CreateImageInput!) { createImage(orgId: $o, input: $i) { id profile } }";
const UPDATE: &str = "mutation($o: Id!, $id: Id!, $i: UpdateImageInput!) { updateImage(orgId: $o, id: $id, input: $i) { profile } }";

async fn created(app: &TestApp, profile: Value) -> Value {
    let input = json!({ "name": "coder", "reference": "coder", "profile": profile });
    app.admin.gql(CREATE, json!({ "o": app.org, "i": input })).await.data()["createImage"].clone()
}

async fn list(by: &Actor, org: i64) -> Vec<Value> {
    let query = "query($o: Id!) { profiles(orgId: $o) { name title description interface provider login behaviour \
                 lastRunWith lastRunOn } }";
    by.gql(query, json!({ "o": org })).await.data()["profiles"].as_array().unwrap().clone()
}

#[tokio::test]
async fn the_profiles_are_listed_with_what_they_were_last_run_with() {
    let app = TestApp::start().await;
    let all = list(&app.viewer, app.org).await;
    let names: Vec<&str> = all.iter().map(|one| one["name"].as_str().unwrap()).collect();
    let expected = ["claude", "cline", "codex", "fast-agent", "gemini", "muster-agent", "opencode", "qwen"];
    assert_eq!(names, expected);
    let opencode = &all[6];
    assert_eq!((&opencode["interface"], &opencode["provider"]), (&json!("OPENAI_CHAT"), &json!("openai")));
    assert_eq!(opencode["lastRunWith"], "1.18.33");
    assert_eq!(opencode["lastRunOn"].as_str().unwrap().len(), 10);
}

#[tokio::test]
async fn an_image_is_given_a_profile_that_exists() {
    let app = TestApp::start().await;
    let image = created(&app, json!("opencode")).await;
    assert_eq!(image["profile"], "opencode");
    let update = async |profile: Value| {
        app.admin.gql(UPDATE, json!({ "o": app.org, "id": image["id"], "i": { "profile": profile } })).await
    };
    assert_eq!(update(json!("gemini")).await.data()["updateImage"]["profile"], "gemini");
    let answer = update(json!("nope")).await;
    assert_eq!(answer.code(), "VALIDATION_FAILED");
    assert!(answer.body.to_string().contains("does not exist. `profiles`"), "{}", answer.body);
    assert_eq!(update(Value::Null).await.data()["updateImage"]["profile"], Value::Null);
    let input = json!({ "name": "other", "reference": "x", "profile": "nope" });
    assert_eq!(app.admin.gql(CREATE, json!({ "o": app.org, "i": input })).await.code(), "VALIDATION_FAILED");
}

#[tokio::test]
async fn a_host_gets_the_profile_and_another_needs_a_restart() {
    let app = TestApp::start().await;
    let image = created(&app, json!("opencode")).await;
    let agent = app.agent().await;
    app.sets_agent(agent, json!({ "imageId": image["id"], "modelOverride": "large" })).await;
    let host = Host { app: &app, agent, generation: 0 }.launched().await;
    let plan = host.launch_plan().await.unwrap();
    let profile = plan.profile.unwrap();
    assert_eq!((profile.name.as_str(), profile.command[0].as_str()), ("opencode", "opencode"));
    assert!(profile.files.values().any(|text| text.contains("{model_url}")), "the host fills it in");
    host.started().await;
    let reason = async || {
        host.launch_plan().await.unwrap();
        host.agent_shows("restartReason").await["restartReason"].clone()
    };
    assert_eq!(reason().await, Value::Null);
    app.sets_agent(agent, json!({ "modelOverride": "small" })).await;
    assert_eq!(reason().await, "Its profile or the model in it has changed.");
    app.sets_agent(agent, json!({ "modelOverride": "large" })).await;
    assert_eq!(reason().await, Value::Null);
    let variables = json!({ "o": app.org, "id": image["id"], "i": { "profile": "qwen" } });
    app.admin.gql(UPDATE, variables).await.data();
    assert_eq!(reason().await, "Its profile or the model in it has changed.");
}

#[tokio::test]
async fn the_docs_profile_is_listed_and_sent_to_the_host() {
    const FILE: &str = "/etc/muster/profiles/our-agent.toml";
    let docs = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/agents.md");
    let docs = std::fs::read_to_string(docs).unwrap();
    let (_, shown) = docs.split_once(&format!("```toml\n# {FILE}\n")).expect("the docs show one");
    let (text, _) = shown.split_once("```").unwrap();
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("our-agent.toml"), text).unwrap();
    let dir = folder.path().to_owned();
    let app = TestApp::start_with(|config| config.profiles_dir = Some(dir)).await;
    let all = list(&app.viewer, app.org).await;
    let own = all.iter().find(|one| one["name"] == "our-agent").expect("it is listed");
    assert_eq!((&own["title"], &own["lastRunWith"]), (&json!("Our agent"), &Value::Null));
    let image = created(&app, json!("our-agent")).await;
    let agent = app.agent().await;
    app.sets_agent(agent, json!({ "imageId": image["id"] })).await;
    let host = Host { app: &app, agent, generation: 0 }.launched().await;
    let profile = host.launch_plan().await.unwrap().profile.unwrap();
    assert_eq!(profile.command, ["our-agent", "--acp"]);
    assert_eq!(profile.environment["OUR_MODEL_URL"], "{model_url}");
    assert_eq!(profile.files[".config/our-agent.json"], r#"{ "model": "{model}", "data": "{home}/data" }"#);
}

#[tokio::test]
async fn a_profile_that_is_gone_is_told_when_an_agent_is_launched() {
    let (app, agent) = TestApp::with_agent().await;
    app.execute(
        "UPDATE images SET profile = 'gone' WHERE id IN (SELECT image_id FROM agents WHERE id = $1)",
        vec![agent.into()],
    )
    .await;
    let host = Host { app: &app, agent, generation: 0 }.launched().await;
    let problem = host.launch_plan().await.unwrap_err();
    assert_eq!(problem.code.as_str(), "CONFLICT");
    assert!(problem.detail.contains("profile gone"), "{}", problem.detail);
}
