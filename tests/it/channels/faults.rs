//! The service dies while messages come in and go out: every acknowledged message is stored, once, and in its sender's
//! order, and an answer is sent once, where the vendor can tell.
//!
//! `MUSTER_FAULT_DEATHS` (4; 2 at vendors) and `MUSTER_FAULT_SEED` (1) change how often and when.

use std::{
    collections::BTreeSet,
    fs,
    ops::Range,
    process::Stdio,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use futures::future::join_all;
use hmac::{Hmac, KeyInit, Mac};
use muster::base::time::Clock;
use muster_corpus::Random;
use muster_testing::peers::peer;
use reqwest::Client;
use serde_json::{Value, json};
use sha2::Sha256;
use standardwebhooks::Webhook;
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    task::JoinSet,
    time::sleep,
};

use crate::{
    agents::{running::House, running_faults::number},
    channels::calendar::soon,
    conversations::takeover::act,
    harness::{
        caldav::{CalDav, PASSWORD, USER},
        fakes::{
            discord::{Shared, TOKEN, discord},
            drive::{drive, service_account},
            github,
        },
        found, until,
    },
};

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
                let text = message["content"]["text"].as_str().unwrap();
                // Replies quote what they answer.
                texts.push(text.lines().last().unwrap().parse().unwrap());
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

/// The direct chats of the bot.
const CHATS: Range<u64> = 51..71;

/// The texts that the bot has sent, in their order.
fn sent(fake: &Shared) -> Vec<String> {
    let fake = fake.lock().unwrap();
    fake.sent.iter().map(|sent| sent["content"].as_str().unwrap().to_owned()).collect()
}

/// In each of 20 chats a person writes numbers, and a member answers. The service dies in the middle of both, and resumes
/// the session once the lease of the dead process is over.
#[tokio::test(flavor = "multi_thread")]
async fn once_messages_in_discord_come_and_go_once_and_in_order() {
    let (seed, deaths) = (number("MUSTER_FAULT_SEED", 1), number("MUSTER_FAULT_DEATHS", 2));
    println!("MUSTER_FAULT_SEED={seed} MUSTER_FAULT_DEATHS={deaths}");
    let mut random = Random::new(&[seed]);
    let (address, fake) = discord().await;
    let url = format!("http://{address}/api/v10/");
    let mut house = House::open_with(&[("MUSTER_CHANNELS_DISCORD_URL", url.as_str())]).await;
    let (crew, org) = (house.crew("shop").await, house.tenant.org);
    let body =
        json!({ "name": "Discord", "transport": "DISCORD", "agent_id": crew.agent, "bot_token": TOKEN });
    let channel = house.actor.post(&format!("/v1/org/{org}/channel"), body).await.expect(201);
    let list = format!("/v1/org/{org}/channel/{}/whitelist", channel["id"]);
    house.actor.post(&list, json!({ "origin_id": "5" })).await.expect(200);
    until("a session begins", async || fake.lock().unwrap().begun == 1).await;
    let says = |chat: u64, n: u64| fake.lock().unwrap().says(10_000 + 100 * n + chat, chat, &n.to_string());
    CHATS.for_each(|chat| says(chat, 0));
    let page = format!("/v1/org/{org}/conversation?limit=50&offset=0");
    let begun = found(async || {
        let page = house.actor.get(&page).await.expect(200);
        let begun: Vec<i64> = page["data"].as_array()?.iter().filter_map(|it| it["id"].as_i64()).collect();
        (begun.len() == CHATS.count()).then_some(begun)
    });
    let (conversations, owner) = (begun.await.expect("each chat is a conversation"), house.owner());
    for &conversation in &conversations {
        act(org, &owner, "takeOver", conversation).await.data();
    }
    let post = "mutation($o: Id!, $c: Id!, $t: String!) { postMessage(orgId: $o, conversationId: $c, input: { text: $t }) { id } }";
    let each = 25_u64.div_ceil(deaths);
    for death in 0..deaths {
        for n in 1..=each {
            CHATS.for_each(|chat| says(chat, death * each + n));
        }
        for &conversation in &conversations {
            let text = format!("{conversation}-{death}");
            owner.gql(post, json!({ "o": org, "c": conversation, "t": text })).await.data();
        }
        sleep(Duration::from_millis(random.below(100))).await;
        house.falls_and_rises();
        until("the session is resumed", async || fake.lock().unwrap().resumed.len() as u64 > death).await;
    }
    let expected: Vec<u64> = (0..=deaths * each).collect();
    for &conversation in &conversations {
        until("all of a chat is stored", async || texts(&house, conversation).await.len() >= expected.len())
            .await;
        assert_eq!(texts(&house, conversation).await, expected);
    }
    assert_eq!(fake.lock().unwrap().begun, 1, "no session was lost");
    // Deliveries that were on their way are tried again after minutes.
    let all = conversations.len() * deaths as usize;
    let is_long = deaths > 2;
    for _ in 0..if is_long { 300 } else { 0 } {
        if sent(&fake).len() < all {
            sleep(Duration::from_secs(1)).await;
        }
    }
    let sent = sent(&fake);
    println!("{} of {all} answers were sent over {deaths} deaths", sent.len());
    assert!(sent.len() == all || (!is_long && !sent.is_empty()), "{} of {all}", sent.len());
    assert_eq!(sent.iter().collect::<BTreeSet<_>>().len(), sent.len(), "none is sent twice");
    for conversation in conversations {
        let of_it = sent.iter().filter_map(|text| text.strip_prefix(&format!("{conversation}-")));
        let of_it: Vec<u64> = of_it.map(|death| death.parse().unwrap()).collect();
        assert_eq!(of_it, (0..of_it.len() as u64).collect::<Vec<_>>(), "answers keep their order");
    }
}

/// GitHub's request, which it records. It repeats none.
async fn github_says(client: &Client, url: &str, fake: &github::Shared, issue: u64, n: u64) {
    let payload = github::commented_on(issue, 1000 * issue + n, &n.to_string());
    let body = payload.to_string();
    let mut mac = Hmac::<Sha256>::new_from_slice(github::SECRET.as_bytes()).unwrap();
    mac.update(body.as_bytes());
    let signature = format!("sha256={}", hex::encode(mac.finalize().into_bytes()));
    let request = client.post(url).header("x-hub-signature-256", signature);
    let sent = request.header("x-github-event", "issue_comment").body(body).send().await;
    let status = sent.map_or(0, |answer| answer.status().as_u16());
    fake.lock().unwrap().happens("issue_comment", &payload, status);
}

/// A channel of the installation, which Ada authorizes.
async fn connect_github(house: &House, agent: i64) {
    let account =
        ["user", "create", "--email", "a@example.org", "--name", "Ada", "--confirmed", "--password-stdin"];
    house.program.json_told(&account, "a password of hers\n");
    let (org, owner) = (house.tenant.org, house.owner());
    let body = json!({ "name": "Code", "transport": "CODE_HOST", "agent_id": agent, "code_host": {
        "installation_id": 7, "repos": ["acme/shop"], "listen_scope": "all" } });
    let channel = house.actor.post(&format!("/v1/org/{org}/channel"), body).await.expect(201)["id"].clone();
    let begin = "mutation($o: Id!, $c: Id!) { authorizeChannel(orgId: $o, id: $c) { url } }";
    let begun = owner.gql(begin, json!({ "o": org, "c": channel })).await.data();
    let page = url::Url::parse(begun["authorizeChannel"]["url"].as_str().unwrap()).unwrap();
    let state = page.query_pairs().find(|(name, _)| name == "state").unwrap().1.into_owned();
    let complete = "mutation($o: Id!, $c: Id!, $s: SecretString!) { \
        completeChannelAuthorization(orgId: $o, id: $c, code: \"good\", state: $s) { id } }";
    owner.gql(complete, json!({ "o": org, "c": channel, "s": state })).await.data();
    let at = format!("/v1/org/{org}/channel/{channel}");
    house.actor.patch(&at, json!({ "is_active": true })).await.expect(200);
    house.actor.post(&format!("{at}/whitelist"), json!({ "origin_id": "5" })).await.expect(200);
}

/// On each of 20 issues a person writes numbers, and a member answers. The service dies in the middle of both. What GitHub
/// could not deliver meanwhile is fetched, and answers that may have been sent are looked for.
#[tokio::test(flavor = "multi_thread")]
async fn once_comments_at_github_come_and_go_once() {
    let (seed, deaths) = (number("MUSTER_FAULT_SEED", 1), number("MUSTER_FAULT_DEATHS", 2));
    println!("MUSTER_FAULT_SEED={seed} MUSTER_FAULT_DEATHS={deaths}");
    let mut random = Random::new(&[seed]);
    let (address, fake) = github::github().await;
    let (base, api) = (format!("http://{address}/"), format!("http://{address}/api/"));
    let mut house = House::open_with(&[
        ("MUSTER_CHANNELS_GITHUB_URL", base.as_str()),
        ("MUSTER_CHANNELS_GITHUB_API_URL", api.as_str()),
        ("MUSTER_CHANNELS_GITHUB_CLIENT_ID", github::CLIENT),
        ("MUSTER_CHANNELS_GITHUB_CLIENT_SECRET", "hush"),
        ("MUSTER_CHANNELS_GITHUB_APP_KEY", github::KEY),
        ("MUSTER_CHANNELS_GITHUB_WEBHOOK_SECRET", github::SECRET),
    ])
    .await;
    let (crew, org) = (house.crew("shop").await, house.tenant.org);
    connect_github(&house, crew.agent).await;
    let is_polled = || fake.lock().unwrap().asked.iter().any(|(asked, _)| asked == "GET app/hook/deliveries");
    until("it listens", async || is_polled()).await;
    let client = Client::builder().no_proxy().timeout(Duration::from_secs(20)).build().unwrap();
    let url = format!("{}/webhooks/github", house.actor.base());
    let says = |numbers: Range<u64>| {
        let (client, url, fake) = (client.clone(), url.clone(), fake.clone());
        async move {
            for n in numbers {
                let mut all = Vec::new();
                for issue in CHATS {
                    all.push(github_says(&client, &url, &fake, issue, n));
                }
                join_all(all).await;
            }
        }
    };
    says(0..1).await;
    let page = format!("/v1/org/{org}/conversation?limit=50&offset=0");
    let page = house.actor.get(&page).await.expect(200);
    let conversations: Vec<i64> =
        page["data"].as_array().unwrap().iter().filter_map(|it| it["id"].as_i64()).collect();
    assert_eq!(conversations.len(), CHATS.count());
    let owner = house.owner();
    for &conversation in &conversations {
        act(org, &owner, "takeOver", conversation).await.data();
    }
    let post = "mutation($o: Id!, $c: Id!, $t: String!) { postMessage(orgId: $o, conversationId: $c, input: { text: $t }) { id } }";
    let each = 25_u64.div_ceil(deaths);
    for death in 0..deaths {
        for &conversation in &conversations {
            let text = format!("{conversation}-{death}");
            owner.gql(post, json!({ "o": org, "c": conversation, "t": text })).await.data();
        }
        let mut writing = JoinSet::new();
        let begin = death * each + 1;
        writing.spawn(says(begin..begin + each));
        sleep(Duration::from_millis(200 + random.below(500))).await;
        house.falls_and_rises();
        writing.join_all().await;
    }
    let expected: Vec<u64> = (0..=deaths * each).collect();
    for &conversation in &conversations {
        until("all of an issue is stored", async || {
            texts(&house, conversation).await.len() >= expected.len()
        })
        .await;
        // What was fetched came later.
        let mut stored = texts(&house, conversation).await;
        stored.sort_unstable();
        assert_eq!(stored, expected);
    }
    let sent: Vec<String> = {
        let fake = fake.lock().unwrap();
        let first = |comment: &Value| comment["body"].as_str().unwrap().lines().next().unwrap().to_owned();
        fake.comments.iter().map(first).collect()
    };
    println!("{} answers were sent over {deaths} deaths", sent.len());
    assert!(!sent.is_empty());
    assert_eq!(sent.iter().collect::<BTreeSet<_>>().len(), sent.len(), "none is sent twice");
}

/// The texts of a conversation, in their order.
async fn words(house: &House, conversation: i64) -> Vec<String> {
    let page = "query($o: Id!, $c: Id!) { messages(orgId: $o, conversationId: $c, afterSeq: 0, limit: 200) \
                { data { role content } } }";
    let read = house.gql(page, json!({ "c": conversation })).await;
    let all = read["messages"]["data"].as_array().unwrap().iter();
    let theirs = all.filter(|message| message["role"] == "USER");
    theirs.map(|message| message["content"]["text"].as_str().unwrap().to_owned()).collect()
}

/// A person adds events that are about to begin, and the service dies while it reads them.
#[tokio::test(flavor = "multi_thread")]
async fn events_and_reminders_come_once() {
    let (seed, deaths) = (number("MUSTER_FAULT_SEED", 1), number("MUSTER_FAULT_DEATHS", 2));
    println!("MUSTER_FAULT_SEED={seed} MUSTER_FAULT_DEATHS={deaths}");
    let mut random = Random::new(&[seed]);
    let server = CalDav::start("radicale").await;
    let mut house = House::open_with(&[("MUSTER_CHANNELS_NETWORKS", "127.0.0.0/8")]).await;
    let (crew, org) = (house.crew("shop").await, house.tenant.org);
    let calendar = json!({ "url": server.url, "user": USER, "pass": PASSWORD, "reminder_lead_minutes": 600,
        "calendar_whitelist": [{ "id": server.calendar, "name": "Rota" }] });
    let body =
        json!({ "name": "Rota", "transport": "CALENDAR", "agent_id": crew.agent, "calendar": calendar });
    let channel = house.actor.post(&format!("/v1/org/{org}/channel"), body).await.expect(201);
    let list = format!("/v1/org/{org}/channel/{}/whitelist", channel["id"]);
    house.actor.post(&list, json!({ "origin_id": server.calendar })).await.expect(200);
    let page = format!("/v1/org/{org}/conversation?limit=100&offset=0");
    for death in 0..deaths {
        for n in 0..5 {
            let name = format!("event-{death}-{n}");
            server.add(&name, &name, &soon(300), &soon(330), &[]).await;
        }
        sleep(Duration::from_millis(random.below(500))).await;
        house.falls_and_rises();
    }
    let all = 5 * deaths as usize;
    let begun = found(async || {
        let page = house.actor.get(&page).await.expect(200);
        let begun: Vec<i64> = page["data"].as_array()?.iter().filter_map(|it| it["id"].as_i64()).collect();
        (begun.len() == all).then_some(begun)
    });
    for conversation in begun.await.expect("each event is a conversation") {
        until("its reminder is stored", async || {
            words(&house, conversation).await.iter().any(|text| text.starts_with("[Calendar: a reminder]"))
        })
        .await;
        let words = words(&house, conversation).await;
        assert_eq!(
            words.iter().collect::<BTreeSet<_>>().len(),
            words.len(),
            "nothing comes twice: {words:?}"
        );
    }
}

/// In 20 threads of a document a person writes numbers, and a member answers. The service dies in the middle of both.
#[tokio::test(flavor = "multi_thread")]
async fn comments_come_and_go_once_and_in_order() {
    let (seed, deaths) = (number("MUSTER_FAULT_SEED", 1), number("MUSTER_FAULT_DEATHS", 2));
    println!("MUSTER_FAULT_SEED={seed} MUSTER_FAULT_DEATHS={deaths}");
    let mut random = Random::new(&[seed]);
    let (address, fake) = drive().await;
    let url = format!("http://{address}/");
    let mut house = House::open_with(&[
        ("MUSTER_CHANNELS_GOOGLE_API_URL", url.as_str()),
        ("MUSTER_CHANNELS_GOOGLE_TOKENS_URL", url.as_str()),
        ("MUSTER_CHANNELS_DRIVE_SECONDS", "1"),
    ])
    .await;
    fake.lock().unwrap().puts("F1", "plan.txt", "folder1", "plan");
    let (crew, org) = (house.crew("shop").await, house.tenant.org);
    let folder = json!({ "folder_id": "folder1", "pass": service_account().await });
    let body = json!({ "name": "Files", "transport": "DRIVE", "agent_id": crew.agent, "drive": folder });
    let channel = house.actor.post(&format!("/v1/org/{org}/channel"), body).await.expect(201);
    let at = format!("/v1/org/{org}/channel/{}", channel["id"]);
    house.actor.post(&format!("{at}/whitelist"), json!({ "origin_id": "folder" })).await.expect(200);
    house.actor.patch(&at, json!({ "mention_off": ["folder"] })).await.expect(200);
    // Comments that were there before are not new.
    let looked = || !fake.lock().unwrap().bodies("GET files/F1/comments").is_empty();
    until("the document is looked at", async || looked()).await;
    let threads: Vec<String> = CHATS.map(|_| fake.lock().unwrap().says("F1", "0")).collect();
    let page = format!("/v1/org/{org}/conversation?limit=50&offset=0");
    let begun = found(async || {
        let page = house.actor.get(&page).await.expect(200);
        let begun: Vec<i64> = page["data"].as_array()?.iter().filter_map(|it| it["id"].as_i64()).collect();
        (begun.len() == threads.len()).then_some(begun)
    });
    let (conversations, owner) = (begun.await.expect("each thread is a conversation"), house.owner());
    for &conversation in &conversations {
        act(org, &owner, "takeOver", conversation).await.data();
    }
    let post = "mutation($o: Id!, $c: Id!, $t: String!) { postMessage(orgId: $o, conversationId: $c, input: { text: $t }) { id } }";
    let each = 25_u64.div_ceil(deaths);
    for death in 0..deaths {
        for n in 1..=each {
            let text = (death * each + n).to_string();
            for thread in &threads {
                fake.lock().unwrap().replies("F1", thread, &text);
            }
        }
        for &conversation in &conversations {
            let text = format!("{conversation}-{death}");
            owner.gql(post, json!({ "o": org, "c": conversation, "t": text })).await.data();
        }
        sleep(Duration::from_millis(random.below(1_500))).await;
        house.falls_and_rises();
        let expected = (death + 1) * each + 1;
        for &conversation in &conversations {
            until("all of a thread is stored", async || {
                texts(&house, conversation).await.len() as u64 >= expected
            })
            .await;
        }
    }
    let expected: Vec<u64> = (0..=deaths * each).collect();
    for &conversation in &conversations {
        assert_eq!(texts(&house, conversation).await, expected);
    }
    let sent = fake.lock().unwrap().sent();
    println!(
        "{} of {} answers were sent over {deaths} deaths",
        sent.len(),
        conversations.len() * deaths as usize
    );
    assert!(!sent.is_empty());
    assert_eq!(sent.iter().collect::<BTreeSet<_>>().len(), sent.len(), "none is sent twice");
    for conversation in conversations {
        let of_it = sent.iter().filter_map(|text| text.strip_prefix(&format!("{conversation}-")));
        let of_it: Vec<u64> = of_it.map(|death| death.parse().unwrap()).collect();
        assert_eq!(of_it, (0..of_it.len() as u64).collect::<Vec<_>>(), "answers keep their order");
    }
}

/// Files appear at a WebDAV server (WsgiDAV), and the service dies while it takes them.
#[tokio::test(flavor = "multi_thread")]
async fn files_come_once() {
    let (seed, deaths) = (number("MUSTER_FAULT_SEED", 1), number("MUSTER_FAULT_DEATHS", 2));
    println!("MUSTER_FAULT_SEED={seed} MUSTER_FAULT_DEATHS={deaths}");
    let (mut random, place) = (Random::new(&[seed]), tempfile::tempdir().unwrap());
    let mut process = peer("dav.py").arg(place.path()).stderr(Stdio::null()).spawn().unwrap();
    let first = BufReader::new(process.stdout.take().unwrap()).lines().next_line().await.unwrap().unwrap();
    let url = format!("http://127.0.0.1:{}/dav", first.strip_prefix("listening ").unwrap());
    let variables = [("MUSTER_CHANNELS_NETWORKS", "127.0.0.0/8"), ("MUSTER_CHANNELS_DRIVE_SECONDS", "1")];
    let mut house = House::open_with(&variables).await;
    let (crew, org) = (house.crew("shop").await, house.tenant.org);
    let folder = json!({ "folder_id": "/", "url": url, "user": "agent", "pass": "secret" });
    let body = json!({ "name": "Files", "transport": "DRIVE", "agent_id": crew.agent, "direction": "INBOUND", "drive": folder });
    let channel = house.actor.post(&format!("/v1/org/{org}/channel"), body).await.expect(201);
    let list = format!("/v1/org/{org}/channel/{}/whitelist", channel["id"]);
    house.actor.post(&list, json!({ "origin_id": "folder" })).await.expect(200);
    let link = "query($o: Id!, $c: Id!) { channel(orgId: $o, id: $c) { link { state } } }";
    until("the first look is over", async || {
        house.gql(link, json!({ "c": channel["id"] })).await["channel"]["link"]["state"] == "UP"
    })
    .await;
    let each = 40_u64.div_ceil(deaths);
    for death in 0..deaths {
        for n in 0..each {
            fs::write(place.path().join(format!("{death}-{n}.txt")), n.to_string()).unwrap();
        }
        sleep(Duration::from_millis(1_000 + random.below(2_000))).await;
        house.falls_and_rises();
    }
    let page = format!("/v1/org/{org}/conversation?limit=100&offset=0");
    let begun = found(async || {
        let page = house.actor.get(&page).await.expect(200);
        let begun: Vec<i64> = page["data"].as_array()?.iter().filter_map(|it| it["id"].as_i64()).collect();
        (begun.len() as u64 == deaths * each).then_some(begun)
    });
    let messages =
        "query($o: Id!, $c: Id!) { messages(orgId: $o, conversationId: $c, limit: 200) { data { role } } }";
    for conversation in begun.await.expect("each file is a conversation") {
        let read = house.gql(messages, json!({ "c": conversation })).await;
        let from_outside = |message: &&Value| message["role"] == "USER";
        let count = read["messages"]["data"].as_array().unwrap().iter().filter(from_outside).count();
        assert_eq!(count, 1, "{conversation}");
    }
}
