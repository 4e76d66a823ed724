//! MCP servers in the schema.

use std::sync::LazyLock;

use async_graphql::{Context, InputObject, MaybeUndefined, Object};

use super::{McpServerEdit, NewMcpServer};
use crate::{
    base::{
        enums::McpTransport,
        ids::{McpServerId, OrgId, UserId},
        permission::Permission,
        time::Timestamp,
    },
    fields::{
        Answer, Enter, answer,
        bounds::{bounds, from, length, list, name, not_null, range},
        permit::permit,
    },
    read::{One, Page, Record, Rows, Spec},
    slices::agents::graphql::{AgentAssignment, AgentSummary, SetAgentsInput, assigned, assignment_count},
};

/// The agents that an MCP server is assigned to.
const AGENTS: &str =
    "mcp_server_agents j JOIN agents t ON t.organization_id = j.organization_id AND t.id = j.agent_id";

/// An MCP server that agents may call.
pub struct McpServer;

impl Record for McpServer {
    fn spec() -> &'static Spec {
        static SPEC: LazyLock<Spec> = LazyLock::new(|| {
            Spec::new("McpServer", "mcp_servers t", "An MCP server: tools that agents may call.")
                .permission(Permission::McpView)
                .viewer_can(|scope| scope.can(&["mcp"]))
                .column::<McpServerId>("id", "Identifies the MCP server.")
                .column::<String>("name", "The name, unique in the organization.")
                .column::<Option<String>>("description", "For people.")
                .column::<McpTransport>("transport", "How it is reached.")
                .column::<Option<String>>("command", "What to run, for STDIO.")
                .column::<Vec<String>>("args", "The command's arguments.")
                .column::<Option<String>>("url", "Where it is, for HTTP and SSE.")
                .column::<Vec<String>>("auth", "The names of the secrets that it needs.")
                .sql::<i64>(
                    "assignment_count",
                    assignment_count("mcp_server_agents", "mcp_server_id"),
                    "How many agents it is assigned to.",
                )
                .many::<AgentSummary>(
                    "agents",
                    assigned(AGENTS, "j.mcp_server_id"),
                    "The agents that it is assigned to.",
                )
                .column::<Option<UserId>>("created_by", "Who created it.")
                .column::<Timestamp>("created_at", "When it was created.")
                .column::<Timestamp>("updated_at", "When its record last changed.")
                .column::<Option<Timestamp>>("archived_at", "Since when it is archived.")
                .many::<AgentAssignment>(
                    "assignments",
                    assigned(AGENTS, "j.mcp_server_id"),
                    "The agents that it is assigned to, and since when.",
                )
        });
        &SPEC
    }
}

/// What a new MCP server is given.
#[derive(InputObject)]
pub struct CreateMcpServerInput {
    /// The name, unique in the organization.
    #[graphql(directive = bounds::apply(name(80)))]
    pub name: String,
    /// For people.
    #[graphql(directive = bounds::apply(length(0, 2000)))]
    pub description: Option<String>,
    /// How it is reached.
    pub transport: McpTransport,
    /// What to run; required with STDIO, refused otherwise.
    #[graphql(directive = bounds::apply(name(1000)))]
    pub command: Option<String>,
    /// The command's arguments.
    #[graphql(directive = bounds::apply(list(100, length(0, 4000))))]
    pub args: Option<Vec<String>>,
    /// Where it is; required with HTTP and SSE, refused with STDIO.
    #[graphql(directive = bounds::apply(length(1, 2000)))]
    pub url: Option<String>,
    /// The names of the secrets that it needs.
    #[graphql(directive = bounds::apply(list(50, name(120))))]
    pub auth: Option<Vec<String>>,
}

/// What an edit of an MCP server changes: absent is untouched, null clears what may be empty.
#[derive(InputObject)]
pub struct UpdateMcpServerInput {
    /// The name, unique in the organization.
    #[graphql(directive = bounds::apply(name(80).not_null()))]
    pub name: MaybeUndefined<String>,
    /// For people.
    #[graphql(directive = bounds::apply(length(0, 2000)))]
    pub description: MaybeUndefined<String>,
    /// How it is reached. With another one, clear what goes with the old one.
    #[graphql(directive = bounds::apply(not_null()))]
    pub transport: MaybeUndefined<McpTransport>,
    /// What to run, for STDIO.
    #[graphql(directive = bounds::apply(name(1000)))]
    pub command: MaybeUndefined<String>,
    /// The command's arguments; the whole list.
    #[graphql(directive = bounds::apply(list(100, length(0, 4000)).not_null()))]
    pub args: MaybeUndefined<Vec<String>>,
    /// Where it is, for HTTP and SSE.
    #[graphql(directive = bounds::apply(length(1, 2000)))]
    pub url: MaybeUndefined<String>,
    /// The names of the secrets that it needs; the whole list.
    #[graphql(directive = bounds::apply(list(50, name(120)).not_null()))]
    pub auth: MaybeUndefined<Vec<String>>,
}

impl From<CreateMcpServerInput> for NewMcpServer {
    fn from(input: CreateMcpServerInput) -> Self {
        Self {
            name: input.name,
            description: input.description,
            transport: input.transport,
            command: input.command,
            args: input.args.unwrap_or_default(),
            url: input.url,
            auth: input.auth.unwrap_or_default(),
        }
    }
}

impl From<UpdateMcpServerInput> for McpServerEdit {
    fn from(input: UpdateMcpServerInput) -> Self {
        Self {
            name: input.name,
            description: input.description,
            transport: input.transport,
            command: input.command,
            args: input.args,
            url: input.url,
            auth: input.auth,
        }
    }
}

/// Reading MCP servers.
#[derive(Default)]
pub struct McpQuery;

#[Object]
impl McpQuery {
    /// The organization's MCP servers, by id.
    #[graphql(directive = permit::apply(Permission::McpView))]
    async fn mcp_servers(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        #[graphql(directive = bounds::apply(from(1)))] page: i64,
        #[graphql(directive = bounds::apply(range(1, 200)))] limit: i64,
        #[graphql(desc = "Whether archived MCP servers are listed as well.", default_with = "Some(false)")]
        include_archived: Option<bool>,
    ) -> Answer<Page<McpServer>> {
        answer(async {
            let rows = Rows::of(&ctx.enter(org_id).await?).unless_archived(include_archived == Some(true));
            Ok(Page::numbered(rows.order_by("t.id"), page, limit))
        })
        .await
    }

    /// One MCP server, archived or not.
    #[graphql(directive = permit::apply(Permission::McpView))]
    async fn mcp_server(&self, ctx: &Context<'_>, org_id: OrgId, id: McpServerId) -> Answer<One<McpServer>> {
        answer(async { Ok(One::by_id(&ctx.enter(org_id).await?, id)) }).await
    }
}

/// Changing MCP servers.
#[derive(Default)]
pub struct McpMutation;

#[Object]
impl McpMutation {
    /// Creates an MCP server; no agent may call it yet.
    #[graphql(directive = permit::apply(Permission::McpCreate))]
    async fn create_mcp_server(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        input: CreateMcpServerInput,
    ) -> Answer<One<McpServer>> {
        answer(async {
            let scope = ctx.enter(org_id).await?;
            let id = super::create(&scope, input.into()).await?;
            Ok(One::by_id(&scope, id))
        })
        .await
    }

    /// Edits an MCP server; assigned agents are told.
    #[graphql(directive = permit::apply(Permission::McpEdit))]
    async fn update_mcp_server(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        id: McpServerId,
        input: UpdateMcpServerInput,
    ) -> Answer<One<McpServer>> {
        answer(async {
            let scope = ctx.enter(org_id).await?;
            super::update(&scope, id, input.into()).await?;
            Ok(One::by_id(&scope, id))
        })
        .await
    }

    /// Sets the agents that may call an MCP server: those not named lose it. An unknown one refuses the whole.
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
            super::set_agents(&scope, id, &input.agent_ids).await?;
            Ok(One::by_id(&scope, id))
        })
        .await
    }

    /// Archives an MCP server: it is hidden, and assigned agents lose it at once. Assignments are kept.
    #[graphql(directive = permit::apply(Permission::McpDelete))]
    async fn archive_mcp_server(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        id: McpServerId,
    ) -> Answer<One<McpServer>> {
        answer(async {
            let scope = ctx.enter(org_id).await?;
            super::archive(&scope, id).await?;
            Ok(One::by_id(&scope, id))
        })
        .await
    }

    /// Restores an archived MCP server: assigned agents regain it at once.
    #[graphql(directive = permit::apply(Permission::McpEdit))]
    async fn unarchive_mcp_server(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        id: McpServerId,
    ) -> Answer<One<McpServer>> {
        answer(async {
            let scope = ctx.enter(org_id).await?;
            super::restore(&scope, id).await?;
            Ok(One::by_id(&scope, id))
        })
        .await
    }
}
