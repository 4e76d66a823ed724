//! An agent as the schema shows it, and the smaller views of it that other records have.

use std::sync::LazyLock;

use crate::{
    base::{
        column::Decimal,
        enums::{
            AgentStatus, BackupSchedule, CostGuardAction, CredentialChoice, Effort, ModelCredentialType,
            OverrideMode, ResponseFormat, ResponseStyle, UsageStatus, ViewerAccess,
        },
        ids::{AgentId, ImageId, OrgId, ServerId, UserId},
        permission::Permission,
        time::Timestamp,
    },
    core::access::Scope,
    read::{Many, Record, Spec},
    slices::{
        channels::graphql::Channel,
        credentials::graphql::Credential,
        mcp_servers::graphql::McpServer,
        servers::graphql::{Image, Server},
        skills::graphql::Skill,
    },
};

/// The SQL of an agent's picture, for records around the agent: `t` is the agent.
pub const AVATAR_URL: &str = "CASE WHEN t.avatar_version IS NULL THEN NULL ELSE '/avatars/agent/' || t.id || '?v=' || t.avatar_version END";
/// The agent's own choice, or the image's: computed, so that it is never what an image's default once was.
const RESOLVED_MODEL: &str = "COALESCE(t.model_override, (SELECT i.default_model FROM images i WHERE i.organization_id = t.organization_id AND i.id = t.image_id))";

/// An agent.
pub struct Agent;

impl Record for Agent {
    fn spec() -> &'static Spec {
        static SPEC: LazyLock<Spec> = LazyLock::new(|| {
            let spec = Spec::new("Agent", "agents t", "An agent: a container that is launched on a server.")
                .permission(Permission::AgentView)
                .living("t.archived_at IS NULL")
                .viewer_can(|scope| scope.can(&["agent"]));
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
        .sql::<Option<String>>("resolved_model", RESOLVED_MODEL, "The model that the next launch uses.")
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
        .column::<Option<i64>>("session_reset_tokens", "Tokens at which a session starts over.")
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
            Many { by: "t.agent_id", ..Many::default() },
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
