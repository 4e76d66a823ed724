//! The schema: one file or folder per feature, with its objects, root fields and lists.
//!
//! A stored object is a [`Record`](crate::read::Record): its spec says where its rows are, so that reading needs no
//! code of the feature. Everything else calls the feature, which knows nothing of the schema. Objects refer to each
//! other freely.

mod agents;
mod approvals;
mod audit;
mod avatars;
mod backups;
pub mod changes;
mod channels;
mod chat_approvals;
mod contacts;
mod conversations;
mod credentials;
mod dashboard;
mod deliveries;
mod erasures;
mod event_endpoints;
mod hosts;
mod logs;
mod mcp_servers;
mod model_credentials;
mod network;
mod notifications;
mod orgs;
mod people;
mod policies;
mod rights;
mod search;
mod servers;
mod service_tokens;
mod skills;
mod spending;
mod turns;

use async_graphql::{
    MergedObject, MergedSubscription, OutputType, Schema, SchemaBuilder, SubscriptionType, registry::Registry,
};

use crate::resolvers::Catalogue;

/// More queries. A group of their own, because the compiler nests the types of one group.
#[derive(MergedObject, Default)]
pub struct MoreQueries(
    audit::AuditQuery,
    policies::PolicyQuery,
    policies::PermissionQuery,
    spending::SpendingQuery,
    dashboard::DashboardQuery,
    search::SearchQuery,
    backups::BackupQuery,
    chat_approvals::LinkedChatQuery,
    event_endpoints::EventEndpointQuery,
);

/// All queries.
#[derive(MergedObject, Default)]
pub struct Query(
    orgs::OrganizationQuery,
    people::MembershipQuery,
    people::SessionQuery,
    people::OidcQuery,
    service_tokens::ServiceTokenQuery,
    servers::ServerQuery,
    agents::AgentQuery,
    channels::ChannelQuery,
    contacts::ContactQuery,
    approvals::ApprovalQuery,
    notifications::NotificationQuery,
    credentials::CredentialQuery,
    mcp_servers::McpQuery,
    MoreQueries,
    skills::SkillQuery,
    conversations::ConversationQuery,
    turns::TurnQuery,
);

/// More mutations, in a group of their own for the same reason.
#[derive(MergedObject, Default)]
pub struct MoreMutations(
    model_credentials::ModelCredentialMutation,
    network::NetworkMutation,
    spending::SpendingMutation,
    backups::BackupMutation,
    deliveries::DeliveryMutation,
    chat_approvals::LinkedChatMutation,
    event_endpoints::EventEndpointMutation,
    rights::ErasureMutation,
);

/// All mutations.
#[derive(MergedObject, Default)]
pub struct Mutation(
    orgs::OrganizationMutation,
    people::MembershipMutation,
    people::SessionMutation,
    people::AccountMutation,
    people::OidcMutation,
    service_tokens::ServiceTokenMutation,
    servers::ServerMutation,
    agents::AgentMutation,
    channels::ChannelMutation,
    contacts::ContactMutation,
    approvals::ApprovalMutation,
    notifications::NotificationMutation,
    credentials::CredentialMutation,
    mcp_servers::McpMutation,
    skills::SkillMutation,
    avatars::AvatarMutation,
    conversations::ConversationMutation,
    turns::TurnMutation,
    policies::PolicyMutation,
    MoreMutations,
);

/// All subscriptions.
#[derive(MergedSubscription, Default)]
pub struct Subscription(
    agents::AgentSubscription,
    approvals::ApprovalSubscription,
    conversations::ConversationSubscription,
    hosts::DeltaSubscription,
    logs::LogSubscription,
    turns::TurnSubscription,
    changes::ChangeSubscription,
);

/// The schema of the service.
pub type MusterSchema = Schema<Query, Mutation, Subscription>;

/// The schema's metadata.
///
/// # Errors
/// An error that names the root fields without a permit, or the names that two roots use.
pub fn catalogue() -> anyhow::Result<Catalogue> {
    let mut registry = Registry::default();
    Query::create_type_info(&mut registry);
    Mutation::create_type_info(&mut registry);
    Subscription::create_type_info(&mut registry);
    Catalogue::read(registry)
}

/// The schema without limits, as used for the SDL.
#[must_use]
pub fn schema_builder() -> SchemaBuilder<Query, Mutation, Subscription> {
    Schema::build(Query::default(), Mutation::default(), Subscription::default())
}

/// The schema in SDL, sorted, with its directives for permissions and bounds.
#[must_use]
pub fn sdl() -> String {
    let options =
        async_graphql::SDLExportOptions::new().sorted_fields().sorted_arguments().sorted_enum_items();
    let mut sdl = schema_builder().finish().sdl_with_options(options);
    if !sdl.ends_with('\n') {
        sdl.push('\n');
    }
    sdl
}
