//! Search in a conversation: what is found, what isn't, and that nothing a person types is a query.

use muster::{
    base::{
        enums::{
            MessageKind,
            MessageRole::{Assistant, User},
        },
        ids::ConversationId,
    },
    domain::conversations::{self, NewMessage},
};
use serde_json::{Value, json};

use crate::{
    conversations::messages::say,
    harness::{TestApp, is_postgres},
};

async fn thread(app: &TestApp, texts: &[&str]) -> (i64, i64) {
    let agent = app.agent().await;
    let conversation = app.conversation(agent).await;
    for text in texts {
        say(app, conversation, User, text).await;
    }
    (agent, conversation)
}

fn encode(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

async fn search(app: &TestApp, (agent, conversation): (i64, i64), q: &str) -> Value {
    let path = format!(
        "/v1/org/{}/agent/{agent}/conversation/{conversation}/message/search?q={}",
        app.org,
        encode(q)
    );
    app.viewer.get(&path).await.expect(200)
}

pub async fn found(app: &TestApp, thread: (i64, i64), q: &str) -> Vec<i64> {
    let answer = search(app, thread, q).await;
    let data = answer["data"].as_array().unwrap();
    assert_eq!(answer["total"], data.len());
    data.iter().map(|hit| hit["seq"].as_i64().unwrap()).collect()
}

#[tokio::test]
async fn all_words_must_occur_in_any_form() {
    let app = TestApp::start().await;
    let texts = [
        "The café on the corner",
        "CAFE, corner table",
        "a corner without coffee",
        "Die Straße nach Łódź",
        "京都と東京の天気",
        "foo.bar@example.com wrote snake_case",
        "한국어 문장",
    ];
    let thread = thread(&app, &texts).await;
    assert_eq!(found(&app, thread, "cafe").await, [1, 2]);
    assert_eq!(found(&app, thread, "  CORNER café ").await, [1, 2]);
    assert_eq!(found(&app, thread, "corner").await, [1, 2, 3]);
    assert_eq!(found(&app, thread, "corner nowhere").await, [0_i64; 0]);
    assert_eq!(found(&app, thread, "STRASSE lodz").await, [4]);
    assert_eq!(found(&app, thread, "東京").await, [5]);
    assert_eq!(found(&app, thread, "京東").await, [0_i64; 0], "characters side by side, in this order");
    assert_eq!(found(&app, thread, "example snake").await, [6]);
    assert_eq!(found(&app, thread, "한국어").await, [7]);
    assert_eq!(found(&app, thread, "corn").await, [0_i64; 0], "whole words");
}

#[tokio::test]
async fn matches_only_in_the_index_are_not_found() {
    let app = TestApp::start().await;
    let long = "a".repeat(65);
    let (one, other) = (format!("{long}x"), format!("{long}y"));
    let thread =
        thread(&app, &["京都と東京", "東京都の天気", &format!("see {one}"), &format!("see {other}")]).await;
    assert_eq!(found(&app, thread, "東京都").await, [2], "side by side");
    assert_eq!(found(&app, thread, "東京").await, [1, 2]);
    assert_eq!(found(&app, thread, &one.to_uppercase()).await, [3], "to its end");
    assert_eq!(found(&app, thread, &other).await, [4]);
}

/// The index stores 64 characters of a word.
#[tokio::test]
async fn a_long_word_is_not_found_by_its_beginning() {
    let app = TestApp::start().await;
    let words = [63, 64, 65, 66].map(|length| "b".repeat(length));
    let thread = thread(&app, &words.each_ref().map(String::as_str)).await;
    for (word, seq) in words.iter().zip(1..) {
        assert_eq!(found(&app, thread, word).await, [seq], "{} characters", word.len());
    }
}

#[tokio::test]
async fn a_hit_shows_its_matches() {
    let app = TestApp::start().await;
    let thread = thread(&app, &["An Äpfel day"]).await;
    let hit = &search(&app, thread, "apfel").await["data"][0];
    assert_eq!(hit["snippet"], "An Äpfel day");
    assert_eq!(hit["ranges"], json!([[3, 8]]));
    assert_eq!((&hit["role"], &hit["kind"]), (&json!("USER"), &json!("TEXT")));
}

#[tokio::test]
async fn a_hit_is_what_was_selected() {
    let app = TestApp::start().await;
    let (agent, conversation) = thread(&app, &["An Äpfel day", "apfel"]).await;
    let query = "query($o: Id!, $a: Id!, $c: Id!, $no: Boolean!) {
        searchMessages(orgId: $o, agentId: $a, conversationId: $c, q: \"apfel\") {
            found: data { kind at: seq ...Place seq @skip(if: $no) at: seq }
            data { __typename ... on MessageHit { role @include(if: $no) id @skip(if: $no) } }
            none: data { seq @skip(if: $no) } } }
        fragment Place on MessageHit { where: ranges snippet }";
    let ids = json!({ "o": app.org, "a": agent, "c": conversation, "no": true });
    let data = app.viewer.gql(query, ids).await.data()["searchMessages"].clone();
    let shown = |at: i64, snippet: &str, range: [i64; 2]| json!({ "kind": "TEXT", "at": at, "where": [range], "snippet": snippet });
    let role = json!({ "__typename": "MessageHit", "role": "USER" });
    assert_eq!(
        data,
        json!({
            "found": [shown(1, "An Äpfel day", [3, 8]), shown(2, "apfel", [0, 5])],
            "data": [role, role],
            "none": [{}, {}],
        })
    );
}

#[tokio::test]
async fn without_a_word_nothing_is_found() {
    let app = TestApp::start().await;
    let (agent, conversation) = thread(&app, &["something"]).await;
    let path = format!("/v1/org/{}/agent/{agent}/conversation/{conversation}/message/search", app.org);
    let nothing = json!({ "data": [], "total": 0 });
    for q in ["", "?q=", "?q=%20%09", "?q=%25%2A%22", "?q=%23"] {
        assert_eq!(app.viewer.get(&format!("{path}{q}")).await.expect(200), nothing, "{q}");
    }
    let long = app.viewer.get(&format!("{path}?q={}", "a".repeat(501))).await;
    assert_eq!(long.violations(), [("q", "TOO_LONG")]);
    assert_eq!(app.viewer.get(&format!("{path}?q=%00")).await.violations(), [("q", "NOT_ALLOWED")]);
    assert_eq!(app.viewer.get(&format!("{path}?query=a")).await.violations(), [("query", "UNKNOWN_KEY")]);
}

#[tokio::test]
async fn typed_text_is_never_a_query() {
    let app = TestApp::start().await;
    let mine = thread(&app, &["plain words and or not near"]).await;
    let other = thread(&app, &["secret of another conversation"]).await;
    for q in [
        "plain\" OR \"secret",
        "plain' | 'secret",
        "plain OR secret",
        "plain | secret",
        "!plain",
        "-words secret",
        "pl*",
        "pla:*",
        "pl%",
        "p_ain",
        "tokens:secret",
        "NEAR(plain secret)",
        "#1",
        &format!("#{}", other.1),
        "secret",
        "'; DROP TABLE messages; --",
        "\\",
        "{plain secret}",
        "^secret",
        "<-> secret",
    ] {
        let hits = found(&app, mine, q).await;
        let only_words = q == "!plain";
        assert_eq!(hits, if only_words { vec![1] } else { vec![] }, "{q}");
    }
    assert_eq!(found(&app, mine, "plain AND words NOT near").await, [1], "operators are words");
    let many = (0..100).map(|n| format!("w{n}")).collect::<Vec<_>>().join(" ");
    assert_eq!(found(&app, mine, &many).await, [0_i64; 0]);
}

#[tokio::test]
async fn a_search_stays_in_its_conversation() {
    let app = TestApp::start().await;
    let (agent, first) = thread(&app, &["needle one"]).await;
    let second = app.conversation(agent).await;
    say(&app, second, Assistant, "needle two").await;
    assert_eq!(found(&app, (agent, first), "needle").await, [1]);
    assert_eq!(search(&app, (agent, second), "needle").await["data"][0]["snippet"], "needle two");
}

/// The agent says all of these, in one transaction.
async fn say_all(app: &TestApp, conversation: i64, texts: impl Iterator<Item = String>) {
    let tx = app.scope().begin().await.unwrap();
    for text in texts {
        let content = json!({ "text": text });
        let new = NewMessage::new(ConversationId(conversation), Assistant, MessageKind::Text, content);
        conversations::append(&tx, new).await.unwrap();
    }
    tx.commit().await.unwrap();
}

#[tokio::test]
async fn at_most_the_newest_thousand_are_found() {
    let app = TestApp::start().await;
    let (agent, conversation) = thread(&app, &[]).await;
    say_all(&app, conversation, (1..=1010).map(|n| format!("common {n}"))).await;
    let seqs = found(&app, (agent, conversation), "common").await;
    assert_eq!(seqs, (11..=1010).collect::<Vec<_>>());
    let before = app.statements();
    assert_eq!(found(&app, (agent, conversation), "common 5").await, [5], "the whole history");
    assert_eq!(app.statements() - before, 2);
}

/// A conversation whose next message gets this seq, as if there had been others before.
async fn come_to(app: &TestApp, conversation: i64, seq: i64) {
    let sql = "UPDATE conversations SET last_seq = $1 WHERE id = $2";
    app.execute(sql, vec![(seq - 1).into(), conversation.into()]).await;
}

#[tokio::test]
async fn a_long_history_is_searched_from_newest_to_oldest() {
    let app = TestApp::start().await;
    let (agent, conversation) = thread(&app, &["first word"]).await;
    let other = app.conversation(agent).await;
    // The stages for a million messages: all before 917,504, those from there on, and those from 995,328 on.
    for (seq, count, text) in [
        (500, 3, "often some early"),
        (917_502, 4, "often some"),
        (995_327, 2, "some few"),
        (995_400, 60, "some"),
        (999_000, 1001, "often"),
    ] {
        come_to(&app, conversation, seq).await;
        let text = |n: i32| if seq == 999_000 && n < 2 { "few" } else { text };
        say_all(&app, conversation, (0..count).map(|n| text(n).to_owned())).await;
    }
    come_to(&app, other, 999_500).await;
    say(&app, other, User, "first word often some early few").await;
    let thread = (agent, conversation);
    assert_eq!(found(&app, thread, "word first").await, [1], "rare, and at the beginning");
    assert_eq!(found(&app, thread, "early").await, [500, 501, 502]);
    assert_eq!(found(&app, thread, "few").await, [995_327, 995_328, 999_000, 999_001], "in two stages");
    assert_eq!(found(&app, thread, "often early").await, [500, 501, 502]);
    assert_eq!(found(&app, thread, "often few").await, [0_i64; 0], "both, but never together");
    let some: Vec<i64> =
        [500..503, 917_502..917_506, 995_327..995_329, 995_400..995_460].into_iter().flatten().collect();
    assert_eq!(found(&app, thread, "some").await, some, "in every stage");
    let often: Vec<i64> = (917_505..917_506).chain(999_002..1_000_001).collect();
    assert_eq!(found(&app, thread, "often").await, often, "the newest thousand");
}

#[tokio::test]
async fn a_fragmented_index_is_merged_and_finds_the_same() {
    let app = TestApp::start().await;
    let texts: Vec<String> = (0..60).map(|n| format!("piece {n}")).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let thread = thread(&app, &texts).await;
    let steps = conversations::merge_index(&app.core).await.unwrap();
    assert_eq!(steps > 0, !is_postgres(), "{steps}");
    assert_eq!(conversations::merge_index(&app.core).await.unwrap(), 0, "there is nothing left");
    say(&app, thread.1, User, "piece 60").await;
    assert_eq!(found(&app, thread, "piece").await, (1..=61).collect::<Vec<_>>());
    assert_eq!(found(&app, thread, "17").await, [18]);
}
