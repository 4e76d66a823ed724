//! Agents in the schema.

use std::sync::LazyLock;

use async_graphql::{Context, InputObject, MaybeUndefined, Object, Subscription};
use futures::{Stream, StreamExt};

use super::{AgentEdit, NewAgent};
use crate::{
    access::{Permission, Scope},
    app::Event,
    channels::graphql::Channel,
    clock::Timestamp,
    credentials::graphql::Credential,
    enums::{
        AgentStatus, BackupSchedule, CostGuardAction, CredentialChoice, Effort, ModelCredentialType,
        OverrideMode, ResponseFormat, ResponseStyle, UsageStatus, ViewerAccess,
    },
    error::Result,
    graphql::{
        Answer, Enter, SecretText, answer,
        bounds::{bounds, from, items, length, list, name, not_null, range},
        permit::permit,
        record::{Decimal, Many, One, Page, Record, Rows, Spec},
        watch,
    },
    ids::{AgentId, ImageId, OrgId, ServerId, UserId},
    mcp::graphql::McpServer,
    servers::graphql::{Image, Server},
    skills::graphql::Skill,
};

/// The SQL of an agent's picture, for records around the agent: `t` is the agent.
pub const AVATAR_URL: &str = "CASE WHEN t.avatar_version IS NULL THEN NULL ELSE '/avatars/agent/' || t.id || '?v=' || t.avatar_version END";

/// An agent.
pub struct Agent;

impl Record for Agent {
    fn spec() -> &'static Spec {
        static SPEC: LazyLock<Spec> = LazyLock::new(|| {
            let spec = Spec::new("Agent", "agents t", "An agent: a container that is launched on a server.")
                .permission(Permission::AgentView);
            equipment(relations(usage(settings(identity(spec)))))
        });
        &SPEC
    }
}

fn identity(spec: Spec) -> Spec {
    spec.column::<AgentId>("id", "Identifies the agent.")
        .column::<OrgId>("organization_id", "The organization that the agent belongs to.")
        .column::<ServerId>("server_id", "The server on which it lives.")
        .column::<ImageId>("image_id", "The image that it runs from.")
        .column::<String>("name", "The name, unique in the organization.")
        .column::<Option<String>>("description", "For people.")
        .column::<Option<String>>("role", "A free label.")
        .column::<AgentStatus>("status", "The lifecycle state.")
        .sql::<bool>(
            "has_model_credential",
            "(t.model_credential_sealed IS NOT NULL)",
            "Whether it has a credential for its model of its own.",
        )
        .caller::<ViewerAccess>("viewer_access", viewer_access, "What the caller may do with it.")
}

fn settings(spec: Spec) -> Spec {
    spec.column::<Option<ModelCredentialType>>("model_credential_type", "The kind of its model credential.")
        .column::<Option<String>>("model_credential_provider", "Whose model it is.")
        .column::<Option<String>>("model_credential_base_url", "Where the model is reached.")
        .column::<CredentialChoice>("credential_choice", "Whose model credential it uses.")
        .column::<Option<String>>("model_override", "The model, if not the image's.")
        .column::<Option<String>>("resolved_model", "The model that the next launch uses.")
        .column::<Option<String>>("running_model", "The model that runs now.")
        .column::<Option<i64>>("context_floor_tokens", "Tokens that every context begins with.")
        .column::<Option<i64>>("context_floor_memory_tokens", "Tokens of memory among them.")
        .column::<Option<i64>>("context_floor_recommended_tokens", "Tokens that are recommended at most.")
        .column::<Option<i64>>("context_floor_cap_tokens", "The upper cap, in tokens.")
        .column::<Option<i64>>("analysis_score", "How well the set-up does, as analysed.")
        .column::<Option<Effort>>("effort_override", "The effort, if not the model's.")
        .column::<bool>("thinking_enabled", "Whether it thinks before it answers.")
        .column::<Option<String>>("language", "The language that it answers in: a language code.")
        .column::<bool>("mcp_http_bridge", "Whether MCP servers are reached through a bridge.")
        .column::<ResponseStyle>("response_style", "How it answers.")
        .column::<ResponseFormat>("response_format", "The form of its answers.")
        .column::<bool>("single_message", "Whether an answer is one message.")
        .column::<bool>("no_emoji", "Whether it does without emoji.")
        .column::<Option<i64>>("approval_ask_threshold", "The risk from which it asks.")
        .column::<Option<i64>>("approval_block_threshold", "The risk from which it may not.")
        .column::<Option<i64>>("approval_timeout_minutes", "How long it waits for a decision, in minutes.")
        .column::<Vec<String>>("approval_categories", "What it asks about, in words.")
        .column::<Vec<String>>("disabled_tool_groups", "Tools that it may not use.")
        .column::<Option<i64>>("memory_mb_override", "Memory, in MiB, if not the default.")
        .column::<Option<f64>>("cpu_override", "Processor cores, if not the default.")
        .column::<bool>("hub_available", "Whether other agents may ask it.")
        .column::<bool>("voice_enabled", "Whether it speaks.")
        .column::<bool>("network_privileged", "Whether it may reach private networks.")
        .column::<Option<String>>("voice_id", "The voice.")
        .column::<BackupSchedule>("backup_schedule", "When it is backed up.")
        .column::<Option<String>>("timezone", "The time zone of its schedules.")
        .column::<Option<String>>("backup_cron", "When, for the schedule CRON.")
        .column::<Option<i64>>("backup_retention", "How many backups are kept.")
        .column::<bool>("backup_freeze", "Whether no backup is deleted.")
        .column::<OverrideMode>("cost_guard_mode", "Whether its own cost guard applies.")
        .column::<Option<i64>>("cost_guard_tokens_per_hour", "Tokens an hour from which the guard acts.")
        .column::<Option<CostGuardAction>>("cost_guard_action", "What the guard does.")
        .column::<OverrideMode>("session_reset_mode", "Whether its own limit of a session applies.")
        .column::<Option<i64>>("session_reset_tokens", "Tokens at which a session begins anew.")
}

fn usage(spec: Spec) -> Spec {
    spec.column::<Option<Timestamp>>("last_backup_at", "When it was last backed up.")
        .column::<Option<Timestamp>>("last_action_at", "When something was last done to it.")
        .column::<Option<Timestamp>>("auth_failed_at", "When its model last refused its credential.")
        .column::<Option<Timestamp>>("usage_resets_at", "When the model's limit is reset.")
        .column::<Option<Timestamp>>("usage_overage_resets_at", "When the overage is reset.")
        .column::<Option<Timestamp>>("usage_updated_at", "When the usage was last reported.")
        .column::<Timestamp>("created_at", "When it was created.")
        .column::<Timestamp>("updated_at", "When its record last changed.")
        .column::<Option<String>>("container_id", "The container that it runs in.")
        .column::<Option<String>>("last_action", "What was last done to it, or how it failed.")
        .elapsed("uptime_seconds", "t.started_at", "How long it has been up, in seconds.")
        .column::<Decimal>("tokens_used", "Tokens used so far.")
        .column::<Decimal>("cost_micro", "What they cost, in millionths.")
        .column::<Option<UsageStatus>>("usage_status", "What the model's limit allows.")
        .column::<Option<String>>("usage_rate_limit_type", "Which limit applies, as the model calls it.")
        .column::<Option<UsageStatus>>("usage_overage_status", "What the overage allows.")
        .column::<bool>("usage_is_overage", "Whether it runs on overage.")
        .column::<bool>("sync_pending", "Whether it has yet to be told of a change.")
        .sql::<Option<String>>("avatar_url", AVATAR_URL, "Its picture: a path.")
        .column::<Option<UserId>>("created_by", "Who created it.")
}

fn relations(spec: Spec) -> Spec {
    spec.one::<Server>("server", "t.server_id", "The server on which it lives.")
        .one::<Image>("image", "t.image_id", "The image that it runs from.")
        .many::<Channel>(
            "channels",
            Many { by: "t.agent_id", filter: "t.archived_at IS NULL", ..Many::default() },
            "The channels through which it is reached.",
        )
}

/// What the agent works with.
fn equipment(spec: Spec) -> Spec {
    spec.many::<Credential>(
        "credentials",
        used(
            "credential_agents j JOIN credentials t \
             ON t.organization_id = j.organization_id AND t.id = j.credential_id",
        ),
        "The credentials that it is given.",
    )
    .many::<McpServer>(
        "mcp_servers",
        used(
            "mcp_server_agents j JOIN mcp_servers t \
                 ON t.organization_id = j.organization_id AND t.id = j.mcp_server_id",
        ),
        "The MCP servers that it may call.",
    )
    .many::<Skill>(
        "skills",
        used("skill_agents j JOIN skills t ON t.organization_id = j.organization_id AND t.id = j.skill_id"),
        "The skills that it has.",
    )
}

/// The relation from an agent to what it works with, through the join table `j`.
fn used(from: &'static str) -> Many {
    Many { from: Some(from), by: "j.agent_id", filter: "t.archived_at IS NULL", ..Many::default() }
}

/// The most that the caller's permissions allow.
fn viewer_access(scope: &Scope) -> String {
    let access = if scope.may(Permission::AgentEdit) {
        ViewerAccess::Manage
    } else if scope.may(Permission::AgentInteract) {
        ViewerAccess::Interact
    } else if scope.may(Permission::AgentView) {
        ViewerAccess::View
    } else {
        ViewerAccess::None
    };
    format!("\"{access}\"")
}

/// An agent as other records show it: id, name, picture. It tells no more than those records may tell anyway.
pub struct AgentSummary;

impl Record for AgentSummary {
    fn spec() -> &'static Spec {
        static SPEC: LazyLock<Spec> = LazyLock::new(|| {
            Spec::new("AgentSummary", "agents t", "An agent in a few words.")
                .column::<AgentId>("id", "Identifies the agent.")
                .column::<String>("name", "The name.")
                .sql::<Option<String>>("avatar_url", AVATAR_URL, "Its picture: a path.")
        });
        &SPEC
    }
}

/// An agent that something is assigned to, and since when. Its rows come through a join table with the alias `j`.
pub struct AgentAssignment;

impl Record for AgentAssignment {
    fn spec() -> &'static Spec {
        static SPEC: LazyLock<Spec> = LazyLock::new(|| {
            Spec::new("AgentAssignment", "agents t", "An agent that something is assigned to.")
                .column::<AgentId>("id", "Identifies the agent.")
                .column::<String>("name", "The agent's name.")
                .sql::<Option<String>>("avatar_url", AVATAR_URL, "The agent's picture: a path.")
                .sql::<Timestamp>("assigned_at", "j.assigned_at", "Since when it is assigned.")
        });
        &SPEC
    }
}

/// The relation from a thing to the agents that it is assigned to, but for deleted ones: `from` joins the agents to
/// the join table `j`, in which `by` holds the thing.
#[must_use]
pub fn assigned(from: &'static str, by: &'static str) -> Many {
    Many { from: Some(from), by, filter: "t.archived_at IS NULL", ..Many::default() }
}

/// The SQL that counts the agents that a thing is assigned to, but for deleted ones.
#[must_use]
pub fn assignment_count(join_table: &str, key: &str) -> String {
    format!(
        "(SELECT COUNT(*) FROM {join_table} l JOIN agents a ON a.organization_id = l.organization_id AND a.id = l.agent_id \
         WHERE l.organization_id = t.organization_id AND l.{key} = t.id AND a.archived_at IS NULL)"
    )
}

/// The agents that something is assigned to from now on.
#[derive(InputObject)]
pub struct SetAgentsInput {
    /// The complete list: agents that are not named lose it. Naming one twice is naming it once.
    #[graphql(directive = bounds::apply(items(5000)))]
    pub agent_ids: Vec<AgentId>,
}

/// What a new agent is given.
#[derive(InputObject)]
pub struct CreateAgentInput {
    /// The name, unique in the organization.
    #[graphql(directive = bounds::apply(name(80)))]
    pub name: String,
    /// For people.
    #[graphql(directive = bounds::apply(length(0, 2000)))]
    pub description: Option<String>,
    /// A free label.
    #[graphql(directive = bounds::apply(length(0, 80)))]
    pub role: Option<String>,
    /// The server on which it will live.
    pub server_id: ServerId,
    /// The image that it runs from; the organization's default if none is named.
    pub image_id: Option<ImageId>,
    /// The model, if not the image's.
    #[graphql(directive = bounds::apply(name(120)))]
    pub model_override: Option<String>,
}

/// What an edit of an agent changes: absent is untouched, null clears what may be empty.
#[derive(InputObject)]
pub struct UpdateAgentInput {
    /// The name, unique in the organization.
    #[graphql(directive = bounds::apply(name(80).not_null()))]
    pub name: MaybeUndefined<String>,
    /// For people.
    #[graphql(directive = bounds::apply(length(0, 2000)))]
    pub description: MaybeUndefined<String>,
    /// A free label.
    #[graphql(directive = bounds::apply(length(0, 80)))]
    pub role: MaybeUndefined<String>,
    /// The server on which it lives, from the next launch on.
    #[graphql(directive = bounds::apply(not_null()))]
    pub server_id: MaybeUndefined<ServerId>,
    /// The image that it runs from, from the next launch on.
    #[graphql(directive = bounds::apply(not_null()))]
    pub image_id: MaybeUndefined<ImageId>,
    /// The model, if not the image's.
    #[graphql(directive = bounds::apply(name(120)))]
    pub model_override: MaybeUndefined<String>,
    /// The kind of its model credential.
    pub model_credential_type: MaybeUndefined<ModelCredentialType>,
    /// Whose model it is.
    #[graphql(directive = bounds::apply(length(1, 80)))]
    pub model_credential_provider: MaybeUndefined<String>,
    /// Where the model is reached.
    #[graphql(directive = bounds::apply(length(1, 2000)))]
    pub model_credential_base_url: MaybeUndefined<String>,
    /// The model credential itself. It is never shown again.
    #[graphql(directive = bounds::apply(length(1, 8000)))]
    pub model_credential: MaybeUndefined<SecretText>,
    /// Whose model credential it uses.
    #[graphql(directive = bounds::apply(not_null()))]
    pub credential_choice: MaybeUndefined<CredentialChoice>,
    /// The effort, if not the model's.
    pub effort_override: MaybeUndefined<Effort>,
    /// Whether it thinks before it answers.
    #[graphql(directive = bounds::apply(not_null()))]
    pub thinking_enabled: MaybeUndefined<bool>,
    /// The language that it answers in: a language code.
    #[graphql(directive = bounds::apply(length(2, 35)))]
    pub language: MaybeUndefined<String>,
    /// Whether MCP servers are reached through a bridge.
    #[graphql(directive = bounds::apply(not_null()))]
    pub mcp_http_bridge: MaybeUndefined<bool>,
    /// How it answers.
    #[graphql(directive = bounds::apply(not_null()))]
    pub response_style: MaybeUndefined<ResponseStyle>,
    /// The form of its answers.
    #[graphql(directive = bounds::apply(not_null()))]
    pub response_format: MaybeUndefined<ResponseFormat>,
    /// Whether an answer is one message.
    #[graphql(directive = bounds::apply(not_null()))]
    pub single_message: MaybeUndefined<bool>,
    /// Whether it does without emoji.
    #[graphql(directive = bounds::apply(not_null()))]
    pub no_emoji: MaybeUndefined<bool>,
    /// The risk from which it asks.
    #[graphql(directive = bounds::apply(range(0, 100)))]
    pub approval_ask_threshold: MaybeUndefined<i64>,
    /// The risk from which it may not.
    #[graphql(directive = bounds::apply(range(0, 100)))]
    pub approval_block_threshold: MaybeUndefined<i64>,
    /// How long it waits for a decision, in minutes.
    #[graphql(directive = bounds::apply(range(1, 43_200)))]
    pub approval_timeout_minutes: MaybeUndefined<i64>,
    /// What it asks about, in words.
    #[graphql(directive = bounds::apply(list(50, name(500)).not_null()))]
    pub approval_categories: MaybeUndefined<Vec<String>>,
    /// Tools that it may not use.
    #[graphql(directive = bounds::apply(list(100, name(80)).not_null()))]
    pub disabled_tool_groups: MaybeUndefined<Vec<String>>,
    /// Memory, in MiB, if not the default.
    #[graphql(directive = bounds::apply(range(64, 1_048_576)))]
    pub memory_mb_override: MaybeUndefined<i64>,
    /// Processor cores, if not the default.
    #[graphql(directive = bounds::apply(range(0, 1024)))]
    pub cpu_override: MaybeUndefined<f64>,
    /// Whether other agents may ask it.
    #[graphql(directive = bounds::apply(not_null()))]
    pub hub_available: MaybeUndefined<bool>,
    /// Whether it speaks.
    #[graphql(directive = bounds::apply(not_null()))]
    pub voice_enabled: MaybeUndefined<bool>,
    /// Whether it may reach private networks.
    #[graphql(directive = bounds::apply(not_null()))]
    pub network_privileged: MaybeUndefined<bool>,
    /// The voice.
    #[graphql(directive = bounds::apply(length(1, 120)))]
    pub voice_id: MaybeUndefined<String>,
    /// When it is backed up.
    #[graphql(directive = bounds::apply(not_null()))]
    pub backup_schedule: MaybeUndefined<BackupSchedule>,
    /// The time zone of its schedules.
    #[graphql(directive = bounds::apply(length(1, 64)))]
    pub timezone: MaybeUndefined<String>,
    /// When, for the schedule CRON.
    #[graphql(directive = bounds::apply(length(1, 120)))]
    pub backup_cron: MaybeUndefined<String>,
    /// How many backups are kept.
    #[graphql(directive = bounds::apply(range(1, 10_000)))]
    pub backup_retention: MaybeUndefined<i64>,
    /// Whether no backup is deleted.
    #[graphql(directive = bounds::apply(not_null()))]
    pub backup_freeze: MaybeUndefined<bool>,
    /// Whether its own cost guard applies.
    #[graphql(directive = bounds::apply(not_null()))]
    pub cost_guard_mode: MaybeUndefined<OverrideMode>,
    /// Tokens an hour from which the guard acts.
    #[graphql(directive = bounds::apply(range(1, 2_000_000_000)))]
    pub cost_guard_tokens_per_hour: MaybeUndefined<i64>,
    /// What the guard does.
    pub cost_guard_action: MaybeUndefined<CostGuardAction>,
    /// Whether its own limit of a session applies.
    #[graphql(directive = bounds::apply(not_null()))]
    pub session_reset_mode: MaybeUndefined<OverrideMode>,
    /// Tokens at which a session begins anew.
    #[graphql(directive = bounds::apply(range(1, 2_000_000_000)))]
    pub session_reset_tokens: MaybeUndefined<i64>,
}

impl From<UpdateAgentInput> for AgentEdit {
    fn from(input: UpdateAgentInput) -> Self {
        Self {
            name: input.name,
            description: input.description,
            role: input.role,
            server_id: input.server_id,
            image_id: input.image_id,
            model_override: input.model_override,
            model_credential_type: input.model_credential_type,
            model_credential_provider: input.model_credential_provider,
            model_credential_base_url: input.model_credential_base_url,
            model_credential: input.model_credential.map_value(|secret| secret.0),
            credential_choice: input.credential_choice,
            effort_override: input.effort_override,
            thinking_enabled: input.thinking_enabled,
            language: input.language,
            mcp_http_bridge: input.mcp_http_bridge,
            response_style: input.response_style,
            response_format: input.response_format,
            single_message: input.single_message,
            no_emoji: input.no_emoji,
            approval_ask_threshold: input.approval_ask_threshold,
            approval_block_threshold: input.approval_block_threshold,
            approval_timeout_minutes: input.approval_timeout_minutes,
            approval_categories: input.approval_categories,
            disabled_tool_groups: input.disabled_tool_groups,
            memory_mb_override: input.memory_mb_override,
            cpu_override: input.cpu_override,
            hub_available: input.hub_available,
            voice_enabled: input.voice_enabled,
            network_privileged: input.network_privileged,
            voice_id: input.voice_id,
            backup_schedule: input.backup_schedule,
            timezone: input.timezone,
            backup_cron: input.backup_cron,
            backup_retention: input.backup_retention,
            backup_freeze: input.backup_freeze,
            cost_guard_mode: input.cost_guard_mode,
            cost_guard_tokens_per_hour: input.cost_guard_tokens_per_hour,
            cost_guard_action: input.cost_guard_action,
            session_reset_mode: input.session_reset_mode,
            session_reset_tokens: input.session_reset_tokens,
        }
    }
}

/// Reading agents.
#[derive(Default)]
pub struct AgentQuery;

#[Object]
impl AgentQuery {
    /// The organization's agents, by id.
    #[graphql(directive = permit::apply(Permission::AgentView))]
    async fn agents(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        #[graphql(directive = bounds::apply(from(1)))] page: i64,
        #[graphql(directive = bounds::apply(range(1, 200)))] limit: i64,
    ) -> Answer<Page<Agent>> {
        answer(async { Ok(Page::numbered(living(&ctx.enter(org_id).await?).order_by("t.id"), page, limit)) })
            .await
    }

    /// One agent.
    #[graphql(directive = permit::apply(Permission::AgentView))]
    async fn agent(&self, ctx: &Context<'_>, org_id: OrgId, id: AgentId) -> Answer<One<Agent>> {
        answer(async { Ok(shown(&ctx.enter(org_id).await?, id)) }).await
    }
}

fn living(scope: &Scope) -> Rows<Agent> {
    Rows::of(scope).filter("t.archived_at IS NULL", [])
}

fn shown(scope: &Scope, id: AgentId) -> One<Agent> {
    One::of(living(scope).filter("t.id = ?", [id.0.into()]), id.0)
}

/// Changing agents.
#[derive(Default)]
pub struct AgentMutation;

#[Object]
impl AgentMutation {
    /// Creates a stopped agent.
    #[graphql(directive = permit::apply(Permission::AgentCreate))]
    async fn create_agent(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        input: CreateAgentInput,
    ) -> Answer<One<Agent>> {
        answer(async {
            let scope = ctx.enter(org_id).await?;
            let new = NewAgent {
                name: input.name,
                description: input.description,
                role: input.role,
                server_id: input.server_id,
                image_id: input.image_id,
                model_override: input.model_override,
            };
            let id = super::create(&scope, new).await?;
            Ok(shown(&scope, id))
        })
        .await
    }

    /// Edits an agent.
    #[graphql(directive = permit::apply(Permission::AgentEdit))]
    async fn update_agent(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        id: AgentId,
        input: UpdateAgentInput,
    ) -> Answer<One<Agent>> {
        answer(async {
            let scope = ctx.enter(org_id).await?;
            super::update(&scope, id, input.into()).await?;
            Ok(shown(&scope, id))
        })
        .await
    }

    /// Launches a stopped or failed agent: it is SPAWNING at once.
    #[graphql(directive = permit::apply(Permission::AgentEdit))]
    async fn start_agent(&self, ctx: &Context<'_>, org_id: OrgId, id: AgentId) -> Answer<One<Agent>> {
        answer(async {
            let scope = ctx.enter(org_id).await?;
            super::start(&scope, id).await?;
            Ok(shown(&scope, id))
        })
        .await
    }

    /// Stops an agent.
    #[graphql(directive = permit::apply(Permission::AgentEdit))]
    async fn stop_agent(&self, ctx: &Context<'_>, org_id: OrgId, id: AgentId) -> Answer<One<Agent>> {
        answer(async {
            let scope = ctx.enter(org_id).await?;
            super::stop(&scope, id).await?;
            Ok(shown(&scope, id))
        })
        .await
    }

    /// Pauses a running agent: it stays in memory and takes no turns.
    #[graphql(directive = permit::apply(Permission::AgentEdit))]
    async fn pause_agent(&self, ctx: &Context<'_>, org_id: OrgId, id: AgentId) -> Answer<One<Agent>> {
        answer(async {
            let scope = ctx.enter(org_id).await?;
            super::pause(&scope, id).await?;
            Ok(shown(&scope, id))
        })
        .await
    }

    /// Lets a paused agent take turns again.
    #[graphql(directive = permit::apply(Permission::AgentEdit))]
    async fn resume_agent(&self, ctx: &Context<'_>, org_id: OrgId, id: AgentId) -> Answer<One<Agent>> {
        answer(async {
            let scope = ctx.enter(org_id).await?;
            super::resume(&scope, id).await?;
            Ok(shown(&scope, id))
        })
        .await
    }

    /// Deletes an agent that does not run; answers with its id. Its conversations are kept.
    #[graphql(directive = permit::apply(Permission::AgentDelete))]
    async fn delete_agent(&self, ctx: &Context<'_>, org_id: OrgId, id: AgentId) -> Answer<AgentId> {
        answer(async {
            super::delete(&ctx.enter(org_id).await?, id).await?;
            Ok(id)
        })
        .await
    }
}

/// Watching agents.
#[derive(Default)]
pub struct AgentSubscription;

#[Subscription]
impl AgentSubscription {
    /// The record of an agent, each time that it changes; of every agent if none is named.
    #[graphql(directive = permit::apply(Permission::AgentView))]
    async fn agent_changed(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        id: Option<AgentId>,
    ) -> Result<impl Stream<Item = Result<One<Agent>>> + use<>> {
        let scope = ctx.enter(org_id).await?;
        let changes = watch(&scope, Permission::AgentView, move |event| match event {
            Event::Agent(org, changed) if org == org_id && id.is_none_or(|id| id == changed) => Some(changed),
            _ => None,
        });
        Ok(changes.map(|change| change.map(|(scope, id)| shown(&scope, id))))
    }
}
