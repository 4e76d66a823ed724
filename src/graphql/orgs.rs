//! Organizations in the GraphQL schema.

use std::sync::LazyLock;

use async_graphql::{Context, Object};

use super::{
    erasures::Erasure, model_credentials::ModelCredential, network::AllowedHost, servers::Image,
    spending::OrganizationSpending,
};
use crate::{
    base::{
        column::Decimal,
        enums::{CostGuardAction, CustomerType, Plan, RecordKind, VersionRetention},
        ids::{ImageId, OrgId, UserId},
        permission::{Permission, Role},
        time::Timestamp,
    },
    core::access::Scope,
    domain::{
        emergency_stop,
        orgs::{self, Limit, UpdateOrganizationInput},
    },
    read::{Many, One, Record, Spec},
    resolvers::{
        Answer, Enter, answer,
        bounds::{bounds, name},
        permit::permit,
    },
};

/// The tables behind an organization's record: the organization and its plan's limits.
const FROM: &str = "organizations t JOIN plans p ON p.plan = t.plan";
const STORED_BYTES: &str =
    "COALESCE((SELECT s.bytes + s.message_bytes FROM stored_bytes s WHERE s.organization_id = t.id), 0)";
const AVATAR_URL: &str = "CASE WHEN t.avatar_version IS NULL THEN NULL ELSE '/avatars/organization/' || t.id || '?v=' || t.avatar_version END";

pub struct Organization;

impl Record for Organization {
    fn spec() -> &'static Spec {
        static SPEC: LazyLock<Spec> = LazyLock::new(|| {
            let spec = Spec::new("Organization", FROM, "An organization: a tenant.")
                .tenant("t.id")
                .permission(Permission::OrganizationView)
                .viewer_can(|scope| {
                    scope.permissions_json(&["organization", "member", "token", "audit", "policy"])
                });
            contained(settings(tax(support(identity(spec)))))
        });
        &SPEC
    }
}

fn identity(spec: Spec) -> Spec {
    spec.column::<OrgId>("id", "Identifies the organization.")
        .revision(RecordKind::Organization)
        .column::<String>("name", "The name.")
        .column::<Plan>("plan", "The plan. Its limits apply unless the contract overrides them.")
        .sql::<Option<String>>("avatar_url", AVATAR_URL, "The path of its picture.")
        .caller::<Option<Role>>("viewer_role", viewer_role, "The caller's role; null for a service token.")
        .caller::<bool>(
            "can_mail",
            can_mail,
            "Whether this installation sends mail. If not, links have to be handed over: `muster member invite --link` and \
             `muster user reset-password` print them.",
        )
        .caller::<Vec<Permission>>(
            "viewer_permissions",
            viewer_permissions,
            "The caller's permissions in the organization.",
        )
        .sql::<bool>("has_voice_key", "(t.voice_key_sealed IS NOT NULL)", "Whether agents can speak.")
        .sql::<bool>(
            "has_transcription_key",
            "(t.transcription_key_sealed IS NOT NULL)",
            "Whether voice messages can be transcribed.",
        )
        .sql::<bool>(
            "has_provider_oauth_app",
            "(t.provider_oauth_client_id IS NOT NULL AND t.provider_oauth_secret_sealed IS NOT NULL)",
            "Whether it has its own OAuth application at Google.",
        )
        .column::<bool>(
            "require_second_factor",
            "Whether members need a second factor to get in. Service tokens are not affected.",
        )
        .column::<bool>("mail_request_text", "Whether mail about approvals may contain what is asked.")
        .column::<i64>(
            "chat_risk_limit",
            "Actions of a lower risk than this may be decided in linked chats. 0: nothing is.",
        )
        .column::<Option<String>>("provider_oauth_client_id", "The client ID of its OAuth application.")
        .column::<String>("timezone", "The time zone of its schedules.")
        .column::<Option<ImageId>>("default_image_id", "The image for agents created without one.")
        .one::<Image>("default_image", "t.default_image_id", "The image for agents created without one.")
        .column::<Option<Timestamp>>("trial_ends_at", "When the trial ends. Not applied yet.")
        .column::<Option<Timestamp>>(
            "grace_until",
            "The time until which the previous plan's limits apply. Not applied yet.",
        )
        .column::<Option<Plan>>("grace_from_plan", "The previous plan. Not applied yet.")
        .embedded::<Limits>("limits", "(1 = 1)", "The limits in force.")
        .embedded::<Used>("used", "(1 = 1)", "How much of the limits is used.")
        .embedded::<Stop>(
            "stopped",
            "(t.stopped_at IS NOT NULL)",
            "Who stopped the whole organization, and why. Null unless it is stopped.",
        )
        .sql::<Decimal>("stored_bytes", STORED_BYTES, "Bytes stored in messages (counted each minute), attachments, raw mails, pictures, and skills.")
}

fn support(spec: Spec) -> Spec {
    spec.column::<Option<Timestamp>>("support_access_until", "When the support staff's access ends.")
        .column::<Option<Timestamp>>("support_access_granted_at", "When that access was granted.")
        .column::<Option<UserId>>("support_access_granted_by", "The user who granted it.")
}

fn tax(spec: Spec) -> Spec {
    spec.column::<CustomerType>("customer_type", "Whether the customer is a business or a private person.")
        .column::<Option<String>>("tax_name", "The name on invoices.")
        .column::<Option<String>>("tax_id", "The tax ID.")
        .column::<Option<String>>("tax_country", "The country, as a two-letter code.")
        .column::<Option<String>>("tax_address", "The street and house number.")
        .column::<Option<String>>("tax_postal_code", "The postal code.")
        .column::<Option<String>>("tax_city", "The city.")
        .column::<bool>("vat_validated", "Whether the tax ID has been validated.")
        .column::<Option<Timestamp>>("vat_validated_at", "When the tax ID was validated.")
}

fn settings(spec: Spec) -> Spec {
    spec.column::<Option<i64>>("backup_retention", "The number of backups to keep per agent.")
        .column::<Option<String>>("backup_cron", "When agents are backed up, as a cron expression.")
        .column::<Option<i64>>("cost_guard_tokens_per_hour", "Tokens per hour at which the cost guard acts.")
        .column::<CostGuardAction>("cost_guard_action", "The action of the cost guard.")
        .column::<String>("currency", "The currency of its money, such as `USD`. Only prices in this currency count.")
        .column::<Option<i64>>(
            "monthly_budget_micro",
            "The amount that all its agents may spend in a calendar month, in millionths of the currency. Null: no budget.",
        )
        .column::<CostGuardAction>("budget_action", "The action when that budget is spent.")
        .column::<bool>("trace_content", "Whether traces contain prompts and answers.")
        .column::<Option<i64>>("session_reset_tokens", "Tokens at which a session starts over.")
        .column::<Option<i64>>("transcript_retention_days", "How many days transcripts are kept.")
        .column::<Option<i64>>(
            "contracted_agents",
            "The contract's limit on agents, if it differs from the plan's.",
        )
        .column::<Option<i64>>(
            "max_channels_per_agent",
            "The contract's limit on channels per agent, if it differs from the plan's.",
        )
        .column::<Option<i64>>(
            "doctor_runs_per_month",
            "The contract's limit on doctor runs, if it differs from the plan's.",
        )
        .column::<Option<i64>>(
            "cron_llm_runs_per_month",
            "The contract's limit on scheduled runs, if it differs from the plan's.",
        )
        .column::<Option<i64>>(
            "file_versions",
            "The contract's limit on versions of a file, if it differs from the plan's.",
        )
        .column::<VersionRetention>("version_retention", "Which versions of a file are kept.")
        .column::<Option<i64>>("server_alert_ram_pct", "The memory use, in percent, that raises an alert.")
        .column::<Option<i64>>("server_alert_cpu_pct", "The processor use, in percent, that raises an alert.")
        .column::<Option<f64>>("server_alert_load_factor", "The load per core that raises an alert.")
        .column::<Timestamp>("created_at", "When it was created.")
        .column::<Timestamp>("updated_at", "When it was last updated.")
}

/// What contains its agents (money, model credentials, the network), and what is to be erased.
fn contained(spec: Spec) -> Spec {
    spec.embedded::<OrganizationSpending>("spending", "(1 = 1)", "The spending of its agents in this month.")
        .many::<ModelCredential>(
            "model_credentials",
            Many { by: "t.organization_id", filter: "t.archived_at IS NULL", ..Many::default() },
            "Its model credentials, except archived ones.",
        )
        .many::<AllowedHost>(
            "allowed_hosts",
            Many { by: "t.organization_id", order: "t.host, t.port", ..Many::default() },
            "The hosts that its agents may reach beside their models, MCP servers and credentials' destinations.",
        )
        .many::<Erasure>(
            "erasures",
            Many { by: "t.organization_id", order: "t.due_at, t.id", ..Many::default() },
            "What is scheduled to be erased.",
        )
}

/// The limits in force: the contract's where it sets one, otherwise the plan's.
pub struct Limits;

impl Record for Limits {
    fn spec() -> &'static Spec {
        static SPEC: LazyLock<Spec> = LazyLock::new(|| {
            Limit::ALL.iter().fold(
                Spec::new(
                    "OrganizationLimits",
                    FROM,
                    "The limits in force: the contract's where it sets one, otherwise the plan's.",
                )
                .tenant("t.id"),
                |spec, limit| spec.sql::<i64>(limit.name(), limit.sql(), limit.about()),
            )
        });
        &SPEC
    }
}

/// How many records the organization has of each kind that its plan limits. What is stored is `storedBytes`.
pub struct Used;

impl Record for Used {
    fn spec() -> &'static Spec {
        static SPEC: LazyLock<Spec> = LazyLock::new(|| {
            let spec = Spec::new("OrganizationUse", FROM, "How much of the limits is used.").tenant("t.id");
            let counted = Limit::ALL.iter().filter_map(|limit| Some((limit, limit.used_sql()?)));
            counted.fold(spec, |spec, (limit, used)| {
                spec.sql::<i64>(limit.name().trim_start_matches("max_"), used, limit.about())
            })
        });
        &SPEC
    }
}

pub struct Stop;

impl Record for Stop {
    fn spec() -> &'static Spec {
        static SPEC: LazyLock<Spec> = LazyLock::new(|| {
            Spec::new("OrganizationStop", FROM, "The stop of a whole organization.")
                .tenant("t.id")
                .sql::<String>("by", "t.stopped_by_name", "The name of the actor who stopped it.")
                .sql::<Option<UserId>>("user_id", "t.stopped_by", "The member who stopped it.")
                .sql::<Timestamp>("at", "t.stopped_at", "When it was stopped.")
                .sql::<String>("reason", "t.stop_reason", "Why it was stopped.")
        });
        &SPEC
    }
}

fn can_mail(scope: &Scope) -> String {
    scope.core.mailer.is_on().to_string()
}

fn viewer_role(scope: &Scope) -> String {
    scope.membership.role.map_or_else(|| "null".to_owned(), |role| format!("\"{role}\""))
}

/// The names in alphabetical order, as a JSON list. No name needs escaping.
fn viewer_permissions(scope: &Scope) -> String {
    static SORTED: LazyLock<Vec<Permission>> = LazyLock::new(|| {
        let mut all = Permission::ALL.to_vec();
        all.sort_unstable_by_key(|permission| permission.as_str());
        all
    });
    let mut json = String::with_capacity(SORTED.len() * 24);
    for permission in SORTED.iter().filter(|permission| scope.may(**permission)) {
        json.push_str(if json.is_empty() { "[\"" } else { ",\"" });
        json.push_str(permission.as_str());
        json.push('"');
    }
    if json.is_empty() {
        json.push('[');
    }
    json.push(']');
    json
}

#[derive(Default)]
pub struct OrganizationQuery;

#[Object]
impl OrganizationQuery {
    /// The organization.
    #[graphql(directive = permit::apply(Permission::OrganizationView))]
    async fn organization(&self, ctx: &Context<'_>, org_id: OrgId) -> Answer<One<Organization>> {
        answer(async { Ok(One::by_id(&ctx.enter(org_id).await?, org_id)) }).await
    }
}

#[derive(Default)]
pub struct OrganizationMutation;

#[Object]
impl OrganizationMutation {
    /// Edits the organization's settings.
    #[graphql(directive = permit::apply(Permission::OrganizationEdit))]
    async fn update_organization(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        input: UpdateOrganizationInput,
        #[graphql(desc = "The revision that the edit was made from. CONFLICT if there is a newer one.")]
        if_revision: Option<i64>,
    ) -> Answer<One<Organization>> {
        answer(async {
            let scope = ctx.enter(org_id).await?;
            let edited = scope.if_revision(RecordKind::Organization, org_id, if_revision);
            let done = orgs::update(&edited, input).await;
            One::after(&scope, org_id, Permission::OrganizationView, done)
        })
        .await
    }

    /// Stops the whole organization: running turns are cancelled, and no agent starts, resumes or takes a turn until it
    /// is released. Agents stay up, and can be stopped; their hosts block all their connections. Stopping it again
    /// changes nothing.
    #[graphql(directive = permit::apply(Permission::OrganizationStop))]
    async fn stop_organization(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        #[graphql(desc = "The reason, which all members see.", directive = bounds::apply(name(1000)))]
        reason: String,
    ) -> Answer<One<Organization>> {
        answer(async {
            let scope = ctx.enter(org_id).await?;
            emergency_stop::stop(&scope, &reason).await?;
            Ok(One::by_id(&scope, org_id))
        })
        .await
    }

    /// Releases a stopped organization. Waiting turns are then sent a few at a time.
    #[graphql(directive = permit::apply(Permission::OrganizationRelease))]
    async fn release_organization(&self, ctx: &Context<'_>, org_id: OrgId) -> Answer<One<Organization>> {
        answer(async {
            let scope = ctx.enter(org_id).await?;
            emergency_stop::release(&scope, None).await?;
            Ok(One::by_id(&scope, org_id))
        })
        .await
    }
}
