//! Event endpoints: signed, in order for each subject, and nothing lost, to a receiver on loopback.

mod faults;
mod receiver;
mod switched;

use std::time::Duration;

use muster::{
    base::{
        enums::{ApprovalKind, MessageRole, StatusReason},
        ids::AgentId,
    },
    domain::{
        approvals::{self, NewApproval},
        event_endpoints, launch,
    },
};
use serde_json::{Value, json};

use self::receiver::Receiver;
use crate::{
    channels::inbound_webhooks,
    conversations::{messages::say, turns::write},
    harness::{Actor, TestApp, until},
};

const TYPES: [&str; 7] = [
    "agent.failed",
    "approval.raised",
    "approval.decided",
    "conversation.message_added",
    "turn.ended",
    "channel.deactivated",
    "spending.reached",
];
const ADDED: [&str; 1] = ["conversation.message_added"];

const CREATE: &str = "mutation($o: Id!, $u: String!, $t: [EventType!]!) { \
    createEventEndpoint(orgId: $o, input: { name: \"Desk\", url: $u, types: $t }) { id secret } }";
const UPDATE: &str = "mutation($o: Id!, $i: Id!, $input: UpdateEventEndpointInput!) { \
    updateEventEndpoint(orgId: $o, id: $i, input: $input) { id } }";

/// An endpoint and its secret.
async fn endpoint(app: &TestApp, url: &str, types: &[&str]) -> (i64, String) {
    let made = app.owner.gql(CREATE, json!({ "o": app.org, "u": url, "t": types })).await.data();
    let made = &made["createEventEndpoint"];
    (made["id"].as_i64().unwrap(), made["secret"].as_str().unwrap().to_owned())
}

/// An app whose receiver answers like this first and gets messages, with a conversation.
async fn receiving(answers: &[u16]) -> (TestApp, Receiver, i64, i64) {
    let (app, receiver) = (inbound_webhooks::app().await, Receiver::start(answers).await);
    let (id, _) = endpoint(&app, &receiver.url, &ADDED).await;
    let conversation = app.conversation(app.agent().await).await;
    (app, receiver, id, conversation)
}

async fn says(app: &TestApp, conversation: i64) -> i64 {
    say(app, conversation, MessageRole::Assistant, "A secret answer").await
}

/// Sends until the receiver has this many requests, and their outcome is stored.
async fn arrived(app: &TestApp, receiver: &Receiver, count: usize) {
    let in_flight = "SELECT CAST(COUNT(*) AS BIGINT) FROM event_deliveries WHERE status = 'PENDING' \
                     AND attempts > 0 AND error IS NULL";
    until(&format!("{count} have arrived"), async || {
        event_endpoints::send_due(&app.core).await.unwrap();
        receiver.count() >= count && app.column::<i64>(in_flight).await == [0]
    })
    .await;
    assert_eq!(receiver.count(), count, "{:?}", receiver.payloads());
}

/// Status, attempts and error of all events that the actor sees, oldest first.
async fn deliveries(actor: &Actor, org: i64) -> Vec<Value> {
    let query = "query($o: Id!) { eventDeliveries(orgId: $o) { data { id status attempts error } } }";
    let found = actor.gql(query, json!({ "o": org })).await.data();
    let mut found = found["eventDeliveries"]["data"].as_array().unwrap().clone();
    found.reverse();
    found
}

async fn statuses(app: &TestApp) -> Vec<String> {
    let found = deliveries(&app.owner, app.org).await;
    found.iter().map(|event| event["status"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn an_event_is_signed_and_has_ids_and_a_link() {
    let (app, receiver) = (inbound_webhooks::app().await, Receiver::start(&[]).await);
    let (_, secret) = endpoint(&app, &receiver.url, &TYPES).await;
    let agent = app.agent().await;
    let conversation = app.conversation(agent).await;
    let message = says(&app, conversation).await;
    arrived(&app, &receiver, 1).await;
    assert!(receiver.is_signed(0, &secret) && !receiver.is_signed(0, inbound_webhooks::OUTBOUND));
    let payload = receiver.payloads().remove(0);
    let expected = json!({
        "type": "conversation.message_added",
        "timestamp": app.clock.now(),
        "data": {
            "organization_id": app.org, "agent_id": agent, "conversation_id": conversation, "message_id": message,
            "seq": 1, "url": format!("{}/o/{}/conversations/{conversation}", app.core.config.links(), app.org),
        },
    });
    assert_eq!(payload, expected, "and nothing of what was said");
}

#[tokio::test]
async fn each_type_is_sent_when_it_happens_and_no_other() {
    let (app, receiver, few) =
        (inbound_webhooks::app().await, Receiver::start(&[]).await, Receiver::start(&[]).await);
    endpoint(&app, &receiver.url, &TYPES).await;
    endpoint(&app, &few.url, &["turn.ended"]).await;
    let agent = app.agent().await;
    let conversation = app.conversation(agent).await;
    let turn = write(&app, conversation, "Go on.").await;
    arrived(&app, &receiver, 1).await;
    let cancel = "mutation($o: Id!, $t: Id!) { cancelTurn(orgId: $o, id: $t) { id } }";
    app.owner.gql(cancel, json!({ "o": app.org, "t": turn })).await.data();
    arrived(&app, &receiver, 2).await;
    arrived(&app, &few, 1).await;
    let tx = app.scope().begin().await.unwrap();
    let agent_id = Some(AgentId(agent));
    let guard =
        NewApproval { agent_id, ..NewApproval::new(ApprovalKind::CostGuard, "The budget is used up") };
    let approval = approvals::raise(&tx, guard).await.unwrap().0;
    launch::fail(&tx, AgentId(agent), StatusReason::StartTimeout, None).await.unwrap();
    tx.commit().await.unwrap();
    arrived(&app, &receiver, 5).await;
    let resolve = "mutation($o: Id!, $a: Id!) { resolveApproval(orgId: $o, id: $a) { id } }";
    app.owner.gql(resolve, json!({ "o": app.org, "a": approval })).await.data();
    arrived(&app, &receiver, 6).await;
    let (channel, _) = inbound_webhooks::channel(&app, "https://hooks.example/out").await;
    let whose = "SELECT agent_id FROM channels WHERE id = $1";
    let other: i64 = app.one(whose, vec![channel.into()]).await;
    let delete = "mutation($o: Id!, $a: Id!) { deleteAgent(orgId: $o, id: $a) }";
    app.owner.gql(delete, json!({ "o": app.org, "a": other })).await.data();
    // The approval about the channel comes with it.
    arrived(&app, &receiver, 8).await;
    let mut types = receiver.types();
    types.sort_unstable();
    let mut expected = [&TYPES[..], &["approval.raised"]].concat();
    expected.sort_unstable();
    assert_eq!(types, expected);
    assert_eq!(few.types(), ["turn.ended"]);
    for payload in receiver.payloads() {
        let data = payload["data"].as_object().unwrap();
        let url = data["url"].as_str().unwrap();
        assert!(url.starts_with(&format!("{}/o/{}/", app.core.config.links(), app.org)), "{url}");
        let ids = data.iter().filter(|(name, _)| *name != "url");
        assert!(ids.clone().all(|(_, id)| id.is_i64() || id.is_null()), "{payload}");
        assert!(ids.count() > 1, "{payload}");
    }
}

#[tokio::test]
async fn events_of_a_subject_keep_their_order_and_others_go_on() {
    let (app, receiver, _, conversation) = receiving(&[500]).await;
    let other = app.conversation(app.agent().await).await;
    let own = [says(&app, conversation).await, says(&app, conversation).await];
    event_endpoints::send_due(&app.core).await.unwrap();
    arrived(&app, &receiver, 1).await;
    let unrelated = says(&app, other).await;
    arrived(&app, &receiver, 2).await;
    assert_eq!(receiver.numbers("message_id"), [own[0], unrelated], "the second one waits for the first");
    app.clock.advance(Duration::from_secs(6));
    arrived(&app, &receiver, 4).await;
    assert_eq!(receiver.numbers("message_id"), [own[0], unrelated, own[0], own[1]]);
    let ids = receiver.ids();
    assert_eq!(ids[0], ids[2], "a repetition has the same id");
    assert!(ids[1] != ids[0] && ids[3] != ids[0]);
}

#[tokio::test]
async fn a_refused_event_holds_up_no_other() {
    let (app, receiver, _, conversation) = receiving(&[422]).await;
    let own = [says(&app, conversation).await, says(&app, conversation).await];
    arrived(&app, &receiver, 2).await;
    assert_eq!(receiver.numbers("message_id"), own);
    assert_eq!(statuses(&app).await, ["FAILED", "SENT"]);
    // A person sends it again, with the id that it had.
    let failed = deliveries(&app.owner, app.org).await[0]["id"].clone();
    let retry = "mutation($o: Id!, $i: Id!) { retryEventDelivery(orgId: $o, id: $i) { status } }";
    let retried = app.owner.gql(retry, json!({ "o": app.org, "i": failed })).await.data();
    assert_eq!(retried["retryEventDelivery"]["status"], "PENDING");
    arrived(&app, &receiver, 3).await;
    assert_eq!(statuses(&app).await, ["SENT", "SENT"]);
    let ids = receiver.ids();
    assert_eq!(ids[0], ids[2]);
}

#[tokio::test]
async fn events_are_replayed_from_a_time_in_their_order() {
    let (app, receiver, id, conversation) = receiving(&[]).await;
    says(&app, conversation).await;
    arrived(&app, &receiver, 1).await;
    app.clock.advance(Duration::from_mins(10));
    let from = app.clock.now();
    let own = [says(&app, conversation).await, says(&app, conversation).await];
    arrived(&app, &receiver, 3).await;
    let replay =
        "mutation($o: Id!, $i: Id!, $f: Timestamp!) { replayEvents(orgId: $o, endpointId: $i, from: $f) }";
    let variables = json!({ "o": app.org, "i": id, "f": from });
    assert_eq!(app.owner.gql(replay, variables).await.data()["replayEvents"], 2);
    arrived(&app, &receiver, 5).await;
    assert_eq!(receiver.numbers("message_id")[3..], own);
    let ids = receiver.ids();
    assert_eq!(ids[1..3], ids[3..5], "a receiver recognizes them");
}

#[tokio::test]
async fn after_a_rotation_both_secrets_sign_for_a_time() {
    let (app, receiver) = (inbound_webhooks::app().await, Receiver::start(&[]).await);
    let (id, old) = endpoint(&app, &receiver.url, &ADDED).await;
    let conversation = app.conversation(app.agent().await).await;
    let rotate = "mutation($o: Id!, $i: Id!, $s: Int) { \
                  rotateEventEndpointSecret(orgId: $o, id: $i, overlapSeconds: $s) { secret previousSecretUntil } }";
    let rotated = app.owner.gql(rotate, json!({ "o": app.org, "i": id, "s": 600 })).await.data();
    let rotated = &rotated["rotateEventEndpointSecret"];
    let new = rotated["secret"].as_str().unwrap();
    assert_eq!(rotated["previousSecretUntil"], json!(app.clock.now().plus(Duration::from_mins(10))));
    says(&app, conversation).await;
    arrived(&app, &receiver, 1).await;
    assert!(new != old && receiver.is_signed(0, &old) && receiver.is_signed(0, new));
    app.clock.advance(Duration::from_mins(11));
    says(&app, conversation).await;
    arrived(&app, &receiver, 2).await;
    assert!(!receiver.is_signed(1, &old) && receiver.is_signed(1, new));
    // Without an overlap, the old one ends at once.
    let rotated = app.owner.gql(rotate, json!({ "o": app.org, "i": id, "s": 0 })).await.data();
    let newest = rotated["rotateEventEndpointSecret"]["secret"].as_str().unwrap();
    says(&app, conversation).await;
    arrived(&app, &receiver, 3).await;
    assert!(!receiver.is_signed(2, new) && receiver.is_signed(2, newest));
}

#[tokio::test]
async fn an_inward_address_is_refused_and_never_called() {
    let app = TestApp::start().await;
    let receiver = Receiver::start(&[]).await;
    for url in
        [receiver.url.as_str(), "http://[::1]/", "http://169.254.169.254/", "ftp://a.example/", "nothing"]
    {
        let refused = app.owner.gql(CREATE, json!({ "o": app.org, "u": url, "t": ["agent.failed"] })).await;
        assert_eq!(refused.code(), "VALIDATION_FAILED", "{url}");
    }
    // A name is resolved when an event is sent.
    let url = receiver.url.replace("127.0.0.1", "localhost");
    endpoint(&app, &url, &ADDED).await;
    says(&app, app.conversation(app.agent().await).await).await;
    until("it was tried", async || {
        event_endpoints::send_due(&app.core).await.unwrap();
        deliveries(&app.owner, app.org).await[0]["error"].is_string()
    })
    .await;
    let error = deliveries(&app.owner, app.org).await[0]["error"].as_str().unwrap().to_owned();
    assert!(error.contains("not public"), "{error}");
    assert_eq!(statuses(&app).await, ["PENDING"], "a resolver can be wrong for a time");
    assert_eq!(receiver.count(), 0);
}

#[tokio::test]
async fn another_organization_gets_and_sees_nothing() {
    let (app, receiver, id, conversation) = receiving(&[]).await;
    let theirs = Receiver::start(&[]).await;
    let create = json!({ "o": app.other_org, "u": theirs.url, "t": TYPES });
    app.stranger.gql(CREATE, create).await.data();
    says(&app, conversation).await;
    arrived(&app, &receiver, 1).await;
    assert_eq!(deliveries(&app.stranger, app.other_org).await, Vec::<Value>::new());
    let query = "query($o: Id!) { eventEndpoints(orgId: $o) { id } }";
    assert_eq!(app.stranger.gql(query, json!({ "o": app.org })).await.code(), "NOT_A_MEMBER");
    let input = json!({ "o": app.other_org, "i": id, "input": { "isActive": false } });
    assert_eq!(app.stranger.gql(UPDATE, input).await.code(), "NOT_FOUND");
    // Their own event arrives first: ours was never sent to them.
    let agent = app.other_agent().await;
    let tx = app.other_scope().begin().await.unwrap();
    launch::fail(&tx, AgentId(agent), StatusReason::StartTimeout, None).await.unwrap();
    tx.commit().await.unwrap();
    arrived(&app, &theirs, 1).await;
    assert_eq!(theirs.types(), ["agent.failed"]);
    assert_eq!(receiver.count(), 1);
}

#[tokio::test]
async fn only_a_person_changes_endpoints() {
    let (app, _, id, _) = receiving(&[]).await;
    let token = app.token(&["organization.edit"]).await;
    let create = json!({ "o": app.org, "u": "https://hook.example/in", "t": ADDED });
    assert_eq!(token.gql(CREATE, create).await.code(), "PERMISSION_DENIED");
    let input = json!({ "o": app.org, "i": id, "input": { "url": "https://hook.example/in" } });
    assert_eq!(token.gql(UPDATE, input.clone()).await.code(), "PERMISSION_DENIED");
    assert_eq!(app.operator.gql(UPDATE, input.clone()).await.code(), "PERMISSION_DENIED");
    app.admin.gql(UPDATE, input).await.data();
}
