//! The schema: the root fields of all slices.

use async_graphql::{
    MergedObject, MergedSubscription, OutputType, Schema, SchemaBuilder, SubscriptionType, registry::Registry,
};

use crate::fields::Catalogue;

/// Queries of those who look for something. A group of their own, because the compiler nests what is merged in a row.
#[derive(MergedObject, Default)]
pub struct Looking(
    crate::slices::audit::AuditQuery,
    crate::slices::policies::graphql::PolicyQuery,
    crate::slices::policies::permissions::PermissionQuery,
    crate::slices::spending::graphql::SpendingQuery,
    crate::slices::finding::graphql::FindingQuery,
    crate::slices::backups::graphql::BackupQuery,
    crate::slices::asks::graphql::AskQuery,
);

/// All queries.
#[derive(MergedObject, Default)]
pub struct Query(
    crate::slices::orgs::graphql::OrganizationQuery,
    crate::slices::people::graphql::MembershipQuery,
    crate::slices::people::session::SessionQuery,
    crate::slices::people::oidc::OidcQuery,
    crate::slices::service_tokens::graphql::ServiceTokenQuery,
    crate::slices::servers::graphql::ServerQuery,
    crate::slices::agents::graphql::AgentQuery,
    crate::slices::channels::graphql::ChannelQuery,
    crate::slices::channels::contacts::graphql::ContactQuery,
    crate::slices::approvals::graphql::ApprovalQuery,
    crate::slices::notifications::graphql::NotificationQuery,
    crate::slices::credentials::graphql::CredentialQuery,
    crate::slices::mcp_servers::graphql::McpQuery,
    Looking,
    crate::slices::skills::graphql::SkillQuery,
    crate::slices::conversations::graphql::ConversationQuery,
    crate::slices::turns::graphql::TurnQuery,
);

/// Mutations of what contains agents.
#[derive(MergedObject, Default)]
pub struct Containing(
    crate::slices::model_credentials::graphql::ModelCredentialMutation,
    crate::slices::network::graphql::NetworkMutation,
    crate::slices::spending::graphql::SpendingMutation,
    crate::slices::backups::graphql::BackupMutation,
    crate::slices::deliveries::graphql::DeliveryMutation,
    crate::slices::asks::graphql::AskMutation,
);

/// All mutations.
#[derive(MergedObject, Default)]
pub struct Mutation(
    crate::slices::orgs::graphql::OrganizationMutation,
    crate::slices::people::graphql::MembershipMutation,
    crate::slices::people::session::SessionMutation,
    crate::slices::people::account::AccountMutation,
    crate::slices::people::oidc::OidcMutation,
    crate::slices::service_tokens::graphql::ServiceTokenMutation,
    crate::slices::servers::graphql::ServerMutation,
    crate::slices::agents::graphql::AgentMutation,
    crate::slices::channels::graphql::ChannelMutation,
    crate::slices::channels::contacts::graphql::ContactMutation,
    crate::slices::approvals::graphql::ApprovalMutation,
    crate::slices::notifications::graphql::NotificationMutation,
    crate::slices::credentials::graphql::CredentialMutation,
    crate::slices::mcp_servers::graphql::McpMutation,
    crate::slices::skills::graphql::SkillMutation,
    crate::slices::avatars::graphql::AvatarMutation,
    crate::slices::conversations::graphql::ConversationMutation,
    crate::slices::turns::graphql::TurnMutation,
    crate::slices::policies::graphql::PolicyMutation,
    Containing,
);

/// All subscriptions.
#[derive(MergedSubscription, Default)]
pub struct Subscription(
    crate::slices::agents::graphql::AgentSubscription,
    crate::slices::approvals::graphql::ApprovalSubscription,
    crate::slices::conversations::graphql::ConversationSubscription,
    crate::slices::hosts::graphql::DeltaSubscription,
    crate::slices::turns::graphql::TurnSubscription,
    crate::slices::changes::ChangeSubscription,
);

/// The schema of the service.
pub type MusterSchema = Schema<Query, Mutation, Subscription>;

/// The schema's metadata.
///
/// # Errors
/// Names root fields without a permit, and names used by two roots.
pub fn catalogue() -> anyhow::Result<Catalogue> {
    let mut registry = Registry::default();
    Query::create_type_info(&mut registry);
    Mutation::create_type_info(&mut registry);
    Subscription::create_type_info(&mut registry);
    Catalogue::of(registry)
}

/// The schema without limits, as used for the SDL.
#[must_use]
pub fn blueprint() -> SchemaBuilder<Query, Mutation, Subscription> {
    Schema::build(Query::default(), Mutation::default(), Subscription::default())
}

/// The schema in SDL, sorted, with the directives that say who may call what.
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
