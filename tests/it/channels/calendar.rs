//! Calendars through the whole service, at a real CalDAV server.

use jiff::{Timestamp, ToSpan};
use muster::{
    base::{
        enums::MessageRole,
        ids::{AgentId, ConversationId},
        time::Clock,
    },
    domain::conversations,
};
use muster_protocol::plan::{ActionCall, ActionOutcome};
use serde_json::{Value, json};

use crate::{
    channels::{at, connect, deliveries::settled, path, probes::whitelist},
    conversations::messages::say,
    harness::{
        Host, TestApp,
        caldav::{CalDav, PASSWORD, USER},
        until,
    },
};

async fn app() -> TestApp {
    TestApp::start_with(|config| config.channels.networks = vec!["127.0.0.0/8".parse().unwrap()]).await
}

fn rota(agent: i64, server: &CalDav) -> Value {
    let calendar = json!({ "url": server.url, "user": USER, "pass": PASSWORD, "reminder_lead_minutes": 60 });
    json!({ "name": "Rota", "transport": "CALENDAR", "agent_id": agent, "calendar": calendar })
}

/// A time in these minutes.
pub fn soon(minutes: i64) -> String {
    let now = Timestamp::from_millisecond(Clock::system().now().0).unwrap();
    let at = now.checked_add(minutes.minutes()).unwrap();
    at.strftime("%Y-%m-%dT%H:%M:%S+00:00").to_string()
}

#[tokio::test]
async fn an_agent_is_reminded_and_answers_the_invitation() {
    let (app, server) = (app().await, CalDav::start("radicale").await);
    let host = app.running_agent().await;
    let channel = connect(&app, rota(host.agent, &server)).await;
    let asks = "query($o: Id!, $c: Id!) { channelCalendars(orgId: $o, id: $c) { id name } channel(orgId: $o, id: $c) \
                { warnings calendar { url user hasPass } } }";
    let asked = app.operator.gql(asks, json!({ "o": app.org, "c": channel["id"] })).await.data();
    assert_eq!(asked["channelCalendars"], json!([{ "id": server.calendar, "name": "Rota" }]));
    let expected = json!({ "url": server.url, "user": USER, "hasPass": true });
    assert_eq!(asked["channel"]["calendar"], expected);
    assert_eq!(asked["channel"]["warnings"][0], "No calendar is chosen, so nothing comes in.");
    let viewer = app.viewer.gql(asks, json!({ "o": app.org, "c": channel["id"] })).await;
    assert_eq!(viewer.code(), "PERMISSION_DENIED");
    let choice = json!({ "calendar": { "calendar_whitelist": [{ "id": server.calendar, "name": "Rota" }] } });
    app.operator.patch(&at(&app, &channel), choice).await.expect(200);
    whitelist(&app, &channel, "ada@a.test").await;
    server.add("e1", "Tea", &soon(30), &soon(60), &[USER]).await;
    app.service.ingest.listen();
    let stored = "SELECT conversation_id FROM messages WHERE via_channel_id IS NOT NULL AND role = 'USER'";
    until("the reminder is stored", async || app.column::<i64>(stored).await.len() == 1).await;
    let conversation = app.column::<i64>(stored).await[0];
    assert_eq!(
        app.column::<String>("SELECT title FROM conversations WHERE channel_id IS NOT NULL").await,
        ["Tea"]
    );
    // A text has no place in a calendar.
    say(&app, conversation, MessageRole::Assistant, "I accept.").await;
    assert_eq!(app.column::<i64>("SELECT COUNT(*) FROM deliveries").await, [0]);
    let Host { agent, generation, .. } = host;
    let (key, name) = ("k1".to_owned(), "answer_invitation".to_owned());
    let arguments = json!({ "answer": "accept" });
    let call = ActionCall { conversation_id: conversation, key, name, arguments, wait_ms: 20_000 };
    let acting = conversations::act(&app.scope(), AgentId(agent), generation, call).await.unwrap();
    let message: i64 = app.one("SELECT MAX(id) FROM messages WHERE kind = 'EVENT'", vec![]).await;
    let (outcome, _) = tokio::join!(acting.outcome(), settled(&app, message, "SENT"));
    assert!(matches!(outcome, ActionOutcome::Done { vendor_id: Some(_) }), "{outcome:?}");
    let read = server.person(&["read", &server.calendar]).await;
    assert_eq!(read[0]["answers"][USER], "ACCEPTED");
    let (scope, conversation) = (app.scope(), ConversationId(conversation));
    let offered = conversations::offered_actions(&scope, AgentId(agent), generation, conversation).await;
    let names: Vec<_> = offered.unwrap().into_iter().map(|action| action.name).collect();
    assert_eq!(names, ["create_event", "move_event", "answer_invitation"]);
}

#[tokio::test]
async fn a_servers_password_is_checked_and_only_used_there() {
    let (app, server) = (app().await, CalDav::start("radicale").await);
    let agent = app.agent().await;
    let mut wrong = rota(agent, &server);
    wrong["calendar"]["pass"] = json!("wrong");
    let refused = app.operator.post(&path(&app), wrong).await;
    assert_eq!(refused.violations(), [("/calendar/pass", "NOT_ALLOWED")]);
    let channel = connect(&app, rota(agent, &server)).await;
    let edit = async |calendar: Value| {
        app.operator.patch(&at(&app, &channel), json!({ "calendar": calendar })).await
    };
    let moved = edit(json!({ "url": "https://other.example/" })).await;
    assert_eq!(moved.violations(), [("/calendar/pass", "REQUIRED")]);
    // Nor in two steps.
    edit(json!({ "url": null })).await.expect(200);
    let moved = edit(json!({ "url": "https://other.example/" })).await;
    assert_eq!(moved.violations(), [("/calendar/pass", "REQUIRED")]);
    edit(json!({ "url": server.url, "pass": PASSWORD })).await.expect(200);
    assert_eq!(edit(json!({ "user": null })).await.violations(), [("/calendar/user", "REQUIRED")]);
    // Nor is it with the next address once the server was taken out.
    edit(json!({ "url": null })).await.expect(200);
    let moved = edit(json!({ "url": "https://other.example/" })).await;
    assert_eq!(moved.violations(), [("/calendar/pass", "REQUIRED")]);
    edit(json!({ "url": server.url, "pass": PASSWORD })).await.expect(200);
    assert_eq!(edit(json!({ "url": "file:///etc" })).await.violations()[0], ("/calendar/url", "NOT_ALLOWED"));
    // Later the password is changed there.
    let revoked = "UPDATE channels SET calendar_user = 'another' WHERE id = $1";
    app.execute(revoked, vec![channel["id"].as_i64().into()]).await;
    app.service.ingest.listen();
    let reason = "SELECT inactive_reason FROM channels WHERE inactive_reason IS NOT NULL";
    until("the channel is off", async || app.column::<String>(reason).await == ["AUTH_FAILED"]).await;
}
