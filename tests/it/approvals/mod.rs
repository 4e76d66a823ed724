//! Approvals: who sees them, who decides them, and that each is decided once.

pub mod asked;
mod risk_rules;

use std::time::Duration;

use futures::{StreamExt, future::join_all};
use muster::{
    base::{
        enums::ApprovalKind,
        ids::{AgentId, ConversationId, OrgId},
    },
    core::access::Caller,
    domain::approvals::{self, Choice, NewApproval, Question, ToolRequest, WaitingRequest},
};
use serde_json::{Value, json};

use crate::harness::{Actor, Answer, TestApp, is_postgres, until};

/// Raises an approval as an agent would.
pub async fn raise(app: &TestApp, new: NewApproval) -> i64 {
    let tx = app.scope().begin().await.unwrap();
    let id = approvals::raise(&tx, new).await.unwrap();
    tx.commit().await.unwrap();
    id.0
}

/// The agent's first launch waits for the decision.
fn waiting(app: &TestApp) -> WaitingRequest {
    WaitingRequest { generation: 0, request: app.name("request") }
}

fn choice(id: &str, label: &str) -> Choice {
    Choice { id: id.into(), label: label.into(), description: None }
}

fn question(multiple: bool, allow_text: bool) -> NewApproval {
    let options = vec![choice("air", "By air"), choice("sea", "By sea"), choice("rail", "By rail")];
    let question = Question { text: "How should it go?".into(), options, multiple, allow_text };
    NewApproval { question: Some(question), ..NewApproval::new(ApprovalKind::Question, "Route") }
}

fn action() -> NewApproval {
    let input = json!({ "to": "port@example.com", "password": "canary" });
    let request = ToolRequest { tool: "send_mail".into(), input };
    NewApproval {
        request: Some(request),
        risk: Some(70),
        ..NewApproval::new(ApprovalKind::Action, "Send mail")
    }
}

fn path(app: &TestApp, id: i64, verb: &str) -> String {
    format!("/v1/org/{}/approval/{id}/{verb}", app.org)
}

async fn send(app: &TestApp, actor: &Actor, id: i64, body: Value) -> Answer {
    actor.patch(&path(app, id, "answer"), body).await
}

async fn list(app: &TestApp, only_pending: bool) -> Vec<i64> {
    let path = format!("/v1/org/{}/approval?page=1&limit=50&only_pending={only_pending}", app.org);
    let page = app.viewer.get(&path).await.expect(200);
    page["data"].as_array().unwrap().iter().map(|approval| approval["id"].as_i64().unwrap()).collect()
}

#[tokio::test]
async fn approvals_are_found_by_every_word() {
    let (app, agent, _) = TestApp::with_conversation().await;
    let body = Some("Über den Kai, 100%".to_owned());
    let [mail, route] = [
        raise(&app, NewApproval { agent_id: Some(AgentId(agent)), ..action() }).await,
        raise(&app, NewApproval { body, ..NewApproval::new(ApprovalKind::Question, "Route nach Köln") })
            .await,
    ];
    let name: String = app.one("SELECT name FROM agents WHERE id = $1", vec![agent.into()]).await;
    let query = "query($o: Id!, $q: String) { approvalFeed(orgId: $o, search: $q) { total data { id } } }";
    let digest: String =
        app.one("SELECT request ->> 'digest' FROM approvals WHERE id = $1", vec![mail.into()]).await;
    let of_agent = format!("mail {}", name.to_uppercase());
    let cases: [(&str, &[i64]); 12] = [
        ("SEND port@EXAMPLE.com", &[mail]),
        ("send_mail", &[mail]),
        (&of_agent, &[mail]),
        ("koln", &[route]),
        ("route kai", &[route]),
        ("100%", &[route]),
        ("Über", &[route]),
        (&digest, &[]),
        ("digest", &[]),
        ("mail kai", &[]),
        ("canary", &[]),
        ("m%l", &[]),
    ];
    for (search, found) in cases {
        let answer = app.viewer.gql(query, json!({ "o": app.org, "q": search })).await.data();
        let feed = &answer["approvalFeed"];
        let ids: Vec<i64> =
            feed["data"].as_array().unwrap().iter().map(|one| one["id"].as_i64().unwrap()).collect();
        assert_eq!((ids.as_slice(), &feed["total"]), (found, &json!(found.len())), "{search}");
    }
}

#[tokio::test]
async fn a_record_names_its_agent_and_hides_secrets() {
    let (app, agent, conversation) = TestApp::with_conversation().await;
    let new = NewApproval {
        agent_id: Some(AgentId(agent)),
        conversation_id: Some(ConversationId(conversation)),
        message_seq: Some(7),
        ..action()
    };
    let id = raise(&app, new).await;
    let page =
        app.viewer.get(&format!("/v1/org/{}/approval?page=1&limit=5&only_pending=true", app.org)).await;
    let page = page.expect(200);
    assert_eq!((&page["total"], &page["page"], &page["limit"]), (&json!(1), &json!(1), &json!(5)));
    let record = &page["data"][0];
    assert_eq!(record["id"], id);
    assert_eq!(record["agent"]["id"], agent);
    assert!(record["agent"]["name"].is_string() && record["agent"]["avatar_url"].is_null());
    let code: String =
        app.one("SELECT ref FROM conversations WHERE id = $1", vec![conversation.into()]).await;
    assert_eq!(record["conversation_ref"], code);
    assert_eq!(record["request"]["tool"], "send_mail");
    assert_eq!(record["request"]["input"], json!({ "to": "port@example.com", "password": "[removed]" }));
    assert_eq!(record["question"]["options"][1]["id"], "deny");
    assert!(record["answer"].is_null() && record["decided_by"].is_null() && record["outcome"].is_null());
}

#[tokio::test]
async fn the_list_is_newest_first_then_by_id_and_can_hide_ended_ones() {
    let app = TestApp::start().await;
    let (first, second) = (raise(&app, action()).await, raise(&app, action()).await);
    app.clock.advance(Duration::from_secs(1));
    let third = raise(&app, question(false, false)).await;
    assert_eq!(list(&app, false).await, [third, first, second]);
    app.operator.patch(&path(&app, first, "resolve"), Value::Null).await.expect(200);
    assert_eq!(list(&app, false).await, [third, first, second]);
    assert_eq!(list(&app, true).await, [third, second]);
    let missing = app.viewer.get(&format!("/v1/org/{}/approval?page=1&limit=201", app.org)).await;
    assert_eq!(missing.violations(), [("limit", "TOO_LARGE"), ("only_pending", "REQUIRED")]);
}

#[tokio::test]
async fn operator_resolves_and_dismisses_once() {
    let app = TestApp::start().await;
    for (verb, status, outcome) in [("resolve", "RESOLVED", "MANUAL"), ("dismiss", "DISMISSED", "DISMISSED")]
    {
        let id = raise(&app, NewApproval::new(ApprovalKind::ChannelError, "The mailbox is full")).await;
        app.clock.advance(Duration::from_secs(5));
        let record = app.operator.patch(&path(&app, id, verb), Value::Null).await.expect(200);
        assert_eq!((&record["status"], &record["outcome"]), (&json!(status), &json!(outcome)));
        let operator = json!({ "id": app.operator.user, "name": "operator", "kind": "USER" });
        assert_eq!(record["decided_by"], operator);
        assert_eq!(record["decided_via"], "REST");
        assert_eq!(record["resolved_at"], record["updated_at"]);
        assert_ne!(record["resolved_at"], record["created_at"]);
        for again in ["resolve", "dismiss"] {
            let refused = app.owner.patch(&path(&app, id, again), Value::Null).await;
            assert_eq!(refused.problem(), (409, "APPROVAL_NOT_PENDING"));
            assert_eq!(refused.body["details"]["status"], status);
        }
        let refused = send(&app, &app.owner, id, json!({ "text": "late" })).await;
        assert_eq!(refused.problem(), (409, "APPROVAL_NOT_PENDING"));
    }
}

#[tokio::test]
async fn a_comment_and_the_face_are_kept() {
    let app = TestApp::start().await;
    let id = raise(&app, action()).await;
    let mutation = "mutation($o: Id!, $i: Id!) { dismissApproval(orgId: $o, id: $i, comment: \" moot \") { comment decidedVia } }";
    let data = app.admin.gql(mutation, json!({ "o": app.org, "i": id })).await.data();
    assert_eq!(data["dismissApproval"], json!({ "comment": "moot", "decidedVia": "GRAPHQL" }));
    let id = raise(&app, action()).await;
    let token = app.token(&["approval.resolve"]).await;
    let record = token.patch(&path(&app, id, "resolve"), Value::Null).await.expect(200);
    assert_eq!(record["decided_by"]["kind"], "SERVICE_TOKEN");
}

#[tokio::test]
async fn a_question_is_answered_by_id_or_label_and_ids_are_kept() {
    let app = TestApp::start().await;
    let id = raise(&app, question(true, true)).await;
    let body = json!({ "options": ["By rail", "air", " air "], "text": " soon " });
    let record = send(&app, &app.operator, id, body).await.expect(200);
    assert_eq!(record["answer"], json!({ "options": ["air", "rail"], "text": "soon" }));
    assert_eq!((&record["status"], &record["outcome"]), (&json!("RESOLVED"), &json!("ANSWERED")));
    let id = raise(&app, question(false, true)).await;
    let record = send(&app, &app.operator, id, json!({ "text": "by truck" })).await.expect(200);
    assert_eq!(record["answer"], json!({ "options": [], "text": "by truck" }));
}

#[tokio::test]
async fn an_answer_that_does_not_fit_is_refused_and_changes_nothing() {
    let app = TestApp::start().await;
    let id = raise(&app, question(false, false)).await;
    let cases: [(Value, &[(&str, &str)]); 10] = [
        (json!({}), &[("/options", "REQUIRED")]),
        (json!({ "options": [] }), &[("/options", "REQUIRED")]),
        (json!({ "options": null, "text": null }), &[("/options", "REQUIRED")]),
        (
            json!({ "options": ["air", "truck", "ship"] }),
            &[("/options/1", "NOT_ALLOWED"), ("/options/2", "NOT_ALLOWED")],
        ),
        (json!({ "options": ["air", "sea"] }), &[("/options", "NOT_ALLOWED")]),
        (json!({ "options": ["air"], "text": "please" }), &[("/text", "NOT_ALLOWED")]),
        (json!({ "options": ["air"], "text": " " }), &[("/text", "TOO_SHORT")]),
        (json!({ "options": "air" }), &[("/options", "WRONG_TYPE")]),
        (json!({ "options": [""] }), &[("/options/0", "TOO_SHORT")]),
        (json!({ "option": ["air"] }), &[("/option", "UNKNOWN_KEY")]),
    ];
    for (body, expected) in cases {
        assert_eq!(send(&app, &app.operator, id, body.clone()).await.violations(), expected, "{body}");
    }
    let refused = send(&app, &app.operator, id, json!({ "options": ["truck"] })).await;
    let detail = refused.body["detail"].as_str().unwrap();
    assert!(detail.contains("`air`, `sea`, `rail`"), "{detail}");
    assert_eq!(list(&app, true).await, [id]);
    let query = "mutation($o: Id!, $i: Id!) { answerApproval(orgId: $o, id: $i, input: { options: [\"truck\"] }) { id } }";
    let refused = app.operator.gql(query, json!({ "o": app.org, "i": id })).await;
    assert_eq!(refused.body["errors"][0]["extensions"]["errors"][0]["pointer"], "/input/options/0");
    let nothing = send(&app, &app.operator, 999_999, json!({ "options": ["air"] })).await;
    assert_eq!(nothing.problem(), (404, "NOT_FOUND"));
}

#[tokio::test]
async fn an_action_is_approved_or_denied_and_no_alert_answered() {
    let app = TestApp::start().await;
    for (said, outcome) in [("approve", "APPROVED"), ("Deny", "DENIED")] {
        let id = raise(&app, action()).await;
        let alone = send(&app, &app.operator, id, json!({ "text": "hm" })).await;
        assert_eq!(alone.violations(), [("/options", "REQUIRED")]);
        let both = send(&app, &app.operator, id, json!({ "options": ["approve", "deny"] })).await;
        assert_eq!(both.violations(), [("/options", "NOT_ALLOWED")]);
        let record =
            send(&app, &app.operator, id, json!({ "options": [said], "text": "why" })).await.expect(200);
        assert_eq!((&record["status"], &record["outcome"]), (&json!("RESOLVED"), &json!(outcome)));
        assert_eq!(record["answer"]["text"], "why");
    }
    for kind in ApprovalKind::ALL {
        if matches!(kind, ApprovalKind::Question | ApprovalKind::Action) {
            continue;
        }
        let id = raise(&app, NewApproval::new(*kind, "Look at this")).await;
        let refused = send(&app, &app.operator, id, json!({ "text": "done" })).await;
        assert_eq!(refused.problem(), (409, "APPROVAL_NOT_A_QUESTION"));
        assert_eq!(refused.body["details"]["kind"], kind.as_str());
    }
}

#[tokio::test]
async fn when_two_answer_at_once_exactly_one_decides() {
    let (app, agent) = TestApp::with_agent().await;
    for _ in 0..5 {
        let (agent_id, waiting) = (Some(AgentId(agent)), Some(waiting(&app)));
        let id = raise(&app, NewApproval { agent_id, waiting, ..question(false, false) }).await;
        let actors = [&app.owner, &app.operator, &app.admin, &app.owner, &app.operator, &app.admin];
        let answers = actors.iter().zip(["air", "sea", "rail", "sea", "rail", "air"]);
        let answers = answers.map(|(actor, option)| send(&app, actor, id, json!({ "options": [option] })));
        let answers = join_all(answers).await;
        let (won, lost): (Vec<_>, Vec<_>) = answers.iter().partition(|answer| answer.status == 200);
        assert_eq!((won.len(), lost.len()), (1, 5));
        assert!(lost.iter().all(|answer| answer.problem() == (409, "APPROVAL_NOT_PENDING")));
        let commands: i64 = app.one("SELECT COUNT(*) FROM commands WHERE kind = 'ANSWER'", vec![]).await;
        let lines: i64 =
            app.one("SELECT COUNT(*) FROM audit_lines WHERE operation = 'answerApproval'", vec![]).await;
        assert_eq!(commands, lines);
        let last: i64 = app
            .one(
                "SELECT COUNT(*) FROM audit_lines WHERE target_kind = 'approval' AND target_id = $1",
                vec![id.into()],
            )
            .await;
        assert_eq!(last, 1);
    }
}

#[tokio::test]
async fn the_last_decision_reopens_the_conversation() {
    let (app, agent, conversation) = TestApp::with_conversation().await;
    let asked = |new: NewApproval| NewApproval {
        agent_id: Some(AgentId(agent)),
        conversation_id: Some(ConversationId(conversation)),
        ..new
    };
    let first =
        raise(&app, asked(NewApproval { waiting: Some(waiting(&app)), ..question(false, true) })).await;
    let second = raise(&app, asked(NewApproval { waiting: Some(waiting(&app)), ..action() })).await;
    let status = || async {
        app.one::<String>("SELECT status FROM conversations WHERE id = $1", vec![conversation.into()]).await
    };
    assert_eq!(status().await, "PENDING");
    send(&app, &app.operator, first, json!({ "options": ["air"] })).await.expect(200);
    assert_eq!(status().await, "PENDING");
    app.operator.patch(&path(&app, second, "dismiss"), Value::Null).await.expect(200);
    assert_eq!(status().await, "OPEN");
    let told: Vec<String> =
        app.column("SELECT CAST(payload AS TEXT) FROM commands WHERE kind = 'ANSWER' ORDER BY id").await;
    let told: Vec<Value> = told.iter().map(|payload| serde_json::from_str(payload).unwrap()).collect();
    let answer = |id| json!({ "kind": "ANSWER", "approval_id": id });
    assert_eq!(told, [answer(first), answer(second)]);
    let alert = raise(&app, asked(NewApproval::new(ApprovalKind::CostGuard, "Much spent"))).await;
    app.operator.patch(&path(&app, alert, "resolve"), Value::Null).await.expect(200);
    let told: i64 = app.one("SELECT COUNT(*) FROM commands WHERE kind = 'ANSWER'", vec![]).await;
    assert_eq!(told, 2, "an alert was not the agent's question");
}

#[tokio::test]
async fn a_conversation_waits_until_its_decision_is_made() {
    let (app, agent, conversation) = TestApp::with_conversation().await;
    let new = NewApproval {
        agent_id: Some(AgentId(agent)),
        conversation_id: Some(ConversationId(conversation)),
        waiting: Some(waiting(&app)),
        ..action()
    };
    let id = raise(&app, new).await;
    let variables = json!({ "o": app.org, "c": conversation });
    let post = "mutation($o: Id!, $c: Id!) { postMessage(orgId: $o, conversationId: $c, input: { text: \"And?\" }) { id } }";
    let set = async |status: &str| {
        let edit = format!(
            "mutation($o: Id!, $c: Id!) {{ updateConversation(orgId: $o, id: $c, input: {{ status: {status} }}) {{ status }} }}"
        );
        app.operator.gql(&edit, variables.clone()).await.data()["updateConversation"]["status"].clone()
    };
    let status = || async {
        app.one::<String>("SELECT status FROM conversations WHERE id = $1", vec![conversation.into()]).await
    };
    app.operator.gql(post, variables.clone()).await.data();
    assert_eq!(status().await, "PENDING");
    assert_eq!(set("OPEN").await, "PENDING");
    assert_eq!(set("RESOLVED").await, "RESOLVED");
    app.operator.gql(post, variables.clone()).await.data();
    assert_eq!(status().await, "PENDING", "opened again by the message");
    set("RESOLVED").await;
    assert_eq!(set("OPEN").await, "PENDING");
    send(&app, &app.operator, id, json!({ "options": ["approve"] })).await.expect(200);
    assert_eq!(status().await, "OPEN");
}

#[tokio::test]
async fn an_undecided_approval_expires_and_fails_closed() {
    let (app, agent, conversation) = TestApp::with_conversation().await;
    let soon = Some(app.clock.now().plus(Duration::from_mins(1)));
    let new = NewApproval {
        agent_id: Some(AgentId(agent)),
        conversation_id: Some(ConversationId(conversation)),
        expires_at: soon,
        waiting: Some(waiting(&app)),
        ..action()
    };
    let id = raise(&app, new).await;
    let lasting = raise(&app, action()).await;
    assert_eq!(approvals::expire_due(&app.core).await.unwrap(), 0);
    app.clock.advance(Duration::from_mins(1));
    assert_eq!(approvals::expire_due(&app.core).await.unwrap(), 1);
    assert_eq!(approvals::expire_due(&app.core).await.unwrap(), 0);
    let query = "query($o: Id!, $i: Id!) { approval(orgId: $o, id: $i) { status outcome decidedVia decidedBy { id kind } resolvedAt } }";
    let seen = app.viewer.gql(query, json!({ "o": app.org, "i": id })).await.data();
    let expired = json!({
        "status": "EXPIRED", "outcome": "EXPIRED", "decidedVia": "SYSTEM",
        "decidedBy": { "id": null, "kind": "SYSTEM" }, "resolvedAt": "2026-06-01T12:01:00.000Z",
    });
    assert_eq!(seen["approval"], expired);
    assert_eq!(list(&app, true).await, [lasting]);
    let by: Vec<String> =
        app.column("SELECT actor_kind FROM audit_lines WHERE operation = 'expireApproval'").await;
    assert_eq!(by, ["SYSTEM"]);
    assert_eq!(app.one::<i64>("SELECT COUNT(*) FROM commands WHERE kind = 'ANSWER'", vec![]).await, 1);
    let status: String =
        app.one("SELECT status FROM conversations WHERE id = $1", vec![conversation.into()]).await;
    assert_eq!(status, "OPEN");
}

#[tokio::test]
async fn an_overdue_approval_reads_the_same_around_the_round() {
    let (app, _, conversation) = TestApp::with_conversation().await;
    let soon = Some(app.clock.now().plus(Duration::from_mins(1)));
    let new = NewApproval {
        conversation_id: Some(ConversationId(conversation)),
        expires_at: soon,
        ..question(false, true)
    };
    let id = raise(&app, new).await;
    app.clock.advance(Duration::from_secs(61));
    let late = send(&app, &app.operator, id, json!({ "text": "late" })).await;
    assert_eq!(late.problem(), (409, "APPROVAL_NOT_PENDING"));
    assert_eq!(late.body["details"]["status"], "EXPIRED");
    let query = "query($o: Id!, $i: Id!, $c: Id!) { approval(orgId: $o, id: $i) { status outcome decidedVia decidedBy { id \
                 name kind } resolvedAt expiresAt } conversation(orgId: $o, id: $c) { pendingApprovals } }";
    let ask = || app.viewer.gql(query, json!({ "o": app.org, "i": id, "c": conversation }));
    let before = ask().await.data();
    assert_eq!(before["approval"]["status"], "EXPIRED");
    assert_eq!(before["conversation"]["pendingApprovals"], 0);
    assert_eq!((list(&app, true).await, list(&app, false).await), (vec![], vec![id]));
    let status: String = app.one("SELECT status FROM approvals WHERE id = $1", vec![id.into()]).await;
    assert_eq!(status, "PENDING", "reading and being refused change nothing");
    app.clock.advance(Duration::from_secs(5));
    assert_eq!(approvals::expire_due(&app.core).await.unwrap(), 1);
    assert_eq!(ask().await.data(), before);
}

#[tokio::test]
async fn overdue_approvals_end_a_few_at_a_time() {
    let app = TestApp::start().await;
    let soon = app.clock.now().plus(Duration::from_mins(1));
    let tx = app.scope().begin().await.unwrap();
    for n in 0..240 {
        let expires_at = Some(soon.plus(Duration::from_millis(n)));
        approvals::raise(&tx, NewApproval { expires_at, ..action() }).await.unwrap();
    }
    tx.commit().await.unwrap();
    app.clock.advance(Duration::from_mins(2));
    // The one in the middle can't end. Those that ended before it stay ended.
    let middle: i64 =
        app.one("SELECT id FROM approvals ORDER BY expires_at LIMIT 1 OFFSET 119", vec![]).await;
    let (stop, go) = if is_postgres() {
        let stop = "CREATE FUNCTION stop() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'stop'; END $$";
        app.execute(stop, vec![]).await;
        ("FOR EACH ROW WHEN (NEW.id = ID) EXECUTE FUNCTION stop()", "DROP TRIGGER stop ON approvals")
    } else {
        ("WHEN NEW.id = ID BEGIN SELECT RAISE(ABORT, 'stop'); END", "DROP TRIGGER stop")
    };
    let stop = format!("CREATE TRIGGER stop BEFORE UPDATE ON approvals {stop}");
    app.execute(&stop.replace("ID", &middle.to_string()), vec![]).await;
    assert!(approvals::expire_due(&app.core).await.is_err());
    let ended = "SELECT COUNT(*) FROM approvals WHERE status = 'EXPIRED'";
    assert_eq!(app.one::<i64>(ended, vec![]).await, 100);
    app.execute(go, vec![]).await;
    assert_eq!(approvals::expire_due(&app.core).await.unwrap(), 140);
    assert_eq!(app.one::<i64>(ended, vec![]).await, 240);
    let lines = "SELECT COUNT(*) FROM audit_lines WHERE operation = 'expireApproval'";
    assert_eq!(app.one::<i64>(lines, vec![]).await, 240);
}

#[tokio::test]
async fn subscribers_hear_of_each_change_in_their_organization() {
    let app = TestApp::start().await;
    let mut request = muster::core::Request::system(&app.core);
    request.caller = app.caller(&app.viewer).await;
    let request = std::sync::Arc::new(request);
    let watch = format!("subscription {{ approvalChanged(orgId: {}) {{ id status }} }}", app.org);
    let mut changes = app
        .service
        .graphql
        .schema
        .execute_stream(
            async_graphql::Request::new(watch)
                .data(request)
                .data(std::sync::Arc::new(muster::read::Reading::default())),
        )
        .boxed();
    let acts = async {
        // The observer counts too.
        until("it is listening", async || {
            app.core.events.subscribe(OrgId(app.org), &Caller::System).callers().len() == 2
        })
        .await;
        let theirs = app.other_scope().begin().await.unwrap();
        approvals::raise(&theirs, action()).await.unwrap();
        theirs.commit().await.unwrap();
        let id = raise(&app, action()).await;
        app.operator.patch(&path(&app, id, "resolve"), Value::Null).await.expect(200);
        id
    };
    let heard = async { (changes.next().await.unwrap(), changes.next().await.unwrap()) };
    let (id, (raised, resolved)) = tokio::join!(acts, heard);
    let data = |answer: async_graphql::Response| answer.into_result().unwrap().data.into_json().unwrap();
    // The record is read when the event arrives, so by then it may have changed again.
    assert_eq!(data(raised)["approvalChanged"]["id"], id);
    assert_eq!(data(resolved)["approvalChanged"], json!({ "id": id, "status": "RESOLVED" }));
}
