//! The agent's record in the schema, and the shorter forms that other records embed.

use std::sync::LazyLock;

use async_graphql::{Json, SimpleObject};

use crate::{
    base::{
        column::Decimal,
        enums::{
            ActorKind, AgentStatus, BackupSchedule, CostGuardAction, CredentialChoice, Effort,
            ModelCredentialType, OverrideMode, ResponseFormat, ResponseStyle, RestartPolicy, StatusReason,
            UsageStatus, ViewerAccess,
        },
        ids::{AgentId, AgentRevisionId, Id, ImageId, OrgId, ServerId, UserId},
        permission::Permission,
        time::Timestamp,
    },
    core::access::Scope,
    domain::agents::{detail_sql, reason_sql},
    graphql::{
        channels::Channel,
        credentials::Credential,
        mcp_servers::{McpServer, McpServerState, states as mcp_server_states},
        network::RefusedDestination,
        servers::{Image, Server},
        skills::Skill,
        spending::{AgentLimit, AgentSpending},
        turns::Turn,
    },
    read::{Many, Record, Spec},
};

/// SQL for the path of an agent's picture, for use in other records. `t` is the agent.
pub const AVATAR_URL: &str = "CASE WHEN t.avatar_version IS NULL THEN NULL ELSE '/avatars/agent/' || t.id || '?v=' || t.avatar_version END";
/// The time since which the agent has been up.
const UPTIME: &str = "CASE WHEN t.status IN ('RUNNING', 'PAUSED', 'STOPPING') THEN t.started_at END";
/// The agent's own model or the image's default. Computed, so that it follows changes to the image.
const RESOLVED_MODEL: &str = "COALESCE(t.model_override, (SELECT i.default_model FROM images i WHERE i.organization_id = t.organization_id AND i.id = t.image_id))";

/// Whether a restart is planned, or was made and the agent has not recovered since. Recovered means up for an hour
/// (`domain/launch/recovery.rs`).
const RESTARTED: &str = "(t.restart_at IS NOT NULL OR (t.restarts + t.losses > 0 AND (t.started_at IS NULL OR t.started_at > :now - 3600000)))";

const PENDING_APPROVALS: &str = "(SELECT COUNT(*) FROM approvals p WHERE p.organization_id = t.organization_id AND p.agent_id = t.id AND p.status = 'PENDING' AND (p.expires_at IS NULL OR p.expires_at > :now))";
const WAITING_REQUESTS: &str = "(SELECT COUNT(*) FROM approvals p WHERE p.organization_id = t.organization_id AND p.agent_id = t.id AND p.status = 'PENDING' AND (p.expires_at IS NULL OR p.expires_at > :now) AND p.generation = t.launch_generation AND p.request_key IS NOT NULL)";
const OPEN_CONVERSATIONS: &str = "(SELECT COUNT(*) FROM conversations c WHERE c.organization_id = t.organization_id AND c.agent_id = t.id AND c.status IN ('OPEN', 'PENDING'))";
const LAST_ACTIVITY: &str = "(SELECT MAX(c.last_activity_at) FROM conversations c WHERE c.organization_id = t.organization_id AND c.agent_id = t.id)";

/// The approval categories that are not a category of a risk rule, case and spaces aside.
const NOT_ENFORCED_SQLITE: &str = "(SELECT json_group_array(c.value) FROM json_each(t.approval_categories) c \
    WHERE lower(replace(c.value, ' ', '')) NOT IN (SELECT folded FROM risk_categories))";
const NOT_ENFORCED_POSTGRES: &str = "(SELECT COALESCE(json_agg(c.value), '[]') FROM \
    json_array_elements_text(t.approval_categories) c(value) \
    WHERE lower(replace(c.value, ' ', '')) NOT IN (SELECT folded FROM risk_categories))";

pub struct Agent;

impl Record for Agent {
    fn spec() -> &'static Spec {
        static SPEC: LazyLock<Spec> = LazyLock::new(|| {
            let spec = Spec::new("Agent", "agents t", "An agent: a container that is launched on a server.")
                .permission(Permission::AgentView)
                .visible("t.archived_at IS NULL")
                .viewer_can(|scope| scope.permissions_json(&["agent"]));
            contained(equipment(relations(usage(settings(identity(spec))))))
        });
        &SPEC
    }
}

fn identity(spec: Spec) -> Spec {
    spec.column::<AgentId>("id", "Identifies the agent.")
        .column::<OrgId>("organization_id", "The organization that the agent belongs to.")
        .column::<ServerId>("server_id", "The server it runs on.")
        .column::<ImageId>("image_id", "The image it runs from.")
        .column::<String>("name", "The name, unique in the organization.")
        .column::<Option<String>>("description", "A description for people.")
        .column::<Option<String>>("role", "A free-form label.")
        .column::<Option<String>>(
            "instructions",
            "Its instructions, which it gets in each conversation, and again after each change.",
        )
        .column::<AgentStatus>("status", "The lifecycle state.")
        .sql::<Option<StatusReason>>(
            "status_reason",
            reason_sql(),
            "Why it failed, or the reason for its waiting. Null while all is well.",
        )
        .sql::<Option<String>>("status_detail", detail_sql(), "The same in words.")
        .column::<i64>("revision", "The number of its newest revision in `agentRevisions`.")
        .column::<Option<i64>>("launched_revision", "The revision it was last launched with.")
        .sql::<bool>(
            "has_model_credential",
            "(t.model_credential_sealed IS NOT NULL)",
            "Whether it has a model credential of its own.",
        )
        .caller::<ViewerAccess>("viewer_access", viewer_access, "The caller's access to it.")
        .sql::<i64>("pending_approvals", PENDING_APPROVALS, "The number of decisions it waits for.")
        .sql::<i64>(
            "waiting_requests",
            WAITING_REQUESTS,
            "The number of decisions that its launch waits for. Stopping it withdraws them.",
        )
        .sql::<i64>(
            "open_conversations",
            OPEN_CONVERSATIONS,
            "The number of its conversations that are neither resolved nor archived.",
        )
        .sql::<Option<Timestamp>>(
            "last_activity_at",
            LAST_ACTIVITY,
            "The time of the last message in one of its conversations.",
        )
}

fn settings(spec: Spec) -> Spec {
    spec.column::<Option<ModelCredentialType>>("model_credential_type", "The type of its model credential.")
        .column::<Option<String>>("model_credential_provider", "The model's provider.")
        .column::<Option<String>>("model_credential_base_url", "The base URL of the model's API.")
        .column::<CredentialChoice>(
            "credential_choice",
            "Which model credential it uses: its own, an inherited one, or none.",
        )
        .column::<Option<String>>("model_override", "The model to use instead of the image's default.")
        .column::<Option<String>>(
            "mode_override",
            "The mode for its sessions, by its id in `offeredModes`. Null: the one that the agent chooses.",
        )
        .sql_by_backend::<Option<String>>(
            "mode_problem",
            mode_problem("json_each(t.offered_modes) m", "m.value ->> 'current' = 1"),
            mode_problem("json_array_elements(t.offered_modes) m(value)", "m.value ->> 'current' = 'true'"),
            "Why that mode is not in force. Null: it is, none is set, or its modes are not known yet.",
        )
        .sql::<Option<String>>("resolved_model", RESOLVED_MODEL, "The model it will use on the next launch.")
        .column::<Option<String>>("running_model", "The model it is running.")
        .parts::<Option<Vec<OfferedChoice>>>(
            "offered_models",
            "t.offered_models",
            "The models it offers, as its sessions report. Null before its first session.",
        )
        .parts::<Option<Vec<OfferedChoice>>>(
            "offered_modes",
            "t.offered_modes",
            "The modes it offers, as its sessions report. Null before its first session.",
        )
        .column::<Option<i64>>("context_floor_tokens", "Tokens at the start of every context.")
        .column::<Option<i64>>("context_floor_memory_tokens", "How many of those tokens hold memory.")
        .column::<Option<i64>>("context_floor_recommended_tokens", "The recommended maximum, in tokens.")
        .column::<Option<i64>>("context_floor_cap_tokens", "The hard maximum, in tokens.")
        .column::<Option<i64>>("analysis_score", "The score of the last analysis of its setup.")
        .column::<Option<Effort>>("effort_override", "The effort to use instead of the model's default.")
        .column::<bool>("thinking_enabled", "Whether the model thinks before it answers.")
        .column::<Option<String>>(
            "language",
            "The code of the language it answers in, such as `en` or `pt-BR`.",
        )
        .column::<bool>("mcp_http_bridge", "Whether it reaches MCP servers through an HTTP bridge.")
        .column::<ResponseStyle>("response_style", "The style of its answers.")
        .column::<ResponseFormat>("response_format", "The format of its answers.")
        .column::<bool>("single_message", "Whether it sends each answer as a single message.")
        .column::<bool>("no_emoji", "Whether it avoids emoji.")
        .column::<Option<i64>>("approval_ask_threshold", "Actions at or above this risk need approval.")
        .column::<Option<i64>>("approval_block_threshold", "Actions at or above this risk are blocked.")
        .column::<Option<i64>>("approval_timeout_minutes", "How many minutes it waits for a decision.")
        .column::<Vec<String>>(
            "approval_categories",
            "The kinds of action that always need approval, in words.",
        )
        .sql_by_backend::<Vec<String>>(
            "not_enforced",
            NOT_ENFORCED_SQLITE,
            NOT_ENFORCED_POSTGRES,
            "The `approvalCategories` without a risk rule: the agent is only instructed to ask.",
        )
        .column::<Vec<String>>(
            "disabled_tool_groups",
            "MCP servers and kinds of tools that it may not use.",
        )
        .column::<Option<i64>>("memory_mb_override", "Memory in MiB, instead of the default.")
        .column::<Option<f64>>("cpu_override", "Processor cores, instead of the default.")
        .column::<bool>("hub_available", "Whether other agents may send it requests.")
        .column::<bool>("voice_enabled", "Whether it can speak.")
        .column::<bool>(
            "network_privileged",
            "Whether it has a network of its own.",
        )
        .column::<Option<String>>("voice_id", "The voice it speaks with.")
        .column::<RestartPolicy>("restart_policy", "When it is restarted automatically.")
        .column::<BackupSchedule>("backup_schedule", "When it is backed up.")
        .column::<Option<String>>("timezone", "The time zone of its schedules.")
        .column::<Option<String>>("backup_cron", "The cron expression, if `backupSchedule` is CRON.")
        .column::<Option<i64>>("backup_retention", "The number of backups to keep.")
        .column::<bool>("backup_freeze", "Whether to keep every backup, regardless of the retention.")
        .column::<OverrideMode>("cost_guard_mode", "Whether it has a cost guard of its own.")
        .column::<Option<i64>>("cost_guard_tokens_per_hour", "Tokens per hour at which the cost guard acts.")
        .column::<Option<CostGuardAction>>("cost_guard_action", "The action of the cost guard.")
        .column::<Option<i64>>(
            "monthly_budget_micro",
            "Its budget for a calendar month, in millionths of the organization's currency. Null: none of its own.",
        )
        .column::<CostGuardAction>("budget_action", "The action when that budget is spent.")
        .column::<OverrideMode>("session_reset_mode", "Whether it has a session limit of its own.")
        .column::<Option<i64>>("session_reset_tokens", "Tokens at which a session starts over.")
}

/// SQL for the reason why the mode set for the agent `t` is not in force. `modes` are its offered modes, as `m.value`.
fn mode_problem(modes: &str, is_current: &str) -> String {
    format!(
        "CASE WHEN t.mode_override IS NULL OR t.offered_modes IS NULL THEN NULL \
         WHEN json_array_length(t.offered_modes) = 0 THEN 'It offers no modes to choose from.' \
         WHEN NOT EXISTS (SELECT 1 FROM {modes} WHERE m.value ->> 'id' = t.mode_override) \
         THEN 'Its sessions do not offer this mode.' \
         WHEN t.status IN ('RUNNING', 'PAUSED') \
         AND NOT EXISTS (SELECT 1 FROM {modes} WHERE m.value ->> 'id' = t.mode_override AND {is_current}) \
         THEN 'The session that reported last is in another mode: a change reaches each conversation with its next turn.' END"
    )
}

fn usage(spec: Spec) -> Spec {
    spec.column::<Option<Timestamp>>("last_backup_at", "When it was last backed up.")
        .column::<Option<Timestamp>>("last_action_at", "When the last action on it took place.")
        .column::<Option<Timestamp>>("auth_failed_at", "When its model last rejected its credential.")
        .column::<Option<Timestamp>>("usage_resets_at", "When the model's usage limit resets.")
        .column::<Option<Timestamp>>("usage_overage_resets_at", "When the overage limit resets.")
        .column::<Option<Timestamp>>("usage_updated_at", "When the usage was last reported.")
        .column::<Timestamp>("created_at", "When it was created.")
        .column::<Timestamp>("updated_at", "When it was last updated.")
        .column::<Option<String>>("container_id", "The container it runs in.")
        .column::<Option<String>>("last_action", "The last action on it, or the reason it failed.")
        .elapsed("uptime_seconds", UPTIME, "Seconds since it came up. Null while it is not up.")
        .column::<Decimal>("tokens_used", "Tokens used so far.")
        .column::<Decimal>("cost_micro", "The cost of those tokens, in millionths of the currency unit.")
        .column::<Option<UsageStatus>>("usage_status", "Its state regarding the model's usage limit.")
        .column::<Option<String>>(
            "usage_rate_limit_type",
            "The limit that applies, as the model's provider names it.",
        )
        .column::<Option<UsageStatus>>("usage_overage_status", "Its state regarding the overage limit.")
        .column::<bool>("usage_is_overage", "Whether it runs on overage.")
        .column::<bool>("sync_pending", "Whether a change has yet to reach its host.")
        .sql::<bool>(
            "restart_pending",
            "(COALESCE(t.restart_reason, t.launch_lacks) IS NOT NULL AND t.status IN ('RUNNING', 'PAUSED'))",
            "Whether something has changed that it gets only when it is started again, such as a credential. False \
             while it is at rest.",
        )
        .sql::<Option<String>>(
            "restart_reason",
            "CASE WHEN t.status IN ('RUNNING', 'PAUSED') \
             THEN COALESCE(t.restart_reason || ' ' || t.launch_lacks, t.restart_reason, t.launch_lacks) END",
            "The changes in words. Null: none.",
        )
        .embedded::<AgentRestart>(
            "restart",
            RESTARTED,
            "Its recovery after a failure. Null once it has been up for an hour, or a person has started or stopped it.",
        )
        .sql::<Option<String>>("avatar_url", AVATAR_URL, "The path of its picture.")
        .column::<Option<UserId>>("created_by", "The user who created it.")
}

fn relations(spec: Spec) -> Spec {
    spec.one::<Server>("server", "t.server_id", "The server it runs on.")
        .one::<Image>("image", "t.image_id", "The image it runs from.")
        .many::<Channel>(
            "channels",
            Many { by: "t.agent_id", ..Many::default() },
            "The channels it can be reached through.",
        )
        .many::<Turn>(
            "running_turns",
            Many {
                by: "t.agent_id",
                filter: "t.state IN ('RUNNING', 'WAITING_APPROVAL', 'WAITING_LIMIT')",
                ..Many::default()
            },
            "The turns that it works on, at most one in each conversation. `turns` lists all.",
        )
}

/// The relations to an agent's equipment: credentials, MCP servers, skills.
fn equipment(spec: Spec) -> Spec {
    spec.many::<Credential>(
        "credentials",
        used(
            "credential_agents j JOIN credentials t \
             ON t.organization_id = j.organization_id AND t.id = j.credential_id",
        ),
        "The credentials it may use.",
    )
    .many::<McpServer>(
        "mcp_servers",
        used(
            "mcp_server_agents j JOIN mcp_servers t \
                 ON t.organization_id = j.organization_id AND t.id = j.mcp_server_id",
        ),
        "The MCP servers it may call.",
    )
    .many::<McpServerState>(
        "mcp_server_states",
        mcp_server_states("t.agent_id"),
        "The states of its MCP servers, as far as its host has reported them.",
    )
    .many::<Skill>(
        "skills",
        used("skill_agents j JOIN skills t ON t.organization_id = j.organization_id AND t.id = j.skill_id"),
        "Its skills.",
    )
}

/// Its bounds: money, limits, the network.
fn contained(spec: Spec) -> Spec {
    spec.embedded::<AgentSpending>("spending", "(1 = 1)", "Its spending in this month and this hour.")
        .one_by::<AgentLimit>(
            "limit",
            "t.id",
            "t.agent_id",
            "Why it can't call its model at the moment. Null: it can.",
        )
        .many::<RefusedDestination>(
            "refused_destinations",
            Many { by: "t.agent_id", order: "t.last_at DESC, t.id", ..Many::default() },
            "The destinations that it was refused, most recent first. The newest 100 are kept.",
        )
}

/// A relation from an agent to its equipment, through the join table `j`.
fn used(from: &'static str) -> Many {
    Many { from: Some(from), by: "j.agent_id", filter: "t.archived_at IS NULL", ..Many::default() }
}

pub struct AgentRestart;

impl Record for AgentRestart {
    fn spec() -> &'static Spec {
        static SPEC: LazyLock<Spec> = LazyLock::new(|| {
            Spec::new("AgentRestart", "agents t", "An agent's recovery after a failure.")
                .sql::<i64>("attempts", "t.restarts + t.losses", "The number of consecutive restarts.")
                .sql::<Option<Timestamp>>(
                    "next_at",
                    "t.restart_at",
                    "The time of its next start, delayed while the organization is stopped. Null: it is up, or starts only if a person starts it.",
                )
        });
        &SPEC
    }
}

/// The strongest access that the caller's permissions allow.
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

pub struct AgentRevision;

impl Record for AgentRevision {
    fn spec() -> &'static Spec {
        static SPEC: LazyLock<Spec> = LazyLock::new(|| {
            let about = "The state of an agent's settings at a time. It never changes.";
            let spec = Spec::new("AgentRevision", "agent_revisions t", about)
                .permission(Permission::AgentView)
                .column::<AgentRevisionId>("id", "Identifies the revision in the installation.")
                .column::<AgentId>("agent_id", "The agent.")
                .sql::<i64>("revision", "t.number", "The number of the revision: 1, 2, 3, …");
            version(spec)
        });
        &SPEC
    }
}

/// The fields of every kind of version.
#[must_use]
pub fn version(spec: Spec) -> Spec {
    spec.column::<Json<serde_json::Value>>(
        "content",
        "Everything that can be set, by the names of the update's input; never a secret.",
    )
    .column::<String>("content_hash", "SHA-256 of the content as JSON, in hexadecimal.")
    .column::<Json<serde_json::Value>>(
        "changes",
        "The changes since the previous one: field → [before, after]. A long value appears as its length and hash.",
    )
    .column::<Option<i64>>("reverts_to", "The number of the earlier one that it restores.")
    .column::<ActorKind>("author_kind", "The kind of actor who made it.")
    .column::<Option<Id>>("author_id", "The id of the user or service token. Null for the service itself.")
    .column::<String>("author_name", "The actor's name at the time.")
    .column::<Option<String>>("operation", "The operation that made it, named by its root field.")
    .column::<Option<String>>("reason", "The reason given by its author.")
    .column::<Timestamp>("created_at", "When it was made.")
}

pub struct AgentLaunch;

impl Record for AgentLaunch {
    fn spec() -> &'static Spec {
        static SPEC: LazyLock<Spec> = LazyLock::new(|| {
            Spec::new("AgentLaunch", "agent_launches t", "A launch of an agent.")
                .permission(Permission::AgentOutputView)
                .column::<i64>("generation", "Counts the agent's launches.")
                .column::<i64>("revision", "The revision of the agent that was launched.")
                .column::<Timestamp>("started_at", "When it was started by a person.")
                .column::<Option<Timestamp>>("up_at", "When it came up. Null: not yet, or never.")
                .column::<Option<Timestamp>>("ended_at", "When it ended. Null: it has not.")
                .column::<Option<StatusReason>>(
                    "reason",
                    "Why it failed. Null if it was stopped, or has not ended.",
                )
                .column::<Option<String>>(
                    "detail",
                    "How it ended in words, with the end of its program's error output.",
                )
                .column::<ActorKind>("started_by_kind", "The kind of actor who started it.")
                .column::<Option<Id>>(
                    "started_by_id",
                    "The id of the user or service token. Null for the service itself.",
                )
                .column::<String>("started_by_name", "The actor's name at the time.")
        });
        &SPEC
    }
}

/// A model or a mode that an agent offers.
#[derive(SimpleObject)]
pub struct OfferedChoice {
    /// The agent's own name for it.
    pub id: String,
    /// The label for people.
    pub name: String,
    /// A longer description.
    pub description: Option<String>,
    /// Whether it is in use.
    pub current: bool,
}

/// An agent as other records show it: id, name, picture. It reveals nothing those records don't already show.
pub struct AgentSummary;

impl Record for AgentSummary {
    fn spec() -> &'static Spec {
        static SPEC: LazyLock<Spec> = LazyLock::new(|| {
            Spec::new("AgentSummary", "agents t", "A short form of an agent.")
                .column::<AgentId>("id", "Identifies the agent.")
                .column::<String>("name", "The name.")
                .sql::<Option<String>>("avatar_url", AVATAR_URL, "The path of its picture.")
        });
        &SPEC
    }
}

/// An agent that something is assigned to, with the time of assignment. Rows come through a join table with the
/// alias `j`.
pub struct AgentAssignment;

impl Record for AgentAssignment {
    fn spec() -> &'static Spec {
        static SPEC: LazyLock<Spec> = LazyLock::new(|| {
            Spec::new("AgentAssignment", "agents t", "An agent that something is assigned to.")
                .column::<AgentId>("id", "Identifies the agent.")
                .column::<String>("name", "The agent's name.")
                .sql::<Option<String>>("avatar_url", AVATAR_URL, "The path of the agent's picture.")
                .sql::<Timestamp>("assigned_at", "j.assigned_at", "When it was assigned.")
        });
        &SPEC
    }
}

/// The relation from a thing to the agents it is assigned to, except deleted ones. `from` joins the agents to
/// the join table `j`; `by` is the column of `j` that holds the thing.
#[must_use]
pub fn assigned(from: &'static str, by: &'static str) -> Many {
    Many { from: Some(from), by, filter: "t.archived_at IS NULL", ..Many::default() }
}

/// SQL that counts the agents a thing is assigned to, except deleted ones.
#[must_use]
pub fn assignment_count(join_table: &str, key: &str) -> String {
    format!(
        "(SELECT COUNT(*) FROM {join_table} l JOIN agents a ON a.organization_id = l.organization_id AND a.id = l.agent_id \
         WHERE l.organization_id = t.organization_id AND l.{key} = t.id AND a.archived_at IS NULL)"
    )
}
