//! Every conflict that the OpenAPI document lists for an operation really occurs, so none is listed by mistake.
//! Every test checks that none is missing (`harness/documented.rs`).

use std::collections::BTreeSet;

use muster::{api::rest::ROUTES, domain::conversations};
use serde_json::{Value, json};

use crate::{
    api::calls::{Call, calls},
    harness::{Answer, Population, Spare, TestApp, documented},
};

/// The callers and the records.
struct Setup {
    app: TestApp,
    all: Population,
    calls: Vec<Call>,
    /// The operations and codes that have occurred so far.
    seen: BTreeSet<(String, String)>,
}

impl Setup {
    async fn open() -> Self {
        let (app, all) = TestApp::populated(4).await;
        Self { calls: calls(&all, Spare::of(&all)), app, all, seen: BTreeSet::new() }
    }

    /// A valid call to an operation, with this body instead of its own if given.
    async fn call(&self, operation: &str, body: Option<Value>) -> Answer {
        let call = self.calls.iter().find(|call| call.operation == operation).unwrap();
        let body = body.unwrap_or_else(|| call.body.clone());
        self.app.owner.send(call.method.clone(), &call.url(self.app.org), &body).await
    }

    /// The same call is refused with this code.
    async fn refuses(&mut self, operation: &str, code: &str, body: Option<Value>) {
        let answer = self.call(operation, body).await;
        assert_eq!(answer.problem().1, code, "{operation}: {:#}", answer.body);
        self.seen.insert((operation.to_owned(), code.to_owned()));
    }

    /// Changes a row behind the service's back.
    async fn set(&self, table: &str, set: &str, id: i64) {
        self.app.execute(&format!("UPDATE {table} SET {set} WHERE id = $1"), vec![id.into()]).await;
    }
}

/// The state errors that the document lists for an operation.
fn promised() -> BTreeSet<(String, String)> {
    let of = |status: u16| {
        ROUTES.iter().flat_map(move |route| {
            let codes = documented(route).remove(&status).unwrap_or_default();
            codes.into_iter().map(|code| (route.operation.to_owned(), code.to_owned()))
        })
    };
    // The database's own refusals and those of idempotency keys can occur on any change; `api/idempotency.rs` and
    // `faults/database.rs` cover them.
    let everywhere = ["CONFLICT", "IDEMPOTENCY_IN_PROGRESS", "IDEMPOTENCY_IN_DOUBT"];
    let own = of(409).filter(|(_, code)| !everywhere.contains(&code.as_str()));
    own.chain(of(403).filter(|(_, code)| code == "PLAN_LIMIT_REACHED")).collect()
}

#[tokio::test]
async fn every_documented_conflict_occurs() {
    let mut setup = Setup::open().await;
    limits(&mut setup).await;
    done_before(&mut setup).await;
    names(&mut setup).await;
    states(&mut setup).await;
    archived(&mut setup).await;
    assert_eq!(setup.seen, promised());
}

async fn limits(setup: &mut Setup) {
    let org = setup.app.org;
    let least = "max_servers_override = 1, contracted_agents = 1, max_channels_per_agent = 1";
    setup.set("organizations", least, org).await;
    for operation in ["CreateServer", "CreateAgent", "CreateChannel"] {
        setup.refuses(operation, "PLAN_LIMIT_REACHED", None).await;
    }
    setup.set("agents", "archived_at = 1", setup.all.agents[0]).await;
    setup.refuses("RestoreAgent", "PLAN_LIMIT_REACHED", None).await;
    setup.set("agents", "archived_at = NULL", setup.all.agents[0]).await;
    setup.set("channels", "scope = 'INTERNAL'", setup.all.channels[0]).await;
    setup.refuses("EditChannel", "PLAN_LIMIT_REACHED", Some(json!({ "scope": "EXTERNAL" }))).await;
    let more = "max_servers_override = 99, contracted_agents = 99, max_channels_per_agent = 99";
    setup.set("organizations", more, org).await;
}

/// Operations that work only once, or only for some.
async fn done_before(setup: &mut Setup) {
    let question = setup.all.approvals[0];
    setup.set("approvals", "kind = 'COST_GUARD'", question).await;
    setup.refuses("AnswerApproval", "APPROVAL_NOT_A_QUESTION", None).await;
    setup.set("approvals", "kind = 'QUESTION'", question).await;
    setup.set("agents", "status = 'RUNNING'", setup.all.agents[0]).await;
    setup.refuses("StartAgent", "AGENT_ALREADY_RUNNING", None).await;
    let org = setup.app.org;
    setup.set("organizations", "stopped_at = 1, stopped_by_name = 'Ann', stop_reason = 'so'", org).await;
    setup.refuses("StartAgent", "ORGANIZATION_STOPPED", None).await;
    setup.set("organizations", "stopped_at = NULL", org).await;
    for (operation, code) in [
        ("CreateServer", "NAME_TAKEN"),
        ("CreateAgent", "NAME_TAKEN"),
        ("CreateCredential", "NAME_TAKEN"),
        ("CreateMcpServer", "NAME_TAKEN"),
        ("CreateSkill", "NAME_TAKEN"),
        ("ResolveApproval", "APPROVAL_NOT_PENDING"),
        ("AnswerApproval", "APPROVAL_NOT_PENDING"),
        ("DismissApproval", "APPROVAL_NOT_PENDING"),
    ] {
        let first = setup.call(operation, None).await;
        assert!(first.status < 300, "{operation}: {:#}", first.body);
        setup.refuses(operation, code, None).await;
    }
}

/// Operations that depend on the state of agents, servers and members.
async fn states(setup: &mut Setup) {
    let (org, agent, other) = (setup.app.org, setup.all.agents[0], setup.all.agents[1]);
    setup.refuses("DeleteServer", "IN_USE", None).await;
    setup.set("agents", "status = 'RUNNING'", agent).await;
    setup.refuses("DeleteAgent", "AGENT_ALREADY_RUNNING", None).await;
    let moves = json!({ "server_id": setup.all.servers[1] });
    setup.refuses("EditAgent", "AGENT_ALREADY_RUNNING", Some(moves)).await;
    setup.set("agents", "status = 'ERROR', restart_at = NULL", other).await;
    for operation in ["StopAgent", "PauseAgent", "ResumeAgent"] {
        setup.refuses(operation, "AGENT_NOT_RUNNING", None).await;
    }
    setup.set("agents", "status = 'PAUSED'", other).await;
    setup.set("organizations", "stopped_at = 1, stopped_by_name = 'Ann', stop_reason = 'so'", org).await;
    for operation in ["ResumeAgent", "RestartAgent"] {
        setup.refuses(operation, "ORGANIZATION_STOPPED", None).await;
    }
    setup.set("organizations", "stopped_at = NULL", org).await;
    setup.set("agents", "status = 'STOPPED', name = 'the same', archived_at = 1", agent).await;
    setup.set("agents", "name = 'the same'", other).await;
    setup.refuses("RestoreAgent", "NAME_TAKEN", None).await;
    let server: i64 = setup.app.one("SELECT server_id FROM agents WHERE id = $1", vec![agent.into()]).await;
    setup.set("servers", "archived_at = 1", server).await;
    setup.refuses("RestoreAgent", "ARCHIVED", None).await;
    setup.set("servers", "archived_at = NULL", server).await;
    setup.refuses("PostMessage", "ARCHIVED", None).await;
    setup.refuses("TakeOverConversation", "ARCHIVED", None).await;
    setup.set("agents", "archived_at = NULL, name = 'its own'", agent).await;
    setup.refuses("EditAgent", "NAME_TAKEN", Some(json!({ "name": "the same" }))).await;
    setup.set("conversations", "status = 'ARCHIVED'", setup.all.conversations[0]).await;
    setup.refuses("EditConversation", "ARCHIVED", Some(json!({ "title": "another" }))).await;
    setup.set("conversations", "status = 'ARCHIVED'", setup.all.conversations[1]).await;
    setup.refuses("RetryTurn", "ARCHIVED", None).await;
    let owner = setup.app.owner.user.unwrap();
    setup.app.execute("UPDATE members SET role = 'VIEWER' WHERE user_id <> $1", vec![owner.into()]).await;
    for operation in ["EditMember", "RemoveMember"] {
        let call = setup.calls.iter_mut().find(|call| call.operation == operation).unwrap();
        call.path[0].1 = json!(owner);
        setup.refuses(operation, "LAST_OWNER", None).await;
    }
    setup.app.execute("UPDATE plans SET max_stored_mib = 0", vec![]).await;
    conversations::count_stored(&setup.app.core).await.unwrap();
    setup.set("conversations", "status = 'OPEN'", setup.all.conversations[0]).await;
    let first = json!({ "agent_id": agent, "text": "hello" });
    setup.refuses("StartConversation", "PLAN_LIMIT_REACHED", Some(first)).await;
    setup.refuses("PostMessage", "PLAN_LIMIT_REACHED", None).await;
    let skill = json!({ "name": "another", "content": "# Another" });
    setup.refuses("CreateSkill", "PLAN_LIMIT_REACHED", Some(skill)).await;
}

async fn names(setup: &mut Setup) {
    for (operation, table, other) in [
        ("EditCredential", "credentials", setup.all.credentials[1]),
        ("EditSkill", "skills", setup.all.skills[1]),
        ("EditMcpServer", "mcp_servers", setup.all.mcp_servers[1]),
        ("EditServer", "servers", setup.all.servers[1]),
    ] {
        setup.set(table, "name = 'the same'", other).await;
        setup.refuses(operation, "NAME_TAKEN", Some(json!({ "name": "the same" }))).await;
    }
    for (kind, table, ids) in [
        ("McpServer", "mcp_servers", setup.all.mcp_servers.clone()),
        ("Credential", "credentials", setup.all.credentials.clone()),
        ("Skill", "skills", setup.all.skills.clone()),
    ] {
        setup.call(&format!("Archive{kind}"), None).await.expect(200);
        // The other one has this name already.
        setup.set(table, "name = 'the same'", ids[0]).await;
        setup.refuses(&format!("Unarchive{kind}"), "NAME_TAKEN", None).await;
    }
}

async fn archived(setup: &mut Setup) {
    setup.set("credentials", "archived_at = 1", setup.all.credentials[0]).await;
    setup.set("skills", "archived_at = 1", setup.all.skills[0]).await;
    setup.set("mcp_servers", "archived_at = 1", setup.all.mcp_servers[0]).await;
    for kind in ["Credential", "Skill", "McpServer"] {
        for operation in [format!("Edit{kind}"), format!("Set{kind}Agents")] {
            setup.refuses(&operation, "ARCHIVED", None).await;
        }
    }
    // The operator has set up no GitHub App.
    let authorized = "is_active = FALSE, transport = 'CODE_HOST', code_host_installation_id = 7, \
        code_host_oauth_authorized = TRUE";
    setup.set("channels", authorized, setup.all.channels[0]).await;
    setup.refuses("EditChannel", "NOT_SUPPORTED", Some(json!({ "is_active": true }))).await;
    setup.set("channels", "transport = 'WEBHOOK'", setup.all.channels[0]).await;
    setup.set("agents", "archived_at = 1", setup.all.agents[0]).await;
    setup.refuses("EditChannel", "ARCHIVED", Some(json!({ "is_active": true }))).await;
}
