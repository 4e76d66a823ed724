//! MCP servers in the GraphQL schema.

use std::sync::LazyLock;

use async_graphql::{Context, Json, Object};
use serde_json::Value;

use super::agents::{AgentAssignment, AgentSummary, assigned, assignment_count};
use crate::{
    base::{
        enums::{ListSort, McpServerStatus, McpTransport, McpWorkspace, RecordKind},
        ids::{AgentId, McpServerId, OrgId, UserId},
        permission::Permission,
        time::Timestamp,
    },
    domain::{
        agents::SetAgentsInput,
        mcp_servers::{self, CreateMcpServerInput, McpServerToolInput, UpdateMcpServerInput},
    },
    read::{Many, One, Page, Record, Rows, Spec},
    resolvers::{
        Answer, Enter, answer,
        bounds::{at_least, bounds, length, list, range},
        permit::permit,
    },
};

/// The agents an MCP server is assigned to.
const AGENTS: &str =
    "mcp_server_agents j JOIN agents t ON t.organization_id = j.organization_id AND t.id = j.agent_id";

/// The number of a server's tools that wait for a person.
const NEW_TOOLS: &str = "(SELECT COUNT(*) FROM mcp_server_tools n WHERE n.organization_id = t.organization_id \
                         AND n.mcp_server_id = t.id AND n.new_digest IS NOT NULL)";

pub struct McpServer;

impl Record for McpServer {
    fn spec() -> &'static Spec {
        static SPEC: LazyLock<Spec> = LazyLock::new(|| {
            Spec::new("McpServer", "mcp_servers t", "An MCP server: a set of tools that agents may call.")
                .permission(Permission::McpView)
                .viewer_can(|scope| scope.permissions_json(&["mcp"]))
                .column::<McpServerId>("id", "Identifies the MCP server.")
                .revision(RecordKind::McpServer)
                .column::<String>("name", "The name, unique in the organization.")
                .column::<Option<String>>("description", "A description for people.")
                .column::<McpTransport>("transport", "The transport used to reach it.")
                .column::<Option<String>>("command", "The command to run, for STDIO.")
                .column::<Vec<String>>("args", "The command's arguments.")
                .column::<Option<String>>("url", "Its URL, for HTTP and SSE.")
                .column::<Vec<String>>(
                    "auth",
                    "The names of the credentials it needs, used where one has the address as a destination.",
                )
                .column::<McpWorkspace>(
                    "workspace",
                    "Its view of its agent's home, as a program with secrets beside a plain process. One in the agent's \
                     sandbox sees the home anyway; one beside a container never does.",
                )
                .sql::<i64>(
                    "assignment_count",
                    assignment_count("mcp_server_agents", "mcp_server_id"),
                    "The number of agents it is assigned to.",
                )
                .many::<AgentSummary>(
                    "agents",
                    assigned(AGENTS, "j.mcp_server_id"),
                    "The agents it is assigned to.",
                )
                .many::<McpServerState>(
                    "states",
                    states("t.mcp_server_id"),
                    "Its states for the agents whose hosts have reported one.",
                )
                .sql::<i64>(
                    "new_tools",
                    NEW_TOOLS,
                    "The number of tools whose definition is new or has changed. They can't be used until it is accepted.",
                )
                .many::<McpServerTool>(
                    "tools",
                    Many { by: "t.mcp_server_id", order: "t.name", ..Many::default() },
                    "Its known tools, at most 256. Empty: they are unknown, and agents may use all of them.",
                )
                .column::<Option<UserId>>("created_by", "The user who created it.")
                .column::<Timestamp>("created_at", "When it was created.")
                .column::<Timestamp>("updated_at", "When it was last updated.")
                .column::<Option<Timestamp>>("archived_at", "When it was archived.")
                .many::<AgentAssignment>(
                    "assignments",
                    assigned(AGENTS, "j.mcp_server_id"),
                    "The agents it is assigned to, with the time of each assignment.",
                )
        });
        &SPEC
    }
}

/// The state of an MCP server for one of its agents, as the agent's host reports it.
pub struct McpServerState;

/// The state, which ends with the launch that it is about, unless that is why.
const STATE: &str = "CASE WHEN t.state = 'FAILED' OR EXISTS (SELECT 1 FROM agents a WHERE a.organization_id = t.organization_id \
                     AND a.id = t.agent_id AND a.launch_generation = t.launch_generation AND a.status IN ('RUNNING', 'PAUSED')) \
                     THEN t.state ELSE 'IDLE' END";

impl Record for McpServerState {
    fn spec() -> &'static Spec {
        static SPEC: LazyLock<Spec> = LazyLock::new(|| {
            Spec::new(
                "McpServerState",
                "mcp_server_agents t",
                "The state of an MCP server for one of its agents, as the agent's host reports it.",
            )
            .permission(Permission::McpView)
            .sql::<McpServerStatus>("status", STATE, "Its status.")
            .column::<Option<String>>("error", "Why it has failed.")
            .column::<Option<String>>(
                "stderr",
                "The end of its standard error when it failed, without the secrets that the agent was given. For people with \
                 credential.edit: a program in the agent's sandbox reads what the agent may read.",
            )
            .needs_person(Permission::CredentialEdit)
            .column::<Vec<String>>("tools", "The names of its tools, at most 256.")
            .column::<Option<Timestamp>>("reported_at", "When the host reported it.")
            .column::<Option<Timestamp>>("test_asked_at", "When a person last asked the host to test the connection.")
            .column::<Option<Timestamp>>("tested_at", "When that test ended.")
            .column::<Option<String>>("test_error", "The step at which that test failed, and the reason.")
            .column::<Option<String>>("protocol", "The version of the protocol that the server chose in that test.")
            .column::<Option<String>>("program", "The server's own name and version, as that test got them.")
            .one::<AgentSummary>("agent", "t.agent_id", "The agent.")
            .one::<McpServer>("mcp_server", "t.mcp_server_id", "The MCP server.")
        });
        &SPEC
    }
}

/// A tool of an MCP server.
pub struct McpServerTool;

impl Record for McpServerTool {
    fn spec() -> &'static Spec {
        static SPEC: LazyLock<Spec> = LazyLock::new(|| {
            Spec::new("McpServerTool", "mcp_server_tools t", "A tool of an MCP server, as hosts report it.")
                .permission(Permission::McpView)
                .column::<String>("name", "The name.")
                .column::<Option<Json<Value>>>(
                    "definition",
                    "The accepted definition, as MCP describes a tool. Null if none was accepted, or if it has more than 16 KiB.",
                )
                .column::<Option<String>>(
                    "digest",
                    "Identifies the accepted definition. Null if none was accepted. If `newDigest` is null too, the server no longer lists the tool.",
                )
                .column::<Option<Json<Value>>>(
                    "new_definition",
                    "The server's present definition, if it has not been accepted. Null also if it has more than 16 KiB.",
                )
                .column::<Option<String>>(
                    "new_digest",
                    "Identifies the definition that has not been accepted. Until it is, agents can't use the tool.",
                )
                .column::<bool>("enabled", "Whether it is switched on.")
                .column::<Option<i64>>("risk", "The risk of its calls, instead of the risk rules'.")
                .column::<Timestamp>("known_since", "When a host first reported it.")
        });
        &SPEC
    }
}

/// The relation to the states of servers or agents, except deleted agents and archived servers. `by` is the column that
/// holds the server or the agent.
#[must_use]
pub fn states(by: &'static str) -> Many {
    Many {
        by,
        filter: "(t.state IS NOT NULL OR t.test_asked_at IS NOT NULL) \
                 AND EXISTS (SELECT 1 FROM agents a WHERE a.organization_id = t.organization_id \
                 AND a.id = t.agent_id AND a.archived_at IS NULL) AND EXISTS (SELECT 1 FROM mcp_servers s \
                 WHERE s.organization_id = t.organization_id AND s.id = t.mcp_server_id AND s.archived_at IS NULL)",
        order: "t.mcp_server_id, t.agent_id",
        ..Many::default()
    }
}

#[derive(Default)]
pub struct McpQuery;

#[Object]
impl McpQuery {
    /// The organization's MCP servers
    #[graphql(directive = permit::apply(Permission::McpView))]
    #[expect(clippy::too_many_arguments, reason = "each is a separate filter in the schema")]
    async fn mcp_servers(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        #[graphql(directive = bounds::apply(at_least(1)))] page: i64,
        #[graphql(directive = bounds::apply(range(1, 200)))] limit: i64,
        #[graphql(desc = "Whether to include archived MCP servers.", default_with = "Some(false)")]
        include_archived: Option<bool>,
        #[graphql(desc = "Only those whose name contains every word. Case and accents don't matter.", directive = bounds::apply(length(1, 200)))]
        search: Option<String>,
        #[graphql(desc = "The order.", default_with = "Some(ListSort::Created)")] sort: Option<ListSort>,
    ) -> Answer<Page<McpServer>> {
        answer(async {
            let rows = Rows::of(&ctx.enter(org_id).await?).unless_archived(include_archived == Some(true));
            let rows = rows.found(&["t.name_folded"], search.as_deref());
            Ok(Page::numbered(rows.listed(sort, "t.id", "t.name_folded, t.id"), page, limit))
        })
        .await
    }

    /// One MCP server, archived or not.
    #[graphql(directive = permit::apply(Permission::McpView))]
    async fn mcp_server(&self, ctx: &Context<'_>, org_id: OrgId, id: McpServerId) -> Answer<One<McpServer>> {
        answer(async { Ok(One::by_id(&ctx.enter(org_id).await?, id)) }).await
    }
}

#[derive(Default)]
pub struct McpMutation;

#[Object]
impl McpMutation {
    /// Creates an MCP server. No agent may call it yet.
    #[graphql(directive = permit::apply(Permission::McpCreate))]
    async fn create_mcp_server(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        input: CreateMcpServerInput,
    ) -> Answer<One<McpServer>> {
        answer(async {
            let scope = ctx.enter(org_id).await?;
            let id = mcp_servers::create(&scope, input).await?;
            Ok(One::by_id(&scope, id))
        })
        .await
    }

    /// Edits an MCP server. The assigned agents are updated.
    #[graphql(directive = permit::apply(Permission::McpEdit))]
    async fn update_mcp_server(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        id: McpServerId,
        input: UpdateMcpServerInput,
        #[graphql(desc = "The revision that the edit was made from. CONFLICT if there is a newer one.")]
        if_revision: Option<i64>,
    ) -> Answer<One<McpServer>> {
        answer(async {
            let scope = ctx.enter(org_id).await?;
            let edited = scope.if_revision(RecordKind::McpServer, id, if_revision);
            let done = mcp_servers::update(&edited, id, input).await;
            One::after(&scope, id, Permission::McpView, done)
        })
        .await
    }

    /// Sets the agents that may call an MCP server. Agents left out lose it. One unknown agent fails the whole
    /// call.
    #[graphql(directive = permit::apply(Permission::McpEdit))]
    async fn set_mcp_server_agents(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        id: McpServerId,
        input: SetAgentsInput,
    ) -> Answer<One<McpServer>> {
        answer(async {
            let scope = ctx.enter(org_id).await?;
            mcp_servers::set_agents(&scope, id, &input.agent_ids).await?;
            Ok(One::by_id(&scope, id))
        })
        .await
    }

    /// Asks the host of a running agent that has the MCP server to start a session and list the tools, under the agent's
    /// rules. The result is in `states`, the tools in `tools`.
    #[graphql(directive = permit::apply(Permission::McpEdit))]
    async fn test_mcp_server(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        id: McpServerId,
        agent_id: AgentId,
    ) -> Answer<One<McpServer>> {
        answer(async {
            let scope = ctx.enter(org_id).await?;
            mcp_servers::tools::test(&scope, id, agent_id).await?;
            Ok(One::by_id(&scope, id))
        })
        .await
    }

    /// Switches a tool of an MCP server, and sets the risk of its calls. The assigned agents are updated.
    #[graphql(directive = permit::apply(Permission::McpEdit))]
    async fn set_mcp_server_tool(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        id: McpServerId,
        #[graphql(desc = "The tool's name.", directive = bounds::apply(length(1, 200)))] tool: String,
        input: McpServerToolInput,
    ) -> Answer<One<McpServer>> {
        answer(async {
            let scope = ctx.enter(org_id).await?;
            mcp_servers::tools::set(&scope, id, &tool, input).await?;
            Ok(One::by_id(&scope, id))
        })
        .await
    }

    /// Accepts new and changed definitions of an MCP server's tools, so that agents can use them.
    #[graphql(directive = permit::apply(Permission::McpEdit))]
    async fn accept_mcp_server_tools(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        id: McpServerId,
        #[graphql(
            desc = "The `newDigest` of each. One that the server has changed again fails the whole call.",
            directive = bounds::apply(list(256, length(1, 60)))
        )]
        digests: Vec<String>,
    ) -> Answer<One<McpServer>> {
        answer(async {
            let scope = ctx.enter(org_id).await?;
            mcp_servers::tools::accept(&scope, id, &digests).await?;
            Ok(One::by_id(&scope, id))
        })
        .await
    }

    /// Archives an MCP server: it is hidden, and its agents lose it at once. Assignments are kept.
    #[graphql(directive = permit::apply(Permission::McpDelete))]
    async fn archive_mcp_server(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        id: McpServerId,
    ) -> Answer<One<McpServer>> {
        answer(async {
            let scope = ctx.enter(org_id).await?;
            mcp_servers::archive(&scope, id).await?;
            Ok(One::by_id(&scope, id))
        })
        .await
    }

    /// Restores an archived MCP server: its agents regain it at once.
    #[graphql(directive = permit::apply(Permission::McpEdit))]
    async fn unarchive_mcp_server(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        id: McpServerId,
    ) -> Answer<One<McpServer>> {
        answer(async {
            let scope = ctx.enter(org_id).await?;
            mcp_servers::restore(&scope, id).await?;
            Ok(One::by_id(&scope, id))
        })
        .await
    }
}
