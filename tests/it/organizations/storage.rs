//! Messages count in what a plan lets an organization store, and a full organization takes nothing more.

use std::time::Duration;

use muster::domain::conversations;
use muster_protocol::event::{Content, TurnOutcome};
use serde_json::{Value, json};

use crate::{
    channels::inbound_webhooks::{app, bring, channel, hello},
    harness::{Host, TestApp, is_postgres},
};

const POST: &str = "mutation($o: Id!, $c: Id!) { postMessage(orgId: $o, conversationId: $c, input: { text: \"Hello?\" }) { id } }";
const USED: &str =
    "query($o: Id!) { organization(orgId: $o) { storedBytes used { storedMib } limits { maxStoredMib } } }";

async fn used(app: &TestApp) -> Value {
    app.owner.gql(USED, json!({ "o": app.org })).await.data()["organization"].clone()
}

/// The storage of all messages, as `docs/limits.md` defines it.
async fn taken(app: &TestApp) -> i64 {
    let bytes =
        if is_postgres() { "octet_length(CAST(content AS TEXT))" } else { "length(CAST(content AS BLOB))" };
    let sql = format!(
        "SELECT CAST(SUM(512 + {bytes} * CASE WHEN delivery_status IS NULL THEN 1 ELSE 2 END) AS BIGINT) FROM messages"
    );
    app.one(&sql, vec![]).await
}

#[tokio::test]
async fn a_full_organization_takes_nothing_more_until_there_is_room() {
    let app = app().await;
    app.expects_failures();
    app.keeps_for(json!(1)).await;
    app.execute("UPDATE plans SET max_stored_mib = 1", vec![]).await;
    let (_, path) = channel(&app, "https://hooks.example/out").await;
    let (_, first) = bring(&app, &path, "m1", &hello("Grüße")).await;
    let conversation = first["conversation_id"].as_i64().unwrap();
    let agent = app.one("SELECT agent_id FROM conversations WHERE id = $1", vec![conversation.into()]).await;
    let host = Host { app: &app, agent, generation: 0 }.launched().await;
    host.started().await;
    let turn = host.given().await[0];
    host.takes(turn).await;
    assert_eq!(conversations::count_stored(&app.core).await.unwrap(), 0, "there is room");
    let says = async |n: usize| {
        let content = Content::Text { text: "word ".repeat(60_000) };
        host.says(conversation, Some(turn), &format!("1.{n}"), content).await.unwrap();
    };
    for n in 0..2 {
        says(n).await;
    }
    assert_eq!(conversations::count_stored(&app.core).await.unwrap(), 1);
    assert_eq!(conversations::count_stored(&app.core).await.unwrap(), 0, "it is full already");
    let cancelled = json!({ "kind": "CANCEL", "turn_id": turn });
    assert!(host.commands().await.contains(&cancelled), "{:?}", host.commands().await);
    for n in 2..5 {
        says(n).await;
    }
    let kinds = app.column::<String>("SELECT kind FROM messages ORDER BY seq").await;
    assert_eq!(kinds, ["TEXT", "TEXT", "TEXT", "EVENT"], "what it says further is one event");
    let refused = app.operator.gql(POST, json!({ "o": app.org, "c": conversation })).await;
    assert_eq!(refused.code(), "PLAN_LIMIT_REACHED");
    let (status, refused) = bring(&app, &path, "m2", &hello("Anybody?")).await;
    assert_eq!((status, &refused["code"]), (507, &json!("STORAGE_FULL")));
    conversations::count_stored(&app.core).await.unwrap();
    let expected = json!({ "storedBytes": taken(&app).await.to_string(), "used": { "storedMib": 2 }, "limits": { "maxStoredMib": 1 } });
    assert_eq!(used(&app).await, expected);
    // Retention makes room.
    host.turn_ended(turn, TurnOutcome::Cancelled).await;
    app.execute("UPDATE deliveries SET status = 'SENT'", vec![]).await;
    app.clock.advance(Duration::from_hours(48));
    assert_eq!(app.forgets().await, 1);
    conversations::count_stored(&app.core).await.unwrap();
    assert_eq!(used(&app).await["storedBytes"], "0");
    app.operator.gql(POST, json!({ "o": app.org, "c": conversation })).await.data();
    assert_eq!(bring(&app, &path, "m2", &hello("Anybody?")).await.0, 202, "it comes again");
}
