//! A process dies in the middle of turns and decisions: nothing is said twice, nothing is lost without a word, and every
//! state is true again.
//!
//! `MUSTER_FAULT_TURNS` (30) and `MUSTER_FAULT_SEED` (1) change how long and in which order.

use std::time::Duration;

use muster_corpus::Random;
use serde_json::json;
use tokio::time::sleep;

use crate::{
    agents::running::House,
    harness::{Address, ChildProcess, Crew, found, until},
};

/// The process that is killed.
#[derive(Clone, Copy, Debug)]
enum Death {
    Service,
    Host,
    HostAndService,
    Shim,
    Agent,
}

const DEATHS: [Death; 8] = [
    Death::Service,
    Death::Service,
    Death::Host,
    Death::Host,
    Death::Host,
    Death::HostAndService,
    Death::Shim,
    Death::Agent,
];

impl Death {
    fn strikes(self, house: &mut House, crew: &mut Crew) {
        match self {
            Self::Service => house.falls_and_rises(),
            Self::Host => {
                crew.machine.kill();
                crew.machine.run();
            }
            Self::HostAndService => {
                crew.machine.kill();
                house.falls_and_rises();
                crew.machine.run();
            }
            Self::Shim => crew.machine.kill_one("shim"),
            Self::Agent => crew.machine.kill_one("agent"),
        }
    }
}

/// A setting of this test, or of the same with containers.
pub fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var_os(name).and_then(|text| text.to_str()?.parse().ok()).unwrap_or(otherwise)
}

/// Waits for a question. What died before may show only now, and then the question waits for the next launch.
async fn asked(house: &House, crew: &Crew, conversation: i64) -> i64 {
    let asked = async || {
        crew.is_up_again(&house.actor, house.tenant.org).await;
        house.pending(conversation).await
    };
    let Some((approval, _)) = found(asked).await else { panic!("nothing is asked\n{}", crew.machine.log()) };
    approval
}

/// The last word of a turn's answer.
fn mark(turn: u64) -> String {
    format!("word-{turn}-end")
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_dies_nothing_is_said_twice_and_every_turn_ends() {
    let seed = number("MUSTER_FAULT_SEED", 1);
    let turns = number("MUSTER_FAULT_TURNS", 30);
    println!("MUSTER_FAULT_SEED={seed} MUSTER_FAULT_TURNS={turns}");
    let mut house = House::open().await;
    let mut crew = house.crew("unlucky").await;
    let strike = |random: &mut Random, house: &mut House, crew: &mut Crew| {
        random.pick(&DEATHS).strikes(house, crew);
    };
    nothing_is_lost(&mut house, &mut crew, Random::new(&[seed]), turns, strike).await;
}

/// Starts the agent and gives it this many turns, while `strike` kills something in the middle of most of them. Then
/// checks the messages, and that nothing is still open.
pub async fn nothing_is_lost(
    house: &mut House,
    crew: &mut Crew,
    mut random: Random,
    turns: u64,
    mut strike: impl FnMut(&mut Random, &mut House, &mut Crew),
) {
    house.starts(crew).await;
    let conversation = house.says(crew, "Good morning").await;
    house.rests(conversation).await;
    for turn in 0..turns {
        let is_asking = turn % 3 == 0;
        let text = if is_asking {
            format!("ask Which of {turn}? | red | blue\n{}", mark(turn))
        } else {
            format!("slowly {} {}\n{}", random.between(1, 12), random.between(5, 60), mark(turn))
        };
        house.adds(conversation, &text).await;
        if is_asking && random.chance(50) {
            let approval = asked(house, crew, conversation).await;
            if random.chance(50) {
                // It may have been withdrawn meanwhile.
                let path = format!("/v1/org/{}/approval/{approval}/answer", house.tenant.org);
                house.actor.patch(&path, json!({ "options": ["red"] })).await;
            }
        }
        sleep(Duration::from_millis(random.below(600))).await;
        if random.chance(60) {
            strike(&mut random, house, crew);
        }
        house.settles(crew, conversation).await;
        crew.is_up_again(&house.actor, house.tenant.org).await;
    }
    let thread = house.thread(crew, conversation).await;
    let states = house.rests(conversation).await;
    let is_ended = |state: &String| ["DONE", "INTERRUPTED"].contains(&state.as_str());
    assert!(states.iter().all(is_ended), "{states:?}");
    for turn in house.turns(conversation).await.as_array().unwrap() {
        let first = turn["firstSeq"].as_u64().and_then(|seq| thread.get(usize::try_from(seq).unwrap() - 1));
        let asked =
            first.and_then(|(_, _, text)| text.lines().last()).filter(|mark| mark.starts_with("word-"));
        if let Some(mark) = asked.filter(|_| turn["state"] == "DONE") {
            let is_said = |(role, kind, text): &&(String, String, String)| {
                role == "ASSISTANT" && kind == "TEXT" && text.contains(mark)
            };
            assert_eq!(thread.iter().filter(is_said).count(), 1, "{turn}: {mark}: {thread:#?}");
        }
    }
    println!(
        "{} interrupted of {}",
        states.iter().filter(|state| *state == "INTERRUPTED").count(),
        states.len()
    );
    for turn in 0..turns {
        let said = thread
            .iter()
            .filter(|(role, kind, text)| role == "ASSISTANT" && kind == "TEXT" && text.contains(&mark(turn)));
        assert!(said.count() <= 1, "{} is said twice: {thread:#?}", mark(turn));
    }
    let pending = house
        .gql(
            "query($o: Id!) { approvals(orgId: $o, page: 1, limit: 1, onlyPending: true) { total } }",
            json!({}),
        )
        .await;
    assert_eq!(pending["approvals"]["total"], 0);
    let answered = thread
        .iter()
        .filter(|(role, _, text)| role == "ASSISTANT" && text.starts_with("The answer is"))
        .count();
    assert!(answered as u64 <= turns.div_ceil(3), "{thread:#?}");
}

/// Runs `muster demo` in this folder, with further `options` and `variables`, and returns its output once it serves.
pub fn demo(
    folder: &std::path::Path,
    address: &str,
    options: &[&str],
    variables: &[(&str, &str)],
) -> (ChildProcess, serde_json::Value) {
    use std::io::{BufRead, BufReader};
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_muster"));
    command.args(["demo", "--json", "--listen", address, "--data-dir"]).arg(folder).env_clear();
    command.envs(std::env::vars_os().filter(|(name, _)| name == "PATH"));
    command.args(options).envs(variables.iter().copied());
    let mut demo = ChildProcess::spawn(command.stdout(std::process::Stdio::piped())).unwrap();
    let mut said = String::new();
    BufReader::new(demo.stdout.as_mut().unwrap()).read_line(&mut said).unwrap();
    (demo, serde_json::from_str(&said).expect("it becomes ready"))
}

/// The demo's response to a query with its token.
async fn answer(client: &reqwest::Client, said: &serde_json::Value, query: &str) -> serde_json::Value {
    let request = client.post(said["explorer"].as_str().unwrap()).json(&json!({ "query": query }));
    let token = said["service_token"].as_str().unwrap();
    let answer: serde_json::Value = request.bearer_auth(token).send().await.unwrap().json().await.unwrap();
    answer["data"].clone()
}

/// Ends the host that a killed demo has left, and its agents. No one else would.
async fn ends(folder: &std::path::Path) {
    let dir = folder.join("host");
    let stops = async || {
        let mut stop = std::process::Command::new(env!("CARGO_BIN_EXE_muster"));
        stop.args(["host", "stop", "--grace-ms", "500", "--dir"]).arg(&dir).status().unwrap().success()
    };
    until("the host ends with its demo", stops).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_demo_that_is_killed_leaves_its_agents_to_the_next_one() {
    // A short path, for sockets below it.
    let folder = tempfile::Builder::new().prefix("md").tempdir_in("/tmp").unwrap();
    let held = Address::free();
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::new();
    let mut launches = Vec::new();
    for _ in 0..2 {
        let (demo, said) = demo(folder.path(), held.as_str(), &[], &[]);
        let org = said["organization_id"].clone();
        let is_up = async || {
            let query = format!("{{ agent(orgId: {org}, id: 1) {{ status statusReason }} }}");
            answer(&client, &said, &query).await["agent"]
                == json!({ "status": "RUNNING", "statusReason": null })
        };
        until("the agent runs", is_up).await;
        let say = format!(
            "mutation {{ startConversation(orgId: {org}, input: {{ agentId: 1, text: \"Hello?\" }}) {{ id }} }}"
        );
        let conversation = answer(&client, &said, &say).await["startConversation"]["id"].clone();
        let turns = format!(
            "{{ turns(orgId: {org}, conversationId: {conversation}, page: 1, limit: 1) {{ data {{ state }} }} }}"
        );
        let is_done = async || answer(&client, &said, &turns).await["turns"]["data"][0]["state"] == "DONE";
        until("the agent has answered", is_done).await;
        let agents = folder.path().join("host/agents/1");
        let entries = std::fs::read_dir(agents).unwrap().flatten();
        launches.push(entries.filter(|entry| entry.path().join("socket").exists()).count());
        drop(demo);
    }
    assert_eq!(launches, [1, 1], "the agent is the same process");
    ends(folder.path()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_demos_agent_refunds_an_order_once_a_person_approves() {
    // A short path, for sockets below it.
    let folder = tempfile::Builder::new().prefix("md").tempdir_in("/tmp").unwrap();
    let held = Address::free();
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::new();
    let (demo, said) = demo(folder.path(), held.as_str(), &[], &[]);
    let org = said["organization_id"].clone();
    let thread = async |conversation: &serde_json::Value| {
        let query = format!(
            "{{ messages(orgId: {org}, conversationId: {conversation}) {{ data {{ role kind content }} }} }}"
        );
        answer(&client, &said, &query).await["messages"]["data"].clone()
    };
    let says = async |conversation: &serde_json::Value, part: &str| {
        let messages = thread(conversation).await;
        let is_said = |message: &serde_json::Value| {
            message["role"] == "ASSISTANT"
                && message["content"]["text"].as_str().is_some_and(|text| text.contains(part))
        };
        messages.as_array().is_some_and(|messages| messages.iter().any(is_said))
    };
    let starts = async |text: &str| {
        let start = format!(
            "mutation {{ startConversation(orgId: {org}, input: {{ agentId: 1, text: \"{text}\" }}) {{ id }} }}"
        );
        answer(&client, &said, &start).await["startConversation"]["id"].clone()
    };

    let asked = starts("Where is order 1004?").await;
    let state = "Order 1004 (Trail jacket, blue, size M) is on its way.";
    until(state, async || says(&asked, state).await).await;
    let messages = thread(&asked).await.to_string();
    assert!(messages.contains("look_up_order") && messages.contains("TOOL_CALL"), "{messages}");
    let greeted = starts("call look_up_order").await;
    until("it says what it can do", async || says(&greeted, "I run without a model").await).await;

    // The demo's own conversation, and one that is denied.
    let denied = starts("Please refund order 1012.").await;
    for (number, chosen, expected) in [
        ("1007", "approve", "The refund is approved: 54.00 EUR for order 1007"),
        ("1012", "deny", "the refund was not approved"),
    ] {
        let feed = format!(
            "{{ approvalFeed(orgId: {org}, agentId: 1, kinds: [ACTION], status: [PENDING]) \
             {{ data {{ id title conversationId request {{ tool input }} }} }} }}"
        );
        let asks = async || {
            let pending = answer(&client, &said, &feed).await["approvalFeed"]["data"].clone();
            let mut pending = pending.as_array()?.clone().into_iter();
            pending.find(|approval| approval["request"]["input"]["order"] == number)
        };
        let approval = found(asks).await.unwrap_or_else(|| panic!("Marlow never asks: {number}"));
        assert_eq!(approval["request"]["tool"], "Shop.refund_order", "{approval}");
        let id = &approval["id"];
        let decide = format!(
            "mutation {{ answerApproval(orgId: {org}, id: {id}, input: {{ options: [\"{chosen}\"] }}) {{ status }} }}"
        );
        let decided = answer(&client, &said, &decide).await;
        assert_eq!(decided["answerApproval"]["status"], "RESOLVED", "{decided}");
        until(expected, async || says(&approval["conversationId"], expected).await).await;
    }
    assert!(says(&denied, "within the 30 days of our refund policy").await);
    drop(demo);
    ends(folder.path()).await;
}
