//! One macro defines an enumeration for the database, JSON and the schema alike.

/// A text that is not a value of its enumeration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not one of {}", .known.join(", "))]
pub struct UnknownValue {
    /// The valid values.
    pub known: &'static [&'static str],
    /// The text that was read.
    pub text: String,
}

/// Defines an enumeration that sea-orm, serde and the schema all understand. Each line gives a value's name, wire text,
/// and description (which the schema shows). `scalar` makes it a custom scalar, for values that are not valid GraphQL
/// names.
macro_rules! text_enum {
    ($(#[$doc:meta])* pub scalar $name:ident { $($variant:ident = $wire:literal: $vdoc:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name { $(#[doc = $vdoc] $variant,)+ }

        text_enum!(@common $name { $($variant = $wire,)+ });

        $(#[$doc])*
        #[Scalar]
        impl ScalarType for $name {
            fn parse(value: Value) -> InputValueResult<Self> {
                match &value {
                    Value::String(text) => text.parse().map_err(InputValueError::custom),
                    _ => Err(InputValueError::expected_type(value)),
                }
            }

            fn to_value(&self) -> Value {
                Value::from(self.as_str())
            }
        }
    };
    ($(#[$doc:meta])* pub $name:ident { $($variant:ident = $wire:literal: $vdoc:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, async_graphql::Enum)]
        pub enum $name { $(#[doc = $vdoc] #[graphql(name = $wire)] $variant,)+ }

        text_enum!(@common $name { $($variant = $wire,)+ });
    };
    (@common $name:ident { $($variant:ident = $wire:literal,)+ }) => {
        impl $name {
            /// Every value, in the order of the documentation.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// The wire text.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $wire,)+ }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl std::str::FromStr for $name {
            type Err = UnknownValue;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                match text {
                    $($wire => Ok(Self::$variant),)+
                    _ => Err(UnknownValue { known: &[$($wire,)+], text: text.to_owned() }),
                }
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }

        impl From<$name> for sea_orm::Value {
            fn from(value: $name) -> Self {
                Self::from(value.as_str())
            }
        }

        impl sea_orm::sea_query::ValueType for $name {
            fn try_from(value: sea_orm::Value) -> Result<Self, sea_orm::sea_query::ValueTypeErr> {
                match value {
                    sea_orm::Value::String(Some(text)) => {
                        text.parse().map_err(|_: UnknownValue| sea_orm::sea_query::ValueTypeErr)
                    }
                    _ => Err(sea_orm::sea_query::ValueTypeErr),
                }
            }

            fn type_name() -> String {
                stringify!($name).to_owned()
            }

            fn array_type() -> sea_orm::sea_query::ArrayType {
                sea_orm::sea_query::ArrayType::String
            }

            fn column_type() -> sea_orm::ColumnType {
                sea_orm::ColumnType::Text
            }
        }

        impl sea_orm::sea_query::Nullable for $name {
            fn null() -> sea_orm::Value {
                sea_orm::Value::String(None)
            }
        }

        impl crate::base::column::Column for $name {
            const KIND: crate::base::column::Kind = crate::base::column::Kind::Text;
        }

        /// sea-orm requires this of an entity's key; an enumeration is never a generated id.
        impl sea_orm::TryFromU64 for $name {
            fn try_from_u64(_: u64) -> Result<Self, sea_orm::DbErr> {
                Err(sea_orm::DbErr::ConvertFromU64(stringify!($name)))
            }
        }

        impl sea_orm::TryGetable for $name {
            fn try_get_by<I: sea_orm::ColIdx>(
                row: &sea_orm::QueryResult,
                index: I,
            ) -> Result<Self, sea_orm::TryGetError> {
                let text = <String as sea_orm::TryGetable>::try_get_by(row, index)?;
                text.parse().map_err(|unknown: UnknownValue| {
                    sea_orm::TryGetError::DbErr(sea_orm::DbErr::Type(unknown.to_string()))
                })
            }
        }
    };
}
