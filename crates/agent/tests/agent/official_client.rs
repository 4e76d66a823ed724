//! A test with the protocol's official client library (`tests/peers/acp`), which validates messages.

use std::process::Stdio;

use serde_json::{Value, json};
use tokio::{process::Command, time::timeout};

use crate::client::{LIMIT, peers};

#[tokio::test]
async fn the_official_library_understands_the_agent() {
    let home = tempfile::tempdir().unwrap();
    let prompts = ["think hard\nslowly 2 1", "do edit Change it {\"a\": 1}", "ask Which? | red | blue"];
    let mut client = Command::new("node");
    client.arg(peers("acp").join("client.mjs")).arg(env!("CARGO_BIN_EXE_muster-agent"));
    client.arg(home.path()).args(prompts).stdin(Stdio::null()).kill_on_drop(true);
    let output = timeout(LIMIT, client.output()).await.unwrap().expect("node is installed");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    // The library reports invalid messages.
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    let said: Vec<Value> = output
        .stdout
        .split(|byte| *byte == b'\n')
        .filter_map(|line| serde_json::from_slice(line).ok())
        .collect();
    let all = |what: &str| -> Vec<&Value> {
        said.iter().filter(|said| said["what"] == what).map(|said| &said["value"]).collect()
    };

    assert_eq!(all("initialize")[0]["agentInfo"]["name"], "muster-agent");
    let ends = all("session/prompt");
    assert!(ends.len() == 3 && ends.iter().all(|end| end["stopReason"] == "end_turn"), "{ends:?}");
    assert!(ends.iter().all(|end| end["usage"]["totalTokens"].as_u64() > Some(0)), "{ends:?}");
    assert_eq!(all("permission")[0]["toolCall"]["title"], "Change it");
    assert_eq!(all("form")[0]["message"], "Which?");
    assert_eq!(all("session/list")[0]["sessions"][0]["title"], "think hard");
    assert_eq!((all("session/close").len(), all("session/load").len()), (1, 1));
    assert_eq!(all("exit"), [&json!(0)]);

    // Once live, and once on loading the session.
    let kinds: Vec<&str> =
        all("update").iter().map(|update| update["sessionUpdate"].as_str().unwrap()).collect();
    let count = |kind: &str| kinds.iter().filter(|said| **said == kind).count();
    assert_eq!(count("agent_thought_chunk"), 2);
    assert_eq!(count("user_message_chunk"), 3);
    assert_eq!(count("agent_message_chunk"), 2 + 2 + 3, "in pieces, and then each message whole");
    assert_eq!((count("tool_call"), count("tool_call_update")), (2, 2));
    assert_eq!(count("usage_update"), 3);
}
