//! Tests of the words (`docs/agents.md`).

use serde_json::{Value, json};

use crate::client::{Agent, refusal};

#[tokio::test]
async fn plain_text_is_answered_with_skills_and_turn_number() {
    let mut agent = Agent::start().await;
    agent.skill("refunds", "---\nname: refunds\ndescription: How to refund\n---\nAsk first.");
    agent.skill("greetings", "Say hello.");
    let session = agent.session().await;
    let first = agent.prompt(&session, "Hello\nthere").await;
    assert_eq!(
        first.messages(),
        ["You said: Hello\nthere\n\nThis is turn 1 of this session. Skills: greetings, refunds."]
    );
    assert_eq!(first.reason(), "end_turn");
    let second = agent.prompt(&session, "do you hear me?").await;
    assert!(second.said().contains("You said: do you hear me?\n\nThis is turn 2"));
}

#[tokio::test]
async fn instructions_are_not_words() {
    let mut agent = Agent::start().await;
    let session = agent.session().await;
    let for_agents = json!({ "audience": ["assistant"] });
    let prompt = json!([
        { "type": "text", "text": "You are Ada.\nhang", "annotations": for_agents },
        { "type": "text", "text": "Who are you?" },
    ]);
    let id = agent.request("session/prompt", json!({ "sessionId": session, "prompt": prompt })).await;
    assert!(agent.end(&session, id).await.said().starts_with("You said: Who are you?\n"));
}

#[tokio::test]
async fn a_token_is_four_bytes_of_text() {
    let mut agent = Agent::start().await;
    let session = agent.session().await;
    let turn = agent.prompt(&session, "think 12345678").await;
    // "think 12345678" is 14 bytes, the thought 8.
    let usage = &turn.answer["result"]["usage"];
    assert_eq!((&usage["inputTokens"], &usage["outputTokens"]), (&json!(4), &json!(2)));
    assert_eq!(usage["totalTokens"], 6);
    let context = turn.updates.iter().find(|update| update["sessionUpdate"] == "usage_update").unwrap();
    assert_eq!((&context["used"], &context["size"]), (&json!(6), &json!(200_000)));
    let more = agent.prompt(&session, "think 12345678").await;
    assert_eq!(more.updates.last().unwrap()["used"], 11, "the context holds both turns");
}

#[tokio::test]
async fn lines_run_one_after_another() {
    let mut agent = Agent::start().await;
    let session = agent.session().await;
    let turn = agent.prompt(&session, "think aloud\nslowly 3 1\nHello").await;
    let kinds: Vec<_> = turn.updates.iter().map(|update| update["sessionUpdate"].as_str().unwrap()).collect();
    let piece = "agent_message_chunk";
    assert_eq!(kinds, ["agent_thought_chunk", piece, piece, piece, piece, "usage_update"]);
    assert_eq!(turn.texts("agent_thought_chunk"), ["aloud"]);
    assert_eq!(turn.messages()[0], "1 2 3 ");
    assert!(turn.messages()[1].starts_with("You said: Hello"));
}

#[tokio::test]
async fn an_action_is_done_only_if_it_is_permitted() {
    let mut agent = Agent::start().await;
    let session = agent.session().await;
    for (option, status, said) in [
        ("reject", "failed", "I was not allowed to: Delete it"),
        ("allow", "completed", "I was allowed to: Delete it"),
    ] {
        let id = agent.say(&session, r#"do delete Delete it {"path": "/tmp/x"}"#).await;
        let asked = agent.asked("session/request_permission").await;
        let call = &asked["params"]["toolCall"];
        assert_eq!((&call["kind"], &call["title"]), (&json!("delete"), &json!("Delete it")));
        assert_eq!(call["rawInput"], json!({ "path": "/tmp/x" }));
        let kinds: Vec<_> =
            asked["params"]["options"].as_array().unwrap().iter().map(|o| &o["kind"]).collect();
        assert_eq!(kinds, ["allow_once", "allow_always", "reject_once"]);
        agent.reply(&asked, json!({ "outcome": { "outcome": "selected", "optionId": option } })).await;
        let turn = agent.end(&session, id).await;
        assert_eq!((turn.calls()[0].1.as_str(), turn.said().as_str()), (status, said));
        assert_eq!(turn.updates[0]["toolCallId"], call["toolCallId"], "it was announced before");
    }
}

#[tokio::test]
async fn an_always_allowed_action_is_not_asked_again() {
    let mut agent = Agent::start().await;
    let session = agent.session().await;
    let id = agent.say(&session, "do execute Run\ndo execute Run").await;
    let asked = agent.asked("session/request_permission").await;
    agent.reply(&asked, json!({ "outcome": { "outcome": "selected", "optionId": "always" } })).await;
    let turn = agent.end(&session, id).await;
    assert_eq!(turn.calls().len(), 2);
    assert!(turn.calls().iter().all(|call| call.1 == "completed"));
    let id = agent.say(&session, "do execute Something else").await;
    agent.asked("session/request_permission").await;
    agent.cancel(&session).await;
    assert_eq!(agent.end(&session, id).await.reason(), "cancelled");
}

#[tokio::test]
async fn a_question_is_a_form_where_the_client_shows_forms() {
    let mut agent = Agent::start_with(&[], json!({ "elicitation": { "form": {} } })).await;
    let session = agent.session().await;
    let id = agent.say(&session, "ask Which colour? | red | dark blue").await;
    let asked = agent.asked("elicitation/create").await;
    let params = &asked["params"];
    assert_eq!((&params["message"], &params["mode"]), (&json!("Which colour?"), &json!("form")));
    assert_eq!(params["sessionId"], session.as_str());
    let options = &params["requestedSchema"]["properties"]["choice"]["oneOf"];
    let titles: Vec<&Value> = options.as_array().unwrap().iter().map(|option| &option["const"]).collect();
    assert_eq!(titles, ["red", "dark blue"]);
    agent.reply(&asked, json!({ "action": "accept", "content": { "choice": "dark blue" } })).await;
    assert_eq!(agent.end(&session, id).await.said(), "The answer is: dark blue");
    let id = agent.say(&session, "ask Why?").await;
    let asked = agent.asked("elicitation/create").await;
    assert_eq!(asked["params"]["requestedSchema"]["required"], json!(["text"]));
    agent.reply(&asked, json!({ "action": "decline" })).await;
    assert_eq!(agent.end(&session, id).await.said(), "There was no answer.");
}

#[tokio::test]
async fn a_question_without_a_way_to_ask_is_reported() {
    let mut agent = Agent::start().await;
    let session = agent.session().await;
    let turn = agent.prompt(&session, "ask Why?").await;
    assert_eq!(turn.said(), "I can't ask: neither the client nor a tool offers it.");
}

#[tokio::test]
async fn the_error_words_fail() {
    let mut agent = Agent::start().await;
    let session = agent.session().await;
    let failed = agent.prompt(&session, "error\nnever said").await;
    assert_eq!(refusal(&failed.answer).0, -32603);
    assert!(failed.messages().is_empty());
    assert_eq!(refusal(&agent.prompt(&session, "auth").await.answer).0, -32000);
    assert_eq!(agent.prompt(&session, "still there?").await.reason(), "end_turn");
}

#[tokio::test]
async fn a_variable_is_never_shown() {
    let mut agent = Agent::start_with(&[("PASSWORD", "swordfish")], json!({})).await;
    let session = agent.session().await;
    assert_eq!(agent.prompt(&session, "env PASSWORD").await.said(), "PASSWORD is set: 9 bytes.");
    assert_eq!(agent.prompt(&session, "env NO_SUCH").await.said(), "NO_SUCH is not set.");
}

#[tokio::test]
async fn plan_mode_describes_actions_until_it_is_left() {
    let mut agent = Agent::start().await;
    let new = agent.call("session/new", json!({ "cwd": "/", "mcpServers": [] })).await;
    let session = new["sessionId"].as_str().unwrap().to_owned();
    let mode = &new["configOptions"][1];
    assert_eq!((&mode["category"], &mode["currentValue"]), (&json!("mode"), &json!("act")));
    let choice = |value: &str| json!({ "sessionId": session, "configId": "mode", "value": value });
    let chosen = agent.call("session/set_config_option", choice("plan")).await;
    assert_eq!(chosen["configOptions"][1]["currentValue"], "plan");
    let words = "do delete Remove it\ncall echo {}\nfile a.txt A\nfill 1\nremember the milk";
    let turn = agent.prompt(&session, words).await;
    let said = [
        "I would do this: Remove it",
        "I would call echo.",
        "I would send the file a.txt.",
        "I would write 1 MiB into the file fill.",
        "I remember 1.",
    ];
    assert_eq!((turn.messages(), turn.calls().len()), (said.map(str::to_owned).to_vec(), 0));
    assert_eq!(agent.refused("session/set_config_option", choice("fly")).await.0, -32602);
    agent.call("session/set_config_option", choice("act")).await;
    assert_eq!(agent.prompt(&session, "call echo {}").await.said(), "Unknown tool: echo.");
}
