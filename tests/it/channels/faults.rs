//! The service dies while requests come in: every acknowledged message is stored, once, and in its sender's order.
//!
//! `MUSTER_FAULT_DEATHS` (4) and `MUSTER_FAULT_SEED` (1) change how often and when.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use muster::base::time::Clock;
use muster_corpus::Random;
use reqwest::Client;
use serde_json::{Value, json};
use standardwebhooks::Webhook;
use tokio::{task::JoinSet, time::sleep};

use crate::agents::{running::House, running_faults::number};

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
/// Each sends one message after the other, so that many are on their way at any time.
const SENDERS: usize = 12;

/// The state of one sender.
#[derive(Default)]
struct Sent {
    acknowledged: u64,
    tries: u64,
    conversation: i64,
}

/// Sends messages with numbers for texts, each until it is acknowledged.
async fn sends(client: Client, url: String, sender: usize, is_enough: Arc<AtomicBool>) -> Sent {
    let (secret, mut sent) = (Webhook::new(SECRET).unwrap(), Sent::default());
    loop {
        let (id, at) = (format!("{sender}-{}", sent.acknowledged), Clock::system().now().unix_seconds());
        let who = format!("sender{sender}");
        let body =
            json!({ "text": sent.acknowledged.to_string(), "origin_id": who, "thread": sender.to_string() });
        let body = body.to_string();
        let signature = secret.sign(&id, at, body.as_bytes()).unwrap();
        let request = client.post(&url).header("webhook-id", &id).header("webhook-timestamp", at).body(body);
        sent.tries += 1;
        let status = match request.header("webhook-signature", signature).send().await {
            Ok(answer) => {
                let status = answer.status().as_u16();
                let said: Value = answer.json().await.unwrap_or_default();
                sent.conversation = said["conversation_id"].as_i64().unwrap_or(sent.conversation);
                status
            }
            Err(_) => 0,
        };
        match status {
            // 200 is a duplicate: it was committed, and the answer got lost.
            200 | 202 => {
                sent.acknowledged += 1;
                if is_enough.load(Ordering::Relaxed) {
                    return sent;
                }
            }
            0 | 502 | 503 => sleep(Duration::from_millis(10)).await,
            other => panic!("{id} is answered with {other}"),
        }
    }
}

/// The texts of a conversation, in their order.
async fn texts(house: &House, conversation: i64) -> Vec<u64> {
    let page = "query($o: Id!, $c: Id!, $s: Int) { messages(orgId: $o, conversationId: $c, afterSeq: $s, limit: 200) \
                { data { seq role content } } }";
    let (mut texts, mut after) = (Vec::new(), 0);
    loop {
        let read = house.gql(page, json!({ "c": conversation, "s": after })).await;
        let Some(last) = read["messages"]["data"].as_array().unwrap().last() else { return texts };
        after = last["seq"].as_i64().unwrap();
        for message in read["messages"]["data"].as_array().unwrap() {
            if message["role"] == "USER" {
                texts.push(message["content"]["text"].as_str().unwrap().parse().unwrap());
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_acknowledged_is_there_once_and_in_order() {
    let (seed, deaths) = (number("MUSTER_FAULT_SEED", 1), number("MUSTER_FAULT_DEATHS", 4));
    println!("MUSTER_FAULT_SEED={seed} MUSTER_FAULT_DEATHS={deaths}");
    let mut random = Random::new(&[seed]);
    let mut house = House::open().await;
    let crew = house.crew("shop").await;
    let body = json!({
        "name": "Orders", "transport": "WEBHOOK", "agent_id": crew.agent, "direction": "INBOUND",
        "webhook": { "inbound_secret": SECRET },
    });
    let channel = house.actor.post(&format!("/v1/org/{}/channel", house.tenant.org), body).await.expect(201);
    let path = channel["inbound_path"].as_str().unwrap();
    let url = format!("{}{path}", house.actor.base());
    let client = Client::builder().no_proxy().timeout(Duration::from_secs(20)).build().unwrap();
    let is_enough = Arc::new(AtomicBool::new(false));
    let mut senders = JoinSet::new();
    for sender in 0..SENDERS {
        senders.spawn(sends(client.clone(), url.clone(), sender, Arc::clone(&is_enough)));
    }
    for _ in 0..deaths {
        sleep(Duration::from_millis(200 + random.below(700))).await;
        house.falls_and_rises();
    }
    sleep(Duration::from_millis(300)).await;
    is_enough.store(true, Ordering::Relaxed);
    let (mut acknowledged, mut tries) = (0, 0);
    for sent in senders.join_all().await {
        let expected: Vec<u64> = (0..sent.acknowledged).collect();
        assert_eq!(texts(&house, sent.conversation).await, expected);
        acknowledged += sent.acknowledged;
        tries += sent.tries;
    }
    println!("{acknowledged} acknowledged in {tries} tries, over {deaths} deaths");
    assert!(acknowledged > deaths, "something got through");
    assert!(tries > acknowledged, "something was cut off");
}
