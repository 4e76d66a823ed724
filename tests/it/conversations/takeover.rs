//! Taking a conversation over from the agent and handing it back: who may, who speaks, and when it ends by itself.

use std::time::Duration;

use futures::future::join_all;
use muster::domain::conversations;
use muster_protocol::{
    event::{Content, EndReason, TurnOutcome},
    plan::TurnPlan,
};
use serde_json::{Value, json};

use crate::{
    agents::running::House,
    conversations::turns::{statuses, texts, write},
    harness::{Actor, Answer, Socket, TestApp, until},
};

const SHOWN: &str = "id takenOverBy takenOverByName takenOverAt status openTurns { id state }";

pub async fn act(org: i64, actor: &Actor, verb: &str, conversation: i64) -> Answer {
    let query =
        format!("mutation($o: Id!, $c: Id!) {{ {verb}Conversation(orgId: $o, id: $c) {{ {SHOWN} }} }}");
    actor.gql(&query, json!({ "o": org, "c": conversation })).await
}

pub async fn take_over(app: &TestApp, actor: &Actor, conversation: i64) -> Value {
    act(app.org, actor, "takeOver", conversation).await.data()["takeOverConversation"].clone()
}

pub async fn hand_back(app: &TestApp, actor: &Actor, conversation: i64) -> Value {
    act(app.org, actor, "handBack", conversation).await.data()["handBackConversation"].clone()
}

pub async fn post(app: &TestApp, actor: &Actor, conversation: i64, text: &str) -> Answer {
    let query = "mutation($o: Id!, $c: Id!, $t: String!) { postMessage(orgId: $o, conversationId: $c, input: { text: $t }) { \
                 role status authorUserId authorName viaChannelId delivery { status attempts } turn { id state } } }";
    actor.gql(query, json!({ "o": app.org, "c": conversation, "t": text })).await
}

/// The events of a thread, as people read them.
async fn events(app: &TestApp, conversation: i64) -> Vec<String> {
    let sql = format!(
        "SELECT CAST(content AS TEXT) FROM messages WHERE conversation_id = {conversation} AND kind = 'EVENT' ORDER BY seq"
    );
    let contents: Vec<String> = app.column(&sql).await;
    let content = |text: &String| serde_json::from_str::<Value>(text).unwrap();
    contents
        .iter()
        .map(content)
        .map(|it| format!("{}: {}", it["event"].as_str().unwrap(), it["text"].as_str().unwrap()))
        .collect()
}

pub fn told(plan: &TurnPlan) -> Vec<&str> {
    texts(&plan.prompt)
}

#[tokio::test]
async fn the_agent_gets_the_holders_answers_with_its_next_turn() {
    let app = TestApp::start().await;
    let (host, conversation) = app.talking_agent().await;
    let first = write(&app, conversation, "where is my parcel?").await;
    host.takes(first).await;
    host.says(conversation, Some(first), "m1", Content::Text { text: "I look".to_owned() }).await.unwrap();
    let shown = take_over(&app, &app.admin, conversation).await;
    assert_eq!((&shown["takenOverBy"], &shown["takenOverByName"]), (&json!(app.admin.user), &json!("admin")));
    assert!(shown["takenOverAt"].is_string());
    assert_eq!(host.commands().await.last().unwrap()["kind"], "CANCEL", "what runs is cancelled");
    host.turn_ended(first, TurnOutcome::Cancelled).await;
    assert_eq!(app.turn_is(first).await, "CANCELLED");

    let said = post(&app, &app.admin, conversation, "it is in Graz").await.data()["postMessage"].clone();
    assert_eq!((&said["role"], &said["status"]), (&json!("ASSISTANT"), &json!("DELIVERED")));
    assert_eq!((&said["authorUserId"], &said["authorName"]), (&json!(app.admin.user), &json!("admin")));
    assert_eq!((&said["viaChannelId"], &said["delivery"]), (&Value::Null, &Value::Null), "it has no channel");
    // A program that brings what customers write is not refused: nothing of it may be lost.
    let program = app.token(&["agent.interact", "agent.output.view"]).await;
    let inbound = post(&app, &program, conversation, "and when?").await.data()["postMessage"].clone();
    assert_eq!((&inbound["role"], &inbound["status"]), (&json!("USER"), &json!("PENDING")));
    let next = inbound["turn"]["id"].as_i64().unwrap();
    assert_eq!(host.given().await, [first], "the agent is quiet");
    assert!(host.plan(next).await.is_err(), "even if its host asks");
    host.started().await;
    assert_eq!(host.given().await, [first]);
    post(&app, &app.admin, conversation, "tomorrow").await.data();
    assert_eq!(host.given().await, [first]);

    let shown = hand_back(&app, &app.admin, conversation).await;
    assert_eq!((&shown["takenOverBy"], &shown["takenOverAt"]), (&Value::Null, &Value::Null));
    assert_eq!(host.given().await, [first], "a person has answered, so no turn waits");
    assert_eq!(shown["openTurns"], json!([]), "nothing is to come before the next message");
    // Not even after it was launched again.
    host.act("stop").await;
    host.ended(EndReason::Stopped).await;
    let host = host.relaunched().await;
    assert_eq!(host.given().await, [0_i64; 0]);
    assert!(host.plan(next).await.is_err());
    assert_eq!(write(&app, conversation, "thank you").await, next);
    assert_eq!(host.given().await, [next]);
    let plan = host.takes(next).await;
    assert_eq!(
        told(&plan),
        ["(said in your place) it is in Graz", "and when?", "(said in your place) tomorrow", "thank you"]
    );
    assert!(statuses(&app, conversation).await.iter().all(|status| status == "DELIVERED"));
    assert_eq!(
        events(&app, conversation).await,
        [
            "TAKEN_OVER: admin took over from the agent.",
            "HANDED_BACK: admin handed the conversation back to the agent."
        ]
    );
    let audit = "SELECT operation || ' ' || actor_name || ' ' || CAST(changes AS TEXT) FROM audit_lines \
                 WHERE operation IN ('takeOverConversation', 'handBackConversation') ORDER BY id";
    let audit: Vec<String> = app.column(audit).await;
    assert_eq!(audit.len(), 2, "{audit:?}");
}

#[tokio::test]
async fn others_are_told_who_answers_and_may_take_it_over() {
    let app = TestApp::start().await;
    let (host, conversation) = app.talking_agent().await;
    let program = app.token(&["agent.interact", "agent.output.view"]).await;
    let refused = act(app.org, &program, "takeOver", conversation).await;
    assert_eq!(refused.code(), "PERMISSION_DENIED", "only a person answers in its place");
    hand_back(&app, &app.operator, conversation).await;
    assert!(events(&app, conversation).await.is_empty(), "there was nothing to hand back");

    let at = take_over(&app, &app.admin, conversation).await["takenOverAt"].clone();
    let refused = post(&app, &app.operator, conversation, "me too").await;
    assert_eq!(refused.code(), "CONFLICT");
    let error = &refused.body["errors"][0];
    let message = error["message"].as_str().unwrap();
    assert!(message.starts_with("admin has taken this conversation over"), "{message}");
    let details = json!({ "taken_over_by": { "id": app.admin.user, "name": "admin" }, "taken_over_at": at });
    assert_eq!(error["extensions"]["details"], details);
    assert_eq!(act(app.org, &app.operator, "handBack", conversation).await.code(), "CONFLICT");
    take_over(&app, &app.admin, conversation).await;
    assert_eq!(take_over(&app, &app.operator, conversation).await["takenOverByName"], "operator");
    assert_eq!(act(app.org, &app.admin, "handBack", conversation).await.code(), "CONFLICT");
    assert_eq!(
        events(&app, conversation).await,
        ["TAKEN_OVER: admin took over from the agent.", "TAKEN_OVER: operator took over from admin."]
    );
    assert!(host.given().await.is_empty());

    // Many at once: one after another, each named.
    let people = [&app.admin, &app.operator, &app.owner];
    let all = (0..9).map(|n| act(app.org, people[n % 3], "takeOver", conversation));
    for answer in join_all(all).await {
        answer.data();
    }
    let thread = events(&app, conversation).await;
    let mut before = "operator";
    for event in &thread[2..] {
        let (by, from) = event.trim_start_matches("TAKEN_OVER: ").split_once(" took over from ").unwrap();
        assert_eq!(from.trim_end_matches('.'), before, "{thread:?}");
        before = by;
    }
}

#[tokio::test]
async fn a_silent_holder_loses_the_conversation_after_an_hour() {
    let app = TestApp::start().await;
    let (host, conversation) = app.talking_agent().await;
    let end = async || conversations::end_abandoned(&app.core).await.unwrap();
    take_over(&app, &app.admin, conversation).await;
    app.clock.advance(Duration::from_mins(50));
    post(&app, &app.admin, conversation, "wait").await.data();
    let program = app.token(&["agent.interact", "agent.output.view"]).await;
    app.clock.advance(Duration::from_mins(20));
    let inbound = post(&app, &program, conversation, "I wait").await.data();
    assert_eq!(end().await, 0, "a word of the holder counts, one of others does not");
    app.clock.advance(Duration::from_mins(40));
    assert_eq!((end().await, end().await), (1, 0));
    let turn = inbound["postMessage"]["turn"]["id"].as_i64().unwrap();
    assert_eq!(host.given().await, [turn]);
    let thread = events(&app, conversation).await;
    assert_eq!(
        thread[1],
        "TAKE_OVER_ENDED: admin has said nothing for 60 minutes, so the agent answers again."
    );
    post(&app, &app.operator, conversation, "fine").await.data();
}

#[tokio::test]
async fn losing_the_right_to_write_ends_the_take_over() {
    let app = TestApp::start().await;
    let (host, conversation) = app.talking_agent().await;
    let end = async || conversations::end_abandoned(&app.core).await.unwrap();
    let person = app.person("OPERATOR", true).await;
    take_over(&app, &person, conversation).await;
    let program = app.token(&["agent.interact", "agent.output.view"]).await;
    let inbound = post(&app, &program, conversation, "I wait").await.data();
    assert_eq!(end().await, 0);
    let change = "mutation($o: Id!, $u: Id!) { updateMember(orgId: $o, userId: $u, input: { role: VIEWER }) { role } }";
    app.owner.gql(change, json!({ "o": app.org, "u": person.user })).await.data();
    assert_eq!((end().await, end().await), (1, 0));
    let turn = inbound["postMessage"]["turn"]["id"].as_i64().unwrap();
    assert_eq!(host.given().await, [turn], "the agent answers who waits");
    let last = events(&app, conversation).await.pop().unwrap();
    assert!(last.starts_with("TAKE_OVER_ENDED: person-"), "{last}");
    assert!(last.ends_with(" may no longer write to agents, so the agent answers again."), "{last}");
    // The same for a removed member, and for a role that loses the right by the organization's own rules.
    let other = app.person("OPERATOR", true).await;
    take_over(&app, &other, conversation).await;
    let remove = "mutation($o: Id!, $u: Id!) { removeMember(orgId: $o, userId: $u) }";
    let removed = app.owner.gql(remove, json!({ "o": app.org, "u": other.user })).await;
    assert!(removed.body["errors"].is_null(), "{}", removed.text);
    assert_eq!(end().await, 1);
    take_over(&app, &app.operator, conversation).await;
    let rule = format!("p, OPERATOR, {}, agent.interact, deny\n", app.org);
    app.owner.edit_policy(app.org, "none", &rule).await.data();
    assert_eq!((end().await, end().await), (1, 0));
}

#[tokio::test]
async fn archiving_ends_a_take_over() {
    let app = TestApp::start().await;
    let (host, conversation) = app.talking_agent().await;
    take_over(&app, &app.admin, conversation).await;
    let edit = "mutation($o: Id!, $c: Id!, $s: ConversationStatus!) { \
                updateConversation(orgId: $o, id: $c, input: { status: $s }) { status takenOverBy } }";
    let set = async |status: &str| {
        let variables = json!({ "o": app.org, "c": conversation, "s": status });
        app.admin.gql(edit, variables).await.data()["updateConversation"].clone()
    };
    assert_eq!(set("ARCHIVED").await, json!({ "status": "ARCHIVED", "takenOverBy": null }));
    assert!(events(&app, conversation).await[1].starts_with("TAKE_OVER_ENDED: admin no longer answers"));
    assert_eq!(act(app.org, &app.admin, "takeOver", conversation).await.code(), "ARCHIVED");
    set("OPEN").await;
    take_over(&app, &app.admin, conversation).await;
    host.act("stop").await;
    host.ended(EndReason::Stopped).await;
    app.delete_agent(host.agent).await;
    hand_back(&app, &app.admin, conversation).await;
    assert_eq!(act(app.org, &app.admin, "takeOver", conversation).await.code(), "ARCHIVED");
}

#[tokio::test]
async fn the_holders_words_go_out_through_the_channel() {
    let (app, all) = TestApp::populated(1).await;
    let (conversation, channel) = (all.conversations[0], all.channels[0]);
    let sql = "UPDATE conversations SET channel_id = $1, status = 'OPEN', archived_at = NULL, target = 'there' WHERE id = $2";
    app.execute(sql, vec![channel.into(), conversation.into()]).await;
    let mut client = Socket::of(&app.viewer).await;
    let variables = json!({ "o": app.org, "c": conversation });
    let query = "subscription($o: Id!, $c: Id!) { messageAdded(orgId: $o, conversationId: $c) { role kind content } }";
    client.subscribe("m", query, variables).await;
    let query = "subscription($o: Id!) { changes(orgId: $o, kinds: [CONVERSATION]) { kind id op } }";
    client.subscribe("c", query, json!({ "o": app.org })).await;
    assert_eq!(client.next().await["payload"]["data"]["changes"]["op"], "RESYNC");
    client.subscribe("settled", "{ __typename }", json!({})).await;
    while client.next().await["type"] != "complete" {}
    take_over(&app, &app.admin, conversation).await;
    let said = post(&app, &app.admin, conversation, "hello").await.data()["postMessage"].clone();
    assert_eq!(said["viaChannelId"], channel);
    assert_eq!(said["delivery"], json!({ "status": "PENDING", "attempts": 0 }));
    hand_back(&app, &app.admin, conversation).await;
    let (mut heard, mut changes) = (Vec::new(), 0);
    while heard.len() < 3 || changes < 3 {
        let news = client.next().await;
        let data = &news["payload"]["data"];
        match news["id"].as_str() {
            Some("m") => {
                heard.push((data["messageAdded"]["role"].clone(), data["messageAdded"]["kind"].clone()));
            }
            _ => {
                assert_eq!(
                    data["changes"],
                    json!({ "kind": "CONVERSATION", "id": conversation, "op": "UPDATED" })
                );
                changes += 1;
            }
        }
    }
    let role = |role: &str, kind: &str| (json!(role), json!(kind));
    assert_eq!(heard, [role("SYSTEM", "EVENT"), role("ASSISTANT", "TEXT"), role("SYSTEM", "EVENT")]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_real_agent_is_quiet_while_a_person_answers() {
    let (house, crew) = House::with_crew("quiet").await;
    let conversation = house.says(&crew, "slowly 600 100").await;
    let begun = "query($o: Id!, $c: Id!) { conversation(orgId: $o, id: $c) { openTurns { startedAt } } }";
    let has_begun = async || {
        let seen = house.gql(begun, json!({ "c": conversation })).await;
        !seen["conversation"]["openTurns"][0]["startedAt"].is_null()
    };
    until("the turn begins", has_begun).await;
    let owner = house.owner();
    act(house.tenant.org, &owner, "takeOver", conversation).await.data();
    assert_eq!(house.rests(conversation).await, ["CANCELLED"]);
    let query = "mutation($o: Id!, $c: Id!) { \
                 postMessage(orgId: $o, conversationId: $c, input: { text: \"It is in Graz.\" }) { role } }";
    owner.gql(query, json!({ "o": house.tenant.org, "c": conversation })).await.data();
    house.adds(conversation, "And when?").await;
    act(house.tenant.org, &owner, "handBack", conversation).await.data();
    house.hears(&crew, conversation, "(said in your place) It is in Graz.").await;
    house.hears(&crew, conversation, "And when?").await;
    let mut turns = house.rests(conversation).await;
    turns.sort();
    assert_eq!(turns, ["CANCELLED", "DONE"]);
}
