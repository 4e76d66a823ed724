//! Database rows for organizations. Private to this feature.

/// The tenants. Every other tenant table's key starts with organization_id.
pub mod organizations {
    use sea_orm::entity::prelude::*;

    use crate::base::{
        enums::{CostGuardAction, CustomerType, Plan, VersionRetention},
        ids::{ImageId, OrgId, UserId},
        time::Timestamp,
    };

    #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
    #[sea_orm(table_name = "organizations")]
    pub struct Model {
        #[sea_orm(primary_key)]
        pub id: OrgId,
        pub name: String,
        pub plan: Plan,
        /// Part of the picture's URL. Null: no picture.
        pub avatar_version: Option<i64>,
        pub provider_oauth_client_id: Option<String>,
        pub provider_oauth_secret_sealed: Option<Vec<u8>>,
        pub voice_key_sealed: Option<Vec<u8>>,
        pub transcription_key_sealed: Option<Vec<u8>>,
        pub timezone: String,
        /// The image for agents created without one.
        pub default_image_id: Option<ImageId>,
        pub trial_ends_at: Option<Timestamp>,
        pub grace_until: Option<Timestamp>,
        pub grace_from_plan: Option<Plan>,
        pub support_access_until: Option<Timestamp>,
        pub support_access_granted_at: Option<Timestamp>,
        pub support_access_granted_by: Option<UserId>,
        pub customer_type: CustomerType,
        pub tax_name: Option<String>,
        pub tax_id: Option<String>,
        pub tax_country: Option<String>,
        pub tax_address: Option<String>,
        pub tax_postal_code: Option<String>,
        pub tax_city: Option<String>,
        pub vat_validated: bool,
        pub vat_validated_at: Option<Timestamp>,
        pub backup_retention: Option<i64>,
        pub backup_cron: Option<String>,
        pub cost_guard_tokens_per_hour: Option<i64>,
        pub cost_guard_action: CostGuardAction,
        /// Three capital letters.
        pub currency: String,
        pub monthly_budget_micro: Option<i64>,
        pub budget_action: CostGuardAction,
        pub trace_content: bool,
        pub session_reset_tokens: Option<i64>,
        pub transcript_retention_days: Option<i64>,
        /// Overrides the plan's max_agents.
        pub contracted_agents: Option<i64>,
        /// Overrides the plan's channels_per_agent.
        pub max_channels_per_agent: Option<i64>,
        /// Overrides the plan's doctor_runs_per_month.
        pub doctor_runs_per_month: Option<i64>,
        /// Overrides the plan's cron_llm_runs_per_month.
        pub cron_llm_runs_per_month: Option<i64>,
        /// Overrides the plan's file_versions.
        pub file_versions: Option<i64>,
        /// Overrides the plan's max_servers.
        pub max_servers_override: Option<i64>,
        /// Overrides the plan's min_cron_interval_minutes.
        pub min_cron_interval_minutes_override: Option<i64>,
        /// Overrides the plan's min_mail_poll_minutes.
        pub min_mail_poll_minutes_override: Option<i64>,
        pub version_retention: VersionRetention,
        pub server_alert_ram_pct: Option<i64>,
        pub server_alert_cpu_pct: Option<i64>,
        pub server_alert_load_factor: Option<f64>,
        pub require_second_factor: bool,
        pub mail_request_text: bool,
        pub chat_risk_limit: i64,
        /// Nothing new has started since this time.
        pub stopped_at: Option<Timestamp>,
        /// The member who stopped it; null for a service token or the operator.
        pub stopped_by: Option<UserId>,
        pub stopped_by_name: Option<String>,
        pub stop_reason: Option<String>,
        /// While queued turns are sent in batches after a stop: the time of the last batch.
        pub letting_go_at: Option<Timestamp>,
        pub created_at: Timestamp,
        pub updated_at: Timestamp,
    }

    crate::core::store::entity!();

    impl crate::core::store::TenantEntity for Entity {
        const ORG: Column = Column::Id;
    }
}
