//! Whatever dies in the middle of turns and decisions: nothing is said twice, nothing is lost without a word, and every
//! state is true again.
//!
//! `MUSTER_FAULT_TURNS` (30) and `MUSTER_FAULT_SEED` (random) change how long and in which order.

use std::time::Duration;

use muster_corpus::Random;
use serde_json::json;
use tokio::time::sleep;

use crate::{harness::Crew, running::House};

/// What dies.
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

#[expect(clippy::disallowed_methods, reason = "settings of this test alone")]
fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

/// Waits for a question. What died before may show only now, and then the question waits for the next launch.
async fn asked(house: &House, crew: &Crew, conversation: i64) -> i64 {
    for _ in 0..600 {
        crew.is_up_again(&house.actor, house.tenant.org).await;
        if let Some((approval, _)) = house.pending(conversation).await {
            return approval;
        }
        sleep(Duration::from_millis(50)).await;
    }
    panic!("nothing is asked\n{}", crew.machine.log());
}

/// What a turn says at its end.
fn mark(turn: u64) -> String {
    format!("word-{turn}-end")
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_dies_nothing_is_said_twice_and_every_turn_ends() {
    let seed = number("MUSTER_FAULT_SEED", u64::from(std::process::id()));
    let turns = number("MUSTER_FAULT_TURNS", 30);
    println!("MUSTER_FAULT_SEED={seed} MUSTER_FAULT_TURNS={turns}");
    let mut random = Random::new(&[seed]);
    let mut house = House::open().await;
    let mut crew = house.crew("unlucky").await;
    house.starts(&crew).await;
    let conversation = house.says(&crew, "Good morning").await;
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
            let approval = asked(&house, &crew, conversation).await;
            if random.chance(50) {
                // It may have been withdrawn meanwhile.
                let path = format!("/v1/org/{}/approval/{approval}/answer", house.tenant.org);
                house.actor.patch(&path, json!({ "options": ["red"] })).await;
            }
        }
        sleep(Duration::from_millis(random.below(600))).await;
        let death = random.chance(60).then(|| random.pick(&DEATHS));
        if let Some(death) = death {
            death.strikes(&mut house, &mut crew);
        }
        house.settles(&crew, conversation).await;
        crew.is_up_again(&house.actor, house.tenant.org).await;
    }
    let thread = house.thread(&crew, conversation).await;
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
