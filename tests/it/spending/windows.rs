//! Providers' usage windows and rejected credentials: turns wait, one tries again, and people are asked.

use std::time::Duration;

use muster::{
    base::ids::ModelCredentialId,
    domain::{agents, launch, spending},
};
use muster_protocol::event::{EndReason, TurnOutcome};
use serde_json::json;
use tokio::sync::Notify;

use crate::harness::{
    TestApp,
    spending::{CALL, MODEL},
};

/// The credential that agents without one of their own use.
async fn default_credential(app: &TestApp, provider: &str) -> i64 {
    credential(app, "main", provider, true).await
}

async fn credential(app: &TestApp, name: &str, provider: &str, is_default: bool) -> i64 {
    let create = "mutation($o: Id!, $i: CreateModelCredentialInput!) { createModelCredential(orgId: $o, input: $i) { id } }";
    let input = json!({ "name": name, "provider": provider, "secret": name, "isDefault": is_default });
    let made = app.owner.gql(create, json!({ "o": app.org, "i": input })).await.data();
    made["createModelCredential"]["id"].as_i64().unwrap()
}

/// Makes a credential the default one, or not.
const DEFAULT: &str = "mutation($o: Id!, $i: Id!, $d: Boolean!) { \
                       updateModelCredential(orgId: $o, id: $i, input: { isDefault: $d }) { id } }";

#[tokio::test]
async fn after_a_usage_window_one_turn_goes_first() {
    let app = TestApp::start().await;
    let create = "mutation($o: Id!) { createModelCredential(orgId: $o, input: { name: \"main\", provider: \"Anthropic\", \
                  secret: \"canary-secret\", isDefault: true }) { id provider hasSecret } }";
    let made = app.owner.gql(create, json!({ "o": app.org })).await.data()["createModelCredential"].clone();
    assert_eq!((&made["provider"], &made["hasSecret"]), (&json!("anthropic"), &json!(true)));
    let credential = made["id"].as_i64();
    let (one, two) = (app.running_agent().await, app.running_agent().await);
    let access = one.launch_plan().await.unwrap().model_access.unwrap();
    assert_eq!((access.credential_id, access.key.expose()), (credential, "canary-secret"));
    let ((_, first), (_, second)) = (one.works().await, two.works().await);
    one.is_limited(credential, 600).await;
    assert_eq!(app.turn_is(first).await, "WAITING_LIMIT");
    let shown = one.agent_shows("usageStatus usageResetsAt limit { kind modelCredentialId }").await;
    let limit = json!({ "kind": "USAGE", "modelCredentialId": credential });
    assert_eq!(
        shown,
        json!({ "usageStatus": "REJECTED", "usageResetsAt": "2026-06-01T12:10:00.000Z", "limit": limit })
    );
    two.is_limited(credential, 600).await;
    for (host, turn) in [(&one, first), (&two, second)] {
        host.turn_ended(turn, TurnOutcome::Failed).await;
    }
    app.clock.advance(Duration::from_secs(599));
    assert_eq!(spending::release_due(&app.core).await.unwrap(), 0);
    app.clock.advance(Duration::from_secs(1));
    assert_eq!(spending::release_due(&app.core).await.unwrap(), 1, "one goes alone");
    let tried = [one.given().await.len(), two.given().await.len()];
    assert_eq!(tried.iter().sum::<usize>(), 3);
    let (prober, waiting, turn, other) =
        if tried[0] == 2 { (&one, &two, first, second) } else { (&two, &one, second, first) };
    app.clock.advance(Duration::from_secs(10));
    assert_eq!(spending::release_due(&app.core).await.unwrap(), 0);
    prober.takes(turn).await;
    prober.calls(prober.call(Some(turn), 10, 10)).await;
    app.clock.advance(Duration::from_secs(1));
    spending::release_due(&app.core).await.unwrap();
    assert_eq!(waiting.given().await.len(), 2);
    let waits = json!({ "limit": null, "usageStatus": "REJECTED" });
    assert_eq!(waiting.agent_shows("limit { kind } usageStatus").await, waits);
    // Its own call passes, too.
    waiting.takes(other).await;
    waiting.calls(waiting.call(Some(other), 10, 10)).await;
    for host in [prober, waiting] {
        assert_eq!(host.agent_shows("usageStatus").await["usageStatus"], "ALLOWED");
    }
}

#[tokio::test]
async fn a_new_default_credential_frees_waiting_agents() {
    let app = TestApp::start().await;
    let first = default_credential(&app, "anthropic").await;
    let (one, two) = (app.running_agent().await, app.running_agent().await);
    let ((_, turn), (_, other)) = (one.works().await, two.works().await);
    for (host, turn) in [(&one, turn), (&two, other)] {
        host.gives_up(turn, Some(first), 600).await;
    }
    assert_eq!(spending::release_due(&app.core).await.unwrap(), 0);
    let second = Some(credential(&app, "second", "anthropic", true).await);
    assert_eq!(spending::release_due(&app.core).await.unwrap(), 2);
    assert_eq!([one.given().await.len(), two.given().await.len()], [2, 2]);
    // And then there is none.
    one.is_limited(second, 600).await;
    assert_eq!(spending::release_due(&app.core).await.unwrap(), 0);
    app.owner.gql(DEFAULT, json!({ "o": app.org, "i": second, "d": false })).await.data();
    assert_eq!(spending::release_due(&app.core).await.unwrap(), 2);
}

#[tokio::test]
async fn an_old_credentials_window_holds_up_no_agent() {
    let app = TestApp::start().await;
    let first = default_credential(&app, "anthropic").await;
    let (one, own) = (app.running_agent().await, app.running_agent().await);
    let ((_, turn), (_, other)) = (one.works().await, own.works().await);
    // Their calls are under way.
    credential(&app, "second", "anthropic", true).await;
    let key = json!({ "credentialChoice": "OWN", "modelCredential": "three", "modelCredentialProvider": "anthropic" });
    app.sets_agent(own.agent, key).await;
    for (host, turn) in [(&one, turn), (&own, other)] {
        host.gives_up(turn, Some(first), 600).await;
        assert_ne!(host.agent_shows("usageStatus").await["usageStatus"], "REJECTED");
    }
    let limited: Vec<Option<i64>> = app.column("SELECT limited_until FROM model_credentials").await;
    assert_eq!(limited, [None, None]);
    assert_eq!(spending::release_due(&app.core).await.unwrap(), 1);
    assert_eq!((one.given().await, own.given().await), (vec![turn, turn], vec![other]));
    // Whether its own key is limited as well, one turn has to show.
    app.clock.advance(Duration::from_mins(1));
    assert_eq!(spending::release_due(&app.core).await.unwrap(), 1);
    assert_eq!(own.given().await, [other, other]);
}

#[tokio::test]
async fn a_new_default_with_a_closed_window_is_waited_for() {
    let app = TestApp::start().await;
    let first = default_credential(&app, "anthropic").await;
    let (one, two) = (app.running_agent().await, app.running_agent().await);
    let turns = [one.works().await.1, two.works().await.1];
    let second = Some(credential(&app, "second", "anthropic", false).await);
    one.is_limited(Some(first), 600).await;
    app.owner.gql(DEFAULT, json!({ "o": app.org, "i": second, "d": true })).await.data();
    for (host, turn) in [&one, &two].into_iter().zip(turns) {
        host.gives_up(turn, second, 900).await;
    }
    app.owner.gql(DEFAULT, json!({ "o": app.org, "i": first, "d": true })).await.data();
    assert_eq!(spending::release_due(&app.core).await.unwrap(), 0);
    let limit = json!({ "limit": { "modelCredentialId": first, "until": "2026-06-01T12:10:00.000Z" } });
    for host in [&one, &two] {
        assert_eq!(host.agent_shows("limit { modelCredentialId until }").await, limit);
    }
    app.clock.advance(Duration::from_secs(600));
    assert_eq!(spending::release_due(&app.core).await.unwrap(), 1, "one goes alone");
    assert_eq!(one.given().await.len() + two.given().await.len(), 3);
}

#[tokio::test]
async fn an_agent_that_takes_no_turns_leaves_the_try_to_others() {
    let app = TestApp::start().await;
    let credential = default_credential(&app, "anthropic").await;
    let (paused, running) = (app.running_agent().await, app.running_agent().await);
    let ((_, first), (_, second)) = (paused.works().await, running.works().await);
    for (host, turn) in [(&paused, first), (&running, second)] {
        host.gives_up(turn, Some(credential), 600).await;
    }
    let of_paused = vec![paused.agent.into()];
    app.execute("UPDATE agents SET status = 'PAUSED' WHERE id = $1", of_paused.clone()).await;
    app.clock.advance(Duration::from_secs(600));
    // It is looked at first.
    app.execute("UPDATE agent_limits SET until_at = 0 WHERE agent_id = $1", of_paused).await;
    assert_eq!(spending::release_due(&app.core).await.unwrap(), 1);
    assert_eq!([paused.given().await.len(), running.given().await.len()], [1, 2]);
    assert_eq!(paused.agent_shows("limit { kind }").await["limit"]["kind"], "USAGE");
}

#[tokio::test]
async fn a_first_turn_given_up_again_waits_with_the_others() {
    let app = TestApp::start().await;
    let host = app.running_agent().await;
    let ((_, first), (_, second)) = (host.works().await, host.works().await);
    host.is_limited(None, 600).await;
    for turn in [first, second] {
        host.turn_ended(turn, TurnOutcome::Failed).await;
    }
    app.clock.advance(Duration::from_secs(600));
    assert_eq!(spending::release_due(&app.core).await.unwrap(), 1);
    assert_eq!(host.given().await, [first, second, first]);
    host.takes(first).await;
    host.is_limited(None, 600).await;
    // As if nothing were wrong. The second one waits: its call it can't have been.
    host.turn_ended(first, TurnOutcome::Done).await;
    assert_eq!([app.turn_is(first).await, app.turn_is(second).await], ["WAITING_LIMIT", "WAITING_LIMIT"]);
}

#[tokio::test]
async fn a_providers_window_counts_a_day_from_a_running_host() {
    let app = TestApp::start().await;
    let credential = default_credential(&app, "anthropic").await;
    let (gone, up) = (app.running_agent().await, app.running_agent().await);
    gone.act("stop").await;
    gone.ended(EndReason::Stopped).await;
    let until = || app.one::<Option<i64>>("SELECT limited_until FROM model_credentials", vec![]);
    gone.is_limited(Some(credential), 600).await;
    assert_eq!(until().await, None);
    let told = gone.tell(async |tx, from| launch::reports::auth_required(tx, from, "401".to_owned()).await);
    told.await.unwrap();
    assert_eq!(app.one::<i64>("SELECT COUNT(*) FROM approvals", vec![]).await, 0);
    assert!(up.agent_shows("limit { kind }").await["limit"].is_null());
    up.is_limited(Some(credential), 30 * 24 * 3600).await;
    assert_eq!(until().await, Some(app.clock.now().plus(Duration::from_hours(24)).0));
}

#[tokio::test]
async fn a_rejected_credential_is_asked_for_once() {
    let app = TestApp::start().await;
    let credential = default_credential(&app, "openai").await;
    for host in [app.running_agent().await, app.running_agent().await] {
        let told = host.tell(async |tx, from| {
            muster::domain::launch::reports::auth_required(tx, from, "401".to_owned()).await
        });
        told.await.unwrap();
    }
    let pending = "SELECT COUNT(*) FROM approvals WHERE kind = 'AUTH_REQUIRED' AND status = 'PENDING'";
    assert_eq!(app.one::<i64>(pending, vec![]).await, 1);
    let update = "mutation($o: Id!, $i: Id!, $input: UpdateModelCredentialInput!) { \
                  updateModelCredential(orgId: $o, id: $i, input: $input) { authFailedAt revision } }";
    let moved = json!({ "o": app.org, "i": credential, "input": { "baseUrl": "https://evil.example" } });
    assert_eq!(app.owner.gql(update, moved).await.code(), "VALIDATION_FAILED");
    let renewed = json!({ "o": app.org, "i": credential, "input": { "secret": "two" } });
    let shown = app.owner.gql(update, renewed).await.data()["updateModelCredential"].clone();
    assert_eq!(shown, json!({ "authFailedAt": null, "revision": 1 }));
    assert_eq!(app.one::<i64>(pending, vec![]).await, 0);
}

/// Both write limits of agents that they don't hold. SQLite has one writer.
#[tokio::test(flavor = "multi_thread")]
async fn postgres_a_window_and_a_lease_do_not_wait_for_each_other() {
    let app = TestApp::with_budget(100 * CALL).await;
    let credential = default_credential(&app, "anthropic").await;
    let (one, two) = (app.running_agent().await, app.running_agent().await);
    one.leases().await.unwrap();
    let waits = "INSERT INTO agent_limits (organization_id, agent_id, kind, reason, until_at, since) \
                 VALUES ($1, $2, 'MONEY', 'so', 9000000000000, 0)";
    app.execute(waits, vec![app.org.into(), two.agent.into()]).await;
    // A lease that was returned holds the month before it writes them.
    let (month, limits) =
        ("SELECT 1 FROM organization_months FOR UPDATE", "SELECT 1 FROM agent_limits FOR UPDATE NOWAIT");
    Box::pin(app.while_held(month, limits, one.is_limited(Some(credential), 600))).await;
    assert_eq!(one.agent_shows("limit { kind }").await["limit"]["kind"], "USAGE");
}

#[tokio::test(flavor = "multi_thread")]
async fn postgres_a_credential_is_renewed_during_a_report() {
    let app = TestApp::start().await;
    let credential = default_credential(&app, "anthropic").await;
    let host = app.running_agent().await;
    let update = "mutation($o: Id!, $i: Id!, $r: Int) { \
                  updateModelCredential(orgId: $o, id: $i, ifRevision: $r, input: { secret: \"two\" }) { revision } }";
    for (if_revision, revision) in [(None, 1), (Some(1), 2)] {
        let held = Notify::new();
        let renews = async {
            held.notified().await;
            app.owner.gql(update, json!({ "o": app.org, "i": credential, "r": if_revision })).await.data()
        };
        let reports = host.tell(async |tx, from| {
            agents::lock_agent(tx, from.agent).await?;
            held.notify_one();
            app.waits_for_a_lock().await;
            let (of, until) = (ModelCredentialId(credential), app.clock.now().plus(Duration::from_mins(10)));
            spending::usage::record_refusal(tx, from, Some(of), (MODEL, "slow down"), Some(until)).await
        });
        let (told, renewed) = tokio::join!(reports, renews);
        told.unwrap();
        assert_eq!(renewed["updateModelCredential"]["revision"], revision);
        let limited: Option<i64> = app.one("SELECT limited_until FROM model_credentials", vec![]).await;
        assert_eq!(limited, None, "the new secret has a window of its own");
    }
}
