//! Edits an organization's settings. Its members can't set the plan, the contract's limits and measured values.

use std::time::Duration;

use async_graphql::MaybeUndefined;
use sea_orm::{ActiveModelTrait, IntoActiveModel, Set};

use super::{
    HasImage, HasSecondFactor, Limit, TermsChanged,
    check::{ParsedCron, check_timezone, parse_cron},
    entity::organizations,
    limits,
    rows::load,
};
use crate::{
    base::{
        enums::{ChangeOp, Plan, RecordKind},
        plain::{NAME_RULE, is_name},
        problem::{Problem, Result, Violation},
        secret::SecretText,
        time::Timestamp,
    },
    core::{
        access::Scope,
        audit,
        handlers::{ask, emit},
        sealing::SealContext,
        store::Tx,
    },
    domain::{
        edits,
        orgs::UpdateOrganizationInput,
        patch::{patch, patch_all, patch_required},
    },
};

/// The longest support access that can be granted at a time: a forgotten access is a risk.
const SUPPORT_ACCESS_MAX: Duration = Duration::from_hours(90 * 24);

/// Edits the organization. An edit that changes nothing does nothing.
///
/// # Errors
/// `VALIDATION_FAILED` for an invalid time zone, cron expression, or country, or an image that can't be the
/// default.
pub async fn update(scope: &Scope, edit: UpdateOrganizationInput) -> Result<()> {
    let cron = parse_cron(scope, edit.backup_cron.value()).await?;
    let tx = scope.begin().await?;
    let before = load(&tx).await?;
    let mut organization = before.clone().into_active_model();
    check(&tx, &edit, cron.as_ref()).await?;
    apply(&tx, &mut organization, edit);
    if organization.is_changed() { store(tx, before, organization).await } else { Ok(()) }
}

/// Gives the organization a plan. Only the installation's operator can. Returns whether it is another one.
pub async fn set_plan(scope: &Scope, plan: Plan) -> Result<bool> {
    let tx = scope.begin().await?;
    let before = load(&tx).await?;
    if before.plan == plan {
        return Ok(false);
    }
    let mut organization = before.clone().into_active_model();
    organization.plan = Set(plan);
    store(tx, before, organization).await?;
    Ok(true)
}

/// Stores the edited organization.
async fn store(
    tx: Tx,
    before: organizations::Model,
    mut organization: organizations::ActiveModel,
) -> Result<()> {
    organization.updated_at = Set(tx.now);
    let changes = audit::changed(&before, &organization);
    let has_new_terms = has_new_terms(&organization);
    let after = organization.update(tx.connection()).await?;
    if has_new_terms {
        let (old_timezone, timezone) = (before.timezone, after.timezone);
        emit(&tx, TermsChanged { old_timezone, timezone }).await?;
    }
    edits::raise(&tx, RecordKind::Organization, tx.scope.org).await?;
    let entry = audit::Entry {
        operation: "updateOrganization",
        op: ChangeOp::Updated,
        kind: RecordKind::Organization,
        id: tx.scope.org.0,
        changes,
    };
    audit::record(&tx, entry);
    // The edit may change which members have access.
    tx.scope.core.access.cache.invalidate_after(tx.connection());
    tx.commit().await
}

/// Whether the edit changes the spending limits or the boundaries of months.
fn has_new_terms(organization: &organizations::ActiveModel) -> bool {
    organization.monthly_budget_micro.is_set()
        || organization.budget_action.is_set()
        || organization.currency.is_set()
        || organization.timezone.is_set()
        || organization.cost_guard_tokens_per_hour.is_set()
        || organization.cost_guard_action.is_set()
}

async fn check(tx: &Tx, edit: &UpdateOrganizationInput, cron: Option<&ParsedCron>) -> Result<()> {
    let mut violations = Vec::new();
    if let MaybeUndefined::Value(name) = &edit.name
        && !is_name(name.trim())
    {
        violations.push(Violation::at("/name", "NOT_ALLOWED", NAME_RULE));
    }
    if let MaybeUndefined::Value(zone) = &edit.timezone {
        violations.extend(check_timezone("/timezone", zone));
    }
    if let Some(cron) = cron {
        let minutes = limits::value(tx, Limit::MinCronInterval).await?;
        violations.extend(cron.check("/backup_cron", minutes));
    }
    if let MaybeUndefined::Value(image) = edit.default_image_id
        && !ask(tx, HasImage(image)).await?
    {
        violations.push(Violation::unknown("/default_image_id", "image", image));
    }
    if edit.require_second_factor == MaybeUndefined::Value(true)
        && let Some(user) = tx.scope.request.caller.user()
        && !ask(tx, HasSecondFactor(user)).await?
    {
        let detail = "Set up your own second factor first, or you would lock yourself out.";
        violations.push(Violation::at("/require_second_factor", "NOT_ALLOWED", detail));
    }
    if let MaybeUndefined::Value(country) = &edit.tax_country
        && !country.bytes().all(|byte| byte.is_ascii_uppercase())
    {
        let detail = "`tax_country` must be a two-letter country code in capitals, such as DE.";
        violations.push(Violation::at("/tax_country", "NOT_ALLOWED", detail));
    }
    if let MaybeUndefined::Value(currency) = &edit.currency
        && !currency.bytes().all(|byte| byte.is_ascii_uppercase())
    {
        let detail = "`currency` must be three capital letters, such as EUR.";
        violations.push(Violation::at("/currency", "NOT_ALLOWED", detail));
    }
    if let MaybeUndefined::Value(until) = edit.support_access_until {
        violations.extend(check_support_access(until, tx.now));
    }
    Problem::fail_if_any(violations)
}

fn check_support_access(until: Timestamp, now: Timestamp) -> Option<Violation> {
    let (code, detail) = if until <= now {
        ("TOO_SMALL", "`support_access_until` is in the past. Send null to end the access.")
    } else if until > now.plus(SUPPORT_ACCESS_MAX) {
        ("TOO_LARGE", "Support access can last at most 90 days.")
    } else {
        return None;
    };
    Some(Violation::at("/support_access_until", code, detail))
}

fn apply(tx: &Tx, organization: &mut organizations::ActiveModel, edit: UpdateOrganizationInput) {
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
        // The stored validation applies to the old value.
        organization.vat_validated = Set(false);
        organization.vat_validated_at = Set(None);
    }
    patch_required(&mut organization.name, edit.name.map_value(|name| name.trim().to_owned()));
    patch(&mut organization.voice_key_sealed, seal(scope, "voice_key", edit.voice_key));
    patch(
        &mut organization.transcription_key_sealed,
        seal(scope, "transcription_key", edit.transcription_key),
    );
    patch(
        &mut organization.provider_oauth_secret_sealed,
        seal(scope, "provider_oauth_secret", edit.provider_oauth_secret),
    );
    patch_all!(organization, edit;
        required timezone, require_second_factor, mail_request_text, chat_risk_limit, customer_type, cost_guard_action,
            currency, budget_action, trace_content, version_retention;
        optional default_image_id, provider_oauth_client_id, support_access_until, tax_name,
            tax_id, tax_country, tax_address, tax_postal_code, tax_city, backup_retention,
            backup_cron, cost_guard_tokens_per_hour, monthly_budget_micro, session_reset_tokens,
            transcript_retention_days, server_alert_ram_pct, server_alert_cpu_pct,
            server_alert_load_factor,
    );
}

fn seal(scope: &Scope, field: &str, secret: MaybeUndefined<SecretText>) -> MaybeUndefined<Vec<u8>> {
    let context = SealContext::new(scope.org, "organizations", scope.org.0, field);
    secret.map_value(|secret| scope.core.sealing.seal(&secret.0, &context))
}
