//! Agents come back: what failed is started again as its policy says, and a person, a budget or a stop takes that back.

use std::time::Duration;

use muster::{
    base::{
        enums::{RestartPolicy, StatusReason},
        ids::{ImageId, ServerId},
    },
    core::queue::backoff::WAITS,
    domain::{
        agents::{self, CreateAgentInput},
        launch::{self, start_due},
    },
};
use muster_protocol::event::EndReason;
use serde_json::{Value, json};

use crate::{
    agents::running::House,
    harness::{Host, TestApp, found, until},
    organizations::emergency_stop::{release, stop},
};

const RESTART: &str = "status statusReason restart { attempts nextAt }";

impl Host<'_> {
    async fn exits(&self, code: i32) {
        let ended = self.tell(async |tx, from| {
            launch::reports::ended(tx, from, EndReason::Exited, Some(code), None, None).await
        });
        ended.await.unwrap();
    }

    /// Stops the agent because its budget is used up.
    pub async fn is_over_limit(&self, why: &str) {
        let limited = self.tell(async |tx, from| {
            launch::stop_in(tx, from.agent, "costGuard", (StatusReason::LimitReached, why)).await
        });
        limited.await.unwrap();
    }

    /// When it is started next, in milliseconds from now.
    async fn comes_back_in(&self) -> Option<i64> {
        let sql = "SELECT COALESCE(restart_at, -1) FROM agents WHERE id = $1";
        let at: i64 = self.app.one(sql, vec![self.agent.into()]).await;
        (at >= 0).then(|| at - self.app.clock.now().0)
    }

    /// The service starts it when it is due, and not before. It is up then.
    async fn comes_back(self, wait: Duration) -> Self {
        assert_eq!(self.comes_back_in().await, Some(wait.as_millis() as i64));
        let short = wait.checked_sub(Duration::from_millis(1)).unwrap();
        self.app.clock.advance(short);
        assert_eq!(start_due(&self.app.core).await.unwrap(), 0, "a moment before");
        self.app.clock.advance(Duration::from_millis(1));
        assert_eq!(start_due(&self.app.core).await.unwrap(), 1);
        assert_eq!(start_due(&self.app.core).await.unwrap(), 0, "once");
        let next = Self { generation: self.generation + 1, ..self };
        assert_eq!(self.app.launch_of(self.agent).await, (next.generation, "SPAWNING".to_owned()));
        next.started().await;
        next
    }

    /// Nothing starts it, however much time passes.
    async fn stays_down(&self) {
        self.app.clock.advance(Duration::from_hours(2));
        assert_eq!(start_due(&self.app.core).await.unwrap(), 0);
        assert_eq!(self.app.launch_of(self.agent).await.0, self.generation);
    }
}

#[tokio::test]
async fn what_fails_is_started_five_times_and_then_by_a_person() {
    let app = TestApp::start().await;
    let mut host = app.running_agent().await;
    app.execute("UPDATE servers SET status = 'ONLINE'", vec![]).await;
    assert_eq!(
        host.agent_shows("restartPolicy restart { attempts }").await,
        json!({ "restartPolicy": "ON_FAILURE", "restart": null })
    );
    for (attempts, wait) in (0..).zip(&WAITS[..5]) {
        host.exits(3).await;
        let at = app.clock.now().plus(*wait).to_string();
        let failed = json!({ "status": "ERROR", "statusReason": "EXITED", "restart": { "attempts": attempts, "nextAt": at } });
        assert_eq!(host.agent_shows(RESTART).await, failed);
        host = host.comes_back(*wait).await;
        let up = json!({ "status": "RUNNING", "statusReason": null, "restart": { "attempts": attempts + 1, "nextAt": null } });
        assert_eq!(host.agent_shows(RESTART).await, up);
    }
    host.exits(3).await;
    let given_up =
        json!({ "status": "ERROR", "statusReason": "EXITED", "restart": { "attempts": 5, "nextAt": null } });
    assert_eq!(host.agent_shows(RESTART).await, given_up);
    host.stays_down().await;
    let lines = "SELECT actor_kind || ' ' || CAST(changes AS TEXT) FROM audit_lines WHERE operation = 'startAgain' ORDER BY id";
    let lines: Vec<String> = app.column(lines).await;
    assert_eq!(lines.len(), 5);
    let last: Value = serde_json::from_str(lines[4].strip_prefix("SYSTEM ").unwrap()).unwrap();
    assert_eq!(last, json!({ "status": { "before": "ERROR", "after": "SPAWNING" }, "attempt": 5 }));
    // A person's start resets the count.
    let host = host.launched().await;
    assert_eq!(host.agent_shows("restart { attempts }").await["restart"], Value::Null);
    host.started().await;
    host.exits(3).await;
    host.comes_back(WAITS[0]).await;
}

#[tokio::test]
async fn an_hour_of_running_begins_the_count_again() {
    let app = TestApp::start().await;
    let mut host = app.running_agent().await;
    for wait in &WAITS[..3] {
        host.exits(3).await;
        host = host.comes_back(*wait).await;
    }
    app.clock.advance(Duration::from_mins(59));
    assert_eq!(host.agent_shows("restart { attempts }").await["restart"], json!({ "attempts": 3 }));
    host.exits(3).await;
    host = host.comes_back(WAITS[3]).await;
    app.clock.advance(Duration::from_mins(60));
    assert_eq!(host.agent_shows("restart { attempts }").await["restart"], Value::Null);
    host.exits(3).await;
    assert_eq!(host.agent_shows("restart { attempts }").await["restart"], json!({ "attempts": 0 }));
    host.comes_back(WAITS[0]).await;
}

#[tokio::test]
async fn an_agent_that_its_host_lost_comes_back_as_often_as_it_takes() {
    let app = TestApp::start().await;
    let mut host = app.running_agent().await;
    for attempt in 0..9 {
        host.ended(EndReason::ShimLost).await;
        host = host.comes_back(WAITS[attempt.min(4)]).await;
    }
    // A start that takes too long is a failure, and the first one.
    host.ended(EndReason::ShimLost).await;
    app.clock.advance(WAITS[4]);
    assert_eq!(start_due(&app.core).await.unwrap(), 1);
    app.execute("UPDATE servers SET status = 'ONLINE'", vec![]).await;
    app.clock.advance(Duration::from_secs(app.core.config.agents.start_deadline_seconds + 1));
    assert_eq!(launch::end_late_starts(&app.core).await.unwrap(), 1);
    host = Host { generation: host.generation + 1, ..host };
    assert_eq!(host.agent_shows("statusReason").await["statusReason"], "START_TIMEOUT");
    host = host.comes_back(WAITS[0]).await;
    for wait in &WAITS[1..5] {
        host.exits(3).await;
        host = host.comes_back(*wait).await;
    }
    // After five failures it is still no failure to be lost.
    host.ended(EndReason::ShimLost).await;
    host = host.comes_back(WAITS[4]).await;
    host.exits(3).await;
    let restart = json!({ "attempts": 16, "nextAt": null });
    assert_eq!(host.agent_shows("restart { attempts nextAt }").await["restart"], restart);
    host.stays_down().await;
}

#[tokio::test]
async fn people_learn_of_the_first_failure_and_of_the_last() {
    let app = TestApp::with_mail().await;
    let mut host = app.running_agent().await;
    let are_notified = async || {
        let raised: i64 = app.one("SELECT COUNT(*) FROM notifications", vec![]).await;
        app.execute("DELETE FROM notifications", vec![]).await;
        raised > 0
    };
    let mut heard = Vec::new();
    for wait in &WAITS[..5] {
        host.exits(3).await;
        heard.push(are_notified().await);
        host = host.comes_back(*wait).await;
    }
    host.exits(3).await;
    heard.push(are_notified().await);
    assert_eq!(heard, [true, false, false, false, false, true]);
    // Of one that only people start they learn each time.
    app.sets_agent(host.agent, json!({ "restartPolicy": "NEVER" })).await;
    for _ in 0..2 {
        host = host.launched().await;
        host.exits(3).await;
        assert!(are_notified().await);
    }
}

#[tokio::test]
async fn always_undoes_neither_a_stop_nor_a_spent_budget() {
    let app = TestApp::start().await;
    let always = async || {
        let host = app.running_agent().await;
        app.sets_agent(host.agent, json!({ "restartPolicy": "ALWAYS" })).await;
        host
    };
    let host = always().await;
    host.exits(0).await;
    host.comes_back(WAITS[0]).await;
    let shows = "status statusReason restart { attempts }";
    for reason in [EndReason::Stopped, EndReason::Exited, EndReason::ShimLost] {
        let host = always().await;
        host.act("stop").await;
        host.ended(reason).await;
        let stopped = json!({ "status": "STOPPED", "statusReason": null, "restart": null });
        assert_eq!(host.agent_shows(shows).await, stopped, "{reason:?}");
        host.stays_down().await;

        let host = always().await;
        host.is_over_limit("Nothing is left.").await;
        host.ended(reason).await;
        let stopped = json!({ "status": "STOPPED", "statusReason": "LIMIT_REACHED", "restart": null });
        assert_eq!(host.agent_shows(shows).await, stopped, "{reason:?}");
        host.stays_down().await;
    }
}

#[tokio::test]
async fn each_policy_says_what_is_started_again() {
    let app = TestApp::start().await;
    let cases = [("NEVER", None, None), ("ON_FAILURE", Some(5000), None), ("ALWAYS", Some(5000), Some(5000))];
    for (policy, failed, clean) in cases {
        let host = app.running_agent().await;
        app.sets_agent(host.agent, json!({ "restartPolicy": policy })).await;
        host.exits(3).await;
        assert_eq!(host.comes_back_in().await, failed, "{policy}, failed");
        let host = host.relaunched().await;
        host.exits(0).await;
        assert_eq!(host.comes_back_in().await, clean, "{policy}, ended without an error");
        let host = host.launched().await;
        host.ended(EndReason::ShimLost).await;
        assert_eq!(host.comes_back_in().await, failed, "{policy}, lost");
        // The agent was stopped, by a person or on its host.
        let host = host.relaunched().await;
        host.ended(EndReason::Stopped).await;
        assert_eq!(host.comes_back_in().await, None, "{policy}, stopped");
    }
    // Set when it is created, and part of what it is.
    let (server, image) = (app.server().await, app.image().await);
    let create = "mutation($o: Id!, $i: CreateAgentInput!) { createAgent(orgId: $o, input: $i, restartPolicy: ALWAYS) { id restartPolicy } }";
    let input = json!({ "name": "Ada", "serverId": server, "imageId": image });
    let made =
        app.operator.gql(create, json!({ "o": app.org, "i": input })).await.data()["createAgent"].clone();
    assert_eq!(made["restartPolicy"], "ALWAYS");
    app.sets_agent(made["id"].as_i64().unwrap(), json!({ "restartPolicy": "NEVER" })).await;
    let revisions = "query($o: Id!, $a: Id!) { agentRevisions(orgId: $o, agentId: $a, page: 1, limit: 5) { data { content changes } } }";
    let revisions = app.viewer.gql(revisions, json!({ "o": app.org, "a": made["id"] })).await.data();
    let newest = &revisions["agentRevisions"]["data"][0];
    assert_eq!(newest["content"]["restartPolicy"], "NEVER");
    assert_eq!(newest["changes"], json!({ "restartPolicy": ["ALWAYS", "NEVER"] }));
}

#[tokio::test]
async fn a_stop_in_between_is_not_undone() {
    let app = TestApp::start().await;
    // A person.
    let host = app.running_agent().await;
    host.exits(3).await;
    host.act("stop").await;
    let shown = json!({ "status": "ERROR", "statusReason": "EXITED", "restart": null });
    assert_eq!(host.agent_shows(RESTART).await, shown);
    host.stays_down().await;
    let again = "mutation($o: Id!, $i: Id!) { stopAgent(orgId: $o, id: $i) { id } }";
    let again = app.operator.gql(again, json!({ "o": app.org, "i": host.agent })).await;
    assert_eq!(again.code(), "AGENT_NOT_RUNNING", "there is nothing to take back");
    let lines = "SELECT CAST(changes AS TEXT) FROM audit_lines WHERE operation = 'stopAgent'";
    let lines: Vec<String> = app.column(lines).await;
    let lines: Vec<Value> = lines.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines, [json!({ "starts_again": false })]);
    // The budget is used up.
    let host = app.running_agent().await;
    host.exits(3).await;
    host.is_over_limit("Nothing is left.").await;
    host.stays_down().await;
    // The restart policy is edited.
    let host = app.running_agent().await;
    host.exits(3).await;
    app.sets_agent(host.agent, json!({ "restartPolicy": "NEVER" })).await;
    host.stays_down().await;
    // The agent is deleted, and restored.
    let host = app.running_agent().await;
    host.exits(3).await;
    for change in ["deleteAgent(orgId: $o, id: $i)", "restoreAgent(orgId: $o, id: $i) { id }"] {
        let change = format!("mutation($o: Id!, $i: Id!) {{ {change} }}");
        app.owner.gql(&change, json!({ "o": app.org, "i": host.agent })).await.data();
        host.stays_down().await;
    }
    // A person has started and stopped the agent: the planned launch doesn't happen.
    let host = app.running_agent().await;
    host.exits(3).await;
    let host = host.relaunched().await;
    host.act("stop").await;
    host.ended(EndReason::Exited).await;
    host.stays_down().await;
}

#[tokio::test]
async fn a_stopped_organization_starts_nothing_until_its_release() {
    let app = TestApp::start().await;
    let host = app.running_agent().await;
    host.exits(3).await;
    stop(&app, &app.owner, "so").await.data();
    host.stays_down().await;
    release(&app, &app.owner).await.data();
    assert_eq!(start_due(&app.core).await.unwrap(), 1);
    // One that a person stopped meanwhile stays down.
    let host = Host { generation: 2, ..host };
    host.started().await;
    host.exits(3).await;
    stop(&app, &app.owner, "so").await.data();
    host.act("stop").await;
    release(&app, &app.owner).await.data();
    host.stays_down().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn postgres_of_two_replicas_one_starts_what_is_due() {
    let app = TestApp::start().await;
    let other = app.replica(None).await;
    let mut hosts = Vec::new();
    for _ in 0..12 {
        let host = app.running_agent().await;
        host.exits(3).await;
        hosts.push(host);
    }
    app.clock.advance(WAITS[0]);
    let (here, there) = tokio::join!(start_due(&app.core), start_due(&other));
    assert_eq!(here.unwrap() + there.unwrap(), 12);
    for host in hosts {
        assert_eq!(app.launch_of(host.agent).await, (2, "SPAWNING".to_owned()));
    }
}

#[tokio::test]
async fn all_agents_of_a_server_start_but_those_that_may_not() {
    let app = TestApp::start().await;
    let server = app.server().await;
    let there = async |host: Host<'_>| {
        app.execute("UPDATE agents SET server_id = $1 WHERE id = $2", vec![server.into(), host.agent.into()])
            .await;
    };
    let (failed, up, spent) =
        (app.running_agent().await, app.running_agent().await, app.running_agent().await);
    let stopped = Host { app: &app, agent: app.agent().await, generation: 0 };
    for host in [failed, up, spent, stopped] {
        there(host).await;
    }
    failed.exits(3).await;
    let why = "The agent's budget is used up.";
    spent.is_over_limit(why).await;
    spent.ended(EndReason::Stopped).await;
    let start = "mutation($o: Id!, $s: Id!) { startAgents(orgId: $o, serverId: $s) { started skipped { id status reason } left } }";
    let variables = json!({ "o": app.org, "s": server });
    let done = app.operator.gql(start, variables.clone()).await.data()["startAgents"].clone();
    assert_eq!(
        done,
        json!({
            "started": [failed.agent, stopped.agent],
            "skipped": [
                { "id": up.agent, "status": "RUNNING", "reason": "It is RUNNING." },
                { "id": spent.agent, "status": "STOPPED", "reason": why },
            ],
            "left": 0,
        })
    );
    let lines = "SELECT target_id FROM audit_lines WHERE operation = 'startAgents' ORDER BY id";
    assert_eq!(app.column::<i64>(lines).await, [failed.agent, stopped.agent], "a line for each");
    assert_eq!(app.launch_of(failed.agent).await, (2, "SPAWNING".to_owned()));
    failed.stays_at(2).await;
    assert_eq!(app.viewer.gql(start, variables.clone()).await.code(), "PERMISSION_DENIED");
    assert_eq!(app.operator.gql(start, json!({ "o": app.org, "s": 99_999 })).await.code(), "NOT_FOUND");
    stop(&app, &app.owner, "so").await.data();
    assert_eq!(app.operator.gql(start, variables).await.code(), "ORGANIZATION_STOPPED");
}

const START_ALL: &str =
    "mutation($o: Id!, $s: Id!) { startAgents(orgId: $o, serverId: $s) { started skipped { id } left } }";

/// Agents of one server, which are stopped.
async fn many(app: &TestApp, server: i64, count: usize) -> Vec<i64> {
    let (mut all, image) = (Vec::new(), ImageId(app.image().await));
    for _ in 0..count {
        let new = CreateAgentInput {
            name: app.name("agent"),
            description: None,
            role: None,
            instructions: None,
            server_id: ServerId(server),
            image_id: Some(image),
            model_override: None,
        };
        all.push(agents::create(&app.scope(), new, RestartPolicy::OnFailure).await.unwrap().0);
    }
    all
}

#[tokio::test]
async fn a_call_starts_a_hundred_agents_and_the_next_one_the_rest() {
    let app = TestApp::start().await;
    let server = app.server().await;
    let all = many(&app, server, 103).await;
    let start = async || {
        app.operator.gql(START_ALL, json!({ "o": app.org, "s": server })).await.data()["startAgents"].clone()
    };
    assert_eq!(start().await, json!({ "started": all[..100], "skipped": [], "left": 3 }));
    let up: Vec<Value> = all[..100].iter().map(|id| json!({ "id": id })).collect();
    assert_eq!(start().await, json!({ "started": all[100..], "skipped": up, "left": 0 }));
}

#[tokio::test]
async fn sqlite_agents_started_together_are_held_in_small_lots() {
    let app = TestApp::start().await;
    let server = app.server().await;
    let all = many(&app, server, 60).await;
    let refuse = format!(
        "CREATE TRIGGER refuse BEFORE UPDATE ON agents WHEN NEW.id = {} AND NEW.status = 'SPAWNING' \
         BEGIN SELECT RAISE(ABORT, 'no'); END",
        all[59]
    );
    app.execute(&refuse, vec![]).await;
    app.expects_failures();
    let failed = app.operator.gql(START_ALL, json!({ "o": app.org, "s": server })).await;
    assert!(!failed.code().is_empty(), "{}", failed.text);
    let started = "SELECT COUNT(*) FROM agents WHERE status = 'SPAWNING'";
    assert_eq!(app.one::<i64>(started, vec![]).await, 50, "two lots of 25 were committed");
}

impl Host<'_> {
    /// Checks that no restart planned for an earlier launch happens.
    async fn stays_at(&self, generation: i64) {
        Host { generation, ..*self }.stays_down().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_reboot_of_its_machine_an_agent_is_up_again() {
    let (house, mut crew) = House::with_crew("rebooting").await;
    let conversation = house.says(&crew, "Before it").await;
    assert_eq!(house.rests(conversation).await, ["DONE"]);
    crew.machine.kill();
    for process in crew.machine.processes() {
        let _ = std::process::Command::new("kill").args(["-KILL", &process.to_string()]).status();
    }
    until("nothing is left", async || crew.machine.processes().is_empty()).await;
    crew.machine.run();
    house.adds(conversation, "After it").await;
    house.hears(&crew, conversation, "After it").await;
    let launches = house.launches(&crew).await;
    assert_eq!(launches.len(), 2, "{launches:?}");
    assert_eq!(launches[1]["reason"], "SHIM_LOST");
    assert_eq!(launches[0]["startedByKind"], "SYSTEM");
    let log = crew.machine.log();
    for line in ["an agent is launched", "an agent runs", "an agent is lost"] {
        assert!(log.contains(line), "{line}: {log}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_that_is_killed_before_the_start_makes_it_once() {
    let (mut house, crew) = House::with_crew("twice").await;
    crew.machine.kill_one("agent");
    let failed = async || {
        let query = "query($o: Id!, $a: Id!) { agent(orgId: $o, id: $a) { status restart { nextAt } } }";
        let agent = house.gql(query, json!({ "a": crew.agent })).await["agent"].clone();
        agent["restart"]["nextAt"].is_string().then_some(())
    };
    assert!(found(failed).await.is_some(), "it has not failed: {}", crew.machine.log());
    house.falls();
    house.rises();
    crew.until(&house.actor, house.tenant.org, "RUNNING").await;
    let conversation = house.says(&crew, "Back again?").await;
    house.hears(&crew, conversation, "Back again?").await;
    assert_eq!(house.launches(&crew).await.len(), 2);
}

impl House {
    /// The launches of the agent, newest first.
    async fn launches(&self, crew: &crate::harness::Crew) -> Vec<Value> {
        let query = "query($o: Id!, $a: Id!) { agentLaunches(orgId: $o, agentId: $a) { generation reason startedByKind } }";
        self.gql(query, json!({ "a": crew.agent })).await["agentLaunches"].as_array().unwrap().clone()
    }
}
