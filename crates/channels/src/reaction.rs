//! `react`: an emoji on a message, an action of several vendors.

use serde::Deserialize;
use serde_json::Value;

use crate::{
    bounds,
    contract::{ActionCall, Cause, Failure},
};

/// The action. `$emoji` describes how the vendor calls emoji.
macro_rules! react {
    ($description:literal, $emoji:literal) => {
        $crate::contract::Action {
            name: "react",
            title: "React",
            description: $description,
            schema: concat!(
                r#"{
                    "type": "object", "additionalProperties": false, "required": ["emoji"],
                    "properties": {
                        "emoji": { "type": "string", "description": ""#,
                $emoji,
                r#"" },
                        "message": {
                            "type": "integer", "minimum": 1, "default": 1,
                            "description": "Which message, counted backwards from the last one: 1 is the last."
                        }
                    }
                }"#
            ),
            check: $crate::reaction::Reaction::check,
            risk: 20,
            is_idempotent: true,
        }
    };
}

pub(crate) use react;

/// The arguments.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reaction {
    /// As the vendor calls it.
    pub emoji: String,
    /// Counts received messages backwards: 1 is the last one.
    #[serde(default = "last")]
    message: usize,
}

fn last() -> usize {
    1
}

impl Reaction {
    pub fn check(arguments: &Value) -> Result<(), Cause> {
        Self::read(arguments).map(drop)
    }

    pub fn read(arguments: &Value) -> Result<Self, Cause> {
        let read = Self::deserialize(arguments);
        let reaction = read.map_err(|error| Cause::from(format!("The arguments are not valid: {error}.")))?;
        let emoji = reaction.emoji.trim();
        if emoji.is_empty() || emoji.len() > bounds::NAME {
            return Err("`emoji` must be one emoji.".into());
        }
        Ok(Self { emoji: emoji.to_owned(), ..reaction })
    }

    /// The vendor's id of the message.
    pub fn message<'a>(&self, call: &ActionCall<'a>) -> Result<&'a str, Failure> {
        let found = self.message.checked_sub(1).and_then(|nth| call.received.get(nth));
        let none = || {
            Failure::Refused(format!("This conversation has no message {} to react to.", self.message).into())
        };
        found.map(String::as_str).ok_or_else(none)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_reaction_is_to_the_last_message_unless_it_names_another() {
        let received = ["7:3".to_owned(), "7:1".to_owned()];
        let of = |arguments: Value| {
            let call = ActionCall {
                id: "a",
                name: "react",
                arguments: &arguments,
                target: "7",
                received: &received,
            };
            let reaction = Reaction::read(call.arguments).map_err(Failure::Refused)?;
            reaction.message(&call).map(str::to_owned)
        };
        assert_eq!(of(json!({ "emoji": "eyes" })).unwrap(), "7:3");
        assert_eq!(of(json!({ "emoji": "eyes", "message": 2 })).unwrap(), "7:1");
        for wrong in [
            json!({ "emoji": "eyes", "message": 0 }),
            json!({ "emoji": "eyes", "message": 3 }),
            json!({ "emoji": " " }),
            json!({ "message": 1 }),
            json!({ "emoji": "eyes", "message": -1 }),
        ] {
            assert!(matches!(of(wrong.clone()), Err(Failure::Refused(_))), "{wrong}");
        }
    }
}
