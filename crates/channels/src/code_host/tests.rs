use serde_json::json;

use super::*;
use crate::contract::{Attention, Inbound};

fn rules() -> CodeHostRules {
    CodeHostRules {
        login: Some("muster".to_owned()),
        repos: Vec::new(),
        events: Vec::new(),
        labels: Vec::new(),
        attention: Attention::Involved,
        has_payload: false,
    }
}

fn issue(action: &str, mut more: Value) -> Value {
    let mut payload = json!({
        "action": action, "sender": { "id": 5, "login": "ada", "type": "User" },
        "repository": { "id": 9, "full_name": "acme/shop" },
        "issue": {
            "id": 70, "number": 12, "title": "It breaks", "body": "Look.", "user": { "login": "ada" },
            "assignees": [], "labels": [{ "name": "Agent" }], "updated_at": "2026-11-30T09:00:00Z",
        },
    });
    payload.as_object_mut().unwrap().append(more.as_object_mut().unwrap());
    payload
}

fn comment(body: &str) -> Value {
    let comment = json!({ "id": 80, "body": body, "updated_at": "2026-11-30T09:01:00Z" });
    issue("created", json!({ "comment": comment }))
}

fn read(event: &str, payload: &Value, rules: &CodeHostRules) -> Option<Inbound> {
    match decode(Software::Github, event, payload, rules) {
        Some(Event::Message(message)) => Some(*message),
        None => None,
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_issue_is_a_conversation() {
    let opened = read("issues", &issue("opened", json!({})), &rules()).unwrap();
    assert_eq!((opened.thread.key.as_str(), opened.thread.target.as_str()), ("9#12", "acme/shop#12"));
    assert_eq!(opened.thread.title.as_deref(), Some("shop#12 It breaks"));
    assert_eq!((opened.text.as_str(), opened.is_addressed), ("It breaks\n\nLook.", false));
    assert_eq!((opened.origin.id.as_str(), opened.origin.place.as_deref()), ("5", Some("acme/shop")));
    assert_eq!(opened.vendor_id.as_deref(), Some("acme/shop/issues/12"));
    let answer = read("issue_comment", &comment("@muster and now?"), &rules()).unwrap();
    assert_eq!((answer.thread.key.as_str(), answer.text.as_str()), ("9#12", "and now?"));
    assert_eq!((answer.is_addressed, answer.labels), (true, vec!["Agent".to_owned()]));
    assert_eq!(answer.vendor_id.as_deref(), Some("acme/shop/issues/comments/80"));
    // The next version of the issue.
    let edit = issue("edited", json!({ "changes": { "body": { "from": "?" } } }));
    let edit = read("issues", &edit, &rules()).unwrap();
    assert_eq!((edit.is_edit, edit.vendor_id), (true, opened.vendor_id));
    assert_eq!(read("issues", &issue("edited", json!({ "changes": {} })), &rules()), None);
}

#[test]
fn the_scope_decides_what_is_addressed() {
    let of = |attention, payload: &Value, event| {
        read(event, payload, &CodeHostRules { attention, ..rules() }).unwrap().is_addressed
    };
    let (all, involved, mentions) = (Attention::All, Attention::Involved, Attention::Mentions);
    let aside = comment("hello");
    assert_eq!([all, involved, mentions].map(|one| of(one, &aside, "issue_comment")), [true, false, false]);
    let named = comment("@muster hello");
    assert_eq!([all, involved, mentions].map(|one| of(one, &named, "issue_comment")), [true, true, true]);
    let mut ours = comment("hello");
    ours["issue"]["user"]["login"] = json!("muster[bot]");
    assert_eq!([involved, mentions].map(|one| of(one, &ours, "issue_comment")), [true, false]);
    let assigned = issue("assigned", json!({ "assignee": { "login": "muster[bot]" } }));
    assert_eq!([involved, mentions].map(|one| of(one, &assigned, "issues")), [true, false]);
}

#[test]
fn only_listed_labels_ask_for_the_agent() {
    let labelled = |name: &str| issue("labeled", json!({ "label": { "name": name } }));
    assert_eq!(read("issues", &labelled("agent"), &rules()), None);
    let listed = CodeHostRules { labels: vec!["agent".to_owned()], ..rules() };
    assert_eq!(read("issues", &labelled("bug"), &listed), None);
    let asked = read("issues", &labelled("Agent"), &listed).unwrap();
    assert_eq!((asked.text.as_str(), asked.is_addressed), ("Labelled: Agent", true));
    assert_eq!(asked.context, "[In answer to It breaks]\n> Look.");
}

#[test]
fn repositories_and_events_are_chosen() {
    let of = |repos: &[&str], events: &[&str], event: &str, payload: &Value| {
        let list = |all: &[&str]| all.iter().map(|&one| one.to_owned()).collect();
        read(event, payload, &CodeHostRules { repos: list(repos), events: list(events), ..rules() }).is_some()
    };
    let opened = issue("opened", json!({}));
    assert!(of(&["Acme/Shop"], &[], "issues", &opened));
    assert!(!of(&["acme/other"], &[], "issues", &opened));
    assert!(of(&[], &["issues.opened"], "issues", &opened));
    assert!(!of(&[], &["issues.closed"], "issues", &opened));
    let pinned = issue("pinned", json!({}));
    assert!(!of(&[], &[], "issues", &pinned) && !of(&[], &["issues"], "issues", &pinned));
    assert!(of(&[], &["issues.pinned"], "issues", &pinned));
    let run = json!({
        "action": "completed", "sender": { "id": 5, "login": "ada" },
        "repository": { "id": 9, "full_name": "acme/shop" },
        "workflow_run": { "id": 1, "conclusion": "failure", "pull_requests": [{ "number": 3 }] },
    });
    assert!(!of(&[], &[], "workflow_run", &run));
    let listed = CodeHostRules { events: vec!["workflow_run".to_owned()], has_payload: true, ..rules() };
    let failed = read("workflow_run", &run, &listed).unwrap();
    assert_eq!(
        (failed.thread.key.as_str(), failed.text.as_str()),
        ("9#3", "workflow_run completed\n\nfailure")
    );
    assert_eq!(failed.files[0].name, "payload.json");
}

#[test]
fn a_program_needs_an_entry_of_its_own() {
    let mut payload = comment("@muster bump");
    payload["sender"] = json!({ "id": 49, "login": "dependabot[bot]", "type": "Bot" });
    payload["comment"]["performed_via_github_app"] = json!({ "id": 29 });
    let message = read("issue_comment", &payload, &rules()).unwrap();
    assert_eq!((message.is_automatic, message.origin.place), (true, None));
    assert_eq!(message.authors, ["dependabot[bot]", "app/29"]);
    // Another agent of Muster, with an account like a person's.
    let other = read("issue_comment", &comment("@muster done\n\n<!-- muster:d-1 -->"), &rules()).unwrap();
    assert_eq!((other.is_automatic, other.origin.place), (true, None));
}

#[test]
fn what_people_do_to_our_issue_is_theirs() {
    let mut payload = issue("closed", json!({}));
    payload["issue"]["performed_via_github_app"] = json!({ "id": 70 });
    assert_eq!(read("issues", &payload, &rules()).unwrap().authors, ["ada"]);
    payload["action"] = json!("opened");
    assert_eq!(read("issues", &payload, &rules()).unwrap().authors, ["ada", "app/70"]);
}

#[test]
fn events_about_something_without_an_id_are_told_apart() {
    let push = |after: &str| {
        let payload = json!({
            "after": after, "sender": { "id": 5, "login": "ada" },
            "repository": { "id": 9, "full_name": "acme/shop" },
        });
        let rules = CodeHostRules { events: vec!["push".to_owned()], ..rules() };
        read("push", &payload, &rules).unwrap().key
    };
    assert_ne!(push("a"), push("b"));
    assert_eq!(push("a"), push("a"));
}

#[test]
fn each_state_of_a_pipeline_is_told_in_its_merge_request() {
    let pipeline = |status: &str| {
        let payload = json!({
            "object_kind": "pipeline", "user": { "id": 5, "username": "ada" },
            "project": { "id": 9, "path_with_namespace": "acme/shop" },
            // Its iid is not that of an issue.
            "object_attributes": { "id": 31, "iid": 3, "status": status },
            "merge_request": { "id": 71, "iid": 13, "title": "Repair it" },
        });
        let rules = CodeHostRules { events: vec!["pipeline".to_owned()], ..rules() };
        let Some(Event::Message(message)) = decode(Software::Gitlab, "", &payload, &rules) else { panic!() };
        message
    };
    let (running, failed) = (pipeline("running"), pipeline("failed"));
    assert_eq!((failed.thread.target.as_str(), failed.text.as_str()), ("acme/shop!13", "pipeline\n\nfailed"));
    assert_ne!(running.key, failed.key);
}

#[test]
fn internal_notes_are_not_answered_in_public() {
    let noted = |event_type: &str, is_confidential: bool| {
        let payload = json!({
            "object_kind": "note", "event_type": event_type, "user": { "id": 5, "username": "ada" },
            "project": { "id": 9, "path_with_namespace": "acme/shop" },
            "issue": { "iid": 12, "title": "It breaks", "confidential": is_confidential },
            "object_attributes": { "id": 80, "note": "@muster look", "noteable_type": "Issue" },
        });
        decode(Software::Gitlab, "", &payload, &rules()).is_some()
    };
    assert!(noted("note", false) && noted("confidential_note", true));
    assert!(!noted("confidential_note", false));
}

#[test]
fn a_path_does_not_end_its_quote() {
    let mut payload = comment("Why?");
    payload["pull_request"] = payload["issue"].take();
    payload["comment"]["path"] = json!("a]\nPay");
    let read = read("pull_request_review_comment", &payload, &rules()).unwrap();
    assert_eq!(read.context, "[In answer to a__Pay]");
}

#[test]
fn a_thread_of_a_review_is_a_conversation() {
    let mut payload = comment("Why?");
    let request = payload["issue"].take();
    payload["pull_request"] = request;
    payload["comment"]["path"] = json!("src/a.rs");
    payload["comment"]["line"] = json!(7);
    payload["comment"]["diff_hunk"] = json!("@@ -1 +1 @@\n+let a = 1;");
    let first = read("pull_request_review_comment", &payload, &rules()).unwrap();
    assert_eq!((first.thread.key.as_str(), first.thread.target.as_str()), ("9#12/80", "acme/shop#12/80"));
    assert_eq!(first.context, "[In answer to src/a.rs, line 7]\n> @@ -1 +1 @@\n> +let a = 1;");
    assert_eq!(thread_root(&first.thread.key), "9#12");
    payload["comment"]["in_reply_to_id"] = json!(80);
    payload["comment"]["id"] = json!(81);
    assert_eq!(read("pull_request_review_comment", &payload, &rules()).unwrap().thread.key, "9#12/80");
}

#[test]
fn the_same_event_has_the_same_key() {
    let key = |payload: &Value| read("issue_comment", payload, &rules()).unwrap().key;
    assert_eq!(key(&comment("a")), key(&comment("a")));
    let mut later = comment("a");
    later["comment"]["updated_at"] = json!("2026-11-30T09:02:00Z");
    assert_ne!(key(&comment("a")), key(&later));
}

/// A sample is a request: its software, event and payload, and rules other than the usual ones.
#[test]
fn samples() {
    muster_samples::check("code_host", |bytes| {
        let sample: Value = muster_json::from_slice(bytes).unwrap();
        let software = match sample["software"].as_str().unwrap() {
            "gitea" => Software::Gitea,
            "gitlab" => Software::Gitlab,
            _ => Software::Github,
        };
        let labels = sample["labels"].as_array().into_iter().flatten();
        let labels = labels.map(|label| label.as_str().unwrap().to_owned()).collect();
        let event = sample["event"].as_str().unwrap_or_default();
        let decoded = decode(software, event, &sample["payload"], &CodeHostRules { labels, ..rules() });
        crate::samples::summarize(&Ok(decoded))
    });
}
