//! An agent's form as a question for a person: at most one choice and one text. A form that requires more is declined,
//! since a chat can't fill it.

use std::collections::BTreeMap;

use agent_client_protocol_schema::v1::{
    ElicitationContentValue, ElicitationPropertySchema, ElicitationSchema, EnumOption, MultiSelectItems,
};
use muster_protocol::event::{Asked, Choice};
use serde::{Deserialize, Serialize};

use super::short;
use crate::bounds::ID;

/// The mapping from an answer to the form's fields.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Form {
    choice: Option<(String, ChoiceKind)>,
    text: Option<(String, TextKind)>,
    required: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum ChoiceKind {
    One,
    Several,
    YesOrNo,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum TextKind {
    Text,
    Number,
    Integer,
}

enum Field {
    Choice(ChoiceKind, Vec<Choice>),
    Text(TextKind),
    Unknown,
}

/// The question of a form; `None` if a chat can't ask it.
pub fn question(message: &str, schema: &ElicitationSchema) -> Option<(Asked, Form)> {
    let required = schema.required.clone().unwrap_or_default();
    let (mut choice, mut text, mut offered) = (None, None, Vec::new());
    for (name, property) in &schema.properties {
        match field(property) {
            Field::Choice(choosing, options) if choice.is_none() => {
                offered = options;
                choice = Some((name.clone(), choosing));
            }
            Field::Text(writing) if text.is_none() => text = Some((name.clone(), writing)),
            _ => {}
        }
    }
    let known = |name: &String| {
        [choice.as_ref().map(|(name, _)| name), text.as_ref().map(|(name, _)| name)].contains(&Some(name))
    };
    // An id must not be truncated.
    let is_too_long = offered.iter().any(|option| option.id.len() > ID);
    if (choice.is_none() && text.is_none()) || is_too_long || !required.iter().all(known) {
        return None;
    }
    let asked = Asked::Question {
        text: short(message, 4000),
        options: offered,
        multiple: matches!(choice, Some((_, ChoiceKind::Several))),
        allow_text: text.is_some(),
    };
    Some((asked, Form { choice, text, required }))
}

fn field(property: &ElicitationPropertySchema) -> Field {
    match property {
        ElicitationPropertySchema::String(string) => {
            if let Some(options) = &string.one_of {
                Field::Choice(ChoiceKind::One, titled_choices(options))
            } else if let Some(values) = &string.enum_values {
                Field::Choice(ChoiceKind::One, plain(values))
            } else {
                Field::Text(TextKind::Text)
            }
        }
        ElicitationPropertySchema::Array(array) => match &array.items {
            MultiSelectItems::String(items) => Field::Choice(ChoiceKind::Several, plain(&items.values)),
            MultiSelectItems::Titled(items) => {
                Field::Choice(ChoiceKind::Several, titled_choices(&items.options))
            }
            _ => Field::Unknown,
        },
        ElicitationPropertySchema::Boolean(_) => {
            let option = |id: &str, label: &str| Choice {
                id: id.to_owned(),
                label: label.to_owned(),
                description: None,
            };
            Field::Choice(ChoiceKind::YesOrNo, vec![option("true", "Yes"), option("false", "No")])
        }
        ElicitationPropertySchema::Number(_) => Field::Text(TextKind::Number),
        ElicitationPropertySchema::Integer(_) => Field::Text(TextKind::Integer),
        _ => Field::Unknown,
    }
}

fn titled_choices(options: &[EnumOption]) -> Vec<Choice> {
    let options = options.iter().take(50).map(|option| Choice {
        id: option.value.clone(),
        label: short(&option.title, 500),
        description: option.description.as_deref().map(|text| short(text, 1000)),
    });
    options.collect()
}

fn plain(values: &[String]) -> Vec<Choice> {
    let values = values.iter().take(50);
    values.map(|value| Choice { id: value.clone(), label: short(value, 500), description: None }).collect()
}

impl Form {
    /// Fills the form with an answer; `None` if a required field is missing.
    pub fn fill(
        &self,
        options: &[String],
        text: Option<&str>,
    ) -> Option<BTreeMap<String, ElicitationContentValue>> {
        let mut content = BTreeMap::new();
        if let Some((name, choosing)) = &self.choice {
            let value = match choosing {
                ChoiceKind::Several => Some(ElicitationContentValue::StringArray(options.to_vec())),
                ChoiceKind::One => options.first().cloned().map(ElicitationContentValue::String),
                ChoiceKind::YesOrNo => {
                    options.first().map(|id| ElicitationContentValue::Boolean(id == "true"))
                }
            };
            content.extend(value.map(|value| (name.clone(), value)));
        }
        if let (Some((name, writing)), Some(text)) = (&self.text, text) {
            let text = text.trim();
            let value = match writing {
                TextKind::Text => ElicitationContentValue::String(text.to_owned()),
                TextKind::Number => ElicitationContentValue::Number(text.parse().ok()?),
                TextKind::Integer => ElicitationContentValue::Integer(text.parse().ok()?),
            };
            content.insert(name.clone(), value);
        }
        let is_complete = self.required.iter().all(|name| content.contains_key(name));
        (is_complete && !content.is_empty()).then_some(content)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn asked(schema: serde_json::Value) -> Option<(Asked, Form)> {
        question("Which?", &serde_json::from_value(schema).unwrap())
    }

    #[test]
    fn a_choice_with_a_text_beside_it_is_one_question() {
        let (asked, form) = asked(json!({ "type": "object", "required": ["colour"], "properties": {
            "colour": { "type": "string", "oneOf": [{ "const": "r", "title": "Red", "description": "warm" }] },
            "other": { "type": "string" },
        }}))
        .unwrap();
        let Asked::Question { options, multiple, allow_text, .. } = asked else { panic!("{asked:?}") };
        assert_eq!(
            (options[0].id.as_str(), options[0].label.as_str(), multiple, allow_text),
            ("r", "Red", false, true)
        );
        let filled = form.fill(&["r".to_owned()], Some("dark")).unwrap();
        assert_eq!(serde_json::to_value(filled).unwrap(), json!({ "colour": "r", "other": "dark" }));
        assert!(form.fill(&[], Some("blue")).is_none(), "the choice is required");
    }

    #[test]
    fn numbers_and_lists_are_filled_in_with_their_types() {
        let (_, form) = asked(json!({ "properties": { "n": { "type": "integer" } } })).unwrap();
        assert_eq!(serde_json::to_value(form.fill(&[], Some(" 12 "))).unwrap(), json!({ "n": 12 }));
        assert!(form.fill(&[], Some("twelve")).is_none());
        let several = json!({ "properties": { "l": { "type": "array", "items": { "type": "string", "enum": ["a", "b"] } } } });
        let (asked, form) = asked(several).unwrap();
        assert!(matches!(asked, Asked::Question { multiple: true, allow_text: false, .. }));
        let filled = form.fill(&["a".to_owned(), "b".to_owned()], None);
        assert_eq!(serde_json::to_value(filled).unwrap(), json!({ "l": ["a", "b"] }));
    }

    #[test]
    fn a_form_that_requires_more_than_a_chat_can_ask_is_not_asked() {
        assert!(
            asked(json!({ "required": ["a", "b"], "properties": {
                "a": { "type": "string" }, "b": { "type": "string" },
            }}))
            .is_none()
        );
        assert!(asked(json!({ "properties": {} })).is_none());
    }
}
