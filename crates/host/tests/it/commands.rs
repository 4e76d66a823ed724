//! Commands run once, in their launch, or are refused with a reason.

use std::fs;

use muster_protocol::{
    Command, HostEvent,
    event::{EndReason, RefusedReason, TurnOutcome},
    plan::{PlanRequest, Skill},
};

use crate::support::{Host, Plane, State};

fn refusals(state: &State) -> Vec<(i64, RefusedReason)> {
    let refused = state.events.iter().filter_map(|event| match event.what {
        HostEvent::Refused { command_id, reason } => Some((command_id, reason)),
        _ => None,
    });
    refused.collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_that_is_repeated_happens_once() {
    let plane = Plane::start().await;
    plane.lock().times = 3;
    let _host = Host::start(&plane, &[]);
    plane.launch(7, 1).await;
    plane.say(7, 1, 70, "remember a").await;
    // The same ids under new numbers.
    plane.set(|state| {
        for order in state.orders.clone() {
            let seq = state.orders.len() as i64 + 1;
            state.orders.push(muster_protocol::command::CommandEnvelope { seq, ..order });
        }
    });
    let turn = plane.turn(7, 1, 70, "recall");
    plane.end_of(turn).await;
    let state = plane.lock();
    assert_eq!(state.texts(turn), ["This is turn 2. I remember: a."]);
    assert!(refusals(&state).is_empty());
    state.check();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stale_and_late_commands_are_refused() {
    let plane = Plane::start().await;
    let _host = Host::start(&plane, &[]);
    plane.launch(7, 3).await;
    let stale = plane.order(7, 2, Command::Launch);
    let newer = plane.order(7, 4, Command::Turn { turn_id: 1 });
    let unknown = plane.order(8, 1, Command::Pause);
    let late = plane.order_until(1000, 7, 3, Command::Pause);
    let forbidden = plane.order(7, 3, Command::Turn { turn_id: 99 });
    let expected = [
        (stale, RefusedReason::Stale),
        (newer, RefusedReason::NotRunning),
        (unknown, RefusedReason::NotRunning),
        (late, RefusedReason::TooLate),
        (forbidden, RefusedReason::Forbidden),
    ];
    plane.wait("all are refused", |state| (refusals(state).len() == expected.len()).then_some(())).await;
    let mut refused = refusals(&plane.lock());
    refused.sort_by_key(|(id, _)| *id);
    assert_eq!(refused, expected);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_newer_launch_ends_the_one_before_and_resumes_its_sessions() {
    let plane = Plane::start().await;
    let host = Host::start(&plane, &[]);
    plane.launch(7, 1).await;
    plane.say(7, 1, 70, "remember a").await;
    let before = host.record(7, 1);
    plane.launch(7, 2).await;
    assert!(!before.agent.is_alive(), "the process before has ended");
    let turn = plane.turn(7, 2, 70, "recall");
    plane.end_of(turn).await;
    let state = plane.lock();
    assert_eq!(state.texts(turn), ["This is turn 2. I remember: a."]);
    let sessions = state.events_of(7).filter(|what| matches!(what, HostEvent::Session { .. })).count();
    assert_eq!(sessions, 1, "the session is resumed");
    assert!(matches!(state.ended(7, 1), Some(HostEvent::Ended { reason: EndReason::Stopped, .. })));
    state.check();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn turns_wait_during_a_pause_and_can_be_cancelled() {
    let plane = Plane::start().await;
    let _host = Host::start(&plane, &[]);
    plane.launch(7, 1).await;
    plane.order(7, 1, Command::Pause);
    let (first, second) = (plane.turn(7, 1, 70, "one"), plane.turn(7, 1, 71, "two"));
    plane.order(7, 1, Command::Cancel { turn_id: first });
    assert_eq!(plane.end_of(first).await.outcome, TurnOutcome::Cancelled);
    assert!(plane.lock().end_of(second).is_none());
    plane.order(7, 1, Command::Resume);
    assert_eq!(plane.end_of(second).await.outcome, TurnOutcome::Done);
    plane.lock().check();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_turn_whose_plan_comes_after_a_stop_does_not_begin() {
    let plane = Plane::start().await;
    let _host = Host::start(&plane, &["--grace-ms", "1000"]);
    plane.launch(7, 1).await;
    // The first turn delays the stop, and the second shows that it has started.
    let slow = plane.turn(7, 1, 70, "hang hard");
    plane.turn(7, 1, 71, "do execute Wait");
    let is_begun = |state: &State| {
        let mut all = state.events_of(7);
        all.any(|what| matches!(what, HostEvent::TurnStarted { turn_id } if *turn_id == slow)).then_some(())
    };
    plane.wait("it hangs", is_begun).await;
    plane.wait("it asks", |state| state.asked(71).first().map(drop)).await;
    plane.lock().holds_answers = true;
    let late = plane.plan_turn(72, "Hello");
    let order = plane.order(7, 1, Command::Turn { turn_id: late });
    let is_turn = |(.., wanted): &(i64, i64, PlanRequest)| matches!(wanted, PlanRequest::Turn { .. });
    plane.wait("its plan is asked for", |state| state.held.iter().any(is_turn).then_some(())).await;
    plane.order(7, 1, Command::Stop);
    let is_stopping = |state: &State| {
        let mut all = state.events_of(7);
        all.any(|what| matches!(what, HostEvent::Withdrawn { .. })).then_some(())
    };
    plane.wait("it is being stopped", is_stopping).await;
    plane.set(|state| state.holds_answers = false);
    plane.wait("it is refused", |state| refusals(state).first().map(drop)).await;
    plane.wait("it ends", |state| state.ended(7, 1)).await;
    let state = plane.lock();
    assert_eq!(refusals(&state), [(order, RefusedReason::NotRunning)]);
    let mut all = state.events_of(7);
    assert!(!all.any(|what| matches!(what, HostEvent::TurnStarted { turn_id } if *turn_id == late)));
    assert!(state.end_of(late).is_none());
    state.check();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_launch_that_the_host_knows_nothing_of_is_reported() {
    let plane = Plane::start().await;
    plane.lock().wanted.push(muster_protocol::frame::Running { agent_id: 7, generation: 4 });
    let _host = Host::start(&plane, &[]);
    let ended = plane.wait("it is reported", |state| state.ended(7, 4)).await;
    assert!(matches!(ended, HostEvent::Ended { reason: EndReason::ShimLost, .. }), "{ended:?}");
    plane.launch(7, 5).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_that_should_not_run_here_is_stopped() {
    let plane = Plane::start().await;
    let mut host = Host::start(&plane, &[]);
    plane.launch(7, 1).await;
    plane.launch(8, 1).await;
    let record = host.record(7, 1);
    host.kill();
    plane.set(|state| state.wanted.retain(|wanted| wanted.agent_id == 8));
    host.run();
    let ended = plane.wait("it is stopped", |state| state.ended(7, 1)).await;
    assert!(matches!(ended, HostEvent::Ended { reason: EndReason::Stopped, .. }), "{ended:?}");
    assert!(!record.agent.is_alive());
    let hello = plane.lock().hellos.last().unwrap().clone();
    assert_eq!(hello.agents.len(), 2, "it had both");
    assert_eq!(plane.say(8, 1, 80, "Hello").await.outcome, TurnOutcome::Done);
    assert!(plane.lock().ended(8, 1).is_none());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sync_is_retried_until_its_skills_can_be_written() {
    let plane = Plane::start().await;
    let mut host = Host::start(&plane, &[]);
    plane.launch(7, 1).await;
    let (home, away) = (host.home(7), host.home(7).with_file_name("away"));
    let failures = |host: &Host| host.log().matches("the skills can't be written").count();
    for (times, name, is_killed) in [(1, "tea", false), (2, "coffee", true)] {
        let content = "Make it.".to_owned();
        let skill = Skill { name: name.to_owned(), description: None, content, version: 1 };
        plane.set(|state| state.plans.get_mut(&7).unwrap().skills = vec![skill]);
        let before = failures(&host);
        fs::rename(&home, &away).unwrap();
        plane.order(7, 1, Command::Sync);
        plane.wait("it fails", |_| (failures(&host) > before).then_some(())).await;
        if is_killed {
            host.kill();
        }
        fs::rename(&away, &home).unwrap();
        if is_killed {
            host.run();
        }
        let is_synced = |state: &State| {
            let synced = state.events_of(7).filter(|what| **what == HostEvent::Synced);
            (synced.count() == times).then_some(())
        };
        plane.wait("it is synced", is_synced).await;
        assert!(home.join("skills").join(name).join("SKILL.md").is_file(), "{name}");
    }
    plane.lock().check();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn more_commands_than_a_host_keeps_end_once_they_are_answered() {
    let turns = 4200;
    let plane = Plane::start().await;
    let _host = Host::start(&plane, &[]);
    plane.launch(7, 1).await;
    plane.lock().holds_answers = true;
    // Without a plan, each ends once it is answered.
    plane.set(|state| {
        for turn_id in 1..=turns {
            state.order(0, 7, 1, Command::Turn { turn_id });
        }
    });
    for count in (200..=turns as usize).step_by(200) {
        plane.wait("they are asked about", |state| (state.held.len() >= count).then_some(())).await;
    }
    let last = plane.lock().orders.len() as i64;
    assert!(plane.lock().received < last, "no more are confirmed than a host keeps");
    plane.set(|state| state.holds_answers = false);
    for count in (200..=turns as usize).step_by(200) {
        plane.wait("they are refused", |state| (refusals(state).len() >= count).then_some(())).await;
    }
    plane.wait("all are confirmed", |state| (state.received == last).then_some(())).await;
    plane.order(7, 1, Command::Stop);
    plane.wait("it ends", |state| state.ended(7, 1)).await;
    plane.lock().check();
}
