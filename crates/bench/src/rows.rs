//! Database rows and their JSON.

use muster::base::time::Timestamp;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;
use sqlx::{FromRow, types::Json};

/// Milliseconds since 1970, serialized as RFC 3339.
#[derive(sqlx::Type)]
#[sqlx(transparent)]
pub struct Instant(i64);

impl Serialize for Instant {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut text = Vec::with_capacity(24);
        Timestamp(self.0).write(&mut text);
        serializer.serialize_str(std::str::from_utf8(&text).unwrap_or_default())
    }
}

/// An amount, serialized as a string.
#[derive(sqlx::Type)]
#[sqlx(transparent)]
pub struct Decimal(i64);

impl Serialize for Decimal {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

/// An instant, serialized as the seconds since then.
#[derive(sqlx::Type)]
#[sqlx(transparent)]
pub struct Elapsed(Option<i64>);

impl Serialize for Elapsed {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let now = muster::base::time::Clock::system().now().0;
        self.0.map(|since| (now - since).max(0) / 1000).serialize(serializer)
    }
}

#[derive(Serialize)]
pub struct Page<T> {
    pub data: Vec<T>,
    pub total: i64,
    pub page: i64,
    pub limit: i64,
}

#[derive(Serialize)]
pub struct Counted<T> {
    pub data: Vec<T>,
    pub total: i64,
}

#[derive(FromRow, Serialize)]
pub struct Agent {
    pub id: i64,
    pub organization_id: i64,
    pub server_id: i64,
    pub image_id: i64,
    pub name: String,
    pub description: Option<String>,
    pub role: Option<String>,
    pub status: String,
    pub has_model_credential: bool,
    pub viewer_access: String,
    pub model_credential_type: Option<String>,
    pub model_credential_provider: Option<String>,
    pub model_credential_base_url: Option<String>,
    pub credential_choice: String,
    pub model_override: Option<String>,
    pub resolved_model: Option<String>,
    pub running_model: Option<String>,
    pub context_floor_tokens: Option<i64>,
    pub context_floor_memory_tokens: Option<i64>,
    pub context_floor_recommended_tokens: Option<i64>,
    pub context_floor_cap_tokens: Option<i64>,
    pub analysis_score: Option<i64>,
    pub effort_override: Option<String>,
    pub thinking_enabled: bool,
    pub language: Option<String>,
    pub mcp_http_bridge: bool,
    pub response_style: String,
    pub response_format: String,
    pub single_message: bool,
    pub no_emoji: bool,
    pub approval_ask_threshold: Option<i64>,
    pub approval_block_threshold: Option<i64>,
    pub approval_timeout_minutes: Option<i64>,
    pub approval_categories: Json<Vec<String>>,
    pub disabled_tool_groups: Json<Vec<String>>,
    pub memory_mb_override: Option<i64>,
    pub cpu_override: Option<f64>,
    pub hub_available: bool,
    pub voice_enabled: bool,
    pub network_privileged: bool,
    pub voice_id: Option<String>,
    pub backup_schedule: String,
    pub timezone: Option<String>,
    pub backup_cron: Option<String>,
    pub backup_retention: Option<i64>,
    pub backup_freeze: bool,
    pub cost_guard_mode: String,
    pub cost_guard_tokens_per_hour: Option<i64>,
    pub cost_guard_action: Option<String>,
    pub session_reset_mode: String,
    pub session_reset_tokens: Option<i64>,
    pub last_backup_at: Option<Instant>,
    pub last_action_at: Option<Instant>,
    pub auth_failed_at: Option<Instant>,
    pub usage_resets_at: Option<Instant>,
    pub usage_overage_resets_at: Option<Instant>,
    pub usage_updated_at: Option<Instant>,
    pub created_at: Instant,
    pub updated_at: Instant,
    pub container_id: Option<String>,
    pub last_action: Option<String>,
    pub uptime_seconds: Elapsed,
    pub tokens_used: Decimal,
    pub cost_micro: Decimal,
    pub usage_status: Option<String>,
    pub usage_rate_limit_type: Option<String>,
    pub usage_overage_status: Option<String>,
    pub usage_is_overage: bool,
    pub sync_pending: bool,
    pub avatar_url: Option<String>,
    #[serde(skip)]
    pub total: i64,
}

pub const AGENTS: &str = "SELECT \
    t.id, t.organization_id, t.server_id, t.image_id, t.name, t.description, t.role, t.status, \
    (t.model_credential_sealed IS NOT NULL) AS has_model_credential, 'MANAGE' AS viewer_access, \
    t.model_credential_type, t.model_credential_provider, t.model_credential_base_url, \
    t.credential_choice, t.model_override, COALESCE(t.model_override, (SELECT i.default_model FROM images i WHERE i.organization_id = t.organization_id AND i.id = t.image_id)) AS resolved_model, t.running_model, t.context_floor_tokens, \
    t.context_floor_memory_tokens, t.context_floor_recommended_tokens, t.context_floor_cap_tokens, \
    t.analysis_score, t.effort_override, t.thinking_enabled, t.language, t.mcp_http_bridge, \
    t.response_style, t.response_format, t.single_message, t.no_emoji, t.approval_ask_threshold, \
    t.approval_block_threshold, t.approval_timeout_minutes, t.approval_categories, \
    t.disabled_tool_groups, t.memory_mb_override, t.cpu_override, t.hub_available, t.voice_enabled, \
    t.network_privileged, t.voice_id, t.backup_schedule, t.timezone, t.backup_cron, t.backup_retention, \
    t.backup_freeze, t.cost_guard_mode, t.cost_guard_tokens_per_hour, t.cost_guard_action, \
    t.session_reset_mode, t.session_reset_tokens, t.last_backup_at, t.last_action_at, t.auth_failed_at, \
    t.usage_resets_at, t.usage_overage_resets_at, t.usage_updated_at, t.created_at, t.updated_at, \
    t.container_id, t.last_action, t.started_at AS uptime_seconds, t.tokens_used, t.cost_micro, \
    t.usage_status, t.usage_rate_limit_type, t.usage_overage_status, t.usage_is_overage, t.sync_pending, \
    CASE WHEN t.avatar_version IS NULL THEN NULL ELSE '/avatars/agent/' || t.id || '?v=' || t.avatar_version END AS avatar_url, \
    (SELECT COUNT(*) FROM agents t WHERE t.organization_id = $1 AND t.archived_at IS NULL) AS total \
    FROM agents t WHERE t.organization_id = $1 AND t.archived_at IS NULL ORDER BY t.id LIMIT $2 OFFSET $3";

#[derive(FromRow, Serialize)]
pub struct Organization {
    pub id: i64,
    pub name: String,
    pub plan: String,
    pub avatar_url: Option<String>,
    #[sqlx(skip)]
    pub viewer_role: Option<String>,
    #[sqlx(skip)]
    pub viewer_permissions: Vec<String>,
    pub has_voice_key: bool,
    pub has_transcription_key: bool,
    pub has_provider_oauth_app: bool,
    pub provider_oauth_client_id: Option<String>,
    pub timezone: String,
    pub trial_ends_at: Option<Instant>,
    pub grace_until: Option<Instant>,
    pub grace_from_plan: Option<String>,
    #[sqlx(flatten)]
    pub limits: Limits,
    pub support_access_until: Option<Instant>,
    pub support_access_granted_at: Option<Instant>,
    pub support_access_granted_by: Option<i64>,
    pub customer_type: String,
    pub tax_name: Option<String>,
    pub tax_id: Option<String>,
    pub tax_country: Option<String>,
    pub tax_address: Option<String>,
    pub tax_postal_code: Option<String>,
    pub tax_city: Option<String>,
    pub vat_validated: bool,
    pub vat_validated_at: Option<Instant>,
    pub backup_retention: Option<i64>,
    pub backup_cron: Option<String>,
    pub cost_guard_tokens_per_hour: Option<i64>,
    pub cost_guard_action: String,
    pub session_reset_tokens: Option<i64>,
    pub transcript_retention_days: Option<i64>,
    pub contracted_agents: Option<i64>,
    pub max_channels_per_agent: Option<i64>,
    pub doctor_runs_per_month: Option<i64>,
    pub cron_llm_runs_per_month: Option<i64>,
    pub file_versions: Option<i64>,
    pub version_retention: String,
    pub server_alert_ram_pct: Option<i64>,
    pub server_alert_cpu_pct: Option<i64>,
    pub server_alert_load_factor: Option<f64>,
    pub created_at: Instant,
    pub updated_at: Instant,
}

#[derive(FromRow, Serialize)]
pub struct Limits {
    #[sqlx(rename = "limit_max_agents")]
    pub max_agents: i64,
    #[sqlx(rename = "limit_max_servers")]
    pub max_servers: i64,
    #[sqlx(rename = "limit_channels_per_agent")]
    pub channels_per_agent: i64,
    #[sqlx(rename = "limit_min_cron_interval_minutes")]
    pub min_cron_interval_minutes: i64,
    #[sqlx(rename = "limit_min_mail_poll_minutes")]
    pub min_mail_poll_minutes: i64,
    #[sqlx(rename = "limit_doctor_runs_per_month")]
    pub doctor_runs_per_month: i64,
    #[sqlx(rename = "limit_cron_llm_runs_per_month")]
    pub cron_llm_runs_per_month: i64,
    #[sqlx(rename = "limit_file_versions")]
    pub file_versions: i64,
}

pub const ORGANIZATION: &str = "SELECT \
    t.id, t.name, t.plan, \
    CASE WHEN t.avatar_version IS NULL THEN NULL ELSE '/avatars/organization/' || t.id || '?v=' || t.avatar_version END AS avatar_url, \
    (t.voice_key_sealed IS NOT NULL) AS has_voice_key, \
    (t.transcription_key_sealed IS NOT NULL) AS has_transcription_key, \
    (t.provider_oauth_client_id IS NOT NULL AND t.provider_oauth_secret_sealed IS NOT NULL) AS has_provider_oauth_app, \
    t.provider_oauth_client_id, t.timezone, t.trial_ends_at, t.grace_until, t.grace_from_plan, \
    t.support_access_until, t.support_access_granted_at, t.support_access_granted_by, t.customer_type, \
    t.tax_name, t.tax_id, t.tax_country, t.tax_address, t.tax_postal_code, t.tax_city, t.vat_validated, \
    t.vat_validated_at, t.backup_retention, t.backup_cron, t.cost_guard_tokens_per_hour, \
    t.cost_guard_action, t.session_reset_tokens, t.transcript_retention_days, t.contracted_agents, \
    t.max_channels_per_agent, t.doctor_runs_per_month, t.cron_llm_runs_per_month, t.file_versions, \
    t.version_retention, t.server_alert_ram_pct, t.server_alert_cpu_pct, t.server_alert_load_factor, \
    t.created_at, t.updated_at, COALESCE(t.contracted_agents, p.max_agents) AS limit_max_agents, \
    COALESCE(t.max_servers_override, p.max_servers) AS limit_max_servers, \
    COALESCE(t.max_channels_per_agent, p.channels_per_agent) AS limit_channels_per_agent, \
    COALESCE(t.min_cron_interval_minutes_override, p.min_cron_interval_minutes) AS limit_min_cron_interval_minutes, \
    COALESCE(t.min_mail_poll_minutes_override, p.min_mail_poll_minutes) AS limit_min_mail_poll_minutes, \
    COALESCE(t.doctor_runs_per_month, p.doctor_runs_per_month) AS limit_doctor_runs_per_month, \
    COALESCE(t.cron_llm_runs_per_month, p.cron_llm_runs_per_month) AS limit_cron_llm_runs_per_month, \
    COALESCE(t.file_versions, p.file_versions) AS limit_file_versions \
    FROM organizations t JOIN plans p ON p.plan = t.plan WHERE t.id = $1";

#[derive(FromRow, Serialize)]
pub struct Message {
    pub id: i64,
    pub conversation_id: i64,
    pub seq: i64,
    pub role: String,
    pub kind: String,
    pub via_channel_id: Option<i64>,
    pub via_identity_id: Option<i64>,
    pub author_user_id: Option<i64>,
    pub author_name: Option<String>,
    pub status: String,
    #[sqlx(flatten)]
    #[serde(serialize_with = "delivery")]
    pub delivery: Delivery,
    pub content: Json<Box<RawValue>>,
    #[sqlx(skip)]
    pub attachments: Vec<Attachment>,
    pub created_at: Instant,
    #[serde(skip)]
    pub total: Option<i64>,
}

#[derive(FromRow, Serialize)]
pub struct Delivery {
    #[sqlx(rename = "delivery_status")]
    status: Option<String>,
    #[sqlx(rename = "delivery_attempts")]
    attempts: i64,
    #[sqlx(rename = "delivery_error")]
    error: Option<String>,
    #[sqlx(rename = "delivery_sent_at")]
    sent_at: Option<Instant>,
}

fn delivery<S: Serializer>(delivery: &Delivery, serializer: S) -> Result<S::Ok, S::Error> {
    delivery.status.is_some().then_some(delivery).serialize(serializer)
}

pub const MESSAGES: &str = "SELECT t.id, t.conversation_id, t.seq, t.role, t.kind, t.via_channel_id, \
    t.via_identity_id, t.author_user_id, t.author_name, t.status, t.delivery_status, t.delivery_attempts, \
    t.delivery_error, t.delivery_sent_at, t.content, t.created_at, (SELECT c.message_count FROM conversations c \
    WHERE c.organization_id = $1 AND c.id = $2 AND c.agent_id = $3) AS total FROM messages t \
    WHERE t.organization_id = $1 AND t.conversation_id = $2 AND t.seq < $4 ORDER BY t.seq DESC LIMIT $5";

#[derive(FromRow)]
pub struct Attachment {
    pub message_id: i64,
    id: i64,
    filename: String,
    mime_type: String,
    size_bytes: i64,
    organization_id: i64,
    uploaded_by_agent_id: Option<i64>,
}

impl Serialize for Attachment {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeStruct;
        let mut object = serializer.serialize_struct("Attachment", 6)?;
        object.serialize_field("id", &self.id)?;
        object.serialize_field("filename", &self.filename)?;
        object.serialize_field("mime_type", &self.mime_type)?;
        object.serialize_field("size_bytes", &self.size_bytes)?;
        object.serialize_field("url", &format!("/v1/org/{}/attachment/{}", self.organization_id, self.id))?;
        object.serialize_field("uploaded_by_agent_id", &self.uploaded_by_agent_id)?;
        object.end()
    }
}
