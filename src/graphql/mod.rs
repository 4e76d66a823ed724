//! The schema: assembled from the slices, and the machinery that every root field goes through.
//!
//! - [`record`]: how stored things are read and written as JSON.
//! - `permit`, `bounds`: directives that say who may call a field and what values it takes.
//! - `context`: [`Enter::enter`], the one door into an organization.
//! - `documents`, `limits`: what is kept of documents, and what they may ask for; `validation`, with `literals` and
//!   `conflicts`, what is valid; `execution`, what of it a request executes, by `selection`s.
//! - `room`: how large answers may be; `introspection`: what the schema says about itself.
//! - `http`: the endpoint; `live`: subscriptions.

pub mod bounds;
mod catalogue;
mod conflicts;
mod context;
mod documents;
mod execution;
pub mod http;
mod introspection;
mod limits;
mod literals;
mod live;
mod observe;
pub mod permit;
pub mod record;
mod render;
mod room;
pub mod secret;
mod selection;
pub mod validate;
mod validation;

use async_graphql::{MergedObject, MergedSubscription, Schema, SchemaBuilder};
pub use catalogue::{Catalogue, RootField, values_of_scalar};
pub use context::{ContextExt, Enter, Request, authorize};
pub use documents::{Document, Documents};
use futures::FutureExt;
pub use introspection::Introspection;
pub use live::{RECHECK, watch};
pub use permit::Permit;
pub use render::{problem_of, render, show, write_value};
pub use room::{Room, Share};
pub use secret::{SecretText, without_secrets};

use crate::{config::Config, error::Result};

/// Everything that can be read.
#[derive(MergedObject, Default)]
pub struct Query(
    crate::orgs::graphql::OrganizationQuery,
    crate::people::graphql::PeopleQuery,
    crate::people::account::AccountQuery,
    crate::people::oidc::OidcQuery,
    crate::servers::graphql::ServerQuery,
    crate::agents::graphql::AgentQuery,
    crate::channels::graphql::ChannelQuery,
    crate::channels::contacts::graphql::ContactQuery,
    crate::approvals::graphql::ApprovalQuery,
    crate::credentials::graphql::CredentialQuery,
    crate::mcp::graphql::McpQuery,
    crate::audit::graphql::AuditQuery,
    crate::skills::graphql::SkillQuery,
    crate::conversations::graphql::ConversationQuery,
    crate::policies::graphql::PolicyQuery,
);

/// Everything that can be changed.
#[derive(MergedObject, Default)]
pub struct Mutation(
    crate::orgs::graphql::OrganizationMutation,
    crate::people::graphql::PeopleMutation,
    crate::people::account::AccountMutation,
    crate::people::own::OwnMutation,
    crate::people::oidc::OidcMutation,
    crate::servers::graphql::ServerMutation,
    crate::agents::graphql::AgentMutation,
    crate::channels::graphql::ChannelMutation,
    crate::channels::contacts::graphql::ContactMutation,
    crate::approvals::graphql::ApprovalMutation,
    crate::credentials::graphql::CredentialMutation,
    crate::mcp::graphql::McpMutation,
    crate::skills::graphql::SkillMutation,
    crate::avatars::graphql::AvatarMutation,
    crate::conversations::graphql::ConversationMutation,
    crate::policies::graphql::PolicyMutation,
);

/// Everything that can be watched.
#[derive(MergedSubscription, Default)]
pub struct Subscription(
    crate::agents::graphql::AgentSubscription,
    crate::approvals::graphql::ApprovalSubscription,
    crate::conversations::graphql::ConversationSubscription,
);

/// The schema of the service.
pub type MusterSchema = Schema<Query, Mutation, Subscription>;

/// Builds the schema. `config` bounds what one request may ask for.
#[must_use]
pub fn build(config: &Config) -> MusterSchema {
    let builder = blueprint()
        .extension(validation::KeepValidation)
        .limit_complexity(config.limits.graphql_complexity)
        .limit_directives(10);
    let observed = config.metrics.listen.is_some() || config.traces.endpoint.is_some();
    let builder = if observed { builder.extension(observe::Observe) } else { builder };
    if config.introspection { builder.finish() } else { builder.disable_introspection().finish() }
}

/// The schema before its limits: what the SDL is made from.
#[must_use]
pub fn blueprint() -> SchemaBuilder<Query, Mutation, Subscription> {
    Schema::build(Query::default(), Mutation::default(), Subscription::default())
}

/// The schema in the definition language, sorted, with the directives that say who may call what.
#[must_use]
pub fn sdl() -> String {
    let options =
        async_graphql::SDLExportOptions::new().sorted_fields().sorted_arguments().sorted_enum_items();
    let mut sdl = blueprint().finish().sdl_with_options(options);
    if !sdl.ends_with('\n') {
        sdl.push('\n');
    }
    sdl
}

/// The answer of a root field: a failure nulls this field and leaves the others of the request alone.
pub type Answer<T> = Option<Result<T>>;

/// Runs a root field's steps.
///
/// ```ignore
/// answer(async {
///     let scope = ctx.enter(org_id).await?;
///     Ok(One::by_id(&scope, id))
/// })
/// .await
/// ```
///
/// The steps get a place of their own: the executor holds one future that is as large as the largest root field's, and
/// moves it several times a request.
pub fn answer<'a, T: Send + 'a>(
    steps: impl Future<Output = Result<T>> + Send + 'a,
) -> impl Future<Output = Answer<T>> + Send + 'a {
    steps.boxed().map(Some)
}
