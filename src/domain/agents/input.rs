//! The schema's input objects for agents. Edits take them as they are.

use async_graphql::{InputObject, MaybeUndefined};

use crate::{
    base::{
        enums::{
            BackupSchedule, CostGuardAction, CredentialChoice, Effort, ModelCredentialType, OverrideMode,
            ResponseFormat, ResponseStyle, RestartPolicy,
        },
        ids::{AgentId, ImageId, ServerId},
        secret::SecretText,
    },
    resolvers::bounds::{bounds, items, length, list, name, not_null, range},
};

/// The complete list of agents to assign something to.
#[derive(InputObject)]
pub struct SetAgentsInput {
    /// The complete list: agents left out lose it. Duplicates count once.
    #[graphql(directive = bounds::apply(items(5000)))]
    pub agent_ids: Vec<AgentId>,
}

/// A new agent.
#[derive(InputObject)]
pub struct CreateAgentInput {
    /// The name, unique in the organization.
    #[graphql(directive = bounds::apply(name(80)))]
    pub name: String,
    /// A description for people.
    #[graphql(directive = bounds::apply(length(0, 2000)))]
    pub description: Option<String>,
    /// A free-form label.
    #[graphql(directive = bounds::apply(length(0, 80)))]
    pub role: Option<String>,
    /// Its instructions, which it gets in each conversation, and again after each change.
    #[graphql(directive = bounds::apply(length(0, 8000)))]
    pub instructions: Option<String>,
    /// The server it will run on.
    pub server_id: ServerId,
    /// The image it runs from. Defaults to the organization's default image.
    pub image_id: Option<ImageId>,
    /// The model to use instead of the image's default.
    #[graphql(directive = bounds::apply(name(120)))]
    pub model_override: Option<String>,
}

// `/v1` and `/mcp` take every field as well, and revisions and files have it: `docs/contributing.md` lists the places
// (*A field of a record*).
/// Changes to an agent. Fields left out keep their value; null clears an optional field.
#[derive(InputObject, Default)]
pub struct UpdateAgentInput {
    /// The name, unique in the organization.
    #[graphql(directive = bounds::apply(name(80).not_null()))]
    pub name: MaybeUndefined<String>,
    /// A description for people.
    #[graphql(directive = bounds::apply(length(0, 2000)))]
    pub description: MaybeUndefined<String>,
    /// A free-form label.
    #[graphql(directive = bounds::apply(length(0, 80)))]
    pub role: MaybeUndefined<String>,
    /// Its instructions, which it gets in each conversation, and again after each change.
    #[graphql(directive = bounds::apply(length(0, 8000)))]
    pub instructions: MaybeUndefined<String>,
    /// The server it runs on, starting with the next launch.
    #[graphql(directive = bounds::apply(not_null()))]
    pub server_id: MaybeUndefined<ServerId>,
    /// The image it runs from, starting with the next launch.
    #[graphql(directive = bounds::apply(not_null()))]
    pub image_id: MaybeUndefined<ImageId>,
    /// The model to use instead of the image's default.
    #[graphql(directive = bounds::apply(name(120)))]
    pub model_override: MaybeUndefined<String>,
    /// The mode for its sessions, by its id in `offeredModes`. Null: the one that the agent chooses; open conversations may keep theirs.
    #[graphql(directive = bounds::apply(name(200)))]
    pub mode_override: MaybeUndefined<String>,
    /// The type of its model credential. Not applied yet.
    pub model_credential_type: MaybeUndefined<ModelCredentialType>,
    /// The model's provider.
    #[graphql(directive = bounds::apply(length(1, 80)))]
    pub model_credential_provider: MaybeUndefined<String>,
    /// The base URL of the model's API.
    #[graphql(directive = bounds::apply(length(1, 2000)))]
    pub model_credential_base_url: MaybeUndefined<String>,
    /// The model credential. Write-only: it is never shown again. Setting one also sets `credentialChoice` to OWN, unless
    /// that is given too.
    #[graphql(directive = bounds::apply(length(1, 8000)))]
    pub model_credential: MaybeUndefined<SecretText>,
    /// Which model credential it uses: its own, an inherited one, or none.
    #[graphql(directive = bounds::apply(not_null()))]
    pub credential_choice: MaybeUndefined<CredentialChoice>,
    /// The effort to use instead of the model's default. Not applied yet.
    pub effort_override: MaybeUndefined<Effort>,
    /// Whether the model thinks before it answers. Not applied yet.
    #[graphql(directive = bounds::apply(not_null()))]
    pub thinking_enabled: MaybeUndefined<bool>,
    /// The code of the language it answers in, such as `en` or `pt-BR`.
    #[graphql(directive = bounds::apply(length(2, 35)))]
    pub language: MaybeUndefined<String>,
    /// Whether it reaches MCP servers through an HTTP bridge. Not applied yet.
    #[graphql(directive = bounds::apply(not_null()))]
    pub mcp_http_bridge: MaybeUndefined<bool>,
    /// The style of its answers.
    #[graphql(directive = bounds::apply(not_null()))]
    pub response_style: MaybeUndefined<ResponseStyle>,
    /// The format of its answers.
    #[graphql(directive = bounds::apply(not_null()))]
    pub response_format: MaybeUndefined<ResponseFormat>,
    /// Whether it sends each answer as a single message.
    #[graphql(directive = bounds::apply(not_null()))]
    pub single_message: MaybeUndefined<bool>,
    /// Whether it avoids emoji.
    #[graphql(directive = bounds::apply(not_null()))]
    pub no_emoji: MaybeUndefined<bool>,
    /// Actions at or above this risk need approval.
    #[graphql(directive = bounds::apply(range(0, 100)))]
    pub approval_ask_threshold: MaybeUndefined<i64>,
    /// Actions at or above this risk are blocked.
    #[graphql(directive = bounds::apply(range(0, 100)))]
    pub approval_block_threshold: MaybeUndefined<i64>,
    /// How many minutes it waits for a decision.
    #[graphql(directive = bounds::apply(range(1, 43_200)))]
    pub approval_timeout_minutes: MaybeUndefined<i64>,
    /// The kinds of action that always need approval, in words.
    #[graphql(directive = bounds::apply(list(50, name(500)).not_null()))]
    pub approval_categories: MaybeUndefined<Vec<String>>,
    /// Tools it may not use: names of MCP servers, or kinds of tools (`read`, `edit`, `delete`, `move`, `search`, `execute`,
    /// `think`, `fetch`, `other`).
    #[graphql(directive = bounds::apply(list(100, name(80)).not_null()))]
    pub disabled_tool_groups: MaybeUndefined<Vec<String>>,
    /// Memory in MiB, instead of the default.
    #[graphql(directive = bounds::apply(range(64, 1_048_576)))]
    pub memory_mb_override: MaybeUndefined<i64>,
    /// Processor cores, instead of the default.
    #[graphql(directive = bounds::apply(range(0, 1024)))]
    pub cpu_override: MaybeUndefined<f64>,
    /// Whether other agents may send it requests. Not applied yet.
    #[graphql(directive = bounds::apply(not_null()))]
    pub hub_available: MaybeUndefined<bool>,
    /// Whether it can speak. Not applied yet.
    #[graphql(directive = bounds::apply(not_null()))]
    pub voice_enabled: MaybeUndefined<bool>,
    /// Whether its container has a network interface of its own, past the list of hosts. Needs the permission `network.edit` as
    /// well.
    #[graphql(directive = bounds::apply(not_null()))]
    pub network_privileged: MaybeUndefined<bool>,
    /// The voice it speaks with. Not applied yet.
    #[graphql(directive = bounds::apply(name(120)))]
    pub voice_id: MaybeUndefined<String>,
    /// When it is restarted automatically, from its next end on. NEVER also cancels a planned restart.
    #[graphql(directive = bounds::apply(not_null()))]
    pub restart_policy: MaybeUndefined<RestartPolicy>,
    /// When it is backed up.
    #[graphql(directive = bounds::apply(not_null()))]
    pub backup_schedule: MaybeUndefined<BackupSchedule>,
    /// The time zone of its schedules.
    #[graphql(directive = bounds::apply(length(1, 64)))]
    pub timezone: MaybeUndefined<String>,
    /// The cron expression, if the backup schedule is CRON.
    #[graphql(directive = bounds::apply(length(1, 120)))]
    pub backup_cron: MaybeUndefined<String>,
    /// The number of backups to keep. Null: the organization's setting, or 7.
    #[graphql(directive = bounds::apply(range(1, 10_000)))]
    pub backup_retention: MaybeUndefined<i64>,
    /// Whether to keep every backup, regardless of the retention.
    #[graphql(directive = bounds::apply(not_null()))]
    pub backup_freeze: MaybeUndefined<bool>,
    /// Whether it has a cost guard of its own.
    #[graphql(directive = bounds::apply(not_null()))]
    pub cost_guard_mode: MaybeUndefined<OverrideMode>,
    /// Tokens per hour at which the cost guard acts: input, output and those written to a cache, of the last 60 minutes.
    #[graphql(directive = bounds::apply(range(1, 2_000_000_000)))]
    pub cost_guard_tokens_per_hour: MaybeUndefined<i64>,
    /// The action of the cost guard.
    pub cost_guard_action: MaybeUndefined<CostGuardAction>,
    /// Its budget for a calendar month, in millionths of the organization's currency. Null: no budget of its own.
    /// Needs the permission `organization.edit` as well.
    #[graphql(directive = bounds::apply(range(1, 1_000_000_000_000_000)))]
    pub monthly_budget_micro: MaybeUndefined<i64>,
    /// The action when that budget is spent. Needs the permission `organization.edit` as well.
    #[graphql(directive = bounds::apply(not_null()))]
    pub budget_action: MaybeUndefined<CostGuardAction>,
    /// Whether it has a session limit of its own.
    #[graphql(directive = bounds::apply(not_null()))]
    pub session_reset_mode: MaybeUndefined<OverrideMode>,
    /// Tokens at which a session starts over.
    #[graphql(directive = bounds::apply(range(1, 2_000_000_000)))]
    pub session_reset_tokens: MaybeUndefined<i64>,
}
