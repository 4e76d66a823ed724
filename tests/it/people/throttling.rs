//! Throttling: guesses get slower for everyone who guesses, and no one is locked out for good.

use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::{Actor, TestApp};

const EMAIL: &str = "someone@example.org";

/// How many guesses were checked before one was throttled, and for how long.
async fn guesses(app: &TestApp, email: &str) -> (usize, Value) {
    for n in 0..50 {
        let answer = app.sign_in(email, "a guess").await;
        if answer.code() == "RATE_LIMITED" {
            let details = &answer.body["errors"][0]["extensions"]["details"];
            let told = (answer.status, answer.header("retry-after").to_owned());
            assert_eq!(told, (429, details["retry_after"].to_string()));
            return (n, details["retry_after"].clone());
        }
        assert_eq!(answer.code(), "SIGN_IN_FAILED");
    }
    panic!("no one was throttled");
}

#[tokio::test]
async fn each_guess_doubles_the_delay_for_any_address() {
    let app = TestApp::start().await;
    app.user(EMAIL, true).await;
    for email in [EMAIL, "unknown@example.org"] {
        assert_eq!(guesses(&app, email).await, (5, json!(1)), "{email}");
        // The right password is throttled as well, so the answer reveals nothing.
        assert_eq!(app.sign_in(email, "correct horse").await.code(), "RATE_LIMITED");
        for seconds in [1, 2, 4, 8, 16] {
            app.clock.advance(Duration::from_secs(seconds));
            assert_eq!(guesses(&app, email).await, (1, json!(seconds * 2)), "{email}");
        }
    }
}

#[tokio::test]
async fn the_right_password_or_time_resets_the_delay() {
    let app = TestApp::start().await;
    app.user(EMAIL, true).await;
    for _ in 0..4 {
        assert_eq!(app.sign_in(EMAIL, "a guess").await.code(), "SIGN_IN_FAILED");
        assert_eq!(app.sign_in(EMAIL, "a guess").await.code(), "SIGN_IN_FAILED");
        app.sign_in(" Someone@Example.org", "correct horse").await.data();
    }
    guesses(&app, EMAIL).await;
    app.clock.advance(Duration::from_secs(1));
    app.sign_in(EMAIL, "correct horse").await.data();
    assert_eq!(guesses(&app, EMAIL).await.0, 5);
    app.clock.advance(Duration::from_hours(12) + Duration::from_secs(1));
    assert_eq!(guesses(&app, EMAIL).await.0, 5);
    muster::jobs::sweep(&app.core).await.unwrap();
    app.clock.advance(Duration::from_hours(13));
    muster::jobs::sweep(&app.core).await.unwrap();
    assert_eq!(app.one::<i64>("SELECT COUNT(*) FROM sign_in_throttle", vec![]).await, 0);
}

#[tokio::test]
async fn the_delay_is_bounded_even_for_a_hammered_account() {
    let app = TestApp::start().await;
    app.user(EMAIL, true).await;
    for _ in 0..30 {
        app.sign_in(EMAIL, "a guess").await.code();
        app.clock.advance(Duration::from_mins(15));
    }
    app.clock.advance(Duration::from_mins(15));
    app.sign_in(EMAIL, "correct horse").await.data();
}

#[tokio::test]
async fn a_hundred_concurrent_guesses_count_as_a_hundred() {
    let app = TestApp::start().await;
    app.user(EMAIL, true).await;
    let all = futures::future::join_all((0..40).map(|_| app.sign_in(EMAIL, "a guess"))).await;
    let looked_at = all.iter().filter(|answer| answer.code() == "SIGN_IN_FAILED").count();
    assert_eq!(looked_at, 5);
}

#[tokio::test]
async fn an_account_hammered_from_elsewhere_stays_open_to_its_owner() {
    let app = TestApp::start().await;
    app.user(EMAIL, true).await;
    app.sign_in(EMAIL, "correct horse").await.data();
    // Twenty failures from everywhere, each address having none of its own.
    for _ in 0..4 {
        guesses(&app, EMAIL).await;
        app.execute("DELETE FROM sign_in_throttle WHERE failures < 5", vec![]).await;
        app.clock.advance(Duration::from_hours(1));
    }
    // This address has had a session of the account, so the global counter doesn't apply here.
    app.sign_in(EMAIL, "correct horse").await.data();
    // Other people's attempts from the same address don't either.
    for n in 0..45 {
        app.sign_in(&format!("unknown-{n}@example.org"), "a guess").await;
    }
    assert_eq!(app.sign_in("unknown@example.org", "a guess").await.code(), "RATE_LIMITED");
    app.sign_in(EMAIL, "correct horse").await.data();
    app.clock.advance(Duration::from_hours(13));
    // For an address without one, it does.
    app.execute("UPDATE sessions SET ip = '192.0.2.1'", vec![]).await;
    let mut codes = Vec::new();
    for _ in 0..30 {
        codes.push(app.sign_in(EMAIL, "a guess").await.code());
        app.clock.advance(Duration::from_secs(1));
    }
    assert!(codes.contains(&"RATE_LIMITED".to_owned()));
}

/// The answer to a wrong password.
async fn refusal(app: &TestApp, email: &str) -> (String, Value) {
    let answer = app.sign_in(email, "a guess").await;
    (answer.code(), answer.body["errors"][0]["extensions"]["details"]["retry_after"].clone())
}

#[tokio::test]
async fn guessing_does_not_reveal_sign_ins_from_the_same_address() {
    let app = TestApp::start_with(|config| config.metrics.listen = Some("127.0.0.1:0".parse().unwrap()));
    let app = app.await;
    let page = app.measured().await;
    app.user(EMAIL, true).await;
    app.sign_in(EMAIL, "correct horse").await.data();
    app.execute("DELETE FROM sign_in_throttle", vec![]).await;
    // Both write and read the same.
    let mut costs = Vec::new();
    for email in [EMAIL, "unknown@example.org"] {
        let before = (statements(&page).await, app.one::<i64>(COUNTERS, vec![]).await);
        assert_eq!(refusal(&app, email).await.0, "SIGN_IN_FAILED");
        let after = (statements(&page).await, app.one::<i64>(COUNTERS, vec![]).await);
        costs.push((after.0 - before.0, after.1 - before.1));
    }
    assert_eq!(costs[0], costs[1], "statements, failures that were counted");
    assert!(costs[0].0 > 10 && costs[0].1 == 3, "{costs:?}");
    // The answers are the same while the address is throttled, attempt by attempt.
    for n in 0..45 {
        app.sign_in(&format!("unknown-{n}@example.org"), "a guess").await;
    }
    for _ in 0..8 {
        let known = refusal(&app, EMAIL).await;
        assert_eq!(known.0, "RATE_LIMITED");
        assert_eq!(known, refusal(&app, "unknown@example.org").await);
        app.clock.advance(Duration::from_millis(10));
    }
    // And it isn't free: guesses at the account from there have their own limit.
    let held = "SELECT MAX(failures) FROM sign_in_throttle";
    let before: i64 = app.one(held, vec![]).await;
    assert_eq!(app.sign_in(EMAIL, "correct horse").await.code(), "RATE_LIMITED");
    assert_eq!(app.one::<i64>(held, vec![]).await, before);
}

/// The number of statements the service has run, including those in transactions.
async fn statements(page: &Actor) -> i64 {
    let text = page.get("/metrics").await.text;
    let counts = text.lines().filter(|line| line.starts_with("muster_sql_statement_duration_seconds_count"));
    counts.map(|line| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap() as i64).sum()
}

const COUNTERS: &str = "SELECT COALESCE(CAST(SUM(failures) AS BIGINT), 0) FROM sign_in_throttle";

#[tokio::test]
async fn typed_secrets_are_not_stored_and_delays_are_logged() {
    let app = TestApp::start().await;
    let id = app.user(EMAIL, true).await;
    guesses(&app, EMAIL).await;
    guesses(&app, "unknown@example.org").await;
    let keys: Vec<Vec<u8>> = app.column("SELECT key_hash FROM sign_in_throttle").await;
    assert!(keys.len() >= 5 && keys.iter().all(|key| key.len() == 32));
    muster::core::audit::write_refusals(&app.core, true).await.unwrap();
    let sql = "SELECT COUNT(*) FROM audit_lines WHERE operation = 'signIn' AND outcome = 'REFUSED' AND target_id = $1 AND organization_id IS NULL";
    assert!(app.one::<i64>(sql, vec![id.into()]).await >= 1);
    // The stranger gets no special treatment.
    assert_eq!(app.sign_in("stranger@example.com", "a guess").await.code(), "SIGN_IN_FAILED");
}

#[tokio::test]
async fn guessing_links_is_limited_too() {
    let app = TestApp::start().await;
    let reset = "mutation($t: SecretString!) { resetPassword(token: $t, newPassword: \"battery staple\") }";
    let mut codes = Vec::new();
    for _ in 0..42 {
        codes.push(app.anonymous.gql(reset, json!({ "t": "mst_link_guess" })).await.code());
    }
    assert_eq!(codes.iter().filter(|code| *code == "LINK_INVALID").count(), 40);
    assert_eq!(codes.last().unwrap(), "RATE_LIMITED");
}
