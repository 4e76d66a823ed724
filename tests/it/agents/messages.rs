//! Messages that hosts report: stored once, within bounds, in the agent's own conversations only.

use base64::{Engine, engine::general_purpose::STANDARD};
use muster_protocol::{DEEPEST, event::Content};
use serde_json::{Value, json};

use crate::harness::{Host, TestApp};

async fn shown(app: &TestApp, host: &Host<'_>, conversation: i64) -> Vec<Value> {
    let path = format!("/v1/org/{}/agent/{}/conversation/{conversation}/message", app.org, host.agent);
    app.viewer.get(&path).await.expect(200)["data"].as_array().unwrap().clone()
}

fn text(text: &str) -> Content {
    Content::Text { text: text.to_owned() }
}

fn file(name: &str, bytes: &[u8]) -> Content {
    Content::File {
        filename: name.to_owned(),
        mime_type: "text/plain".to_owned(),
        base64: STANDARD.encode(bytes),
        caption: Some("as you asked".to_owned()),
    }
}

#[tokio::test]
async fn what_an_agent_says_is_shown_as_the_specification_has_it() {
    let app = TestApp::start().await;
    let (host, conversation) = app.talking_agent().await;
    let call = Content::ToolCall {
        tool: "search".to_owned(),
        call_id: "c1".to_owned(),
        input: json!({ "q": "blue" }),
    };
    let result = Content::ToolResult { call_id: "c1".to_owned(), output: json!(["a"]), is_error: false };
    let error = Content::Error { code: "MODEL_TIMEOUT".to_owned(), text: "too slow".to_owned() };
    let said = [Content::Thinking { text: "hm".to_owned() }, call, result, text("Here"), error];
    for (n, content) in said.into_iter().enumerate() {
        host.says(conversation, None, &format!("1.{n}"), content).await.unwrap();
    }
    let messages = shown(&app, &host, conversation).await;
    let seen: Vec<_> =
        messages.iter().map(|message| (&message["role"], &message["kind"], &message["content"])).collect();
    let expected = [
        ("ASSISTANT", "THINKING", json!({ "text": "hm" })),
        ("ASSISTANT", "TOOL_CALL", json!({ "tool": "search", "call_id": "c1", "input": { "q": "blue" } })),
        ("TOOL", "TOOL_RESULT", json!({ "call_id": "c1", "output": ["a"], "is_error": false })),
        ("ASSISTANT", "TEXT", json!({ "text": "Here", "format": "markdown" })),
        ("SYSTEM", "ERROR", json!({ "code": "MODEL_TIMEOUT", "text": "too slow" })),
    ];
    for ((role, kind, content), (their_role, their_kind, their_content)) in seen.into_iter().zip(expected) {
        assert_eq!((role, kind, content), (&json!(their_role), &json!(their_kind), &their_content));
    }
    assert!(messages.iter().all(|message| message["status"] == "DELIVERED"));
}

#[tokio::test]
async fn a_message_is_stored_once_however_often_it_is_reported() {
    let app = TestApp::start().await;
    let host = app.running_agent().await;
    let (conversation, other) = (app.conversation(host.agent).await, app.conversation(host.agent).await);
    for _ in 0..3 {
        host.says(conversation, None, "1.7", text("once")).await.unwrap();
        host.says(conversation, None, "1.8", file("a.txt", b"a file")).await.unwrap();
    }
    host.says(other, None, "1.7", text("elsewhere")).await.unwrap();
    assert_eq!(shown(&app, &host, conversation).await.len(), 2);
    assert_eq!(shown(&app, &host, other).await.len(), 1);
    assert_eq!(app.one::<i64>("SELECT COUNT(*) FROM attachments", vec![]).await, 1);
    let query = "query($o: Id!, $a: Id!, $c: Id!) { messages(orgId: $o, agentId: $a, conversationId: $c) { data { hostKey } } }";
    let keys = app.viewer.gql(query, json!({ "o": app.org, "a": host.agent, "c": other })).await.data();
    assert_eq!(keys["messages"]["data"], json!([{ "hostKey": "1.7" }]));
}

#[tokio::test]
async fn an_agents_file_becomes_an_attachment_and_counts() {
    let app = TestApp::start().await;
    let (host, conversation) = app.talking_agent().await;
    host.says(conversation, None, "1.1", file("../../report.txt", b"forty-two")).await.unwrap();
    let message = shown(&app, &host, conversation).await.remove(0);
    assert_eq!(
        (&message["kind"], &message["content"]),
        (&json!("FILE"), &json!({ "caption": "as you asked" }))
    );
    let attached = message["attachments"][0].clone();
    assert_eq!((&attached["filename"], &attached["size_bytes"]), (&json!("report.txt"), &json!(9)));
    assert_eq!(attached["uploaded_by_agent_id"], host.agent);
    let bytes = app.viewer.get(attached["url"].as_str().unwrap()).await;
    assert_eq!((bytes.status, bytes.text.as_str()), (200, "forty-two"));
    let stored =
        || app.one::<i64>("SELECT bytes FROM stored_bytes WHERE organization_id = $1", vec![app.org.into()]);
    assert_eq!(stored().await, 9);
    // A file that is too large, unreadable, or over the plan's limit is not stored, and the agent continues.
    app.execute("UPDATE plans SET max_stored_mib = 0", vec![]).await;
    let broken = Content::File {
        filename: "b".to_owned(),
        mime_type: String::new(),
        base64: "?".to_owned(),
        caption: None,
    };
    let refused = [file("full.txt", b"x"), file("large.bin", &vec![0; 512 * 1024 + 1]), broken];
    for (n, content) in refused.into_iter().enumerate() {
        host.says(conversation, None, &format!("2.{n}"), content).await.unwrap();
    }
    let codes: Vec<_> =
        shown(&app, &host, conversation).await[1..].iter().map(|m| m["content"]["code"].clone()).collect();
    assert_eq!(codes, ["STORAGE_LIMIT", "FILE_TOO_LARGE", "FILE_UNREADABLE"]);
    assert_eq!(stored().await, 9);
    assert_eq!(app.one::<i64>("SELECT COUNT(*) FROM attachment_blobs", vec![]).await, 1);
}

#[tokio::test]
async fn texts_are_bounded_and_hold_what_a_database_can_store() {
    let app = TestApp::start().await;
    let (host, conversation) = app.talking_agent().await;
    let huge = "ä".repeat(600 * 1024);
    host.says(conversation, None, "1.1", text(&huge)).await.unwrap();
    let result =
        Content::ToolResult { call_id: "c\0".repeat(1000), output: json!({ "all": huge }), is_error: true };
    host.says(conversation, None, "1.2", result).await.unwrap();
    host.says(conversation, None, "1.3", text("a\0b")).await.unwrap();
    let messages = shown(&app, &host, conversation).await;
    let first = messages[0]["content"]["text"].as_str().unwrap();
    assert!(first.len() <= 512 * 1024 && first.ends_with('…'));
    let output = messages[1]["content"]["output"].as_str().unwrap();
    assert!(output.len() <= 512 * 1024 && output.starts_with("{\"all\""));
    assert!(messages[1]["content"]["call_id"].as_str().unwrap().len() <= 500);
    assert_eq!(messages[2]["content"]["text"], "a\u{fffd}b");
}

#[tokio::test]
async fn a_value_nested_too_deep_is_stored_as_text() {
    let app = TestApp::start().await;
    let (host, conversation) = app.talking_agent().await;
    let nested = |levels: usize| (0..levels).fold(Value::Null, |inner, _| json!([inner]));
    for levels in [DEEPEST, DEEPEST + 1, 124] {
        let call =
            Content::ToolCall { tool: "search".to_owned(), call_id: "c1".to_owned(), input: nested(levels) };
        let result =
            Content::ToolResult { call_id: "c1".to_owned(), output: nested(levels), is_error: false };
        host.says(conversation, None, &format!("1.{levels}.c"), call).await.unwrap();
        host.says(conversation, None, &format!("1.{levels}.o"), result).await.unwrap();
    }
    let whole = nested(DEEPEST);
    let [deeper, deepest] = [DEEPEST + 1, 124].map(|levels| json!(nested(levels).to_string()));
    let messages = shown(&app, &host, conversation).await;
    let values = messages.iter().map(|message| match message["kind"].as_str() {
        Some("TOOL_CALL") => &message["content"]["input"],
        _ => &message["content"]["output"],
    });
    let expected = [&whole, &whole, &deeper, &deeper, &deepest, &deepest];
    assert_eq!(values.collect::<Vec<_>>(), expected);
}

#[tokio::test]
async fn a_host_writes_only_into_its_agents_conversations() {
    let app = TestApp::start().await;
    let (host, other) = (app.running_agent().await, app.running_agent().await);
    let (mine, theirs) = (app.conversation(host.agent).await, app.conversation(other.agent).await);
    for (conversation, turn) in [(theirs, None), (mine + 500, None), (mine, Some(1))] {
        let refused = host.says(conversation, turn, "1.1", text("hello")).await.unwrap_err();
        assert_eq!(refused.code.as_str(), "NOT_FOUND");
    }
    assert_eq!(app.one::<i64>("SELECT COUNT(*) FROM messages", vec![]).await, 0);
}

#[tokio::test]
async fn a_message_has_its_hosts_time_unless_in_the_future() {
    let app = TestApp::start().await;
    let (host, conversation) = app.talking_agent().await;
    host.says(conversation, None, "1.1", text("now")).await.unwrap();
    assert_eq!(app.one::<i64>("SELECT created_at FROM messages", vec![]).await, app.clock.now().0);
}
