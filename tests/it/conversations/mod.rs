//! Conversations: their lists, filters, and orders, and their changes of status.

mod attachments;
pub mod messages;
mod messages_reread;
pub mod search;
mod search_everywhere;
pub mod takeover;
mod takeover_turns;
mod transcripts;
pub mod turns;
mod turns_ended;
mod turns_stopped;

use std::time::Duration;

use muster::{
    base::{
        enums::{MessageKind, MessageRole},
        folding,
        ids::ConversationId,
    },
    domain::conversations::{self, NewMessage},
};
use serde_json::{Value, json};

use crate::{conversations::messages::say, harness::TestApp};

const NOW: i64 = 1_780_000_000_000;

/// A conversation with the values a test needs; `at` is the order of activity.
struct Thread<'a> {
    agent: i64,
    at: i64,
    contact: Option<&'a str>,
    channel: Option<&'a str>,
    model: Option<&'a str>,
    status: &'a str,
    transport: &'a str,
}

impl Thread<'_> {
    fn of(agent: i64, at: i64) -> Self {
        Self { agent, at, contact: None, channel: None, model: None, status: "OPEN", transport: "INTERNAL" }
    }

    async fn make(self, app: &TestApp) -> i64 {
        let conversation = app.conversation(self.agent).await;
        let now = app.clock.now().0;
        let contact: Option<i64> = match self.contact {
            Some(name) => Some(app.contact(name).await),
            None => None,
        };
        let channel: Option<i64> = match self.channel {
            Some(name) => {
                let sql = "INSERT INTO channels (organization_id, agent_id, transport, name, name_folded, created_at, \
                           updated_at) VALUES ($1, $2, 'WEBHOOK', $3, $4, $5, $5) RETURNING id";
                let folded = folding::name(name);
                let values = vec![app.org.into(), self.agent.into(), name.into(), folded.into(), now.into()];
                Some(app.one(sql, values).await)
            }
            None => None,
        };
        let sql = "UPDATE conversations SET last_activity_at = $2, contact_id = $3, channel_id = $4, model = $5, \
                   status = $6, transport = $7 WHERE id = $1";
        let values = vec![
            conversation.into(),
            (NOW + self.at).into(),
            contact.into(),
            channel.into(),
            self.model.map(str::to_owned).into(),
            self.status.to_owned().into(),
            self.transport.to_owned().into(),
        ];
        app.execute(sql, values).await;
        conversation
    }
}

async fn list(app: &TestApp, query: &str) -> Vec<i64> {
    ids(&app.admin.get(&format!("/v1/org/{}/conversation{query}", app.org)).await.expect(200)["data"])
}

fn ids(data: &Value) -> Vec<i64> {
    data.as_array().unwrap().iter().map(|record| record["id"].as_i64().unwrap()).collect()
}

#[tokio::test]
async fn a_conversation_names_its_agent_contact_and_channel() {
    let (app, agent) = TestApp::with_agent().await;
    let conversation =
        Thread { contact: Some("Ines"), channel: Some("Desk"), ..Thread::of(agent, 0) }.make(&app).await;
    let path = format!("/v1/org/{}/agent/{agent}/conversation", app.org);
    assert_eq!(app.viewer.get(&path).await.expect(200)[0]["last_message"], Value::Null);
    say(&app, conversation, MessageRole::Assistant, "Hello").await;
    let records = app.viewer.get(&path).await.expect(200);
    let record = &records.as_array().unwrap()[0];
    assert_eq!(record["agent"]["id"], agent);
    assert_eq!(record["contact_name"], "Ines");
    assert_eq!(record["channel_name"], "Desk");
    assert_eq!((&record["message_count"], &record["last_seq"]), (&json!(1), &json!(1)));
    assert_eq!(record["last_message"]["preview"], "Hello");
    assert_eq!(record["pending_approvals"], 0);
}

#[tokio::test]
async fn an_agents_conversations_are_a_list_newest_first() {
    let (app, agent, other) = TestApp::with_two_agents().await;
    let old = Thread::of(agent, 1).make(&app).await;
    let new = Thread::of(agent, 3).make(&app).await;
    let tie = Thread::of(agent, 3).make(&app).await;
    Thread::of(other, 9).make(&app).await;
    let path = |agent: i64| format!("/v1/org/{}/agent/{agent}/conversation", app.org);
    let data = app.viewer.get(&path(agent)).await.expect(200);
    assert_eq!(ids(&data), [tie, new, old]);
    let lonely = app.agent().await;
    assert_eq!(app.viewer.get(&path(lonely)).await.expect(200), json!([]));
    assert_eq!(app.owner.get(&path(999_999)).await.problem(), (404, "NOT_FOUND"));
    assert_eq!(app.owner.get(&format!("/v1/org/{}/agent/x/conversation", app.org)).await.status, 400);
}

#[tokio::test]
async fn the_preview_is_only_for_callers_who_may_read_messages() {
    let (app, agent) = TestApp::with_agent().await;
    let conversation =
        Thread { contact: Some("Ines"), channel: Some("Desk"), ..Thread::of(agent, 0) }.make(&app).await;
    say(&app, conversation, MessageRole::Assistant, "the secret begins").await;
    let path = format!("/v1/org/{}/conversation", app.org);
    let list = "query($o: Id!) { conversations(orgId: $o) { data { contactName lastMessage { a: preview ...P seq } } } } \
                fragment P on LastMessage { preview }";
    let blind = app.token(&["conversation.view"]).await;
    let sees = app.token(&["conversation.view", "agent.output.view"]).await;
    for (actor, preview) in
        [(&blind, Value::Null), (&sees, json!("the secret begins")), (&blind, Value::Null)]
    {
        let shown = actor.gql(list, json!({ "o": app.org })).await.data();
        let last = json!({ "a": preview, "preview": preview, "seq": 1 });
        assert_eq!(shown["conversations"]["data"], json!([{ "contactName": "Ines", "lastMessage": last }]));
        let shown = actor.get(&path).await.expect(200);
        assert_eq!(shown["data"][0]["last_message"]["preview"], preview);
        assert_eq!(shown["data"][0]["contact_name"], "Ines");
    }
    // Filters don't reveal it either.
    let found = blind.get(&format!("{path}?search=secret")).await.expect(200);
    assert_eq!(found["total"], 0);
}

#[tokio::test]
async fn every_filter_narrows() {
    let (app, agent, other) = TestApp::with_two_agents().await;
    let thread = Thread {
        contact: Some("Ana"),
        channel: Some("Front"),
        model: Some("model-9"),
        status: "RESOLVED",
        transport: "TELEGRAM",
        ..Thread::of(agent, 1)
    };
    let one = thread.make(&app).await;
    let two = Thread::of(other, 2).make(&app).await;
    let record =
        app.admin.get(&format!("/v1/org/{}/conversation?id={one}", app.org)).await.expect(200)["data"][0]
            .clone();
    let number = |key: &str| record[key].as_i64().unwrap();
    let reference = record["ref"].as_str().unwrap().to_lowercase();
    for query in [
        format!("?id={one}"),
        format!("?agent_id={agent}"),
        format!("?contact_id={}", number("contact_id")),
        format!("?channel_id={}", number("channel_id")),
        "?transport=TELEGRAM".to_owned(),
        "?status=RESOLVED".to_owned(),
        "?model=model-9".to_owned(),
        format!("?ref={reference}"),
        "?search=ana".to_owned(),
    ] {
        assert_eq!(list(&app, &query).await, [one], "{query}");
    }
    assert_eq!(list(&app, &format!("?agent_id={agent}&status=OPEN")).await, [0_i64; 0]);
    assert_eq!(list(&app, "?transport=telegram").await, [0_i64; 0]);
    assert_eq!(list(&app, "?limit=1&offset=1").await, [one]);
    let page = app.admin.get(&format!("/v1/org/{}/conversation?offset=5", app.org)).await.expect(200);
    assert_eq!(page, json!({ "data": [], "total": 2, "limit": 50, "offset": 5 }));
    assert_eq!(list(&app, "").await, [two, one]);
}

#[tokio::test]
async fn bounds_match_the_specification() {
    let app = TestApp::start().await;
    let long = |n: usize| "x".repeat(n);
    for (query, at, code) in [
        ("?id=0".to_owned(), "id", "TOO_SMALL"),
        ("?id=x".to_owned(), "id", "WRONG_TYPE"),
        ("?agent_id=0".to_owned(), "agent_id", "TOO_SMALL"),
        ("?contact_id=-1".to_owned(), "contact_id", "TOO_SMALL"),
        ("?channel_id=0".to_owned(), "channel_id", "TOO_SMALL"),
        ("?transport=".to_owned(), "transport", "TOO_SHORT"),
        (format!("?transport={}", long(33)), "transport", "TOO_LONG"),
        ("?status=open".to_owned(), "status", "NOT_ALLOWED"),
        ("?model=".to_owned(), "model", "TOO_SHORT"),
        (format!("?model={}", long(121)), "model", "TOO_LONG"),
        ("?ref=".to_owned(), "ref", "TOO_SHORT"),
        (format!("?ref={}", long(41)), "ref", "TOO_LONG"),
        ("?search=".to_owned(), "search", "TOO_SHORT"),
        (format!("?search={}", long(201)), "search", "TOO_LONG"),
        ("?search=a%00".to_owned(), "search", "NOT_ALLOWED"),
        ("?sort=ACTIVITY".to_owned(), "sort", "NOT_ALLOWED"),
        ("?sort=id".to_owned(), "sort", "NOT_ALLOWED"),
        ("?order=up".to_owned(), "order", "NOT_ALLOWED"),
        ("?limit=0".to_owned(), "limit", "TOO_SMALL"),
        ("?limit=201".to_owned(), "limit", "TOO_LARGE"),
        ("?offset=-1".to_owned(), "offset", "TOO_SMALL"),
        ("?page=1".to_owned(), "page", "UNKNOWN_KEY"),
    ] {
        let answer = app.admin.get(&format!("/v1/org/{}/conversation{query}", app.org)).await;
        assert_eq!(answer.violations(), [(at, code)], "{query}");
    }
    for fine in ["transport", "model", "ref", "search"].iter().zip([32, 120, 40, 200]) {
        assert_eq!(list(&app, &format!("?{}={}", fine.0, long(fine.1))).await, [0_i64; 0]);
    }
    assert_eq!(list(&app, "?limit=200&offset=0").await, [0_i64; 0]);
}

#[tokio::test]
async fn every_order_handles_ties_and_missing_values() {
    let (app, agent) = TestApp::with_agent().await;
    let with = async |name: Option<&str>| {
        let thread = Thread { contact: name, channel: name, model: name, ..Thread::of(agent, 0) };
        thread.make(&app).await
    };
    let (b, none) = (with(Some("beta")).await, with(None).await);
    let (a, tie, missing) = (with(Some("Alpha")).await, with(Some("beta")).await, with(None).await);
    for sort in ["contact", "channel"] {
        let up = list(&app, &format!("?sort={sort}&order=asc")).await;
        assert_eq!(up, [a, b, tie, none, missing], "{sort}");
        let down = list(&app, &format!("?sort={sort}&order=desc")).await;
        assert_eq!(down, [tie, b, a, missing, none], "{sort}");
    }
    assert_eq!(list(&app, "?sort=model&order=asc").await, [a, b, tie, none, missing]);
    assert_eq!(list(&app, "?sort=model").await, [tie, b, a, missing, none]);
    for sort in ["activity", "created", "agent", "status"] {
        assert_eq!(
            list(&app, &format!("?sort={sort}&order=asc")).await,
            [b, none, a, tie, missing],
            "{sort}"
        );
        assert_eq!(
            list(&app, &format!("?sort={sort}&order=desc")).await,
            [missing, tie, a, none, b],
            "{sort}"
        );
    }
    app.execute(
        "UPDATE conversations SET last_activity_at = $2, status = 'ARCHIVED' WHERE id = $1",
        vec![a.into(), (NOW + 1).into()],
    )
    .await;
    assert_eq!(list(&app, "?limit=1").await, [a]);
    assert_eq!(list(&app, "?sort=status&order=asc&limit=1").await, [a]);
}

#[tokio::test]
async fn a_search_is_text_over_the_names_of_contact_and_channel() {
    let (app, agent) = TestApp::with_agent().await;
    let with = async |contact: &'static str, channel: &'static str| {
        let thread = Thread { contact: Some(contact), channel: Some(channel), ..Thread::of(agent, 0) };
        thread.make(&app).await
    };
    let emile = with("Émile Álvarez", "Support 50%_off").await;
    let bruno = with("Bruno", "Sales").await;
    for (q, hits) in [
        ("émile", vec![emile]),
        ("%C3%89MILE", vec![emile]),
        ("ALVA", vec![emile]),
        ("varez", vec![emile]),
        ("bruno+sales", vec![bruno]),
        ("bruno+support", vec![]),
        ("SUPPORT", vec![emile]),
        ("50%25_", vec![emile]),
        ("%25", vec![emile]),
        ("_", vec![emile]),
        ("b_uno", vec![]),
        ("b%25o", vec![]),
        ("%5C", vec![]),
        ("'+OR+1=1--", vec![]),
        ("+", vec![bruno, emile]),
    ] {
        assert_eq!(list(&app, &format!("?search={q}")).await, hits, "{q}");
    }
}

#[tokio::test]
async fn a_page_costs_two_statements_however_long() {
    let (app, agent) = TestApp::with_agent().await;
    let mut conversation = 0;
    for at in 0..30 {
        conversation = Thread { contact: Some("c"), ..Thread::of(agent, at) }.make(&app).await;
    }
    for n in 0..30 {
        say(&app, conversation, MessageRole::Assistant, &format!("message {n}")).await;
    }
    let of_agent = format!("agent/{agent}/conversation");
    let messages = format!("{of_agent}/{conversation}/message");
    for page in [
        "conversation?limit=3",
        "conversation?limit=30",
        &of_agent,
        &format!("{messages}?limit=3"),
        &format!("{messages}?limit=30"),
    ] {
        let path = format!("/v1/org/{}/{page}", app.org);
        app.admin.get(&path).await.expect(200);
        let before = app.statements();
        app.admin.get(&path).await.expect(200);
        assert_eq!(app.statements() - before, 2, "{page}");
    }
}

const START: &str = "mutation($o:Id!,$i:StartConversationInput!){startConversation(orgId:$o,input:$i){\
    id ref title status transport agentId messageCount lastMessage{preview} contact{id} agentDetails{id}}}";

#[tokio::test]
async fn a_conversation_starts_in_the_panel() {
    let (app, agent) = TestApp::with_agent().await;
    let input = json!({ "agentId": agent, "title": " Stock ", "text": "How much is left?" });
    let data = app.operator.gql(START, json!({ "o": app.org, "i": input })).await.data();
    let record = &data["startConversation"];
    assert_eq!(record["title"], "Stock");
    assert_eq!((&record["status"], &record["transport"]), (&json!("OPEN"), &json!("INTERNAL")));
    assert_eq!(record["lastMessage"]["preview"], "How much is left?");
    let reference = record["ref"].as_str().unwrap();
    assert_eq!(reference.len(), 8);
    assert!(reference.chars().all(|c| "0123456789ABCDEFGHJKMNPQRSTVWXYZ".contains(c)), "{reference}");
    assert_eq!(record["agentDetails"]["id"], agent);
    assert_eq!(record["contact"], Value::Null);
    let data = app.operator.gql(START, json!({ "o": app.org, "i": { "agentId": agent } })).await.data();
    assert_eq!(data["startConversation"]["messageCount"], 0);
    for foreign in [app.other_agent().await, 999_999] {
        let answer = app.operator.gql(START, json!({ "o": app.org, "i": { "agentId": foreign } })).await;
        assert_eq!(answer.code(), "VALIDATION_FAILED");
        assert_eq!(answer.body["errors"][0]["extensions"]["errors"][0]["pointer"], "/input/agentId");
    }
}

const UPDATE: &str = "mutation($o:Id!,$c:Id!,$i:UpdateConversationInput!){updateConversation(orgId:$o,id:$c,input:$i){\
    status title resolvedAt archivedAt}}";

async fn status(app: &TestApp, conversation: i64) -> String {
    app.one("SELECT status FROM conversations WHERE id = $1", vec![conversation.into()]).await
}

#[tokio::test]
async fn people_resolve_archive_and_reopen_conversations() {
    let (app, _, conversation) = TestApp::with_conversation().await;
    let set = async |input: Value| {
        app.operator.gql(UPDATE, json!({ "o": app.org, "c": conversation, "i": input })).await
    };
    let resolved = set(json!({ "status": "RESOLVED", "title": "Done" })).await.data();
    let record = json!({ "status": "RESOLVED", "title": "Done", "resolvedAt": "2026-06-01T12:00:00.000Z", "archivedAt": null });
    assert_eq!(resolved["updateConversation"], record);
    app.clock.advance(Duration::from_secs(1));
    let archived = set(json!({ "status": "ARCHIVED" })).await.data();
    assert_eq!(archived["updateConversation"]["resolvedAt"], "2026-06-01T12:00:00.000Z");
    assert_eq!(archived["updateConversation"]["archivedAt"], "2026-06-01T12:00:01.000Z");
    for refused in [json!({ "title": "x" }), json!({ "status": "RESOLVED" })] {
        assert_eq!(set(refused).await.code(), "ARCHIVED");
    }
    let post = "mutation($o:Id!,$c:Id!){postMessage(orgId:$o,conversationId:$c,input:{text:\"x\"}){id}}";
    assert_eq!(app.operator.gql(post, json!({ "o": app.org, "c": conversation })).await.code(), "ARCHIVED");
    assert_eq!(set(json!({ "status": "PENDING" })).await.code(), "VALIDATION_FAILED");
    assert_eq!(set(json!({ "status": null })).await.code(), "VALIDATION_FAILED");
    let opened = set(json!({ "status": "OPEN", "title": null })).await.data();
    let record = json!({ "status": "OPEN", "title": null, "resolvedAt": null, "archivedAt": null });
    assert_eq!(opened["updateConversation"], record);
}

#[tokio::test]
async fn messages_and_questions_change_a_conversations_status() {
    let (app, agent) = TestApp::with_agent().await;
    let id = app.conversation(agent).await;
    let conversation = ConversationId(id);
    let set = async |status: &str| {
        app.execute(
            "UPDATE conversations SET status = $2, resolved_at = 1 WHERE id = $1",
            vec![id.into(), status.to_owned().into()],
        )
        .await;
    };
    set("RESOLVED").await;
    say(&app, id, MessageRole::Assistant, "by the way").await;
    assert_eq!(status(&app, id).await, "RESOLVED");
    say(&app, id, MessageRole::User, "one more thing").await;
    assert_eq!(status(&app, id).await, "OPEN");
    let tx = app.scope().begin().await.unwrap();
    assert!(conversations::exists(&tx, conversation).await.unwrap());
    assert!(!conversations::exists(&tx, ConversationId(id + 500)).await.unwrap());
    conversations::await_decision(&tx, conversation).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(status(&app, id).await, "PENDING");
    let tx = app.scope().begin().await.unwrap();
    conversations::mark_decided(&tx, conversation).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(status(&app, id).await, "OPEN");
    set("ARCHIVED").await;
    let tx = app.scope().begin().await.unwrap();
    conversations::await_decision(&tx, conversation).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(status(&app, id).await, "ARCHIVED");
    let tx = app.scope().begin().await.unwrap();
    let content = json!({ "text": "anybody there?" });
    let new = NewMessage::new(conversation, MessageRole::User, MessageKind::Text, content);
    let refused = conversations::append(&tx, new).await.unwrap_err();
    assert_eq!(refused.code.as_str(), "ARCHIVED");
    tx.rollback().await.unwrap();
    let tx = app.other_scope().begin().await.unwrap();
    assert!(!conversations::exists(&tx, conversation).await.unwrap());
    assert!(conversations::await_decision(&tx, conversation).await.is_err());
    tx.rollback().await.unwrap();
}

#[tokio::test]
async fn reading_a_conversation_needs_the_permission_for_its_agent() {
    let (app, _, conversation) = TestApp::with_conversation().await;
    let one = "query($o:Id!,$c:Id!){conversation(orgId:$o,id:$c){id agent{name}}}";
    let variables = json!({ "o": app.org, "c": conversation });
    let narrow = app.token(&["agent.output.view"]).await;
    assert_eq!(narrow.gql(one, variables.clone()).await.data()["conversation"]["id"], conversation);
    let details = "query($o:Id!,$c:Id!){conversation(orgId:$o,id:$c){agentDetails{id}}}";
    assert_eq!(narrow.gql(details, variables).await.code(), "PERMISSION_DENIED");
}
