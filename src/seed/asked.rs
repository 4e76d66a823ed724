//! Approvals: which to create, and their rows.

use muster_corpus::{Facts, Random};
use serde_json::json;
use sha2::{Digest, Sha256};

use super::{
    Volume,
    bulk::{Cell, Sheet},
    fleet::{Agent, Fleet},
};
use crate::{
    base::{folding, ids::OrgId},
    domain::approvals::{Choice, Question},
};

/// An approval to create.
#[derive(Clone, Copy, Debug)]
pub struct PlannedApproval {
    pub id: i64,
    kind: &'static str,
    status: &'static str,
    outcome: Option<&'static str>,
    /// The index of its conversation, if it was asked in one.
    pub conversation: Option<usize>,
}

impl PlannedApproval {
    /// Whether it is pending.
    pub fn waits(&self) -> bool {
        self.status == "PENDING"
    }
}

const KINDS: &[(u64, &str)] = &[
    (36, "QUESTION"),
    (34, "ACTION"),
    (6, "AUTH_REQUIRED"),
    (8, "COST_GUARD"),
    (6, "CHANNEL_ERROR"),
    (5, "ACCESS_REQUEST"),
    (5, "SERVER_ALERT"),
];

/// Decides which approvals to create. A conversation has at most one pending, since its agent asks one thing at a time.
pub fn plan(ids: &[i64], volume: &Volume, random: &mut Random) -> Vec<PlannedApproval> {
    let mut waiting = std::collections::HashSet::new();
    let mut asked = Vec::with_capacity(ids.len());
    for (n, &id) in ids.iter().enumerate() {
        let kind = match n {
            0 => "QUESTION",
            1 => "ACTION",
            _ => random.weighted(KINDS),
        };
        let spoken = matches!(kind, "QUESTION" | "ACTION" | "AUTH_REQUIRED") && volume.conversations > 0;
        let conversation = spoken.then(|| random.below(volume.conversations) as usize);
        let free = conversation.is_none_or(|place| !waiting.contains(&place));
        let waits = free && (n < 2 || random.chance(33));
        let (status, outcome) = if waits {
            waiting.extend(conversation);
            ("PENDING", None)
        } else {
            ended(kind, random)
        };
        asked.push(PlannedApproval { id, kind, status, outcome, conversation });
    }
    asked
}

fn ended(kind: &str, random: &mut Random) -> (&'static str, Option<&'static str>) {
    let resolved = match kind {
        "QUESTION" => "ANSWERED",
        "ACTION" => random.weighted(&[(4, "APPROVED"), (1, "DENIED")]),
        _ => "MANUAL",
    };
    random.weighted(&[
        (75, ("RESOLVED", Some(resolved))),
        (15, ("DISMISSED", Some("DISMISSED"))),
        (10, ("EXPIRED", Some("EXPIRED"))),
    ])
}

/// An empty sheet for approvals.
pub fn sheet() -> Sheet {
    Sheet::new(
        "approvals",
        &[
            "organization_id",
            "id",
            "kind",
            "status",
            "outcome",
            "title",
            "title_folded",
            "body",
            "severity",
            "category",
            "risk",
            "agent_id",
            "server_id",
            "channel_id",
            "conversation_id",
            "message_seq",
            "request",
            "question",
            "answer",
            "decided_by_name",
            "decided_by_kind",
            "decided_via",
            "expires_at",
            "resolved_at",
            "delivered_at",
            "created_at",
            "updated_at",
        ],
    )
}

/// Where and when an approval was requested.
pub struct ApprovalOrigin {
    /// The conversation's id, and the message's number in it.
    pub conversation: Option<(i64, Option<i64>)>,
    /// The agent's index.
    pub agent: usize,
    /// When, in milliseconds since 1970.
    pub at: i64,
}

/// Adds the row of one approval.
pub fn push(
    sheet: &mut Sheet,
    org: OrgId,
    asked: &PlannedApproval,
    fleet: &Fleet,
    place: &ApprovalOrigin,
    random: &mut Random,
) {
    let agent = &fleet.agents[place.agent];
    let words = words(asked, agent, random);
    let (waits, at) = (asked.waits(), place.at);
    let ended = (!waits).then(|| at + random.between(20_000, 6 * 3_600_000));
    let answer = match (asked.outcome, &words.question) {
        (Some("ANSWERED"), Some(question)) => question.options.first().map(|choice| choice.id.clone()),
        (Some("APPROVED"), _) => Some("approve".to_owned()),
        (Some("DENIED"), _) => Some("deny".to_owned()),
        _ => None,
    };
    let channel = fleet.channels.iter().find(|channel| channel.agent == place.agent);
    let about_channel = matches!(asked.kind, "CHANNEL_ERROR" | "ACCESS_REQUEST");
    let by_hand = matches!(asked.status, "RESOLVED" | "DISMISSED");
    let title_folded = folding::name(&words.title);
    let row: [Cell; 27] = [
        org.0.into(),
        asked.id.into(),
        asked.kind.into(),
        asked.status.into(),
        asked.outcome.into(),
        words.title.into(),
        title_folded.into(),
        words.body.into(),
        random.weighted(&[(3, "LOW"), (5, "MEDIUM"), (2, "HIGH"), (1, "CRITICAL")]).into(),
        words.category.into(),
        (asked.kind == "ACTION").then(|| random.between(25, 95)).into(),
        (asked.kind != "SERVER_ALERT").then_some(agent.id).into(),
        (asked.kind == "SERVER_ALERT").then_some(agent.server).into(),
        channel.filter(|_| about_channel).map(|channel| channel.id).into(),
        place.conversation.map(|(id, _)| id).into(),
        place.conversation.and_then(|(_, seq)| seq).into(),
        words.request.into(),
        words.question.map(|question| json!(question).to_string()).into(),
        answer.map(|id| json!({ "options": [id], "text": null }).to_string()).into(),
        by_hand.then_some("system").into(),
        by_hand.then_some("SYSTEM").into(),
        by_hand.then_some("SYSTEM").into(),
        // A pending approval expires a day after the newest instant.
        matches!(asked.kind, "QUESTION" | "ACTION").then(|| ended.unwrap_or(at) + 86_400_000).into(),
        ended.into(),
        ended.map(|ended| ended + 400).into(),
        at.into(),
        ended.unwrap_or(at).into(),
    ];
    sheet.push(row);
}

struct Words {
    title: String,
    body: String,
    category: Option<&'static str>,
    request: Option<String>,
    question: Option<Question>,
}

fn words(asked: &PlannedApproval, agent: &Agent, random: &mut Random) -> Words {
    let facts = Facts::new(random);
    let plain = |title: &str, body: &str| Words {
        title: facts.fill(title),
        body: facts.fill(body),
        category: None,
        request: None,
        question: None,
    };
    match asked.kind {
        "QUESTION" => {
            let (title, text, options) = random.pick(agent.topic.questions);
            let options = options.iter().enumerate().map(|(n, (label, description))| Choice {
                id: format!("option-{}", n + 1),
                label: facts.fill(label),
                description: Some(facts.fill(description)),
            });
            let question = Question {
                text: facts.fill(text),
                options: options.collect(),
                multiple: false,
                allow_text: random.chance(60),
            };
            Words { question: Some(question), ..plain(title, text) }
        }
        "ACTION" => {
            let (title, tool, input, category) = random.pick(agent.topic.actions);
            let input: serde_json::Value = muster_json::from_str(&facts.fill(input)).unwrap_or_default();
            let digest = hex::encode(Sha256::digest(input.to_string()));
            let request = json!({ "tool": tool, "input": input, "digest": digest });
            Words {
                category: Some(category),
                request: Some(request.to_string()),
                question: Some(Question::approve_or_deny(&facts.fill(title))),
                ..plain(title, "The risk is above the threshold from which this agent asks.")
            }
        }
        "AUTH_REQUIRED" => {
            plain("Sign in again for the mailbox", "The provider has ended the session on <date>.")
        }
        "COST_GUARD" => {
            plain("<number> tokens within an hour", "The cost guard's threshold was passed on <date>.")
        }
        "CHANNEL_ERROR" => {
            plain("A channel can't send", "The vendor answered 401 to the last <percent> attempts.")
        }
        "ACCESS_REQUEST" => {
            plain("<person> would like to write", "The first message came from <city> on <date>.")
        }
        _ => plain("<host> is short of memory", "<percent> percent are in use since <date>."),
    }
}
