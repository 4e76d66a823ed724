//! The table of `/v1` routes.
//!
//! The numbers are those of the specification's endpoint table.

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
}

const fn get(path: &'static str, operation: &'static str) -> Route {
    Route { method: Method::GET, path, operation, status: StatusCode::OK }
}

const fn create(path: &'static str, operation: &'static str) -> Route {
    Route { method: Method::POST, path, operation, status: StatusCode::CREATED }
}

const fn post(path: &'static str, operation: &'static str) -> Route {
    Route { method: Method::POST, path, operation, status: StatusCode::OK }
}

const fn patch(path: &'static str, operation: &'static str) -> Route {
    Route { method: Method::PATCH, path, operation, status: StatusCode::OK }
}

const fn put(path: &'static str, operation: &'static str) -> Route {
    Route { method: Method::PUT, path, operation, status: StatusCode::OK }
}

const fn delete(path: &'static str, operation: &'static str) -> Route {
    Route { method: Method::DELETE, path, operation, status: StatusCode::OK }
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
];

/// The stored documents, one file per resource.
const DOCUMENTS: &[(&str, &str)] = &[
    ("agents", include_str!("../../../schema/rest/agents.graphql")),
    ("approvals", include_str!("../../../schema/rest/approvals.graphql")),
    ("channels", include_str!("../../../schema/rest/channels.graphql")),
    ("conversations", include_str!("../../../schema/rest/conversations.graphql")),
    ("credentials", include_str!("../../../schema/rest/credentials.graphql")),
    ("mcp", include_str!("../../../schema/rest/mcp.graphql")),
    ("organizations", include_str!("../../../schema/rest/organizations.graphql")),
    ("servers", include_str!("../../../schema/rest/servers.graphql")),
    ("skills", include_str!("../../../schema/rest/skills.graphql")),
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
