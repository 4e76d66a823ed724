//! MCP servers: tools that agents may call, run as a command on the agent's host or reached at a URL.
//!
//! An MCP server is active or archived; archiving keeps the assignments, and assigned agents lose or regain access at
//! once. Its tools are known from hosts (`tools.rs`). `auth` names the credentials that a server needs. Permissions:
//! `mcp.*`. A change notifies the hosts of its running agents.

mod entity;
mod input;
mod queries;
pub mod reports;
pub mod tools;

use async_graphql::MaybeUndefined;
use sea_orm::{ActiveModelTrait, ColumnTrait, IntoActiveModel, NotSet, QueryFilter, QueryOrder, Set};
use serde_json::{Value, json};

use self::entity::{mcp_server_agents, mcp_servers};
pub use self::input::{CreateMcpServerInput, McpServerToolInput, UpdateMcpServerInput};
use crate::{
    base::{
        enums::{ChangeOp, McpTransport, McpWorkspace, RecordKind},
        folding,
        ids::{AgentId, McpServerId},
        json::texts,
        permission::Permission,
        problem::{Code, Problem, Result, Violation},
    },
    core::{
        access::Scope,
        audit,
        store::{Tx, linked},
    },
    domain::{
        agents::assignments,
        credentials, edits, network,
        orgs::{self, Limit},
        patch::{patch, patch_required},
    },
};

/// Creates an MCP server. No agent may call it yet.
///
/// # Errors
/// `VALIDATION_FAILED` for a command or URL that doesn't match the transport, `PLAN_LIMIT_REACHED`, `NAME_TAKEN`;
/// `PERMISSION_DENIED` for a service token if the server would get stored values.
pub async fn create(scope: &Scope, new: CreateMcpServerInput) -> Result<McpServerId> {
    let args = json!(new.args.unwrap_or_default());
    let auth = trim_names(&new.auth.unwrap_or_default());
    let name = new.name.trim().to_owned();
    let mut violations: Vec<_> = reserved_name(&name).into_iter().chain(duplicate_names(&auth)).collect();
    violations.extend(endpoint_violations(new.transport, new.command.as_deref(), &args, new.url.as_deref()));
    Problem::fail_if_any(violations)?;
    let tx = scope.begin().await?;
    orgs::check_limit(&tx, Limit::McpServers).await?;
    assignments::require_free_name::<mcp_servers::Entity>(&tx, &name, None).await?;
    let server = mcp_servers::ActiveModel {
        organization_id: Set(scope.org),
        id: NotSet,
        name_folded: NotSet,
        name: Set(name.clone()),
        description: Set(new.description),
        transport: Set(new.transport),
        command: Set(new.command),
        args: Set(args),
        url: Set(new.url),
        auth: Set(json!(auth)),
        workspace: Set(new.workspace.unwrap_or(McpWorkspace::None)),
        created_by: Set(scope.request.caller.user()),
        created_at: Set(tx.now),
        updated_at: Set(tx.now),
        archived_at: Set(None),
    }
    .insert(tx.connection())
    .await?;
    require_allowed(&tx, &server).await?;
    let changes = json!({ "name": name, "transport": new.transport });
    assignments::audit_change::<mcp_servers::Entity>(
        &tx,
        (ChangeOp::Created, "createMcpServer"),
        server.id,
        changes,
    );
    tx.commit().await?;
    Ok(server.id)
}

/// Edits an MCP server and notifies its agents' hosts. An edit that changes nothing does nothing.
///
/// # Errors
/// `NOT_FOUND`, `ARCHIVED`, `NAME_TAKEN`, `VALIDATION_FAILED` if the result doesn't match its transport;
/// `PERMISSION_DENIED` as [`create`].
pub async fn update(scope: &Scope, id: McpServerId, edit: UpdateMcpServerInput) -> Result<()> {
    let tx = scope.begin().await?;
    let before = assignments::load_active::<mcp_servers::Entity>(&tx, id).await?;
    let mut server = before.clone().into_active_model();
    let name = edit.name.map_value(|name| name.trim().to_owned());
    let auth = edit.auth.map_value(|auth| trim_names(&auth));
    let mut violations: Vec<_> = name.value().and_then(|name| reserved_name(name)).into_iter().collect();
    patch_required(&mut server.name, name.clone());
    patch(&mut server.description, edit.description);
    patch_required(&mut server.transport, edit.transport);
    patch(&mut server.command, edit.command);
    patch_required(&mut server.args, edit.args.map_value(|args| json!(args)));
    patch(&mut server.url, edit.url);
    patch_required(&mut server.workspace, edit.workspace);
    if let MaybeUndefined::Value(auth) = auth {
        violations.extend(duplicate_names(&auth));
        server.auth.set_if_not_equals(json!(auth));
    }
    if server.is_changed() {
        violations.extend(endpoint_violations(
            *server.transport.as_ref(),
            server.command.as_ref().as_deref(),
            server.args.as_ref(),
            server.url.as_ref().as_deref(),
        ));
    }
    Problem::fail_if_any(violations)?;
    if let MaybeUndefined::Value(name) = &name {
        assignments::require_free_name::<mcp_servers::Entity>(&tx, name, Some(id)).await?;
    }
    if !server.is_changed() {
        return Ok(());
    }
    let is_new_setup = has_new_setup(&server);
    if is_another_server(&server) {
        assignments::lock_assigned::<mcp_servers::Entity>(&tx, id).await?;
        tools::forget_all(&tx, id).await?;
    }
    server.updated_at = Set(tx.now);
    let changes = audit::changed(&before, &server);
    let server = server.update(tx.connection()).await?;
    if is_new_setup {
        require_allowed(&tx, &server).await?;
    }
    edits::raise(&tx, RecordKind::McpServer, id).await?;
    assignments::mark_assigned::<mcp_servers::Entity>(&tx, id).await?;
    assignments::audit_change::<mcp_servers::Entity>(
        &tx,
        (ChangeOp::Updated, "updateMcpServer"),
        id,
        changes,
    );
    tx.commit().await
}

/// Sets the complete list of agents that may call an MCP server.
///
/// # Errors
/// `NOT_FOUND`, `ARCHIVED`, `VALIDATION_FAILED` for an unknown agent, in which case nothing changes;
/// `PERMISSION_DENIED` for a service token that assigns a program to agents that read credentials.
pub async fn set_agents(scope: &Scope, id: McpServerId, agents: &[AgentId]) -> Result<()> {
    let tx = scope.begin().await?;
    let server = assignments::load_active::<mcp_servers::Entity>(&tx, id).await?;
    let present = linked::<mcp_server_agents::Entity>(&tx, id).await?;
    let added: Vec<AgentId> = agents.iter().copied().filter(|agent| !present.contains(agent)).collect();
    require_no_readers(&tx, &server, &added).await?;
    assignments::assign_in::<mcp_servers::Entity>(tx, id, agents, "setMcpServerAgents").await
}

/// Sets an agent's MCP servers; archived ones stay assigned. Returns the changes, if there are any.
///
/// # Errors
/// As [`assignments::replace_of_agent`]; `PERMISSION_DENIED` as [`set_agents`].
pub async fn set_of_agent(tx: &Tx, agent: AgentId, wanted: &[McpServerId]) -> Result<Option<Value>> {
    let links = tx.scope.find::<mcp_server_agents::Entity>();
    let links = links.filter(mcp_server_agents::Column::AgentId.eq(agent)).all(tx.connection()).await?;
    let present: Vec<McpServerId> = links.into_iter().map(|link| link.mcp_server_id).collect();
    let changed =
        assignments::replace_of_agent::<mcp_servers::Entity>(tx, agent, wanted, Permission::McpEdit).await?;
    // Now that they are locked.
    let added = wanted.iter().copied().filter(|id| !present.contains(id));
    let added = tx.scope.find::<mcp_servers::Entity>().filter(mcp_servers::Column::Id.is_in(added));
    for server in added.all(tx.connection()).await? {
        require_no_readers(tx, &server, &[agent]).await?;
    }
    Ok(changed)
}

/// Archives an MCP server (specification, operation 24).
pub async fn archive(scope: &Scope, id: McpServerId) -> Result<()> {
    assignments::archive::<mcp_servers::Entity>(scope, id, "archiveMcpServer").await
}

/// Restores an MCP server (specification, operation 25). Its agents regain access.
///
/// # Errors
/// `NOT_FOUND`, `NAME_TAKEN`; `PERMISSION_DENIED` as [`create`].
pub async fn restore(scope: &Scope, id: McpServerId) -> Result<()> {
    let tx = scope.begin().await?;
    let server = assignments::load::<mcp_servers::Entity>(&tx, id).await?;
    if server.archived_at.is_some() {
        require_allowed(&tx, &server).await?;
    }
    assignments::restore_in::<mcp_servers::Entity>(tx, id, "unarchiveMcpServer").await
}

/// Whether an edit changes more than the description.
fn has_new_setup(server: &mcp_servers::ActiveModel) -> bool {
    is_another_server(server) || server.name.is_set() || server.auth.is_set() || server.workspace.is_set()
}

/// Whether an edit leads to another program or address.
fn is_another_server(server: &mcp_servers::ActiveModel) -> bool {
    server.transport.is_set() || server.command.is_set() || server.args.is_set() || server.url.is_set()
}

/// Refuses a service token that sets up a server which gets stored values by its name, unless a person has allowed the
/// host of its address. A token that could choose the server freely could read values that it doesn't know.
async fn require_allowed(tx: &Tx, server: &mcp_servers::Model) -> Result<()> {
    if tx.scope.request.caller.token().is_none() {
        return Ok(());
    }
    require_no_readers(tx, server, &linked::<mcp_server_agents::Entity>(tx, server.id).await?).await?;
    let given = credentials::given_by_name(tx, &texts(&server.auth), &server.name).await?;
    let Some(credential) = given else { return Ok(()) };
    let address = server.url.as_deref().and_then(|url| url::Url::parse(url).ok());
    let allowed = network::allowed(tx).await?;
    if address.is_some_and(|address| network::reaches(&allowed, &address)) {
        return Ok(());
    }
    let detail = format!(
        "`{}` gets the stored values of `{credential}`. A service token can set it up only at an address whose host a \
         person has allowed.",
        server.name
    );
    Err(tx.scope.refused(Problem::new(Code::PermissionDenied, detail)))
}

/// Refuses a service token that chooses a program for agents that may read credentials, because the program runs in
/// their sandboxes and reads them too. Only people may do that.
async fn require_no_readers(tx: &Tx, server: &mcp_servers::Model, agents: &[AgentId]) -> Result<()> {
    if tx.scope.request.caller.token().is_none() || server.transport != McpTransport::Stdio {
        return Ok(());
    }
    let Some(credential) = credentials::readable_by(tx, agents).await? else { return Ok(()) };
    let detail = format!(
        "`{}` is a program in the sandbox of an agent that may read the stored values of `{credential}`. Only a person can set \
         it up or assign it.",
        server.name
    );
    Err(tx.scope.refused(Problem::new(Code::PermissionDenied, detail)))
}

/// An MCP server that an agent may call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Callable {
    pub id: i64,
    pub name: String,
    pub transport: McpTransport,
    /// For STDIO.
    pub command: Option<String>,
    pub args: Vec<String>,
    /// For HTTP and SSE.
    pub url: Option<String>,
    /// The names of the credentials it needs.
    pub auth: Vec<String>,
    /// Its access to the agent's home.
    pub workspace: McpWorkspace,
}

/// The agent's MCP servers that aren't archived, in order of their ids.
pub async fn of_agent(tx: &Tx, agent: AgentId) -> Result<Vec<Callable>> {
    let links = tx.scope.find::<mcp_server_agents::Entity>();
    let links = links.filter(mcp_server_agents::Column::AgentId.eq(agent)).all(tx.connection()).await?;
    let found = tx
        .scope
        .find::<mcp_servers::Entity>()
        .filter(mcp_servers::Column::Id.is_in(links.iter().map(|link| link.mcp_server_id)))
        .filter(mcp_servers::Column::ArchivedAt.is_null())
        .order_by_asc(mcp_servers::Column::Id);
    let found = found.all(tx.connection()).await?.into_iter().map(|server| Callable {
        id: server.id.0,
        args: texts(&server.args),
        auth: texts(&server.auth),
        name: server.name,
        transport: server.transport,
        command: server.command,
        url: server.url,
        workspace: server.workspace,
    });
    Ok(found.collect())
}

/// Refuses the name of Muster's own MCP server, through which agents ask people: another server must not pass for it.
fn reserved_name(name: &str) -> Option<Violation> {
    let detail =
        "`muster` is the name of Muster's own MCP server, which every agent has. Choose another name.";
    (folding::name(name) == "muster").then(|| Violation::at("/name", "NOT_ALLOWED", detail))
}

fn trim_names(names: &[String]) -> Vec<String> {
    names.iter().map(|name| name.trim().to_owned()).collect()
}

/// Violations for names that appear more than once.
fn duplicate_names(names: &[String]) -> impl Iterator<Item = Violation> {
    let repeated = names.iter().enumerate().filter(move |(n, name)| names[..*n].contains(name));
    repeated.map(|(n, name)| {
        Violation::at(format!("/auth/{n}"), "DUPLICATE", format!("`{name}` appears more than once."))
    })
}

/// Violations for an endpoint that doesn't match the transport: STDIO takes a command, HTTP and SSE take a URL.
fn endpoint_violations(
    transport: McpTransport,
    command: Option<&str>,
    args: &serde_json::Value,
    url: Option<&str>,
) -> Vec<Violation> {
    let required = |pointer: &str| {
        let detail = format!("`{}` is required for {transport}.", &pointer[1..]);
        Violation::at(pointer, "REQUIRED", detail)
    };
    let misplaced = |pointer: &str| {
        let detail = format!("`{}` is not allowed for {transport}.", &pointer[1..]);
        Violation::at(pointer, "NOT_ALLOWED", detail)
    };
    let mut violations = Vec::new();
    if transport == McpTransport::Stdio {
        violations.extend(command.is_none().then(|| required("/command")));
        violations.extend(url.is_some().then(|| misplaced("/url")));
    } else {
        violations.extend(command.is_some().then(|| misplaced("/command")));
        violations.extend(args.as_array().is_some_and(|args| !args.is_empty()).then(|| misplaced("/args")));
        violations.extend(match url {
            Some(url) => orgs::check_url("/url", url),
            None => Some(required("/url")),
        });
    }
    violations
}
