//! What is set: the input objects of the schema, which edits take as they are.

use async_graphql::{InputObject, MaybeUndefined};

use crate::{
    base::enums::McpTransport,
    fields::bounds::{bounds, length, list, name, not_null},
};

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
#[derive(InputObject, Default)]
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
