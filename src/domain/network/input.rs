//! The schema's input objects.

use async_graphql::InputObject;

use crate::{
    base::ids::ApprovalId,
    resolvers::bounds::{bounds, length, range},
};

/// A host to allow.
#[derive(InputObject)]
pub struct AllowHostInput {
    /// A name such as `api.example.com`, or `*.` and a name of at least two labels. Never an IP address.
    #[graphql(directive = bounds::apply(length(1, 253)))]
    pub host: String,
    /// The port.
    #[graphql(default = 443, directive = bounds::apply(range(1, 65_535)))]
    pub port: i64,
    /// The agent's request for this host, which is approved with it. Needs the permission `approval.resolve` as well.
    pub approval_id: Option<ApprovalId>,
}
