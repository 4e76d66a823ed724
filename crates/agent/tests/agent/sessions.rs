//! Tests of sessions: stored, loaded, resumed, closed and parallel.

use serde_json::json;

use crate::client::{Agent, refusal};

#[tokio::test]
async fn capabilities_are_announced() {
    let home = tempfile::tempdir().unwrap();
    let mut agent = Agent::spawn(home, &[]);
    let said = agent.call("initialize", json!({ "protocolVersion": 99 })).await;
    assert_eq!((&said["protocolVersion"], &said["agentInfo"]["name"]), (&json!(1), &json!("muster-agent")));
    let can = &said["agentCapabilities"];
    assert_eq!((&can["loadSession"], &can["mcpCapabilities"]["http"]), (&json!(true), &json!(true)));
    for name in ["list", "resume", "close"] {
        assert!(can["sessionCapabilities"][name].is_object(), "{name}: {can}");
    }
    assert_eq!(agent.refused("session/unheard_of", json!({})).await.0, -32601);
    let relative = agent.refused("session/new", json!({ "cwd": "here", "mcpServers": [] })).await;
    assert!(relative.0 == -32602 && relative.1.contains("absolute"), "{relative:?}");
}

#[tokio::test]
async fn a_killed_agent_loads_its_session_with_its_history() {
    let mut agent = Agent::start().await;
    let session = agent.session().await;
    agent.prompt(&session, "remember the milk\nthink hard").await;
    let id = agent.say(&session, "do edit Change it").await;
    let asked = agent.asked("session/request_permission").await;
    agent.reply(&asked, json!({ "outcome": { "outcome": "selected", "optionId": "allow" } })).await;
    agent.end(&session, id).await;
    agent.say(&session, "do delete Break off here").await;
    agent.asked("session/request_permission").await;

    let mut agent = agent.restarted().await;
    let params = json!({ "sessionId": session, "cwd": "/", "mcpServers": [] });
    let id = agent.request("session/load", params.clone()).await;
    let replayed = agent.end(&session, id).await;
    assert!(replayed.answer.get("error").is_none(), "{}", replayed.answer);
    assert_eq!(
        replayed.texts("user_message_chunk"),
        ["remember the milk\nthink hard", "do edit Change it", "do delete Break off here"]
    );
    assert_eq!(replayed.texts("agent_thought_chunk"), ["hard"]);
    assert_eq!(replayed.messages(), ["I remember 1.", "I was allowed to: Change it"]);
    let calls: Vec<_> = replayed.calls().into_iter().map(|(title, status, _)| (title, status)).collect();
    let call = |title: &str, status: &str| (title.to_owned(), status.to_owned());
    assert_eq!(calls, [call("Change it", "completed"), call("Break off here", "failed")]);
    assert_eq!(agent.prompt(&session, "recall").await.said(), "This is turn 4. I remember: the milk.");
}

#[tokio::test]
async fn a_resumed_session_has_its_history_and_does_not_repeat_it() {
    let mut agent = Agent::start().await;
    let session = agent.session().await;
    agent.prompt(&session, "remember one").await;
    let mut agent = agent.restarted().await;
    agent.call("session/resume", json!({ "sessionId": session, "cwd": "/", "mcpServers": [] })).await;
    assert!(agent.updates(&session).is_empty());
    assert_eq!(agent.prompt(&session, "recall").await.said(), "This is turn 2. I remember: one.");
}

#[tokio::test]
async fn a_closed_session_is_gone_until_it_is_resumed() {
    let mut agent = Agent::start().await;
    let session = agent.session().await;
    let id = agent.say(&session, "remember two\nhang").await;
    agent.hears("I remember 1.").await;
    agent.call("session/close", json!({ "sessionId": session })).await;
    assert_eq!(agent.end(&session, id).await.reason(), "cancelled");
    let refused = agent.prompt(&session, "Hello").await;
    assert_eq!(refusal(&refused.answer).0, -32002);
    agent.call("session/resume", json!({ "sessionId": session, "cwd": "/", "mcpServers": [] })).await;
    assert!(agent.prompt(&session, "recall").await.said().contains("two"));
}

#[tokio::test]
async fn an_unknown_session_is_not_found() {
    let mut agent = Agent::start().await;
    for id in ["0198c5d8-0000-4000-8000-000000000000", "../../etc/passwd"] {
        let params = json!({ "sessionId": id, "cwd": "/", "mcpServers": [] });
        assert_eq!(agent.refused("session/load", params.clone()).await.0, -32002);
        assert_eq!(agent.refused("session/resume", params.clone()).await.0, -32002);
        assert_eq!(agent.refused("session/prompt", json!({ "sessionId": id, "prompt": [] })).await.0, -32002);
    }
}

#[tokio::test]
async fn sessions_are_listed_the_latest_first() {
    let mut agent = Agent::start().await;
    let (first, second) = (agent.session().await, agent.session().await);
    agent.prompt(&first, "The first\nof all").await;
    let listed = agent.call("session/list", json!({})).await;
    let listed: Vec<_> =
        listed["sessions"].as_array().unwrap().iter().map(|s| (&s["sessionId"], &s["title"])).collect();
    assert_eq!(listed, [(&json!(first), &json!("The first")), (&json!(second), &json!(null))]);
}

#[tokio::test]
async fn sessions_are_parallel_and_their_prompts_serial() {
    let mut agent = Agent::start().await;
    let (slow, fast) = (agent.session().await, agent.session().await);
    let waiting = agent.say(&slow, "hang").await;
    assert!(agent.prompt(&fast, "Hello").await.said().contains("turn 1"));
    let second = agent.prompt(&slow, "And me?").await;
    assert_eq!(refusal(&second.answer).0, -32600);
    let params = json!({ "sessionId": slow, "cwd": "/", "mcpServers": [] });
    assert_eq!(agent.refused("session/load", params).await.0, -32600);
    agent.cancel(&slow).await;
    assert_eq!(agent.end(&slow, waiting).await.reason(), "cancelled");
    assert!(agent.prompt(&slow, "And me?").await.said().contains("turn 2"));
}

#[tokio::test]
async fn it_ends_when_its_input_does() {
    let mut agent = Agent::start().await;
    let session = agent.session().await;
    agent.say(&session, "Hello\nhang hard").await;
    agent.hears("You said: Hello").await;
    agent.hang_up();
    assert_eq!(agent.ended().await, 0);
}
