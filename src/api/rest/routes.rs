//! The table of `/v1` routes.
//!
//! The first 27 are the specification's, numbered as in its endpoint table: neither their answers nor their
//! descriptions change. The others are ours. Both come from the same schema.

use std::{collections::HashMap, sync::Arc};

use http::{Method, StatusCode};

use super::Operation;
use crate::resolvers::Catalogue;

/// A line of the table.
#[derive(Clone, Debug)]
pub struct Route {
    pub method: Method,
    /// The path, with parameters in braces.
    pub path: &'static str,
    /// The operation in `schema/rest/` that it runs.
    pub operation: &'static str,
    pub status: StatusCode,
    /// Whether it is a tool of `/mcp`.
    pub is_tool: bool,
}

impl Route {
    /// Whether it is one of the specification's 27.
    #[must_use]
    pub fn is_specified(&self) -> bool {
        ROUTES[..27].iter().any(|route| route.operation == self.operation)
    }

    /// A route that is not a tool. Every client of `/mcp` reads the descriptions of all tools, so there are at most 40:
    /// those that an assistant needs.
    const fn no_tool(mut self) -> Self {
        self.is_tool = false;
        self
    }
}

const fn get(path: &'static str, operation: &'static str) -> Route {
    Route { method: Method::GET, path, operation, status: StatusCode::OK, is_tool: true }
}

const fn create(path: &'static str, operation: &'static str) -> Route {
    Route { method: Method::POST, path, operation, status: StatusCode::CREATED, is_tool: true }
}

const fn post(path: &'static str, operation: &'static str) -> Route {
    Route { method: Method::POST, path, operation, status: StatusCode::OK, is_tool: true }
}

const fn patch(path: &'static str, operation: &'static str) -> Route {
    Route { method: Method::PATCH, path, operation, status: StatusCode::OK, is_tool: true }
}

const fn put(path: &'static str, operation: &'static str) -> Route {
    Route { method: Method::PUT, path, operation, status: StatusCode::OK, is_tool: true }
}

const fn delete(path: &'static str, operation: &'static str) -> Route {
    Route { method: Method::DELETE, path, operation, status: StatusCode::OK, is_tool: true }
}

/// Every route of `/v1`.
pub const ROUTES: &[Route] = &[
    /*  1 */ get("/v1/org/{org_id}/server", "ListServers"),
    /*  2 */ create("/v1/org/{org_id}/server", "CreateServer"),
    /*  3 */
    create("/v1/org/{org_id}/server/{id}/regenerate-provisioning-token", "RegenerateProvisioningToken"),
    /*  4 */ get("/v1/org/{org_id}/approval", "ListApprovals"),
    /*  5 */ patch("/v1/org/{org_id}/approval/{id}/resolve", "ResolveApproval"),
    /*  6 */ patch("/v1/org/{org_id}/approval/{id}/answer", "AnswerApproval"),
    /*  7 */ patch("/v1/org/{org_id}/approval/{id}/dismiss", "DismissApproval"),
    /*  8 */ get("/v1/org/{org_id}/agent/{agent_id}/conversation", "ListAgentConversations"),
    /*  9 */
    get("/v1/org/{org_id}/agent/{agent_id}/conversation/{conversation_id}/message", "ListMessages"),
    /* 10 */
    get("/v1/org/{org_id}/agent/{agent_id}/conversation/{conversation_id}/message/search", "SearchMessages"),
    /* 11 */ get("/v1/org/{org_id}/conversation", "ListConversations"),
    /* 12 */ get("/v1/org/{org_id}/agent", "ListAgents"),
    /* 13 */ create("/v1/org/{org_id}/agent", "CreateAgent"),
    /* 14 */ post("/v1/org/{org_id}/agent/{id}/start", "StartAgent"),
    /* 15 */ get("/v1/org/{org_id}/channel", "ListChannels"),
    /* 16 */ create("/v1/org/{org_id}/channel", "CreateChannel"),
    /* 17 */ patch("/v1/org/{org_id}/channel/{id}", "EditChannel"),
    /* 18 */ post("/v1/org/{org_id}/channel/{id}/whitelist", "AddWhitelistOrigin"),
    /* 19 */ delete("/v1/org/{org_id}/channel/{id}/whitelist/{origin_id}", "RemoveWhitelistOrigin"),
    /* 20 */ create("/v1/org/{org_id}/credential", "CreateCredential"),
    /* 21 */ patch("/v1/org/{org_id}/credential/{id}", "EditCredential"),
    /* 22 */ put("/v1/org/{org_id}/credential/{id}/agents", "SetCredentialAgents"),
    /* 23 */ get("/v1/org/{org_id}/mcp/{id}", "GetMcpServer"),
    /* 24 */ post("/v1/org/{org_id}/mcp/{id}/archive", "ArchiveMcpServer"),
    /* 25 */ post("/v1/org/{org_id}/mcp/{id}/unarchive", "UnarchiveMcpServer"),
    /* 26 */ patch("/v1/org/{org_id}/skill/{id}", "EditSkill"),
    /* 27 */ get("/v1/org/{org_id}", "GetOrganization"),
    // Ours.
    get("/v1/org/{org_id}/server/{id}", "GetServer").no_tool(),
    patch("/v1/org/{org_id}/server/{id}", "EditServer").no_tool(),
    delete("/v1/org/{org_id}/server/{id}", "DeleteServer").no_tool(),
    get("/v1/org/{org_id}/approval/{id}", "GetApproval"),
    create("/v1/org/{org_id}/conversation", "StartConversation"),
    get("/v1/org/{org_id}/conversation/{id}", "GetConversation"),
    patch("/v1/org/{org_id}/conversation/{id}", "EditConversation"),
    post("/v1/org/{org_id}/conversation/{id}/take-over", "TakeOverConversation").no_tool(),
    post("/v1/org/{org_id}/conversation/{id}/hand-back", "HandBackConversation").no_tool(),
    create("/v1/org/{org_id}/conversation/{conversation_id}/message", "PostMessage"),
    get("/v1/org/{org_id}/message/{id}", "GetMessage").no_tool(),
    get("/v1/org/{org_id}/turn", "ListTurns").no_tool(),
    get("/v1/org/{org_id}/turn/{id}", "GetTurn"),
    post("/v1/org/{org_id}/turn/{id}/cancel", "CancelTurn"),
    post("/v1/org/{org_id}/turn/{id}/retry", "RetryTurn").no_tool(),
    get("/v1/org/{org_id}/agent/{id}", "GetAgent"),
    patch("/v1/org/{org_id}/agent/{id}", "EditAgent").no_tool(),
    delete("/v1/org/{org_id}/agent/{id}", "DeleteAgent").no_tool(),
    post("/v1/org/{org_id}/agent/{id}/restore", "RestoreAgent").no_tool(),
    post("/v1/org/{org_id}/agent/{id}/stop", "StopAgent"),
    post("/v1/org/{org_id}/agent/{id}/pause", "PauseAgent").no_tool(),
    post("/v1/org/{org_id}/agent/{id}/resume", "ResumeAgent").no_tool(),
    post("/v1/org/{org_id}/agent/{id}/restart", "RestartAgent").no_tool(),
    get("/v1/org/{org_id}/channel/{id}", "GetChannel").no_tool(),
    delete("/v1/org/{org_id}/channel/{id}", "DeleteChannel").no_tool(),
    get("/v1/org/{org_id}/credential", "ListCredentials").no_tool(),
    get("/v1/org/{org_id}/credential/{id}", "GetCredential").no_tool(),
    post("/v1/org/{org_id}/credential/{id}/archive", "ArchiveCredential").no_tool(),
    post("/v1/org/{org_id}/credential/{id}/unarchive", "UnarchiveCredential").no_tool(),
    get("/v1/org/{org_id}/mcp", "ListMcpServers").no_tool(),
    create("/v1/org/{org_id}/mcp", "CreateMcpServer").no_tool(),
    patch("/v1/org/{org_id}/mcp/{id}", "EditMcpServer").no_tool(),
    put("/v1/org/{org_id}/mcp/{id}/agents", "SetMcpServerAgents").no_tool(),
    get("/v1/org/{org_id}/skill", "ListSkills"),
    create("/v1/org/{org_id}/skill", "CreateSkill"),
    get("/v1/org/{org_id}/skill/{id}", "GetSkill"),
    put("/v1/org/{org_id}/skill/{id}/agents", "SetSkillAgents").no_tool(),
    post("/v1/org/{org_id}/skill/{id}/archive", "ArchiveSkill").no_tool(),
    post("/v1/org/{org_id}/skill/{id}/unarchive", "UnarchiveSkill").no_tool(),
    get("/v1/org/{org_id}/member", "ListMembers").no_tool(),
    get("/v1/org/{org_id}/member/{user_id}", "GetMember").no_tool(),
    patch("/v1/org/{org_id}/member/{user_id}", "EditMember").no_tool(),
    delete("/v1/org/{org_id}/member/{user_id}", "RemoveMember").no_tool(),
    get("/v1/org/{org_id}/usage", "ListUsage").no_tool(),
];

/// The stored documents, one file per resource.
const DOCUMENTS: &[(&str, &str)] = &[
    ("agents", include_str!("../../../schema/rest/agents.graphql")),
    ("approvals", include_str!("../../../schema/rest/approvals.graphql")),
    ("channels", include_str!("../../../schema/rest/channels.graphql")),
    ("conversations", include_str!("../../../schema/rest/conversations.graphql")),
    ("credentials", include_str!("../../../schema/rest/credentials.graphql")),
    ("mcp", include_str!("../../../schema/rest/mcp.graphql")),
    ("members", include_str!("../../../schema/rest/members.graphql")),
    ("organizations", include_str!("../../../schema/rest/organizations.graphql")),
    ("servers", include_str!("../../../schema/rest/servers.graphql")),
    ("skills", include_str!("../../../schema/rest/skills.graphql")),
    ("turns", include_str!("../../../schema/rest/turns.graphql")),
    ("usage", include_str!("../../../schema/rest/usage.graphql")),
];

/// The table with its operations, ready to run.
pub struct Routes(Vec<(Route, Arc<Operation>)>);

impl Routes {
    /// Prepares every operation of the table.
    ///
    /// # Errors
    /// A document that doesn't parse or doesn't fit the schema, a route without an operation, or an operation
    /// without a route.
    pub fn load(catalogue: &Catalogue) -> anyhow::Result<Self> {
        let mut operations = HashMap::new();
        for (file, text) in DOCUMENTS {
            for operation in Operation::parse(text, catalogue)
                .map_err(|error| error.context(format!("schema/rest/{file}.graphql")))?
            {
                operations.insert(operation.name.clone(), operation);
            }
        }
        let routes = ROUTES
            .iter()
            .map(|route| {
                let missing = || anyhow::anyhow!("no document has the operation {}", route.operation);
                let operation = operations.remove(route.operation).ok_or_else(missing)?;
                Ok((route.clone(), Arc::new(operation.bind(route.path)?.with_etag_source(catalogue))))
            })
            .collect::<anyhow::Result<_>>()?;
        match operations.into_keys().next() {
            Some(unused) => anyhow::bail!("no route runs the operation {unused}"),
            None => Ok(Self(routes)),
        }
    }

    /// The routes, in the order of the table.
    pub fn iter(&self) -> impl Iterator<Item = (&Route, &Arc<Operation>)> {
        self.0.iter().map(|(route, operation)| (route, operation))
    }
}
