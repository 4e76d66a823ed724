//! The payloads of GitHub, and of Gitea and Forgejo, which are nearly the same.
//! <https://docs.github.com/en/webhooks/webhook-events-and-payloads>, <https://docs.gitea.com/usage/webhooks>

use serde_json::Value;

use super::activity::{Activity, Deed, Person, Subject, quoted_path};
use crate::quoting::{join_paragraphs, quote};

/// An event with the fields of its subject and of what was written, and the path of that.
struct Kind {
    event: &'static str,
    subject: &'static str,
    written: &'static str,
    path: Path,
}

#[derive(Clone, Copy)]
enum Path {
    Comment(&'static str),
    Issue,
    None,
}

const fn kind(event: &'static str, subject: &'static str, written: &'static str, path: Path) -> Kind {
    Kind { event, subject, written, path }
}

static KINDS: [Kind; 10] = [
    kind("discussion", "discussion", "discussion", Path::None),
    kind("discussion_comment", "discussion", "comment", Path::None),
    kind("issue_comment", "issue", "comment", Path::Comment("issues")),
    kind("issues", "issue", "issue", Path::Issue),
    kind("pull_request", "pull_request", "pull_request", Path::Issue),
    kind("pull_request_approved", "pull_request", "review", Path::None),
    kind("pull_request_comment", "pull_request", "review", Path::None),
    kind("pull_request_rejected", "pull_request", "review", Path::None),
    kind("pull_request_review", "pull_request", "review", Path::None),
    kind("pull_request_review_comment", "pull_request", "comment", Path::Comment("pulls")),
];

static DEEDS: [(&str, Deed); 13] = [
    ("assigned", Deed::Assigned),
    ("closed", Deed::Closed),
    ("created", Deed::Said),
    ("deleted", Deed::Deleted),
    ("edited", Deed::Edited),
    ("label_updated", Deed::Labelled),
    ("labeled", Deed::Labelled),
    ("opened", Deed::Said),
    ("ready_for_review", Deed::Reopened),
    ("reopened", Deed::Reopened),
    ("review_requested", Deed::Asked),
    ("reviewed", Deed::Said),
    ("submitted", Deed::Said),
];

/// What reviews say without words.
static STATES: [(&str, &str); 4] = [
    ("approved", "Approved."),
    ("changes_requested", "Requested changes."),
    ("pull_request_review_approved", "Approved."),
    ("pull_request_review_rejected", "Requested changes."),
];

/// What happened. `None`: nothing that an agent could read.
pub fn read(event: &str, payload: &Value) -> Option<Activity> {
    let action = payload["action"].as_str().unwrap_or_default();
    let kind = KINDS.iter().find(|kind| kind.event == event);
    let deed = DEEDS.iter().find(|(name, _)| *name == action).map(|(_, deed)| *deed);
    let known = kind.zip(deed);
    let repo = text(&payload["repository"]["full_name"]);
    let (subject, written) = match known {
        Some((kind, _)) => (&payload[kind.subject], &payload[kind.written]),
        None => (&payload[find_subject(payload)], &payload[event]),
    };
    // Pipelines and checks name their pull requests.
    let number = subject["number"].as_u64().or_else(|| written["pull_requests"][0]["number"].as_u64());
    let about = read_subject(subject, number.unwrap_or_default(), event);
    let mut activity = Activity {
        event: event.to_owned(),
        action: action.to_owned(),
        deed: known.map_or(if kind.is_some() { Deed::Rare } else { Deed::Other }, |(_, deed)| deed),
        repo_id: payload["repository"]["id"].as_u64().unwrap_or_default(),
        sender: read_person(payload, written, deed)?,
        thread: None,
        vendor_id: None,
        // Gitea's reviews have none, but an issue with a time.
        id: written["id"].as_u64().or(kind.map(|_| 0)).map(|id| format!("{}/{id}", about.number)),
        text: String::new(),
        context: String::new(),
        whom: Vec::new(),
        updated: updated(written).or_else(|| updated(subject)).unwrap_or_default(),
        subject: about,
        repo,
    };
    if let Some((kind, deed)) = known {
        read_written(&mut activity, kind, payload)?;
        // Changes of other fields, and reviews whose words come as comments.
        let is_silent = match deed {
            Deed::Edited => payload["changes"]["body"].is_null() && payload["changes"]["title"].is_null(),
            Deed::Said => activity.text.is_empty(),
            _ => false,
        };
        if is_silent {
            return None;
        }
    } else {
        activity.text = text(&written["conclusion"]);
    }
    Some(activity)
}

fn read_written(activity: &mut Activity, kind: &Kind, payload: &Value) -> Option<()> {
    let written = &payload[kind.written];
    let body = Some(text(&written["body"])).filter(|body| !body.is_empty());
    let body = body.unwrap_or_else(|| text(&written["content"]));
    let state = written["state"].as_str().or_else(|| written["type"].as_str()).unwrap_or_default();
    let is_subject = kind.written == kind.subject;
    let said = match kind.written {
        "review" => STATES.iter().find(|(name, _)| *name == state).map_or("", |(_, said)| *said),
        _ if is_subject => activity.subject.title.as_str(),
        _ => "",
    };
    activity.text = join_paragraphs(&[said, &body]);
    let (repo, number) = (&activity.repo, activity.subject.number);
    match kind.path {
        Path::Issue if is_whole(activity.deed) => {
            activity.vendor_id = Some(format!("{repo}/issues/{number}"));
        }
        Path::Comment(of) => {
            activity.vendor_id = Some(format!("{repo}/{of}/comments/{}", written["id"].as_u64()?));
        }
        _ => {}
    }
    match kind.event {
        "pull_request_review_comment" => {
            let root = written["in_reply_to_id"].as_u64().or_else(|| written["id"].as_u64())?;
            activity.thread = Some(root.to_string());
            activity.context = quote_lines(written);
        }
        // Answers to discussions need its global id.
        "discussion" | "discussion_comment" => {
            activity.thread = payload["discussion"]["node_id"].as_str().map(str::to_owned);
        }
        _ => {}
    }
    match activity.deed {
        Deed::Asked => activity.whom = names(&payload["requested_reviewer"]),
        Deed::Assigned => {
            let assigned = names(&payload["assignee"]);
            let all = || activity.subject.concerned.clone();
            activity.whom = if assigned.is_empty() { all() } else { assigned };
        }
        Deed::Labelled => {
            let label = payload["label"]["name"].as_str().map(|label| vec![label.to_owned()]);
            activity.whom = label.unwrap_or_else(|| activity.subject.labels.clone());
        }
        _ => {}
    }
    if is_subject && !is_whole(activity.deed) {
        activity.text = if written["merged"] == true { "Merged.".to_owned() } else { String::new() };
        activity.context = activity.subject.quoted();
    }
    Some(())
}

/// Whether the whole issue is the message.
fn is_whole(deed: Deed) -> bool {
    matches!(deed, Deed::Said | Deed::Edited | Deed::Deleted)
}

/// The field of an event's issue, pull request or discussion.
fn find_subject(payload: &Value) -> &'static str {
    let fields = ["issue", "pull_request", "discussion"];
    fields.into_iter().find(|field| payload[field].is_object()).unwrap_or("issue")
}

fn read_subject(subject: &Value, number: u64, event: &str) -> Subject {
    let listed = |field: &str| subject[field].as_array().into_iter().flatten();
    let concerned = listed("assignees").chain(listed("requested_reviewers")).flat_map(names);
    Subject {
        mark: if event.starts_with("discussion") { '~' } else { '#' },
        number,
        title: text(&subject["title"]),
        body: text(&subject["body"]),
        author: text(&subject["user"]["login"]),
        concerned: concerned.collect(),
        labels: listed("labels").map(|label| text(&label["name"])).collect(),
    }
}

fn read_person(payload: &Value, written: &Value, deed: Option<Deed>) -> Option<Person> {
    let sender = &payload["sender"];
    // The App by which something was written did not cause what people do to it later.
    let app = &written["performed_via_github_app"]["id"];
    let app = app.as_u64().filter(|_| deed == Some(Deed::Said));
    Some(Person {
        id: sender["id"].as_u64()?.to_string(),
        login: text(&sender["login"]),
        is_bot: sender["type"] == "Bot",
        app: app.map(|id| format!("app/{id}")),
    })
}

/// The last lines of code that a comment is about.
fn quote_lines(comment: &Value) -> String {
    let line = comment["line"].as_u64().or_else(|| comment["original_line"].as_u64());
    let line = line.map(|line| format!(", line {line}")).unwrap_or_default();
    let hunk = text(&comment["diff_hunk"]);
    let lines: Vec<&str> = hunk.lines().collect();
    let last = lines[lines.len().saturating_sub(8)..].join("\n");
    quote(&format!("In answer to {}{line}", quoted_path(&comment["path"])), &last)
}

fn names(person: &Value) -> Vec<String> {
    person["login"].as_str().map(str::to_owned).into_iter().collect()
}

fn updated(written: &Value) -> Option<String> {
    let times = ["updated_at", "submitted_at", "created_at"];
    times.iter().find_map(|field| written[field].as_str()).map(str::to_owned)
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().replace("\r\n", "\n")
}
