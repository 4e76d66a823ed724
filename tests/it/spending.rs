//! Money: calls are priced and counted, leases keep hosts within budgets, and whoever has nothing left waits and goes on by
//! itself.

use std::{
    sync::atomic::{AtomicI64, Ordering::Relaxed},
    time::Duration,
};

use futures::future::join_all;
use muster::{
    base::{
        ids::{AgentId, LeaseId},
        problem::Result,
    },
    rounds,
    slices::{agents, orgs, spending, turns},
};
use muster_protocol::{
    event::{EndReason, RefusedReason, TurnEnd, TurnOutcome, Usage},
    plan::{Given, Part},
    spending::{Finished, Lease, LeaseAsked, ModelCall},
};
use sea_orm::{ConnectionTrait, TransactionTrait};
use secrecy::ExposeSecret;
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::harness::{Host, TestApp, connect, until};

const MODEL: &str = "claude-sonnet-4-5";
/// What a call of this model needs at least: 32,000 tokens in and 8,000 out.
const CALL: i64 = 216_000;

/// A question for a lease, unlike all others.
fn question(model: &str) -> LeaseAsked {
    static QUESTIONS: AtomicI64 = AtomicI64::new(0);
    let question = QUESTIONS.fetch_add(1, Relaxed);
    LeaseAsked { model: model.to_owned(), question, finished: Vec::new() }
}

impl Host<'_> {
    async fn wants(&self, asked: &LeaseAsked) -> Result<Given> {
        spending::lease(&self.app.scope(), AgentId(self.agent), self.generation, asked).await
    }

    async fn asks_for_lease(&self, model: &str) -> Result<Given> {
        self.wants(&question(model)).await
    }

    async fn leases(&self) -> Option<Lease> {
        match self.asks_for_lease(MODEL).await.unwrap() {
            Given::Lease(lease) => Some(lease),
            Given::Spent { .. } => None,
            other => panic!("{other:?}"),
        }
    }

    async fn returns(&self, lease: i64) {
        let told = self.tell(async |tx, from| spending::returned(tx, from, LeaseId(lease)).await);
        told.await.unwrap();
    }

    async fn calls(&self, call: ModelCall) {
        self.tell(async |tx, from| spending::called(tx, from, call).await).await.unwrap();
    }

    fn call(&self, turn: Option<i64>, input: i64, output: i64) -> ModelCall {
        ModelCall {
            turn_id: turn,
            provider: "anthropic".to_owned(),
            model: MODEL.to_owned(),
            started_at: self.app.clock.now().0,
            millis: 1200,
            status: Some(200),
            usage: Usage { input: Some(input), output: Some(output), ..Usage::default() },
            lease_id: None,
        }
    }

    async fn is_limited(&self, credential: Option<i64>, seconds: u64) {
        let until = self.app.clock.now().plus(Duration::from_secs(seconds));
        let credential = credential.map(muster::base::ids::ModelCredentialId);
        let told = self.tell(async |tx, from| {
            spending::usage::limited(tx, from, credential, (MODEL, "slow down"), Some(until)).await
        });
        told.await.unwrap();
    }

    /// A new conversation with a turn that the agent works on. Returns both.
    async fn works(&self) -> (i64, i64) {
        let conversation = self.app.conversation(self.agent).await;
        let turn = self.app.posts(conversation).await;
        self.takes(turn).await;
        (conversation, turn)
    }

    async fn agent_shows(&self, fields: &str) -> Value {
        let query = format!("query($o: Id!, $a: Id!) {{ agent(orgId: $o, id: $a) {{ {fields} }} }}");
        let shown = self.app.viewer.gql(&query, json!({ "o": self.app.org, "a": self.agent })).await;
        shown.data()["agent"].clone()
    }
}

impl TestApp {
    async fn posts(&self, conversation: i64) -> i64 {
        let query = "mutation($o: Id!, $c: Id!) { postMessage(orgId: $o, conversationId: $c, input: { text: \"please\" }) { turn { id } } }";
        let posted = self.operator.gql(query, json!({ "o": self.org, "c": conversation })).await.data();
        posted["postMessage"]["turn"]["id"].as_i64().unwrap()
    }

    async fn sets(&self, input: Value) {
        let query = "mutation($o: Id!, $i: UpdateOrganizationInput!) { updateOrganization(orgId: $o, input: $i) { id } }";
        self.owner.gql(query, json!({ "o": self.org, "i": input })).await.data();
    }

    async fn sets_agent(&self, agent: i64, input: Value) {
        let query = "mutation($o: Id!, $a: Id!, $i: UpdateAgentInput!) { updateAgent(orgId: $o, id: $a, input: $i) { id } }";
        self.owner.gql(query, json!({ "o": self.org, "a": agent, "i": input })).await.data();
    }

    async fn allows(&self, input: Value) -> Value {
        let query = "mutation($o: Id!, $i: AllowSpendingInput!) { allowSpending(orgId: $o, input: $i) { spending { allowedMicro } } }";
        self.admin.gql(query, json!({ "o": self.org, "i": input })).await.data()
    }

    async fn turn_is(&self, turn: i64) -> String {
        self.one("SELECT state FROM turns WHERE id = $1", vec![turn.into()]).await
    }

    /// Allowing this is refused with this code.
    async fn may_not_allow(&self, input: Value, code: &str) {
        let query =
            "mutation($o: Id!, $i: AllowSpendingInput!) { allowSpending(orgId: $o, input: $i) { id } }";
        let refused = self.admin.gql(query, json!({ "o": self.org, "i": input })).await;
        assert_eq!(refused.code(), code, "{input}");
    }

    /// What is leased, and what is spent.
    async fn leased(&self) -> (i64, i64) {
        let of = |column: &str| format!("SELECT {column} FROM organization_months");
        (self.one(&of("leased_micro"), vec![]).await, self.one(&of("cost_micro"), vec![]).await)
    }

    async fn guards(&self) -> Vec<i64> {
        self.column("SELECT id FROM approvals WHERE kind = 'COST_GUARD' ORDER BY id").await
    }

    /// The states of the same.
    async fn guards_are(&self) -> Vec<String> {
        self.column("SELECT status FROM approvals WHERE kind = 'COST_GUARD' ORDER BY id").await
    }

    /// Something waits for another transaction.
    async fn waits_for_a_lock(&self) {
        let waiting = "SELECT COUNT(*) FROM pg_stat_activity \
                       WHERE datname = current_database() AND wait_event_type = 'Lock'";
        until("it waits", async || self.one::<i64>(waiting, vec![]).await > 0).await;
    }
}

#[tokio::test]
async fn a_call_is_priced_and_counts_for_its_turn_its_day_and_its_month() {
    let app = TestApp::start().await;
    let host = app.running_agent().await;
    let (_, turn) = host.works().await;
    let mut cached = host.call(Some(turn), 1000, 100);
    cached.usage.cache_read = Some(10_000);
    host.calls(cached).await;
    host.calls(host.call(Some(turn), 1000, 100)).await;
    // What the agent says itself does not count where the host has measured.
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
async fn an_unknown_model_costs_null_and_is_refused_where_there_is_a_budget() {
    let app = TestApp::start().await;
    let host = app.running_agent().await;
    let (_, turn) = host.works().await;
    host.calls(host.call(Some(turn), 1000, 100)).await;
    host.calls(ModelCall { model: "nobody-knows".to_owned(), ..host.call(Some(turn), 7, 7) }).await;
    host.turn_ended(turn, TurnOutcome::Done).await;
    let cost: Option<i64> = app.one("SELECT cost_micro FROM turns WHERE id = $1", vec![turn.into()]).await;
    assert_eq!(cost, None, "a part of it is unknown");
    let unpriced: Vec<i64> = app.column("SELECT unpriced_calls FROM model_days ORDER BY model").await;
    assert_eq!(unpriced, [0, 1]);
    assert!(
        matches!(host.asks_for_lease("nobody-knows").await.unwrap(), Given::Lease(_)),
        "nothing is limited"
    );
    app.sets(json!({ "monthlyBudgetMicro": 10 * CALL })).await;
    let given = host.asks_for_lease("nobody-knows").await.unwrap();
    assert!(matches!(given, Given::Refused { reason } if reason.contains("no price in USD")));
    // In another currency no price counts.
    app.sets(json!({ "currency": "EUR" })).await;
    assert!(matches!(host.asks_for_lease(MODEL).await.unwrap(), Given::Refused { .. }));
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
            spending::called(tx, from, refused).await.unwrap();
        }
        Ok(())
    });
    told.await.unwrap();
    // What is listed already goes on.
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
async fn all_leases_together_stay_within_the_budget() {
    let app = TestApp::start().await;
    app.sets(json!({ "monthlyBudgetMicro": 10 * CALL })).await;
    let hosts = [app.running_agent().await, app.running_agent().await, app.running_agent().await];
    let asked = join_all((0..21).map(|n| hosts[n % 3].leases())).await;
    let granted: Vec<i64> = asked.into_iter().flatten().map(|lease| lease.cost_micro.unwrap()).collect();
    assert_eq!(granted.iter().sum::<i64>(), 10 * CALL);
    assert_eq!(granted.len(), 10, "each as much as a call needs");
    let leased: i64 = app.one("SELECT leased_micro FROM organization_months", vec![]).await;
    assert_eq!(leased, 10 * CALL);
    let of_agents: i64 = app.one("SELECT CAST(SUM(leased_micro) AS BIGINT) FROM agent_months", vec![]).await;
    assert_eq!(of_agents, 10 * CALL);
    assert_eq!(app.guards().await.len(), 1, "people are told once");
}

#[tokio::test]
async fn what_is_left_of_a_lease_goes_back_when_it_is_returned_or_over() {
    let app = TestApp::start().await;
    app.sets(json!({ "monthlyBudgetMicro": 2 * CALL })).await;
    let host = app.running_agent().await;
    let (first, second) = (host.leases().await.unwrap(), host.leases().await.unwrap());
    assert_eq!(app.leased().await, (2 * CALL, 0));
    host.calls(ModelCall { lease_id: Some(first.id), ..host.call(None, 1000, 0) }).await;
    assert_eq!(app.leased().await, (2 * CALL - 3000, 3000));
    host.returns(first.id).await;
    host.returns(first.id).await;
    assert_eq!(app.leased().await, (CALL, 3000), "once, however often it is returned");
    assert_eq!(spending::expire_due(&app.core).await.unwrap(), 0);
    app.clock.advance(Duration::from_mins(15));
    assert_eq!(spending::expire_due(&app.core).await.unwrap(), 1);
    assert_eq!(app.leased().await, (0, 3000));
    // A call that is reported late is counted, and takes nothing from what is open.
    host.calls(ModelCall { lease_id: Some(second.id), ..host.call(None, 1000, 0) }).await;
    assert_eq!(app.leased().await, (0, 6000));
}

#[tokio::test]
async fn an_agent_is_not_refused_because_of_what_is_left_of_its_own_lease() {
    let app = TestApp::start().await;
    app.sets(json!({ "monthlyBudgetMicro": CALL })).await;
    let host = app.running_agent().await;
    let (_, turn) = host.works().await;
    let first = host.leases().await.unwrap();
    assert_eq!(first.cost_micro, Some(CALL));
    host.calls(ModelCall { lease_id: Some(first.id), ..host.call(Some(turn), 1000, 0) }).await;
    // The report of another call of 6,000 is on its way.
    let finished = vec![Finished { lease_id: first.id, cost_micro: 9000, tokens: 3000 }];
    let asked = LeaseAsked { finished, ..question(MODEL) };
    let Given::Lease(second) = host.wants(&asked).await.unwrap() else { panic!("refused") };
    assert_eq!(second.cost_micro, Some(CALL - 9000));
    assert_eq!(app.leased().await, (CALL - 3000, 3000), "no more than there is");
    assert_eq!((app.turn_is(turn).await.as_str(), app.guards().await.len()), ("RUNNING", 0));
    host.calls(ModelCall { lease_id: Some(first.id), ..host.call(Some(turn), 2000, 0) }).await;
    assert_eq!(app.leased().await, (CALL - 9000, 9000));
    // Now all is granted. A lease of which nothing is left lets nobody go on in vain.
    assert!(host.leases().await.is_none());
    host.returns(first.id).await;
    assert_eq!(spending::release_due(&app.core).await.unwrap(), 0);
    host.returns(second.id).await;
    assert_eq!(spending::release_due(&app.core).await.unwrap(), 1);
    assert_eq!((app.leased().await, app.turn_is(turn).await.as_str()), ((0, 9000), "RUNNING"));
}

#[tokio::test]
async fn a_question_that_is_asked_again_gets_the_same_lease() {
    let app = TestApp::start().await;
    app.sets(json!({ "monthlyBudgetMicro": 2 * CALL })).await;
    let (host, other) = (app.running_agent().await, app.running_agent().await);
    let asked = question(MODEL);
    let given = join_all((0..3).map(|_| host.wants(&asked))).await;
    let given: Vec<Given> = given.into_iter().map(Result::unwrap).collect();
    let Given::Lease(first) = &given[0] else { panic!("{:?}", given[0]) };
    assert!(given.iter().all(|again| *again == given[0]), "{given:?}");
    assert_eq!(app.leased().await, (CALL, 0));
    // Another agent's host may ask the same.
    let Given::Lease(theirs) = other.wants(&asked).await.unwrap() else { panic!("refused") };
    assert_ne!(theirs.id, first.id);
    // One that is over is of no use.
    app.clock.advance(Duration::from_mins(15));
    spending::expire_due(&app.core).await.unwrap();
    let Given::Lease(later) = host.wants(&asked).await.unwrap() else { panic!("refused") };
    assert_ne!(later.id, first.id);
}

/// An SQLite database has one writer.
#[tokio::test]
async fn postgres_what_goes_back_keeps_no_other_agent_waiting() {
    let app = TestApp::start().await;
    let (one, two) = (app.running_agent().await, app.running_agent().await);
    let guard =
        json!({ "costGuardMode": "CUSTOM", "costGuardTokensPerHour": 40_000, "costGuardAction": "PAUSE" });
    for host in [&one, &two] {
        app.sets_agent(host.agent, guard.clone()).await;
    }
    let lease = one.leases().await.unwrap().id;
    assert!(two.leases().await.is_some() && two.leases().await.is_none());
    assert_eq!(two.agent_shows("limit { kind }").await["limit"]["kind"], "TOKENS");
    app.clock.advance(Duration::from_mins(15));
    let told = one.tell(async |tx, from| {
        spending::returned(tx, from, LeaseId(lease)).await?;
        assert!(two.leases().await.is_some(), "its limit is not held by another's report");
        Ok(())
    });
    told.await.unwrap();
    assert!(two.agent_shows("limit { kind }").await["limit"].is_null());
}

#[tokio::test(flavor = "multi_thread")]
async fn postgres_tokens_that_go_back_wait_for_no_other_agents_limit() {
    let app = TestApp::start().await;
    let (one, two) = (app.running_agent().await, app.running_agent().await);
    let guard =
        json!({ "costGuardMode": "CUSTOM", "costGuardTokensPerHour": 40_000, "costGuardAction": "PAUSE" });
    for host in [&one, &two] {
        app.sets_agent(host.agent, guard.clone()).await;
    }
    let lease_id = one.leases().await.unwrap().id;
    assert!(two.leases().await.is_some() && two.leases().await.is_none());
    let other = connect(app.core.config.database.url.expose_secret()).await;
    let other = other.begin().await.unwrap();
    other.execute_unprepared("UPDATE agent_limits SET reason = reason").await.unwrap();
    let finished = vec![Finished { lease_id, cost_micro: 0, tokens: 1000 }];
    let asked = LeaseAsked { finished, ..question(MODEL) };
    let Given::Lease(next) = one.wants(&asked).await.unwrap() else { panic!("refused") };
    assert_eq!(next.tokens, Some(39_000));
    other.rollback().await.unwrap();
}

#[tokio::test]
async fn a_turn_waits_while_nothing_is_left_and_goes_on_when_more_is_allowed() {
    let app = TestApp::start().await;
    app.sets(json!({ "monthlyBudgetMicro": CALL })).await;
    let host = app.running_agent().await;
    let (conversation, turn) = host.works().await;
    host.calls(host.call(Some(turn), 100_000, 0)).await;
    let Given::Spent { reason, until } = host.asks_for_lease(MODEL).await.unwrap() else { panic!() };
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
    // What was spent beyond the budget, and a call.
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

#[tokio::test]
async fn a_turn_that_is_done_is_not_sent_again_because_of_another_ones_call() {
    let app = TestApp::start().await;
    app.sets(json!({ "monthlyBudgetMicro": CALL })).await;
    let (host, single) = (app.running_agent().await, app.running_agent().await);
    let ((_, first), (_, second), (_, only)) = (host.works().await, host.works().await, single.works().await);
    host.calls(host.call(None, 100_000, 0)).await;
    for host in [&host, &single] {
        assert!(host.leases().await.is_none());
    }
    host.turn_ended(first, TurnOutcome::Done).await;
    host.turn_ended(second, TurnOutcome::Failed).await;
    // Some agents say that a turn is done which they gave up. This one can't have been another's call.
    single.turn_ended(only, TurnOutcome::Done).await;
    let states = [app.turn_is(first).await, app.turn_is(second).await, app.turn_is(only).await];
    assert_eq!(states, ["DONE", "WAITING_LIMIT", "WAITING_LIMIT"]);
    app.allows(json!({ "costMicro": 300_000 })).await;
    assert_eq!((host.given().await, single.given().await), (vec![first, second, second], vec![only, only]));
}

#[tokio::test]
async fn a_parked_turn_is_cancelled_at_once_and_survives_its_launch() {
    let app = TestApp::start().await;
    app.sets(json!({ "monthlyBudgetMicro": CALL })).await;
    let host = app.running_agent().await;
    let ((_, first), (_, second)) = (host.works().await, host.works().await);
    host.calls(host.call(None, 100_000, 0)).await;
    assert!(host.leases().await.is_none());
    for turn in [first, second] {
        host.turn_ended(turn, TurnOutcome::Failed).await;
    }
    let cancel = "mutation($o: Id!, $t: Id!) { cancelTurn(orgId: $o, id: $t) { state } }";
    app.operator.gql(cancel, json!({ "o": app.org, "t": first })).await.data();
    assert_eq!(app.turn_is(first).await, "CANCELLED");
    host.ended(EndReason::Exited).await;
    assert_eq!(app.turn_is(second).await, "WAITING_LIMIT");
    app.allows(json!({ "costMicro": CALL })).await;
    let host = host.launched().await;
    host.started().await;
    assert_eq!(host.given().await, [second]);
}

#[tokio::test]
async fn a_parked_turn_that_does_not_reach_its_agent_again_waits_on() {
    let app = TestApp::start().await;
    app.sets(json!({ "monthlyBudgetMicro": CALL })).await;
    let host = app.running_agent().await;
    let (_, turn) = host.works().await;
    host.calls(host.call(Some(turn), 100_000, 0)).await;
    assert!(host.leases().await.is_none());
    host.turn_ended(turn, TurnOutcome::Failed).await;
    app.allows(json!({ "costMicro": 300_000 })).await;
    assert_eq!((host.given().await, app.turn_is(turn).await.as_str()), (vec![turn; 2], "RUNNING"));
    let refused = async || {
        let command: i64 = app.one("SELECT MAX(id) FROM outbox WHERE kind = 'TURN'", vec![]).await;
        let reason = RefusedReason::TooLate;
        host.tell(async |tx, from| agents::reports::refused(tx, from, command, reason).await).await.unwrap();
    };
    refused().await;
    assert_eq!(app.turn_is(turn).await, "WAITING_LIMIT");
    app.clock.advance(Duration::from_secs(31));
    assert_eq!(turns::send_left(&app.core).await.unwrap(), 1);
    assert_eq!((host.given().await, app.turn_is(turn).await.as_str()), (vec![turn; 3], "RUNNING"));
    // The same if it never reached its host at all.
    let now = app.clock.now().0;
    app.execute("UPDATE outbox SET expires_at = $1 WHERE kind = 'TURN'", vec![now.into()]).await;
    turns::free_unsent(&app.core).await.unwrap();
    assert_eq!(app.turn_is(turn).await, "WAITING_LIMIT");
    app.clock.advance(Duration::from_secs(31));
    assert_eq!(turns::send_left(&app.core).await.unwrap(), 1);
    let cancel = "mutation($o: Id!, $t: Id!) { cancelTurn(orgId: $o, id: $t) { state } }";
    let asked = app.operator.gql(cancel, json!({ "o": app.org, "t": turn })).await.data();
    assert_eq!(asked["cancelTurn"]["state"], "RUNNING", "its host may have it");
    refused().await;
    assert_eq!(app.turn_is(turn).await, "CANCELLED");
}

#[tokio::test]
async fn stop_cancels_turns_and_stops_the_agent() {
    let app = TestApp::start().await;
    let host = app.running_agent().await;
    app.sets_agent(host.agent, json!({ "monthlyBudgetMicro": CALL, "budgetAction": "STOP" })).await;
    let (_, turn) = host.works().await;
    host.calls(host.call(Some(turn), 100_000, 0)).await;
    assert!(host.leases().await.is_none());
    assert_eq!(host.agent_shows("status").await["status"], "STOPPING");
    let kinds: Vec<Value> =
        host.commands().await.into_iter().map(|command| command["kind"].clone()).collect();
    assert_eq!(kinds[kinds.len() - 2..], [json!("CANCEL"), json!("STOP")]);
    assert_eq!(app.guards().await.len(), 1);
    // It says why until it is started again.
    host.ended(muster_protocol::event::EndReason::Stopped).await;
    let shown = host.agent_shows("status statusReason statusDetail").await;
    assert_eq!((&shown["status"], &shown["statusReason"]), (&json!("STOPPED"), &json!("LIMIT_REACHED")));
    let detail = "The agent's budget of 0.2160 USD for this month is used up: 0.30 USD used.";
    assert_eq!(shown["statusDetail"], detail);
    host.launched().await;
    let reason = "SELECT status_reason FROM agents WHERE id = $1";
    let reason: Option<String> = app.one(reason, vec![host.agent.into()]).await;
    assert_eq!(reason, None);
}

#[tokio::test]
async fn a_guard_ends_with_its_month_and_the_next_one_has_its_own() {
    let app = TestApp::start().await;
    app.sets(json!({ "monthlyBudgetMicro": CALL, "timezone": "UTC" })).await;
    let host = app.running_agent().await;
    host.calls(host.call(None, 100_000, 0)).await;
    assert!(host.leases().await.is_none());
    let [guard] = app.guards().await[..] else { panic!() };
    let reminder: Option<i64> = app.one("SELECT remind_at FROM approvals", vec![]).await;
    assert_eq!(reminder, None, "nothing is lost with it");
    app.clock.advance(Duration::from_hours(29 * 24 + 13));
    let query = "query($o: Id!, $i: Id!) { approval(orgId: $o, id: $i) { status expiresAt } }";
    let shown = app.viewer.gql(query, json!({ "o": app.org, "i": guard })).await.data();
    assert_eq!(shown["approval"], json!({ "status": "EXPIRED", "expiresAt": "2026-07-01T00:00:00.000Z" }));
    app.may_not_allow(json!({ "costMicro": CALL, "approvalId": guard }), "APPROVAL_NOT_PENDING").await;
    assert!(host.leases().await.is_some());
    // Before the round has ended the first one.
    host.calls(host.call(None, 100_000, 0)).await;
    assert!(host.leases().await.is_none());
    assert_eq!(app.guards().await.len(), 2);
}

#[tokio::test]
async fn a_guard_of_tokens_and_one_of_money_end_each_by_itself() {
    let app = TestApp::start().await;
    let host = app.running_agent().await;
    let limits = json!({
        "monthlyBudgetMicro": CALL, "costGuardMode": "CUSTOM", "costGuardTokensPerHour": 50_000,
        "costGuardAction": "PAUSE",
    });
    app.sets_agent(host.agent, limits).await;
    host.calls(host.call(None, 100_000, 0)).await;
    assert!(host.leases().await.is_none(), "of tokens");
    let more = json!({ "agentId": host.agent, "tokens": 200_000 });
    app.allows(more.clone()).await;
    assert!(host.leases().await.is_none(), "of money");
    let [_, money] = app.guards().await[..] else { panic!() };
    let tokens = json!({ "agentId": host.agent, "tokens": 1, "approvalId": money });
    app.may_not_allow(tokens, "VALIDATION_FAILED").await;
    app.allows(more).await;
    assert_eq!(app.guards_are().await, ["DISMISSED", "PENDING"]);
    app.allows(json!({ "agentId": host.agent, "costMicro": 300_000, "approvalId": money })).await;
    assert_eq!(app.guards_are().await, ["DISMISSED", "RESOLVED"]);
    assert!(host.leases().await.is_some());
}

#[tokio::test]
async fn a_guard_is_withdrawn_when_its_limit_changes_and_raised_anew_if_nothing_is_left() {
    let app = TestApp::start().await;
    app.sets(json!({ "monthlyBudgetMicro": CALL, "budgetAction": "NOTIFY" })).await;
    let host = app.running_agent().await;
    host.calls(host.call(None, 100_000, 0)).await;
    host.leases().await.unwrap();
    assert_eq!(app.guards_are().await, ["PENDING"]);
    app.sets(json!({ "budgetAction": "PAUSE" })).await;
    assert_eq!(app.guards_are().await, ["DISMISSED"]);
    assert!(host.leases().await.is_none());
    assert_eq!(app.guards_are().await, ["DISMISSED", "PENDING"]);
    app.sets(json!({ "monthlyBudgetMicro": 10 * CALL })).await;
    assert_eq!(app.guards_are().await, ["DISMISSED", "DISMISSED"]);
    // An agent's own.
    app.sets_agent(host.agent, json!({ "monthlyBudgetMicro": CALL })).await;
    assert!(host.leases().await.is_none());
    assert_eq!(app.guards_are().await, ["DISMISSED", "DISMISSED", "PENDING"]);
    app.sets_agent(host.agent, json!({ "monthlyBudgetMicro": null })).await;
    assert_eq!(app.guards_are().await, ["DISMISSED"; 3]);
    assert!(host.leases().await.is_some());
}

#[tokio::test]
async fn what_was_allowed_can_be_taken_back() {
    let app = TestApp::start().await;
    app.sets(json!({ "monthlyBudgetMicro": CALL })).await;
    let host = app.running_agent().await;
    let allowed = async |micro: i64| {
        let shown = app.allows(json!({ "costMicro": micro })).await;
        shown["allowSpending"]["spending"]["allowedMicro"].as_str().unwrap().parse::<i64>().unwrap()
    };
    assert_eq!(allowed(10 * CALL).await, 10 * CALL);
    host.calls(host.call(None, 100_000, 0)).await;
    assert_eq!(allowed(-9 * CALL).await, CALL);
    assert_eq!(host.leases().await.unwrap().cost_micro, Some(2 * CALL - 300_000));
    assert_eq!(allowed(-9 * CALL).await, 0, "at most all of it");
    assert!(host.leases().await.is_none());
    let [guard] = app.guards().await[..] else { panic!() };
    allowed(-1).await;
    assert_eq!(app.guards_are().await, ["PENDING"]);
    for wrong in [json!({ "costMicro": 0 }), json!({ "costMicro": -1, "approvalId": guard })] {
        app.may_not_allow(wrong, "VALIDATION_FAILED").await;
    }
}

#[tokio::test]
async fn a_month_keeps_what_is_in_it_when_the_time_zone_changes() {
    let app = TestApp::start().await;
    app.sets(json!({ "monthlyBudgetMicro": 2 * CALL })).await;
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
    host.tell(async move |tx, from| spending::returned(tx, from, lease).await).await.unwrap();
    let leased: Vec<i64> = app.column("SELECT leased_micro FROM organization_months").await;
    assert_eq!(leased, [0], "it went back to the month that it was from");
}

#[tokio::test(flavor = "multi_thread")]
async fn postgres_a_late_call_of_a_stopped_agent_is_in_one_month_with_the_others() {
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
        agents::standing(tx, from.agent).await?;
        held.notify_one();
        app.waits_for_a_lock().await;
        spending::called(tx, from, host.call(None, 10_000, 0)).await
    });
    let (told, ()) = tokio::join!(late, moves);
    told.unwrap();
    for months in ["agent_months", "organization_months"] {
        let tokens: Vec<i64> = app.column(&format!("SELECT tokens FROM {months}")).await;
        assert_eq!(tokens, [20_000], "{months}");
    }
    app.sets(json!({ "timezone": "UTC" })).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn postgres_who_is_allowed_more_at_this_moment_is_not_refused() {
    let app = TestApp::start().await;
    app.sets(json!({ "monthlyBudgetMicro": CALL })).await;
    let host = app.running_agent().await;
    host.calls(host.call(None, 100_000, 0)).await;
    let allowing = connect(app.core.config.database.url.expose_secret()).await;
    let allowing = allowing.begin().await.unwrap();
    allowing.execute_unprepared("UPDATE organization_months SET allowed_micro = 1000000").await.unwrap();
    let allow = async {
        app.waits_for_a_lock().await;
        allowing.commit().await.unwrap();
    };
    let (lease, ()) = tokio::join!(host.leases(), allow);
    assert!(lease.is_some());
    assert!(app.guards().await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn postgres_who_is_refused_while_more_is_allowed_looks_again() {
    let app = TestApp::start().await;
    app.sets(json!({ "monthlyBudgetMicro": CALL })).await;
    let host = app.running_agent().await;
    host.calls(host.call(None, 100_000, 0)).await;
    let refusing = connect(app.core.config.database.url.expose_secret()).await;
    let refusing = refusing.begin().await.unwrap();
    refusing.execute_unprepared("UPDATE organization_months SET tokens = tokens").await.unwrap();
    let limit = format!(
        "INSERT INTO agent_limits (organization_id, agent_id, kind, reason, until_at, since) \
         VALUES ({}, {}, 'MONEY', 'so', {}, 0)",
        app.org,
        host.agent,
        i64::MAX
    );
    refusing.execute_unprepared(&limit).await.unwrap();
    let refuse = async {
        app.waits_for_a_lock().await;
        refusing.commit().await.unwrap();
    };
    tokio::join!(app.allows(json!({ "costMicro": 10 * CALL })), refuse);
    assert_eq!(spending::release_due(&app.core).await.unwrap(), 1);
}

#[tokio::test]
async fn notify_tells_people_once_a_month_and_stops_nothing() {
    let app = TestApp::start().await;
    app.sets(json!({ "monthlyBudgetMicro": CALL, "budgetAction": "NOTIFY" })).await;
    let host = app.running_agent().await;
    host.calls(host.call(None, 100_000, 0)).await;
    for _ in 0..3 {
        assert_eq!(host.leases().await.unwrap().cost_micro, None);
    }
    let [guard] = app.guards().await[..] else { panic!() };
    let dismiss = "mutation($o: Id!, $i: Id!) { dismissApproval(orgId: $o, id: $i) { id } }";
    app.operator.gql(dismiss, json!({ "o": app.org, "i": guard })).await.data();
    app.clock.advance(Duration::from_hours(24 * 3));
    host.leases().await.unwrap();
    assert_eq!(app.guards().await.len(), 1);
    // The next month is another one.
    app.clock.advance(Duration::from_hours(24 * 30));
    host.calls(host.call(None, 100_000, 0)).await;
    host.leases().await.unwrap();
    assert_eq!(app.guards().await.len(), 2);
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
async fn after_a_usage_window_one_turn_goes_alone_and_the_others_follow() {
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
    let (prober, waiting, turn) = if tried[0] == 2 { (&one, &two, first) } else { (&two, &one, second) };
    app.clock.advance(Duration::from_secs(10));
    assert_eq!(spending::release_due(&app.core).await.unwrap(), 0);
    prober.takes(turn).await;
    prober.calls(prober.call(Some(turn), 10, 10)).await;
    app.clock.advance(Duration::from_secs(1));
    spending::release_due(&app.core).await.unwrap();
    assert_eq!(waiting.given().await.len(), 2);
    assert!(waiting.agent_shows("limit { kind }").await["limit"].is_null());
}

#[tokio::test]
async fn a_turn_that_was_sent_alone_and_is_given_up_again_waits_like_the_others() {
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
async fn a_provider_is_believed_for_a_day_and_only_from_the_host_of_an_agent_that_is_up() {
    let app = TestApp::start().await;
    let create = "mutation($o: Id!) { createModelCredential(orgId: $o, input: { name: \"main\", provider: \"anthropic\", \
                  secret: \"one\", isDefault: true }) { id } }";
    let made = app.owner.gql(create, json!({ "o": app.org })).await.data();
    let credential = made["createModelCredential"]["id"].as_i64();
    let (gone, up) = (app.running_agent().await, app.running_agent().await);
    gone.act("stop").await;
    gone.ended(EndReason::Stopped).await;
    let until = || app.one::<Option<i64>>("SELECT limited_until FROM model_credentials", vec![]);
    gone.is_limited(credential, 600).await;
    assert_eq!(until().await, None);
    let told = gone.tell(async |tx, from| agents::reports::auth_required(tx, from, "401".to_owned()).await);
    told.await.unwrap();
    assert_eq!(app.one::<i64>("SELECT COUNT(*) FROM approvals", vec![]).await, 0);
    assert!(up.agent_shows("limit { kind }").await["limit"].is_null());
    up.is_limited(credential, 30 * 24 * 3600).await;
    assert_eq!(until().await, Some(app.clock.now().plus(Duration::from_hours(24)).0));
}

#[tokio::test]
async fn a_host_that_asks_without_end_holds_few_leases() {
    let app = TestApp::start().await;
    app.sets(json!({ "monthlyBudgetMicro": 1000 * CALL })).await;
    let (greedy, other) = (app.running_agent().await, app.running_agent().await);
    let mut held = Vec::new();
    for _ in 0..16 {
        held.push(greedy.leases().await.unwrap().id);
    }
    let Given::Refused { reason } = greedy.asks_for_lease(MODEL).await.unwrap() else { panic!("granted") };
    assert!(reason.contains("16 leases"), "{reason}");
    other.leases().await.unwrap();
    let first = muster::base::ids::LeaseId(held[0]);
    greedy.tell(async |tx, from| spending::returned(tx, from, first).await).await.unwrap();
    greedy.leases().await.unwrap();
    assert!(matches!(greedy.asks_for_lease(MODEL).await.unwrap(), Given::Refused { .. }));
    app.clock.advance(Duration::from_mins(15));
    greedy.leases().await.unwrap();
}

#[tokio::test]
async fn a_rejected_credential_is_asked_for_once_and_a_new_secret_ends_it() {
    let app = TestApp::start().await;
    let create = "mutation($o: Id!) { createModelCredential(orgId: $o, input: { name: \"main\", provider: \"openai\", \
                  secret: \"one\", isDefault: true }) { id } }";
    let made = app.owner.gql(create, json!({ "o": app.org })).await.data();
    let credential = made["createModelCredential"]["id"].as_i64().unwrap();
    for host in [app.running_agent().await, app.running_agent().await] {
        let told = host.tell(async |tx, from| {
            muster::slices::agents::reports::auth_required(tx, from, "401".to_owned()).await
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

#[tokio::test]
async fn only_who_may_edit_the_organization_allows_more() {
    let app = TestApp::start().await;
    let host = app.running_agent().await;
    let allow = "mutation($o: Id!, $i: AllowSpendingInput!) { allowSpending(orgId: $o, input: $i) { id } }";
    let one = json!({ "o": app.org, "i": { "agentId": host.agent, "costMicro": 1 } });
    for (actor, code) in [
        (&app.operator, "PERMISSION_DENIED"),
        (&app.viewer, "PERMISSION_DENIED"),
        (&app.stranger, "NOT_A_MEMBER"),
    ] {
        assert_eq!(actor.gql(allow, one.clone()).await.code(), code);
    }
    app.admin.gql(allow, one).await.data();
    // Another tenant's agent is unknown, and so is another tenant's approval.
    let theirs = app.other_agent().await;
    let foreign = json!({ "o": app.org, "i": { "agentId": theirs, "costMicro": 1 } });
    assert_eq!(app.admin.gql(allow, foreign).await.code(), "NOT_FOUND");
    for wrong in [json!({}), json!({ "costMicro": 1, "tokens": 1 }), json!({ "tokens": 1 })] {
        let wrong = json!({ "o": app.org, "i": wrong });
        assert_eq!(app.admin.gql(allow, wrong).await.code(), "VALIDATION_FAILED");
    }
    // An operator edits agents, but not what they may spend.
    let edit = "mutation($o: Id!, $a: Id!, $i: UpdateAgentInput!) { updateAgent(orgId: $o, id: $a, input: $i) { id } }";
    for input in [
        json!({ "monthlyBudgetMicro": 1 }),
        json!({ "budgetAction": "STOP" }),
        json!({ "networkPrivileged": true }),
    ] {
        let refused = app.operator.gql(edit, json!({ "o": app.org, "a": host.agent, "i": input })).await;
        assert_eq!(refused.code(), "PERMISSION_DENIED");
    }
}

#[tokio::test]
async fn calls_are_kept_for_90_days_and_their_sums_stay() {
    let app = TestApp::start().await;
    let host = app.running_agent().await;
    host.calls(host.call(None, 1000, 100)).await;
    app.clock.advance(Duration::from_hours(24 * 89));
    rounds::sweep(&app.core).await.unwrap();
    assert_eq!(app.one::<i64>("SELECT COUNT(*) FROM model_calls", vec![]).await, 1);
    app.clock.advance(Duration::from_hours(25));
    rounds::sweep(&app.core).await.unwrap();
    assert_eq!(app.one::<i64>("SELECT COUNT(*) FROM model_calls", vec![]).await, 0);
    assert_eq!(app.one::<i64>("SELECT cost_micro FROM model_days", vec![]).await, 4500);
}

#[tokio::test]
async fn nothing_is_granted_in_a_stopped_organization() {
    let app = TestApp::start().await;
    let host = app.running_agent().await;
    assert!(matches!(host.asks_for_lease(MODEL).await.unwrap(), Given::Lease(_)));
    orgs::stop(&app.scope(), "so").await.unwrap();
    let Given::Refused { reason } = host.asks_for_lease(MODEL).await.unwrap() else { panic!("granted") };
    assert!(reason.contains("stopped"), "{reason}");
    orgs::release(&app.scope(), None).await.unwrap();
    assert!(matches!(host.asks_for_lease(MODEL).await.unwrap(), Given::Lease(_)));
}
