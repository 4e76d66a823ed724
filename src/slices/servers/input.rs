//! What is set: the input objects of the schema, which edits take as they are.

use std::collections::BTreeMap;

use async_graphql::{InputObject, MaybeUndefined};

use crate::fields::bounds::{bounds, items, length, name, not_null};

/// What a new server is given.
#[derive(InputObject)]
pub struct CreateServerInput {
    /// The name, unique in the organization.
    #[graphql(directive = bounds::apply(name(80)))]
    pub name: String,
    /// For people.
    #[graphql(directive = bounds::apply(length(0, 2000)))]
    pub description: Option<String>,
    /// The host's name.
    #[graphql(directive = bounds::apply(length(0, 255)))]
    pub hostname: Option<String>,
    /// The host's address.
    #[graphql(directive = bounds::apply(length(0, 255)))]
    pub address: Option<String>,
    /// Where it stands.
    #[graphql(directive = bounds::apply(length(0, 80)))]
    pub region: Option<String>,
    /// Free labels: an object of strings.
    #[graphql(directive = bounds::apply(items(50)))]
    pub labels: Option<Labels>,
}

/// What an edit of a server changes: absent is untouched, null clears.
#[derive(InputObject, Default)]
pub struct UpdateServerInput {
    /// The name, unique in the organization.
    #[graphql(directive = bounds::apply(name(80).not_null()))]
    pub name: MaybeUndefined<String>,
    /// For people.
    #[graphql(directive = bounds::apply(length(0, 2000)))]
    pub description: MaybeUndefined<String>,
    /// The host's name.
    #[graphql(directive = bounds::apply(length(0, 255)))]
    pub hostname: MaybeUndefined<String>,
    /// The host's address.
    #[graphql(directive = bounds::apply(length(0, 255)))]
    pub address: MaybeUndefined<String>,
    /// Where it stands.
    #[graphql(directive = bounds::apply(length(0, 80)))]
    pub region: MaybeUndefined<String>,
    /// Free labels: an object of strings; the whole set.
    #[graphql(directive = bounds::apply(not_null()))]
    pub labels: MaybeUndefined<Labels>,
}

/// What a new image is given.
#[derive(InputObject)]
pub struct CreateImageInput {
    /// The name, unique in the organization.
    #[graphql(directive = bounds::apply(name(80)))]
    pub name: String,
    /// As a registry names it.
    #[graphql(directive = bounds::apply(name(500)))]
    pub reference: String,
    /// For people.
    #[graphql(directive = bounds::apply(length(0, 2000)))]
    pub description: Option<String>,
    /// The model of agents that choose none.
    #[graphql(directive = bounds::apply(name(120)))]
    pub default_model: Option<String>,
}

/// What an edit of an image changes: absent is untouched, null clears.
#[derive(InputObject, Default)]
pub struct UpdateImageInput {
    /// The name, unique in the organization.
    #[graphql(directive = bounds::apply(name(80).not_null()))]
    pub name: MaybeUndefined<String>,
    /// As a registry names it.
    #[graphql(directive = bounds::apply(name(500).not_null()))]
    pub reference: MaybeUndefined<String>,
    /// For people.
    #[graphql(directive = bounds::apply(length(0, 2000)))]
    pub description: MaybeUndefined<String>,
    /// The model of agents that choose none.
    #[graphql(directive = bounds::apply(name(120)))]
    pub default_model: MaybeUndefined<String>,
}

/// Free labels: at most fifty keys and values, each a string of at most 255 characters.
#[derive(Default)]
pub struct Labels(pub BTreeMap<String, String>);

/// Free labels: at most fifty keys and values, each a string of at most 255 characters.
#[async_graphql::Scalar]
impl async_graphql::ScalarType for Labels {
    fn parse(value: async_graphql::Value) -> async_graphql::InputValueResult<Self> {
        let labels: BTreeMap<String, String> = async_graphql::from_value(value)?;
        let fits = |text: &String| text.chars().count() <= 255 && !text.contains('\0');
        if labels.len() > 50 || !labels.iter().all(|(key, value)| fits(key) && fits(value)) {
            return Err("labels are at most fifty strings of at most 255 characters".into());
        }
        Ok(Self(labels))
    }

    fn is_valid(value: &async_graphql::Value) -> bool {
        Self::parse(value.clone()).is_ok()
    }

    fn to_value(&self) -> async_graphql::Value {
        async_graphql::to_value(&self.0).unwrap_or_default()
    }
}
