//! `permissions`: all permissions in words. Their operations are read from the schema itself.

use async_graphql::{Context, Object, SimpleObject};

use crate::{
    base::permission::Permission,
    core::access::Permit,
    read::ContextExt,
    resolvers::{Answer, Catalogue, Enter, answer, permit::open},
};

/// A permission, with its meaning.
#[derive(SimpleObject)]
pub struct PermissionInfo {
    /// The permission.
    pub permission: Permission,
    /// The heading of its group.
    pub group: String,
    /// What it allows, in a sentence.
    pub meaning: String,
    /// The root fields that need it.
    pub operations: Vec<String>,
    /// Whether a service token may have it, by the policy for all organizations.
    pub for_service_tokens: bool,
}

#[derive(Default)]
pub struct PermissionQuery;

#[Object]
impl PermissionQuery {
    /// All permissions, with their meaning.
    #[graphql(directive = open::apply("SIGNED_IN"))]
    async fn permissions(&self, ctx: &Context<'_>) -> Answer<Vec<PermissionInfo>> {
        answer(async {
            ctx.admit()?;
            let for_tokens = ctx.request().core.policy.token_cap();
            let catalogue = ctx.data_unchecked::<std::sync::Arc<Catalogue>>();
            let info = |permission: Permission| PermissionInfo {
                permission,
                group: permission.group().to_owned(),
                meaning: permission.describe().to_owned(),
                operations: operations(catalogue, permission),
                for_service_tokens: for_tokens.contains(permission),
            };
            Ok(Permission::ALL.into_iter().map(info).collect())
        })
        .await
    }
}

/// The root fields that declare the permission, sorted.
fn operations(catalogue: &Catalogue, permission: Permission) -> Vec<String> {
    let needs =
        |permit| matches!(permit, Permit::InOrganization { permission: needed, .. } if needed == permission);
    let fields = catalogue.root_fields().filter(|root| needs(root.permit));
    let mut names: Vec<String> = fields.map(|root| root.field.name.clone()).collect();
    names.sort_unstable();
    names
}
