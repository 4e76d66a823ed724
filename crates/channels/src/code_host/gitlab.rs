//! The payloads of GitLab. <https://docs.gitlab.com/user/project/integrations/webhook_events/>

use serde_json::Value;

use super::activity::{Activity, Deed, Person, Subject, quoted_path};
use crate::quoting::{join_paragraphs, quote};

static DEEDS: [(&str, Deed); 6] = [
    ("close", Deed::Closed),
    ("create", Deed::Said),
    ("merge", Deed::Closed),
    ("open", Deed::Said),
    ("reopen", Deed::Reopened),
    ("update", Deed::Edited),
];

/// What happened. `None`: nothing that an agent could read.
pub fn read(payload: &Value) -> Option<Activity> {
    let (event, written) = (payload["object_kind"].as_str()?, &payload["object_attributes"]);
    let action = written["action"].as_str().unwrap_or(if event == "note" { "create" } else { "" });
    let is_known = matches!(event, "issue" | "merge_request" | "note");
    let known = DEEDS.iter().find(|(name, _)| is_known && *name == action).map(|(_, deed)| *deed);
    // Notes of GitLab itself, and those that an answer would make public.
    let is_internal =
        payload["event_type"] == "confidential_note" && payload["issue"]["confidential"] != true;
    if written["system"] == true || is_internal {
        return None;
    }
    let kind = match (event, written["noteable_type"].as_str()) {
        ("issue", _) | ("note", Some("Issue")) => "issue",
        ("note", kind) if kind != Some("MergeRequest") => return None,
        // Pipelines name their merge request.
        _ => "merge_request",
    };
    let about = if matches!(event, "issue" | "merge_request") { written } else { &payload[kind] };
    let repo = text(&payload["project"]["path_with_namespace"]);
    let subject = read_subject(payload, about, kind);
    let mut activity = Activity {
        event: event.to_owned(),
        action: action.to_owned(),
        deed: known.unwrap_or(if is_known { Deed::Rare } else { Deed::Other }),
        repo_id: payload["project"]["id"].as_u64().unwrap_or_default(),
        sender: read_person(payload)?,
        thread: None,
        vendor_id: None,
        // A pipeline has the same id in each of its states.
        id: written["id"].as_u64().filter(|_| is_known).map(|id| id.to_string()),
        text: String::new(),
        context: String::new(),
        whom: Vec::new(),
        updated: written["updated_at"]
            .as_str()
            .unwrap_or_default()
            .replacen(' ', "T", 1)
            .replace(" UTC", "Z"),
        subject,
        repo,
    };
    match event {
        "note" => read_note(&mut activity, kind, written)?,
        "issue" | "merge_request" => read_change(&mut activity, payload)?,
        _ => activity.text = text(&written["status"]),
    }
    Some(activity)
}

fn read_note(activity: &mut Activity, kind: &str, note: &Value) -> Option<()> {
    activity.text = text(&note["note"]);
    let path = path(&activity.repo, kind, activity.subject.number);
    activity.vendor_id = Some(format!("{path}/notes/{}", note["id"].as_u64()?));
    if note["type"] == "DiffNote" {
        activity.thread = note["discussion_id"].as_str().map(str::to_owned);
        let line = note["position"]["new_line"].as_u64().map(|line| format!(", line {line}"));
        let place = quoted_path(&note["position"]["new_path"]);
        activity.context = quote(&format!("In answer to {place}{}", line.unwrap_or_default()), "");
    }
    Some(())
}

/// GitLab calls every change of an issue an update.
fn read_change(activity: &mut Activity, payload: &Value) -> Option<()> {
    let (changes, kind) = (&payload["changes"], activity.event.clone());
    if activity.action == "update" {
        let new = |field: &str, name: &str| {
            let list = |value: &Value| {
                let all = value.as_array().into_iter().flatten();
                all.map(|one| text(&one[name])).collect::<Vec<_>>()
            };
            let before = list(&changes[field]["previous"]);
            let mut now = list(&changes[field]["current"]);
            now.retain(|one| !before.contains(one));
            now
        };
        let found = [
            (Deed::Labelled, new("labels", "title")),
            (Deed::Asked, new("reviewers", "username")),
            (Deed::Assigned, new("assignees", "username")),
        ];
        let is_edit = changes["description"].is_object() || changes["title"].is_object();
        match found.into_iter().find(|(_, whom)| !whom.is_empty()) {
            Some((deed, whom)) => (activity.deed, activity.whom) = (deed, whom),
            None if is_edit => {}
            None => return None,
        }
    }
    if matches!(activity.deed, Deed::Said | Deed::Edited) {
        activity.vendor_id = Some(path(&activity.repo, &kind, activity.subject.number));
        activity.text = join_paragraphs(&[&activity.subject.title, &activity.subject.body]);
    } else {
        activity.text = if activity.action == "merge" { "Merged.".to_owned() } else { String::new() };
        activity.context = activity.subject.quoted();
    }
    Some(())
}

fn read_subject(payload: &Value, about: &Value, kind: &str) -> Subject {
    let list = |value: &Value, name: &str| {
        let all = value.as_array().into_iter().flatten();
        all.map(|one| text(&one[name])).collect::<Vec<_>>()
    };
    let labels = if about["labels"].is_array() { &about["labels"] } else { &payload["labels"] };
    // Only what is opened or changed names people: comments have their numbers.
    let is_author = payload["object_kind"] != "note" && about["author_id"] == payload["user"]["id"];
    Subject {
        mark: if kind == "merge_request" { '!' } else { '#' },
        number: about["iid"].as_u64().unwrap_or_default(),
        title: text(&about["title"]),
        body: text(&about["description"]),
        author: if is_author { text(&payload["user"]["username"]) } else { String::new() },
        concerned: [list(&payload["assignees"], "username"), list(&payload["reviewers"], "username")]
            .concat(),
        labels: list(labels, "title"),
    }
}

fn read_person(payload: &Value) -> Option<Person> {
    let login = text(&payload["user"]["username"]);
    // Bots of access tokens are called project_12_bot_0f3c and group_12_bot_0f3c.
    let is_bot = login.split_once('_').is_some_and(|(of, rest)| {
        matches!(of, "group" | "project")
            && rest.split_once('_').is_some_and(|(_, rest)| rest.starts_with("bot"))
    });
    Some(Person { id: payload["user"]["id"].as_u64()?.to_string(), login, is_bot, app: None })
}

/// The path of an issue or a merge request, below `projects`.
fn path(repo: &str, kind: &str, number: u64) -> String {
    let kind = if kind == "merge_request" { "merge_requests" } else { "issues" };
    format!("{}/{kind}/{number}", repo.replace('/', "%2F"))
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().replace("\r\n", "\n")
}
