//! Tests with a model, by both providers' APIs.

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    client::{Agent, peers, refusal},
    model::Model,
};

const PROVIDERS: [&str; 2] = ["openai", "anthropic"];

async fn agent_with(model: &Model, provider: &str) -> Agent {
    agent_in(tempfile::tempdir().unwrap(), model, provider).await
}

async fn agent_in(home: TempDir, model: &Model, provider: &str) -> Agent {
    let openai = format!("{}/v1", model.url);
    let environment = [
        ("MUSTER_AGENT_PROVIDER", provider),
        ("MUSTER_AGENT_MODEL", "fake"),
        ("OPENAI_BASE_URL", openai.as_str()),
        ("OPENAI_API_KEY", "sk-secret"),
        ("ANTHROPIC_BASE_URL", model.url.as_str()),
        ("ANTHROPIC_API_KEY", "sk-secret"),
    ];
    let mut agent = Agent::spawn(home, &environment);
    agent.initialize(json!({})).await;
    agent
}

async fn allow(agent: &mut Agent, option: &str) -> Value {
    let asked = agent.asked("session/request_permission").await;
    agent.reply(&asked, json!({ "outcome": { "outcome": "selected", "optionId": option } })).await;
    asked
}

fn server() -> Value {
    let args = ["node".to_owned(), peers("node_modules/.bin/mcp-server-everything").display().to_string()];
    json!([{ "name": "everything", "command": "/usr/bin/env", "args": args, "env": [] }])
}

#[tokio::test]
async fn answers_are_streamed() {
    for provider in PROVIDERS {
        let model = Model::start().await;
        let mut agent = agent_with(&model, provider).await;
        agent.skill("refunds", "---\nname: refunds\ndescription: How to refund\n---\nAsk first.");
        let session = agent.session().await;
        let turn = agent.prompt(&session, "think that you are free").await;
        assert_eq!(
            (turn.messages(), turn.reason()),
            (vec!["think that you are free".to_owned()], "end_turn")
        );
        assert_eq!(turn.updates.len(), 6, "five words and the usage");
        let usage = &turn.answer["result"]["usage"];
        assert_eq!((&usage["inputTokens"], &usage["outputTokens"]), (&json!(8), &json!(7)), "{provider}");
        assert_eq!((&usage["cachedReadTokens"], &usage["totalTokens"]), (&json!(3), &json!(18)));
        assert_eq!(turn.updates.last().unwrap()["used"], 18);
        let thought = agent.prompt(&session, "THINK twice").await;
        assert_eq!(thought.texts("agent_thought_chunk"), ["twice"]);
        assert_eq!(thought.said(), "I have thought.");

        let asked = model.asked();
        let first = &asked[0];
        let (path, key) = match provider {
            "openai" => ("/v1/chat/completions", &first.headers["authorization"]),
            _ => ("/v1/messages", &first.headers["x-api-key"]),
        };
        assert_eq!((first.path.as_str(), &first.body["model"]), (path, &json!("fake")));
        assert!(key.to_str().unwrap().ends_with("sk-secret"));
        assert!(
            first.body.to_string().contains("- refunds (skills/refunds/SKILL.md): How to refund"),
            "{}",
            first.body
        );
        let history = asked[1].body["messages"].to_string();
        assert!(history.contains("assistant") && history.contains("THINK twice"), "{history}");
    }
}

#[tokio::test]
async fn tools_are_called_after_permission_and_answer_the_model() {
    for provider in PROVIDERS {
        let model = Model::start().await;
        let mut agent = agent_with(&model, provider).await;
        let session = agent.session_with(server()).await;
        let prompt =
            "USE echo {\"message\": \"a\"}\nUSE get-sum {\"a\": 1, \"b\": 2}\nUSE no_such {}\nUSE echo [1";
        let id = agent.say(&session, prompt).await;
        let asked = allow(&mut agent, "allow").await;
        assert_eq!(asked["params"]["toolCall"]["title"], "everything: echo");
        assert_eq!(asked["params"]["toolCall"]["rawInput"], json!({ "message": "a" }));
        allow(&mut agent, "reject").await;
        let turn = agent.end(&session, id).await;
        let statuses: Vec<_> = turn.calls().into_iter().map(|(_, status, _)| status).collect();
        assert_eq!(statuses, ["completed", "failed", "failed", "failed"]);
        let said = turn.said();
        for part in ["Echo: a", "Not permitted.", "Unknown tool: no_such.", "not a JSON object"] {
            assert!(said.contains(part), "{provider}: {part}: {said}");
        }
        let usage = &turn.answer["result"]["usage"];
        assert_eq!((&usage["totalTokens"], &usage["outputTokens"]), (&json!(36), &json!(14)), "both answers");
        assert_eq!(turn.updates.last().unwrap()["used"], 18, "the context of the last one");
    }
}

#[tokio::test]
async fn muster_judges_each_call_itself_so_it_is_not_asked() {
    let model = Model::start().await;
    let openai = format!("{}/v1", model.url);
    let access = [("MUSTER_AGENT_MODEL", "fake"), ("OPENAI_BASE_URL", openai.as_str())];
    let mut agent = Agent::spawn(tempfile::tempdir().unwrap(), &access);
    let client = json!({ "name": "muster", "version": "1" });
    agent
        .call("initialize", json!({ "protocolVersion": 1, "clientCapabilities": {}, "clientInfo": client }))
        .await;
    let session = agent.session_with(server()).await;
    let turn = agent.prompt(&session, "USE echo {\"message\": \"a\"}").await;
    assert_eq!(turn.calls()[0].1, "completed");
}

#[tokio::test]
async fn in_plan_mode_the_model_gets_no_tools_of_servers() {
    for provider in PROVIDERS {
        let model = Model::start().await;
        let mut agent = agent_with(&model, provider).await;
        let session = agent.session_with(server()).await;
        let choice = json!({ "sessionId": session, "configId": "mode", "value": "plan" });
        agent.call("session/set_config_option", choice).await;
        let turn = agent.prompt(&session, "USE echo {\"message\": \"a\"}").await;
        assert!(turn.said().contains("Unknown tool: echo."), "{provider}: {}", turn.said());
        let asked = model.asked()[0].body.to_string();
        assert!(asked.contains("You are in plan mode") && asked.contains("read_file"), "{asked}");
    }
}

#[tokio::test]
async fn only_skills_and_received_files_are_readable() {
    let model = Model::start().await;
    let mut agent = agent_with(&model, "anthropic").await;
    agent.skill("refunds", "---\nname: refunds\ndescription: How to refund\n---\nAsk Anna first.");
    let home = agent.home.path().to_owned();
    std::fs::create_dir_all(home.join("inbox/1")).unwrap();
    std::fs::write(home.join("inbox/1/a b.txt"), "Dear agent").unwrap();
    std::fs::write(home.join("secret"), "sesame").unwrap();
    std::os::unix::fs::symlink(home.join("secret"), home.join("inbox/link")).unwrap();
    let session = agent.session().await;
    let sent = format!("file://{}/inbox/1/a%20b.txt", home.display());
    for (path, said) in [
        ("skills/refunds/SKILL.md", "Ask Anna first."),
        (&sent, "Dear agent"),
        ("secret", "can't be read: only files in skills and inbox"),
        ("skills/../secret", "can't be read"),
        ("inbox/link", "can't be read"),
        ("/proc/self/environ", "can't be read"),
    ] {
        let turn = agent.prompt(&session, &format!("USE read_file {}", json!({ "path": path }))).await;
        assert!(turn.said().contains(said) && !turn.said().contains("sesame"), "{path}: {}", turn.said());
    }
}

#[tokio::test]
async fn rounds_are_bounded() {
    for provider in PROVIDERS {
        let model = Model::start().await;
        let mut agent = agent_with(&model, provider).await;
        let session = agent.session().await;
        let turn = agent.prompt(&session, "ALWAYS no_such {}").await;
        assert_eq!((turn.reason(), model.asked().len()), ("max_turn_requests", 30), "{provider}");
    }
}

#[tokio::test]
async fn invented_tool_names_are_normalized() {
    for provider in PROVIDERS {
        let model = Model::start().await;
        let mut agent = agent_with(&model, provider).await;
        let session = agent.session().await;
        let long = "x".repeat(65);
        let turn = agent.prompt(&session, &format!("USE no.such {{}}\nUSE ÄÖÜ {{}}\nUSE {long} {{}}")).await;
        let answer = &turn.answer;
        assert!(answer.get("error").is_none(), "{provider}: {answer}");
        for name in ["no.such", "ÄÖÜ", &long] {
            let unknown = format!("Unknown tool: {name}.");
            assert!(turn.said().contains(&unknown), "{provider}: {name}: {}", turn.said());
        }
        let history = model.asked()[1].body["messages"].to_string();
        for name in ["nosuch", "tool", &"x".repeat(64)] {
            assert!(history.contains(&format!("\"name\":\"{name}\"")), "{provider}: {name}: {history}");
        }
    }
}

#[tokio::test]
async fn a_session_that_began_without_a_model_goes_on_with_one() {
    for provider in PROVIDERS {
        let mut agent = Agent::start().await;
        let session = agent.session().await;
        let id = agent.say(&session, "do execute Clean up").await;
        allow(&mut agent, "allow").await;
        assert_eq!(agent.end(&session, id).await.said(), "I was allowed to: Clean up");
        agent.process.kill().await.unwrap();

        let model = Model::start().await;
        let mut agent = agent_in(agent.home, &model, provider).await;
        agent.call("session/resume", json!({ "sessionId": session, "cwd": "/", "mcpServers": [] })).await;
        let turn = agent.prompt(&session, "Hello").await;
        assert_eq!(turn.said(), "Hello", "{provider}: {}", turn.answer);
        let history = model.asked()[0].body["messages"].to_string();
        assert!(history.contains("The reference agent only pretends."), "{provider}: {history}");
    }
}

#[tokio::test]
async fn errors_of_the_service_are_reported() {
    for provider in PROVIDERS {
        let model = Model::start().await;
        let mut agent = agent_with(&model, provider).await;
        let session = agent.session().await;
        for (prompt, code, parts) in [
            ("STATUS 401", -32000, ["refuses the key (401", "told to answer 401"]),
            ("STATUS 403", -32000, ["refuses the key (403", "told to answer 403"]),
            ("STATUS 429 7", -32603, ["429 Too Many Requests: told to answer 429", "again in 7 seconds"]),
            ("STATUS 503", -32603, ["503 Service Unavailable", "told to answer 503"]),
            ("BREAK", -32603, ["broke off", ""]),
            ("OVERLOADED", -32603, ["The model failed", "overloaded"]),
        ] {
            let (said, text) = refusal(&agent.prompt(&session, prompt).await.answer);
            assert_eq!(said, code, "{provider}: {prompt}");
            assert!(parts.iter().all(|part| text.contains(part)), "{provider}: {prompt}: {text}");
            assert!(!text.contains("sk-secret"));
        }
        let long = agent.prompt(&session, "LONG").await;
        assert_eq!((long.reason(), long.said().as_str()), ("max_tokens", "Too long"));
    }
}

#[tokio::test]
async fn a_cancelled_answer_is_stored() {
    let model = Model::start().await;
    let mut agent = agent_with(&model, "anthropic").await;
    let session = agent.session().await;
    let id = agent.say(&session, "HOLD").await;
    agent.hears("One").await;
    agent.cancel(&session).await;
    assert_eq!(agent.end(&session, id).await.reason(), "cancelled");
    agent.prompt(&session, "Go on").await;
    let history = model.asked()[1].body["messages"].clone();
    assert_eq!(history[1], json!({ "role": "assistant", "content": [{ "type": "text", "text": "One" }] }));
}

#[tokio::test]
async fn an_unreachable_service_is_reported() {
    let model = Model::start().await;
    let mut agent = agent_with(&model, "openai").await;
    drop(model);
    let session = agent.session().await;
    let (code, text) = refusal(&agent.prompt(&session, "Hello").await.answer);
    assert!(code == -32603 && text.contains("can't be reached"), "{code} {text}");
}
