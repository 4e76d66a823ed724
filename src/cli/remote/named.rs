//! Records by their names.

use serde_json::{Map, Value};

use crate::cli::Failure;

/// The record with this name or id. Names win, since a name may consist of digits.
pub fn found<'a>(records: &'a [Value], word: &str, reference: &str) -> Result<&'a Value, Failure> {
    let by_name = records.iter().find(|record| record["name"] == reference);
    let by_id =
        || records.iter().find(|record| record["id"].as_i64().is_some_and(|id| reference == id.to_string()));
    let missing =
        || Failure::not_found(format!("There is no {word} `{reference}`. `muster {word} list` shows all."));
    by_name.or_else(by_id).ok_or_else(missing)
}

/// The variables of an operation for a record.
pub fn id(record: &Value) -> Map<String, Value> {
    Map::from_iter([("id".to_owned(), record["id"].clone())])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_name_of_digits_wins_over_an_id() {
        let agents = [json!({ "id": 1, "name": "2" }), json!({ "id": 2, "name": "b" })];
        assert_eq!(found(&agents, "agent", "2").unwrap()["id"], 1);
        assert_eq!(found(&agents, "agent", "1").unwrap()["id"], 1);
        assert!(found(&agents, "agent", "c").unwrap_err().to_string().contains("muster agent list"));
    }
}
