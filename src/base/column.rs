//! Ties a type of the schema to its storage: one column, read as one kind of value.

use async_graphql::OutputType;

use super::{enums::EventType, ids::Id, time::Timestamp};

/// How a column's value is read, and its form in JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `BIGINT` → number.
    Int,
    /// `DOUBLE PRECISION` → number.
    Float,
    /// `BOOLEAN` (SQLite: 0 or 1) → true or false.
    Bool,
    /// `TEXT` → string.
    Text,
    /// `BIGINT` milliseconds → RFC 3339 string.
    Timestamp,
    /// `BIGINT` milliseconds → seconds elapsed since then.
    Elapsed,
    /// `BIGINT` → decimal integer in a string.
    Decimal,
    /// JSON text → itself.
    Json,
}

/// A GraphQL type stored in one column.
pub trait Column: OutputType {
    /// How the column is read and written.
    const KIND: Kind;
}

macro_rules! columns {
    ($($type:ty => $kind:ident,)+) => {$( impl Column for $type { const KIND: Kind = Kind::$kind; } )+};
}

columns! {
    i64 => Int, f64 => Float, bool => Bool, String => Text, Timestamp => Timestamp,
    Vec<String> => Json, Vec<i64> => Json, Vec<EventType> => Json, Decimal => Decimal, Id => Int,
}

impl<T: Column> Column for Option<T> {
    const KIND: Kind = T::KIND;
}

impl<T: Send + Sync> Column for async_graphql::Json<T>
where
    async_graphql::Json<T>: OutputType,
{
    const KIND: Kind = Kind::Json;
}

/// A decimal integer in a string, for amounts that may exceed 2^53.
pub struct Decimal(pub i64);

/// A decimal integer in a string, for amounts that may exceed 2^53.
#[async_graphql::Scalar]
impl async_graphql::ScalarType for Decimal {
    fn parse(value: async_graphql::Value) -> async_graphql::InputValueResult<Self> {
        match &value {
            async_graphql::Value::String(text) => Ok(Self(text.parse()?)),
            _ => Err(async_graphql::InputValueError::expected_type(value)),
        }
    }

    fn to_value(&self) -> async_graphql::Value {
        async_graphql::Value::String(self.0.to_string())
    }
}
