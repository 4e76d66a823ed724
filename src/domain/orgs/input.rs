//! The schema's input objects. Edits take them as they are.

use async_graphql::{InputObject, MaybeUndefined};

use crate::{
    base::{
        enums::{CostGuardAction, CustomerType, VersionRetention},
        ids::ImageId,
        secret::SecretText,
        time::Timestamp,
    },
    resolvers::bounds::{bounds, length, name, not_null, range},
};

/// Changes to the organization. Fields left out keep their value; null clears an optional field. Only the
/// operator can change the plan and the contract's limits.
#[derive(InputObject, Default)]
pub struct UpdateOrganizationInput {
    /// The name.
    #[graphql(directive = bounds::apply(name(80).not_null()))]
    pub name: MaybeUndefined<String>,
    /// The time zone of mails to people who have not set their own, such as `Europe/Berlin`.
    #[graphql(directive = bounds::apply(length(1, 64).not_null()))]
    pub timezone: MaybeUndefined<String>,
    /// The image for agents created without one.
    pub default_image_id: MaybeUndefined<ImageId>,
    /// The API key for speech. Write-only: it is never shown again. Not applied yet.
    #[graphql(directive = bounds::apply(length(1, 8000)))]
    pub voice_key: MaybeUndefined<SecretText>,
    /// The API key for transcribing voice messages. Write-only: it is never shown again. Not applied yet.
    #[graphql(directive = bounds::apply(length(1, 8000)))]
    pub transcription_key: MaybeUndefined<SecretText>,
    /// The client ID of its own OAuth application at Google, for accounts that channels act with.
    #[graphql(directive = bounds::apply(length(1, 500)))]
    pub provider_oauth_client_id: MaybeUndefined<String>,
    /// The client secret of that OAuth application. Write-only: it is never shown again.
    #[graphql(directive = bounds::apply(length(1, 8000)))]
    pub provider_oauth_secret: MaybeUndefined<SecretText>,
    /// Until when the operator's support staff may look in, at most 90 days from now. Null ends the access. Not applied yet.
    pub support_access_until: MaybeUndefined<Timestamp>,
    /// Whether members need a second factor to get in.
    #[graphql(directive = bounds::apply(not_null()))]
    pub require_second_factor: MaybeUndefined<bool>,
    /// Whether mail about approvals may contain what is asked. Mail may be read where it is kept.
    #[graphql(directive = bounds::apply(not_null()))]
    pub mail_request_text: MaybeUndefined<bool>,
    /// Actions of a lower risk than this may be decided in linked chats; others only in the panel. 0: nothing is decided
    /// in chats.
    #[graphql(directive = bounds::apply(range(0, 101).not_null()))]
    pub chat_risk_limit: MaybeUndefined<i64>,
    /// Whether the customer is a business or a private person.
    #[graphql(directive = bounds::apply(not_null()))]
    pub customer_type: MaybeUndefined<CustomerType>,
    /// The name on invoices.
    #[graphql(directive = bounds::apply(length(1, 200)))]
    pub tax_name: MaybeUndefined<String>,
    /// The tax ID.
    #[graphql(directive = bounds::apply(length(1, 40)))]
    pub tax_id: MaybeUndefined<String>,
    /// The country, as a two-letter code.
    #[graphql(directive = bounds::apply(length(2, 2)))]
    pub tax_country: MaybeUndefined<String>,
    /// The street and house number.
    #[graphql(directive = bounds::apply(length(1, 500)))]
    pub tax_address: MaybeUndefined<String>,
    /// The postal code.
    #[graphql(directive = bounds::apply(length(1, 20)))]
    pub tax_postal_code: MaybeUndefined<String>,
    /// The city.
    #[graphql(directive = bounds::apply(length(1, 200)))]
    pub tax_city: MaybeUndefined<String>,
    /// The number of backups to keep per agent. Null: 7.
    #[graphql(directive = bounds::apply(range(1, 10_000)))]
    pub backup_retention: MaybeUndefined<i64>,
    /// When agents are backed up, as a cron expression with five fields.
    #[graphql(directive = bounds::apply(length(1, 120)))]
    pub backup_cron: MaybeUndefined<String>,
    /// Tokens per hour at which the cost guard acts, for each agent that follows the organization's rule: input, output and
    /// those written to a cache, of the last 60 minutes.
    #[graphql(directive = bounds::apply(range(1, 2_000_000_000)))]
    pub cost_guard_tokens_per_hour: MaybeUndefined<i64>,
    /// The action of the cost guard.
    #[graphql(directive = bounds::apply(not_null()))]
    pub cost_guard_action: MaybeUndefined<CostGuardAction>,
    /// The currency of its money, such as `USD`. Only prices in this currency count.
    #[graphql(directive = bounds::apply(length(3, 3).not_null()))]
    pub currency: MaybeUndefined<String>,
    /// What all its agents may spend in a calendar month, in millionths of the currency. Null: no budget.
    #[graphql(directive = bounds::apply(range(1, 1_000_000_000_000_000)))]
    pub monthly_budget_micro: MaybeUndefined<i64>,
    /// The action when that budget is spent.
    #[graphql(directive = bounds::apply(not_null()))]
    pub budget_action: MaybeUndefined<CostGuardAction>,
    /// Whether traces contain prompts and answers. Traces may be read where they are kept.
    #[graphql(directive = bounds::apply(not_null()))]
    pub trace_content: MaybeUndefined<bool>,
    /// Tokens at which a session starts over.
    #[graphql(directive = bounds::apply(range(1, 2_000_000_000)))]
    pub session_reset_tokens: MaybeUndefined<i64>,
    /// How many days after its last message the messages and files of a conversation are kept. Null: forever.
    #[graphql(directive = bounds::apply(range(1, 36_500)))]
    pub transcript_retention_days: MaybeUndefined<i64>,
    /// Which versions of a file are kept. Not applied yet.
    #[graphql(directive = bounds::apply(not_null()))]
    pub version_retention: MaybeUndefined<VersionRetention>,
    /// The memory use, in percent, that raises an alert.
    #[graphql(directive = bounds::apply(range(1, 100)))]
    pub server_alert_ram_pct: MaybeUndefined<i64>,
    /// The processor use, in percent, that raises an alert.
    #[graphql(directive = bounds::apply(range(1, 100)))]
    pub server_alert_cpu_pct: MaybeUndefined<i64>,
    /// The load per core that raises an alert.
    #[graphql(directive = bounds::apply(range(0, 1000)))]
    pub server_alert_load_factor: MaybeUndefined<f64>,
}
