//! Secrets: an input scalar that is never returned, and answer fields that show a secret once (`@shownOnce`).

use std::borrow::Cow;

use async_graphql::{
    InputValueError, InputValueResult, Scalar, ScalarType, TypeDirective, Value,
    indexmap::IndexMap,
    registry::{
        __DirectiveLocation, MetaDirective, MetaDirectiveInvocation, Registry,
        location_traits::Directive_At_FIELD_DEFINITION,
    },
};
use secrecy::SecretString;

/// A secret. It can be sent, but no field returns it.
#[derive(Clone, Debug)]
pub struct SecretText(pub SecretString);

/// A secret: accepted, kept sealed, and never shown.
#[Scalar(name = "SecretString")]
impl ScalarType for SecretText {
    fn parse(value: Value) -> InputValueResult<Self> {
        match value {
            Value::String(text) => Ok(Self(text.into())),
            other => Err(InputValueError::expected_type(other)),
        }
    }

    fn is_valid(value: &Value) -> bool {
        matches!(value, Value::String(_))
    }

    fn to_value(&self) -> Value {
        Value::Null
    }
}

/// `@shownOnce` on a field of an answer.
#[expect(non_camel_case_types, reason = "async-graphql names a directive by its type")]
pub struct shown_once;

impl shown_once {
    /// Marks a field that shows a secret this once.
    #[must_use]
    pub fn apply() -> MetaDirectiveInvocation {
        MetaDirectiveInvocation { name: "shownOnce".to_owned(), args: IndexMap::new() }
    }
}

impl TypeDirective for shown_once {
    fn name(&self) -> Cow<'static, str> {
        Cow::Borrowed("shownOnce")
    }

    fn register(&self, registry: &mut Registry) {
        registry.add_directive(MetaDirective {
            name: "shownOnce".to_owned(),
            description: Some(
                "Shown only once: when an answer is repeated under an idempotency key, this field is null."
                    .to_owned(),
            ),
            locations: vec![__DirectiveLocation::FIELD_DEFINITION],
            args: IndexMap::new(),
            is_repeatable: false,
            visible: None,
            composable: None,
        });
    }
}

impl Directive_At_FIELD_DEFINITION for shown_once {}
