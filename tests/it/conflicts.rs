//! Every conflict that the OpenAPI document lists for an operation really occurs, so none is listed by mistake.
//! Every test checks that none is missing (`harness/documented.rs`).

use std::collections::BTreeSet;

use muster::faces::rest::ROUTES;
use serde_json::{Value, json};

use crate::{
    calls::{Call, calls},
    harness::{Answer, Population, TestApp, documented},
};

/// The callers and the records.
struct House {
    app: TestApp,
    all: Population,
    calls: Vec<Call>,
    /// The operations and codes that have occurred so far.
    seen: BTreeSet<(String, String)>,
}

impl House {
    async fn open() -> Self {
        let app = TestApp::start().await;
        let all = app.populate(4).await;
        Self { calls: calls(&all), app, all, seen: BTreeSet::new() }
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
    // The database's own refusals and those of idempotency keys can occur on any change; `idempotency.rs` and
    // `faults_database.rs` cover them.
    let everywhere = ["CONFLICT", "IDEMPOTENCY_IN_PROGRESS", "IDEMPOTENCY_IN_DOUBT"];
    let own = of(409).filter(|(_, code)| !everywhere.contains(&code.as_str()));
    own.chain(of(403).filter(|(_, code)| code == "PLAN_LIMIT_REACHED")).collect()
}

#[tokio::test]
async fn every_documented_conflict_occurs() {
    let mut house = House::open().await;
    limits(&mut house).await;
    done_before(&mut house).await;
    names(&mut house).await;
    archived(&mut house).await;
    assert_eq!(house.seen, promised());
}

async fn limits(house: &mut House) {
    let org = house.app.org;
    let least = "max_servers_override = 1, contracted_agents = 1, max_channels_per_agent = 1";
    house.set("organizations", least, org).await;
    for operation in ["CreateServer", "CreateAgent", "CreateChannel"] {
        house.refuses(operation, "PLAN_LIMIT_REACHED", None).await;
    }
    house.set("channels", "scope = 'INTERNAL'", house.all.channels[0]).await;
    house.refuses("EditChannel", "PLAN_LIMIT_REACHED", Some(json!({ "scope": "EXTERNAL" }))).await;
    let more = "max_servers_override = 99, contracted_agents = 99, max_channels_per_agent = 99";
    house.set("organizations", more, org).await;
}

/// Operations that work only once, or only for some.
async fn done_before(house: &mut House) {
    let question = house.all.approvals[0];
    house.set("approvals", "kind = 'COST_GUARD'", question).await;
    house.refuses("AnswerApproval", "APPROVAL_NOT_A_QUESTION", None).await;
    house.set("approvals", "kind = 'QUESTION'", question).await;
    house.set("agents", "status = 'RUNNING'", house.all.agents[0]).await;
    house.refuses("StartAgent", "AGENT_ALREADY_RUNNING", None).await;
    for (operation, code) in [
        ("CreateServer", "NAME_TAKEN"),
        ("CreateAgent", "NAME_TAKEN"),
        ("CreateCredential", "NAME_TAKEN"),
        ("ResolveApproval", "APPROVAL_NOT_PENDING"),
        ("AnswerApproval", "APPROVAL_NOT_PENDING"),
        ("DismissApproval", "APPROVAL_NOT_PENDING"),
    ] {
        let first = house.call(operation, None).await;
        assert!(first.status < 300, "{operation}: {:#}", first.body);
        house.refuses(operation, code, None).await;
    }
}

async fn names(house: &mut House) {
    for (operation, table, other) in [
        ("EditCredential", "credentials", house.all.credentials[1]),
        ("EditSkill", "skills", house.all.skills[1]),
    ] {
        house.set(table, "name = 'the same'", other).await;
        house.refuses(operation, "NAME_TAKEN", Some(json!({ "name": "the same" }))).await;
    }
    house.call("ArchiveMcpServer", None).await.expect(200);
    for server in [house.all.mcp_servers[0], house.all.mcp_servers[1]] {
        house.set("mcp_servers", "name = 'the same'", server).await;
    }
    house.refuses("UnarchiveMcpServer", "NAME_TAKEN", None).await;
}

async fn archived(house: &mut House) {
    house.set("credentials", "archived_at = 1", house.all.credentials[0]).await;
    house.set("skills", "archived_at = 1", house.all.skills[0]).await;
    for operation in ["EditCredential", "EditSkill", "SetCredentialAgents"] {
        house.refuses(operation, "ARCHIVED", None).await;
    }
    house.set("agents", "archived_at = 1", house.all.agents[0]).await;
    house.set("channels", "is_active = FALSE", house.all.channels[0]).await;
    house.refuses("EditChannel", "ARCHIVED", Some(json!({ "is_active": true }))).await;
}

#[tokio::test]
async fn strangers_never_see_conflicts() {
    let house = House::open().await;
    for call in &house.calls {
        let answer = house.app.stranger.send(call.method.clone(), &call.url(house.app.org), &call.body).await;
        assert_eq!(answer.problem(), (403, "NOT_A_MEMBER"), "{}", call.operation);
    }
}
