//! The network: who decides what agents reach, what they learn of it, and how a request for a host is approved.

use muster::{
    base::ids::AgentId,
    domain::{approvals, network},
};
use muster_protocol::{
    event::Asked,
    plan::{Crossing, Destination, Judgement, McpServer, McpTransport},
};
use serde_json::{Value, json};

use crate::{
    harness::{Actor, Host, TestApp},
    organizations::emergency_stop::stop,
    tools::{ARCHIVE_SERVER, ASSIGN_SERVER, CREATE_SERVER, EDIT_SERVER, UNARCHIVE_SERVER},
};

const ALLOW: &str = "mutation($o: Id!, $i: AllowHostInput!) { allowHost(orgId: $o, input: $i) { allowedHosts { id host port createdByName } } }";

impl TestApp {
    async fn allows_host(&self, actor: &Actor, input: Value) -> crate::harness::Answer {
        actor.gql(ALLOW, json!({ "o": self.org, "i": input })).await
    }
}

impl Host<'_> {
    async fn judges(&self, tool: &str, kind: &str, input: Value) -> Judgement {
        self.judges_tool_of(None, tool, kind, input).await
    }

    /// The same for a tool of an MCP server.
    async fn judges_tool_of(
        &self,
        mcp_server_id: Option<i64>,
        tool: &str,
        kind: &str,
        input: Value,
    ) -> Judgement {
        let crossing = Crossing { tool: tool.to_owned(), tool_kind: kind.to_owned(), mcp_server_id, input };
        let (scope, agent) = (self.app.scope(), AgentId(self.agent));
        approvals::plans::judgement(&scope, agent, self.generation, crossing).await.unwrap()
    }
}

#[tokio::test]
async fn the_list_reaches_running_agents() {
    let app = TestApp::start().await;
    let host = app.running_agent().await;
    let shown = app.allows_host(&app.admin, json!({ "host": "*.Example.com" })).await.data();
    let shown = shown["allowHost"]["allowedHosts"].clone();
    assert_eq!((&shown[0]["host"], &shown[0]["port"]), (&json!("*.example.com"), &json!(443)));
    app.allows_host(&app.admin, json!({ "host": "*.example.com" })).await.data();
    let plan = host.launch_plan().await.unwrap();
    assert_eq!(plan.network.allowed, [Destination { host: "*.example.com".to_owned(), port: 443 }]);
    let syncs = async || host.commands().await.iter().filter(|command| command["kind"] == "SYNC").count();
    assert_eq!(syncs().await, 1);
    let remove =
        "mutation($o: Id!, $i: Id!) { removeAllowedHost(orgId: $o, id: $i) { allowedHosts { id } } }";
    let gone = app.admin.gql(remove, json!({ "o": app.org, "i": shown[0]["id"] })).await.data();
    assert_eq!(gone["removeAllowedHost"]["allowedHosts"], json!([]));
    assert!(host.launch_plan().await.unwrap().network.allowed.is_empty());
    assert_eq!(app.admin.gql(remove, json!({ "o": app.org, "i": shown[0]["id"] })).await.code(), "NOT_FOUND");
    for bad in ["10.0.0.1", "[::1]", "*.com", "a b", "0x7f000001"] {
        let refused = app.allows_host(&app.admin, json!({ "host": bad })).await;
        assert_eq!(refused.code(), "VALIDATION_FAILED", "{bad}");
    }
}

#[tokio::test]
async fn a_connection_is_asked_for_and_allowed_by_who_may() {
    let app = TestApp::start().await;
    let host = app.running_agent().await;
    let to = json!({ "host": "api.example.com", "port": 443 });
    assert_eq!(host.judges("network", "fetch", to.clone()).await, Judgement::Asked);
    let conversation = app.conversation(host.agent).await;
    let asked = Asked::Action {
        tool: Some("network".to_owned()),
        tool_kind: "fetch".to_owned(),
        title: "Connect to api.example.com".to_owned(),
        input: to.clone(),
    };
    host.asks(conversation, None, "1.1", asked).await.unwrap();
    let approval: i64 = app.one("SELECT id FROM approvals", vec![]).await;
    let answer = "mutation($o: Id!, $i: Id!) { answerApproval(orgId: $o, id: $i, input: { options: [\"approve\"] }) { id } }";
    let refused = app.operator.gql(answer, json!({ "o": app.org, "i": approval })).await;
    assert_eq!(refused.code(), "PERMISSION_DENIED");
    let other = json!({ "host": "other.example.com", "approvalId": approval });
    assert_eq!(app.allows_host(&app.admin, other).await.code(), "VALIDATION_FAILED");
    assert_eq!(app.one::<i64>("SELECT COUNT(*) FROM allowed_hosts", vec![]).await, 0, "all or nothing");
    app.allows_host(&app.admin, json!({ "host": "*.example.com", "approvalId": approval })).await.data();
    let outcome: String = app.one("SELECT outcome FROM approvals", vec![]).await;
    assert_eq!(outcome, "APPROVED");
    let kinds: Vec<Value> = host.commands().await.iter().map(|command| command["kind"].clone()).collect();
    assert_eq!(kinds[kinds.len() - 2..], [json!("SYNC"), json!("ANSWER")]);
    assert_eq!(host.judges("network", "fetch", to).await, Judgement::Allowed);
}

#[tokio::test]
async fn what_crosses_is_judged_as_what_is_asked() {
    let app = TestApp::start().await;
    let host = app.running_agent().await;
    assert_eq!(host.judges("files.read", "read", json!({ "path": "a" })).await, Judgement::Allowed);
    assert_eq!(host.judges("shop.refund", "other", json!({})).await, Judgement::Asked);
    let long = json!({ "text": "x".repeat(256 * 1024) });
    let refused = host.judges("shop.refund", "other", long).await;
    assert!(matches!(refused, Judgement::Refused { reason } if reason.contains("longer than the 256 KiB")));
    let refused = host.judges("shell.run", "execute", json!({ "command": "reboot" })).await;
    assert!(matches!(refused, Judgement::Refused { reason } if reason.contains("risk is 95")));
    let edit = "mutation($o: Id!, $a: Id!) { updateAgent(orgId: $o, id: $a, input: { disabledToolGroups: [\"files\", \"fetch\"] }) { id } }";
    app.operator.gql(edit, json!({ "o": app.org, "a": host.agent })).await.data();
    for (tool, kind) in [("files.read", "read"), ("network", "fetch")] {
        let refused = host.judges(tool, kind, json!({ "host": "a.example", "port": 443 })).await;
        assert!(
            matches!(refused, Judgement::Refused { reason } if reason.contains("of this kind")),
            "{tool}"
        );
    }
    assert_eq!(host.launch_plan().await.unwrap().disabled_tool_groups, ["files", "fetch"]);
    let lines: i64 = app.one("SELECT COUNT(*) FROM approvals", vec![]).await;
    assert_eq!(lines, 0, "a judgement asks no one");
    stop(&app, &app.operator, "so").await.data();
    let refused = host.judges("files.list", "other", json!({})).await;
    assert!(
        matches!(refused, Judgement::Refused { reason } if reason.contains("the whole organization is stopped"))
    );
}

#[tokio::test]
async fn what_was_refused_is_counted_within_bounds() {
    let app = TestApp::start().await;
    let host = app.running_agent().await;
    for n in 0..105 {
        let to = Destination { host: format!("h{n}.example"), port: 443 };
        let reason = "It is not on the list.".to_owned();
        app.clock.advance(std::time::Duration::from_secs(1));
        host.tell(async |tx, from| network::record_unreached(tx, from, to, reason, 2).await).await.unwrap();
    }
    let again = Destination { host: "h104.example".to_owned(), port: 443 };
    host.tell(async |tx, from| network::record_unreached(tx, from, again, "No.".to_owned(), 3).await)
        .await
        .unwrap();
    let query = "query($o: Id!, $a: Id!) { agent(orgId: $o, id: $a) { refusedDestinations { host port reason count } } }";
    let shown = app.viewer.gql(query, json!({ "o": app.org, "a": host.agent })).await.data();
    let refused = shown["agent"]["refusedDestinations"].as_array().unwrap().clone();
    assert_eq!(refused.len(), 100);
    assert_eq!(refused[0], json!({ "host": "h104.example", "port": 443, "reason": "No.", "count": 5 }));
}

#[tokio::test]
async fn an_agent_holds_only_what_a_person_has_said_it_may_read() {
    let app = TestApp::start().await;
    let host = app.running_agent().await;
    let create = "mutation($o: Id!, $i: CreateCredentialInput!) { createCredential(orgId: $o, input: $i) { id isInjected agentMayRead agentMayReadByName } }";
    let input = json!({
        "name": "Shop", "kind": "bearer-token", "destinations": ["https://shop.example/v1"],
        "fields": [{ "label": "token", "value": "canary" }],
    });
    let made = app.operator.gql(create, json!({ "o": app.org, "i": input })).await.data();
    let made = made["createCredential"].clone();
    assert_eq!((&made["isInjected"], &made["agentMayRead"]), (&json!(true), &json!(false)));
    let assign = "mutation($o: Id!, $i: Id!, $a: [Id!]!) { setCredentialAgents(orgId: $o, id: $i, input: { agentIds: $a }) { id } }";
    app.operator.gql(assign, json!({ "o": app.org, "i": made["id"], "a": [host.agent] })).await.data();
    let plan = host.launch_plan().await.unwrap();
    assert!(plan.environment.is_empty() && plan.injected.is_empty(), "the destination is not on the list");
    app.allows_host(&app.admin, json!({ "host": "shop.example" })).await.data();
    let plan = host.launch_plan().await.unwrap();
    assert!(plan.environment.is_empty());
    assert_eq!(
        (plan.injected[0].name.as_str(), plan.injected[0].headers[0].value.expose()),
        ("shop", "Bearer canary")
    );
    let edit = "mutation($o: Id!, $i: Id!) { updateCredential(orgId: $o, id: $i, input: {}, agentMayRead: true) { agentMayRead agentMayReadAt agentMayReadBy } }";
    let token = app.token(&["credential.edit", "credential.view"]).await;
    assert_eq!(token.gql(edit, json!({ "o": app.org, "i": made["id"] })).await.code(), "PERMISSION_DENIED");
    let shown = app.operator.gql(edit, json!({ "o": app.org, "i": made["id"] })).await.data();
    let shown = shown["updateCredential"].clone();
    assert_eq!(shown["agentMayReadBy"], json!(app.operator.user));
    assert_eq!(shown["agentMayReadAt"], "2026-06-01T12:00:00.000Z");
    let plan = host.launch_plan().await.unwrap();
    assert_eq!(
        (plan.environment[0].name.as_str(), plan.environment[0].value.expose()),
        ("SHOP_TOKEN", "canary")
    );
}

#[tokio::test]
async fn a_token_adds_destinations_only_with_a_persons_leave() {
    let app = TestApp::start().await;
    let own = "https://shop.example/v1";
    let fields = json!([{ "label": "token", "value": "canary" }]);
    let path = format!("/v1/org/{}/credential", app.org);
    let body = json!({ "name": "Shop", "kind": "bearer-token", "destinations": [own], "fields": fields });
    let made = app.operator.post(&path, body).await.expect(201);
    let path = format!("{path}/{}", made["id"]);
    for host in ["listed.example", "tools"] {
        app.allows_host(&app.admin, json!({ "host": host })).await.data();
    }
    let token = app.token(&["credential.edit", "credential.view"]).await;
    for foreign in [
        "https://evil.example",
        "https://shop.example",
        "https://listed.example:8443",
        "evil.example",
        "mcp://tools",
        "mcp://tools:443",
    ] {
        for fields in [Value::Null, json!([{ "label": "token" }])] {
            let mut edit = json!({ "destinations": [own, foreign] });
            if !fields.is_null() {
                edit["fields"] = fields;
            }
            let refused = token.patch(&path, edit).await;
            assert_eq!(refused.problem(), (403, "PERMISSION_DENIED"), "{foreign}");
            let said = format!("A service token can add {foreign} only together with the values");
            assert!(refused.text.contains(&said), "{}", refused.text);
        }
    }
    let shown = "query($o: Id!, $i: Id!) { credential(orgId: $o, id: $i) { destinations } }";
    let shown = token.gql(shown, json!({ "o": app.org, "i": made["id"] })).await.data();
    assert_eq!(shown["credential"]["destinations"], json!([own]));
    let again = json!({ "destinations": [own, "https://evil.example", "mcp://tools"], "fields": fields });
    token.patch(&path, again).await.expect(200);
    let edits = async |actor: &Actor, destinations: Value| {
        let edited = actor.patch(&path, json!({ "destinations": destinations })).await.expect(200);
        assert_eq!(edited["destinations"], destinations);
    };
    edits(&token, json!([own, "mcp://tools"])).await;
    edits(&token, json!([own, "https://listed.example/api", "listed.example"])).await;
    edits(&token, json!(["https://listed.example/api"])).await;
    edits(&app.operator, json!([own, "https://evil.example", "mcp://tools"])).await;
    // Servers are given it by its name now, which may be in the list of the token's own.
    let renamed = token.patch(&path, json!({ "name": "Listed there" })).await;
    assert_eq!(renamed.problem(), (403, "PERMISSION_DENIED"));
    assert!(renamed.text.contains("can rename"), "{}", renamed.text);
    token.patch(&path, json!({ "name": "Known", "fields": fields })).await.expect(200);
    edits(&app.operator, json!([own])).await;
    token.patch(&path, json!({ "name": "Elsewhere" })).await.expect(200);
}

/// The address or command of the plan's MCP server, and the secret that its calls carry.
fn carried(servers: &[McpServer]) -> (&str, &str) {
    let (at, carried) = match &servers[0].transport {
        McpTransport::Stdio { command, environment, .. } => (command, environment),
        McpTransport::Http { url, headers } | McpTransport::Sse { url, headers } => (url, headers),
    };
    (at, carried[0].value.expose())
}

#[tokio::test]
async fn a_token_uses_stored_values_only_with_a_persons_leave() {
    let app = TestApp::start().await;
    let host = app.running_agent().await;
    let path = format!("/v1/org/{}/credential", app.org);
    let fields = json!([{ "label": "token", "value": "canary" }]);
    let shop =
        json!({ "name": "Shop", "kind": "bearer-token", "destinations": ["mcp://tools"], "fields": fields });
    let shop = app.operator.post(&path, shop).await.expect(201);
    let creates = async |actor: &Actor, input: Value| {
        actor.gql(CREATE_SERVER, json!({ "o": app.org, "i": input })).await
    };
    let edits = async |actor: &Actor, id: &Value, input: Value| {
        actor.gql(EDIT_SERVER, json!({ "o": app.org, "m": id, "i": input })).await
    };
    let tools = json!({ "name": "tools", "transport": "STDIO", "command": "npx", "auth": ["Shop"] });
    let id = creates(&app.operator, tools.clone()).await.data()["createMcpServer"]["id"].clone();
    for (assign, of) in [("setCredentialAgents", &shop["id"]), ("setMcpServerAgents", &id)] {
        let assign = format!(
            "mutation($o: Id!, $i: Id!, $a: [Id!]!) {{ {assign}(orgId: $o, id: $i, input: {{ agentIds: $a }}) {{ id }} }}"
        );
        app.operator.gql(&assign, json!({ "o": app.org, "i": of, "a": [host.agent] })).await.data();
    }
    let planned = async || host.launch_plan().await.unwrap().mcp_servers;
    let first = planned().await;
    assert_eq!(carried(&first), ("npx", "canary"));
    app.allows_host(&app.admin, json!({ "host": "listed.example" })).await.data();
    let token = app.token(&["mcp.view", "mcp.create", "mcp.edit", "mcp.delete"]).await;
    let at = |url: &str| json!({ "transport": "HTTP", "command": null, "args": [], "url": url });
    let refuses = |answer: &crate::harness::Answer, credential: &str| {
        assert_eq!(answer.code(), "PERMISSION_DENIED", "{}", answer.text);
        let said = format!("gets the stored values of `{credential}`");
        assert!(answer.text.contains(&said), "{}", answer.text);
    };

    // Another place for the same server.
    let elsewhere = [at("https://evil.example/x"), at("https://listed.example:8443/x")];
    for edit in elsewhere.into_iter().chain([json!({ "command": "evil" }), json!({ "args": ["--evil"] })]) {
        refuses(&edits(&token, &id, edit).await, "Shop");
    }
    // Another server in its place.
    let this = json!({ "o": app.org, "m": id });
    token.gql(ARCHIVE_SERVER, this.clone()).await.data();
    refuses(&creates(&token, tools).await, "Shop");
    let other =
        json!({ "name": "other", "transport": "HTTP", "url": "https://evil.example/x", "auth": ["Shop"] });
    let other = creates(&token, other).await.data()["createMcpServer"]["id"].clone();
    refuses(&edits(&token, &other, json!({ "name": "tools" })).await, "Shop");
    refuses(&token.gql(UNARCHIVE_SERVER, this.clone()).await, "Shop");
    app.operator.gql(UNARCHIVE_SERVER, this).await.data();
    assert_eq!(planned().await, first);
    // A credential that agents may read is sent to a server of any name.
    let open = json!({ "name": "Open", "kind": "bearer-token", "fields": fields });
    let create = "mutation($o: Id!, $i: CreateCredentialInput!) { createCredential(orgId: $o, input: $i, agentMayRead: true) { id } }";
    app.operator.gql(create, json!({ "o": app.org, "i": open })).await.data();
    refuses(&edits(&token, &other, json!({ "auth": ["Open"] })).await, "Open");

    edits(&token, &id, json!({ "description": "Looks things up." })).await.data();
    edits(&token, &id, at("https://listed.example/mcp")).await.data();
    assert_eq!(carried(&planned().await), ("https://listed.example/mcp", "Bearer canary"));
    edits(&app.operator, &id, at("https://evil.example/x")).await.data();
    assert_eq!(carried(&planned().await), ("https://evil.example/x", "Bearer canary"));
}

#[tokio::test]
async fn an_archived_or_removed_server_is_refused_at_the_next_call() {
    let app = TestApp::start().await;
    let host = app.running_agent().await;
    let input = json!({ "name": "shop", "transport": "HTTP", "url": "https://shop.example/mcp" });
    let made = app.operator.gql(CREATE_SERVER, json!({ "o": app.org, "i": input })).await.data();
    let id = made["createMcpServer"]["id"].as_i64().unwrap();
    let assigns = async |agents: Value| {
        app.operator.gql(ASSIGN_SERVER, json!({ "o": app.org, "i": id, "a": agents })).await.data();
    };
    let judged = async || host.judges_tool_of(Some(id), "shop.look", "read", json!({})).await;
    let is_taken = |judgement: &Judgement| matches!(judgement, Judgement::Refused { reason } if reason.contains("no longer has this MCP server"));
    assert!(is_taken(&judged().await), "it is not assigned");
    assigns(json!([host.agent])).await;
    assert_eq!(judged().await, Judgement::Allowed);
    let path = format!("/v1/org/{}/mcp/{id}", app.org);
    app.admin.post(&format!("{path}/archive"), json!(null)).await.expect(200);
    assert!(is_taken(&judged().await), "the host has not been told yet");
    app.admin.post(&format!("{path}/unarchive"), json!(null)).await.expect(200);
    assert_eq!(judged().await, Judgement::Allowed);
    assigns(json!([])).await;
    assert!(is_taken(&judged().await));
}
