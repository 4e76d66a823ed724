//! What is set: the input objects of the schema, which edits take as they are.

use async_graphql::{InputObject, MaybeUndefined};

use crate::{
    base::{
        enums::{CostGuardAction, CustomerType, VersionRetention},
        ids::ImageId,
        secret::SecretText,
        time::Timestamp,
    },
    fields::bounds::{bounds, length, name, not_null, range},
};

/// What an edit of the organization changes: absent is untouched, null clears what may be empty. The plan and what
/// the contract says otherwise are the operator's.
#[derive(InputObject, Default)]
pub struct UpdateOrganizationInput {
    /// The name.
    #[graphql(directive = bounds::apply(name(80).not_null()))]
    pub name: MaybeUndefined<String>,
    /// The time zone of its schedules: Europe/Berlin. Not in force yet.
    #[graphql(directive = bounds::apply(length(1, 64).not_null()))]
    pub timezone: MaybeUndefined<String>,
    /// What agents run from whose creator names no image.
    pub default_image_id: MaybeUndefined<ImageId>,
    /// The key by which agents speak. It is never shown again. Not in force yet.
    #[graphql(directive = bounds::apply(length(1, 8000)))]
    pub voice_key: MaybeUndefined<SecretText>,
    /// The key by which voice messages are transcribed. It is never shown again. Not in force yet.
    #[graphql(directive = bounds::apply(length(1, 8000)))]
    pub transcription_key: MaybeUndefined<SecretText>,
    /// The client id of an OAuth application of its own at the model provider. Not in force yet.
    #[graphql(directive = bounds::apply(length(1, 500)))]
    pub provider_oauth_client_id: MaybeUndefined<String>,
    /// That application's secret. It is never shown again. Not in force yet.
    #[graphql(directive = bounds::apply(length(1, 8000)))]
    pub provider_oauth_secret: MaybeUndefined<SecretText>,
    /// Until when the operator's support may look in: at most ninety days; null ends it. Not in force yet.
    pub support_access_until: MaybeUndefined<Timestamp>,
    /// Whether members without a second factor are kept out.
    #[graphql(directive = bounds::apply(not_null()))]
    pub require_second_factor: MaybeUndefined<bool>,
    /// A business or a person.
    #[graphql(directive = bounds::apply(not_null()))]
    pub customer_type: MaybeUndefined<CustomerType>,
    /// The name for invoices.
    #[graphql(directive = bounds::apply(length(1, 200)))]
    pub tax_name: MaybeUndefined<String>,
    /// The tax number.
    #[graphql(directive = bounds::apply(length(1, 40)))]
    pub tax_id: MaybeUndefined<String>,
    /// The country: a code of two letters.
    #[graphql(directive = bounds::apply(length(2, 2)))]
    pub tax_country: MaybeUndefined<String>,
    /// Street and number.
    #[graphql(directive = bounds::apply(length(1, 500)))]
    pub tax_address: MaybeUndefined<String>,
    /// The postal code.
    #[graphql(directive = bounds::apply(length(1, 20)))]
    pub tax_postal_code: MaybeUndefined<String>,
    /// The city.
    #[graphql(directive = bounds::apply(length(1, 200)))]
    pub tax_city: MaybeUndefined<String>,
    /// How many backups of an agent are kept. Not in force yet.
    #[graphql(directive = bounds::apply(range(1, 10_000)))]
    pub backup_retention: MaybeUndefined<i64>,
    /// When agents are backed up: a cron line of five fields. Not in force yet.
    #[graphql(directive = bounds::apply(length(1, 120)))]
    pub backup_cron: MaybeUndefined<String>,
    /// Tokens an hour from which the guard acts. Not in force yet.
    #[graphql(directive = bounds::apply(range(1, 2_000_000_000)))]
    pub cost_guard_tokens_per_hour: MaybeUndefined<i64>,
    /// What the guard does. Not in force yet.
    #[graphql(directive = bounds::apply(not_null()))]
    pub cost_guard_action: MaybeUndefined<CostGuardAction>,
    /// Tokens at which a session starts over. Not in force yet.
    #[graphql(directive = bounds::apply(range(1, 2_000_000_000)))]
    pub session_reset_tokens: MaybeUndefined<i64>,
    /// How long transcripts are kept, in days; null: for good. Not in force yet.
    #[graphql(directive = bounds::apply(range(1, 36_500)))]
    pub transcript_retention_days: MaybeUndefined<i64>,
    /// Which versions of a file are kept. Not in force yet.
    #[graphql(directive = bounds::apply(not_null()))]
    pub version_retention: MaybeUndefined<VersionRetention>,
    /// Memory use that raises an alert, in percent. Not in force yet.
    #[graphql(directive = bounds::apply(range(1, 100)))]
    pub server_alert_ram_pct: MaybeUndefined<i64>,
    /// Processor use that raises an alert, in percent. Not in force yet.
    #[graphql(directive = bounds::apply(range(1, 100)))]
    pub server_alert_cpu_pct: MaybeUndefined<i64>,
    /// Load for each core that raises an alert. Not in force yet.
    #[graphql(directive = bounds::apply(range(0, 1000)))]
    pub server_alert_load_factor: MaybeUndefined<f64>,
}
