//! Model credentials in the GraphQL schema. No field returns a secret value.

use std::sync::LazyLock;

use async_graphql::{Context, Object};

use crate::{
    base::{
        enums::{ModelCredentialType, RecordKind},
        ids::{ModelCredentialId, OrgId, UserId},
        permission::Permission,
        time::Timestamp,
    },
    domain::model_credentials::{self, CreateModelCredentialInput, UpdateModelCredentialInput},
    read::{One, Record, Spec},
    resolvers::{Answer, Enter, answer, permit::permit},
};

pub struct ModelCredential;

impl Record for ModelCredential {
    fn spec() -> &'static Spec {
        static SPEC: LazyLock<Spec> = LazyLock::new(|| {
            let about = "A model credential of the organization: agents use their provider's default one unless they have their own.";
            Spec::new("ModelCredential", "model_credentials t", about)
                .permission(Permission::OrganizationView)
                .column::<ModelCredentialId>("id", "Identifies the model credential.")
                .revision(RecordKind::ModelCredential)
                .column::<String>("name", "The name, unique in the organization.")
                .column::<String>("provider", "The provider, in lower case.")
                .column::<Option<String>>("base_url", "The base URL of the model's API. Null: the provider's own.")
                .column::<ModelCredentialType>("type", "How it authenticates.")
                .sql::<bool>("has_secret", "(t.secret_sealed IS NOT NULL)", "Whether it has a secret.")
                .column::<bool>("is_default", "Whether agents of this provider inherit it.")
                .column::<Option<Timestamp>>(
                    "limited_until",
                    "The time until which the provider accepts no requests. Turns wait; then one is tried, and the others follow. Null: it accepts requests.",
                )
                .column::<Option<String>>("limit_detail", "The provider's own words about it.")
                .column::<Option<Timestamp>>("auth_failed_at", "When the provider last rejected it.")
                .column::<Option<UserId>>("created_by", "The user who created it.")
                .column::<Timestamp>("created_at", "When it was created.")
                .column::<Timestamp>("updated_at", "When it was last updated.")
                .column::<Option<Timestamp>>("archived_at", "When it was archived.")
        });
        &SPEC
    }
}

#[derive(Default)]
pub struct ModelCredentialMutation;

#[Object]
impl ModelCredentialMutation {
    /// Creates a model credential.
    #[graphql(directive = permit::apply(Permission::OrganizationEdit))]
    async fn create_model_credential(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        input: CreateModelCredentialInput,
    ) -> Answer<One<ModelCredential>> {
        answer(async {
            let scope = ctx.enter(org_id).await?;
            let id = model_credentials::create(&scope, input).await?;
            Ok(One::by_id(&scope, id))
        })
        .await
    }

    /// Edits a model credential. Running agents that use it are updated.
    #[graphql(directive = permit::apply(Permission::OrganizationEdit))]
    async fn update_model_credential(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        id: ModelCredentialId,
        input: UpdateModelCredentialInput,
        #[graphql(desc = "The revision that the edit was made from. CONFLICT if there is a newer one.")]
        if_revision: Option<i64>,
    ) -> Answer<One<ModelCredential>> {
        answer(async {
            let scope = ctx.enter(org_id).await?;
            let edited = scope.if_revision(RecordKind::ModelCredential, id, if_revision);
            let done = model_credentials::update(&edited, id, input).await;
            One::after(&scope, id, Permission::OrganizationView, done)
        })
        .await
    }

    /// Archives a model credential for good: its secret is deleted. Agents that inherit it have none, or the provider's new
    /// default.
    #[graphql(directive = permit::apply(Permission::OrganizationEdit))]
    async fn archive_model_credential(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        id: ModelCredentialId,
    ) -> Answer<One<ModelCredential>> {
        answer(async {
            let scope = ctx.enter(org_id).await?;
            model_credentials::archive(&scope, id).await?;
            Ok(One::by_id(&scope, id))
        })
        .await
    }
}
