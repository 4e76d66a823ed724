//! The schema's input objects. Edits take them as they are.

use async_graphql::{InputObject, MaybeUndefined};

use crate::{
    base::enums::{McpTransport, McpWorkspace},
    resolvers::bounds::{bounds, length, list, name, not_null, range},
};

/// A new MCP server.
#[derive(InputObject)]
pub struct CreateMcpServerInput {
    /// The name, unique in the organization.
    #[graphql(directive = bounds::apply(name(80)))]
    pub name: String,
    /// A description for people.
    #[graphql(directive = bounds::apply(length(0, 2000)))]
    pub description: Option<String>,
    /// The transport used to reach it.
    pub transport: McpTransport,
    /// The command to run. Required for STDIO, not allowed otherwise.
    #[graphql(directive = bounds::apply(name(1000)))]
    pub command: Option<String>,
    /// The command's arguments.
    #[graphql(directive = bounds::apply(list(100, length(0, 4000))))]
    pub args: Option<Vec<String>>,
    /// Its URL. Required for HTTP and SSE, not allowed for STDIO.
    #[graphql(directive = bounds::apply(length(1, 2000)))]
    pub url: Option<String>,
    /// The names of the secrets it needs.
    #[graphql(directive = bounds::apply(list(50, name(120))))]
    pub auth: Option<Vec<String>>,
    /// Its access to its agent's home. Defaults to NONE.
    pub workspace: Option<McpWorkspace>,
}

/// Changes to an MCP server. Fields left out keep their value; null clears an optional field.
#[derive(InputObject, Default)]
pub struct UpdateMcpServerInput {
    /// The name, unique in the organization.
    #[graphql(directive = bounds::apply(name(80).not_null()))]
    pub name: MaybeUndefined<String>,
    /// A description for people.
    #[graphql(directive = bounds::apply(length(0, 2000)))]
    pub description: MaybeUndefined<String>,
    /// The transport used to reach it. When you change it, clear the fields of the old one.
    #[graphql(directive = bounds::apply(not_null()))]
    pub transport: MaybeUndefined<McpTransport>,
    /// The command to run, for STDIO.
    #[graphql(directive = bounds::apply(name(1000)))]
    pub command: MaybeUndefined<String>,
    /// The command's arguments. Replaces the whole list.
    #[graphql(directive = bounds::apply(list(100, length(0, 4000)).not_null()))]
    pub args: MaybeUndefined<Vec<String>>,
    /// Its URL, for HTTP and SSE.
    #[graphql(directive = bounds::apply(length(1, 2000)))]
    pub url: MaybeUndefined<String>,
    /// The names of the secrets it needs. Replaces the whole list.
    #[graphql(directive = bounds::apply(list(50, name(120)).not_null()))]
    pub auth: MaybeUndefined<Vec<String>>,
    /// Its access to its agent's home.
    #[graphql(directive = bounds::apply(not_null()))]
    pub workspace: MaybeUndefined<McpWorkspace>,
}

/// Changes to a tool of an MCP server. Fields left out keep their value; null clears the risk.
#[derive(InputObject, Default)]
pub struct McpServerToolInput {
    /// Whether agents may use it.
    #[graphql(directive = bounds::apply(not_null()))]
    pub enabled: MaybeUndefined<bool>,
    /// The risk of its calls, from 0 to 100, instead of the risk rules'.
    #[graphql(directive = bounds::apply(range(0, 100)))]
    pub risk: MaybeUndefined<i64>,
}
