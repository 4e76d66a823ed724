//! The audit log: who did what, through which credential, to what.
//!
//! A line is written in the transaction of the change that it tells of, so that neither exists without the
//! other. Lines are only ever added. Secrets never get here: of a secret the log knows that it changed.

mod entity;
pub mod graphql;

use sea_orm::{ActiveModelTrait, NotSet, Set};
use serde_json::Value;

use self::entity::audit_log;
use crate::{enums::AuditOutcome, error::Result, graphql::Permit, store::Tx};

/// What happened, for the log.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The root field of the schema: `createServer`.
    pub operation: &'static str,
    /// The kind of record that it concerns: `server`.
    pub target_kind: &'static str,
    /// Which one.
    pub target_id: i64,
    /// What changed: an object.
    pub changes: Value,
}

/// Writes a line as the transaction's caller.
///
/// # Errors
/// The database refused; then the change does not happen either.
pub async fn record(tx: &Tx, entry: Entry) -> Result<()> {
    let caller = &tx.scope.request.caller;
    let permission = match tx.scope.app.catalogue.permit(entry.operation) {
        Some(Permit::InOrganization { permission, .. }) => Some(permission.as_str().to_owned()),
        _ => None,
    };
    audit_log::ActiveModel {
        id: NotSet,
        organization_id: Set(Some(tx.scope.org)),
        at: Set(tx.now),
        actor_kind: Set(caller.kind()),
        actor_id: Set(caller.user().map(|id| id.0).or(caller.token().map(|id| id.0))),
        actor_name: Set(Some(caller.name().to_owned())),
        credential_hint: Set(caller.hint().map(str::to_owned)),
        operation: Set(entry.operation.to_owned()),
        permission: Set(permission),
        outcome: Set(AuditOutcome::Allowed),
        target_kind: Set(Some(entry.target_kind.to_owned())),
        target_id: Set(Some(entry.target_id)),
        changes: Set(entry.changes),
        request_id: Set(Some(tx.scope.request.id.clone())),
        ip: Set(tx.scope.request.ip.map(|ip| ip.to_string())),
        prev_hash: NotSet,
        hash: NotSet,
    }
    .insert(tx.connection())
    .await?;
    Ok(())
}

/// The columns that an edit sets, with their new values; sealed and hashed ones only as "changed".
pub fn changed<A: sea_orm::ActiveModelTrait>(edited: &A) -> Value {
    use sea_orm::{ActiveValue, Iden, Iterable};
    let mut changes = serde_json::Map::new();
    for column in <A::Entity as sea_orm::EntityTrait>::Column::iter() {
        let name = column.to_string();
        if let ActiveValue::Set(value) = edited.get(column)
            && name != "updated_at"
        {
            changes.insert(name.clone(), shown(&name, value));
        }
    }
    Value::Object(changes)
}

/// What stands in the log for a value that it does not repeat.
const CHANGED: &str = "changed";

/// Longer texts are not repeated: the record has them.
const MAX_TEXT: usize = 500;

/// Columns that may hold a secret without being named for one: people write keys into command lines.
const UNSHOWN: [&str; 1] = ["args"];

fn shown(column: &str, value: sea_orm::Value) -> Value {
    if column.ends_with("_sealed") || column.ends_with("_hash") || UNSHOWN.contains(&column) {
        return Value::from(CHANGED);
    }
    match value {
        sea_orm::Value::Bool(value) => value.into(),
        sea_orm::Value::BigInt(value) => value.into(),
        sea_orm::Value::Double(value) => value.into(),
        sea_orm::Value::String(Some(text)) if column == "url" || column.ends_with("_url") => origin(&text),
        sea_orm::Value::String(Some(text)) if text.len() > MAX_TEXT => CHANGED.into(),
        sea_orm::Value::String(value) => value.into(),
        sea_orm::Value::Json(value) => value.map_or(Value::Null, |value| *value),
        _ => CHANGED.into(),
    }
}

/// Of an address only whose it is: user info, paths and queries carry keys.
fn origin(text: &str) -> Value {
    match url::Url::parse(text) {
        Ok(url) if url.has_host() => url.origin().ascii_serialization().into(),
        _ => CHANGED.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(column: &str, text: &str) -> Value {
        shown(column, sea_orm::Value::from(text))
    }

    #[test]
    fn what_may_hold_a_secret_is_not_repeated() {
        let plain = ["bot_token_sealed", "token_hash", "args"].map(|column| of(column, "canary"));
        assert_eq!(plain, ["changed"; 3]);
        assert_eq!(
            of("outbound_url", "https://me:canary@hooks.example/T0/canary?key=canary"),
            "https://hooks.example"
        );
        assert_eq!(of("url", "canary"), "changed");
        assert_eq!(of("content", &"canary ".repeat(100)), "changed");
        assert_eq!(of("name", "Dispatch"), "Dispatch");
    }
}
