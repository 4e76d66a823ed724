//! A person's settings of the panel. Only the panel interprets them, except for the time zone, which mails use.

use sea_orm::{ActiveModelTrait, IntoActiveModel, Set};
use serde_json::{Value, json};

use super::users::by_id;
use crate::{
    base::{
        bounds::{NAME, TEXT},
        ids::UserId,
        problem::{Problem, Result},
        zones::is_zone,
    },
    core::{
        Core, Request,
        access::Person,
        audit::{PersonalEntry, record_personal},
    },
};

/// A person's preferences: an object. `None`: not set.
///
/// # Errors
/// `NOT_FOUND`.
pub async fn preferences(core: &Core, id: UserId) -> Result<Option<Value>> {
    Ok(by_id(core.db.read(), id).await?.preferences)
}

/// Replaces a person's preferences. If their `timeZone` is not a valid time zone, mails use the organization's.
///
/// # Errors
/// `VALIDATION_FAILED` unless it is an object of at most 64 KiB.
pub async fn set_preferences(request: &Request, person: &Person, preferences: Value) -> Result<()> {
    if !preferences.is_object() {
        let detail = "`preferences` must be an object.";
        return Err(Problem::invalid_parameter("preferences", "WRONG_TYPE", detail));
    }
    let bytes = preferences.to_string().len();
    if bytes > TEXT {
        let detail = format!("The preferences have {bytes} bytes as JSON; at most {TEXT} are allowed.");
        return Err(Problem::invalid_parameter("preferences", "TOO_LONG", detail));
    }
    let tx = request.begin().await?;
    let mut row = by_id(&tx, person.id).await?.into_active_model();
    row.time_zone = Set(time_zone(&preferences));
    row.preferences = Set(Some(preferences));
    row.updated_at = Set(request.core.clock.now());
    row.update(&tx).await?;
    // They may contain anything, so the audit log records only their size.
    let entry = PersonalEntry::done("setPreferences", person.id, json!({ "bytes": bytes }));
    record_personal(&tx, request, entry);
    tx.commit().await?;
    Ok(())
}

fn time_zone(preferences: &Value) -> Option<String> {
    let name = preferences["timeZone"].as_str().filter(|name| name.len() <= NAME)?;
    is_zone(name).then(|| name.to_owned())
}
