//! How agents end, and the reports for people.

use std::{
    fs,
    os::unix::{fs::symlink, net::UnixStream},
};

use muster_protocol::{
    Command, HostEvent,
    event::{Content, EndReason, TurnOutcome},
};
use rustix::process::{Pid, Signal, kill_process};

use crate::support::{Host, Plane, kill};

async fn end(plane: &Plane, agent_id: i64, generation: i64) -> (EndReason, Option<i32>, Option<i32>, String) {
    match plane.wait("it ends", |state| state.ended(agent_id, generation)).await {
        HostEvent::Ended { reason, code, signal, detail } => {
            (reason, code, signal, detail.unwrap_or_default())
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_is_stopped_and_started_again() {
    let plane = Plane::start().await;
    let host = Host::start(&plane, &[]);
    plane.launch(7, 1).await;
    let turn = plane.turn(7, 1, 70, "hang");
    plane
        .wait("it hangs", |state| {
            state.events_of(7).any(|what| matches!(what, HostEvent::TurnStarted { .. })).then_some(())
        })
        .await;
    plane.order(7, 1, Command::Stop);
    assert_eq!(end(&plane, 7, 1).await.0, EndReason::Stopped);
    assert_eq!(plane.lock().end_of(turn).map(|end| end.outcome), Some(TurnOutcome::Cancelled));
    plane.launch(7, 2).await;
    assert_eq!(plane.say(7, 2, 70, "Hello").await.outcome, TurnOutcome::Done);
    plane.turn(7, 2, 70, "hang hard");
    let record = host.record(7, 2);
    plane.order(7, 2, Command::Stop);
    assert_eq!(end(&plane, 7, 2).await.0, EndReason::Stopped, "harder, if need be");
    assert!(!record.agent.is_alive());
    plane.order(9, 5, Command::Stop);
    assert_eq!(end(&plane, 9, 5).await.0, EndReason::Stopped, "it never ran here");
    plane.lock().check();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_whose_shim_hangs_has_no_way_out_and_ends_with_it() {
    let plane = Plane::start().await;
    let host = Host::start(&plane, &[]);
    plane.launch(7, 1).await;
    let record = host.record(7, 1);
    let gate = host.launch(7, 1).join("mcp/gate");
    assert!(UnixStream::connect(&gate).is_ok());
    // A stopped shim can't kill its agent.
    kill_process(Pid::from_raw(record.shim.pid).unwrap(), Signal::STOP).unwrap();
    plane.order(7, 1, Command::Stop);
    assert_eq!(end(&plane, 7, 1).await.0, EndReason::Stopped);
    assert!(UnixStream::connect(&gate).is_err());
    plane.wait("the kernel kills the agent", |_| (!record.agent.is_alive()).then_some(())).await;
    plane.lock().check();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_before_an_agents_end_are_kept() {
    let plane = Plane::start().await;
    let host = Host::start(&plane, &[]);
    plane.launch(7, 1).await;
    let turn = plane.turn(7, 1, 70, "Hello\nexit 3");
    let (reason, code, ..) = end(&plane, 7, 1).await;
    assert_eq!((reason, code), (EndReason::Exited, Some(3)));
    assert_eq!(plane.lock().texts(turn).len(), 1);
    plane.launch(7, 2).await;
    kill(host.record(7, 2).agent.pid);
    let (reason, _, signal, _) = end(&plane, 7, 2).await;
    assert_eq!((reason, signal), (EndReason::Killed, Some(9)));
    plane.launch(7, 3).await;
    kill(host.record(7, 3).shim.pid);
    let (reason, .., detail) = end(&plane, 7, 3).await;
    assert_eq!((reason, detail.as_str()), (EndReason::ShimLost, ""), "the reason says all that is known");
    plane.lock().check();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_turn_that_the_agent_does_not_end_is_over_all_the_same() {
    let plane = Plane::start().await;
    let _host = Host::start(&plane, &["--grace-ms", "50"]);
    plane.launch(7, 1).await;
    let turn = plane.turn(7, 1, 70, "Hello\nhang hard");
    plane.wait("it hangs", |state| state.deltas.first().map(drop)).await;
    plane.order(7, 1, Command::Cancel { turn_id: turn });
    let end = plane.end_of(turn).await;
    assert_eq!(end.outcome, TurnOutcome::Cancelled);
    assert!(end.error.unwrap().contains("did not confirm"));
    assert_eq!(plane.say(7, 1, 71, "Hello").await.outcome, TurnOutcome::Done, "other conversations go on");
    let next = plane.turn(7, 1, 70, "Hello");
    assert_eq!(plane.end_of(next).await.outcome, TurnOutcome::Done, "and so does this one, in a new session");
    assert!(plane.lock().texts(next)[0].contains("turn 1 of this session"));
    plane.lock().check();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failed_start_says_why() {
    let plane = Plane::start().await;
    let (list, elsewhere) = (tempfile::NamedTempFile::new().unwrap(), tempfile::tempdir().unwrap());
    fs::write(
        list.path(),
        "[missing]\ncommand = \"/no/such/program\"\n[silent]\ncommand = \"sh\"\nargs = [\"-c\", \"echo 'no key' >&2; exec sleep 60\"]\n\
         [stranger]\ncommand = \"sh\"\nargs = [\"-c\", \"echo Usage: stranger >&2; exit 2\"]\n",
    )
    .unwrap();
    let host = Host::start(&plane, &["--programs", list.path().to_str().unwrap(), "--start-seconds", "1"]);
    // A file in place of the host's folder prevents writing.
    fs::create_dir_all(host.home(5).parent().unwrap()).unwrap();
    symlink(elsewhere.path(), host.home(5)).unwrap();
    plane.begin(1, 1, "unknown/image");
    plane.begin(2, 1, "missing");
    plane.begin(3, 1, "silent");
    plane.begin(4, 1, "stranger");
    plane.begin(5, 1, "muster/agent");
    let (reason, _, _, detail) = end(&plane, 1, 1).await;
    assert_eq!(reason, EndReason::ImageNotFound);
    assert!(detail.contains("unknown/image") && detail.contains(list.path().to_str().unwrap()), "{detail}");
    let (reason, _, _, detail) = end(&plane, 2, 1).await;
    assert!(reason == EndReason::SpawnFailed && detail.contains("/no/such/program"), "{reason:?} {detail}");
    let (reason, _, _, detail) = end(&plane, 3, 1).await;
    assert!(reason == EndReason::NoProtocol && detail.contains("no key"), "{reason:?} {detail}");
    let (reason, code, _, detail) = end(&plane, 4, 1).await;
    assert!(
        reason == EndReason::Exited && code == Some(2) && detail.contains("Usage"),
        "{reason:?} {detail}"
    );
    let (reason, _, _, detail) = end(&plane, 5, 1).await;
    assert!(
        reason == EndReason::SpawnFailed && detail.contains("The skills can't be written"),
        "{reason:?} {detail}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn errors_of_an_agent_end_its_turn_and_not_the_agent() {
    let plane = Plane::start().await;
    let _host = Host::start(&plane, &["--line-bytes", "65536"]);
    plane.launch(7, 1).await;
    let failed = plane.say(7, 1, 70, "error").await;
    assert_eq!(failed.outcome, TurnOutcome::Failed);
    assert!(failed.error.unwrap().contains("the prompt told the agent to fail"));
    assert_eq!(plane.say(7, 1, 70, "auth").await.outcome, TurnOutcome::Failed);
    assert!(plane.lock().events_of(7).any(|what| matches!(what, HostEvent::AuthRequired { .. })));
    let garbage = plane.turn(7, 1, 70, "garbage");
    assert_eq!(plane.end_of(garbage).await.outcome, TurnOutcome::Done);
    let environment = plane.turn(7, 1, 70, "env CANARY");
    plane.end_of(environment).await;
    assert_eq!(plane.lock().texts(environment), ["CANARY is not set."]);
    plane.turn(7, 1, 70, "longline 100000");
    assert_eq!(end(&plane, 7, 1).await.0, EndReason::LineTooLong);
    let state = plane.lock();
    assert!(!state.messages(70).iter().any(|message| matches!(message.content, Content::Error { .. })));
    state.check();
}
