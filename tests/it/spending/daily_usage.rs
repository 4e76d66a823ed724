//! Usage by day: its sums are those of the turns and of the measured calls, and its days are the organization's.

use std::time::Duration;

use muster::base::time::Timestamp;
use muster_protocol::{
    event::{TurnEnd, TurnOutcome, Usage},
    spending::ModelCall,
};
use serde_json::{Value, json};

use crate::harness::{Host, TestApp, spending::MODEL};

const QUERY: &str = "query($o: Id!, $by: UsageGrouping!, $s: String, $b: String) { \
    usage(orgId: $o, by: $by, since: $s, before: $b) { \
    day key label turns unpriced inputTokens outputTokens cacheReadTokens cacheWriteTokens costMicro } }";

async fn usage(app: &TestApp, by: &str, [since, before]: [&str; 2]) -> Value {
    let variables = json!({ "o": app.org, "by": by, "s": since, "b": before });
    app.viewer.gql(QUERY, variables).await.data()["usage"].clone()
}

/// A row without tokens of caches.
fn row(day: &str, key: &Value, label: &Value, counts: [i64; 2], sums: [i64; 3]) -> Value {
    let ([turns, unpriced], [input, output, cost]) = (counts, sums.map(|sum| sum.to_string()));
    json!({
        "day": day, "key": key, "label": label, "turns": turns, "unpriced": unpriced, "inputTokens": input,
        "outputTokens": output, "cacheReadTokens": "0", "cacheWriteTokens": "0", "costMicro": cost,
    })
}

/// A turn in which nothing is measured: the agent reports its own figures.
async fn reports_itself(host: &Host<'_>) -> i64 {
    let (conversation, turn_id) = host.works().await;
    let usage = Usage { input: Some(500), output: Some(50), cost_micro: Some(7), ..Usage::default() };
    let (error, model, context_tokens) = (None, Some("own-model".to_owned()), None);
    host.ends(TurnEnd { turn_id, outcome: TurnOutcome::Done, error, model, usage, context_tokens }).await;
    conversation
}

const DAYS: [&str; 2] = ["2026-06-01", "2026-06-03"];

/// Two days in Tokyo: 4,500 measured and 7 reported, then a call of an unknown model, and one of no turn for 3,000.
/// Returns the conversation of the reported turn.
async fn spends(app: &TestApp) -> (Host<'_>, i64) {
    app.sets(json!({ "timezone": "Asia/Tokyo" })).await;
    let host = app.running_agent().await;
    let (_, turn) = host.works().await;
    host.calls(host.call(Some(turn), 1000, 100)).await;
    host.turn_ended(turn, TurnOutcome::Done).await;
    // From 21:00 to the last millisecond of the day.
    app.clock.advance(Duration::from_hours(3) - Duration::from_millis(1));
    let conversation = reports_itself(&host).await;
    app.clock.advance(Duration::from_millis(1));
    let (_, turn) = host.works().await;
    host.calls(ModelCall { model: "unknown-knows".to_owned(), ..host.call(Some(turn), 2000, 0) }).await;
    host.turn_ended(turn, TurnOutcome::Done).await;
    host.calls(host.call(None, 1000, 0)).await;
    (host, conversation)
}

#[tokio::test]
async fn usage_by_agent_and_model_has_every_call() {
    let app = TestApp::start().await;
    let (host, _) = spends(&app).await;
    let name = host.agent_shows("name").await["name"].clone();
    let agent = json!(host.agent.to_string());
    let expected = json!([
        row("2026-06-01", &agent, &name, [2, 0], [1500, 150, 4507]),
        row("2026-06-02", &agent, &name, [1, 1], [3000, 0, 3000]),
    ]);
    assert_eq!(usage(&app, "AGENT", DAYS).await, expected);
    let counted = json!({ "costMicro": "7507", "tokensUsed": "4650" });
    assert_eq!(host.agent_shows("costMicro tokensUsed").await, counted, "the same sums");
    let expected = json!([
        row("2026-06-01", &json!(MODEL), &Value::Null, [1, 0], [1000, 100, 4500]),
        row("2026-06-01", &json!("own-model"), &Value::Null, [1, 0], [500, 50, 7]),
        row("2026-06-02", &json!(MODEL), &Value::Null, [0, 0], [1000, 0, 3000]),
        row("2026-06-02", &json!("unknown-knows"), &Value::Null, [1, 1], [2000, 0, 0]),
    ]);
    assert_eq!(usage(&app, "MODEL", DAYS).await, expected);
    // The turn's own figures no longer count once a call of it is measured.
    let turn: i64 = app.one("SELECT id FROM turns WHERE unmeasured", vec![]).await;
    host.calls(host.call(Some(turn), 1000, 100)).await;
    let shown = usage(&app, "AGENT", DAYS).await;
    let costs = [&shown[0]["costMicro"], &shown[1]["costMicro"]];
    assert_eq!(costs, ["4500", "7500"], "the day of a call is that on which it began");
}

#[tokio::test]
async fn usage_by_channel_and_cause_is_that_of_the_turns() {
    let app = TestApp::start().await;
    let (host, conversation) = spends(&app).await;
    let cause: String = app.one("SELECT MAX(cause) FROM turns", vec![]).await;
    let expected = json!([
        row("2026-06-01", &json!(cause), &Value::Null, [2, 0], [1500, 150, 4507]),
        row("2026-06-02", &json!(cause), &Value::Null, [1, 1], [2000, 0, 0]),
    ]);
    assert_eq!(usage(&app, "CAUSE", DAYS).await, expected);
    let of_turns: Vec<i64> =
        app.column("SELECT COALESCE(cost_micro, 0) FROM turns WHERE ended_at IS NOT NULL").await;
    assert_eq!(of_turns.iter().sum::<i64>(), 4507);

    let create = "mutation($o: Id!, $a: Id!) { createChannel(orgId: $o, input: { name: \"Tides\", agentId: $a, \
                  transport: CALENDAR }) { id } }";
    let made = app.owner.gql(create, json!({ "o": app.org, "a": host.agent })).await.data();
    let channel = made["createChannel"]["id"].as_i64().unwrap();
    let link = "UPDATE conversations SET channel_id = $1 WHERE id = $2";
    app.execute(link, vec![channel.into(), conversation.into()]).await;
    let expected = json!([
        row("2026-06-01", &Value::Null, &Value::Null, [1, 0], [1000, 100, 4500]),
        row("2026-06-01", &json!(channel.to_string()), &json!("Tides"), [1, 0], [500, 50, 7]),
        row("2026-06-02", &Value::Null, &Value::Null, [1, 1], [2000, 0, 0]),
    ]);
    assert_eq!(usage(&app, "CHANNEL", DAYS).await, expected);
}

#[tokio::test]
async fn a_day_of_23_hours_begins_and_ends_at_midnight() {
    let app = TestApp::start().await;
    app.sets(json!({ "timezone": "Europe/Berlin" })).await;
    let host = app.running_agent().await;
    // The clocks go forward at 01:00 UTC.
    for begun in [
        "2026-03-28T22:59:59.999Z",
        "2026-03-28T23:00:00.000Z",
        "2026-03-29T21:59:59.999Z",
        "2026-03-29T22:00:00.000Z",
    ] {
        let (_, turn) = host.works().await;
        let begun: Timestamp = begun.parse().unwrap();
        app.execute("UPDATE turns SET started_at = $1 WHERE id = $2", vec![begun.0.into(), turn.into()])
            .await;
    }
    let counted = async |since, before| -> Vec<(String, i64)> {
        let shown = usage(&app, "AGENT", [since, before]).await;
        let rows = shown.as_array().unwrap().iter();
        rows.map(|row| (row["day"].as_str().unwrap().to_owned(), row["turns"].as_i64().unwrap())).collect()
    };
    let [before, middle, after] =
        [("2026-03-28", 1), ("2026-03-29", 2), ("2026-03-30", 1)].map(|(day, turns)| (day.to_owned(), turns));
    assert_eq!(counted("2026-03-01", "2026-04-01").await, [before, middle.clone(), after]);
    assert_eq!(counted("2026-03-29", "2026-03-30").await, [middle]);
}

#[tokio::test]
async fn usage_stays_in_its_organization() {
    let app = TestApp::start().await;
    spends(&app).await;
    for by in ["AGENT", "MODEL", "CHANNEL", "CAUSE"] {
        let ask = |org: i64| json!({ "o": org, "by": by, "s": DAYS[0], "b": DAYS[1] });
        let theirs = app.stranger.gql(QUERY, ask(app.other_org)).await.data();
        assert_eq!(theirs["usage"], json!([]), "{by}");
        assert_eq!(app.stranger.gql(QUERY, ask(app.org)).await.code(), "NOT_A_MEMBER", "{by}");
    }
}

#[tokio::test]
async fn usage_is_of_at_most_90_days_and_by_default_of_30() {
    let app = TestApp::start().await;
    let host = app.running_agent().await;
    host.works().await;
    let ask = async |since: Option<&str>, before: Option<&str>| {
        app.viewer.gql(QUERY, json!({ "o": app.org, "by": "AGENT", "s": since, "b": before })).await
    };
    assert_eq!(ask(None, None).await.data()["usage"][0]["turns"], 1);
    assert_eq!(ask(None, Some("2026-06-01")).await.data()["usage"], json!([]));
    assert_eq!(ask(Some("2026-03-04"), Some("2026-06-02")).await.data()["usage"][0]["turns"], 1);
    for (since, before) in
        [("2026-03-03", "2026-06-02"), ("2026-06-02", "2026-06-02"), ("yesterday!", "2026-06-02")]
    {
        assert_eq!(ask(Some(since), Some(before)).await.code(), "VALIDATION_FAILED", "{since}");
    }
}

#[tokio::test]
async fn models_beyond_200_are_added_up() {
    let app = TestApp::start().await;
    let agent = app.agent().await;
    let add = "INSERT INTO model_days (organization_id, agent_id, day, provider, model, calls, cost_micro) \
               VALUES ($1, $2, '2026-06-01', 'made-up', $3, 1, 1)";
    for n in 0..205 {
        app.execute(add, vec![app.org.into(), agent.into(), format!("model-{n:03}").into()]).await;
    }
    let shown = usage(&app, "MODEL", DAYS).await;
    let shown = shown.as_array().unwrap();
    assert_eq!(shown.len(), 201);
    let other = shown.iter().find(|row| row["key"] == "other").unwrap();
    assert_eq!(other["costMicro"], "5");
}
