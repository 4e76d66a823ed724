use muster_protocol::event::{Content, TurnOutcome};

use super::*;

#[test]
fn texts_are_cut_between_characters() {
    assert_eq!(floor_boundary("aäb", 2), 1);
    assert_eq!(short("äöü", 2), "äö…");
    assert_eq!(short("äöü", 3), "äöü");
    let large = fit(Value::String("ä".repeat(LONGEST_VALUE)));
    assert_eq!(large["truncated"], true);
    let _ = (TurnOutcome::Done, Content::Text { text: String::new() });
}
