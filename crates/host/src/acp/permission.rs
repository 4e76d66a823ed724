//! Options of an agent's permission request, and the option for a decision.
//!
//! An agent acts by the returned id, so an ambiguous id is neither a yes nor a no. The same holds for kinds outside of
//! the protocol. They don't hide the question: people see the options' names if none is a yes.

use std::collections::BTreeMap;

use agent_client_protocol_schema::v1::{
    RequestPermissionOutcome, RequestPermissionResponse, SelectedPermissionOutcome, SessionId, ToolCallUpdate,
};
use muster_protocol::plan::Decision;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{floor_boundary, short};
use crate::bounds::ID;

/// The answer to an allowed request without an unambiguous yes.
pub const NO_YES: &str = "The action was allowed, but the request has no unambiguous option to allow it. Ask again with an option of the \
                          kind allow_once whose id is a short text of its own.";

/// A permission request. The protocol's own type would reject it for a single unknown kind.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PermissionRequest {
    pub session_id: SessionId,
    pub tool_call: ToolCallUpdate,
    #[serde(default)]
    options: Value,
}

/// A usable option.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PermissionChoice {
    id: String,
    kind: Kind,
}

/// Meaning of an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Kind {
    AllowOnce,
    AllowAlways,
    RejectOnce,
    RejectAlways,
    /// Not in the protocol.
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

impl PermissionRequest {
    /// The usable options: one yes, one no.
    pub fn choices(&self) -> Vec<PermissionChoice> {
        usable_choices(&self.options().filter_map(read).collect::<Vec<_>>())
    }

    /// The title for people: with the options' names if none is a yes, else with the places that it does not name.
    /// A program may ask about one command twice, first whether it may leave its folder.
    pub fn title(&self, title: &str, choices: &[PermissionChoice]) -> String {
        let is_plain = choices.iter().any(|choice| choice.kind.allows());
        let more = if is_plain {
            let places = self.places(title).join(", ");
            if places.is_empty() {
                return title.to_owned();
            }
            format!("at {places}")
        } else {
            let names: Vec<String> = self.options().filter_map(name).take(4).collect();
            match names.join(", ") {
                names if names.is_empty() => "no option to choose".to_owned(),
                names => format!("no option is a plain yes: {names}"),
            }
        };
        // A title is one short line.
        let end = floor_boundary(title, 140);
        let cut = if end < title.len() { "…" } else { "" };
        format!("{}{cut} ({more})", &title[..end])
    }

    /// The files and folders of the request that its title does not contain.
    fn places(&self, title: &str) -> Vec<String> {
        let places = self.tool_call.fields.locations.iter().flatten();
        let places = places.map(|place| place.path.to_string_lossy());
        let places = places.filter(|place| !title.contains(&**place));
        places.take(3).map(|place| short(&place, 50)).collect()
    }

    fn options(&self) -> impl Iterator<Item = &Value> {
        self.options.as_array().into_iter().flatten()
    }
}

/// Reads an option. One with a non-text id is unusable, but agents may confuse the id with its text.
fn read(option: &Value) -> Option<PermissionChoice> {
    let kind = option.get("kind").and_then(|kind| Kind::deserialize(kind).ok());
    let (id, kind) = match option.get("optionId")? {
        Value::String(id) => (id.clone(), kind.unwrap_or(Kind::Unknown)),
        Value::Null => return None,
        other => (other.to_string(), Kind::Unknown),
    };
    Some(PermissionChoice { id, kind })
}

/// The quoted name of an option.
fn name(option: &Value) -> Option<String> {
    let text = |field: &str| option.get(field)?.as_str().map(str::trim).filter(|text| !text.is_empty());
    let name = text("name").or_else(|| text("optionId"))?.replace(char::is_control, " ");
    Some(format!("“{}”", short(&name, 24)))
}

/// All meanings of one id.
struct IdMeanings {
    first: usize,
    least: Kind,
    most: Kind,
}

/// The usable options. Once rather than always, since the control plane handles permanent decisions. An id stands for
/// its strongest meaning: `allow_always` is more than `allow_once`.
fn usable_choices(choices: &[PermissionChoice]) -> Vec<PermissionChoice> {
    let mut by_id: BTreeMap<&str, IdMeanings> = BTreeMap::new();
    for (at, PermissionChoice { id, kind }) in choices.iter().enumerate() {
        let said = by_id.entry(id).or_insert(IdMeanings { first: at, least: *kind, most: *kind });
        (said.least, said.most) = (said.least.min(*kind), said.most.max(*kind));
    }
    by_id.retain(|id, _| (1..=ID).contains(&id.len()));
    let best = |is_meant: fn(Kind) -> bool| {
        let meant = by_id.iter().filter(|(_, said)| is_meant(said.least) && is_meant(said.most));
        let (id, said) = meant.min_by_key(|(_, said)| (said.most, said.first))?;
        Some(PermissionChoice { id: (*id).to_owned(), kind: said.most })
    };
    [best(Kind::allows), best(Kind::rejects)].into_iter().flatten().collect()
}

/// The answer for a decision. `None` if no option matches it.
pub fn response_for(choices: &[PermissionChoice], decision: &Decision) -> Option<RequestPermissionResponse> {
    let is_approved = matches!(decision, Decision::Approved { .. });
    let is_meant = |kind: Kind| if is_approved { kind.allows() } else { kind.rejects() };
    // Journals of an earlier version contain all options.
    let taken = usable_choices(choices).into_iter().find(|choice| is_meant(choice.kind))?;
    let selected = SelectedPermissionOutcome::new(taken.id);
    Some(RequestPermissionResponse::new(RequestPermissionOutcome::Selected(selected)))
}

/// The answer without an option.
pub fn cancelled() -> RequestPermissionResponse {
    RequestPermissionResponse::new(RequestPermissionOutcome::Cancelled)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The answers to options given as `id:kind`, for an approval and for a denial.
    fn answers(options: &[&str]) -> [Option<String>; 2] {
        let options = options.iter().map(|option| {
            let (id, kind) = option.split_once(':').unwrap();
            json!({ "optionId": id, "name": id, "kind": kind })
        });
        answered(&asking(&json!(options.collect::<Vec<_>>())).choices())
    }

    fn asking(options: &Value) -> PermissionRequest {
        let asking = json!({ "sessionId": "s", "toolCall": { "toolCallId": "t" }, "options": options });
        serde_json::from_value(asking).unwrap()
    }

    fn answered(choices: &[PermissionChoice]) -> [Option<String>; 2] {
        let comment = None;
        [Decision::Approved { comment: comment.clone() }, Decision::Denied { comment }].map(|decision| {
            let answer = serde_json::to_value(response_for(choices, &decision)?).unwrap();
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
            // An id that is also `always` counts as `always`.
            (&["both:allow_once", "both:allow_always", "y:allow_once"], [Some("y"), None]),
            (&["both:allow_once", "both:allow_always"], [Some("both"), None]),
            (&["n:reject_once", "n:reject_always"], [None, Some("n")]),
            (&["y:Allow_Once", "n:REJECT_ONCE"], [None, None]),
        ] {
            assert_eq!(answers(options), expected.map(|id| id.map(str::to_owned)), "{options:?}");
        }
    }

    #[test]
    fn a_malformed_option_hides_no_question() {
        let odd = asking(&json!([
            7, {}, { "optionId": 7, "kind": "allow_once" }, { "optionId": "a" }, { "optionId": "b", "kind": 7 },
            { "optionId": "c", "kind": { "deep": [] } }, { "optionId": null, "kind": "allow_once" },
            { "optionId": "", "kind": "allow_once" }, { "optionId": "y", "kind": "allow_once", "extra": {} },
        ]));
        assert_eq!(answered(&odd.choices()), [Some("y".to_owned()), None]);
        for none in [Value::Null, json!({}), json!("allow"), json!([[]]), json!([null, "allow_once", true])] {
            assert_eq!(answered(&asking(&none).choices()), [None, None], "{none}");
        }
        let without = serde_json::from_value::<PermissionRequest>(
            json!({ "sessionId": "s", "toolCall": { "toolCallId": "t" } }),
        );
        assert_eq!(without.unwrap().choices(), []);
    }

    #[test]
    fn an_id_that_an_agent_may_take_for_another_is_neither() {
        let option = |id: Value, kind: &str| json!({ "optionId": id, "kind": kind });
        let no = option(json!("7"), "reject_once");
        for (id, is_same) in [(json!(7), true), (json!("7"), true), (json!(7.0), false), (json!("7 "), false)]
        {
            let found = answered(&asking(&json!([option(id.clone(), "allow_once"), no])).choices());
            assert_eq!(found[1].is_none(), is_same, "{id}");
        }
    }

    #[test]
    fn many_and_long_options_are_read_in_no_time_and_kept_short() {
        let long = "x".repeat(ID + 1);
        let mut options = vec![json!({ "optionId": long, "kind": "allow_once" })];
        options.extend((0..50_000).map(|at| json!({ "optionId": at.to_string(), "kind": "reject_once" })));
        options.push(json!({ "optionId": "0", "kind": "allow_once" }));
        let begun = std::time::Instant::now();
        let choices = asking(&json!(options)).choices();
        assert_eq!(answered(&choices), [None, Some("1".to_owned())], "the last option spoils the first id");
        assert_eq!(choices.len(), 1);
        assert!(begun.elapsed().as_secs() < 5, "{:?}", begun.elapsed());
    }

    #[test]
    fn the_title_lists_the_options_if_none_allows() {
        let title = |options: Value| {
            let asking = asking(&options);
            asking.title("Run", &asking.choices())
        };
        let option = |id: &str, name: &str, kind: &str| json!({ "optionId": id, "name": name, "kind": kind });
        assert_eq!(title(json!([option("y", "Yes", "allow_always"), option("x", "X", "deny")])), "Run");
        let unknown = json!([option("d", "Deny", "deny"), option("s", "For this\nsession", "allow_session")]);
        assert_eq!(title(unknown), "Run (no option is a plain yes: “Deny”, “For this session”)");
        let same = json!([option("1", "", "allow_once"), option("1", "No", "reject_once")]);
        assert_eq!(title(same), "Run (no option is a plain yes: “1”, “No”)");
        assert_eq!(title(json!([{}, 7])), "Run (no option to choose)");
        let many = title(json!(vec![option("x", &"ä".repeat(1000), "deny"); 1000]));
        assert!(many.chars().count() < 160, "{many}");
        let long = asking(&json!([])).title(&"ä".repeat(500), &[]);
        assert_eq!(long, format!("{}… (no option to choose)", "ä".repeat(70)));
    }

    #[test]
    fn the_title_has_the_places_that_it_does_not_name() {
        let yes = json!([{ "optionId": "y", "name": "Yes", "kind": "allow_once" }]);
        let title = |paths: &[&str]| {
            let places: Vec<Value> = paths.iter().map(|path| json!({ "path": path })).collect();
            let request = json!({
                "sessionId": "s", "toolCall": { "toolCallId": "t", "locations": places }, "options": yes,
            });
            let request: PermissionRequest = serde_json::from_value(request).unwrap();
            request.title("ls /etc", &request.choices())
        };
        assert_eq!(title(&[]), "ls /etc");
        assert_eq!(title(&["/etc"]), "ls /etc");
        assert_eq!(title(&["/srv/a", "/srv/b", "/etc", "/c", "/d"]), "ls /etc (at /srv/a, /srv/b, /c)");
        let long = "/long".repeat(100);
        assert!(title(&[long.as_str(); 4]).len() < 300);
    }

    #[test]
    fn a_journal_that_has_all_options_is_read() {
        let kept = json!([{ "id": "same", "kind": "allow_once" }, { "id": "same", "kind": "reject_once" },
            { "id": "n", "kind": "reject_always" }]);
        let kept: Vec<PermissionChoice> = serde_json::from_value(kept).unwrap();
        assert_eq!(answered(&kept), [None, Some("n".to_owned())]);
    }
}
