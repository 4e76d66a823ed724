//! Search in all conversations: what is found, in which order, page by page, and for whom.

use muster::base::enums::MessageRole::{Assistant, User};
use serde_json::{Value, json};

use crate::{
    conversations::messages::say,
    harness::{Answer, TestApp, is_postgres},
};

const FIND: &str = "query($o: Id!, $q: String!, $agent: Id, $after: String, $limit: Int) {
    findMessages(orgId: $o, q: $q, agentId: $agent, after: $after, limit: $limit) {
        next data { conversationId ref title agentId agentName hit { id seq snippet ranges } } } }";

async fn ask(app: &TestApp, q: &str, others: Value) -> Answer {
    let mut variables = json!({ "o": app.org, "q": q });
    variables.as_object_mut().unwrap().extend(others.as_object().unwrap().clone());
    app.viewer.gql(FIND, variables).await
}

/// The ids of the messages of a page, and where the next one begins.
async fn page(app: &TestApp, q: &str, others: Value) -> (Vec<i64>, Value) {
    let found = ask(app, q, others).await.data()["findMessages"].clone();
    let ids = found["data"].as_array().unwrap().iter().map(|one| one["hit"]["id"].as_i64().unwrap());
    (ids.collect(), found["next"].clone())
}

async fn found(app: &TestApp, q: &str, others: Value) -> Vec<i64> {
    page(app, q, others).await.0
}

#[tokio::test]
async fn the_newest_message_of_any_conversation_comes_first() {
    let (app, one, other) = TestApp::with_two_agents().await;
    let (first, second) = (app.conversation(one).await, app.conversation(other).await);
    let old = say(&app, first, User, "The café on the corner").await;
    let middle = say(&app, second, Assistant, "CAFE, corner table").await;
    let new = say(&app, first, User, "no corner without café").await;
    say(&app, first, User, "nothing of it").await;
    assert_eq!(found(&app, "corner Cafe", json!({})).await, [new, middle, old]);
    assert_eq!(found(&app, "table", json!({})).await, [middle]);
    assert_eq!(found(&app, "corner", json!({ "agent": one })).await, [new, old]);
    assert_eq!(found(&app, "corner", json!({ "agent": other })).await, [middle]);
    assert_eq!(found(&app, "corner nothing", json!({})).await, [0_i64; 0], "in one message");

    let data = ask(&app, "table", json!({})).await.data()["findMessages"]["data"][0].clone();
    let reference: String = app.one("SELECT ref FROM conversations WHERE id = $1", vec![second.into()]).await;
    let name: String = app.one("SELECT name FROM agents WHERE id = $1", vec![other.into()]).await;
    assert_eq!(
        data,
        json!({ "conversationId": second, "ref": reference, "title": "CAFE, corner table", "agentId": other, "agentName": name,
                "hit": { "id": middle, "seq": 1, "snippet": "CAFE, corner table", "ranges": [[13, 18]] } })
    );
}

#[tokio::test]
async fn pages_follow_each_other_without_a_gap() {
    let (app, agent) = TestApp::with_agent().await;
    let threads = [app.conversation(agent).await, app.conversation(agent).await];
    let mut said = Vec::new();
    for n in 0..25 {
        said.push(say(&app, threads[n % 2], User, "again").await);
        say(&app, threads[n % 2], User, "other").await;
    }
    said.reverse();
    let (mut walked, mut after, mut pages) = (Vec::new(), Value::Null, 0);
    loop {
        let (ids, next) = page(&app, "again", json!({ "after": after, "limit": 10 })).await;
        walked.extend(ids);
        pages += 1;
        after = next;
        // A message written meanwhile shifts no page.
        say(&app, threads[0], User, "again").await;
        if after.is_null() {
            break;
        }
    }
    assert_eq!((walked, pages), (said, 3));
    let before = app.statements();
    page(&app, "again", json!({})).await;
    assert!(app.statements() - before <= 3, "{}", app.statements() - before);
}

#[tokio::test]
async fn what_only_the_index_takes_for_a_match_is_left_out() {
    let (app, _, conversation) = TestApp::with_conversation().await;
    let right = say(&app, conversation, User, "東京都の天気").await;
    for _ in 0..3 {
        say(&app, conversation, User, "京都と東京").await;
    }
    let first = page(&app, "東京都", json!({ "limit": 1 })).await;
    assert_eq!(first, (vec![right], Value::Null), "and fills no page");
}

#[tokio::test]
async fn no_one_finds_what_others_said() {
    let (app, agent, conversation) = TestApp::with_conversation().await;
    say(&app, conversation, User, "needle").await;
    let variables = json!({ "o": app.other_org, "q": "needle" });
    let theirs = app.stranger.gql(FIND, variables).await.data()["findMessages"].clone();
    assert_eq!(theirs, json!({ "data": [], "next": null }));
    for token in [format!("#o{}", app.org), format!("#a{agent}"), format!("#{conversation}")] {
        assert_eq!(found(&app, &token, json!({})).await, [0_i64; 0], "{token} is not a word");
    }
}

#[tokio::test]
async fn an_invalid_search_is_refused_or_finds_nothing() {
    let app = TestApp::start().await;
    say(&app, app.conversation(app.agent().await).await, User, "something").await;
    for q in ["", "  ", "\" * '", "#"] {
        assert_eq!(page(&app, q, json!({})).await, (Vec::new(), Value::Null), "{q}");
    }
    for after in ["0", "-1", "x", "1.5", "99999999999999999999"] {
        let answer = ask(&app, "something", json!({ "after": after })).await;
        assert_eq!(answer.wrong_inputs(), [("/after", "WRONG_TYPE")], "{after}");
    }
    assert_eq!(found(&app, "something", json!({ "after": "1" })).await, [0_i64; 0]);
    assert_eq!(found(&app, "something", json!({ "after": i64::MAX.to_string() })).await.len(), 1);
}

/// The next message gets this id, as if there had been others before.
async fn come_to(app: &TestApp, id: i64) {
    if is_postgres() {
        app.execute(&format!("ALTER TABLE messages ALTER COLUMN id RESTART WITH {id}"), Vec::new()).await;
    } else {
        app.execute("UPDATE sqlite_sequence SET seq = $1 WHERE name = 'messages'", vec![(id - 1).into()])
            .await;
    }
}

#[tokio::test]
async fn many_messages_are_searched_from_newest_to_oldest() {
    let (app, agent) = TestApp::with_agent().await;
    let thread = app.conversation(agent).await;
    let mut said = Vec::new();
    // The stages for a million messages: all before 917,504, those from there on, and those from 995,328 on.
    for (id, text) in [
        (500, "some early"),
        (917_502, "some"),
        (917_505, "some"),
        (995_326, "some few"),
        (995_400, "few"),
        (999_998, "some"),
        (1_000_000, "end"),
    ] {
        come_to(&app, id).await;
        said.push((say(&app, thread, User, text).await, text));
    }
    assert_eq!(said[4].0, 995_400);
    for word in ["some", "early", "few", "end"] {
        let mut expected: Vec<i64> =
            said.iter().filter(|(_, text)| text.contains(word)).map(|(id, _)| *id).collect();
        expected.reverse();
        assert_eq!(found(&app, word, json!({})).await, expected, "{word}");
        assert_eq!(found(&app, word, json!({ "agent": agent })).await, expected, "{word}");
        let (mut walked, mut after) = (Vec::new(), Value::Null);
        for _ in 0..expected.len() {
            let (ids, next) = page(&app, word, json!({ "after": after, "limit": 1 })).await;
            walked.extend(ids);
            after = next;
        }
        assert_eq!((walked, after), (expected, Value::Null), "{word}, one by one");
    }
}
