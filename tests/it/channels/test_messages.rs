//! Test messages: who gets them, the vendor's answer, and who may send them.

use serde_json::{Value, json};

use crate::{
    channels::{deliveries::receiving, probes::begun_by},
    harness::{Actor, Answer, TestApp, fakes::telegram::said},
};

/// Tests a channel, through a conversation or without one.
pub async fn test(app: &TestApp, actor: &Actor, channel: i64, conversation: Option<i64>) -> Answer {
    let query =
        "mutation($o: Id!, $c: Id!, $v: Id) { testChannel(orgId: $o, id: $c, conversationId: $v) { error } }";
    actor.gql(query, json!({ "o": app.org, "c": channel, "v": conversation })).await
}

/// The vendor's answer.
pub fn error(answer: Answer) -> Value {
    answer.data()["testChannel"]["error"].clone()
}

#[tokio::test]
async fn a_webhooks_answer_to_the_message_is_shown() {
    let (app, receiver, channel, conversation) = receiving(&[200, 500]).await;
    assert_eq!(error(test(&app, &app.operator, channel, None).await), Value::Null);
    let failed = error(test(&app, &app.operator, channel, None).await);
    assert_eq!(failed, "The receiver answered with status 500.");
    let texts = receiver.texts();
    assert!(texts.iter().all(|text| text.ends_with(" of the channel Orders.")), "{texts:?}");
    assert!(texts.len() == 2 && texts[0] != texts[1], "{texts:?}");
    let stored = format!("SELECT COUNT(*) FROM messages WHERE conversation_id = {conversation}");
    assert_eq!(app.column::<i64>(&stored).await, [1], "it joins no conversation");
    assert_eq!(test(&app, &app.viewer, channel, None).await.code(), "PERMISSION_DENIED");
    let edit = format!("/v1/org/{}/channel/{channel}", app.org);
    app.operator.patch(&edit, json!({ "is_active": false })).await.expect(200);
    assert_eq!(test(&app, &app.operator, channel, None).await.code(), "CONFLICT");
    assert_eq!(receiver.texts().len(), 2);
}

#[tokio::test]
async fn a_chat_gets_the_message_through_its_conversation_only() {
    let (app, telegram, channel, conversation) = begun_by(said(1, "Hello")).await;
    let channel = channel["id"].as_i64().unwrap();
    let free = test(&app, &app.operator, channel, None).await;
    assert_eq!(free.wrong_inputs(), [("/conversationId", "REQUIRED")]);
    let others = app.conversation(app.agent().await).await;
    assert_eq!(test(&app, &app.operator, channel, Some(others)).await.code(), "NOT_FOUND");
    let token = app.token(&["agent.edit"]).await;
    let refused = test(&app, &token, channel, Some(conversation)).await;
    assert_eq!(refused.code(), "PERMISSION_DENIED", "it may not write in conversations");
    assert_eq!(error(test(&app, &app.operator, channel, Some(conversation)).await), Value::Null);
    let again = test(&app, &app.operator, channel, Some(conversation)).await;
    assert_eq!(again.code(), "RATE_LIMITED", "one a second in a chat");
    let asked = telegram.lock().unwrap().asked.clone();
    let sent: Vec<_> = asked.iter().filter(|(method, _)| method == "sendMessage").collect();
    let [(_, sent)] = &sent[..] else { panic!("{sent:?}") };
    let text = sent["text"].as_str().unwrap();
    assert!(text.starts_with("This is test ") && text.ends_with(" of the channel Bot."), "{text}");
}
