//! Secrets as input: a scalar that can be sent and never comes back.

use async_graphql::{InputValueError, InputValueResult, Scalar, ScalarType, Value};
use secrecy::SecretString;

/// A secret. It can be sent; no field ever answers with one of these.
#[derive(Clone, Debug)]
pub struct SecretText(pub SecretString);

/// A secret: taken, kept sealed, and never shown.
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
