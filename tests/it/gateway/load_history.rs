//! The load of servers over time.

use std::time::Duration;

use serde_json::{Value, json};

use crate::{
    gateway::{delete_server, with_host},
    harness::{Answer, TestApp, gateway::Line, until},
};

const QUERY: &str = "query($o: Id!, $i: Id!, $s: Timestamp, $b: Timestamp) { serverLoad(orgId: $o, serverId: $i, since: $s, before: $b) { \
    since before cpuAverage cpuMaximum memoryAverage memoryMaximum loadAverage loadMaximum } }";

async fn asks(app: &TestApp, server: i64, since: Option<&str>, before: Option<&str>) -> Answer {
    app.viewer.gql(QUERY, json!({ "o": app.org, "i": server, "s": since, "b": before })).await
}

async fn history(app: &TestApp, server: i64) -> Value {
    asks(app, server, None, None).await.data()["serverLoad"].clone()
}

/// Sends a reading, `later` than the one before.
async fn reads(app: &TestApp, line: &mut Line, server: i64, later: Duration, cpu: Option<f64>, ram: f64) {
    app.clock.advance(later);
    line.send(json!({ "frame": "LOAD", "cpu_pct": cpu, "ram_pct": ram, "load": [ram / 4.0, 9.0, 9.0], "uptime_seconds": 60 }))
        .await;
    let stored = || app.one::<i64>("SELECT last_seen_at FROM servers WHERE id = $1", vec![server.into()]);
    until("the reading is stored", async || stored().await == app.clock.now().0).await;
}

/// A period, whose load is a quarter of its memory usage.
fn period(
    [since, before]: [&str; 2],
    cpu: [Option<f64>; 2],
    [memory_average, memory_maximum]: [f64; 2],
) -> Value {
    json!({
        "since": format!("2026-06-01T{since}:00.000Z"), "before": format!("2026-06-01T{before}:00.000Z"),
        "cpuAverage": cpu[0], "cpuMaximum": cpu[1], "memoryAverage": memory_average, "memoryMaximum": memory_maximum,
        "loadAverage": memory_average / 4.0, "loadMaximum": memory_maximum / 4.0,
    })
}

const SOON: Duration = Duration::from_secs(6);

#[tokio::test]
async fn each_period_has_its_averages_and_maxima_and_gaps_stay_gaps() {
    let (app, host) = with_host().await;
    let server = host.server;
    let mut line = host.connect().await;
    reads(&app, &mut line, server, SOON, Some(10.25), 20.5).await;
    reads(&app, &mut line, server, SOON, Some(30.75), 60.5).await;
    assert_eq!(history(&app, server).await, json!([]), "the period is not over");
    reads(&app, &mut line, server, Duration::from_mins(5), None, 50.5).await;
    let first = period(["12:00", "12:05"], [Some(20.5), Some(30.75)], [40.5, 60.5]);
    assert_eq!(history(&app, server).await, json!([first]));
    reads(&app, &mut line, server, Duration::from_mins(15), Some(10.5), 70.5).await;
    let second = period(["12:05", "12:10"], [None, None], [50.5, 50.5]);
    assert_eq!(history(&app, server).await, json!([first, second]));

    // The connection's readings of the period are lost with it.
    let mut line = host.connect().await;
    reads(&app, &mut line, server, SOON, Some(20.5), 10.5).await;
    reads(&app, &mut line, server, Duration::from_mins(5), None, 90.5).await;
    let third = period(["12:20", "12:25"], [Some(20.5), Some(20.5)], [10.5, 10.5]);
    assert_eq!(history(&app, server).await, json!([first, second, third]));
}

async fn store(app: &TestApp, server: i64, minutes: i64, [cpu_average, cpu_maximum]: [f64; 2]) {
    let sql = "INSERT INTO server_loads (organization_id, server_id, period_at, cpu_avg, cpu_max) \
               SELECT organization_id, id, $2, $3, $4 FROM servers WHERE id = $1";
    let at = app.clock.now().0 + 60_000 * minutes;
    app.execute(sql, vec![server.into(), at.into(), cpu_average.into(), cpu_maximum.into()]).await;
}

#[tokio::test]
async fn long_answers_have_longer_periods_and_at_most_14_days() {
    let app = TestApp::start().await;
    let server = app.server().await;
    for (minutes, cpu) in [(0, [10.5, 20.5]), (25, [40.5, 50.5]), (50, [70.5, 80.5]), (60, [90.5, 91.5])] {
        store(&app, server, minutes, cpu).await;
    }
    let between = async |since: &str, before: &str| {
        let answer = asks(&app, server, Some(since), Some(before)).await.data();
        let of =
            |point: &Value| ["since", "before", "cpuAverage", "cpuMaximum"].map(|field| point[field].clone());
        answer["serverLoad"].as_array().unwrap().iter().map(of).collect::<Vec<_>>()
    };
    let at = |time: &str| json!(format!("2026-06-01T{time}:00.000Z"));
    let long = [
        [at("11:20"), at("12:30"), json!(25.5), json!(50.5)],
        [at("12:30"), at("13:40"), json!(70.5), json!(80.5)],
    ];
    assert_eq!(between("2026-05-18T13:00:00Z", "2026-06-01T13:00:00Z").await, long);
    let short = [[at("12:00"), at("12:05"), json!(10.5), json!(20.5)]];
    assert_eq!(between("2026-06-01T12:04:00Z", "2026-06-01T12:05:00Z").await, short);
    for (since, before) in [
        ("2026-05-18T12:59:59.999Z", "2026-06-01T13:00:00Z"),
        ("2026-06-01T13:00:00Z", "2026-06-01T13:00:00Z"),
        ("2026-06-01T13:00:01Z", "2026-06-01T13:00:00Z"),
    ] {
        assert_eq!(
            asks(&app, server, Some(since), Some(before)).await.code(),
            "VALIDATION_FAILED",
            "{since}"
        );
    }
}

#[tokio::test]
async fn a_history_goes_with_its_server_and_after_14_days() {
    let app = TestApp::start().await;
    let (gone, stays) = (app.server().await, app.server().await);
    for server in [gone, stays] {
        store(&app, server, -5, [10.0, 20.0]).await;
    }
    let theirs = json!({ "o": app.other_org, "i": stays });
    assert_eq!(app.stranger.gql(QUERY, theirs).await.code(), "NOT_FOUND");
    let token = app.token(&["agent.view"]).await;
    assert_eq!(token.gql(QUERY, json!({ "o": app.org, "i": stays })).await.code(), "PERMISSION_DENIED");

    delete_server(&app, gone).await.data();
    assert_eq!(app.column::<i64>("SELECT server_id FROM server_loads").await, [stays]);
    assert_eq!(asks(&app, gone, None, None).await.code(), "NOT_FOUND");
    app.clock.advance(Duration::from_hours(14 * 24) - Duration::from_mins(6));
    muster::jobs::sweep(&app.core).await.unwrap();
    assert_eq!(app.column::<i64>("SELECT server_id FROM server_loads").await, [stays]);
    app.clock.advance(Duration::from_mins(1));
    muster::jobs::sweep(&app.core).await.unwrap();
    assert_eq!(app.column::<i64>("SELECT server_id FROM server_loads").await, [0_i64; 0]);
}
