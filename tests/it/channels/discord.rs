//! Discord through the whole service. The vendor is the fake that discord.js takes for Discord.

use muster::{
    base::{
        enums::{ApprovalKind, MessageRole},
        ids::{AgentId, ConversationId},
    },
    core::resource_limits::Resource,
    domain::{approvals::NewApproval, chat_approvals, deliveries},
};
use serde_json::{Value, json};

use crate::{
    approvals::raise,
    channels::{
        connect, path,
        probes::{app_with, whitelist},
        send_limits::let_time_pass,
    },
    conversations::messages::say,
    harness::{
        TestApp,
        fakes::discord::{Shared, TOKEN, discord, refusal, said, tapped},
        until,
    },
};

fn bot(agent: i64) -> Value {
    json!({ "name": "Discord", "transport": "DISCORD", "agent_id": agent, "bot_token": TOKEN })
}

/// A bot that is connected to the gateway.
async fn connected() -> (TestApp, Shared, Value) {
    let (address, fake) = discord().await;
    let app = app_with(address, |_| ()).await;
    let channel = connect(&app, bot(app.agent().await)).await;
    app.service.ingest.listen();
    until("a session begins", async || fake.lock().unwrap().begun == 1).await;
    (app, fake, channel)
}

/// The channel as the panel shows it.
async fn shown(app: &TestApp, channel: &Value) -> Value {
    let query = "query($o: Id!, $c: Id!) { channel(orgId: $o, id: $c) { isActive inactiveReason warnings link { state cause } } }";
    app.viewer.gql(query, json!({ "o": app.org, "c": channel["id"] })).await.data()["channel"].clone()
}

#[tokio::test]
async fn messages_threads_and_files_come_in_and_answers_go_out() {
    let (app, fake, channel) = connected().await;
    assert_eq!((&channel["bot_username"], &channel["is_active"]), (&json!("muster_bot"), &json!(true)));
    assert!(
        channel["invite_url"]
            .as_str()
            .unwrap()
            .starts_with("https://discord.com/oauth2/authorize?client_id=70")
    );
    whitelist(&app, &channel, "5").await;
    {
        let mut fake = fake.lock().unwrap();
        let url = format!("http://{}/attachments/a.txt?ex=1", fake.at.unwrap());
        let mut look = said(2002, 300, "<@7> look");
        look["attachments"] =
            json!([{ "id": "1", "filename": "a.txt", "content_type": "text/plain", "size": 3, "url": url }]);
        fake.says(2001, 50, "Hello");
        fake.happens("MESSAGE_CREATE", &look);
        fake.says(2003, 200, "to others");
    }
    let stored = "SELECT COUNT(*) FROM messages WHERE via_channel_id IS NOT NULL";
    until("both are stored", async || app.column::<i64>(stored).await == [2]).await;
    assert_eq!(app.column::<Vec<u8>>("SELECT content FROM attachment_blobs").await, [b"abc"]);
    let refused = "SELECT origin_id || ' ' || reason FROM channel_refusals";
    until("the other is counted", async || app.column::<String>(refused).await == ["5 NOT_ADDRESSED"]).await;
    let thread: i64 = app.one("SELECT id FROM conversations WHERE target = $1", vec!["300".into()]).await;
    say(&app, thread, MessageRole::Assistant, "On it, **now**").await;
    until("it is sent", async || {
        deliveries::send_due(&app.core).await.unwrap();
        app.column::<String>("SELECT status FROM deliveries").await == ["SENT"]
    })
    .await;
    let answer = fake.lock().unwrap().bodies("POST channels/300/messages").remove(0);
    assert_eq!(
        (&answer["content"], &answer["message_reference"]["message_id"]),
        (&json!("On it, **now**"), &json!("2002"))
    );
    // It comes back, as everything that is written in the thread, and is not stored.
    fake.lock().unwrap().says(2004, 50, "Thank you");
    until("what came after it is stored", async || app.column::<i64>(stored).await == [3]).await;
}

#[tokio::test]
async fn a_linked_person_decides_by_a_button() {
    let (app, fake, channel) = connected().await;
    let link = "mutation($o: Id!, $c: Id!) { linkChat(orgId: $o, channelId: $c) { code } }";
    let made = app.admin.gql(link, json!({ "o": app.org, "c": channel["id"] })).await.data();
    fake.lock().unwrap().says(2001, 50, made["linkChat"]["code"].as_str().unwrap());
    until("the chat is linked", async || {
        app.column::<String>("SELECT origin_id FROM channel_links").await == ["5"]
    })
    .await;
    let agent = channel["agent_id"].as_i64().unwrap();
    let conversation = app.conversation(agent).await;
    let new = NewApproval {
        risk: Some(10),
        agent_id: Some(AgentId(agent)),
        conversation_id: Some(ConversationId(conversation)),
        ..NewApproval::new(ApprovalKind::Action, "Delete *all* of it")
    };
    let approval = raise(&app, new).await;
    let asked = "SELECT COUNT(*) FROM approval_asks WHERE state = 'ASKED'";
    until("it is asked", async || {
        chat_approvals::send_due(&app.core).await.unwrap();
        let_time_pass(&app).await;
        app.column::<i64>(asked).await == [1]
    })
    .await;
    let question = fake.lock().unwrap().bodies("POST channels/50/messages").pop().unwrap();
    let value = question["components"][0]["components"][0]["custom_id"].as_str().unwrap().to_owned();
    let answer = async |tap: Value| {
        let path = format!("PATCH webhooks/70/{}/messages/@original", tap["token"].as_str().unwrap());
        fake.lock().unwrap().happens("INTERACTION_CREATE", &tap);
        until("the tap is answered", async || !fake.lock().unwrap().bodies(&path).is_empty()).await;
        fake.lock().unwrap().bodies(&path)[0]["content"].as_str().unwrap().to_owned()
    };
    // In a server, and by another person.
    let mut public = tapped(801, &value);
    (public["context"], public["member"]) = (json!(0), json!({ "user": public["user"] }));
    public.as_object_mut().unwrap().remove("user");
    assert!(answer(public).await.starts_with("You can't decide this here."));
    let mut stranger = tapped(802, &value);
    stranger["user"]["id"] = json!("6");
    assert!(answer(stranger).await.starts_with("You can't decide this here."));
    assert_eq!(answer(tapped(803, &value)).await, "Approved by admin.");
    let state = "SELECT outcome || ' ' || decided_via FROM approvals WHERE id = $1";
    assert_eq!(app.one::<String>(state, vec![approval.into()]).await, "APPROVED CHANNEL");
    until("its buttons are gone", async || {
        chat_approvals::send_due(&app.core).await.unwrap();
        let_time_pass(&app).await;
        let fake = fake.lock().unwrap();
        fake.asked.iter().any(|(asked, body)| {
            asked.starts_with("PATCH channels/50/messages/") && body["components"] == json!([])
        })
    })
    .await;
}

#[tokio::test]
async fn a_missing_intent_switches_the_channel_off_and_is_explained() {
    let (address, fake) = discord().await;
    let app = app_with(address, |_| ()).await;
    fake.lock().unwrap().closes = Some(4014);
    let channel = connect(&app, bot(app.agent().await)).await;
    app.service.ingest.listen();
    until("the reason is shown", async || {
        let shown = shown(&app, &channel).await;
        let cause = shown["link"]["cause"].as_str().unwrap_or_default();
        shown["inactiveReason"] == "AUTH_FAILED" && cause.contains("Message Content Intent")
    })
    .await;
}

#[tokio::test]
async fn nothing_is_asked_with_a_revoked_token() {
    let (app, fake, channel) = connected().await;
    let mut other = bot(app.agent().await);
    other["bot_token"] = json!("Nw.another");
    assert_eq!(app.operator.post(&path(&app), other).await.violations(), [("/bot_token", "NOT_ALLOWED")]);
    whitelist(&app, &channel, "5").await;
    fake.lock().unwrap().says(2001, 50, "Hello");
    let stored = "SELECT conversation_id FROM messages WHERE via_channel_id IS NOT NULL";
    until("it is stored", async || app.column::<i64>(stored).await.len() == 1).await;
    fake.lock().unwrap().answers.push_back(refusal(401, 0, "401: Unauthorized"));
    say(&app, app.column::<i64>(stored).await[0], MessageRole::Assistant, "Yes?").await;
    until("the channel is off", async || {
        deliveries::send_due(&app.core).await.unwrap();
        shown(&app, &channel).await["inactiveReason"] == "AUTH_FAILED"
    })
    .await;
    let asked = fake.lock().unwrap().asked.len();
    let lanes = app.core.resource_limits.limit(Resource::Lanes);
    deliveries::send_due(&app.core).await.unwrap();
    until("the lane is free", async || lanes.total() == 0).await;
    assert_eq!(fake.lock().unwrap().asked.len(), asked);
}

#[tokio::test]
async fn a_limited_chat_waits_as_long_as_discord_asks() {
    let (app, fake, channel) = connected().await;
    whitelist(&app, &channel, "5").await;
    fake.lock().unwrap().says(2001, 50, "Hello");
    let stored = "SELECT conversation_id FROM messages WHERE via_channel_id IS NOT NULL";
    until("it is stored", async || app.column::<i64>(stored).await.len() == 1).await;
    let limited = json!({ "message": "You are being rate limited.", "retry_after": 64.5, "global": false });
    fake.lock().unwrap().answers.push_back((429, limited));
    say(&app, app.column::<i64>(stored).await[0], MessageRole::Assistant, "Yes?").await;
    let waiting =
        "SELECT available_at FROM deliveries WHERE status = 'PENDING' AND attempts = 0 AND error IS NOT NULL";
    until("it waits", async || {
        deliveries::send_due(&app.core).await.unwrap();
        app.column::<i64>(waiting).await == [app.clock.now().0 + 64_500]
    })
    .await;
}
