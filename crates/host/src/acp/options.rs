//! The options of a session: what it lets one choose from, by category.

use agent_client_protocol_schema::v1::{
    SessionConfigKind, SessionConfigOption, SessionConfigOptionCategory, SessionConfigSelectOption,
    SessionConfigSelectOptions,
};
use serde_json::Value;

/// An option that is one of several values.
pub struct Select<'a> {
    /// Identifies the option.
    pub id: String,
    /// The value that it has.
    pub current: String,
    /// The values that it may have.
    pub values: Vec<&'a SessionConfigSelectOption>,
}

impl<'a> Select<'a> {
    /// The first of this category.
    pub fn find(options: &'a [SessionConfigOption], category: &SessionConfigOptionCategory) -> Option<Self> {
        let mut of_category = options.iter().filter(|option| option.category.as_ref() == Some(category));
        of_category.find_map(Self::of)
    }

    fn of(option: &'a SessionConfigOption) -> Option<Self> {
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

/// In the answer to a request that opens a session or changes its options. Those that can't be read are passed over.
pub fn in_answer(answer: &Value) -> Vec<SessionConfigOption> {
    let list = answer.get("configOptions").and_then(Value::as_array);
    let list = list.into_iter().flatten();
    list.filter_map(|option| serde_json::from_value(option.clone()).ok()).collect()
}
