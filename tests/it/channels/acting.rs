//! What agents do at a vendor beyond messages: it is offered, judged, carried once, shown, and answered.

use std::{fs, time::Duration};

use muster::{
    base::{
        ids::{AgentId, ConversationId},
        problem::Result,
    },
    domain::{
        approvals,
        conversations::{self, Acting},
        deliveries,
    },
};
use muster_protocol::{
    event::Asked,
    plan::{ActionCall, ActionOutcome, Crossing, Judgement},
};
use serde_json::{Value, json};

use crate::{
    channels::{
        at, connect,
        deliveries::settled,
        probes::{app_with, bot, hold, whitelist, with_slack, with_telegram, workspace},
    },
    harness::{
        Host, TestApp,
        fakes::{
            slack::{APP, envelope},
            telegram::{self, TOKEN, said, telegram},
        },
        until,
    },
};

const REACTION: &str = "SELECT MAX(id) FROM messages WHERE kind = 'EVENT'";

/// An agent that runs, in a conversation that a person has begun at a vendor.
struct Scene<'a> {
    host: Host<'a>,
    channel: Value,
    conversation: i64,
}

impl<'a> Scene<'a> {
    /// `arrive` makes the vendor bring the message of this origin.
    async fn of(app: &'a TestApp, body: fn(i64) -> Value, origin: &str, arrive: impl FnOnce()) -> Self {
        let host = app.running_agent().await;
        let channel = connect(app, body(host.agent)).await;
        whitelist(app, &channel, origin).await;
        arrive();
        app.service.ingest.listen();
        let stored = "SELECT conversation_id FROM messages WHERE via_channel_id IS NOT NULL";
        until("it is stored", async || app.column::<i64>(stored).await.len() == 1).await;
        let conversation = app.column::<i64>(stored).await[0];
        Self { host, channel, conversation }
    }

    async fn at_telegram(app: &'a TestApp, telegram: &telegram::Shared) -> Self {
        let arrive = || telegram.lock().unwrap().updates = vec![said(1, "Hello")];
        Self::of(app, |agent| bot(agent, TOKEN), "5", arrive).await
    }

    async fn offered(&self) -> Vec<String> {
        let Host { app, agent, generation } = self.host;
        let (scope, conversation) = (app.scope(), ConversationId(self.conversation));
        let offered = conversations::offered_actions(&scope, AgentId(agent), generation, conversation).await;
        offered.unwrap().into_iter().map(|action| action.name).collect()
    }

    async fn judged(&self, input: Value) -> Judgement {
        let Host { app, agent, generation } = self.host;
        let (tool, tool_kind) = ("muster.react".to_owned(), "other".to_owned());
        let crossing = Crossing { tool, tool_kind, mcp_server_id: None, input };
        approvals::plans::judgement(&app.scope(), AgentId(agent), generation, crossing).await.unwrap()
    }

    async fn acts(&self, key: &str, arguments: Value, wait_ms: i64) -> Result<Acting> {
        let Host { app, agent, generation } = self.host;
        let (key, name) = (key.to_owned(), "react".to_owned());
        let call = ActionCall { conversation_id: self.conversation, key, name, arguments, wait_ms };
        conversations::act(&app.scope(), AgentId(agent), generation, call).await
    }

    /// Acts, and waits for this state of the delivery.
    async fn reacts(&self, key: &str, emoji: &str, expected: &str) -> ActionOutcome {
        let acting = self.acts(key, json!({ "emoji": emoji }), 20_000).await.unwrap();
        let message: i64 = self.host.app.one(REACTION, vec![]).await;
        tokio::join!(acting.outcome(), settled(self.host.app, message, expected)).0
    }

    /// The actions as people see them: the text and the delivery of each.
    async fn shown(&self) -> Vec<(Value, Value)> {
        let query = "query($o: Id!, $c: Id!) { messages(orgId: $o, conversationId: $c, afterSeq: 0, limit: 200) \
                     { data { kind content delivery { status code error } } } }";
        let app = self.host.app;
        let shown = app.viewer.gql(query, json!({ "o": app.org, "c": self.conversation })).await.data();
        let all = shown["messages"]["data"].as_array().unwrap().iter();
        let events = all.filter(|message| message["kind"] == "EVENT");
        events.map(|event| (event["content"]["text"].clone(), event["delivery"].clone())).collect()
    }
}

/// The reactions that the vendor was asked for.
fn asked(fake: &[(String, Value)], method: &str) -> Vec<Value> {
    fake.iter().filter(|(asked, _)| asked == method).map(|(_, asked)| asked.clone()).collect()
}

#[tokio::test]
async fn a_reaction_is_carried_shown_and_answered() {
    let (app, telegram) = with_telegram().await;
    let scene = Scene::at_telegram(&app, &telegram).await;
    assert_eq!(scene.offered().await, ["react"]);
    assert_eq!(scene.judged(json!({ "emoji": "👀" })).await, Judgement::Allowed);
    let done = ActionOutcome::Done { vendor_id: None };
    assert_eq!(scene.reacts("k1", "👀", "SENT").await, done);
    // A host that lost the answer asks again.
    let again = scene.acts("k1", json!({ "emoji": "👀" }), 20_000).await.unwrap();
    assert_eq!(again.outcome().await, done);
    let reactions = json!([{ "type": "emoji", "emoji": "👀" }]);
    let expected = json!({ "chat_id": 5, "message_id": 1, "reaction": reactions });
    assert_eq!(asked(&telegram.lock().unwrap().asked, "setMessageReaction"), [expected]);
    app.clock.advance(Duration::from_secs(1));
    let reason = "Telegram has no reaction \"🪗\", or the chat does not allow it.".to_owned();
    let failed = ActionOutcome::Failed { reason: reason.clone() };
    assert_eq!(scene.reacts("k2", "🪗", "FAILED").await, failed);
    let sent = json!({ "status": "SENT", "code": null, "error": null });
    let refused = json!({ "status": "FAILED", "code": "refused", "error": reason });
    let mut shown = scene.shown().await;
    shown.sort_by_key(|(text, _)| text.to_string());
    assert_eq!(
        shown,
        [(json!("React: {\"emoji\":\"👀\"}"), sent), (json!("React: {\"emoji\":\"🪗\"}"), refused)]
    );
    let kept = "SELECT COUNT(*) FROM deliveries WHERE status = 'SENT' AND text IS NOT NULL";
    assert_eq!(app.column::<i64>(kept).await, [0]);
    // Nothing is stored of what can't be an action.
    for arguments in [json!({ "emoji": 5 }), json!({}), json!({ "emoji": "👀", "of": 1 })] {
        let problem = scene.acts("k3", arguments, 0).await.err().unwrap();
        assert!(problem.detail.contains("not valid"), "{}", problem.detail);
    }
    assert_eq!(scene.shown().await.len(), 2);
}

#[tokio::test]
async fn a_risk_rule_makes_a_person_decide_first() {
    let folder = tempfile::tempdir().unwrap();
    let rules = folder.path().join("risk.toml");
    let rule =
        "[[rule]]\nname = \"reactions\"\nrisk = 70\ncategory = \"messages\"\ntool = \"muster.react\"\n";
    fs::write(&rules, rule).unwrap();
    let (address, fake) = telegram().await;
    let app = app_with(address, |config| config.risk_file = Some(rules)).await;
    let scene = Scene::at_telegram(&app, &fake).await;
    let turn = app.one("SELECT id FROM turns", vec![]).await;
    scene.host.takes(turn).await;
    let input = json!({ "emoji": "👀" });
    assert_eq!(scene.judged(input.clone()).await, Judgement::Asked);
    let (tool, tool_kind) = (Some("muster.react".to_owned()), "other".to_owned());
    let wanted = Asked::Action { tool, tool_kind, title: "Use muster.react".to_owned(), input };
    scene.host.asks(scene.conversation, Some(turn), "1.1", wanted).await.unwrap();
    assert_eq!(app.column::<i64>("SELECT risk FROM approvals WHERE status = 'PENDING'").await, [70]);
    let approval: i64 = app.one("SELECT id FROM approvals", vec![]).await;
    let answer = format!("/v1/org/{}/approval/{approval}/answer", app.org);
    app.operator.patch(&answer, json!({ "options": ["approve"] })).await.expect(200);
    assert_eq!(scene.reacts("k1", "👀", "SENT").await, ActionOutcome::Done { vendor_id: None });
    let of = app.column::<i64>("SELECT turn_id FROM messages WHERE kind = 'EVENT'").await;
    assert_eq!((of, asked(&fake.lock().unwrap().asked, "setMessageReaction").len()), (vec![turn], 1));
}

#[tokio::test]
async fn what_may_not_be_used_is_neither_offered_nor_done() {
    let (app, telegram) = with_telegram().await;
    let scene = Scene::at_telegram(&app, &telegram).await;
    let emoji = json!({ "emoji": "👀" });
    let refusal = async || scene.acts("k1", emoji.clone(), 0).await.err().unwrap().detail;
    app.sets_agent(scene.host.agent, json!({ "disabledToolGroups": ["Muster"] })).await;
    assert_eq!(scene.offered().await, [] as [&str; 0]);
    let judged = scene.judged(emoji.clone()).await;
    assert!(matches!(&judged, Judgement::Refused { reason } if reason.contains("tools of this kind")));
    app.sets_agent(scene.host.agent, json!({ "disabledToolGroups": [] })).await;
    assert_eq!(scene.offered().await, ["react"]);
    let take = "mutation($o: Id!, $c: Id!) { takeOverConversation(orgId: $o, id: $c) { id } }";
    app.operator.gql(take, json!({ "o": app.org, "c": scene.conversation })).await.data();
    assert!(refusal().await.contains("A person answers"));
    let hand = "mutation($o: Id!, $c: Id!) { handBackConversation(orgId: $o, id: $c) { id } }";
    app.operator.gql(hand, json!({ "o": app.org, "c": scene.conversation })).await.data();
    app.operator.patch(&at(&app, &scene.channel), json!({ "is_active": false })).await.expect(200);
    assert_eq!(scene.offered().await, [] as [&str; 0]);
    assert!(refusal().await.contains("doesn't offer this"));
    assert_eq!(app.column::<i64>("SELECT COUNT(*) FROM deliveries").await, [0]);
    let internal = app.conversation(scene.host.agent).await;
    assert_eq!(Scene { conversation: internal, ..scene }.offered().await, [] as [&str; 0]);
}

#[tokio::test]
async fn a_hanging_vendor_leaves_it_queued_and_delays_no_other_answer() {
    let (app, telegram) = with_telegram().await;
    let scene = Scene::at_telegram(&app, &telegram).await;
    let answer = hold(&telegram, "setMessageReaction");
    let mut line = app.host_of(scene.host.agent).await.connect().await;
    let ask = |id: i64, mut wanted: Value| {
        wanted["conversation_id"] = json!(scene.conversation);
        let Host { agent, generation, .. } = scene.host;
        json!({ "frame": "ASK", "id": id, "agent_id": agent, "generation": generation, "wanted": wanted })
    };
    let act = |id: i64, key: &str, wait_ms: i64| {
        let arguments = json!({ "emoji": "👀" });
        let call =
            json!({ "kind": "ACT", "key": key, "name": "react", "arguments": arguments, "wait_ms": wait_ms });
        ask(id, call)
    };
    line.send(act(1, "k1", 20_000)).await;
    let first = "SELECT id FROM deliveries";
    until("it is stored", async || app.column::<i64>(first).await.len() == 1).await;
    let delivery = app.column::<i64>(first).await[0];
    let message: i64 = app.one(REACTION, vec![]).await;
    // More than are answered at a time.
    for id in 2..=6 {
        line.send(act(id, &format!("k{id}"), 20_000)).await;
    }
    line.send(ask(7, json!({ "kind": "ACTIONS" }))).await;
    let told = line.wait_for("TOLD").await;
    assert_eq!((&told["id"], &told["given"]["actions"][0]["name"]), (&json!(7), &json!("react")), "{told}");
    // The same call, by a host that does not wait.
    line.send(act(8, "k1", 0)).await;
    let told = line.wait_for("TOLD").await;
    let queued = json!({ "kind": "ACTED", "outcome": "QUEUED", "delivery_id": delivery });
    assert_eq!((&told["id"], &told["given"]), (&json!(8), &queued));
    until("the vendor is called", async || {
        deliveries::send_due(&app.core).await.unwrap();
        telegram.lock().unwrap().held.is_none()
    })
    .await;
    answer.send((200, json!({ "ok": true, "result": true }))).unwrap();
    settled(&app, message, "SENT").await;
    let told = line.wait_for("TOLD").await;
    let done = json!({ "kind": "ACTED", "outcome": "DONE", "vendor_id": null });
    assert_eq!((&told["id"], &told["given"]), (&json!(1), &done));
}

#[tokio::test]
async fn a_reaction_that_a_killed_service_left_is_made_once() {
    let (app, slack) = with_slack().await;
    let arrive = || slack.lock().unwrap().envelopes = vec![envelope("1", "Hello")];
    let scene = Scene::of(&app, |agent| workspace(agent, APP), "U1", arrive).await;
    let queued = scene.acts("k1", json!({ "emoji": "eyes" }), 0).await.unwrap().outcome().await;
    assert!(matches!(queued, ActionOutcome::Queued { .. }), "{queued:?}");
    let message: i64 = app.one(REACTION, vec![]).await;
    let reactions = || asked(&slack.lock().unwrap().asked, "reactions.add");
    // Killed after the claim: first before the call, then before its outcome was stored.
    for calls in 1..=2 {
        let left = "UPDATE deliveries SET status = 'SENDING', attempts = 1, available_at = $1, text = $2";
        app.execute(left, vec![app.clock.now().0.into(), r#"{"emoji":"eyes"}"#.into()]).await;
        until("another one takes it over", async || {
            deliveries::send_due(&app.core).await.unwrap();
            app.column::<String>("SELECT status FROM deliveries").await == ["PENDING"]
        })
        .await;
        app.clock.advance(Duration::from_secs(6));
        assert_eq!(settled(&app, message, "SENT").await, json!({ "status": "SENT", "attempts": 2 }));
        assert_eq!(reactions().len(), calls);
    }
    let expected = json!({ "channel": "D1", "timestamp": "1700000000.1", "name": "eyes" });
    assert_eq!(reactions(), vec![expected; 2], "the vendor has it once");
}
