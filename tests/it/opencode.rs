//! A coding agent that others wrote, unchanged, as an agent on a host: it answers, asks before it runs a command, runs it
//! when a person allows it, and goes on in its session after it was killed.

#[path = "../../crates/agent/tests/support/model.rs"]
mod model;

use std::{fs, path::PathBuf};

use serde_json::json;

use self::model::{Asked, Model};
use crate::running::House;

const PROGRAM: &str = "tests/peers/opencode/node_modules/opencode-linux-x64/bin/opencode";

/// The program, its configuration, and the host's list that names both.
fn listed(folder: &std::path::Path, model: &Model) -> PathBuf {
    let config = json!({
        "autoupdate": false, "share": "disabled", "model": "here/here", "small_model": "here/here",
        "permission": { "bash": "ask" },
        "provider": { "here": {
            "npm": "@ai-sdk/openai-compatible", "name": "Here",
            "options": { "baseURL": format!("{}/v1", model.url), "apiKey": "placeholder" },
            "models": { "here": { "name": "here", "tool_call": true, "limit": { "context": 100_000, "output": 4000 } } },
        } },
    });
    let (configuration, list) = (folder.join("opencode.json"), folder.join("programs.toml"));
    fs::write(&configuration, config.to_string()).unwrap();
    let program = std::path::absolute(PROGRAM).unwrap();
    let text = json!({ "opencode": {
        "command": program, "args": ["acp"], "readable": [program, configuration],
        "set": {
            "OPENCODE_CONFIG": configuration, "OPENCODE_DISABLE_AUTOUPDATE": "1",
            "OPENCODE_DISABLE_MODELS_FETCH": "1", "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
        },
    } });
    let text = toml::to_string(&text).unwrap();
    fs::write(&list, text).unwrap();
    list
}

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
#[tokio::test(flavor = "multi_thread")]
async fn opencode_answers_asks_and_goes_on() {
    let (house, model) = (House::open().await, Model::start().await);
    let folder = tempfile::tempdir().unwrap();
    let list = listed(folder.path(), &model);
    let image = "mutation($o: Id!) { createImage(orgId: $o, input: { name: \"OpenCode\", reference: \"opencode\" }) { id } }";
    let image = house.gql(image, json!({})).await["createImage"]["id"].as_i64().unwrap();
    let crew =
        house.crew_with("coding", Some(image), &[("MUSTER_HOST_PROGRAMS", list.to_str().unwrap())]).await;
    house.starts(&crew).await;

    let conversation = house.says(&crew, "Hello there").await;
    house.hears(&crew, conversation, "Hello there").await;
    assert_eq!(house.rests(conversation).await, ["DONE"]);

    house.adds(conversation, r#"USE bash {"command":"echo out-of-the-shell","description":"Says it"}"#).await;
    let (approval, kind) = house.asked(&crew, conversation).await;
    assert_eq!(kind, "ACTION");
    house.answers(approval, json!({ "options": ["approve"] })).await;
    house.hears(&crew, conversation, "out-of-the-shell").await;
    assert_eq!(house.rests(conversation).await, ["DONE", "DONE"]);
    let said = model.asked();
    let is_chat = |asked: &Asked| asked.path == "/v1/chat/completions" && asked.body["stream"] == true;
    assert!(said.iter().any(is_chat));
    assert!(said.iter().all(|asked| asked.headers["authorization"] == "Bearer placeholder"));
}
