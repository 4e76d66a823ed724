//! The service is killed while events wait: each arrives, in its order.

use serde_json::json;

use super::receiver::Receiver;
use crate::{
    agents::running::House,
    harness::{Actor, until},
};

const POST: &str = "mutation($o: Id!, $c: Id!) { postMessage(orgId: $o, conversationId: $c, input: { text: \"Go\" }) { seq } }";

/// Waits until the first event has failed at least this often, and returns its id.
async fn has_failed(owner: &Actor, org: i64, attempts: i64) -> i64 {
    let query =
        "query($o: Id!) { eventDeliveries(orgId: $o, limit: 200) { data { id status attempts error } } }";
    let mut id = 0;
    until(&format!("it has failed {attempts} times"), async || {
        let found = owner.gql(query, json!({ "o": org })).await.data();
        let first = found["eventDeliveries"]["data"].as_array().unwrap().last().unwrap().clone();
        id = first["id"].as_i64().unwrap();
        first["attempts"].as_i64().unwrap() >= attempts && !first["error"].is_null()
    })
    .await;
    id
}

#[tokio::test(flavor = "multi_thread")]
async fn two_deaths_of_the_service_lose_no_event() {
    let mut house = House::open_with(&[("MUSTER_CHANNELS_NETWORKS", "127.0.0.0/8")]).await;
    let (receiver, owner) = (Receiver::start(&[500; 50]).await, house.owner());
    let org = house.tenant.org;
    let crew = house.crew("desk").await;
    let create = "mutation($o: Id!, $u: String!) { createEventEndpoint(orgId: $o, input: { name: \"Desk\", url: $u, \
                  types: [\"conversation.message_added\"] }) { id secret } }";
    let made = owner.gql(create, json!({ "o": org, "u": receiver.url })).await.data();
    let secret = made["createEventEndpoint"]["secret"].as_str().unwrap().to_owned();
    let start = "mutation($o: Id!, $a: Id!) { startConversation(orgId: $o, input: { agentId: $a }) { id } }";
    let started = owner.gql(start, json!({ "o": org, "a": crew.agent })).await.data();
    let conversation = &started["startConversation"]["id"];
    let mut posted = Vec::new();
    for death in 1..=2 {
        for _ in 0..5 {
            let made = owner.gql(POST, json!({ "o": org, "c": conversation })).await.data();
            posted.push(made["postMessage"]["seq"].as_i64().unwrap());
        }
        has_failed(&owner, org, death).await;
        house.falls_and_rises();
    }
    receiver.clear();
    let first = has_failed(&owner, org, 2).await;
    let retry = "mutation($o: Id!, $i: Id!) { retryEventDelivery(orgId: $o, id: $i) { id } }";
    owner.gql(retry, json!({ "o": org, "i": first })).await.data();
    until("the last has arrived", async || receiver.numbers("seq").last() == posted.last()).await;
    // The first one was tried again and again, and all others waited for it.
    let mut seqs = receiver.numbers("seq");
    seqs.dedup();
    assert_eq!(seqs, posted);
    assert!(receiver.is_signed(0, &secret));
}
