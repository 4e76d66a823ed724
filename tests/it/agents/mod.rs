//! Agents: operations 12 to 14, and what the panel adds.

mod assignments;
pub mod backups;
mod containers;
mod edited;
mod launch_history;
pub mod launched;
mod logs;
mod messages;
pub mod opencode;
mod own_agent;
mod profiles;
mod recovering;
mod restarts;
pub mod revisions;
mod revisions_reverted;
pub mod running;
pub mod running_faults;
mod status;
pub mod third_party;

use std::time::Duration;

use muster::{
    base::{enums::LimitKind, ids::AgentId},
    domain::{
        approvals,
        spending::{GuardedLimit, UsedUp},
    },
};
use serde_json::{Value, json};

use crate::harness::{Host, Population, TestApp};

impl TestApp {
    /// A fresh service with a stopped agent.
    pub async fn with_agent() -> (Self, i64) {
        let app = Self::start().await;
        let agent = app.agent().await;
        (app, agent)
    }

    pub async fn with_two_agents() -> (Self, i64, i64) {
        let (app, one) = Self::with_agent().await;
        let other = app.agent().await;
        (app, one, other)
    }

    /// A fresh service with `n` of everything.
    pub async fn populated(n: usize) -> (Self, Population) {
        let app = Self::start().await;
        let all = app.populate(n).await;
        (app, all)
    }

    /// A fresh service with a stopped agent and a conversation with it.
    pub async fn with_conversation() -> (Self, i64, i64) {
        let (app, agent) = Self::with_agent().await;
        let conversation = app.conversation(agent).await;
        (app, agent, conversation)
    }

    /// An agent that runs, and a conversation with it.
    pub async fn talking_agent(&self) -> (Host<'_>, i64) {
        let host = self.running_agent().await;
        let conversation = self.conversation(host.agent).await;
        (host, conversation)
    }

    pub async fn delete_agent(&self, agent: i64) {
        let delete = "mutation($o: Id!, $a: Id!) { deleteAgent(orgId: $o, id: $a) }";
        self.admin.gql(delete, json!({ "o": self.org, "a": agent })).await.data();
    }
}

impl Host<'_> {
    /// Started by a person, and up.
    pub async fn relaunched(self) -> Self {
        let host = self.launched().await;
        host.started().await;
        host
    }
}

fn set_status(status: &str) -> String {
    format!("UPDATE agents SET status = '{status}' WHERE organization_id = $1 AND id = $2")
}

#[tokio::test]
async fn an_agent_is_created_stopped() {
    let app = TestApp::start().await;
    let (server, image) = (app.server().await, app.image().await);
    let body = json!({ "name": "Ada", "role": "support", "server_id": server, "image_id": image, "model_override": "m-2" });
    let agent = app.operator.post(&format!("/v1/org/{}/agent", app.org), body).await.expect(201);
    assert_eq!(agent["status"], "STOPPED");
    assert_eq!(agent["viewer_access"], "MANAGE");
    assert_eq!(agent["resolved_model"], "m-2");
    assert_eq!(agent["tokens_used"], "0");
    assert_eq!(agent["approval_categories"], json!([]));
    assert_eq!(agent["avatar_url"], Value::Null);
    assert_eq!(agent["uptime_seconds"], Value::Null);
}

#[tokio::test]
async fn operator_starts_a_stopped_agent() {
    let (app, agent) = TestApp::with_agent().await;
    let path = format!("/v1/org/{}/agent/{agent}/start", app.org);
    assert_eq!(app.operator.post(&path, Value::Null).await.expect(200)["status"], "SPAWNING");
    let commands = || app.column::<String>("SELECT kind FROM commands ORDER BY id");
    assert_eq!(commands().await, ["LAUNCH"]);
    // Starting it again while it spawns gives the same answer, and it is launched only once.
    assert_eq!(app.operator.post(&path, Value::Null).await.expect(200)["status"], "SPAWNING");
    assert_eq!(commands().await, ["LAUNCH"]);
}

#[tokio::test]
async fn a_running_agent_is_not_started() {
    let (app, agent) = TestApp::with_agent().await;
    let path = format!("/v1/org/{}/agent/{agent}/start", app.org);
    for status in ["RUNNING", "PAUSED", "STOPPING"] {
        app.execute(&set_status(status), vec![app.org.into(), agent.into()]).await;
        let refused = app.owner.post(&path, Value::Null).await;
        assert_eq!(refused.problem(), (409, "AGENT_ALREADY_RUNNING"));
        assert_eq!(refused.body["details"]["status"], status);
    }
    app.execute(&set_status("ERROR"), vec![app.org.into(), agent.into()]).await;
    app.owner.post(&path, Value::Null).await.expect(200);
}

#[tokio::test]
async fn ids_that_are_not_numbers_are_malformed() {
    let app = TestApp::start().await;
    let answer = app.owner.post(&format!("/v1/org/{}/agent/abc/start", app.org), Value::Null).await;
    assert_eq!(answer.problem(), (400, "MALFORMED_REQUEST"));
    let answer = app.owner.post("/v1/org/x/agent/1/start", Value::Null).await;
    assert_eq!(answer.problem(), (400, "MALFORMED_REQUEST"));
    let huge =
        app.owner.post(&format!("/v1/org/{}/agent/99999999999999999999/start", app.org), Value::Null).await;
    assert_eq!(huge.problem(), (404, "NOT_FOUND"));
}

#[tokio::test]
async fn an_agent_is_paused_resumed_and_stopped() {
    let (app, agent) = TestApp::with_agent().await;
    let act = async |verb: &str| {
        let query =
            format!("mutation($o: Id!, $id: Id!) {{ it: {verb}Agent(orgId: $o, id: $id) {{ status }} }}");
        app.operator.gql(&query, json!({ "o": app.org, "id": agent })).await
    };
    assert_eq!(act("pause").await.code(), "AGENT_NOT_RUNNING");
    app.execute(&set_status("RUNNING"), vec![app.org.into(), agent.into()]).await;
    for (verb, status) in [("pause", "PAUSED"), ("resume", "RUNNING"), ("stop", "STOPPING")] {
        assert_eq!(act(verb).await.data()["it"]["status"], status);
    }
    let commands: Vec<String> = app.column("SELECT kind FROM commands ORDER BY id").await;
    assert_eq!(commands, ["PAUSE", "RESUME", "STOP"]);
}

#[tokio::test]
async fn a_deleted_agent_is_gone_and_its_name_is_free() {
    let app = TestApp::start().await;
    let (server, image) = (app.server().await, app.image().await);
    let path = format!("/v1/org/{}/agent", app.org);
    let body = json!({ "name": "Ada", "server_id": server, "image_id": image });
    let id = app.owner.post(&path, body.clone()).await.expect(201)["id"].clone();
    assert_eq!(app.owner.post(&path, body.clone()).await.problem(), (409, "NAME_TAKEN"));
    let delete = "mutation($o: Id!, $id: Id!) { deleteAgent(orgId: $o, id: $id) }";
    let vars = json!({ "o": app.org, "id": id });
    assert_eq!(app.operator.gql(delete, vars.clone()).await.code(), "PERMISSION_DENIED");
    app.admin.gql(delete, vars.clone()).await.data();
    assert_eq!(app.admin.gql(delete, vars.clone()).await.code(), "NOT_FOUND");
    let get = "query($o: Id!, $id: Id!) { agent(orgId: $o, id: $id) { id } }";
    assert_eq!(app.owner.gql(get, vars).await.code(), "NOT_FOUND");
    app.owner.post(&path, body).await.expect(201);
}

#[tokio::test]
async fn a_deleted_agents_approvals_are_withdrawn() {
    let (app, gone, stays) = TestApp::with_two_agents().await;
    let tx = app.scope().begin().await.unwrap();
    let until = tx.now.plus(Duration::from_hours(1));
    let used_up = |agent, cause, title: &'static str| UsedUp {
        of: GuardedLimit { agent, kind: LimitKind::Money },
        cause,
        title,
        body: title.to_owned(),
        amount: 1,
        until,
        since: tx.now,
        is_notice: false,
    };
    for (agent, title) in [(gone, "Of the one"), (stays, "Of the other")] {
        let agent = AgentId(agent);
        approvals::request_model_access(&tx, agent, title.to_owned()).await.unwrap();
        approvals::raise_cost_guard(&tx, &used_up(Some(agent), agent, title)).await.unwrap();
    }
    // Of the organization, whose other agents wait for it as well.
    approvals::raise_cost_guard(&tx, &used_up(None, AgentId(gone), "Of all")).await.unwrap();
    tx.commit().await.unwrap();
    app.delete_agent(gone).await;
    let open = "SELECT kind || ' ' || body FROM approvals WHERE status = 'PENDING' ORDER BY kind, body";
    let expected = ["AUTH_REQUIRED Of the other", "COST_GUARD Of all", "COST_GUARD Of the other"];
    assert_eq!(app.column::<String>(open).await, expected);
    let ended = "SELECT outcome FROM approvals WHERE status <> 'PENDING'";
    assert_eq!(app.column::<String>(ended).await, ["WITHDRAWN", "WITHDRAWN"]);
}

#[tokio::test]
async fn settings_are_edited_and_checked() {
    let (app, agent) = TestApp::with_agent().await;
    let edit = "mutation($o: Id!, $id: Id!, $input: UpdateAgentInput!) { updateAgent(orgId: $o, id: $id, input: $input) {
        timezone backupCron approvalCategories effortOverride hasModelCredential cpuOverride thinkingEnabled
    } }";
    let vars = |input: Value| json!({ "o": app.org, "id": agent, "input": input });
    let input = json!({
        "timezone": "Europe/Berlin", "backupCron": "0 3 * * *", "approvalCategories": ["money"],
        "effortOverride": "HIGH", "modelCredential": "sk-very-secret", "cpuOverride": 1.5, "thinkingEnabled": true,
    });
    let answer = app.operator.gql(edit, vars(input)).await;
    assert!(!answer.text.contains("sk-very-secret"));
    assert_eq!(
        answer.data()["updateAgent"],
        json!({
            "timezone": "Europe/Berlin", "backupCron": "0 3 * * *", "approvalCategories": ["money"],
            "effortOverride": "HIGH", "hasModelCredential": true, "cpuOverride": 1.5, "thinkingEnabled": true,
        })
    );
    let wrong = app.operator.gql(edit, vars(json!({ "timezone": "Mars/Base", "backupCron": "often" }))).await;
    assert_eq!(wrong.code(), "VALIDATION_FAILED");
    let errors = wrong.body["errors"][0]["extensions"]["errors"].clone();
    assert_eq!(
        (&errors[0]["pointer"], &errors[1]["pointer"]),
        (&json!("/input/timezone"), &json!("/input/backupCron"))
    );
    let audit: Vec<String> =
        app.column("SELECT CAST(changes AS TEXT) FROM audit_lines WHERE operation = 'updateAgent'").await;
    assert!(audit.iter().all(|line| !line.contains("sk-very-secret")), "{audit:?}");
    assert!(audit[0].contains("\"changed\""), "{audit:?}");
}

#[tokio::test]
async fn a_model_credential_goes_only_to_its_address() {
    let (app, agent) = TestApp::with_agent().await;
    let update = "mutation($o: Id!, $id: Id!, $i: UpdateAgentInput!) { updateAgent(orgId: $o, id: $id, input: $i) { id } }";
    let edit = |input: Value| app.operator.gql(update, json!({ "o": app.org, "id": agent, "i": input }));
    let (theirs, elsewhere) = ("https://models.example/v1", "https://listener.example/v1");
    edit(json!({ "modelCredentialBaseUrl": theirs, "modelCredential": "a key" })).await.data();
    edit(json!({ "modelCredentialBaseUrl": theirs, "name": "the same address" })).await.data();
    for moved in [
        json!({ "modelCredentialBaseUrl": elsewhere }),
        json!({ "modelCredentialBaseUrl": "http://models.example/v1" }),
        json!({ "modelCredentialBaseUrl": null }),
        json!({ "modelCredentialProvider": "openai" }),
    ] {
        assert_eq!(edit(moved).await.wrong_inputs(), [("/input/modelCredential", "REQUIRED")]);
    }
    edit(json!({ "modelCredentialBaseUrl": elsewhere, "modelCredential": "another key" })).await.data();
    edit(json!({ "modelCredential": null, "credentialChoice": "INHERIT" })).await.data();
    edit(json!({ "modelCredentialBaseUrl": theirs })).await.data();
}
