//! Lists stored as JSON.

use serde_json::Value;

#[must_use]
pub fn texts(list: &Value) -> Vec<String> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}
