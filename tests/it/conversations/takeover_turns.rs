//! What a take-over does to the turns of a conversation: which are cancelled, which wait, and what the agent learns
//! once the conversation is handed back.

use muster_protocol::event::{Asked, Content, EndReason, TurnOutcome};
use serde_json::json;

use crate::{
    agents::running::House,
    conversations::{
        takeover::{act, hand_back, post, take_over, told},
        turns::{statuses, write},
    },
    harness::{Host, TestApp, spending::CALL},
    organizations::emergency_stop::{release, stop},
};

#[tokio::test]
async fn an_unanswered_last_message_starts_the_agent_at_once() {
    let app = TestApp::start().await;
    let (host, conversation) = app.talking_agent().await;
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
async fn a_message_without_an_answer_changes_no_wait() {
    let app = TestApp::start().await;
    let (host, conversation) = app.talking_agent().await;
    let program = app.token(&["agent.interact", "agent.output.view"]).await;
    // A robot's mail that is not to be answered belongs to no turn.
    let robot_writes = async || {
        post(&app, &program, conversation, "I am out of office").await.data();
        let sql = "UPDATE messages SET turn_id = NULL, status = 'DELIVERED' \
                   WHERE id = (SELECT MAX(id) FROM messages WHERE conversation_id = $1)";
        app.execute(sql, vec![conversation.into()]).await;
    };
    take_over(&app, &app.admin, conversation).await;
    post(&app, &app.admin, conversation, "hello").await.data();
    robot_writes().await;
    assert_eq!(hand_back(&app, &app.admin, conversation).await["openTurns"], json!([]), "no turn waits");
    assert!(host.given().await.is_empty());
    // A person who wrote before the robot still waits.
    take_over(&app, &app.admin, conversation).await;
    let inbound = post(&app, &program, conversation, "are you there?").await.data();
    let turn = inbound["postMessage"]["turn"]["id"].as_i64().unwrap();
    robot_writes().await;
    hand_back(&app, &app.admin, conversation).await;
    assert_eq!(host.given().await, [turn]);
    assert_eq!(told(&host.takes(turn).await), ["(said in your place) hello", "are you there?"]);
}

#[tokio::test]
async fn what_the_holder_said_is_told_though_its_turn_was_cancelled() {
    let app = TestApp::start().await;
    let (host, conversation) = app.talking_agent().await;
    let say = async |text: &str| {
        let said = post(&app, &app.admin, conversation, text).await.data();
        said["postMessage"]["turn"]["id"].as_i64().unwrap()
    };
    take_over(&app, &app.admin, conversation).await;
    assert_eq!(app.cancels(say("I promised a refund of 40").await).await, "CANCELLED");
    let next = say("and free shipping").await;
    hand_back(&app, &app.admin, conversation).await;
    let turn = write(&app, conversation, "what did we promise?").await;
    assert_eq!((turn, host.given().await), (next, vec![turn]));
    let promised = "(said in your place) I promised a refund of 40";
    assert_eq!(
        told(&host.takes(turn).await),
        [promised, "(said in your place) and free shipping", "what did we promise?"]
    );
    host.turn_ended(turn, TurnOutcome::Done).await;

    // Another person's message is cancelled, so no one waits for an answer when the conversation is handed back.
    take_over(&app, &app.admin, conversation).await;
    let both = say("by tomorrow").await;
    let program = app.token(&["agent.interact", "agent.output.view"]).await;
    post(&app, &program, conversation, "never mind").await.data();
    assert_eq!(app.cancels(both).await, "CANCELLED");
    let shown = hand_back(&app, &app.admin, conversation).await;
    assert_eq!((&shown["openTurns"], host.given().await), (&json!([]), vec![turn]));
    // A turn that only informs the agent can't be cancelled: nothing would end.
    let held = app.one::<i64>("SELECT id FROM turns WHERE state = 'QUEUED' AND held", vec![]).await;
    let turns = app.one::<i64>("SELECT COUNT(*) FROM turns", vec![]).await;
    for _ in 0..2 {
        let query = "mutation($o: Id!, $t: Id!) { cancelTurn(orgId: $o, id: $t) { state } }";
        assert_eq!(app.operator.gql(query, json!({ "o": app.org, "t": held })).await.code(), "CONFLICT");
    }
    assert_eq!(app.one::<i64>("SELECT COUNT(*) FROM turns", vec![]).await, turns);
    // The host has the turn, but its agent had not begun it.
    let unseen = write(&app, conversation, "when?").await;
    let words = ["(said in your place) by tomorrow", "when?"];
    assert_eq!(told(&host.plan(unseen).await.unwrap()), words);
    app.cancels(unseen).await;
    host.turn_ended(unseen, TurnOutcome::Cancelled).await;
    assert_eq!(host.given().await, [turn, unseen]);
    let last = write(&app, conversation, "hello?").await;
    assert_eq!(told(&host.takes(last).await), ["(said in your place) by tomorrow", "hello?"]);
}

#[tokio::test]
async fn an_undelivered_turn_at_its_limit_waits_for_the_hand_back() {
    let app = TestApp::start().await;
    app.sets(json!({ "monthlyBudgetMicro": CALL })).await;
    let (host, conversation) = app.talking_agent().await;
    let (_, other) = host.works().await;
    // The host opens a session for this turn while the other turn reaches the limit.
    let turn = write(&app, conversation, "are you there?").await;
    host.plan(turn).await.unwrap();
    host.runs_out().await;
    assert_eq!(app.turn_is(turn).await, "WAITING_LIMIT");
    take_over(&app, &app.admin, conversation).await;
    host.turn_ended(turn, TurnOutcome::Cancelled).await;
    assert_eq!(app.turn_is(turn).await, "QUEUED");
    hand_back(&app, &app.admin, conversation).await;
    assert_eq!(host.given().await, [other, turn], "nothing is left to spend");
    app.allows(json!({ "costMicro": 300_000 })).await;
    assert_eq!(host.given().await, [other, turn, turn]);
    assert_eq!(told(&host.takes(turn).await), ["are you there?"]);
}

#[tokio::test]
async fn an_interrupted_message_is_answered_after_the_hand_back() {
    let app = TestApp::start().await;
    let (host, conversation) = app.talking_agent().await;
    // The agent had the turn, but had said nothing.
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

    // The host had the turn, but the agent did not.
    let other = app.conversation(host.agent).await;
    let unseen = write(&app, other, "two").await;
    host.plan(unseen).await.unwrap();
    take_over(&app, &app.admin, other).await;
    host.turn_ended(unseen, TurnOutcome::Cancelled).await;
    assert_eq!(
        (app.turn_is(unseen).await.as_str(), statuses(&app, other).await[0].as_str()),
        ("QUEUED", "PENDING")
    );
    post(&app, &app.admin, other, "three").await.data();
    hand_back(&app, &app.admin, other).await;
    assert_eq!(write(&app, other, "four").await, unseen);
    assert_eq!(told(&host.takes(unseen).await), ["two", "(said in your place) three", "four"]);
}

#[tokio::test]
async fn an_answered_message_is_not_asked_again() {
    let app = TestApp::start().await;
    let (host, conversation) = app.talking_agent().await;
    let begin = async |conversation: i64, text: &str| {
        let turn = write(&app, conversation, text).await;
        host.takes(turn).await;
        take_over(&app, &app.admin, conversation).await;
        turn
    };
    // Handed back before the agent learned that it had to stop: it has finished by then.
    let first = begin(conversation, "one").await;
    hand_back(&app, &app.admin, conversation).await;
    host.says(conversation, Some(first), "m1", Content::Text { text: "done".to_owned() }).await.unwrap();
    host.turn_ended(first, TurnOutcome::Done).await;
    assert_eq!(host.given().await, [first]);
    let next = write(&app, conversation, "two").await;
    assert_eq!(told(&host.takes(next).await), ["two"]);
    host.turn_ended(next, TurnOutcome::Done).await;

    // Someone else has written since: only that is asked.
    let other = app.conversation(host.agent).await;
    let first = begin(other, "three").await;
    hand_back(&app, &app.admin, other).await;
    let next = write(&app, other, "four").await;
    host.turn_ended(first, TurnOutcome::Done).await;
    assert_eq!(told(&host.takes(next).await), ["four"]);
    host.turn_ended(next, TurnOutcome::Done).await;

    // The agent has finished, without a word, before the conversation was handed back.
    let silent = app.conversation(host.agent).await;
    let first = begin(silent, "five").await;
    host.turn_ended(first, TurnOutcome::Done).await;
    hand_back(&app, &app.admin, silent).await;
    assert_eq!(host.given().await.last(), Some(&first));

    // The conversation was handed back before the agent had begun.
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
async fn a_concurrent_turn_is_cancelled_or_waits() {
    let app = TestApp::start().await;
    let host = app.running_agent().await;
    for _ in 0..6 {
        let conversation = app.conversation(host.agent).await;
        let turn = write(&app, conversation, "one").await;
        let (_, plan) = tokio::join!(take_over(&app, &app.admin, conversation), host.plan(turn));
        let cancel = json!({ "kind": "CANCEL", "turn_id": turn });
        let is_cancelled = host.commands().await.contains(&cancel);
        match plan {
            Ok(_) => assert!(is_cancelled && app.turn_is(turn).await == "RUNNING"),
            Err(_) => assert!(!is_cancelled && app.turn_is(turn).await == "QUEUED"),
        }
    }
    for _ in 0..6 {
        let conversation = app.conversation(host.agent).await;
        let first = write(&app, conversation, "one").await;
        host.takes(first).await;
        let next = write(&app, conversation, "two").await;
        tokio::join!(take_over(&app, &app.admin, conversation), host.turn_ended(first, TurnOutcome::Done));
        assert_eq!((app.turn_is(first).await.as_str(), app.turn_is(next).await.as_str()), ("DONE", "QUEUED"));
        assert!(host.plan(next).await.is_err(), "even if it was sent just before");
        let before = host.given().await.iter().filter(|turn| **turn == next).count();
        hand_back(&app, &app.admin, conversation).await;
        assert_eq!(host.given().await.iter().filter(|turn| **turn == next).count(), before + 1);
        assert_eq!(told(&host.takes(next).await), ["two"]);
        host.turn_ended(next, TurnOutcome::Done).await;
    }
}

#[tokio::test]
async fn an_open_question_is_answered_with_the_next_turn() {
    let app = TestApp::start().await;
    let (host, conversation) = app.talking_agent().await;
    let turn = write(&app, conversation, "do it").await;
    host.takes(turn).await;
    let asked =
        Asked::Question { text: "How?".to_owned(), options: Vec::new(), multiple: false, allow_text: true };
    host.asks(conversation, Some(turn), "r1", asked).await.unwrap();
    take_over(&app, &app.admin, conversation).await;
    let withdrawn = host.tell(async |tx, from| {
        muster::domain::approvals::reports::withdrawn(tx, from, "r1".to_owned()).await
    });
    withdrawn.await.unwrap();
    host.turn_ended(turn, TurnOutcome::Cancelled).await;
    let approval: i64 = app.one("SELECT id FROM approvals WHERE status = 'PENDING'", vec![]).await;
    let answer = "mutation($o: Id!, $i: Id!) { answerApproval(orgId: $o, id: $i, input: { text: \"by sea\" }) { status } }";
    app.operator.gql(answer, json!({ "o": app.org, "i": approval })).await.data();
    assert_eq!(host.commands().await.last().unwrap()["kind"], "ANSWER");
    let told_it = host.tell(async |tx, from| {
        let id = muster::base::ids::ApprovalId(approval);
        muster::domain::approvals::reports::not_waiting(tx, from, id).await
    });
    told_it.await.unwrap();
    assert_eq!(host.given().await, [turn], "the agent is quiet");
    hand_back(&app, &app.admin, conversation).await;
    let given = host.given().await;
    let [_, next] = given[..] else { panic!("{given:?}") };
    assert_eq!(told(&host.takes(next).await), ["You asked: How?\noperator answered: by sea"]);
}

#[tokio::test]
async fn a_stopped_agent_starts_after_the_hand_back() {
    let app = TestApp::start().await;
    let host = Host { app: &app, agent: app.agent().await, generation: 0 };
    let conversation = app.conversation(host.agent).await;
    let turn = write(&app, conversation, "hello?").await;
    take_over(&app, &app.admin, conversation).await;
    let host = host.relaunched().await;
    assert!(host.given().await.is_empty(), "it has started while a person answers");
    stop(&app, &app.owner, "so").await.data();
    hand_back(&app, &app.admin, conversation).await;
    assert!(host.given().await.is_empty());
    release(&app, &app.owner).await.data();
    muster::domain::emergency_stop::let_go(&app.core).await.unwrap();
    assert_eq!(host.given().await, [turn]);

    // The agent ends while a person has taken over; after the hand-back, its next launch gets the turn that it never
    // received.
    let other = app.conversation(host.agent).await;
    let unseen = write(&app, other, "two").await;
    host.plan(unseen).await.unwrap();
    take_over(&app, &app.admin, other).await;
    host.ended(EndReason::OutOfMemory).await;
    assert_eq!(app.turn_is(unseen).await, "QUEUED");
    let host = host.relaunched().await;
    assert!(!host.given().await.contains(&unseen));
    hand_back(&app, &app.admin, other).await;
    assert!(host.given().await.contains(&unseen));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_resent_to_an_absent_host_is_answered_once() {
    let (house, mut crew) = House::with_crew("away").await;
    let conversation = house.says(&crew, "Good morning").await;
    assert_eq!(house.rests(conversation).await, ["DONE"]);
    crew.machine.kill();
    house.adds(conversation, "Where is my order?").await;
    let owner = house.owner();
    for verb in ["takeOver", "handBack"] {
        act(house.tenant.org, &owner, verb, conversation).await.data();
    }
    crew.machine.run();
    house.hears(&crew, conversation, "Where is my order?").await;
    house.adds(conversation, "Thank you.").await;
    let thread = house.hears(&crew, conversation, "Thank you.").await;
    assert_eq!(house.rests(conversation).await, ["DONE", "DONE", "DONE"]);
    let answers = thread.iter().filter(|(role, _, text)| role == "ASSISTANT" && text.contains("order"));
    assert_eq!(answers.count(), 1, "{thread:#?}");
}
