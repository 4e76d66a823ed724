//! After any kill, agents in containers continue, or their end is reported.

use std::time::Duration;

use muster_corpus::Random;
use muster_protocol::{
    HostEvent,
    event::{Content, TurnOutcome},
};
use tokio::time::sleep;

use crate::{
    engine::{Contained, Own, PROBE, docker, list},
    support::{Plane, State},
};

fn said(state: &State, conversation_id: i64) -> String {
    let texts = state.messages(conversation_id).into_iter().filter_map(|message| match message.content {
        Content::Text { text } => Some(text),
        _ => None,
    });
    texts.collect()
}

fn counted(last: usize) -> String {
    (1..=last).map(|number| format!("{number} ")).collect()
}

/// Waits for more text.
async fn sees_more(plane: &Plane) {
    let seen = plane.lock().deltas.len();
    plane.wait("text is seen", |state| (state.deltas.len() > seen + 2).then_some(())).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs an engine: tests/containers"]
async fn a_host_killed_in_mid_sentence_finds_its_containers() {
    let plane = Plane::start().await;
    let mut host = Contained::start(&plane, &[]);
    plane.launch(7, 1).await;
    // Podman reports its version slowly, and a host waits for it before it connects.
    let turn = plane.turn(7, 1, 70, "slowly 80 120");
    for _ in 0..3 {
        sees_more(&plane).await;
        host.kill();
        host.run();
    }
    assert_eq!(plane.end_of(turn).await.outcome, TurnOutcome::Done);
    let state = plane.lock();
    assert_eq!(said(&state, 70), counted(80));
    assert_eq!(state.events_of(7).filter(|what| matches!(what, HostEvent::Started { .. })).count(), 1);
    state.check();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs an engine: tests/containers"]
async fn a_host_that_is_killed_while_it_launches_starts_one_container() {
    let plane = Plane::start().await;
    let mut host = Contained::start(&plane, &[]);
    for (agent, wait) in [(7, 0), (8, 60), (9, 120), (10, 250), (11, 400)] {
        plane.begin(agent, 1, "muster/agent");
        sleep(Duration::from_millis(wait)).await;
        host.kill();
        host.run();
        plane.wait("it runs", |state| state.started(agent, 1).then_some(())).await;
        assert_eq!(plane.say(agent, 1, agent * 10, "Hello").await.outcome, TurnOutcome::Done);
    }
    assert_eq!(host.containers().len(), 5);
    plane.lock().check();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs an engine: tests/containers"]
async fn a_killed_engine_leaves_agents_running_and_delays_launches() {
    let plane = Plane::start().await;
    let mut own = Own::start();
    let mut host = Contained::with(&plane, &own.socket(), &[]);
    plane.launch(7, 1).await;
    let turn = plane.turn(7, 1, 70, "slowly 100 20");
    sees_more(&plane).await;
    own.falls();
    sees_more(&plane).await;
    // The host restarts while its engine is away.
    host.kill();
    host.run();
    sees_more(&plane).await;
    plane.begin(8, 1, "muster/agent");
    sleep(Duration::from_secs(2)).await;
    assert!(plane.lock().ended(8, 1).is_none(), "it waits for the engine");
    within(&mut own);
    assert_eq!(plane.end_of(turn).await.outcome, TurnOutcome::Done);
    assert_eq!(said(&plane.lock(), 70), counted(100));
    let told = |word: &str| host.log().lines().filter(|line| line.contains(word)).count();
    assert_eq!(told("agents that are started wait for their engine"), 1, "{}", host.log());
    plane.wait("the other one runs", |state| state.started(8, 1).then_some(())).await;
    assert_eq!(plane.say(7, 1, 70, "Still there?").await.outcome, TurnOutcome::Done);
    assert_eq!(told("the engine is back"), 1, "{}", host.log());
    plane.lock().check();
    drop(host);
}

fn within(own: &mut Own) {
    crate::support::within(|| own.rises());
}

/// The killed process.
#[derive(Clone, Copy, Debug)]
enum Death {
    Host,
    Engine,
    HostAndEngine,
    Container,
    Agent,
}

const DEATHS: [Death; 8] = [
    Death::Host,
    Death::Host,
    Death::Host,
    Death::Engine,
    Death::HostAndEngine,
    Death::Container,
    Death::Agent,
    Death::Agent,
];

impl Death {
    fn strikes(self, host: &mut Contained, own: &mut Own, generation: i64) {
        match self {
            Self::Host => host.kill(),
            Self::Engine => own.falls(),
            Self::HostAndEngine => {
                own.falls();
                host.kill();
            }
            // It may have ended meanwhile.
            Self::Container => drop(docker(&own.socket(), &["kill", &host.name(7, generation)])),
            Self::Agent => drop(host.as_agent(7, generation, &["/busybox", "killall", "-9", "muster-agent"])),
        }
        match self {
            Self::Host => host.run(),
            Self::Engine => within(own),
            Self::HostAndEngine => {
                host.run();
                within(own);
            }
            Self::Container | Self::Agent => {}
        }
    }
}

fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var_os(name).and_then(|text| text.to_str()?.parse().ok()).unwrap_or(otherwise)
}

/// `MUSTER_FAULT_TURNS` (20) and `MUSTER_FAULT_SEED` (1) set the number and the order.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs an engine: tests/containers"]
async fn whatever_dies_no_message_repeats_and_every_turn_ends() {
    let seed = number("MUSTER_FAULT_SEED", 1);
    let turns = number("MUSTER_FAULT_TURNS", 20);
    println!("MUSTER_FAULT_SEED={seed} MUSTER_FAULT_TURNS={turns}");
    let mut random = Random::new(&[seed]);
    let plane = Plane::start().await;
    let mut own = Own::start();
    let (_folder, path) = list("/muster-agent", &[]);
    let mut host = Contained::with(&plane, &own.socket(), &["--programs", &path]);
    let (mut generation, mut interrupted) = (0, 0);
    for _ in 0..turns {
        if generation == 0 || plane.lock().ended(7, generation).is_some() {
            generation += 1;
            plane.begin(7, generation, PROBE);
            plane.wait("it runs", |state| state.started(7, generation).then_some(())).await;
        }
        let last = random.between(1, 40) as usize;
        let turn_id = plane.plan_turn(70, &format!("slowly {last} {}", random.between(5, 60)));
        let command = plane.order(7, generation, muster_protocol::Command::Turn { turn_id });
        sleep(Duration::from_millis(random.below(600))).await;
        if random.chance(60) {
            let death = random.pick(&DEATHS);
            println!("{death:?}");
            death.strikes(&mut host, &mut own, generation);
        }
        let is_refused = |state: &State| {
            let mut all = state.events_of(7);
            all.any(|what| matches!(what, HostEvent::Refused { command_id, .. } if *command_id == command))
        };
        let end = plane
            .wait("the turn ends", |state| {
                let outcome = state.end_of(turn_id).map(|end| Some(end.outcome));
                let is_over = is_refused(state) || state.ended(7, generation).is_some();
                outcome.or_else(|| is_over.then_some(None))
            })
            .await;
        let said: String = plane.lock().texts(turn_id).concat();
        match end {
            Some(TurnOutcome::Done) => assert_eq!(said, counted(last)),
            // Its agent has ended.
            None | Some(TurnOutcome::Failed) => {
                interrupted += 1;
                assert!(counted(last).starts_with(&said), "{said}");
                plane.wait("its end is reported", |state| state.ended(7, generation)).await;
            }
            Some(TurnOutcome::Cancelled) => panic!("the turn was not cancelled"),
        }
    }
    println!("{interrupted} interrupted of {turns}, {generation} launches");
    plane.lock().check();
    // The last launch's container may still be ending while the next one exists.
    plane.wait("one container at most", |_| (host.containers().len() <= 1).then_some(())).await;
    drop(host);
}
