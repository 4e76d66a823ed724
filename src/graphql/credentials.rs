//! Credentials in the GraphQL schema. No field returns a secret value.

use std::sync::LazyLock;

use async_graphql::{Context, Object};

use super::{
    agents::{AgentAssignment, AgentSummary, assigned, assignment_count},
    people::USER_AVATAR_URL,
};
use crate::{
    base::{
        enums::{CredentialKind, FieldType, ListSort, RecordKind},
        ids::{CredentialFieldId, CredentialId, OrgId, UserId},
        permission::Permission,
        time::Timestamp,
    },
    domain::{
        agents::SetAgentsInput,
        credentials::{self, CreateCredentialInput, SetMembersInput, UpdateCredentialInput},
    },
    read::{Many, One, Page, Record, Rows, Spec},
    resolvers::{
        Answer, Enter, answer,
        bounds::{at_least, bounds, length, range},
        permit::permit,
    },
};

/// The agents that may use a credential.
const AGENTS: &str =
    "credential_agents j JOIN agents t ON t.organization_id = j.organization_id AND t.id = j.agent_id";

/// Whether a destination is an http or https URL.
const IS_INJECTED: &str = "((lower(CAST(t.destinations AS TEXT)) LIKE '%\"http://%' OR lower(CAST(t.destinations AS TEXT)) LIKE '%\"https://%') \
    AND t.kind IN ('api-key', 'bearer-token', 'basic-auth', 'custom') AND EXISTS (SELECT 1 FROM credential_fields f \
    WHERE f.organization_id = t.organization_id AND f.credential_id = t.id AND f.value_sealed IS NOT NULL))";

pub struct Credential;

impl Record for Credential {
    fn spec() -> &'static Spec {
        static SPEC: LazyLock<Spec> = LazyLock::new(|| {
            let spec = Spec::new("Credential", "credentials t", "A credential: a named set of secrets.")
                .permission(Permission::CredentialView)
                .viewer_can(|scope| scope.permissions_json(&["credential"]))
                .column::<CredentialId>("id", "Identifies the credential.")
                .revision(RecordKind::Credential)
                .column::<String>("name", "The name, unique in the organization.")
                .column::<Option<String>>("description", "A description for people.")
                .column::<CredentialKind>("kind", "The kind of credential.")
                .column::<Vec<String>>("destinations", "The hosts or URLs it may be used for.")
                .sql::<bool>(
                    "is_injected",
                    IS_INJECTED,
                    "Whether the host adds it to requests for its http and https destinations, so that agents use it \
                     without holding it: it has one, a value, and a kind that is sent in a header.",
                )
                .sql::<bool>(
                    "agent_may_read",
                    "(t.agent_may_read_at IS NOT NULL)",
                    "Whether agents may read its values, as variables of their environment and as files.",
                )
                .column::<Option<Timestamp>>("agent_may_read_at", "When a person allowed it.")
                .column::<Option<UserId>>("agent_may_read_by", "The person who allowed it.")
                .column::<Option<String>>("agent_may_read_by_name", "That person's name at the time.")
                .column::<Option<Timestamp>>(
                    "last_used_at",
                    "When a host last added it to an agent's request or used it for an MCP server, or when an agent that may \
                     read it was last given it. Accurate to the hour.",
                )
                .sql::<i64>(
                    "assignment_count",
                    assignment_count("credential_agents", "credential_id"),
                    "The number of agents that may use it.",
                )
                .sql::<i64>(
                    "field_count",
                    "(SELECT COUNT(*) FROM credential_fields f \
                     WHERE f.organization_id = t.organization_id AND f.credential_id = t.id)",
                    "The number of fields.",
                )
                .column::<Option<UserId>>("created_by", "The user who created it.")
                .column::<Timestamp>("created_at", "When it was created.")
                .column::<Timestamp>("updated_at", "When it was last updated.")
                .column::<Option<Timestamp>>("archived_at", "When it was archived.");
            relations(spec)
        });
        &SPEC
    }
}

fn relations(spec: Spec) -> Spec {
    spec.many::<AgentSummary>("agents", assigned(AGENTS, "j.credential_id"), "The agents that may use it.")
        .many::<CredentialField>(
            "fields",
            Many { by: "t.credential_id", order: "t.position, t.id", ..Many::default() },
            "Its fields, without values.",
        )
        .many::<AgentAssignment>(
            "assignments",
            assigned(AGENTS, "j.credential_id"),
            "The agents that may use it, with the time each was assigned.",
        )
        .many::<CredentialMember>(
            "members",
            Many { by: "t.credential_id", order: "t.user_id", ..Many::default() },
            "The members who may use it.",
        )
}

pub struct CredentialField;

impl Record for CredentialField {
    fn spec() -> &'static Spec {
        static SPEC: LazyLock<Spec> = LazyLock::new(|| {
            Spec::new("CredentialField", "credential_fields t", "A field of a credential: a secret.")
                .column::<CredentialFieldId>("id", "Identifies the field.")
                .column::<String>("label", "The label, unique in the credential.")
                .column::<FieldType>("type", "The kind of content.")
                .column::<i64>("position", "Its position among the fields.")
                .sql::<bool>("has_value", "(t.value_sealed IS NOT NULL)", "Whether it has a value.")
        });
        &SPEC
    }
}

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
            .sql::<Option<String>>("avatar_url", USER_AVATAR_URL, "The path of the person's picture.")
            .column::<Timestamp>("granted_at", "When the person was granted access.")
        });
        &SPEC
    }
}

#[derive(Default)]
pub struct CredentialQuery;

#[Object]
impl CredentialQuery {
    /// The organization's credentials
    #[graphql(directive = permit::apply(Permission::CredentialView))]
    #[expect(clippy::too_many_arguments, reason = "each is a separate filter in the schema")]
    async fn credentials(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        #[graphql(directive = bounds::apply(at_least(1)))] page: i64,
        #[graphql(directive = bounds::apply(range(1, 200)))] limit: i64,
        #[graphql(desc = "Whether to include archived credentials.", default_with = "Some(false)")]
        include_archived: Option<bool>,
        #[graphql(desc = "Only those whose name contains every word. Case and accents don't matter.", directive = bounds::apply(length(1, 200)))]
        search: Option<String>,
        #[graphql(desc = "The order.", default_with = "Some(ListSort::Created)")] sort: Option<ListSort>,
    ) -> Answer<Page<Credential>> {
        answer(async {
            let rows = Rows::of(&ctx.enter(org_id).await?).unless_archived(include_archived == Some(true));
            let rows = rows.found(&["t.name_folded"], search.as_deref());
            Ok(Page::numbered(rows.listed(sort, "t.id", "t.name_folded, t.id"), page, limit))
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

#[derive(Default)]
pub struct CredentialMutation;

#[Object]
impl CredentialMutation {
    /// Creates a credential. No agent may use it yet.
    #[graphql(directive = permit::apply(Permission::CredentialEdit))]
    async fn create_credential(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        input: CreateCredentialInput,
        #[graphql(
            desc = "Whether agents may read its values. Otherwise their host adds them to requests, for http and https \
                    destinations alone. Only a person can say so.",
            default
        )]
        agent_may_read: bool,
    ) -> Answer<One<Credential>> {
        answer(async {
            let scope = ctx.enter(org_id).await?;
            let id = credentials::create(&scope, input, agent_may_read).await?;
            Ok(One::by_id(&scope, id))
        })
        .await
    }

    /// Edits a credential. The assigned agents are updated.
    #[graphql(directive = permit::apply(Permission::CredentialEdit))]
    async fn update_credential(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        id: CredentialId,
        input: UpdateCredentialInput,
        #[graphql(desc = "The revision that the edit was made from. CONFLICT if there is a newer one.")]
        if_revision: Option<i64>,
        #[graphql(
            desc = "Whether agents may read its values. Otherwise their host adds them to requests, for http and https \
                    destinations alone. Only a person can say so. If left out, it stays as it is."
        )]
        agent_may_read: Option<bool>,
    ) -> Answer<One<Credential>> {
        answer(async {
            let scope = ctx.enter(org_id).await?;
            let edited = scope.if_revision(RecordKind::Credential, id, if_revision);
            let done = credentials::update(&edited, id, input, agent_may_read).await;
            One::after(&scope, id, Permission::CredentialView, done)
        })
        .await
    }

    /// Sets the agents that may use a credential. A running agent keeps what it has until it is launched again. One unknown agent fails the whole
    /// call.
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
            credentials::set_agents(&scope, id, &input.agent_ids).await?;
            Ok(One::by_id(&scope, id))
        })
        .await
    }

    /// Sets the members who may use a credential. Members left out lose it. One person who isn't a member fails
    /// the whole call.
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
            credentials::set_members(&scope, id, &input.user_ids).await?;
            Ok(One::by_id(&scope, id))
        })
        .await
    }

    /// Archives a credential: it is hidden, and no launch gets it. A running agent keeps it until it is launched again, so
    /// revoke the secret itself if it must be gone now. Assignments are kept.
    #[graphql(directive = permit::apply(Permission::CredentialDelete))]
    async fn archive_credential(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        id: CredentialId,
    ) -> Answer<One<Credential>> {
        answer(async {
            let scope = ctx.enter(org_id).await?;
            credentials::archive(&scope, id).await?;
            Ok(One::by_id(&scope, id))
        })
        .await
    }

    /// Restores an archived credential: its agents get it with their next launch.
    #[graphql(directive = permit::apply(Permission::CredentialEdit))]
    async fn unarchive_credential(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        id: CredentialId,
    ) -> Answer<One<Credential>> {
        answer(async {
            let scope = ctx.enter(org_id).await?;
            credentials::restore(&scope, id).await?;
            Ok(One::by_id(&scope, id))
        })
        .await
    }
}
