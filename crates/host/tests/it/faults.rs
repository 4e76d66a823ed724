//! After any crash or disconnection nothing is lost, and nothing happens twice.

use std::{
    fs,
    os::unix::fs::{FileTypeExt, PermissionsExt},
    time::Duration,
};

use muster_protocol::{
    HostEvent,
    event::{Content, EndReason, TurnOutcome},
};
use rustix::process::{Pid, Signal, kill_process};

use crate::support::{Host, Plane, State, action, kill, program};

fn texts(state: &State, conversation_id: i64) -> String {
    let texts = state.messages(conversation_id).into_iter().filter_map(|message| match message.content {
        Content::Text { text } => Some(text),
        _ => None,
    });
    texts.collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_that_is_killed_in_mid_sentence_goes_on() {
    let plane = Plane::start().await;
    let mut host = Host::start(&plane, &[]);
    plane.launch(7, 1).await;
    let turn = plane.turn(7, 1, 70, "slowly 60 20");
    for _ in 0..3 {
        let seen = plane.lock().deltas.len();
        plane.wait("text is seen", |state| (state.deltas.len() > seen + 2).then_some(())).await;
        host.kill();
        host.run();
    }
    assert_eq!(plane.end_of(turn).await.outcome, TurnOutcome::Done);
    let expected: String = (1..=60).map(|number| format!("{number} ")).collect();
    let state = plane.lock();
    assert_eq!(texts(&state, 70), expected);
    assert_eq!(state.events_of(7).filter(|what| matches!(what, HostEvent::Started { .. })).count(), 1);
    state.check();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_turn_fails_if_a_restarted_host_gets_no_plan() {
    let plane = Plane::start().await;
    let mut host = Host::start(&plane, &[]);
    plane.launch(7, 1).await;
    assert_eq!(plane.say(7, 1, 70, "Hello").await.outcome, TurnOutcome::Done);
    host.kill();
    let plan = plane.lock().plans.remove(&7).unwrap();
    let before = plane.lock().asked_plans;
    host.run();
    plane.wait("the gate's rules are asked for", |state| (state.asked_plans > before).then_some(())).await;
    for conversation in [70, 71] {
        let end = plane.say(7, 1, conversation, "Hello").await;
        let error = end.error.unwrap_or_default();
        assert_eq!((end.outcome, error.as_str()), (TurnOutcome::Failed, "Not found."));
    }
    let asked = plane.lock().asked_plans - before;
    assert!(asked <= 3, "asked for {asked} times: once for the gate, and once for each turn");
    plane.set(|state| _ = state.plans.insert(7, plan));
    for conversation in [70, 71] {
        assert_eq!(plane.say(7, 1, conversation, "Hello").await.outcome, TurnOutcome::Done);
    }
    plane.lock().check();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_follow_the_plan_after_a_host_restart() {
    let plane = Plane::start().await;
    let mut host = Host::start(&plane, &[]);
    plane.launch(7, 1).await;
    host.kill();
    plane.set(|state| state.plans.get_mut(&7).unwrap().mode = Some("plan".to_owned()));
    host.run();
    let turn = plane.turn(7, 1, 70, "do execute Go");
    assert_eq!(plane.end_of(turn).await.outcome, TurnOutcome::Done);
    let state = plane.lock();
    assert_eq!(state.texts(turn), ["I would do this: Go"]);
    state.check();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_waiting_agent_gets_its_answer_after_a_host_restart() {
    let plane = Plane::start().await;
    let mut host = Host::start(&plane, &[]);
    plane.launch(7, 1).await;
    let turn = plane.turn(7, 1, 70, "do execute Go");
    let asked = plane.wait("it asks", |state| state.asked(70).first().cloned()).await;
    assert_eq!(action(&asked), "Go");
    assert!(host.terminate().success());
    assert!(host.record(7, 1).is_alive(), "agents outlive the host");
    let decision = muster_protocol::plan::Decision::Approved { comment: None };
    let approval = plane.answer(7, 1, &asked.request, decision);
    host.run();
    plane.end_of(turn).await;
    let state = plane.lock();
    assert_eq!(state.texts(turn), ["I was allowed to: Go"]);
    let delivered = |what: &&HostEvent| matches!(what, HostEvent::Delivered { approval_id, .. } if *approval_id == approval);
    assert_eq!(state.events_of(7).filter(delivered).count(), 1);
    assert_eq!(state.asked(70).len(), 1, "it is asked once");
    state.check();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn agents_that_end_while_the_host_is_away_are_reported() {
    let plane = Plane::start().await;
    let mut host = Host::start(&plane, &[]);
    plane.launch(7, 1).await;
    plane.launch(8, 1).await;
    plane.launch(9, 1).await;
    let turn = plane.turn(7, 1, 70, "slowly 10 20\nexit 4");
    plane.wait("text is seen", |state| state.deltas.first().map(drop)).await;
    host.kill();
    let (exited, crashed, lost) = (host.record(7, 1), host.record(8, 1), host.record(9, 1));
    kill(crashed.agent.pid);
    kill(lost.shim.pid);
    while exited.agent.is_alive() || crashed.agent.is_alive() || lost.shim.is_alive() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    host.run();
    let mut reasons = Vec::new();
    for agent in [7, 8, 9] {
        let ended = plane.wait("its end is reported", |state| state.ended(agent, 1)).await;
        let HostEvent::Ended { reason, .. } = ended else { panic!("{ended:?}") };
        reasons.push(format!("{reason:?}"));
    }
    assert_eq!(reasons, ["Exited", "Killed", "ShimLost"]);
    let state = plane.lock();
    let said: String = state.texts(turn).concat();
    assert_eq!(said, (1..=10).map(|number| format!("{number} ")).collect::<String>());
    state.check();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn standard_error_is_withheld_while_the_secrets_are_unknown() {
    let plane = Plane::start().await;
    let mut host = Host::start(&plane, &[]);
    plane.launch(7, 1).await;
    plane.turn(7, 1, 70, "stderr the key is canary\nhang");
    let stderr = host.launch(7, 1).join("stderr");
    let is_written = || fs::read_to_string(&stderr).is_ok_and(|text| text.contains("canary"));
    plane.wait("it writes", |_| is_written().then_some(())).await;
    host.kill();
    let record = host.record(7, 1);
    kill(record.agent.pid);
    while record.agent.is_alive() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    // The host gets no plan, and so no secrets.
    plane.lock().holds_answers = true;
    host.run();
    let ended = plane.wait("its end is reported", |state| state.ended(7, 1)).await;
    let HostEvent::Ended { reason, detail, .. } = ended else { panic!("{ended:?}") };
    let detail = detail.unwrap_or_default();
    assert!(reason == EndReason::Killed && detail.contains("withheld"), "{reason:?} {detail}");
    assert!(!detail.contains("canary"), "{detail}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unresponsive_shim_is_killed_before_it_is_reported_lost() {
    let plane = Plane::start().await;
    let mut host = Host::start(&plane, &[]);
    plane.launch(7, 1).await;
    host.kill();
    let record = host.record(7, 1);
    kill_process(Pid::from_raw(record.shim.pid).unwrap(), Signal::STOP).unwrap();
    host.run();
    let ended = plane.wait("its end is reported", |state| state.ended(7, 1)).await;
    assert!(matches!(ended, HostEvent::Ended { reason: EndReason::ShimLost, .. }), "{ended:?}");
    assert!(!record.shim.is_alive());
    // The kernel ends the agent with it.
    plane.wait("its agent ends", |_| (!record.agent.is_alive()).then_some(())).await;
    plane.launch(7, 2).await;
    assert_eq!(plane.say(7, 2, 70, "Hello").await.outcome, TurnOutcome::Done);
    plane.lock().check();
}

/// Starts shims as on a slow disk: detached from the caller, and only once a file `go` exists, or never after a minute.
const SLOW: &str = r#"#!/bin/sh
here=$(dirname "$0")
case "$1" in
late)
    shift
    tries=0
    while [ ! -e "$here/go" ] && [ $tries -lt 3000 ]; do sleep 0.02; tries=$((tries+1)); done
    [ -e "$here/go" ] || exit 1 ;;
run)
    if [ ! -e "$here/go" ]; then
        exec 3<&0
        setsid "$0" late "$@" <&3 3<&- &
        echo $$ >"$here/pid"
        wait
        exit 1
    fi ;;
esac
exec PROGRAM shim "$@"
"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_late_shim_ends_before_its_launch_is_reported_failed() {
    let plane = Plane::start().await;
    let mut host = Host::start(&plane, &[]);
    host.kill();
    let folder = tempfile::tempdir().unwrap();
    let slow = folder.path().join("shim");
    fs::write(&slow, SLOW.replace("PROGRAM", &format!("{:?}", program()))).unwrap();
    fs::set_permissions(&slow, fs::Permissions::from_mode(0o700)).unwrap();
    host.within = vec!["env".to_owned(), format!("MUSTER_SHIM={}", slow.display())];
    host.run();
    plane.begin(7, 1, "muster/agent");
    let pid = || fs::read_to_string(folder.path().join("pid")).ok()?.trim().parse::<i32>().ok();
    let pid = plane.wait("it is started", |_| pid()).await;
    let is_awaited = || fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|words| !words.is_empty());
    plane.wait("the host gives up", |_| (!is_awaited()).then_some(())).await;
    fs::write(folder.path().join("go"), "").unwrap();
    let ended = plane.wait("its end is reported", |state| state.ended(7, 1)).await;
    assert!(matches!(ended, HostEvent::Ended { reason: EndReason::SpawnFailed, .. }), "{ended:?}");
    let lock = host.launch(7, 1).with_extension("lock");
    assert!(fs::File::open(lock).unwrap().try_lock_shared().is_ok(), "no shim holds it");
    plane.launch(7, 2).await;
    assert_eq!(plane.say(7, 2, 70, "Hello").await.outcome, TurnOutcome::Done);
    plane.lock().check();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gate_that_could_not_be_opened_is_opened_with_the_next_turn() {
    let plane = Plane::start().await;
    let mut host = Host::start(&plane, &[]);
    plane.launch(7, 1).await;
    host.kill();
    let socket = host.launch(7, 1).join("mcp/gate");
    fs::remove_file(&socket).unwrap();
    fs::create_dir(&socket).unwrap();
    host.run();
    let has_failed = || host.log().contains("the agent's gate can't be opened");
    plane.wait("it can't be opened", |_| has_failed().then_some(())).await;
    fs::remove_dir(&socket).unwrap();
    assert_eq!(plane.say(7, 1, 70, "Hello").await.outcome, TurnOutcome::Done);
    assert!(fs::metadata(&socket).unwrap().file_type().is_socket());
    plane.lock().check();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_lost_while_the_connection_is_cut() {
    let plane = Plane::start().await;
    let _host = Host::start(&plane, &[]);
    plane.launch(7, 1).await;
    plane.launch(8, 1).await;
    let turns = [plane.turn(7, 1, 70, "slowly 20 20\nHello"), plane.turn(8, 1, 80, "think so\nslowly 20 20")];
    plane.wait("text is seen", |state| state.deltas.first().map(drop)).await;
    for _ in 0..3 {
        plane.set(|state| state.is_online = false);
        tokio::time::sleep(Duration::from_millis(200)).await;
        plane.set(|state| state.is_online = true);
        let epoch = plane.lock().epoch;
        plane.wait("it is back", |state| (state.epoch > epoch).then_some(())).await;
    }
    for turn in turns {
        assert_eq!(plane.end_of(turn).await.outcome, TurnOutcome::Done);
    }
    plane.lock().check();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_waits_for_the_control_plane_and_arrives_in_order() {
    let waves = 300;
    let plane = Plane::start().await;
    plane.lock().window = 256 * 1024;
    let host = Host::start(&plane, &["--spool-bytes", "1048576"]);
    plane.launch(7, 1).await;
    plane.launch(8, 1).await;
    let turn = plane.turn(7, 1, 70, &format!("flood {waves}"));
    plane.wait("it floods", |state| state.messages(70).first().map(drop)).await;
    plane.set(|state| state.is_online = false);
    let spool = || {
        let files = fs::read_dir(host.launch(7, 1).join("spool")).unwrap().flatten();
        files.map(|file| file.metadata().map_or(0, |file| file.len())).sum::<u64>()
    };
    // It grows up to its limit: then the agent waits.
    let mut most = 0;
    for _ in 0..100 {
        tokio::time::sleep(Duration::from_millis(20)).await;
        most = most.max(spool());
    }
    assert!(most > 900 * 1024, "{most} bytes were spooled");
    assert!(most < 2 * 1024 * 1024, "{most} bytes were spooled");
    assert!(plane.lock().end_of(turn).is_none(), "the agent waits");
    plane.set(|state| state.is_online = true);
    // The flood does not delay another agent.
    assert_eq!(plane.say(8, 1, 80, "Hello").await.outcome, TurnOutcome::Done);
    assert_eq!(plane.end_of(turn).await.outcome, TurnOutcome::Done);
    let state = plane.lock();
    let all = texts(&state, 70);
    let numbers: Vec<usize> = all.split_whitespace().map(|number| number.parse().unwrap()).collect();
    assert_eq!(numbers, (0..waves).collect::<Vec<_>>());
    state.check();
}

/// `MUSTER_FAULT_TURNS` (20) and `MUSTER_FAULT_SEED` (1) set the number of turns and the faults.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[expect(clippy::disallowed_methods, reason = "the environment configures the test")]
async fn many_turns_survive_random_faults() {
    let given = |name: &str| std::env::var(name).ok().and_then(|value| value.parse::<u64>().ok());
    let turns = given("MUSTER_FAULT_TURNS").unwrap_or(20);
    let mut seed = given("MUSTER_FAULT_SEED").unwrap_or(1);
    eprintln!("MUSTER_FAULT_SEED={seed}");
    let mut random = |most: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % most
    };
    let plane = Plane::start().await;
    let mut host = Host::start(&plane, &[]);
    plane.launch(7, 1).await;
    let mut given = Vec::new();
    for number in 0..turns {
        let conversation = 70 + i64::try_from(random(3)).unwrap();
        let pieces = 3 + random(10);
        given.push((
            plane.turn(7, 1, conversation, &format!("slowly {pieces} 10\nremember {number}")),
            pieces,
        ));
        tokio::time::sleep(Duration::from_millis(random(150))).await;
        match random(4) {
            0 => {
                host.kill();
                host.run();
            }
            1 => {
                plane.set(|state| state.is_online = false);
                tokio::time::sleep(Duration::from_millis(random(100))).await;
                plane.set(|state| state.is_online = true);
            }
            2 => plane.set(|state| state.times = 1 + usize::from(state.times == 1)),
            _ => {}
        }
    }
    for (turn, pieces) in given {
        assert_eq!(plane.end_of(turn).await.outcome, TurnOutcome::Done, "turn {turn}");
        let state = plane.lock();
        let texts = state.texts(turn);
        let expected: String = (1..=pieces).map(|number| format!("{number} ")).collect();
        assert_eq!(texts[0], expected, "turn {turn}: {texts:?}");
        assert_eq!(texts.len(), 2, "turn {turn}: {texts:?}");
    }
    let recalled = plane.turn(7, 1, 70, "recall");
    plane.end_of(recalled).await;
    plane.lock().check();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_launch_survives_its_host_at_any_moment() {
    let plane = Plane::start().await;
    let mut host = Host::start(&plane, &[]);
    for agent in 1..=8 {
        plane.begin(agent, 1, "muster/agent");
        tokio::time::sleep(Duration::from_millis(15 * agent.unsigned_abs())).await;
        host.kill();
        host.run();
    }
    for agent in 1..=8 {
        plane.wait("it runs", |state| state.started(agent, 1).then_some(())).await;
        assert_eq!(plane.say(agent, 1, agent * 10, "Hello").await.outcome, TurnOutcome::Done);
    }
    let state = plane.lock();
    let ended = state.events.iter().filter(|event| matches!(event.what, HostEvent::Ended { .. })).count();
    let started = state.events.iter().filter(|event| matches!(event.what, HostEvent::Started { .. })).count();
    assert_eq!((started, ended), (8, 0));
    state.check();
}
