//! Agents' requests: which need no decision, which are refused, and how a decision reaches the agent exactly once.

use std::time::Duration;

use muster::{
    base::ids::{AgentId, ApprovalId},
    domain::approvals,
};
use muster_protocol::{
    event::{Asked, Choice, EndReason, TurnOutcome},
    plan::{Answer, Decision, Part},
};
use serde_json::{Value, json};

use crate::harness::{Host, TestApp};

/// An agent that works on a turn.
pub struct Working<'a> {
    pub host: Host<'a>,
    conversation: i64,
    pub turn: i64,
}

pub async fn working(app: &TestApp) -> Working<'_> {
    let (host, conversation) = app.talking_agent().await;
    let turn = post(app, conversation).await;
    host.takes(turn).await;
    Working { host, conversation, turn }
}

async fn post(app: &TestApp, conversation: i64) -> i64 {
    let query = "mutation($o: Id!, $c: Id!) { postMessage(orgId: $o, conversationId: $c, input: { text: \"please\" }) { turn { id } } }";
    let posted = app.operator.gql(query, json!({ "o": app.org, "c": conversation })).await.data();
    posted["postMessage"]["turn"]["id"].as_i64().unwrap()
}

pub fn run(command: &str) -> Asked {
    Asked::Action {
        tool: Some("shell".to_owned()),
        tool_kind: "execute".to_owned(),
        title: format!("Run {command}"),
        input: json!({ "command": command, "token": "canary" }),
    }
}

pub fn question() -> Asked {
    let choice =
        |id: &str, label: &str| Choice { id: id.to_owned(), label: label.to_owned(), description: None };
    Asked::Question {
        text: "How should it go?\nIt is urgent.".to_owned(),
        options: vec![choice("air", "By air"), choice("sea", "By sea")],
        multiple: false,
        allow_text: true,
    }
}

impl Working<'_> {
    pub async fn asks(&self, request: &str, asked: Asked) {
        self.host.asks(self.conversation, Some(self.turn), request, asked).await.unwrap();
    }

    /// Asks, and returns the approval.
    pub async fn raises(&self, request: &str, asked: Asked) -> i64 {
        self.asks(request, asked).await;
        let sql = "SELECT id FROM approvals WHERE request_key = $1 AND agent_id = $2";
        self.host.app.one(sql, vec![request.to_owned().into(), self.host.agent.into()]).await
    }

    /// Ends the turn, as an agent does after its call has returned.
    pub async fn end_turn(&self) {
        self.host.turn_ended(self.turn, TurnOutcome::Done).await;
    }

    pub async fn turn_is(&self) -> String {
        self.host.app.turn_is(self.turn).await
    }

    pub async fn verdicts(&self) -> Vec<Value> {
        self.of_kind("VERDICT").await
    }

    pub async fn of_kind(&self, kind: &str) -> Vec<Value> {
        self.host.commands().await.into_iter().filter(|command| command["kind"] == kind).collect()
    }

    pub async fn decides(&self, id: i64, answer: Value) -> Value {
        let path = format!("/v1/org/{}/approval/{id}/answer", self.host.app.org);
        self.host.app.operator.patch(&path, answer).await.expect(200)
    }

    pub async fn delivered(&self, id: i64) {
        let told = self
            .host
            .tell(async |tx, from| approvals::reports::delivered(tx, from, ApprovalId(id), false).await);
        told.await.unwrap();
    }

    pub async fn not_waiting(&self, id: i64) {
        let told =
            self.host.tell(async |tx, from| approvals::reports::not_waiting(tx, from, ApprovalId(id)).await);
        told.await.unwrap();
    }

    pub async fn answer(&self, id: i64) -> Answer {
        let (scope, agent) = (self.host.app.scope(), AgentId(self.host.agent));
        approvals::plans::answer(&scope, agent, self.host.generation, ApprovalId(id)).await.unwrap()
    }

    pub async fn approval(&self, id: i64) -> Value {
        let query = "query($o: Id!, $i: Id!) { approval(orgId: $o, id: $i) { kind status outcome title risk category severity \
            messageSeq expiresAt deliveredAt request { tool input digest } turn { id } } }";
        let shown = self.host.app.viewer.gql(query, json!({ "o": self.host.app.org, "i": id })).await.data();
        shown["approval"].clone()
    }

    /// The conversation's messages: role, kind, status, text.
    pub async fn messages(&self) -> Vec<(String, String, String, String)> {
        let app = self.host.app;
        let path = format!(
            "/v1/org/{}/agent/{}/conversation/{}/message",
            app.org, self.host.agent, self.conversation
        );
        let page = app.viewer.get(&path).await.expect(200);
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let messages = page["data"].as_array().unwrap().iter();
        messages
            .map(|m| (text(&m["role"]), text(&m["kind"]), text(&m["status"]), text(&m["content"]["text"])))
            .collect()
    }

    pub async fn conversation_is(&self) -> String {
        let sql = "SELECT status FROM conversations WHERE id = $1";
        self.host.app.one(sql, vec![self.conversation.into()]).await
    }
}

fn message(role: &str, kind: &str, status: &str, text: &str) -> (String, String, String, String) {
    (role.to_owned(), kind.to_owned(), status.to_owned(), text.to_owned())
}

#[tokio::test]
async fn an_action_in_between_is_asked_once() {
    let app = TestApp::start().await;
    let work = working(&app).await;
    let id = work.raises("1.7", run("make")).await;
    work.asks("1.7", run("make")).await;
    let count: i64 = app.one("SELECT COUNT(*) FROM approvals", vec![]).await;
    assert_eq!(count, 1, "a request that is repeated changes nothing");
    assert_eq!(
        (work.turn_is().await.as_str(), work.conversation_is().await.as_str()),
        ("WAITING_APPROVAL", "PENDING")
    );
    let shown = work.approval(id).await;
    assert_eq!((&shown["kind"], &shown["title"]), (&json!("ACTION"), &json!("Run make")));
    assert_eq!(
        (&shown["risk"], &shown["category"], &shown["severity"]),
        (&json!(50), &json!("commands"), &json!("MEDIUM"))
    );
    assert_eq!((&shown["messageSeq"], &shown["turn"]["id"]), (&json!(2), &json!(work.turn)));
    assert_eq!(
        shown["expiresAt"], "2026-06-01T13:00:00.000Z",
        "after an hour, unless the agent has a time of its own"
    );
    assert_eq!(shown["request"]["input"], json!({ "command": "make", "token": "[removed]" }));
    assert_eq!(work.messages().await[1], message("ASSISTANT", "APPROVAL", "DELIVERED", ""));
    assert!(work.verdicts().await.is_empty());
    let record = work.decides(id, json!({ "options": ["approve"], "text": "go on" })).await;
    assert_eq!((&record["outcome"], &record["delivered_at"]), (&json!("APPROVED"), &Value::Null));
    assert_eq!(work.of_kind("ANSWER").await, [json!({ "kind": "ANSWER", "approval_id": id })]);
    assert_eq!(work.messages().await[2], message("USER", "TEXT", "PENDING", "Approved: Run make\ngo on"));
    assert_eq!(
        (work.turn_is().await.as_str(), work.conversation_is().await.as_str()),
        ("WAITING_APPROVAL", "OPEN")
    );
    let answer = work.answer(id).await;
    let approved = Decision::Approved { comment: Some("go on".to_owned()) };
    assert_eq!((answer.request.as_str(), answer.by.as_deref()), ("1.7", Some("operator")));
    assert_eq!(answer.decision, approved);
    work.delivered(id).await;
    assert_eq!(work.turn_is().await, "RUNNING");
    assert!(work.approval(id).await["deliveredAt"].is_string());
    assert_eq!(work.messages().await[2].2, "DELIVERED");
    work.not_waiting(id).await;
    assert_eq!(work.host.given().await, [work.turn], "the agent learns it once");
    work.host.turn_ended(work.turn, TurnOutcome::Done).await;
    assert_eq!(work.host.given().await, [work.turn]);
}

#[tokio::test]
async fn a_question_is_answered_in_the_thread_it_was_asked_from() {
    let app = TestApp::start().await;
    let work = working(&app).await;
    let (first, second) = (work.raises("1.1", question()).await, work.raises("1.2", question()).await);
    assert_eq!(work.approval(first).await["title"], "How should it go?");
    work.decides(first, json!({ "options": ["By sea"], "text": "no hurry" })).await;
    assert_eq!(work.messages().await[3], message("USER", "TEXT", "PENDING", "By sea\nno hurry"));
    assert_eq!(work.conversation_is().await, "PENDING", "the other question is open");
    let answered = Decision::Answered { options: vec!["sea".to_owned()], text: Some("no hurry".to_owned()) };
    assert_eq!(work.answer(first).await.decision, answered);
    work.delivered(first).await;
    assert_eq!(work.turn_is().await, "WAITING_APPROVAL", "the other question is open");
    work.decides(second, json!({ "options": ["air"] })).await;
    work.delivered(second).await;
    assert_eq!((work.turn_is().await.as_str(), work.conversation_is().await.as_str()), ("RUNNING", "OPEN"));
}

#[tokio::test]
async fn an_answer_that_no_one_waits_for_becomes_the_next_turn() {
    let app = TestApp::start().await;
    let work = working(&app).await;
    let id = work.raises("ask-1", question()).await;
    work.end_turn().await;
    work.decides(id, json!({ "options": ["air"] })).await;
    assert_eq!(work.host.given().await, [work.turn], "no turn before the host has tried");
    work.not_waiting(id).await;
    work.not_waiting(id).await;
    work.delivered(id).await;
    let given = work.host.given().await;
    assert_eq!(given.len(), 2);
    assert_eq!(work.approval(id).await["deliveredAt"], Value::Null, "not yet");
    let plan = work.host.takes(given[1]).await;
    let told = "You asked: How should it go?\nIt is urgent.\noperator answered: By air".to_owned();
    assert_eq!(plan.prompt, [Part::Text { author: Some("operator".to_owned()), text: told }]);
    assert!(work.approval(id).await["deliveredAt"].is_string());
    assert_eq!(work.messages().await[2], message("USER", "TEXT", "DELIVERED", "By air"));
    let cause: String = app.one("SELECT cause FROM turns WHERE id = $1", vec![given[1].into()]).await;
    assert_eq!(cause, "PANEL");
}

#[tokio::test]
async fn a_launchs_end_withdraws_open_and_delivers_decided_approvals() {
    let app = TestApp::start().await;
    let work = working(&app).await;
    let (open, decided) = (work.raises("1.1", question()).await, work.raises("1.2", run("make")).await);
    let (dismissed, arrived) = (work.raises("1.3", question()).await, work.raises("1.4", question()).await);
    work.decides(decided, json!({ "options": ["deny"], "text": "not on a Friday" })).await;
    work.decides(arrived, json!({ "options": ["air"] })).await;
    work.delivered(arrived).await;
    let path = format!("/v1/org/{}/approval/{dismissed}/dismiss", app.org);
    app.operator.patch(&path, Value::Null).await.expect(200);
    work.host.ended(EndReason::Killed).await;
    let shown = work.approval(open).await;
    assert_eq!((&shown["status"], &shown["outcome"]), (&json!("DISMISSED"), &json!("WITHDRAWN")));
    assert_eq!(
        (work.turn_is().await.as_str(), work.conversation_is().await.as_str()),
        ("INTERRUPTED", "OPEN")
    );
    let late = app
        .operator
        .patch(&format!("/v1/org/{}/approval/{open}/answer", app.org), json!({ "options": ["air"] }))
        .await;
    assert_eq!(late.problem(), (409, "APPROVAL_NOT_PENDING"));
    let host = work.host.relaunched().await;
    let given = host.given().await;
    assert_eq!(given.len(), 1);
    let plan = host.takes(given[0]).await;
    let told =
        "You requested approval: Run make\noperator did not allow it and said: not on a Friday.".to_owned();
    assert_eq!(plan.prompt, [Part::Text { author: Some("operator".to_owned()), text: told }]);
    work.delivered(decided).await;
    host.turn_ended(given[0], TurnOutcome::Done).await;
    assert_eq!(host.given().await, given, "nothing else is left to tell");
}

#[tokio::test]
async fn what_ends_without_an_answer_is_closed() {
    let app = TestApp::start().await;
    let work = working(&app).await;
    app.execute("UPDATE agents SET approval_timeout_minutes = 5 WHERE id = $1", vec![work.host.agent.into()])
        .await;
    let (expires, dismissed) = (work.raises("1.1", run("make")).await, work.raises("1.2", question()).await);
    let withdrawn = work.raises("1.3", question()).await;
    let undecided =
        approvals::plans::answer(&app.scope(), AgentId(work.host.agent), 1, ApprovalId(expires)).await;
    assert_eq!(undecided.unwrap_err().code.as_str(), "CONFLICT");
    app.operator
        .patch(&format!("/v1/org/{}/approval/{dismissed}/dismiss", app.org), Value::Null)
        .await
        .expect(200);
    work.host
        .tell(async |tx, from| approvals::reports::withdrawn(tx, from, "1.3".to_owned()).await)
        .await
        .unwrap();
    assert_eq!(work.approval(withdrawn).await["outcome"], "WITHDRAWN");
    app.clock.advance(Duration::from_mins(5));
    assert_eq!(approvals::expire_due(&app.core).await.unwrap(), 1);
    let answers = [
        json!({ "kind": "ANSWER", "approval_id": dismissed }),
        json!({ "kind": "ANSWER", "approval_id": expires }),
    ];
    assert_eq!(work.of_kind("ANSWER").await, answers);
    for (id, reason, by) in
        [(dismissed, "It was dismissed.", Some("operator")), (expires, "There was no answer in time.", None)]
    {
        let answer = work.answer(id).await;
        assert_eq!(answer.decision, Decision::Closed { reason: reason.to_owned() });
        assert_eq!(answer.by.as_deref(), by);
    }
    work.delivered(dismissed).await;
    work.not_waiting(expires).await;
    assert_eq!(work.turn_is().await, "RUNNING");
    assert_eq!(work.messages().await.len(), 4, "the message, three requests, and no answer");
    work.host.turn_ended(work.turn, TurnOutcome::Done).await;
    assert_eq!(work.host.given().await, [work.turn]);
}

#[tokio::test]
async fn decision_expiry_and_launch_end_have_one_winner() {
    let app = TestApp::start().await;
    for _ in 0..6 {
        let work = working(&app).await;
        let id = work.raises("1.1", question()).await;
        let sql = "UPDATE approvals SET expires_at = $2 WHERE id = $1";
        app.execute(sql, vec![id.into(), (app.clock.now().0 + 1).into()]).await;
        let path = format!("/v1/org/{}/approval/{id}/answer", app.org);
        let (decided, _, ()) = futures::join!(
            app.operator.patch(&path, json!({ "options": ["air"] })),
            approvals::expire_due(&app.core),
            work.host.ended(EndReason::Exited),
        );
        let outcome = work.approval(id).await["outcome"].as_str().unwrap().to_owned();
        let won = if decided.status == 200 { "ANSWERED" } else { "WITHDRAWN" };
        assert_eq!(outcome, won, "{}", decided.text);
        let host = work.host.relaunched().await;
        assert_eq!(
            host.given().await.len(),
            usize::from(won == "ANSWERED"),
            "told exactly if it was answered"
        );
        host.act("stop").await;
        host.ended(EndReason::Stopped).await;
    }
}

#[tokio::test]
async fn delivery_and_the_end_of_the_launch_have_one_winner() {
    let app = TestApp::start().await;
    for _ in 0..6 {
        let work = working(&app).await;
        let id = work.raises("1.1", question()).await;
        work.decides(id, json!({ "options": ["air"] })).await;
        futures::join!(work.delivered(id), work.not_waiting(id), work.host.ended(EndReason::Exited));
        let delivery: String = app.one("SELECT delivery FROM approvals WHERE id = $1", vec![id.into()]).await;
        let host = work.host.relaunched().await;
        let told = host.given().await.len();
        assert_eq!(told, usize::from(delivery == "TURN"), "{delivery}");
    }
}

#[tokio::test]
async fn what_a_terminal_would_obey_is_not_shown_of_a_question() {
    let app = TestApp::start().await;
    let work = working(&app).await;
    let wild = Choice {
        id: "a".to_owned(),
        label: "Yes\n\u{1b}[31m, \u{202e}on".to_owned(),
        description: Some("one\u{7}\ntwo".to_owned()),
    };
    let text = "Which\u{1b}[2J?\nSay.".to_owned();
    let asked = Asked::Question { text, options: vec![wild], multiple: false, allow_text: false };
    let approval = work.raises("1.1", asked).await;
    let sql = "SELECT CAST(question AS TEXT) FROM approvals WHERE id = $1";
    let kept: String = app.one(sql, vec![approval.into()]).await;
    let kept: Value = serde_json::from_str(&kept).unwrap();
    assert_eq!(kept["text"], "Which\u{fffd}[2J?\nSay.");
    assert_eq!(kept["options"][0]["label"], "Yes [31m, on");
    assert_eq!(kept["options"][0]["description"], "one\u{fffd}\ntwo");
}

#[tokio::test]
async fn a_question_that_no_one_could_answer_is_not_asked() {
    let app = TestApp::start().await;
    let work = working(&app).await;
    let Asked::Question { text, .. } = question() else { panic!() };
    let mute =
        Asked::Question { text: text.clone(), options: Vec::new(), multiple: false, allow_text: false };
    let twin = Choice { id: "a".to_owned(), label: "A".to_owned(), description: None };
    let twins =
        Asked::Question { text, options: vec![twin.clone(), twin], multiple: false, allow_text: true };
    work.asks("1.1", mute).await;
    work.asks("1.2", twins).await;
    let refused: Vec<_> = work.verdicts().await.iter().map(|verdict| verdict["allowed"].clone()).collect();
    assert_eq!((refused, work.turn_is().await.as_str()), (vec![json!(false); 2], "RUNNING"));
    assert!(work.messages().await[1].3.starts_with("The question was not asked: A question must have"));
}

#[tokio::test]
async fn requests_in_places_that_are_not_the_agents_are_refused() {
    let app = TestApp::start().await;
    let (work, other) = (working(&app).await, working(&app).await);
    for (conversation, turn) in [(other.conversation, None), (work.conversation, Some(other.turn))] {
        let refused = work.host.asks(conversation, turn, "1.1", question()).await.unwrap_err();
        assert_eq!(refused.code.as_str(), "NOT_FOUND");
    }
    for name in ["", "a\nb", &"x".repeat(201)] {
        let refused = work.host.asks(work.conversation, None, name, question()).await.unwrap_err();
        assert_eq!(refused.code.as_str(), "VALIDATION_FAILED");
    }
    let theirs = other.raises("1.1", question()).await;
    let stolen =
        approvals::plans::answer(&app.scope(), AgentId(work.host.agent), 1, ApprovalId(theirs)).await;
    assert_eq!(stolen.unwrap_err().code.as_str(), "NOT_FOUND");
    let told = work
        .host
        .tell(async |tx, from| approvals::reports::delivered(tx, from, ApprovalId(theirs), false).await);
    assert_eq!(told.await.unwrap_err().code.as_str(), "NOT_FOUND");
    assert_eq!(other.approval(theirs).await["status"], "PENDING");
}

#[tokio::test]
async fn a_decision_reaches_the_agent_of_an_archived_conversation() {
    let app = TestApp::start().await;
    let work = working(&app).await;
    let id = work.raises("1.1", question()).await;
    app.execute("UPDATE conversations SET status = 'ARCHIVED' WHERE id = $1", vec![work.conversation.into()])
        .await;
    work.decides(id, json!({ "text": "later" })).await;
    assert_eq!(work.conversation_is().await, "ARCHIVED");
    assert_eq!(work.of_kind("ANSWER").await.len(), 1);
    work.delivered(id).await;
    assert_eq!(work.turn_is().await, "RUNNING");
}

#[tokio::test]
async fn a_verdicts_comment_without_a_place_is_the_next_turn() {
    let app = TestApp::start().await;
    let work = working(&app).await;
    let told = async |id: i64| {
        let told = work
            .host
            .tell(async |tx, from| approvals::reports::delivered(tx, from, ApprovalId(id), true).await);
        told.await.unwrap();
    };
    let plain = work.raises("1.1", run("make")).await;
    work.decides(plain, json!({ "options": ["approve"] })).await;
    told(plain).await;
    let denied = work.raises("1.2", run("make install")).await;
    work.decides(denied, json!({ "options": ["deny"], "text": "Use staging." })).await;
    told(denied).await;
    told(denied).await;
    assert_eq!(work.turn_is().await, "RUNNING");
    assert!(work.approval(denied).await["deliveredAt"].is_string(), "the verdict has arrived");
    assert_eq!(work.host.given().await, [work.turn], "one turn at a time");
    work.host.turn_ended(work.turn, TurnOutcome::Done).await;
    let given = work.host.given().await;
    assert_eq!(given.len(), 2, "and the plain verdict has nothing left to tell");
    let plan = work.host.takes(given[1]).await;
    let told = "About your request: Run make install\noperator did not allow it. You know this already; the comment: Use staging.";
    assert_eq!(plan.prompt, [Part::Text { author: Some("operator".to_owned()), text: told.to_owned() }]);
    let last = work.messages().await.pop().unwrap();
    assert_eq!(last, message("USER", "TEXT", "DELIVERED", "Denied: Run make install\nUse staging."));
}

#[tokio::test]
async fn a_late_approval_allows_the_action_once_in_the_next_launch() {
    let app = TestApp::start().await;
    let work = working(&app).await;
    let approved = work.raises("1.1", run("make")).await;
    let denied = work.raises("1.2", run("make install")).await;
    work.decides(approved, json!({ "options": ["approve"] })).await;
    work.decides(denied, json!({ "options": ["deny"] })).await;
    work.host.ended(EndReason::Killed).await;
    let host = work.host.relaunched().await;
    let turn = host.given().await[0];
    let plan = host.takes(turn).await;
    assert!(format!("{plan:?}").contains("operator allowed it"), "{plan:?}");
    let elsewhere = app.conversation(host.agent).await;
    let other = post(&app, elsewhere).await;
    host.takes(other).await;
    let next = Working { host, conversation: work.conversation, turn };
    host.asks(elsewhere, Some(other), "2.1", run("make")).await.unwrap();
    next.asks("2.2", run("make clean")).await;
    next.asks("2.3", run("make install")).await;
    assert_eq!(next.verdicts().await, [] as [Value; 0], "another conversation, another action, a denied one");
    next.asks("2.4", run("make")).await;
    let allowed = json!({ "kind": "VERDICT", "request": "2.4", "allowed": true });
    assert_eq!(next.verdicts().await, [allowed]);
    let audited = "SELECT CAST(changes AS TEXT) FROM audit_lines WHERE operation = 'judgeAction' AND outcome = 'ALLOWED'";
    let audited: Vec<String> = app.column(audited).await;
    assert!(audited.len() == 1 && audited[0].contains("approval_id"), "{audited:?}");
    next.asks("2.5", run("make")).await;
    assert_eq!(next.verdicts().await.len(), 1, "once");
    let pending: i64 = app.one("SELECT COUNT(*) FROM approvals WHERE status = 'PENDING'", vec![]).await;
    assert_eq!(pending, 4, "the others are asked");
}

#[tokio::test]
async fn an_expired_or_older_approval_allows_nothing() {
    // How long the agent's requests stay open, how long ago this one was made, and whether another launch came in
    // between.
    for (stands, minutes, is_earlier) in [
        (None::<u32>, 59, false),
        (None, 61, false),
        (Some(5), 6, false),
        (Some(120), 119, false),
        (None, 1, true),
    ] {
        let app = TestApp::start().await;
        let work = working(&app).await;
        let patience = "UPDATE agents SET approval_timeout_minutes = $1 WHERE id = $2";
        app.execute(patience, vec![stands.map(i64::from).into(), work.host.agent.into()]).await;
        let approved = work.raises("1.1", run("make")).await;
        work.decides(approved, json!({ "options": ["approve"] })).await;
        work.host.ended(EndReason::Killed).await;
        let mut host = work.host.launched().await;
        app.clock.advance(Duration::from_mins(minutes));
        if is_earlier {
            host.started().await;
            host.ended(EndReason::Killed).await;
            host = host.launched().await;
        }
        host.started().await;
        let turn = host.given().await[0];
        host.takes(turn).await;
        let next = Working { host, conversation: work.conversation, turn };
        next.asks("2.1", run("make")).await;
        let is_allowed = minutes < u64::from(stands.unwrap_or(60)) && !is_earlier;
        assert_eq!(
            next.verdicts().await.len(),
            usize::from(is_allowed),
            "{stands:?}, {minutes}, {is_earlier}"
        );
    }
}
