//! What agents are given: the input objects of the schema, which edits take as they are.

use async_graphql::{InputObject, MaybeUndefined};

use crate::{
    base::{
        enums::{
            BackupSchedule, CostGuardAction, CredentialChoice, Effort, ModelCredentialType, OverrideMode,
            ResponseFormat, ResponseStyle,
        },
        ids::{AgentId, ImageId, ServerId},
        secret::SecretText,
    },
    fields::bounds::{bounds, items, length, list, name, not_null, range},
};

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
#[derive(InputObject, Default)]
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
    /// The image that it runs from, from the next launch on. Not in force yet.
    #[graphql(directive = bounds::apply(not_null()))]
    pub image_id: MaybeUndefined<ImageId>,
    /// The model, if not the image's. Not in force yet.
    #[graphql(directive = bounds::apply(name(120)))]
    pub model_override: MaybeUndefined<String>,
    /// The kind of its model credential. Not in force yet.
    pub model_credential_type: MaybeUndefined<ModelCredentialType>,
    /// Whose model it is. Not in force yet.
    #[graphql(directive = bounds::apply(length(1, 80)))]
    pub model_credential_provider: MaybeUndefined<String>,
    /// Where the model is reached. Not in force yet.
    #[graphql(directive = bounds::apply(length(1, 2000)))]
    pub model_credential_base_url: MaybeUndefined<String>,
    /// The model credential itself. It is never shown again. Not in force yet.
    #[graphql(directive = bounds::apply(length(1, 8000)))]
    pub model_credential: MaybeUndefined<SecretText>,
    /// Whose model credential it uses. Not in force yet.
    #[graphql(directive = bounds::apply(not_null()))]
    pub credential_choice: MaybeUndefined<CredentialChoice>,
    /// The effort, if not the model's. Not in force yet.
    pub effort_override: MaybeUndefined<Effort>,
    /// Whether it thinks before it answers. Not in force yet.
    #[graphql(directive = bounds::apply(not_null()))]
    pub thinking_enabled: MaybeUndefined<bool>,
    /// The language that it answers in: a language code. Not in force yet.
    #[graphql(directive = bounds::apply(length(2, 35)))]
    pub language: MaybeUndefined<String>,
    /// Whether MCP servers are reached through a bridge. Not in force yet.
    #[graphql(directive = bounds::apply(not_null()))]
    pub mcp_http_bridge: MaybeUndefined<bool>,
    /// How it answers. Not in force yet.
    #[graphql(directive = bounds::apply(not_null()))]
    pub response_style: MaybeUndefined<ResponseStyle>,
    /// The form of its answers. Not in force yet.
    #[graphql(directive = bounds::apply(not_null()))]
    pub response_format: MaybeUndefined<ResponseFormat>,
    /// Whether an answer is one message. Not in force yet.
    #[graphql(directive = bounds::apply(not_null()))]
    pub single_message: MaybeUndefined<bool>,
    /// Whether it does without emoji. Not in force yet.
    #[graphql(directive = bounds::apply(not_null()))]
    pub no_emoji: MaybeUndefined<bool>,
    /// The risk from which it asks. Not in force yet.
    #[graphql(directive = bounds::apply(range(0, 100)))]
    pub approval_ask_threshold: MaybeUndefined<i64>,
    /// The risk from which it may not. Not in force yet.
    #[graphql(directive = bounds::apply(range(0, 100)))]
    pub approval_block_threshold: MaybeUndefined<i64>,
    /// How long it waits for a decision, in minutes. Not in force yet.
    #[graphql(directive = bounds::apply(range(1, 43_200)))]
    pub approval_timeout_minutes: MaybeUndefined<i64>,
    /// What it asks about, in words. Not in force yet.
    #[graphql(directive = bounds::apply(list(50, name(500)).not_null()))]
    pub approval_categories: MaybeUndefined<Vec<String>>,
    /// Tools that it may not use. Not in force yet.
    #[graphql(directive = bounds::apply(list(100, name(80)).not_null()))]
    pub disabled_tool_groups: MaybeUndefined<Vec<String>>,
    /// Memory, in MiB, if not the default. Not in force yet.
    #[graphql(directive = bounds::apply(range(64, 1_048_576)))]
    pub memory_mb_override: MaybeUndefined<i64>,
    /// Processor cores, if not the default. Not in force yet.
    #[graphql(directive = bounds::apply(range(0, 1024)))]
    pub cpu_override: MaybeUndefined<f64>,
    /// Whether other agents may ask it. Not in force yet.
    #[graphql(directive = bounds::apply(not_null()))]
    pub hub_available: MaybeUndefined<bool>,
    /// Whether it speaks. Not in force yet.
    #[graphql(directive = bounds::apply(not_null()))]
    pub voice_enabled: MaybeUndefined<bool>,
    /// Whether it may reach private networks. Not in force yet.
    #[graphql(directive = bounds::apply(not_null()))]
    pub network_privileged: MaybeUndefined<bool>,
    /// The voice. Not in force yet.
    #[graphql(directive = bounds::apply(name(120)))]
    pub voice_id: MaybeUndefined<String>,
    /// When it is backed up. Not in force yet.
    #[graphql(directive = bounds::apply(not_null()))]
    pub backup_schedule: MaybeUndefined<BackupSchedule>,
    /// The time zone of its schedules. Not in force yet.
    #[graphql(directive = bounds::apply(length(1, 64)))]
    pub timezone: MaybeUndefined<String>,
    /// When, for the schedule CRON. Not in force yet.
    #[graphql(directive = bounds::apply(length(1, 120)))]
    pub backup_cron: MaybeUndefined<String>,
    /// How many backups are kept. Not in force yet.
    #[graphql(directive = bounds::apply(range(1, 10_000)))]
    pub backup_retention: MaybeUndefined<i64>,
    /// Whether no backup is deleted. Not in force yet.
    #[graphql(directive = bounds::apply(not_null()))]
    pub backup_freeze: MaybeUndefined<bool>,
    /// Whether its own cost guard applies. Not in force yet.
    #[graphql(directive = bounds::apply(not_null()))]
    pub cost_guard_mode: MaybeUndefined<OverrideMode>,
    /// Tokens an hour from which the guard acts. Not in force yet.
    #[graphql(directive = bounds::apply(range(1, 2_000_000_000)))]
    pub cost_guard_tokens_per_hour: MaybeUndefined<i64>,
    /// What the guard does. Not in force yet.
    pub cost_guard_action: MaybeUndefined<CostGuardAction>,
    /// Whether its own limit of a session applies. Not in force yet.
    #[graphql(directive = bounds::apply(not_null()))]
    pub session_reset_mode: MaybeUndefined<OverrideMode>,
    /// Tokens at which a session starts over. Not in force yet.
    #[graphql(directive = bounds::apply(range(1, 2_000_000_000)))]
    pub session_reset_tokens: MaybeUndefined<i64>,
}
