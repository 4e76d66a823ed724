//! Contacts and their addresses.

use muster::base::folding;
use serde_json::{Value, json};

use crate::harness::TestApp;

const LIST: &str = "query($o: Id!, $s: String) { contacts(orgId: $o, page: 1, limit: 10, search: $s) {
    total data { name } } }";
const ONE: &str = "query($o: Id!, $c: Id!) { contact(orgId: $o, id: $c) {
    id name note identities { originId displayName transport contact { id } channel { id } } } }";
const UPDATE: &str = "mutation($o: Id!, $c: Id!, $i: UpdateContactInput!) {
    updateContact(orgId: $o, id: $c, input: $i) { name note } }";
const DELETE: &str = "mutation($o: Id!, $c: Id!) { deleteContact(orgId: $o, id: $c) }";

async fn contact(app: &TestApp, name: &str, origin: &str) -> i64 {
    let id = app.contact(name).await;
    let sql = "INSERT INTO identities (organization_id, contact_id, transport, origin_id, origin_id_folded, display_name, \
               display_name_folded, created_at, updated_at) VALUES ($1, $2, 'EMAIL', $3, $4, $5, $6, 0, 0)";
    let display = format!("{name} at work");
    let folded = [folding::name(origin), folding::name(&display)];
    let [origin_folded, display_folded] = folded.map(Into::into);
    let values =
        vec![app.org.into(), id.into(), origin.into(), origin_folded, display.into(), display_folded];
    app.execute(sql, values).await;
    id
}

#[tokio::test]
async fn contacts_are_listed_by_name_and_found_by_name_and_address() {
    let app = TestApp::start().await;
    contact(&app, "Zoe", "zoe@example.com").await;
    let ada = contact(&app, "Ada", "a_100%@example.com").await;
    let found = async |search: Value| {
        let data = app.operator.gql(LIST, json!({"o": app.org, "s": search})).await.data();
        let names = data["contacts"]["data"].as_array().unwrap().iter();
        names.map(|contact| contact["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(found(Value::Null).await, ["Ada", "Zoe"]);
    assert_eq!(found(json!("zO")).await, ["Zoe"]);
    assert_eq!(found(json!("example.com")).await, ["Ada", "Zoe"]);
    // The search text is text, not a pattern.
    assert_eq!(found(json!("_100%")).await, ["Ada"]);
    assert_eq!(found(json!("o_@")).await, [""; 0]);
    // Regardless of case, also beyond ASCII.
    contact(&app, "Émile", "emile@example.com").await;
    for written in ["émile", "Émile", "ÉMILE", "mil"] {
        assert_eq!(found(json!(written)).await, ["Émile"], "{written}");
    }
    let data = app.operator.gql(ONE, json!({"o": app.org, "c": ada})).await.data();
    let identity = json!({
        "originId": "a_100%@example.com", "displayName": "Ada at work", "transport": "EMAIL",
        "contact": {"id": ada}, "channel": null,
    });
    assert_eq!(data["contact"], json!({"id": ada, "name": "Ada", "note": null, "identities": [identity]}));
}

#[tokio::test]
async fn contacts_are_listed_by_channel() {
    let (app, all) = TestApp::populated(4).await;
    let query =
        "query($o: Id!, $c: Id) { contacts(orgId: $o, page: 1, limit: 10, channelId: $c, sort: CREATED) {
        data { id } } }";
    let of = async |channel: Option<i64>| {
        let data = app.operator.gql(query, json!({"o": app.org, "c": channel})).await.data();
        let ids = data["contacts"]["data"].as_array().unwrap().iter();
        ids.map(|contact| contact["id"].as_i64().unwrap()).collect::<Vec<_>>()
    };
    let channel = all.channels[1];
    assert_eq!(of(Some(channel)).await, [all.contacts[1]]);
    let sql = "UPDATE conversations SET channel_id = $2 WHERE id = $1";
    app.execute(sql, vec![all.conversations[0].into(), channel.into()]).await;
    assert_eq!(of(Some(channel)).await, all.contacts[..2], "a contact may write through several");
    assert_eq!(of(None).await, all.contacts);
}

#[tokio::test]
async fn a_contact_can_be_edited() {
    let app = TestApp::start().await;
    let ada = contact(&app, "Ada", "a@example.com").await;
    let edit =
        async |input: Value| app.operator.gql(UPDATE, json!({"o": app.org, "c": ada, "i": input})).await;
    let data = edit(json!({"name": " Ada L. ", "note": "Prefers mail."})).await.data();
    assert_eq!(data["updateContact"], json!({"name": "Ada L.", "note": "Prefers mail."}));
    let data = edit(json!({"note": null})).await.data();
    assert_eq!(data["updateContact"], json!({"name": "Ada L.", "note": null}));
    assert_eq!(edit(json!({"name": null})).await.code(), "VALIDATION_FAILED");
    assert_eq!(edit(json!({"name": "  "})).await.code(), "VALIDATION_FAILED");
}

#[tokio::test]
async fn a_contact_with_conversations_stays() {
    let app = TestApp::start().await;
    let (ada, zoe) =
        (contact(&app, "Ada", "a@example.com").await, contact(&app, "Zoe", "z@example.com").await);
    let conversation = app.conversation(app.agent().await).await;
    let sql = "UPDATE conversations SET contact_id = $2 WHERE id = $1";
    app.execute(sql, vec![conversation.into(), ada.into()]).await;
    let delete = async |contact: i64| app.operator.gql(DELETE, json!({"o": app.org, "c": contact})).await;
    assert_eq!(delete(ada).await.code(), "IN_USE");
    assert_eq!(delete(zoe).await.data()["deleteContact"], zoe);
    assert_eq!(delete(zoe).await.code(), "NOT_FOUND");
    assert_eq!(app.column::<i64>("SELECT contact_id FROM identities").await, [ada]);
}

#[tokio::test]
async fn an_addresss_channel_needs_the_permission_for_its_agent() {
    let app = TestApp::start().await;
    let ada = contact(&app, "Ada", "a@example.com").await;
    let ids = json!({"o": app.org, "c": ada});
    let reader = app.token(&["contact.view"]).await;
    assert_eq!(reader.gql(LIST, ids.clone()).await.data()["contacts"]["total"], 1);
    let refused = reader.gql(ONE, ids).await;
    assert_eq!(refused.body["errors"][0]["extensions"]["details"]["permission"], "agent.view");
}
