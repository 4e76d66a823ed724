//! Taking a conversation over from the agent and handing it back: who speaks, what the agent is told, and when it starts.

use std::time::Duration;

use futures::future::join_all;
use muster::slices::conversations;
use muster_protocol::{
    event::{Asked, Content, EndReason, TurnOutcome},
    plan::TurnPlan,
};
use serde_json::{Value, json};

use crate::{
    harness::{Actor, Answer, Host, Socket, TestApp, spending::CALL, until},
    running::House,
    turns::{state, statuses, texts, write},
};

const SHOWN: &str = "id takenOverBy takenOverByName takenOverAt status openTurns { id state }";

async fn act(app: &TestApp, actor: &Actor, verb: &str, conversation: i64) -> Answer {
    let query =
        format!("mutation($o: Id!, $c: Id!) {{ {verb}Conversation(orgId: $o, id: $c) {{ {SHOWN} }} }}");
    actor.gql(&query, json!({ "o": app.org, "c": conversation })).await
}

pub async fn take_over(app: &TestApp, actor: &Actor, conversation: i64) -> Value {
    act(app, actor, "takeOver", conversation).await.data()["takeOverConversation"].clone()
}

async fn hand_back(app: &TestApp, actor: &Actor, conversation: i64) -> Value {
    act(app, actor, "handBack", conversation).await.data()["handBackConversation"].clone()
}

async fn post(app: &TestApp, actor: &Actor, conversation: i64, text: &str) -> Answer {
    let query = "mutation($o: Id!, $c: Id!, $t: String!) { postMessage(orgId: $o, conversationId: $c, input: { text: $t }) { \
                 role status authorUserId authorName viaChannelId delivery { status attempts } turn { id state } } }";
    actor.gql(query, json!({ "o": app.org, "c": conversation, "t": text })).await
}

/// The events of a thread, as people read them.
async fn events(app: &TestApp, conversation: i64) -> Vec<String> {
    let sql = format!(
        "SELECT CAST(content AS TEXT) FROM messages WHERE conversation_id = {conversation} AND kind = 'EVENT' ORDER BY seq"
    );
    let contents: Vec<String> = app.column(&sql).await;
    let content = |text: &String| serde_json::from_str::<Value>(text).unwrap();
    contents
        .iter()
        .map(content)
        .map(|it| format!("{}: {}", it["event"].as_str().unwrap(), it["text"].as_str().unwrap()))
        .collect()
}

fn told(plan: &TurnPlan) -> Vec<&str> {
    texts(&plan.prompt)
}

/// A running agent and a conversation with it.
async fn begun(app: &TestApp) -> (Host<'_>, i64) {
    let host = app.running_agent().await;
    (host, app.conversation(host.agent).await)
}

#[tokio::test]
async fn the_holder_answers_and_the_agent_is_told_everything_with_its_next_turn() {
    let app = TestApp::start().await;
    let (host, conversation) = begun(&app).await;
    let first = write(&app, conversation, "where is my parcel?").await;
    host.takes(first).await;
    host.says(conversation, Some(first), "m1", Content::Text { text: "I look".to_owned() }).await.unwrap();
    let shown = take_over(&app, &app.admin, conversation).await;
    assert_eq!((&shown["takenOverBy"], &shown["takenOverByName"]), (&json!(app.admin.user), &json!("admin")));
    assert!(shown["takenOverAt"].is_string());
    assert_eq!(host.commands().await.last().unwrap()["kind"], "CANCEL", "what runs is cancelled");
    host.turn_ended(first, TurnOutcome::Cancelled).await;
    assert_eq!(state(&app, first).await, "CANCELLED");

    let said = post(&app, &app.admin, conversation, "it is in Graz").await.data()["postMessage"].clone();
    assert_eq!((&said["role"], &said["status"]), (&json!("ASSISTANT"), &json!("DELIVERED")));
    assert_eq!((&said["authorUserId"], &said["authorName"]), (&json!(app.admin.user), &json!("admin")));
    assert_eq!((&said["viaChannelId"], &said["delivery"]), (&Value::Null, &Value::Null), "it has no channel");
    // A program that brings what customers write is not refused: nothing of it may be lost.
    let program = app.token(&["agent.interact", "agent.output.view"]).await;
    let inbound = post(&app, &program, conversation, "and when?").await.data()["postMessage"].clone();
    assert_eq!((&inbound["role"], &inbound["status"]), (&json!("USER"), &json!("PENDING")));
    let next = inbound["turn"]["id"].as_i64().unwrap();
    assert_eq!(host.given().await, [first], "the agent is quiet");
    assert!(host.plan(next).await.is_err(), "even if its host asks");
    host.started().await;
    assert_eq!(host.given().await, [first]);
    post(&app, &app.admin, conversation, "tomorrow").await.data();
    assert_eq!(host.given().await, [first]);

    let shown = hand_back(&app, &app.admin, conversation).await;
    assert_eq!((&shown["takenOverBy"], &shown["takenOverAt"]), (&Value::Null, &Value::Null));
    assert_eq!(host.given().await, [first], "a person has answered, so nobody waits");
    assert_eq!(shown["openTurns"], json!([]), "nothing is to come before somebody writes");
    // Not even after it was launched again.
    host.act("stop").await;
    host.ended(EndReason::Stopped).await;
    let host = host.launched().await;
    host.started().await;
    assert_eq!(host.given().await, [0_i64; 0]);
    assert!(host.plan(next).await.is_err());
    assert_eq!(write(&app, conversation, "thank you").await, next);
    assert_eq!(host.given().await, [next]);
    let plan = host.takes(next).await;
    assert_eq!(
        told(&plan),
        ["(said in your place) it is in Graz", "and when?", "(said in your place) tomorrow", "thank you"]
    );
    assert!(statuses(&app, conversation).await.iter().all(|status| status == "DELIVERED"));
    assert_eq!(
        events(&app, conversation).await,
        [
            "TAKEN_OVER: admin took over from the agent.",
            "HANDED_BACK: admin handed the conversation back to the agent."
        ]
    );
    let audit = "SELECT operation || ' ' || actor_name || ' ' || CAST(changes AS TEXT) FROM audit_lines \
                 WHERE operation IN ('takeOverConversation', 'handBackConversation') ORDER BY id";
    let audit: Vec<String> = app.column(audit).await;
    assert_eq!(audit.len(), 2, "{audit:?}");
}

#[tokio::test]
async fn the_agent_starts_at_once_if_the_last_message_waits_for_an_answer() {
    let app = TestApp::start().await;
    let (host, conversation) = begun(&app).await;
    take_over(&app, &app.admin, conversation).await;
    post(&app, &app.admin, conversation, "hello").await.data();
    let program = app.token(&["agent.interact", "agent.output.view"]).await;
    let inbound = post(&app, &program, conversation, "are you there?").await.data();
    let turn = inbound["postMessage"]["turn"]["id"].as_i64().unwrap();
    hand_back(&app, &app.admin, conversation).await;
    assert_eq!(host.given().await, [turn]);
    assert_eq!(told(&host.takes(turn).await), ["(said in your place) hello", "are you there?"]);
}

#[tokio::test]
async fn what_the_holder_said_is_told_though_its_turn_was_cancelled() {
    let app = TestApp::start().await;
    let (host, conversation) = begun(&app).await;
    let cancel = async |turn: &Value| {
        let query = "mutation($o: Id!, $i: Id!) { cancelTurn(orgId: $o, id: $i) { state } }";
        let ended = app.operator.gql(query, json!({ "o": app.org, "i": turn })).await.data();
        assert_eq!(ended["cancelTurn"]["state"], "CANCELLED");
    };
    let say = async |text: &str| {
        post(&app, &app.admin, conversation, text).await.data()["postMessage"]["turn"]["id"].clone()
    };
    take_over(&app, &app.admin, conversation).await;
    cancel(&say("I promised a refund of 40").await).await;
    let next = say("and free shipping").await;
    hand_back(&app, &app.admin, conversation).await;
    let turn = write(&app, conversation, "what did we promise?").await;
    assert_eq!((json!(turn), host.given().await), (next, vec![turn]));
    let promised = "(said in your place) I promised a refund of 40";
    assert_eq!(
        told(&host.takes(turn).await),
        [promised, "(said in your place) and free shipping", "what did we promise?"]
    );
    host.turn_ended(turn, TurnOutcome::Done).await;

    // What somebody else wrote is cancelled, so nobody waits for an answer when it is handed back.
    take_over(&app, &app.admin, conversation).await;
    let both = say("by tomorrow").await;
    let program = app.token(&["agent.interact", "agent.output.view"]).await;
    post(&app, &program, conversation, "never mind").await.data();
    cancel(&both).await;
    let shown = hand_back(&app, &app.admin, conversation).await;
    assert_eq!((&shown["openTurns"], host.given().await), (&json!([]), vec![turn]));
    // A host that has it, and whose agent had not begun.
    let unseen = write(&app, conversation, "when?").await;
    let words = ["(said in your place) by tomorrow", "when?"];
    assert_eq!(told(&host.plan(unseen).await.unwrap()), words);
    let query = "mutation($o: Id!, $i: Id!) { cancelTurn(orgId: $o, id: $i) { id } }";
    app.operator.gql(query, json!({ "o": app.org, "i": unseen })).await.data();
    host.turn_ended(unseen, TurnOutcome::Cancelled).await;
    assert_eq!(host.given().await, [turn, unseen]);
    let last = write(&app, conversation, "hello?").await;
    assert_eq!(told(&host.takes(last).await), ["(said in your place) by tomorrow", "hello?"]);
}

#[tokio::test]
async fn a_turn_that_the_agent_never_got_waits_for_the_hand_back_though_a_limit_was_reached() {
    let app = TestApp::start().await;
    app.sets(json!({ "monthlyBudgetMicro": CALL })).await;
    let (host, conversation) = begun(&app).await;
    let (_, other) = host.works().await;
    // Its host opens a session for it while the other turn reaches the limit.
    let turn = write(&app, conversation, "are you there?").await;
    host.plan(turn).await.unwrap();
    host.runs_out().await;
    assert_eq!(state(&app, turn).await, "WAITING_LIMIT");
    take_over(&app, &app.admin, conversation).await;
    host.turn_ended(turn, TurnOutcome::Cancelled).await;
    assert_eq!(state(&app, turn).await, "QUEUED");
    hand_back(&app, &app.admin, conversation).await;
    assert_eq!(host.given().await, [other, turn], "nothing is left to spend");
    app.allows(json!({ "costMicro": 300_000 })).await;
    assert_eq!(host.given().await, [other, turn, turn]);
    assert_eq!(told(&host.takes(turn).await), ["are you there?"]);
}

#[tokio::test]
async fn a_message_that_the_take_over_cut_off_is_answered_after_handing_back() {
    let app = TestApp::start().await;
    let (host, conversation) = begun(&app).await;
    // The agent had it, and had said nothing.
    let cut = write(&app, conversation, "one").await;
    host.takes(cut).await;
    take_over(&app, &app.admin, conversation).await;
    hand_back(&app, &app.admin, conversation).await;
    assert_eq!(host.given().await, [cut], "the turn that was cancelled has not ended");
    host.turn_ended(cut, TurnOutcome::Cancelled).await;
    let given = host.given().await;
    let [_, again] = given[..] else { panic!("{given:?}") };
    assert_eq!(told(&host.takes(again).await), ["one"]);
    host.turn_ended(again, TurnOutcome::Done).await;

    // Its host had it, and the agent had not.
    let other = app.conversation(host.agent).await;
    let unseen = write(&app, other, "two").await;
    host.plan(unseen).await.unwrap();
    take_over(&app, &app.admin, other).await;
    host.turn_ended(unseen, TurnOutcome::Cancelled).await;
    assert_eq!(
        (state(&app, unseen).await.as_str(), statuses(&app, other).await[0].as_str()),
        ("QUEUED", "PENDING")
    );
    post(&app, &app.admin, other, "three").await.data();
    hand_back(&app, &app.admin, other).await;
    assert_eq!(write(&app, other, "four").await, unseen);
    assert_eq!(told(&host.takes(unseen).await), ["two", "(said in your place) three", "four"]);
}

#[tokio::test]
async fn a_message_that_the_agent_has_answered_in_spite_of_the_take_over_is_not_asked_again() {
    let app = TestApp::start().await;
    let (host, conversation) = begun(&app).await;
    let begin = async |conversation: i64, text: &str| {
        let turn = write(&app, conversation, text).await;
        host.takes(turn).await;
        take_over(&app, &app.admin, conversation).await;
        turn
    };
    // Handed back before it was told to stop: it has finished by then.
    let first = begin(conversation, "one").await;
    hand_back(&app, &app.admin, conversation).await;
    host.says(conversation, Some(first), "m1", Content::Text { text: "done".to_owned() }).await.unwrap();
    host.turn_ended(first, TurnOutcome::Done).await;
    assert_eq!(host.given().await, [first]);
    let next = write(&app, conversation, "two").await;
    assert_eq!(told(&host.takes(next).await), ["two"]);
    host.turn_ended(next, TurnOutcome::Done).await;

    // Somebody else has written since: only that is asked.
    let other = app.conversation(host.agent).await;
    let first = begin(other, "three").await;
    hand_back(&app, &app.admin, other).await;
    let next = write(&app, other, "four").await;
    host.turn_ended(first, TurnOutcome::Done).await;
    assert_eq!(told(&host.takes(next).await), ["four"]);
    host.turn_ended(next, TurnOutcome::Done).await;

    // It has finished, without a word, before it was handed back.
    let silent = app.conversation(host.agent).await;
    let first = begin(silent, "five").await;
    host.turn_ended(first, TurnOutcome::Done).await;
    hand_back(&app, &app.admin, silent).await;
    assert_eq!(host.given().await.last(), Some(&first));

    // It was handed back before the agent had begun.
    let late = app.conversation(host.agent).await;
    let first = write(&app, late, "six").await;
    host.plan(first).await.unwrap();
    take_over(&app, &app.admin, late).await;
    hand_back(&app, &app.admin, late).await;
    host.turn_started(first).await;
    host.turn_ended(first, TurnOutcome::Done).await;
    assert_eq!(statuses(&app, late).await[0], "DELIVERED");
}

#[tokio::test]
async fn a_turn_that_starts_or_ends_at_the_same_time_is_cancelled_or_waits() {
    let app = TestApp::start().await;
    let host = app.running_agent().await;
    for _ in 0..6 {
        let conversation = app.conversation(host.agent).await;
        let turn = write(&app, conversation, "one").await;
        let (_, plan) = tokio::join!(take_over(&app, &app.admin, conversation), host.plan(turn));
        let cancel = json!({ "kind": "CANCEL", "turn_id": turn });
        let is_cancelled = host.commands().await.contains(&cancel);
        match plan {
            Ok(_) => assert!(is_cancelled && state(&app, turn).await == "RUNNING"),
            Err(_) => assert!(!is_cancelled && state(&app, turn).await == "QUEUED"),
        }
    }
    for _ in 0..6 {
        let conversation = app.conversation(host.agent).await;
        let first = write(&app, conversation, "one").await;
        host.takes(first).await;
        let next = write(&app, conversation, "two").await;
        tokio::join!(take_over(&app, &app.admin, conversation), host.turn_ended(first, TurnOutcome::Done));
        assert_eq!((state(&app, first).await.as_str(), state(&app, next).await.as_str()), ("DONE", "QUEUED"));
        assert!(host.plan(next).await.is_err(), "even if it was sent just before");
        let before = host.given().await.iter().filter(|turn| **turn == next).count();
        hand_back(&app, &app.admin, conversation).await;
        assert_eq!(host.given().await.iter().filter(|turn| **turn == next).count(), before + 1);
        assert_eq!(told(&host.takes(next).await), ["two"]);
        host.turn_ended(next, TurnOutcome::Done).await;
    }
}

#[tokio::test]
async fn others_are_told_who_answers_and_may_take_it_over() {
    let app = TestApp::start().await;
    let (host, conversation) = begun(&app).await;
    assert_eq!(act(&app, &app.viewer, "takeOver", conversation).await.code(), "PERMISSION_DENIED");
    let program = app.token(&["agent.interact", "agent.output.view"]).await;
    let refused = act(&app, &program, "takeOver", conversation).await;
    assert_eq!(refused.code(), "PERMISSION_DENIED", "only a person answers in its place");
    assert_eq!(act(&app, &app.stranger, "takeOver", conversation).await.code(), "NOT_A_MEMBER");
    hand_back(&app, &app.operator, conversation).await;
    assert!(events(&app, conversation).await.is_empty(), "there was nothing to hand back");

    let at = take_over(&app, &app.admin, conversation).await["takenOverAt"].clone();
    let refused = post(&app, &app.operator, conversation, "me too").await;
    assert_eq!(refused.code(), "CONFLICT");
    let error = &refused.body["errors"][0];
    let message = error["message"].as_str().unwrap();
    assert!(message.starts_with("admin has taken this conversation over"), "{message}");
    let details = json!({ "taken_over_by": { "id": app.admin.user, "name": "admin" }, "taken_over_at": at });
    assert_eq!(error["extensions"]["details"], details);
    assert_eq!(act(&app, &app.operator, "handBack", conversation).await.code(), "CONFLICT");
    take_over(&app, &app.admin, conversation).await;
    let shown = take_over(&app, &app.operator, conversation).await;
    assert_eq!(shown["takenOverByName"], "operator");
    assert_eq!(act(&app, &app.admin, "handBack", conversation).await.code(), "CONFLICT");
    assert_eq!(
        events(&app, conversation).await,
        ["TAKEN_OVER: admin took over from the agent.", "TAKEN_OVER: operator took over from admin."]
    );
    assert!(host.given().await.is_empty());

    // Many at once: one after another, each named.
    let people = [&app.admin, &app.operator, &app.owner];
    let all = (0..9).map(|n| act(&app, people[n % 3], "takeOver", conversation));
    for answer in join_all(all).await {
        answer.data();
    }
    let thread = events(&app, conversation).await;
    let mut before = "operator";
    for event in &thread[2..] {
        let (by, from) = event.trim_start_matches("TAKEN_OVER: ").split_once(" took over from ").unwrap();
        assert_eq!(from.trim_end_matches('.'), before, "{thread:?}");
        before = by;
    }
}

#[tokio::test]
async fn a_silent_holder_loses_the_conversation_after_an_hour() {
    let app = TestApp::start().await;
    let (host, conversation) = begun(&app).await;
    let end = async || conversations::end_abandoned(&app.core).await.unwrap();
    take_over(&app, &app.admin, conversation).await;
    app.clock.advance(Duration::from_mins(50));
    post(&app, &app.admin, conversation, "wait").await.data();
    let program = app.token(&["agent.interact", "agent.output.view"]).await;
    app.clock.advance(Duration::from_mins(20));
    let inbound = post(&app, &program, conversation, "I wait").await.data();
    assert_eq!(end().await, 0, "a word of the holder counts, one of others does not");
    app.clock.advance(Duration::from_mins(40));
    assert_eq!((end().await, end().await), (1, 0));
    let turn = inbound["postMessage"]["turn"]["id"].as_i64().unwrap();
    assert_eq!(host.given().await, [turn]);
    let thread = events(&app, conversation).await;
    assert_eq!(
        thread[1],
        "TAKE_OVER_ENDED: admin has said nothing for 60 minutes, so the agent answers again."
    );
    post(&app, &app.operator, conversation, "fine").await.data();
}

#[tokio::test]
async fn who_may_not_write_to_the_agent_any_more_loses_the_conversation() {
    let app = TestApp::start().await;
    let (host, conversation) = begun(&app).await;
    let end = async || conversations::end_abandoned(&app.core).await.unwrap();
    let person = app.person("OPERATOR", true).await;
    take_over(&app, &person, conversation).await;
    let program = app.token(&["agent.interact", "agent.output.view"]).await;
    let inbound = post(&app, &program, conversation, "I wait").await.data();
    assert_eq!(end().await, 0);
    let change = "mutation($o: Id!, $u: Id!) { updateMember(orgId: $o, userId: $u, input: { role: VIEWER }) { role } }";
    app.owner.gql(change, json!({ "o": app.org, "u": person.user })).await.data();
    assert_eq!((end().await, end().await), (1, 0));
    let turn = inbound["postMessage"]["turn"]["id"].as_i64().unwrap();
    assert_eq!(host.given().await, [turn], "the agent answers who waits");
    let last = events(&app, conversation).await.pop().unwrap();
    assert!(last.starts_with("TAKE_OVER_ENDED: person-"), "{last}");
    assert!(last.ends_with(" may no longer write to agents, so the agent answers again."), "{last}");
    // The same for one who is removed, and for a role that loses the right by the organization's own rules.
    let other = app.person("OPERATOR", true).await;
    take_over(&app, &other, conversation).await;
    let remove = "mutation($o: Id!, $u: Id!) { removeMember(orgId: $o, userId: $u) }";
    let removed = app.owner.gql(remove, json!({ "o": app.org, "u": other.user })).await;
    assert!(removed.body["errors"].is_null(), "{}", removed.text);
    assert_eq!(end().await, 1);
    take_over(&app, &app.operator, conversation).await;
    let rule = format!("p, OPERATOR, {}, agent.interact, deny\n", app.org);
    app.owner.edit_policy(app.org, "none", &rule).await.data();
    assert_eq!((end().await, end().await), (1, 0));
}

#[tokio::test]
async fn what_the_agent_asked_stays_open_and_its_answer_comes_with_the_next_turn() {
    let app = TestApp::start().await;
    let (host, conversation) = begun(&app).await;
    let turn = write(&app, conversation, "do it").await;
    host.takes(turn).await;
    let asked =
        Asked::Question { text: "How?".to_owned(), options: Vec::new(), multiple: false, allow_text: true };
    host.asks(conversation, Some(turn), "r1", asked).await.unwrap();
    take_over(&app, &app.admin, conversation).await;
    let withdrawn = host.tell(async |tx, from| {
        muster::slices::approvals::reports::withdrawn(tx, from, "r1".to_owned()).await
    });
    withdrawn.await.unwrap();
    host.turn_ended(turn, TurnOutcome::Cancelled).await;
    let approval: i64 = app.one("SELECT id FROM approvals WHERE status = 'PENDING'", vec![]).await;
    let answer = "mutation($o: Id!, $i: Id!) { answerApproval(orgId: $o, id: $i, input: { text: \"by sea\" }) { status } }";
    app.operator.gql(answer, json!({ "o": app.org, "i": approval })).await.data();
    assert_eq!(host.commands().await.last().unwrap()["kind"], "ANSWER");
    let told_it = host.tell(async |tx, from| {
        let id = muster::base::ids::ApprovalId(approval);
        muster::slices::approvals::reports::not_waiting(tx, from, id).await
    });
    told_it.await.unwrap();
    assert_eq!(host.given().await, [turn], "the agent is quiet");
    hand_back(&app, &app.admin, conversation).await;
    let given = host.given().await;
    let [_, next] = given[..] else { panic!("{given:?}") };
    assert_eq!(told(&host.takes(next).await), ["You asked: How?\noperator answered: by sea"]);
}

#[tokio::test]
async fn an_agent_that_is_down_or_stopped_with_its_organization_starts_later() {
    let app = TestApp::start().await;
    let host = Host { app: &app, agent: app.agent().await, generation: 0 };
    let conversation = app.conversation(host.agent).await;
    let turn = write(&app, conversation, "hello?").await;
    take_over(&app, &app.admin, conversation).await;
    let host = host.launched().await;
    host.started().await;
    assert!(host.given().await.is_empty(), "it has started while a person answers");
    let stop = "mutation($o: Id!) { stopOrganization(orgId: $o, reason: \"so\") { id } }";
    app.owner.gql(stop, json!({ "o": app.org })).await.data();
    hand_back(&app, &app.admin, conversation).await;
    assert!(host.given().await.is_empty());
    let release = "mutation($o: Id!) { releaseOrganization(orgId: $o) { id } }";
    app.owner.gql(release, json!({ "o": app.org })).await.data();
    muster::slices::orgs::let_go(&app.core).await.unwrap();
    assert_eq!(host.given().await, [turn]);

    // It ends while a person has taken over from it; what it never got is told by the next launch.
    let other = app.conversation(host.agent).await;
    let unseen = write(&app, other, "two").await;
    host.plan(unseen).await.unwrap();
    take_over(&app, &app.admin, other).await;
    host.ended(EndReason::OutOfMemory).await;
    assert_eq!(state(&app, unseen).await, "QUEUED");
    let host = host.launched().await;
    host.started().await;
    assert!(!host.given().await.contains(&unseen));
    hand_back(&app, &app.admin, other).await;
    assert!(host.given().await.contains(&unseen));
}

#[tokio::test]
async fn archiving_ends_a_take_over_and_a_deleted_agents_conversation_can_be_handed_back() {
    let app = TestApp::start().await;
    let (host, conversation) = begun(&app).await;
    take_over(&app, &app.admin, conversation).await;
    let edit = "mutation($o: Id!, $c: Id!, $s: ConversationStatus!) { \
                updateConversation(orgId: $o, id: $c, input: { status: $s }) { status takenOverBy } }";
    let set = async |status: &str| {
        let variables = json!({ "o": app.org, "c": conversation, "s": status });
        app.admin.gql(edit, variables).await.data()["updateConversation"].clone()
    };
    assert_eq!(set("ARCHIVED").await, json!({ "status": "ARCHIVED", "takenOverBy": null }));
    assert!(events(&app, conversation).await[1].starts_with("TAKE_OVER_ENDED: admin no longer answers"));
    assert_eq!(act(&app, &app.admin, "takeOver", conversation).await.code(), "ARCHIVED");
    set("OPEN").await;
    take_over(&app, &app.admin, conversation).await;
    host.act("stop").await;
    host.ended(EndReason::Stopped).await;
    let delete = "mutation($o: Id!, $i: Id!) { deleteAgent(orgId: $o, id: $i) }";
    app.owner.gql(delete, json!({ "o": app.org, "i": host.agent })).await.data();
    hand_back(&app, &app.admin, conversation).await;
    assert_eq!(act(&app, &app.admin, "takeOver", conversation).await.code(), "ARCHIVED");
}

#[tokio::test]
async fn what_the_holder_says_goes_out_through_the_channel_and_subscribers_see_all_of_it() {
    let app = TestApp::start().await;
    let all = app.populate(1).await;
    let (conversation, channel) = (all.conversations[0], all.channels[0]);
    let sql = "UPDATE conversations SET channel_id = $1, status = 'OPEN', archived_at = NULL, target = 'there' WHERE id = $2";
    app.execute(sql, vec![channel.into(), conversation.into()]).await;
    let mut client = Socket::of(&app.viewer).await;
    let variables = json!({ "o": app.org, "c": conversation });
    let query = "subscription($o: Id!, $c: Id!) { messageAdded(orgId: $o, conversationId: $c) { role kind content } }";
    client.subscribe("m", query, variables).await;
    let query = "subscription($o: Id!) { changes(orgId: $o, kinds: [CONVERSATION]) { kind id op } }";
    client.subscribe("c", query, json!({ "o": app.org })).await;
    assert_eq!(client.next().await["payload"]["data"]["changes"]["op"], "RESYNC");
    client.subscribe("settled", "{ __typename }", json!({})).await;
    while client.next().await["type"] != "complete" {}
    take_over(&app, &app.admin, conversation).await;
    let said = post(&app, &app.admin, conversation, "hello").await.data()["postMessage"].clone();
    assert_eq!(said["viaChannelId"], channel);
    assert_eq!(said["delivery"], json!({ "status": "PENDING", "attempts": 0 }));
    hand_back(&app, &app.admin, conversation).await;
    let (mut heard, mut changes) = (Vec::new(), 0);
    while heard.len() < 3 || changes < 3 {
        let news = client.next().await;
        let data = &news["payload"]["data"];
        match news["id"].as_str() {
            Some("m") => {
                heard.push((data["messageAdded"]["role"].clone(), data["messageAdded"]["kind"].clone()));
            }
            _ => {
                assert_eq!(
                    data["changes"],
                    json!({ "kind": "CONVERSATION", "id": conversation, "op": "UPDATED" })
                );
                changes += 1;
            }
        }
    }
    let role = |role: &str, kind: &str| (json!(role), json!(kind));
    assert_eq!(heard, [role("SYSTEM", "EVENT"), role("ASSISTANT", "TEXT"), role("SYSTEM", "EVENT")]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_that_is_sent_again_while_its_host_is_away_is_answered_once() {
    let house = House::open().await;
    let mut crew = house.crew("away").await;
    house.starts(&crew).await;
    let conversation = house.says(&crew, "Good morning").await;
    assert_eq!(house.rests(conversation).await, ["DONE"]);
    crew.machine.kill();
    house.adds(conversation, "Where is my order?").await;
    let owner = house.owner();
    for verb in ["takeOver", "handBack"] {
        let query =
            format!("mutation($o: Id!, $c: Id!) {{ {verb}Conversation(orgId: $o, id: $c) {{ id }} }}");
        owner.gql(&query, json!({ "o": house.tenant.org, "c": conversation })).await.data();
    }
    crew.machine.run();
    house.hears(&crew, conversation, "Where is my order?").await;
    house.adds(conversation, "Thank you.").await;
    let thread = house.hears(&crew, conversation, "Thank you.").await;
    assert_eq!(house.rests(conversation).await, ["DONE", "DONE", "DONE"]);
    let answers = thread.iter().filter(|(role, _, text)| role == "ASSISTANT" && text.contains("order"));
    assert_eq!(answers.count(), 1, "{thread:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_real_agent_is_quiet_while_a_person_answers_and_is_told_of_it() {
    let house = House::open().await;
    let crew = house.crew("quiet").await;
    house.starts(&crew).await;
    let conversation = house.says(&crew, "slowly 600 100").await;
    let begun = "query($o: Id!, $c: Id!) { conversation(orgId: $o, id: $c) { openTurns { startedAt } } }";
    let has_begun = async || {
        let seen = house.gql(begun, json!({ "c": conversation })).await;
        !seen["conversation"]["openTurns"][0]["startedAt"].is_null()
    };
    until("the turn begins", has_begun).await;
    let owner = house.owner();
    let act = async |verb: &str| {
        let query =
            format!("mutation($o: Id!, $c: Id!) {{ {verb}Conversation(orgId: $o, id: $c) {{ id }} }}");
        owner.gql(&query, json!({ "o": house.tenant.org, "c": conversation })).await.data();
    };
    act("takeOver").await;
    assert_eq!(house.rests(conversation).await, ["CANCELLED"]);
    let query = "mutation($o: Id!, $c: Id!) { \
                 postMessage(orgId: $o, conversationId: $c, input: { text: \"It is in Graz.\" }) { role } }";
    owner.gql(query, json!({ "o": house.tenant.org, "c": conversation })).await.data();
    house.adds(conversation, "And when?").await;
    act("handBack").await;
    house.hears(&crew, conversation, "(said in your place) It is in Graz.").await;
    house.hears(&crew, conversation, "And when?").await;
    let mut turns = house.rests(conversation).await;
    turns.sort();
    assert_eq!(turns, ["CANCELLED", "DONE"]);
}
