//! Lists and calls tools for the caller of one request.

use std::sync::Arc;

use async_graphql::indexmap::IndexMap;
use http::{StatusCode, request::Parts};
use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation, JsonObject,
        ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
    },
    service::RequestContext,
};
use serde_json::{Value, json};

use super::{ToolRoute, ToolRoutes};
use crate::{
    api::{
        graphql::Graphql,
        middleware::{Arrival, problem_document},
        rest,
    },
    base::{
        bounds,
        ids::OrgId,
        permission::PermissionSet,
        problem::{Problem, Result, Violation},
    },
    core::{
        Core,
        access::{Caller, Permit, authn::membership},
        telemetry,
    },
    domain::people,
    resolvers::authorize,
};

const INSTRUCTIONS: &str = "Muster manages the AI agents of organizations: servers, agents, channels, conversations, \
    approvals, credentials, MCP servers, and skills. Every tool works in one organization (`org_id`). You may leave \
    `org_id` out if you belong to only one. To ask an agent, call `post_message`, then `get_turn` with `wait` until the \
    turn has `ended_at`. Records always have all their fields; a field without a value is null. \
    Errors are tool errors whose text is a problem document: `code` is stable, and `errors` lists every invalid \
    argument.";

/// Who sent the request. `http.rs` attaches it.
#[derive(Clone)]
pub struct McpCaller {
    /// The caller. Never anonymous.
    pub caller: Caller,
    pub arrival: Arrival,
}

/// The MCP server that offers the tools.
#[derive(Clone)]
pub struct ToolServer {
    pub core: Arc<Core>,
    pub graphql: Arc<Graphql>,
    pub tool_routes: Arc<ToolRoutes>,
}

impl ServerHandler for ToolServer {
    fn get_info(&self) -> ServerConfig {
        let server = Implementation::new("muster", env!("CARGO_PKG_VERSION")).with_title("Muster");
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(server)
            .with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> std::result::Result<ListToolsResult, ErrorData> {
        let sender = sender(&context)?;
        let tools = self.usable_tools(&sender.caller).await.map_err(|problem| {
            telemetry::problem(&problem, &sender.arrival.request_id);
            ErrorData::internal_error(problem.detail, None)
        })?;
        Ok(ListToolsResult::with_all_items(tools))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> std::result::Result<CallToolResponse, ErrorData> {
        let sender = sender(&context)?;
        let tool_route = self.tool_routes.find(&request.name).ok_or_else(|| {
            let known = self.tool_routes.all().iter().map(|tool_route| tool_route.tool.name.as_ref());
            let meant = crate::resolvers::validate::meant(&request.name, known);
            let asked: String = request.name.chars().take(60).collect();
            ErrorData::invalid_params(format!("Unknown tool `{asked}`{meant}."), None)
        })?;
        let answered = self.call(tool_route, sender, request.arguments.unwrap_or_default()).await;
        let result = match answered.and_then(|json| tool_result(tool_route, &json)) {
            Ok(result) => result,
            Err(problem) => {
                let id = &sender.arrival.request_id;
                telemetry::problem(&problem, id);
                let document = problem_document(&problem, sender.arrival.uri.path(), id);
                CallToolResult::error(vec![ContentBlock::text(document.to_string())])
            }
        };
        Ok(result.into())
    }
}

impl ToolServer {
    /// The same steps as for a route: authorize, read the arguments, execute the document.
    async fn call(
        &self,
        tool_route: &ToolRoute,
        sender: &McpCaller,
        arguments: JsonObject,
    ) -> Result<bytes::Bytes> {
        let (core, operation) = (&self.core, tool_route.operation.as_ref());
        let mut arguments = match async_graphql::Value::from_json(Value::Object(arguments)) {
            Ok(async_graphql::Value::Object(arguments)) => arguments,
            _ => IndexMap::new(),
        };
        let org = match arguments.get("org_id") {
            Some(async_graphql::Value::Number(id)) => OrgId(id.as_i64().unwrap_or_default()),
            None | Some(async_graphql::Value::Null) => {
                let org = only_one(&self.organizations(&sender.caller).await?)?;
                arguments.insert(async_graphql::Name::new("org_id"), org.0.into());
                org
            }
            Some(_) => {
                let violation = Violation::at("/org_id", "WRONG_TYPE", "`org_id` must be an id.");
                return Err(Problem::invalid(vec![violation]));
            }
        };
        let request = rest::prepared(core, sender.caller.clone(), &sender.arrival);
        let scope = authorize(&request, &operation.root, operation.permit, org).await?;
        let variables = operation.variables_of(arguments, &self.graphql.catalogue)?;
        rest::execute(&self.graphql, operation, scope, variables).await
    }

    /// The tools the caller may use in at least one organization, with those organizations.
    async fn usable_tools(&self, caller: &Caller) -> Result<Vec<Tool>> {
        let mut places: Vec<(OrgId, PermissionSet)> = Vec::new();
        for org in self.organizations(caller).await? {
            match membership(&self.core, caller, org).await {
                Ok(membership) => places.push((org, membership.permissions)),
                // An organization that requires a second factor, or that the caller just left, doesn't affect
                // the others.
                Err(problem) if problem.code.status() == StatusCode::FORBIDDEN => {}
                Err(problem) => return Err(problem),
            }
        }
        let tools = self.tool_routes.all().iter().filter_map(|tool_route| {
            let Permit::InOrganization { permission, confirmed_email } = tool_route.operation.permit else {
                return None;
            };
            if confirmed_email && !caller.has_confirmed_email() {
                return None;
            }
            let fitting = places.iter().filter(|(_, permissions)| permissions.contains(permission));
            let orgs: Vec<OrgId> = fitting.map(|(org, _)| *org).collect();
            (!orgs.is_empty()).then(|| with_organizations(&tool_route.tool, &orgs, places.len() == 1))
        });
        Ok(tools.collect())
    }

    async fn organizations(&self, caller: &Caller) -> Result<Vec<OrgId>> {
        Ok(match caller {
            Caller::Person(person) => {
                let memberships = people::memberships(&self.core, person.id).await?;
                memberships.iter().map(|membership| membership.organization_id).collect()
            }
            Caller::Token(token) => vec![token.org],
            Caller::Anonymous | Caller::LinkedChat(_) | Caller::System => Vec::new(),
        })
    }
}

fn sender(context: &RequestContext<RoleServer>) -> std::result::Result<&McpCaller, ErrorData> {
    let parts = context.extensions.get::<Parts>();
    let sender = parts.and_then(|parts| parts.extensions.get::<McpCaller>());
    sender.ok_or_else(|| ErrorData::internal_error("The request has no caller.", None))
}

fn only_one(organizations: &[OrgId]) -> Result<OrgId> {
    match organizations {
        [only] => Ok(*only),
        _ => {
            let detail = "`org_id` is required, because you do not belong to exactly one organization.";
            Err(Problem::invalid(vec![Violation::at("/org_id", "REQUIRED", detail)]))
        }
    }
}

/// Adds the organizations in which the caller may use the tool to its schema.
fn with_organizations(tool: &Tool, orgs: &[OrgId], is_only: bool) -> Tool {
    let mut tool = tool.clone();
    if orgs.len() > bounds::LISTED_IN_TEXT {
        return tool;
    }
    let schema = Arc::make_mut(&mut tool.input_schema);
    if let Some(org) = schema.get_mut("properties").and_then(|properties| properties.get_mut("org_id")) {
        org["enum"] = json!(orgs);
        if is_only {
            org["default"] = json!(orgs[0]);
        }
    }
    if is_only && let Some(Value::Array(required)) = schema.get_mut("required") {
        required.retain(|name| name != "org_id");
    }
    tool
}

/// The answer as structured content, and as the same JSON in a text for clients that don't read it.
fn tool_result(tool_route: &ToolRoute, json: &[u8]) -> Result<CallToolResult> {
    let mut value: Value = muster_json::from_slice(json).map_err(Problem::internal)?;
    if tool_route.is_list {
        value = json!({ "data": value });
    }
    Ok(CallToolResult::structured(value))
}
