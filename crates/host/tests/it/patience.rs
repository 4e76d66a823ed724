//! The tests' own timeout, on a clock that stands still during work.

use std::panic::AssertUnwindSafe;

use futures::{FutureExt, join};
use muster_protocol::frame::Delta;
use tokio::time::sleep;

use crate::support::{PATIENCE, Plane};

#[tokio::test(start_paused = true)]
async fn a_turn_may_be_slow_as_long_as_it_goes_on() {
    let plane = Plane::start().await;
    let slow = async {
        for piece in ["1 ", "2 ", "3 "] {
            sleep(PATIENCE * 3 / 4).await;
            let (agent_id, generation, conversation_id) = (7, 1, 70);
            let (message, text) = ("k".to_owned(), piece.to_owned());
            let delta =
                Delta { agent_id, generation, conversation_id, message, thinking: false, offset: 0, text };
            plane.set(|state| state.deltas.push(delta));
        }
    };
    let seen = plane.wait("three pieces are seen", |state| (state.deltas.len() == 3).then_some(()));
    join!(slow, seen);
    let hangs = AssertUnwindSafe(plane.wait("there is a fourth", |state| state.deltas.get(3).map(drop)));
    assert!(hangs.catch_unwind().await.is_err(), "what hangs is ended");
    assert_eq!(plane.lock().deltas.len(), 3, "and the plane can still be looked at");
}
