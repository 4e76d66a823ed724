//! Options of a session by category.

use agent_client_protocol_schema::v1::{
    SessionConfigKind, SessionConfigOption, SessionConfigOptionCategory, SessionConfigSelectOption,
    SessionConfigSelectOptions,
};
use serde_json::Value;

/// An option with a list of values.
pub struct Select<'a> {
    pub id: String,
    /// The current value.
    pub current: String,
    /// The offered values.
    pub values: Vec<&'a SessionConfigSelectOption>,
}

impl<'a> Select<'a> {
    /// The first option of this category.
    pub fn find(options: &'a [SessionConfigOption], category: &SessionConfigOptionCategory) -> Option<Self> {
        let mut of_category = options.iter().filter(|option| option.category.as_ref() == Some(category));
        of_category.find_map(Self::from_option)
    }

    fn from_option(option: &'a SessionConfigOption) -> Option<Self> {
        let SessionConfigKind::Select(select) = &option.kind else { return None };
        let values = match &select.options {
            SessionConfigSelectOptions::Ungrouped(options) => options.iter().collect(),
            SessionConfigSelectOptions::Grouped(groups) => {
                groups.iter().flat_map(|group| &group.options).collect()
            }
            _ => Vec::new(),
        };
        Some(Self { id: option.id.to_string(), current: select.current_value.to_string(), values })
    }
}

/// From the answer to a request that opens a session or changes its options. Unreadable ones are skipped.
pub fn in_answer(answer: &Value) -> Vec<SessionConfigOption> {
    let list = answer.get("configOptions").and_then(Value::as_array);
    let list = list.into_iter().flatten();
    list.filter_map(|option| serde_json::from_value(option.clone()).ok()).collect()
}
