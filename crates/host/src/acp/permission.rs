//! The options that an agent gives with a request for permission, and which of them a decision takes.
//!
//! An agent decides by the id that it gets back, so an id that stands for a yes and for something else as well is never a yes, and
//! never a no either. Kinds that the protocol doesn't have are neither; they don't keep the question from people.

use agent_client_protocol_schema::v1::{
    RequestPermissionOutcome, RequestPermissionResponse, SelectedPermissionOutcome, SessionId, ToolCallUpdate,
};
use muster_protocol::plan::Decision;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A request for permission. The protocol's own type would refuse all of it for one option with an unknown kind.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Asking {
    pub session_id: SessionId,
    pub tool_call: ToolCallUpdate,
    #[serde(default)]
    options: Vec<Value>,
}

/// An option that can be taken.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PermissionChoice {
    id: String,
    kind: Kind,
}

/// What an option says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Kind {
    AllowOnce,
    AllowAlways,
    RejectOnce,
    RejectAlways,
    /// Not one of the protocol's.
    Unknown,
}

impl Kind {
    fn allows(self) -> bool {
        matches!(self, Self::AllowOnce | Self::AllowAlways)
    }

    fn rejects(self) -> bool {
        matches!(self, Self::RejectOnce | Self::RejectAlways)
    }
}

impl Asking {
    /// The options. One without an id can't be taken.
    pub fn choices(&self) -> Vec<PermissionChoice> {
        let read = |option: &Value| {
            let id = option.get("optionId")?.as_str()?.to_owned();
            let kind = option.get("kind").and_then(|kind| Kind::deserialize(kind).ok());
            Some(PermissionChoice { id, kind: kind.unwrap_or(Kind::Unknown) })
        };
        self.options.iter().filter_map(read).collect()
    }
}

/// The answer to the agent. None if no option says what was decided; then it is told in words.
pub fn chosen(choices: &[PermissionChoice], decision: &Decision) -> Option<RequestPermissionResponse> {
    let is_approved = matches!(decision, Decision::Approved { .. });
    let is_meant = |kind: Kind| if is_approved { kind.allows() } else { kind.rejects() };
    // What an id stands for is the most that any option of this id says: `allow_always` is more than `allow_once`.
    let most = |id: &str| choices.iter().filter(|choice| choice.id == id).map(|choice| choice.kind).max();
    let is_clear =
        |id: &str| choices.iter().filter(|choice| choice.id == id).all(|choice| is_meant(choice.kind));
    // Once rather than always: what is always allowed or refused is decided in the control plane.
    let mut clear: Vec<&PermissionChoice> = choices.iter().filter(|choice| is_clear(&choice.id)).collect();
    clear.sort_by_key(|choice| most(&choice.id));
    let first = clear.first()?;
    let selected = SelectedPermissionOutcome::new(first.id.clone());
    Some(RequestPermissionResponse::new(RequestPermissionOutcome::Selected(selected)))
}

/// The answer where no option is taken.
pub fn cancelled() -> RequestPermissionResponse {
    RequestPermissionResponse::new(RequestPermissionOutcome::Cancelled)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// What is answered to options as `id:kind`, to an approval and to a denial.
    fn answers(options: &[&str]) -> [Option<String>; 2] {
        let options = options.iter().map(|option| {
            let (id, kind) = option.split_once(':').unwrap();
            json!({ "optionId": id, "name": id, "kind": kind })
        });
        let asking = json!({ "sessionId": "s", "toolCall": { "toolCallId": "t" }, "options": options.collect::<Vec<_>>() });
        let choices = serde_json::from_value::<Asking>(asking).unwrap().choices();
        let comment = None;
        [Decision::Approved { comment: comment.clone() }, Decision::Denied { comment }].map(|decision| {
            let answer = serde_json::to_value(chosen(&choices, &decision)?).unwrap();
            Some(answer["outcome"]["optionId"].as_str().unwrap().to_owned())
        })
    }

    #[test]
    fn a_decision_takes_the_option_that_says_it() {
        let yes_no = [Some("y"), Some("n")];
        for (options, expected) in [
            (&["y:allow_once", "n:reject_once"][..], yes_no),
            (&["x:allow_always", "y:allow_once", "m:reject_always", "n:reject_once"], yes_no),
            (&["y:allow_always", "n:reject_always"], yes_no),
            (&["y:allow_once", "z:allow_once", "n:reject_once", "o:reject_once"], yes_no),
            (&["y:allow_once", "n:reject_always"], yes_no),
            (&["y:allow_once"], [Some("y"), None]),
            (&["n:reject_once"], [None, Some("n")]),
            (&[], [None, None]),
            (&["a:deny", "b:allow_session"], [None, None]),
            (&["a:deny", "b:allow_session", "y:allow_once", "n:reject_once"], yes_no),
            (&["same:allow_once", "same:reject_once"], [None, None]),
            (&["same:reject_once", "same:allow_always"], [None, None]),
            (&["same:allow_once", "same:reject_once", "n:reject_always"], [None, Some("n")]),
            (&["same:allow_once", "same:reject_once", "y:allow_always"], [Some("y"), None]),
            (&["same:allow_once", "same:deny"], [None, None]),
            (&["same:reject_once", "same:allow_session"], [None, None]),
            // An id that is also `always` is `always`.
            (&["both:allow_once", "both:allow_always", "y:allow_once"], [Some("y"), None]),
            (&["both:allow_once", "both:allow_always"], [Some("both"), None]),
            (&["n:reject_once", "n:reject_always"], [None, Some("n")]),
            (&["y:Allow_Once", "n:REJECT_ONCE"], [None, None]),
        ] {
            assert_eq!(answers(options), expected.map(|id| id.map(str::to_owned)), "{options:?}");
        }
    }

    #[test]
    fn an_option_that_makes_no_sense_hides_no_question() {
        let asking = json!({ "sessionId": "s", "toolCall": { "toolCallId": "t" }, "options": [
            7, {}, { "optionId": 7, "kind": "allow_once" }, { "optionId": "a" }, { "optionId": "b", "kind": 7 },
            { "optionId": "c", "kind": { "deep": [] } }, { "optionId": "y", "kind": "allow_once" },
        ] });
        let choices = serde_json::from_value::<Asking>(asking).unwrap().choices();
        assert_eq!(choices.len(), 4);
        let answer = chosen(&choices, &Decision::Approved { comment: None }).unwrap();
        assert_eq!(serde_json::to_value(answer).unwrap()["outcome"]["optionId"], "y");
    }
}
