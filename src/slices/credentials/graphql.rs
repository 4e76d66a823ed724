//! Credentials in the schema. No field of theirs answers with a value.

use std::sync::LazyLock;

use async_graphql::{Context, Object};

use super::{CreateCredentialInput, SetMembersInput, UpdateCredentialInput};
use crate::{
    base::{
        enums::{CredentialKind, FieldType},
        ids::{CredentialFieldId, CredentialId, OrgId, UserId},
        permission::Permission,
        time::Timestamp,
    },
    fields::{
        Answer, Enter, answer,
        bounds::{bounds, from, range},
        permit::permit,
    },
    read::{Many, One, Page, Record, Rows, Spec},
    slices::{
        agents::graphql::{AgentAssignment, AgentSummary, SetAgentsInput, assigned, assignment_count},
        people::graphql::USER_AVATAR_URL,
    },
};

/// The agents that are given a credential.
const AGENTS: &str =
    "credential_agents j JOIN agents t ON t.organization_id = j.organization_id AND t.id = j.agent_id";

/// A credential.
pub struct Credential;

impl Record for Credential {
    fn spec() -> &'static Spec {
        static SPEC: LazyLock<Spec> = LazyLock::new(|| {
            let spec = Spec::new("Credential", "credentials t", "A credential: a named set of secrets.")
                .permission(Permission::CredentialView)
                .viewer_can(|scope| scope.can(&["credential"]))
                .column::<CredentialId>("id", "Identifies the credential.")
                .column::<String>("name", "The name, unique in the organization.")
                .column::<Option<String>>("description", "For people.")
                .column::<CredentialKind>("kind", "What it is.")
                .column::<Vec<String>>("destinations", "Hosts or addresses that it may be used for.")
                .sql::<i64>(
                    "assignment_count",
                    assignment_count("credential_agents", "credential_id"),
                    "How many agents are given it.",
                )
                .sql::<i64>(
                    "field_count",
                    "(SELECT COUNT(*) FROM credential_fields f \
                     WHERE f.organization_id = t.organization_id AND f.credential_id = t.id)",
                    "How many fields it has.",
                )
                .column::<Option<UserId>>("created_by", "Who created it.")
                .column::<Timestamp>("created_at", "When it was created.")
                .column::<Timestamp>("updated_at", "When its record last changed.")
                .column::<Option<Timestamp>>("archived_at", "Since when it is archived.");
            relations(spec)
        });
        &SPEC
    }
}

fn relations(spec: Spec) -> Spec {
    spec.many::<AgentSummary>("agents", assigned(AGENTS, "j.credential_id"), "The agents that are given it.")
        .many::<CredentialField>(
            "fields",
            Many { by: "t.credential_id", order: "t.position, t.id", ..Many::default() },
            "Its fields, without their values.",
        )
        .many::<AgentAssignment>(
            "assignments",
            assigned(AGENTS, "j.credential_id"),
            "The agents that are given it, and since when.",
        )
        .many::<CredentialMember>(
            "members",
            Many { by: "t.credential_id", order: "t.user_id", ..Many::default() },
            "The members who may use it.",
        )
}

/// A field of a credential.
pub struct CredentialField;

impl Record for CredentialField {
    fn spec() -> &'static Spec {
        static SPEC: LazyLock<Spec> = LazyLock::new(|| {
            Spec::new("CredentialField", "credential_fields t", "A field of a credential: a secret.")
                .column::<CredentialFieldId>("id", "Identifies the field.")
                .column::<String>("label", "What it is called; unique in the credential.")
                .column::<FieldType>("type", "What it holds.")
                .column::<i64>("position", "Where it stands among the others.")
                .sql::<bool>("has_value", "(t.value_sealed IS NOT NULL)", "Whether it has a value.")
        });
        &SPEC
    }
}

/// A member who may use a credential.
pub struct CredentialMember;

impl Record for CredentialMember {
    fn spec() -> &'static Spec {
        static SPEC: LazyLock<Spec> = LazyLock::new(|| {
            Spec::new(
                "CredentialMember",
                "credential_members t JOIN users u ON u.id = t.user_id",
                "A member who may use a credential.",
            )
            .column::<UserId>("user_id", "Identifies the person.")
            .sql::<String>("name", "u.name", "The person's name.")
            .sql::<String>("email", "u.email", "The person's e-mail address.")
            .sql::<Option<String>>("avatar_url", USER_AVATAR_URL, "The person's picture: a path.")
            .column::<Timestamp>("granted_at", "Since when the person may use it.")
        });
        &SPEC
    }
}

/// Reading credentials.
#[derive(Default)]
pub struct CredentialQuery;

#[Object]
impl CredentialQuery {
    /// The organization's credentials, by id.
    #[graphql(directive = permit::apply(Permission::CredentialView))]
    async fn credentials(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        #[graphql(directive = bounds::apply(from(1)))] page: i64,
        #[graphql(directive = bounds::apply(range(1, 200)))] limit: i64,
        #[graphql(desc = "Whether archived credentials are listed as well.", default_with = "Some(false)")]
        include_archived: Option<bool>,
    ) -> Answer<Page<Credential>> {
        answer(async {
            let rows = Rows::of(&ctx.enter(org_id).await?).unless_archived(include_archived == Some(true));
            Ok(Page::numbered(rows.order_by("t.id"), page, limit))
        })
        .await
    }

    /// One credential, archived or not.
    #[graphql(directive = permit::apply(Permission::CredentialView))]
    async fn credential(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        id: CredentialId,
    ) -> Answer<One<Credential>> {
        answer(async { Ok(One::by_id(&ctx.enter(org_id).await?, id)) }).await
    }
}

/// Changing credentials.
#[derive(Default)]
pub struct CredentialMutation;

#[Object]
impl CredentialMutation {
    /// Creates a credential; no agent is given it yet.
    #[graphql(directive = permit::apply(Permission::CredentialEdit))]
    async fn create_credential(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        input: CreateCredentialInput,
    ) -> Answer<One<Credential>> {
        answer(async {
            let scope = ctx.enter(org_id).await?;
            let id = super::create(&scope, input).await?;
            Ok(One::by_id(&scope, id))
        })
        .await
    }

    /// Edits a credential; assigned agents are told.
    #[graphql(directive = permit::apply(Permission::CredentialEdit))]
    async fn update_credential(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        id: CredentialId,
        input: UpdateCredentialInput,
    ) -> Answer<One<Credential>> {
        answer(async {
            let scope = ctx.enter(org_id).await?;
            super::update(&scope, id, input).await?;
            Ok(One::by_id(&scope, id))
        })
        .await
    }

    /// Sets the agents that are given a credential: those not named lose it. An unknown one refuses the whole.
    #[graphql(directive = permit::apply(Permission::CredentialEdit))]
    async fn set_credential_agents(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        id: CredentialId,
        input: SetAgentsInput,
    ) -> Answer<One<Credential>> {
        answer(async {
            let scope = ctx.enter(org_id).await?;
            super::set_agents(&scope, id, &input.agent_ids).await?;
            Ok(One::by_id(&scope, id))
        })
        .await
    }

    /// Sets the members who may use a credential: those not named lose it. Somebody who is no member refuses the whole.
    #[graphql(directive = permit::apply(Permission::CredentialEdit))]
    async fn set_credential_members(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        id: CredentialId,
        input: SetMembersInput,
    ) -> Answer<One<Credential>> {
        answer(async {
            let scope = ctx.enter(org_id).await?;
            super::set_members(&scope, id, &input.user_ids).await?;
            Ok(One::by_id(&scope, id))
        })
        .await
    }

    /// Archives a credential: it is hidden, and assigned agents lose it at once. Assignments are kept.
    #[graphql(directive = permit::apply(Permission::CredentialDelete))]
    async fn archive_credential(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        id: CredentialId,
    ) -> Answer<One<Credential>> {
        answer(async {
            let scope = ctx.enter(org_id).await?;
            super::archive(&scope, id).await?;
            Ok(One::by_id(&scope, id))
        })
        .await
    }

    /// Restores an archived credential: assigned agents regain it at once.
    #[graphql(directive = permit::apply(Permission::CredentialEdit))]
    async fn unarchive_credential(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        id: CredentialId,
    ) -> Answer<One<Credential>> {
        answer(async {
            let scope = ctx.enter(org_id).await?;
            super::restore(&scope, id).await?;
            Ok(One::by_id(&scope, id))
        })
        .await
    }
}
