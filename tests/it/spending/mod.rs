//! Money: calls are priced and counted, and an agent with nothing left waits, then continues by itself.

mod daily_usage;
mod guards;
mod hosts;
mod leases;
mod turns_at_limits;
mod windows;

use std::time::Duration;

use muster::{
    domain::{agents, spending},
    jobs,
};
use muster_protocol::{
    event::{EndReason, TurnEnd, TurnOutcome, Usage},
    plan::{Part, PlanResponse},
    spending::ModelCall,
};
use serde_json::json;
use tokio::sync::Notify;

use crate::harness::{
    Host, TestApp,
    spending::{CALL, MODEL},
};

#[tokio::test]
async fn a_priced_call_counts_for_turn_day_and_month() {
    let app = TestApp::start().await;
    let host = app.running_agent().await;
    let (_, turn) = host.works().await;
    let mut cached = host.call(Some(turn), 1000, 100);
    cached.usage.cache_read = Some(10_000);
    host.calls(cached).await;
    host.calls(host.call(Some(turn), 1000, 100)).await;
    // The agent's own figures don't count where the host has measured.
    host.turn_ended(turn, TurnOutcome::Done).await;
    let query = "query($o: Id!, $t: Id!) { turn(orgId: $o, id: $t) { model inputTokens outputTokens cacheReadTokens costMicro \
                 modelCalls { status costMicro millis } } }";
    let shown = app.viewer.gql(query, json!({ "o": app.org, "t": turn })).await.data()["turn"].clone();
    assert_eq!(shown["model"], MODEL);
    assert_eq!((&shown["inputTokens"], &shown["cacheReadTokens"]), (&json!("2000"), &json!("10000")));
    assert_eq!(shown["costMicro"], "12000", "2 × (3,000 + 1,500) and 3,000 for the cache");
    assert_eq!(shown["modelCalls"][1], json!({ "status": 200, "costMicro": "4500", "millis": 1200 }));
    let spent =
        host.agent_shows("costMicro tokensUsed spending { costMicro tokens hourTokens hourLimit }").await;
    let month = json!({ "costMicro": "12000", "tokens": "12200", "hourTokens": 2200, "hourLimit": null });
    assert_eq!(spent, json!({ "costMicro": "12000", "tokensUsed": "12200", "spending": month }));
    // Reported after the turn's end.
    host.calls(host.call(Some(turn), 1000, 100)).await;
    let late: i64 = app.one("SELECT cost_micro FROM turns WHERE id = $1", vec![turn.into()]).await;
    assert_eq!(late, 16_500);
    let query = "query($o: Id!) { modelDays(orgId: $o, page: 1, limit: 10) { data { day model calls unpricedCalls costMicro agent { id } } } \
                 organization(orgId: $o) { spending { costMicro } } }";
    let shown = app.viewer.gql(query, json!({ "o": app.org })).await.data();
    let day = json!({
        "day": "2026-06-01", "model": MODEL, "calls": 3, "unpricedCalls": 0, "costMicro": "16500",
        "agent": { "id": host.agent },
    });
    assert_eq!(shown["modelDays"]["data"], json!([day]));
    assert_eq!(shown["organization"]["spending"]["costMicro"], "16500");
}

#[tokio::test]
async fn a_late_measure_replaces_the_agents_figure() {
    let app = TestApp::start().await;
    let host = app.running_agent().await;
    let (_, turn) = host.works().await;
    let usage = Usage { input: Some(500), output: Some(50), cost_micro: Some(7), ..Usage::default() };
    let (error, model, context_tokens) = (None, None, None);
    let outcome = TurnOutcome::Done;
    host.ends(TurnEnd { turn_id: turn, outcome, error, model, usage, context_tokens }).await;
    let said = json!({ "costMicro": "7", "tokensUsed": "550" });
    assert_eq!(host.agent_shows("costMicro tokensUsed").await, said);
    // Two calls of 4,500 each.
    for times in [1, 2] {
        host.calls(host.call(Some(turn), 1000, 100)).await;
        let measured =
            json!({ "costMicro": (4500 * times).to_string(), "tokensUsed": (1100 * times).to_string() });
        assert_eq!(host.agent_shows("costMicro tokensUsed").await, measured);
    }
}

#[tokio::test]
async fn a_turn_that_its_host_does_not_end_has_cost_what_was_measured() {
    let app = TestApp::start().await;
    let host = app.running_agent().await;
    let ((_, interrupted), (_, cancelled)) = (host.works().await, host.works().await);
    for turn in [interrupted, cancelled] {
        host.calls(host.call(Some(turn), 1000, 100)).await;
    }
    host.gives_up(cancelled, None, 60).await;
    assert_eq!(app.cancels(cancelled).await, "CANCELLED");
    host.ended(EndReason::Exited).await;
    assert_eq!(app.turn_is(interrupted).await, "INTERRUPTED");
    let spent: Vec<Option<i64>> = app.column("SELECT cost_micro FROM turns").await;
    assert_eq!(spent, [Some(4500); 2]);
    let tokens: Vec<Option<i64>> = app.column("SELECT input_tokens + output_tokens FROM turns").await;
    assert_eq!(tokens, [Some(1100); 2]);
}

/// The host can't tell of which turn such a call is.
#[tokio::test]
async fn a_call_during_several_turns_counts_once_for_the_agent() {
    let app = TestApp::start().await;
    let host = app.running_agent().await;
    let turns = [host.works().await.1, host.works().await.1];
    for _ in turns {
        host.calls(host.call(None, 1000, 100)).await;
    }
    for turn_id in turns {
        host.ends(TurnEnd {
            turn_id,
            outcome: TurnOutcome::Done,
            error: None,
            model: None,
            usage: Usage { input: Some(1000), output: Some(100), ..Usage::default() },
            context_tokens: None,
        })
        .await;
    }
    let spent = host.agent_shows("costMicro tokensUsed spending { tokens }").await;
    assert_eq!(spent, json!({ "costMicro": "9000", "tokensUsed": "2200", "spending": { "tokens": "2200" } }));
}

#[tokio::test]
async fn an_hour_in_a_cache_costs_more_than_five_minutes() {
    let app = TestApp::start().await;
    let host = app.running_agent().await;
    let kept = Usage { cache_write: Some(1000), ..Usage::default() };
    // For a million: 3.75 for five minutes, and 6 for an hour. No more can be kept for an hour than at all.
    for (hour, cost) in [(None, 3750), (Some(400), 600 * 15 / 4 + 400 * 6), (Some(5000), 6000)] {
        host.calls(ModelCall { usage: kept, cache_hour: hour, ..host.call(None, 0, 0) }).await;
        let costs: Vec<i64> = app.column("SELECT cost_micro FROM model_calls ORDER BY id").await;
        assert_eq!(costs.last(), Some(&cost), "{hour:?}");
    }
}

#[tokio::test]
async fn an_unknown_model_is_refused_with_a_budget() {
    let app = TestApp::start().await;
    let host = app.running_agent().await;
    let (_, turn) = host.works().await;
    host.calls(host.call(Some(turn), 1000, 100)).await;
    host.calls(ModelCall { model: "unknown-knows".to_owned(), ..host.call(Some(turn), 7, 7) }).await;
    host.turn_ended(turn, TurnOutcome::Done).await;
    let cost: Option<i64> = app.one("SELECT cost_micro FROM turns WHERE id = $1", vec![turn.into()]).await;
    assert_eq!(cost, None, "a part of it is unknown");
    let unpriced: Vec<i64> = app.column("SELECT unpriced_calls FROM model_days ORDER BY model").await;
    assert_eq!(unpriced, [0, 1]);
    assert!(
        matches!(host.asks_for_lease("unknown-knows").await.unwrap(), PlanResponse::Lease(_)),
        "nothing is limited"
    );
    app.sets(json!({ "monthlyBudgetMicro": 10 * CALL })).await;
    let given = host.asks_for_lease("unknown-knows").await.unwrap();
    assert!(matches!(given, PlanResponse::Refused { reason } if reason.contains("no price in USD")));
    // In another currency no price counts.
    app.sets(json!({ "currency": "EUR" })).await;
    assert!(matches!(host.asks_for_lease(MODEL).await.unwrap(), PlanResponse::Refused { .. }));
}

#[tokio::test]
async fn models_that_a_host_makes_up_fill_no_table() {
    let app = TestApp::start().await;
    let host = app.running_agent().await;
    host.calls(host.call(None, 1000, 100)).await;
    let told = host.tell(async |tx, from| {
        for n in 0..60 {
            let model = format!("made-up-{n}");
            let refused = ModelCall { model, status: Some(404), ..host.call(None, 1, 0) };
            spending::record_call(tx, from, refused).await.unwrap();
        }
        Ok(())
    });
    told.await.unwrap();
    // Models already listed are still counted.
    host.calls(host.call(None, 1000, 100)).await;
    let calls = async |model: &str| -> i64 {
        app.one("SELECT calls FROM model_days WHERE model = $1", vec![model.into()]).await
    };
    assert_eq!((calls("made-up-0").await, calls("other").await, calls(MODEL).await), (1, 11, 2));
    assert_eq!(app.one::<i64>("SELECT COUNT(*) FROM model_days", vec![]).await, 51);
}

#[tokio::test]
async fn no_host_makes_the_sums_overflow() {
    let app = TestApp::start().await;
    let (liar, other) = (app.running_agent().await, app.running_agent().await);
    liar.calls(liar.call(None, i64::MAX, i64::MAX)).await;
    let tokens = "SELECT tokens FROM organization_months";
    assert_eq!(app.one::<i64>(tokens, vec![]).await, 200_000_000);
    // As if there had been very many.
    app.execute("UPDATE organization_months SET tokens = $1, cost_micro = $1", vec![i64::MAX.into()]).await;
    other.calls(other.call(None, 1000, 100)).await;
    assert_eq!(app.one::<i64>(tokens, vec![]).await, i64::MAX);
    let spent = other.agent_shows("spending { costMicro tokens }").await["spending"].clone();
    assert_eq!(spent, json!({ "costMicro": "4500", "tokens": "1100" }));
}

#[tokio::test]
async fn a_turn_waits_until_more_is_allowed() {
    let app = TestApp::with_budget(CALL).await;
    let host = app.running_agent().await;
    let (conversation, turn) = host.works().await;
    host.calls(host.call(Some(turn), 100_000, 0)).await;
    let PlanResponse::Spent { reason, until } = host.asks_for_lease(MODEL).await.unwrap() else { panic!() };
    assert!(reason.contains("budget of 0.2160 USD for this month is used up: 0.30 USD used."), "{reason}");
    assert!(reason.contains("End your turn"), "{reason}");
    assert_eq!(until, Some("2026-07-01T00:00:00.000Z".parse::<muster::base::time::Timestamp>().unwrap().0));
    assert_eq!(app.turn_is(turn).await, "WAITING_LIMIT");
    let limit = host.agent_shows("limit { kind until }").await["limit"].clone();
    assert_eq!(limit, json!({ "kind": "MONEY", "until": "2026-07-01T00:00:00.000Z" }));
    // The agent gives up, and the turn waits on.
    host.turn_ended(turn, TurnOutcome::Failed).await;
    assert_eq!(app.turn_is(turn).await, "WAITING_LIMIT");
    let other = app.posts(app.conversation(host.agent).await).await;
    assert_eq!(host.given().await, [turn], "nothing is sent");
    let [guard] = app.guards().await[..] else { panic!() };
    let query =
        "query($o: Id!, $i: Id!) { approval(orgId: $o, id: $i) { spending { agentId costMicro tokens } } }";
    let shown = app.viewer.gql(query, json!({ "o": app.org, "i": guard })).await.data();
    // The overspent amount, and the cost of a call.
    let enough = (300_000 - CALL) + CALL;
    let proposed = json!({ "agentId": null, "costMicro": enough.to_string(), "tokens": null });
    assert_eq!(shown["approval"]["spending"], proposed);
    let allowed = app.allows(json!({ "costMicro": enough, "approvalId": guard })).await;
    assert_eq!(allowed["allowSpending"]["spending"]["allowedMicro"], enough.to_string());
    let status: String = app.one("SELECT status FROM approvals WHERE id = $1", vec![guard.into()]).await;
    assert_eq!(status, "RESOLVED");
    assert_eq!(host.given().await, [turn, turn, other]);
    let again = host.takes(turn).await;
    assert!(matches!(&again.prompt[0], Part::Note { text } if text.contains("a limit was reached")));
    assert!(matches!(&again.prompt[1], Part::Text { text, .. } if text == "please"));
    assert_eq!(again.conversation_id, conversation);
    assert!(host.leases().await.is_some());
    host.turn_ended(turn, TurnOutcome::Done).await;
    assert_eq!(app.turn_is(turn).await, "DONE");
}

async fn stop_and_delete(host: &Host<'_>) {
    host.act("stop").await;
    host.ended(EndReason::Stopped).await;
    let delete = "mutation($o: Id!, $a: Id!) { deleteAgent(orgId: $o, id: $a) }";
    host.app.admin.gql(delete, json!({ "o": host.app.org, "a": host.agent })).await.data();
}

#[tokio::test]
async fn a_limit_goes_with_its_agent() {
    let app = TestApp::start().await;
    let host = app.running_agent().await;
    host.is_limited(None, 60).await;
    let limits = || app.one::<i64>("SELECT COUNT(*) FROM agent_limits", vec![]);
    assert_eq!(limits().await, 1);
    stop_and_delete(&host).await;
    assert_eq!(limits().await, 0);
    // One that is written meanwhile takes up no room in the jobs forever.
    let late = "INSERT INTO agent_limits (organization_id, agent_id, kind, reason, until_at, since) \
                VALUES ($1, $2, 'USAGE', 'late', 0, 0)";
    app.execute(late, vec![app.org.into(), host.agent.into()]).await;
    assert_eq!(spending::release_due(&app.core).await.unwrap(), 0);
    assert_eq!(limits().await, 0);
}

#[tokio::test]
async fn what_a_deleted_agent_has_spent_counts() {
    let app = TestApp::with_budget(10 * CALL).await;
    let host = app.running_agent().await;
    let (_, turn) = host.works().await;
    let lease = host.leases().await.unwrap();
    stop_and_delete(&host).await;
    assert_eq!(app.leased().await, (CALL, 0));
    // The gate heard the last answer out.
    host.calls(host.call(Some(turn), 1000, 100)).await;
    host.returns(lease.id).await;
    assert_eq!(app.leased().await, (0, 4500));
    let days: Vec<i64> = app.column("SELECT cost_micro FROM model_days").await;
    assert_eq!(days, [4500]);
}

#[tokio::test]
async fn a_month_keeps_what_is_in_it_when_the_time_zone_changes() {
    let app = TestApp::with_budget(2 * CALL).await;
    let host = app.running_agent().await;
    let lease = host.leases().await.unwrap();
    assert_eq!(lease.cost_micro, Some(CALL));
    host.calls(host.call(None, 10_000, 0)).await;
    app.allows(json!({ "costMicro": 7 })).await;
    let query =
        "query($o: Id!) { organization(orgId: $o) { spending { costMicro leasedMicro allowedMicro } } }";
    for zone in ["America/Lima", "Asia/Tokyo", "UTC"] {
        app.sets(json!({ "timezone": zone })).await;
        let spent = json!({ "costMicro": "30000", "leasedMicro": CALL.to_string() });
        assert_eq!(host.agent_shows("spending { costMicro leasedMicro }").await["spending"], spent, "{zone}");
        let shown = app.viewer.gql(query, json!({ "o": app.org })).await.data();
        let spent = json!({ "costMicro": "30000", "leasedMicro": CALL.to_string(), "allowedMicro": "7" });
        assert_eq!(shown["organization"]["spending"], spent, "{zone}");
    }
    let lease = muster::base::ids::LeaseId(lease.id);
    host.tell(async move |tx, from| spending::return_lease(tx, from, lease).await).await.unwrap();
    let leased: Vec<i64> = app.column("SELECT leased_micro FROM organization_months").await;
    assert_eq!(leased, [0], "it went back to the month that it was from");
}

#[tokio::test(flavor = "multi_thread")]
async fn postgres_a_stopped_agents_late_call_is_in_its_month() {
    let app = TestApp::start().await;
    let host = app.running_agent().await;
    host.calls(host.call(None, 10_000, 0)).await;
    host.act("stop").await;
    host.ended(EndReason::Stopped).await;
    let held = Notify::new();
    let moves = async {
        held.notified().await;
        app.sets(json!({ "timezone": "Asia/Tokyo" })).await;
    };
    let late = host.tell(async |tx, from| {
        agents::lock_agent(tx, from.agent).await?;
        held.notify_one();
        app.waits_for_a_lock().await;
        spending::record_call(tx, from, host.call(None, 10_000, 0)).await
    });
    let (told, ()) = tokio::join!(late, moves);
    told.unwrap();
    for months in ["agent_months", "organization_months"] {
        let tokens: Vec<i64> = app.column(&format!("SELECT tokens FROM {months}")).await;
        assert_eq!(tokens, [20_000], "{months}");
    }
    app.sets(json!({ "timezone": "UTC" })).await;
}

#[tokio::test]
async fn the_tokens_of_an_hour_slide() {
    let app = TestApp::start().await;
    let host = app.running_agent().await;
    let guard =
        json!({ "costGuardMode": "CUSTOM", "costGuardTokensPerHour": 50_000, "costGuardAction": "PAUSE" });
    app.sets_agent(host.agent, guard).await;
    let (_, turn) = host.works().await;
    assert_eq!(host.leases().await.unwrap().tokens, Some(40_000));
    assert_eq!(host.leases().await.unwrap().tokens, Some(10_000), "what is left");
    assert!(host.leases().await.is_none());
    assert_eq!(app.turn_is(turn).await, "WAITING_LIMIT");
    app.clock.advance(Duration::from_mins(20));
    spending::expire_due(&app.core).await.unwrap();
    spending::release_due(&app.core).await.unwrap();
    assert_eq!(app.turn_is(turn).await, "RUNNING", "leases that are over hold nothing");
    let mut call = host.call(Some(turn), 30_000, 20_000);
    call.usage.cache_read = Some(1_000_000);
    host.calls(call).await;
    assert!(host.leases().await.is_none());
    app.clock.advance(Duration::from_mins(59));
    assert_eq!(spending::release_due(&app.core).await.unwrap(), 0);
    app.clock.advance(Duration::from_mins(1));
    assert_eq!(spending::release_due(&app.core).await.unwrap(), 1);
    assert_eq!(host.leases().await.unwrap().tokens, Some(40_000));
    // People allow more, for an hour.
    host.calls(host.call(None, 50_000, 0)).await;
    assert!(host.leases().await.is_none());
    app.allows(json!({ "agentId": host.agent, "tokens": 100_000 })).await;
    assert_eq!(host.agent_shows("spending { hourLimit }").await["spending"]["hourLimit"], 150_000);
    assert!(host.leases().await.is_some());
    app.clock.advance(Duration::from_hours(1));
    assert_eq!(host.agent_shows("spending { hourLimit }").await["spending"]["hourLimit"], 50_000);
}

#[tokio::test]
async fn a_month_ends_where_the_organization_is() {
    let app = TestApp::start().await;
    app.sets(json!({ "monthlyBudgetMicro": CALL, "timezone": "Asia/Tokyo" })).await;
    let host = app.running_agent().await;
    let (_, turn) = host.works().await;
    host.calls(host.call(Some(turn), 100_000, 0)).await;
    assert!(host.leases().await.is_none());
    host.turn_ended(turn, TurnOutcome::Failed).await;
    // From noon of the 1st to 15:00 of the 30th, when it is midnight in Tokyo.
    app.clock.advance(Duration::from_hours(29 * 24 + 3) - Duration::from_secs(1));
    assert_eq!(spending::release_due(&app.core).await.unwrap(), 0);
    app.clock.advance(Duration::from_secs(1));
    assert_eq!(spending::release_due(&app.core).await.unwrap(), 1);
    assert_eq!(host.given().await, [turn, turn]);
    assert_eq!(host.leases().await.unwrap().cost_micro, Some(CALL));
    let spent = host.agent_shows("spending { costMicro leasedMicro }").await["spending"].clone();
    assert_eq!(spent, json!({ "costMicro": "0", "leasedMicro": CALL.to_string() }));
}

#[tokio::test]
async fn calls_are_kept_for_90_days_and_their_sums_stay() {
    let app = TestApp::start().await;
    let host = app.running_agent().await;
    host.calls(host.call(None, 1000, 100)).await;
    app.clock.advance(Duration::from_hours(24 * 89));
    jobs::sweep(&app.core).await.unwrap();
    assert_eq!(app.one::<i64>("SELECT COUNT(*) FROM model_calls", vec![]).await, 1);
    app.clock.advance(Duration::from_hours(25));
    jobs::sweep(&app.core).await.unwrap();
    assert_eq!(app.one::<i64>("SELECT COUNT(*) FROM model_calls", vec![]).await, 0);
    assert_eq!(app.one::<i64>("SELECT cost_micro FROM model_days", vec![]).await, 4500);
}
