//! Editing an organization: its settings, one by one. What the contract says (the plan, limits of its own) and what
//! is measured can't be set here.

use std::time::Duration;

use async_graphql::MaybeUndefined;
use sea_orm::{ActiveModelTrait, IntoActiveModel, Set};
use secrecy::SecretString;

use super::{
    Limit,
    check::{check_cron_interval, check_timezone},
    entity::organizations,
    limits, load,
};
use crate::{
    base::{
        enums::{ChangeOp, CostGuardAction, CustomerType, RecordKind, VersionRetention},
        ids::ImageId,
        plain::{NAME_RULE, is_name},
        problem::{Problem, Result, Violation},
        time::Timestamp,
    },
    core::{
        access::Scope,
        audit,
        sealing::SealContext,
        store::{Tx, patch, patch_required},
    },
    slices::{people, servers},
};

/// The longest that support may be let in at a time.
const SUPPORT_ACCESS_MAX: Duration = Duration::from_hours(90 * 24);

/// What an edit changes: absent is untouched, null clears what may be empty.
#[derive(Clone, Debug, Default)]
pub struct OrganizationEdit {
    /// The name.
    pub name: MaybeUndefined<String>,
    /// The time zone of its schedules: Europe/Berlin.
    pub timezone: MaybeUndefined<String>,
    /// What agents run from whose creator names no image.
    pub default_image_id: MaybeUndefined<ImageId>,
    /// The key by which agents speak. It is never shown again.
    pub voice_key: MaybeUndefined<SecretString>,
    /// The key by which voice messages are transcribed. It is never shown again.
    pub transcription_key: MaybeUndefined<SecretString>,
    /// The client id of an OAuth application of its own at the model provider.
    pub provider_oauth_client_id: MaybeUndefined<String>,
    /// That application's secret. It is never shown again.
    pub provider_oauth_secret: MaybeUndefined<SecretString>,
    /// Until when the operator's support may look in: at most ninety days; null ends it.
    pub support_access_until: MaybeUndefined<Timestamp>,
    /// Whether members without a second factor are kept out.
    pub require_second_factor: MaybeUndefined<bool>,
    /// A business or a person.
    pub customer_type: MaybeUndefined<CustomerType>,
    /// The name for invoices.
    pub tax_name: MaybeUndefined<String>,
    /// The tax number.
    pub tax_id: MaybeUndefined<String>,
    /// The country: a code of two letters.
    pub tax_country: MaybeUndefined<String>,
    /// Street and number.
    pub tax_address: MaybeUndefined<String>,
    /// The postal code.
    pub tax_postal_code: MaybeUndefined<String>,
    /// The city.
    pub tax_city: MaybeUndefined<String>,
    /// How many backups of an agent are kept.
    pub backup_retention: MaybeUndefined<i64>,
    /// When agents are backed up: a cron line of five fields.
    pub backup_cron: MaybeUndefined<String>,
    /// Tokens an hour from which the guard acts.
    pub cost_guard_tokens_per_hour: MaybeUndefined<i64>,
    /// What the guard does.
    pub cost_guard_action: MaybeUndefined<CostGuardAction>,
    /// Tokens at which a session starts over.
    pub session_reset_tokens: MaybeUndefined<i64>,
    /// How long transcripts are kept, in days; null: for good.
    pub transcript_retention_days: MaybeUndefined<i64>,
    /// Which versions of a file are kept.
    pub version_retention: MaybeUndefined<VersionRetention>,
    /// Memory use that raises an alert, in percent.
    pub server_alert_ram_pct: MaybeUndefined<i64>,
    /// Processor use that raises an alert, in percent.
    pub server_alert_cpu_pct: MaybeUndefined<i64>,
    /// Load for each core that raises an alert.
    pub server_alert_load_factor: MaybeUndefined<f64>,
}

/// Edits the organization, unless nothing changes.
///
/// # Errors
/// `VALIDATION_FAILED` for a time zone, cron line or country that is none, for an image that can't be the default.
pub async fn update(scope: &Scope, edit: OrganizationEdit) -> Result<()> {
    let tx = scope.begin().await?;
    let mut organization = load(&tx).await?.into_active_model();
    check(&tx, &edit).await?;
    apply(&tx, &mut organization, edit);
    if !organization.is_changed() {
        return Ok(());
    }
    organization.updated_at = Set(tx.now);
    let changes = audit::changed(&organization);
    organization.update(tx.connection()).await?;
    let entry = audit::Entry {
        operation: "updateOrganization",
        op: ChangeOp::Updated,
        kind: RecordKind::Organization,
        id: scope.org.0,
        changes,
    };
    audit::record(&tx, entry);
    // Who may come in at all may have changed.
    scope.core.access.cache.invalidate_after(tx.connection());
    tx.commit().await?;
    Ok(())
}

async fn check(tx: &Tx, edit: &OrganizationEdit) -> Result<()> {
    let mut violations = Vec::new();
    if let MaybeUndefined::Value(name) = &edit.name
        && !is_name(name.trim())
    {
        violations.push(Violation::at("/name", "NOT_ALLOWED", NAME_RULE));
    }
    if let MaybeUndefined::Value(zone) = &edit.timezone {
        violations.extend(check_timezone("/timezone", zone));
    }
    if let MaybeUndefined::Value(line) = &edit.backup_cron {
        let minutes = limits::value(tx, Limit::MinCronInterval).await?;
        violations.extend(check_cron_interval("/backup_cron", line, minutes));
    }
    if let MaybeUndefined::Value(image) = edit.default_image_id
        && !servers::image_is_usable(tx, image).await?
    {
        violations.push(Violation::unknown("/default_image_id", "image", image));
    }
    if edit.require_second_factor == MaybeUndefined::Value(true)
        && let Some(user) = tx.scope.request.caller.user()
        && !people::has_second_factor(tx.connection(), user).await?
    {
        let detail = "Set up a second factor of your own first; without one you would be kept out, too.";
        violations.push(Violation::at("/require_second_factor", "NOT_ALLOWED", detail));
    }
    if let MaybeUndefined::Value(country) = &edit.tax_country
        && !country.bytes().all(|byte| byte.is_ascii_uppercase())
    {
        let detail = "`tax_country` is a code of two capital letters: DE.";
        violations.push(Violation::at("/tax_country", "NOT_ALLOWED", detail));
    }
    if let MaybeUndefined::Value(until) = edit.support_access_until {
        violations.extend(check_support_access(until, tx.now));
    }
    Problem::refuse(violations)
}

fn check_support_access(until: Timestamp, now: Timestamp) -> Option<Violation> {
    let (code, detail) = if until <= now {
        ("TOO_SMALL", "`support_access_until` has passed; null ends the access.")
    } else if until > now.plus(SUPPORT_ACCESS_MAX) {
        ("TOO_LARGE", "Support is let in for at most ninety days.")
    } else {
        return None;
    };
    Some(Violation::at("/support_access_until", code, detail))
}

fn apply(tx: &Tx, organization: &mut organizations::ActiveModel, edit: OrganizationEdit) {
    let scope = &tx.scope;
    match edit.support_access_until {
        MaybeUndefined::Undefined => {}
        MaybeUndefined::Null => {
            organization.support_access_granted_at = Set(None);
            organization.support_access_granted_by = Set(None);
        }
        MaybeUndefined::Value(_) => {
            organization.support_access_granted_at = Set(Some(tx.now));
            organization.support_access_granted_by = Set(scope.request.caller.user());
        }
    }
    if !edit.tax_id.is_undefined() || !edit.tax_country.is_undefined() {
        // What was found to be valid is not what stands there now.
        organization.vat_validated = Set(false);
        organization.vat_validated_at = Set(None);
    }
    patch_required(&mut organization.name, edit.name.map_value(|name| name.trim().to_owned()));
    patch_required(&mut organization.timezone, edit.timezone);
    patch(&mut organization.default_image_id, edit.default_image_id);
    patch(&mut organization.voice_key_sealed, seal(scope, "voice_key", edit.voice_key));
    patch(
        &mut organization.transcription_key_sealed,
        seal(scope, "transcription_key", edit.transcription_key),
    );
    patch(&mut organization.provider_oauth_client_id, edit.provider_oauth_client_id);
    patch(
        &mut organization.provider_oauth_secret_sealed,
        seal(scope, "provider_oauth_secret", edit.provider_oauth_secret),
    );
    patch(&mut organization.support_access_until, edit.support_access_until);
    patch_required(&mut organization.require_second_factor, edit.require_second_factor);
    patch_required(&mut organization.customer_type, edit.customer_type);
    patch(&mut organization.tax_name, edit.tax_name);
    patch(&mut organization.tax_id, edit.tax_id);
    patch(&mut organization.tax_country, edit.tax_country);
    patch(&mut organization.tax_address, edit.tax_address);
    patch(&mut organization.tax_postal_code, edit.tax_postal_code);
    patch(&mut organization.tax_city, edit.tax_city);
    patch(&mut organization.backup_retention, edit.backup_retention);
    patch(&mut organization.backup_cron, edit.backup_cron);
    patch(&mut organization.cost_guard_tokens_per_hour, edit.cost_guard_tokens_per_hour);
    patch_required(&mut organization.cost_guard_action, edit.cost_guard_action);
    patch(&mut organization.session_reset_tokens, edit.session_reset_tokens);
    patch(&mut organization.transcript_retention_days, edit.transcript_retention_days);
    patch_required(&mut organization.version_retention, edit.version_retention);
    patch(&mut organization.server_alert_ram_pct, edit.server_alert_ram_pct);
    patch(&mut organization.server_alert_cpu_pct, edit.server_alert_cpu_pct);
    patch(&mut organization.server_alert_load_factor, edit.server_alert_load_factor);
}

fn seal(scope: &Scope, field: &str, secret: MaybeUndefined<SecretString>) -> MaybeUndefined<Vec<u8>> {
    let context = SealContext::new(scope.org, "organizations", scope.org.0, field);
    secret.map_value(|secret| scope.core.keys.seal(&secret, &context))
}
