//! What an edit changed, as the log shows it. Secrets appear only as "changed".

use serde_json::Value;

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

/// Stands for a value that the log does not repeat.
const CHANGED: &str = "changed";

/// Longer texts are not repeated: the record has them.
const MAX_TEXT: usize = 500;

/// Columns that may contain a secret although their names don't say so: people write keys into command lines.
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

/// Only the origin of a URL: user info, paths and queries can contain keys.
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
