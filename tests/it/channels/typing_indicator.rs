//! "… is writing" in the chat, for as long as the agent works on its answer.

use muster_protocol::event::TurnOutcome;
use serde_json::json;

use crate::{
    channels::{
        connect,
        probes::{bot, whitelist, with_telegram},
    },
    harness::{
        fakes::telegram::{TOKEN, said},
        until,
    },
};

#[tokio::test]
async fn a_chat_shows_that_the_agent_writes_until_it_answers() {
    let (app, telegram) = with_telegram().await;
    let host = app.running_agent().await;
    let channel = connect(&app, bot(host.agent, TOKEN)).await;
    whitelist(&app, &channel, "5").await;
    telegram.lock().unwrap().updates = vec![said(10, "What is the time?")];
    app.service.ingest.listen();
    let turns = "SELECT id FROM turns WHERE state = 'QUEUED'";
    until("a turn waits", async || app.column::<i64>(turns).await.len() == 1).await;
    let turn = app.column::<i64>(turns).await[0];
    let shown = || {
        let fake = telegram.lock().unwrap();
        let shown = fake.asked.iter().filter(|(method, _)| method == "sendChatAction");
        shown.map(|(_, asked)| (asked["chat_id"].clone(), asked["action"].clone())).collect::<Vec<_>>()
    };
    // The turn has not begun yet.
    assert_eq!(shown(), []);
    host.takes(turn).await;
    until("it is shown", async || !shown().is_empty()).await;
    assert_eq!(shown()[0], (json!(5), json!("typing")));
    host.turn_ended(turn, TurnOutcome::Done).await;
    // The indicator is repeated every few seconds, so the count up to here depends on the machine's speed.
    let before = shown().len();
    // The listener keeps receiving, and shows the indicator at most once more.
    telegram.lock().unwrap().updates = vec![said(11, "Thank you")];
    until("the next turn waits", async || app.column::<i64>(turns).await.len() == 1).await;
    assert!(shown().len() <= before + 1, "{before}: {:?}", shown());
}
