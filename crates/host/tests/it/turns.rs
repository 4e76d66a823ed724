//! Turns of the reference agent, from the command to the message.

use muster_protocol::event::TurnOutcome;

use crate::support::{Host, Plane};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_turn_is_answered() {
    let plane = Plane::start().await;
    let host = Host::start(&plane, &[]);
    plane.launch(7, 1).await;
    let turn = plane.turn(7, 1, 70, "Hello");
    let end = plane.end_of(turn).await;
    assert_eq!(end.outcome, TurnOutcome::Done, "{end:?}");
    let state = plane.lock();
    assert_eq!(state.texts(turn), ["You said: Hello\n\nThis is turn 1 of this session. Skills: none."]);
    assert!(end.usage.input.is_some() && end.usage.output.is_some(), "{end:?}");
    state.check();
    drop(host);
}
