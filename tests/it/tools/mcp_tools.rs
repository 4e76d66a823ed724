//! The tools of MCP servers: hosts report them, people accept, switch and rate them, and calls obey. Tests of a
//! connection.

use std::time::Duration;

use muster::{
    base::ids::AgentId,
    domain::{approvals, mcp_servers},
};
use muster_protocol::{
    event::{Asked, EndReason, McpTest, McpTool, McpToolReport},
    plan::{Crossing, Judgement, ToolPin},
};
use serde_json::{Value, json};

use crate::{
    harness::{Actor, Answer, Host, TestApp},
    tools::{ASSIGN_SERVER, CREATE_SERVER, EDIT_SERVER},
};

const TOOLS: &str = "query($o: Id!, $m: Id!) { mcpServer(orgId: $o, id: $m) { newTools \
                     tools { name definition digest newDefinition newDigest enabled risk } \
                     states { status testAskedAt testedAt testError protocol program } } }";
const SET: &str = "mutation($o: Id!, $m: Id!, $t: String!, $i: McpServerToolInput!) { setMcpServerTool(orgId: $o, id: $m, tool: $t, input: $i) { id } }";
const ACCEPT: &str = "mutation($o: Id!, $m: Id!, $d: [String!]!) { acceptMcpServerTools(orgId: $o, id: $m, digests: $d) { id } }";
const TEST: &str =
    "mutation($o: Id!, $m: Id!, $a: Id!) { testMcpServer(orgId: $o, id: $m, agentId: $a) { id } }";

/// An MCP server of a running agent.
struct Shop<'a> {
    host: Host<'a>,
    server: i64,
}

impl<'a> Shop<'a> {
    async fn open(host: Host<'a>) -> Self {
        let app = host.app;
        let input = json!({ "name": "Our shop", "transport": "HTTP", "url": "https://shop.example/mcp" });
        let made = app.operator.gql(CREATE_SERVER, json!({ "o": app.org, "i": input })).await.data();
        let server = made["createMcpServer"]["id"].as_i64().unwrap();
        let args = json!({ "o": app.org, "i": server, "a": [host.agent] });
        app.operator.gql(ASSIGN_SERVER, args).await.data();
        Self { host, server }
    }

    /// The host reports tools: name and digest.
    async fn lists(&self, is_first: bool, tools: &[(&str, &str)]) {
        let tools = tools.iter().map(|(name, digest)| McpTool {
            name: (*name).to_owned(),
            digest: (*digest).to_owned(),
            definition: Some(json!({ "name": name, "description": format!("It is {digest}.\0") })),
        });
        self.reports(&self.host, is_first, tools.collect()).await;
    }

    async fn reports(&self, host: &Host<'_>, is_first: bool, tools: Vec<McpTool>) {
        let report = McpToolReport { server_id: self.server, is_first, tools };
        let told = host.tell(async |tx, from| mcp_servers::tools::reported(tx, from, report).await);
        told.await.unwrap();
    }

    /// The host reports the result of a test.
    async fn tested(&self, test: McpTest) {
        let told = self.host.tell(async |tx, from| mcp_servers::tools::tested(tx, from, test).await);
        told.await.unwrap();
    }

    async fn shown(&self, of: &str) -> Vec<Value> {
        let app = self.host.app;
        let shown = app.viewer.gql(TOOLS, json!({ "o": app.org, "m": self.server })).await.data();
        shown["mcpServer"][of].as_array().unwrap().clone()
    }

    /// Each tool: its name, and the digests of its definitions.
    async fn digests(&self) -> Vec<String> {
        let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
        let tools = self.shown("tools").await;
        let all =
            tools.iter().map(|tool| [&tool["name"], &tool["digest"], &tool["newDigest"]].map(text).join(" "));
        all.collect()
    }

    async fn acts(&self, actor: &Actor, operation: &str, mut with: Value) -> Answer {
        with["o"] = json!(self.host.app.org);
        with["m"] = json!(self.server);
        actor.gql(operation, with).await
    }

    /// Why a call is refused, or what happens to it.
    async fn calls(&self, tool: &str) -> String {
        let crossing = Crossing {
            tool: format!("Our shop.{tool}"),
            tool_kind: "other".to_owned(),
            mcp_server_id: Some(self.server),
            input: json!({}),
        };
        let (scope, agent) = (self.host.app.scope(), AgentId(self.host.agent));
        match approvals::plans::judgement(&scope, agent, self.host.generation, crossing).await.unwrap() {
            Judgement::Allowed => "allowed".to_owned(),
            Judgement::Asked => "asked".to_owned(),
            Judgement::Refused { reason } => reason,
        }
    }

    /// The tools in the host's plan.
    async fn pins(&self) -> Option<Vec<ToolPin>> {
        self.host.launch_plan().await.unwrap().mcp_servers[0].tools.clone()
    }

    async fn commands(&self, kind: &str) -> usize {
        self.host.commands().await.iter().filter(|command| command["kind"] == kind).count()
    }
}

fn pin(name: &str, digest: &str, usable: bool) -> ToolPin {
    ToolPin { name: name.to_owned(), digest: digest.to_owned(), usable }
}

#[tokio::test]
async fn definitions_are_pinned_and_a_change_waits_for_a_person() {
    let app = TestApp::start().await;
    let shop = Shop::open(app.running_agent().await).await;
    assert_eq!((shop.pins().await, shop.calls("look").await.as_str()), (None, "asked"));
    // The first list comes in two pages.
    shop.lists(true, &[("look", "1")]).await;
    shop.lists(true, &[("buy", "2")]).await;
    assert_eq!(shop.pins().await, Some(vec![pin("buy", "2", true), pin("look", "1", true)]));
    assert_eq!(shop.calls("look").await, "asked");
    assert_eq!(shop.shown("tools").await[0]["definition"]["description"], "It is 2.\u{fffd}");

    app.clock.advance(Duration::from_mins(2));
    shop.lists(true, &[("look", "3"), ("steal", "4")]).await;
    assert_eq!(shop.digests().await, ["buy 2 -", "look 1 3", "steal - 4"]);
    let pins = [pin("buy", "2", true), pin("look", "3", false), pin("steal", "4", false)];
    assert_eq!(shop.pins().await.unwrap(), pins);
    for tool in ["look", "steal", "never listed", "Buy"] {
        assert!(shop.calls(tool).await.contains("has not been accepted"), "{tool}");
    }
    assert_eq!(shop.calls("buy").await, "asked");
    let waiting = app.viewer.gql(TOOLS, json!({ "o": app.org, "m": shop.server })).await.data();
    assert_eq!(waiting["mcpServer"]["newTools"], 2);

    let accepts =
        async |actor: &Actor, digests: Value| shop.acts(actor, ACCEPT, json!({ "d": digests })).await;
    assert_eq!(accepts(&app.viewer, json!(["3"])).await.code(), "PERMISSION_DENIED");
    assert_eq!(accepts(&app.stranger, json!(["3"])).await.code(), "NOT_A_MEMBER");
    assert_eq!(accepts(&app.operator, json!(["3", "9"])).await.code(), "CONFLICT");
    assert_eq!(shop.digests().await[1], "look 1 3", "all or nothing");
    accepts(&app.operator, json!(["3"])).await.data();
    assert_eq!(shop.calls("look").await, "asked");
    assert_eq!(shop.digests().await, ["buy 2 -", "look 3 -", "steal - 4"]);
    // A server that takes its change back.
    shop.lists(false, &[("look", "1")]).await;
    assert!(shop.calls("look").await.contains("has not been accepted"));
    shop.lists(false, &[("look", "3")]).await;
    assert_eq!((shop.digests().await[1].as_str(), shop.calls("look").await.as_str()), ("look 3 -", "asked"));

    let tool = |name: &str, definition: Value| McpTool {
        name: name.to_owned(),
        digest: "5".to_owned(),
        definition: Some(definition),
    };
    let stranger = app.running_agent().await;
    shop.reports(&stranger, true, vec![tool("buy", json!({}))]).await;
    shop.reports(&shop.host, false, vec![tool("long", json!("x".repeat(16 << 10)))]).await;
    let digests = shop.digests().await;
    assert_eq!(digests, ["buy 2 -", "long - 5", "look 3 -", "steal - 4"], "the stranger has no such server");
    assert_eq!(shop.shown("tools").await[1]["newDefinition"], Value::Null, "it would fill the page");

    let edit = json!({ "i": { "url": "https://other.example/mcp" } });
    shop.acts(&app.operator, EDIT_SERVER, edit).await.data();
    assert_eq!((shop.shown("tools").await.len(), shop.pins().await), (0, None), "it is another server");
}

#[tokio::test]
async fn a_tool_is_switched_and_rated() {
    let app = TestApp::start().await;
    let (host, conversation) = app.talking_agent().await;
    let shop = Shop::open(host).await;
    shop.lists(true, &[("look", "1")]).await;
    let sets = async |input: Value| shop.acts(&app.operator, SET, json!({ "t": "look", "i": input })).await;
    for (risk, outcome) in [
        (json!(10), "allowed"),
        (json!(95), "This is not allowed, because its risk is 95."),
        (json!(null), "asked"),
    ] {
        sets(json!({ "risk": risk })).await.data();
        assert_eq!(shop.calls("look").await, outcome, "{risk}");
    }
    let before = shop.commands("SYNC").await;
    sets(json!({})).await.data();
    assert_eq!(shop.commands("SYNC").await, before, "nothing has changed");
    sets(json!({ "enabled": false, "risk": 10 })).await.data();
    assert!(shop.calls("look").await.contains("switched off"));
    assert_eq!(shop.pins().await.unwrap(), [pin("look", "1", false)]);

    // An agent that asks before it calls writes the names in its own way.
    for (request, tool, allowed) in [("1.1", "mcp__our_shop__look", false), ("1.2", "Our shop.look", true)] {
        sets(json!({ "enabled": allowed })).await.data();
        let asked = Asked::Action {
            tool: Some(tool.to_owned()),
            tool_kind: "other".to_owned(),
            title: "Look".to_owned(),
            input: json!({}),
        };
        shop.host.asks(conversation, None, request, asked).await.unwrap();
        let verdict = json!({ "kind": "VERDICT", "request": request, "allowed": allowed });
        assert!(shop.host.commands().await.contains(&verdict), "{tool}");
    }
    // Its low risk allows neither the model's words nor another tool that passes for it.
    shop.lists(true, &[("LOOK", "2")]).await;
    for (request, tool, tool_kind) in [
        ("2.1", None, "other"),
        ("2.2", Some("Our shop.look"), "execute"),
        ("2.3", Some("mcp__our_shop__look"), "other"),
    ] {
        let asked = Asked::Action {
            tool: tool.map(str::to_owned),
            tool_kind: tool_kind.to_owned(),
            title: "Our shop.look".to_owned(),
            input: json!({ "command": "ls" }),
        };
        shop.host.asks(conversation, None, request, asked).await.unwrap();
        let commands = shop.host.commands().await;
        assert!(!commands.iter().any(|command| command["request"] == request), "{request}: {commands:?}");
    }
    let unknown = shop.acts(&app.operator, SET, json!({ "t": "steal", "i": { "enabled": false } })).await;
    assert_eq!(unknown.code(), "NOT_FOUND");
}

#[tokio::test]
async fn switches_and_risks_outlast_an_edit_of_the_server() {
    let app = TestApp::start().await;
    let shop = Shop::open(app.running_agent().await).await;
    shop.lists(true, &[("buy", "1"), ("look", "2"), ("read", "3")]).await;
    for (tool, input) in [("buy", json!({ "enabled": false })), ("read", json!({ "risk": 10 }))] {
        shop.acts(&app.operator, SET, json!({ "t": tool, "i": input })).await.data();
    }
    app.clock.advance(Duration::from_mins(2));
    let edit = json!({ "i": { "url": "https://other.example/mcp" } });
    shop.acts(&app.operator, EDIT_SERVER, edit).await.data();
    assert_eq!(shop.digests().await, ["buy - -", "read - -"]);
    assert_eq!(shop.pins().await, None, "the next list is the first");
    assert!(shop.calls("buy").await.contains("switched off"));
    assert_eq!(shop.calls("look").await, "asked");
    // In two pages.
    app.clock.advance(Duration::from_mins(2));
    shop.lists(true, &[("buy", "4"), ("read", "5")]).await;
    shop.lists(true, &[("look", "6")]).await;
    assert_eq!(shop.digests().await, ["buy 4 -", "look 6 -", "read 5 -"]);
    let pins = [pin("buy", "4", false), pin("look", "6", true), pin("read", "5", true)];
    assert_eq!(shop.pins().await.unwrap(), pins);
    assert!(shop.calls("buy").await.contains("switched off"));
    assert_eq!(shop.calls("read").await, "allowed");
}

#[tokio::test]
async fn a_complete_list_forgets_the_tools_that_it_lacks() {
    let app = TestApp::start().await;
    let shop = Shop::open(app.running_agent().await).await;
    shop.lists(true, &[("buy", "1"), ("look", "2"), ("read", "3")]).await;
    let switches = async |on: bool| {
        shop.acts(&app.operator, SET, json!({ "t": "buy", "i": { "enabled": on } })).await.data();
    };
    switches(false).await;
    let lists_only = async |names: &[&str]| {
        let listed = Some(names.iter().map(|name| (*name).to_owned()).collect());
        let test = McpTest { server_id: shop.server, listed, protocol: None, program: None, error: None };
        shop.tested(test).await;
    };
    lists_only(&[]).await;
    lists_only(&["steal"]).await;
    let all = ["buy 1 -", "look 2 -", "read 3 -"];
    assert_eq!(shop.digests().await, all, "its next list would be accepted as the first");
    lists_only(&["look", "steal"]).await;
    assert_eq!(shop.digests().await, ["buy - -", "look 2 -"], "only a decision is kept");
    assert_eq!(shop.pins().await.unwrap(), [pin("look", "2", true)]);
    assert!(shop.calls("buy").await.contains("switched off"));
    assert!(shop.calls("read").await.contains("has not been accepted"));
    app.clock.advance(Duration::from_mins(2));
    shop.lists(true, &[("buy", "1")]).await;
    assert_eq!(shop.digests().await, ["buy - 1", "look 2 -"], "it waits");
    lists_only(&["look"]).await;
    switches(true).await;
    assert_eq!(shop.digests().await, ["look 2 -"]);
}

#[tokio::test]
async fn a_connection_is_tested_by_a_running_agents_host() {
    let app = TestApp::start().await;
    let shop = Shop::open(app.running_agent().await).await;
    let tests = async |actor: &Actor, agent: i64| shop.acts(actor, TEST, json!({ "a": agent })).await;
    let other = app.running_agent().await;
    assert_eq!(tests(&app.viewer, shop.host.agent).await.code(), "PERMISSION_DENIED");
    assert_eq!(tests(&app.operator, other.agent).await.code(), "VALIDATION_FAILED");
    tests(&app.operator, shop.host.agent).await.data();
    assert_eq!(shop.commands("TEST_MCP").await, 1);
    let state = shop.shown("states").await.remove(0);
    assert_eq!((&state["status"], &state["testedAt"]), (&json!("IDLE"), &Value::Null));
    assert!(state["testAskedAt"].is_string());

    let reports = async |error: Option<&str>| {
        let test = McpTest {
            server_id: shop.server,
            listed: None,
            protocol: error.is_none().then(|| "2025-06-18".to_owned()),
            program: None,
            error: error.map(str::to_owned),
        };
        shop.tested(test).await;
        shop.shown("states").await.remove(0)
    };
    let failed = reports(Some("It did not start a session: it is away")).await;
    assert_eq!(failed["testError"], "It did not start a session: it is away");
    let works = reports(None).await;
    assert_eq!((&works["testError"], &works["protocol"]), (&Value::Null, &json!("2025-06-18")));
    tests(&app.operator, shop.host.agent).await.data();
    assert_eq!(shop.shown("states").await[0]["testedAt"], Value::Null, "the next one has no result yet");
    shop.host.ended(EndReason::Exited).await;
    assert_eq!(tests(&app.operator, shop.host.agent).await.code(), "AGENT_NOT_RUNNING");
}
