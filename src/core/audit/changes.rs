//! An edit's changes as the log shows them: each value before and after. Secrets appear only as "changed".

use sea_orm::{ActiveModelTrait, ActiveValue, EntityTrait, Iden, Iterable, ModelTrait};
use serde_json::{Value, json};

/// The columns whose value an edit changes, each as [`from_to`]; sealed and hashed ones only as [`CHANGED`].
pub fn changed<A: ActiveModelTrait>(before: &<A::Entity as EntityTrait>::Model, edited: &A) -> Value {
    let mut changes = serde_json::Map::new();
    for column in <A::Entity as EntityTrait>::Column::iter() {
        let (name, was) = (column.to_string(), before.get(column));
        if let ActiveValue::Set(is) = edited.get(column)
            && name != "updated_at"
            && is != was
        {
            let change = both(&name, was, is);
            changes.insert(name, change);
        }
    }
    Value::Object(changes)
}

/// A changed field: `{ "before": …, "after": … }`.
pub fn from_to(before: impl serde::Serialize, after: impl serde::Serialize) -> Value {
    json!({ "before": before, "after": after })
}

/// Stands for values that the log does not show.
pub const CHANGED: &str = "changed";

/// Columns that may contain a secret despite their names: people write keys into command lines.
const UNSHOWN: [&str; 1] = ["args"];

/// Both values, if the log shows both and they look different.
fn both(column: &str, before: sea_orm::Value, after: sea_orm::Value) -> Value {
    match (shown(column, before), shown(column, after)) {
        (Some(before), Some(after)) if before != after => from_to(before, after),
        _ => CHANGED.into(),
    }
}

/// A value as the log shows it. `None` if it is not shown.
fn shown(column: &str, value: sea_orm::Value) -> Option<Value> {
    if column.ends_with("_sealed") || column.ends_with("_hash") || UNSHOWN.contains(&column) {
        return None;
    }
    Some(match value {
        sea_orm::Value::Bool(value) => value.into(),
        sea_orm::Value::BigInt(value) => value.into(),
        sea_orm::Value::Double(value) => value.into(),
        sea_orm::Value::String(Some(text)) if column == "url" || column.ends_with("_url") => origin(&text)?,
        // The record has longer texts.
        sea_orm::Value::String(Some(text)) if text.len() > 500 => return None,
        sea_orm::Value::String(value) => value.into(),
        sea_orm::Value::Json(value) => value.map_or(Value::Null, |value| *value),
        _ => return None,
    })
}

/// Only the origin of a URL: user info, paths and queries can contain keys.
fn origin(text: &str) -> Option<Value> {
    let url = url::Url::parse(text).ok().filter(url::Url::has_host)?;
    Some(url.origin().ascii_serialization().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change_of(column: &str, before: Option<&str>, after: Option<&str>) -> Value {
        both(column, sea_orm::Value::from(before), sea_orm::Value::from(after))
    }

    #[test]
    fn what_may_hold_a_secret_is_not_repeated() {
        for column in ["bot_token_sealed", "token_hash", "args"] {
            assert_eq!(change_of(column, Some("canary"), Some("canary too")), "changed");
            assert_eq!(change_of(column, Some("canary"), None), "changed");
        }
        let hook = "https://me:canary@hooks.example/T0/canary?key=canary";
        assert_eq!(
            change_of("outbound_url", None, Some(hook)),
            from_to(Value::Null, "https://hooks.example")
        );
        let other = "https://hooks.example/T0/canary";
        assert_eq!(
            change_of("outbound_url", Some(hook), Some(other)),
            "changed",
            "where it goes stays the same"
        );
        assert_eq!(change_of("url", Some("canary"), Some(hook)), "changed");
        let long = "canary ".repeat(100);
        assert_eq!(change_of("content", Some("short"), Some(&long)), "changed");
        assert_eq!(change_of("content", Some(&long), Some("short")), "changed");
        assert_eq!(change_of("name", Some("Dispatch"), Some("Desk")), from_to("Dispatch", "Desk"));
    }
}
