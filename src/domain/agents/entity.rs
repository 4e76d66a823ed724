//! Database rows for agents. Private to this feature and to `launch`, which writes what a launch changes.

/// Deleting an agent archives it, so that its conversations and approvals stay readable.
pub mod agents {
    use sea_orm::entity::prelude::*;

    use crate::base::{
        enums::{
            AgentStatus, BackupSchedule, CostGuardAction, CredentialChoice, Effort, ModelCredentialType,
            OverrideMode, ResponseFormat, ResponseStyle, RestartPolicy, StatusReason, UsageStatus,
        },
        ids::{AgentId, ImageId, OrgId, ServerId, UserId},
        time::Timestamp,
    };

    #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
    #[sea_orm(table_name = "agents")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub organization_id: OrgId,
        #[sea_orm(primary_key)]
        pub id: AgentId,
        pub server_id: ServerId,
        pub image_id: ImageId,
        pub name: String,
        /// Derived from the name.
        pub name_folded: String,
        pub description: Option<String>,
        pub role: Option<String>,
        pub instructions: Option<String>,
        pub status: AgentStatus,
        /// Why it failed, or what it waits for.
        pub status_reason: Option<StatusReason>,
        pub status_detail: Option<String>,
        /// The newest of its revisions.
        pub revision: i64,
        /// The revision it was last launched with.
        pub launched_revision: Option<i64>,
        /// Counts launches. Reports from an older generation are dropped.
        pub launch_generation: i64,
        /// When the agent entered this state. The deadline of a start counts from here.
        pub status_changed_at: Option<Timestamp>,
        /// When the container came up. Uptime is computed from this.
        pub started_at: Option<Timestamp>,
        pub container_id: Option<String>,
        pub last_action: Option<String>,
        pub last_action_at: Option<Timestamp>,
        pub model_credential_type: Option<ModelCredentialType>,
        pub model_credential_provider: Option<String>,
        pub model_credential_base_url: Option<String>,
        pub model_credential_sealed: Option<Vec<u8>>,
        pub auth_failed_at: Option<Timestamp>,
        pub credential_choice: CredentialChoice,
        pub model_override: Option<String>,
        pub mode_override: Option<String>,
        /// No longer read or written: the record computes it. The next migration that drops columns removes it.
        pub resolved_model: Option<String>,
        pub running_model: Option<String>,
        pub context_floor_tokens: Option<i64>,
        pub context_floor_memory_tokens: Option<i64>,
        pub context_floor_recommended_tokens: Option<i64>,
        pub context_floor_cap_tokens: Option<i64>,
        pub analysis_score: Option<i64>,
        pub effort_override: Option<Effort>,
        pub thinking_enabled: bool,
        pub language: Option<String>,
        pub mcp_http_bridge: bool,
        pub response_style: ResponseStyle,
        pub response_format: ResponseFormat,
        pub single_message: bool,
        pub no_emoji: bool,
        pub approval_ask_threshold: Option<i64>,
        pub approval_block_threshold: Option<i64>,
        pub approval_timeout_minutes: Option<i64>,
        pub approval_categories: Json,
        pub disabled_tool_groups: Json,
        pub memory_mb_override: Option<i64>,
        pub cpu_override: Option<f64>,
        pub hub_available: bool,
        pub voice_enabled: bool,
        pub network_privileged: bool,
        pub voice_id: Option<String>,
        pub backup_schedule: BackupSchedule,
        pub timezone: Option<String>,
        pub backup_cron: Option<String>,
        pub backup_retention: Option<i64>,
        pub backup_freeze: bool,
        pub last_backup_at: Option<Timestamp>,
        pub cost_guard_mode: OverrideMode,
        pub cost_guard_tokens_per_hour: Option<i64>,
        pub cost_guard_action: Option<CostGuardAction>,
        pub monthly_budget_micro: Option<i64>,
        pub budget_action: CostGuardAction,
        pub session_reset_mode: OverrideMode,
        pub session_reset_tokens: Option<i64>,
        pub tokens_used: i64,
        pub cost_micro: i64,
        pub usage_status: Option<UsageStatus>,
        /// Stored exactly as the agent sends it.
        pub usage_rate_limit_type: Option<String>,
        pub usage_resets_at: Option<Timestamp>,
        pub usage_overage_status: Option<UsageStatus>,
        pub usage_overage_resets_at: Option<Timestamp>,
        pub usage_is_overage: bool,
        pub usage_updated_at: Option<Timestamp>,
        /// [{id, name, description, current}]
        pub offered_models: Option<Json>,
        /// [{id, name, description, current}]
        pub offered_modes: Option<Json>,
        pub sync_pending: bool,
        /// Counts the changes that its host must apply.
        pub sync_version: i64,
        /// The `sync_version` of the last plan that the host received.
        pub sync_given: i64,
        /// Digests of the parts of its plan that take effect only at a launch.
        pub launched_with_sealed: Option<Vec<u8>>,
        /// Which of those parts have changed since, in words.
        pub restart_reason: Option<String>,
        pub restart_policy: RestartPolicy,
        /// Consecutive automatic restarts after failures.
        pub restarts: i64,
        /// Consecutive automatic restarts after its host had lost it.
        pub losses: i64,
        /// When it is restarted automatically.
        pub restart_at: Option<Timestamp>,
        /// What its launch lacks, as its host reports.
        pub launch_lacks: Option<String>,
        pub avatar_version: Option<i64>,
        pub created_by: Option<UserId>,
        pub created_at: Timestamp,
        pub updated_at: Timestamp,
        pub archived_at: Option<Timestamp>,
    }

    crate::core::store::tenant_entity!(name_folded = folding::name(name));
}

/// Past and present settings of agents. Rows are never changed.
pub mod agent_revisions {
    use sea_orm::entity::prelude::*;

    use crate::base::{
        enums::ActorKind,
        ids::{AgentId, AgentRevisionId, OrgId},
        time::Timestamp,
    };

    #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
    #[sea_orm(table_name = "agent_revisions")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub organization_id: OrgId,
        #[sea_orm(primary_key)]
        pub id: AgentRevisionId,
        pub agent_id: AgentId,
        pub number: i64,
        /// Canonical JSON.
        pub content: String,
        /// SHA-256 of the content, in hexadecimal.
        pub content_hash: String,
        /// Compared with the revision before.
        pub changes: Json,
        /// The earlier revision whose content this restores.
        pub reverts_to: Option<i64>,
        pub author_kind: ActorKind,
        pub author_id: Option<i64>,
        pub author_name: String,
        /// The root field that wrote it.
        pub operation: Option<String>,
        pub reason: Option<String>,
        pub created_at: Timestamp,
    }

    crate::core::store::tenant_entity!();
}
