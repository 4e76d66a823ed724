//! The plan with which a host launches an agent, and when an agent counts as up to date.

use muster::domain::launch;
use muster_protocol::{
    event::{EndReason, Offer},
    plan::McpTransport,
};
use serde_json::{Value, json};

use crate::{
    agents::revisions::{assign, let_agents_read},
    harness::{Host, TestApp},
    organizations::emergency_stop::{release, stop},
};

const SYNC: &str = "SELECT CASE WHEN sync_pending THEN 1 ELSE 0 END FROM agents WHERE id = $1";

pub async fn made(app: &TestApp, create: &str, input: Value) -> i64 {
    let kind = create.trim_start_matches("create");
    let query =
        format!("mutation($o: Id!, $i: Create{kind}Input!) {{ {create}(orgId: $o, input: $i) {{ id }} }}");
    app.owner.gql(&query, json!({ "o": app.org, "i": input })).await.data()[create]["id"].as_i64().unwrap()
}

async fn is_pending(app: &TestApp, agent: i64) -> bool {
    app.one::<i32>(SYNC, vec![agent.into()]).await == 1
}

async fn synced(host: &Host<'_>) {
    host.tell(async |tx, from| launch::reports::synced(tx, from).await).await.unwrap();
}

#[tokio::test]
async fn a_launch_has_everything_the_agent_may_use_and_nothing_else() {
    let (app, agent, other) = TestApp::with_two_agents().await;
    let fields = json!([{ "label": "api key", "type": "secret", "value": "hush" }, { "label": "empty", "type": "text" }]);
    let credential =
        made(&app, "createCredential", json!({ "name": "GitHub", "kind": "api-key", "fields": fields }))
            .await;
    let_agents_read(&app, credential).await;
    let fields = json!([{ "label": "token", "type": "secret", "value": "b34r3r" }]);
    let bearer = made(
        &app,
        "createCredential",
        json!({ "name": "mcp access", "kind": "bearer-token", "fields": fields,
            "destinations": ["https://mcp.example"] }),
    )
    .await;
    let archived =
        made(&app, "createCredential", json!({ "name": "old", "kind": "custom", "fields": fields })).await;
    let foreign =
        made(&app, "createCredential", json!({ "name": "not mine", "kind": "custom", "fields": fields }))
            .await;
    let server = json!({ "name": "tools", "transport": "HTTP", "url": "https://mcp.example/x", "auth": ["mcp access"] });
    let server = made(&app, "createMcpServer", server).await;
    let skill = made(
        &app,
        "createSkill",
        json!({ "name": "greet", "description": "when greeting", "content": "# Greet" }),
    )
    .await;
    for (kind, id, agents) in [
        ("Credential", credential, [agent].as_slice()),
        ("Credential", bearer, &[agent, other]),
        ("Credential", archived, &[agent]),
        ("Credential", foreign, &[other]),
        ("McpServer", server, &[agent]),
        ("Skill", skill, &[agent]),
    ] {
        assign(&app, kind, id, agents).await;
    }
    let query = "mutation($o: Id!, $i: Id!) { archiveCredential(orgId: $o, id: $i) { id } }";
    app.owner.gql(query, json!({ "o": app.org, "i": archived })).await.data();
    app.sets_agent(agent, json!({
        "role": "greeter", "noEmoji": true, "memoryMbOverride": 512, "cpuOverride": 1.5, "credentialChoice": "OWN",
        "modelCredential": "sk-model", "modelCredentialProvider": "anthropic", "modelOverride": "model-7",
        "approvalCategories": ["deleting", "promising discounts"],
    }))
    .await;
    let host = Host { app: &app, agent, generation: 0 }.launched().await;
    let plan = host.launch_plan().await.unwrap();
    assert_eq!((plan.image.as_str(), plan.model.as_deref()), ("registry.example/agent:1", Some("model-7")));
    assert_eq!((plan.limits.memory_mb, plan.limits.cpus), (Some(512), Some(1.5)));
    let access = plan.model_access.clone().unwrap();
    assert_eq!((access.provider.as_str(), access.key.expose()), ("anthropic", "sk-model"));
    let variables: Vec<_> = plan.environment.iter().map(|v| (v.name.as_str(), v.value.expose())).collect();
    assert_eq!(variables, [("GITHUB_API_KEY", "hush")], "a person has said so of this one");
    let skills: Vec<_> = plan
        .skills
        .iter()
        .map(|skill| (skill.name.as_str(), skill.content.as_str(), skill.version))
        .collect();
    assert_eq!(skills, [("greet", "# Greet", 1)]);
    let McpTransport::Http { url, headers } = &plan.mcp_servers[0].transport else { panic!("{plan:?}") };
    assert_eq!((url.as_str(), headers[0].name.as_str()), ("https://mcp.example/x", "Authorization"));
    assert_eq!(headers[0].value.expose(), "Bearer b34r3r");
    assert!(
        plan.instructions.contains("Your role: greeter.") && plan.instructions.contains("Do not use emoji.")
    );
    assert!(plan.instructions.contains("- promising discounts"), "{}", plan.instructions);
    assert!(!plan.instructions.contains("- deleting"), "a rule sees to that");
    let launched: i64 =
        app.one("SELECT launched_revision FROM agents WHERE id = $1", vec![agent.into()]).await;
    assert_eq!(plan.revision, launched);
    let told = format!("{plan:?}");
    assert!(!told.contains("hush") && !told.contains("sk-model") && !told.contains("b34r3r"), "{told}");
}

#[tokio::test]
async fn only_the_present_launch_is_told() {
    let app = TestApp::start().await;
    let at_rest = Host { app: &app, agent: app.agent().await, generation: 0 };
    let refused = at_rest.launch_plan().await.unwrap_err();
    assert_eq!(refused.code.as_str(), "AGENT_NOT_RUNNING");
    let host = at_rest.launched().await;
    assert!(host.launch_plan().await.is_ok());
    host.started().await;
    assert!(host.launch_plan().await.is_ok(), "changed credentials reach a running agent");
    host.act("stop").await;
    assert_eq!(host.launch_plan().await.unwrap_err().code.as_str(), "AGENT_NOT_RUNNING");
    host.ended(EndReason::Stopped).await;
    let next = host.launched().await;
    assert_eq!(host.launch_plan().await.unwrap_err().code.as_str(), "AGENT_NOT_RUNNING");
    let (scope, agent) = (app.other_scope(), muster::base::ids::AgentId(host.agent));
    let foreign = launch::plans::launch(&scope, agent, next.generation);
    assert_eq!(foreign.await.unwrap_err().code.as_str(), "NOT_FOUND");
}

#[tokio::test]
async fn an_agent_without_access_of_its_own_is_given_none() {
    let app = TestApp::start().await;
    let host = app.starting_agent().await;
    for choice in ["INHERIT", "NONE"] {
        app.sets_agent(host.agent, json!({ "credentialChoice": choice, "modelCredential": "sk-model" }))
            .await;
        let plan = host.launch_plan().await.unwrap();
        assert_eq!((plan.model_access, plan.model.as_deref()), (None, Some("model-1")));
    }
}

#[tokio::test]
async fn skills_that_do_not_fit_are_named() {
    let app = TestApp::start().await;
    let host = app.starting_agent().await;
    let text = "x".repeat(600_000);
    for name in ["one", "two"] {
        let sql = "INSERT INTO skills (organization_id, name, name_folded, content, content_hash, created_at, updated_at) \
                   VALUES ($1, $2, $2, $3, '', 0, 0) RETURNING id";
        let skill: i64 = app.one(sql, vec![app.org.into(), name.into(), text.clone().into()]).await;
        let sql = "INSERT INTO skill_agents (organization_id, skill_id, agent_id, assigned_at) VALUES ($1, $2, $3, 0)";
        app.execute(sql, vec![app.org.into(), skill.into(), host.agent.into()]).await;
    }
    let refused = host.launch_plan().await.unwrap_err();
    assert_eq!(refused.code.as_str(), "PAYLOAD_TOO_LARGE");
    assert!(refused.detail.contains("1200000"), "{}", refused.detail);
}

#[tokio::test]
async fn an_agent_is_up_to_date_after_its_hosts_last_command() {
    let app = TestApp::start().await;
    let host = app.starting_agent().await;
    app.sets_agent(host.agent, json!({ "language": "de" })).await;
    assert!(is_pending(&app, host.agent).await);
    synced(&host).await;
    assert!(is_pending(&app, host.agent).await, "its host has not asked since");
    host.launch_plan().await.unwrap();
    app.sets_agent(host.agent, json!({ "language": "fr" })).await;
    synced(&host).await;
    assert!(is_pending(&app, host.agent).await, "something has changed meanwhile");
    host.launch_plan().await.unwrap();
    host.started().await;
    assert!(!is_pending(&app, host.agent).await, "a launch takes everything");
    app.sets_agent(host.agent, json!({ "language": "en" })).await;
    host.launch_plan().await.unwrap();
    synced(&host).await;
    assert!(!is_pending(&app, host.agent).await);
}

#[tokio::test]
async fn a_moved_agent_begins_new_sessions() {
    let (app, agent, conversation) = TestApp::with_conversation().await;
    app.execute("UPDATE conversations SET session = 's-1' WHERE id = $1", vec![conversation.into()]).await;
    let session = || app.one::<Option<String>>("SELECT session FROM conversations", vec![]);
    app.sets_agent(agent, json!({ "name": "another name" })).await;
    assert_eq!(session().await.as_deref(), Some("s-1"));
    app.sets_agent(agent, json!({ "serverId": app.server().await })).await;
    assert_eq!(session().await, None);
}

#[tokio::test]
async fn people_are_asked_once_for_access_to_the_model() {
    let app = TestApp::start().await;
    let (host, conversation) = app.talking_agent().await;
    let required = async || {
        let told = host.tell(async |tx, from| {
            launch::reports::auth_required(tx, from, "401 from the model".to_owned()).await
        });
        told.await.unwrap();
    };
    required().await;
    required().await;
    let query = "query($o: Id!, $i: Id!) { agent(orgId: $o, id: $i) { status authFailedAt } \
                 approvals(orgId: $o, page: 1, limit: 9, onlyPending: false) { data { kind status outcome body } } }";
    let ask = || app.viewer.gql(query, json!({ "o": app.org, "i": host.agent }));
    let shown = ask().await.data();
    let pending = json!([{ "kind": "AUTH_REQUIRED", "status": "PENDING", "outcome": null, "body": "401 from the model" }]);
    assert_eq!(shown["approvals"]["data"], pending);
    assert!(shown["agent"]["authFailedAt"].is_string());
    let reason = || app.one::<Option<String>>("SELECT status_reason FROM agents", vec![]);
    assert_eq!(reason().await.as_deref(), Some("AUTH_REQUIRED"));
    let post = "mutation($o: Id!, $c: Id!) { postMessage(orgId: $o, conversationId: $c, input: { text: \"again\" }) { turn { id } } }";
    let posted = app.operator.gql(post, json!({ "o": app.org, "c": conversation })).await.data();
    let turn = posted["postMessage"]["turn"]["id"].as_i64().unwrap();
    host.takes(turn).await;
    host.turn_ended(turn, muster_protocol::event::TurnOutcome::Done).await;
    let shown = ask().await.data();
    assert_eq!(shown["agent"], json!({ "status": "RUNNING", "authFailedAt": null }));
    assert_eq!(shown["approvals"]["data"][0]["outcome"], "WITHDRAWN");
    assert_eq!(reason().await, None);
}

#[tokio::test]
async fn what_an_agent_offers_is_shown_until_it_gets_another_image() {
    let app = TestApp::start().await;
    let host = app.running_agent().await;
    let shown = || {
        host.agent_shows(
            "offeredModels { id name description current } offeredModes { id current } updatedAt",
        )
    };
    assert_eq!(shown().await["offeredModels"], Value::Null);
    let offer = |id: &str, current| Offer {
        id: id.to_owned(),
        name: format!("{id}\u{202e}"),
        description: (id == "small").then(|| "quick\0".to_owned()),
        current,
    };
    let tell = async |models: Vec<Offer>| {
        let modes = vec![offer("ask", true)];
        host.tell(async |tx, from| launch::reports::offered(tx, from, models, modes).await).await.unwrap();
    };
    let models =
        || vec![offer("small", true), offer("large", false), offer(" ", false), offer("a\nb", false)];
    tell(models()).await;
    let first = shown().await;
    let expected = json!([
        { "id": "small", "name": "small\u{fffd}", "description": "quick\u{fffd}", "current": true },
        { "id": "large", "name": "large\u{fffd}", "description": null, "current": false },
    ]);
    assert_eq!(first["offeredModels"], expected);
    assert_eq!(first["offeredModes"], json!([{ "id": "ask", "current": true }]));
    app.clock.advance(std::time::Duration::from_secs(1));
    tell(models()).await;
    assert_eq!(shown().await, first, "what is known changes nothing");
    tell(vec![offer("x", true); 500]).await;
    assert_eq!(shown().await["offeredModels"].as_array().unwrap().len(), 100);
    let before = Host { generation: host.generation - 1, ..host };
    before.tell(async |tx, from| launch::reports::offered(tx, from, vec![], vec![]).await).await.unwrap();
    assert_eq!(
        shown().await["offeredModels"].as_array().unwrap().len(),
        100,
        "an earlier launch says nothing"
    );
    host.ended(EndReason::Exited).await;
    let image = made(&app, "createImage", json!({ "name": "Other", "reference": "other" })).await;
    app.sets_agent(host.agent, json!({ "imageId": image })).await;
    assert_eq!(
        (shown().await["offeredModels"].clone(), shown().await["offeredModes"].clone()),
        (Value::Null, Value::Null)
    );
}

#[tokio::test]
async fn an_agent_says_why_its_planned_mode_is_not_in_force() {
    let app = TestApp::start().await;
    let host = app.running_agent().await;
    let shown = || host.agent_shows("modeOverride modeProblem syncPending");
    let problem = async || shown().await["modeProblem"].clone();
    let tell = async |modes: &[(&str, bool)]| {
        let modes = modes.iter().map(|(id, current)| Offer {
            id: (*id).to_owned(),
            name: (*id).to_owned(),
            description: None,
            current: *current,
        });
        let modes: Vec<Offer> = modes.collect();
        host.tell(async |tx, from| launch::reports::offered(tx, from, vec![], modes).await).await.unwrap();
    };
    assert_eq!(host.launch_plan().await.unwrap().mode, None);
    app.sets_agent(host.agent, json!({ "modeOverride": "plan" })).await;
    let set = shown().await;
    assert_eq!((&set["modeOverride"], &set["syncPending"]), (&json!("plan"), &json!(true)));
    assert_eq!(set["modeProblem"], Value::Null, "it is unknown what it offers");
    assert_eq!(host.launch_plan().await.unwrap().mode.as_deref(), Some("plan"));
    tell(&[]).await;
    assert_eq!(problem().await, "It offers no modes to choose from.");
    tell(&[("ask", true), ("code", false)]).await;
    assert_eq!(problem().await, "Its sessions do not offer this mode.");
    tell(&[("ask", true), ("plan", false)]).await;
    assert!(problem().await.as_str().unwrap().contains("is in another mode"));
    tell(&[("ask", false), ("plan", true)]).await;
    assert_eq!(problem().await, Value::Null);
    let restart = "SELECT COUNT(*) FROM agents WHERE restart_reason IS NOT NULL";
    assert_eq!(app.one::<i64>(restart, vec![]).await, 0, "its sessions get it");
    app.sets_agent(host.agent, json!({ "modeOverride": null })).await;
    assert_eq!(shown().await["modeOverride"], Value::Null);
    assert_eq!(host.launch_plan().await.unwrap().mode, None);
}

#[tokio::test]
async fn a_change_that_does_not_fit_is_told_to_people_until_it_fits() {
    let app = TestApp::start().await;
    let host = app.running_agent().await;
    let why = || host.agent_shows("status statusReason statusDetail");
    // The server of a running agent has a host.
    app.execute("UPDATE servers SET status = 'ONLINE'", vec![]).await;
    let mut skills = Vec::new();
    while host.launch_plan().await.is_ok() {
        assert_eq!(why().await["statusReason"], Value::Null);
        assert!(skills.len() < 50, "a frame has its bounds");
        let name = format!("long {}", skills.len());
        skills.push(made(&app, "createSkill", json!({ "name": name, "content": "x".repeat(60_000) })).await);
        assign(&app, "Skill", skills[skills.len() - 1], &[host.agent]).await;
    }
    let told = why().await;
    assert_eq!((&told["status"], &told["statusReason"]), (&json!("RUNNING"), &json!("SYNC_FAILED")));
    let detail = told["statusDetail"].as_str().unwrap();
    assert!(detail.contains("Shorten or remove skills"), "{detail}");
    assert!(is_pending(&app, host.agent).await);
    // A stop still reaches the host, and the change waits.
    stop(&app, &app.operator, "so").await.data();
    assert!(host.launch_plan().await.unwrap().stopped);
    synced(&host).await;
    assert!(is_pending(&app, host.agent).await);
    release(&app, &app.admin).await.data();
    assert_eq!(why().await, told);
    assert_eq!(host.launch_plan().await.unwrap_err().code.as_str(), "PAYLOAD_TOO_LARGE");
    assign(&app, "Skill", skills[0], &[]).await;
    host.launch_plan().await.unwrap();
    synced(&host).await;
    assert_eq!(
        (why().await["statusReason"].clone(), is_pending(&app, host.agent).await),
        (Value::Null, false)
    );
}
