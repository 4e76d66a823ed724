//! The schema's input objects. Edits take them as they are.

use std::collections::BTreeMap;

use async_graphql::{InputObject, MaybeUndefined};

use crate::resolvers::bounds::{LONGEST_LABEL, MAX_LABELS, bounds, items, length, name, not_null};

/// A new server.
#[derive(InputObject)]
pub struct CreateServerInput {
    /// The name, unique in the organization.
    #[graphql(directive = bounds::apply(name(80)))]
    pub name: String,
    /// A description for people.
    #[graphql(directive = bounds::apply(length(0, 2000)))]
    pub description: Option<String>,
    /// The host's name.
    #[graphql(directive = bounds::apply(length(0, 255)))]
    pub hostname: Option<String>,
    /// The host's address.
    #[graphql(directive = bounds::apply(length(0, 255)))]
    pub address: Option<String>,
    /// Where it is located.
    #[graphql(directive = bounds::apply(length(0, 80)))]
    pub region: Option<String>,
    /// Free-form labels: an object whose values are strings.
    #[graphql(directive = bounds::apply(items(50)))]
    pub labels: Option<Labels>,
}

/// Changes to a server. Fields left out keep their value; null clears an optional field.
#[derive(InputObject, Default)]
pub struct UpdateServerInput {
    /// The name, unique in the organization.
    #[graphql(directive = bounds::apply(name(80).not_null()))]
    pub name: MaybeUndefined<String>,
    /// A description for people.
    #[graphql(directive = bounds::apply(length(0, 2000)))]
    pub description: MaybeUndefined<String>,
    /// The host's name.
    #[graphql(directive = bounds::apply(length(0, 255)))]
    pub hostname: MaybeUndefined<String>,
    /// The host's address.
    #[graphql(directive = bounds::apply(length(0, 255)))]
    pub address: MaybeUndefined<String>,
    /// Where it is located.
    #[graphql(directive = bounds::apply(length(0, 80)))]
    pub region: MaybeUndefined<String>,
    /// Free-form labels: an object whose values are strings. Replaces the whole set.
    #[graphql(directive = bounds::apply(not_null()))]
    pub labels: MaybeUndefined<Labels>,
}

/// A new image.
#[derive(InputObject)]
pub struct CreateImageInput {
    /// The name, unique in the organization.
    #[graphql(directive = bounds::apply(name(80)))]
    pub name: String,
    /// The image reference, such as `registry.example/agent:1.2`.
    #[graphql(directive = bounds::apply(name(500)))]
    pub reference: String,
    /// A description for people.
    #[graphql(directive = bounds::apply(length(0, 2000)))]
    pub description: Option<String>,
    /// The model for agents that don't choose one.
    #[graphql(directive = bounds::apply(name(120)))]
    pub default_model: Option<String>,
    /// The name of the profile that says how its program is wired. Null: as the host's owner lists it.
    #[graphql(directive = bounds::apply(name(40)))]
    pub profile: Option<String>,
}

/// Changes to an image. Fields left out keep their value; null clears an optional field.
#[derive(InputObject, Default)]
pub struct UpdateImageInput {
    /// The name, unique in the organization.
    #[graphql(directive = bounds::apply(name(80).not_null()))]
    pub name: MaybeUndefined<String>,
    /// The image reference, such as `registry.example/agent:1.2`.
    #[graphql(directive = bounds::apply(name(500).not_null()))]
    pub reference: MaybeUndefined<String>,
    /// A description for people.
    #[graphql(directive = bounds::apply(length(0, 2000)))]
    pub description: MaybeUndefined<String>,
    /// The model for agents that don't choose one.
    #[graphql(directive = bounds::apply(name(120)))]
    pub default_model: MaybeUndefined<String>,
    /// The name of the profile that says how its program is wired. Null: as the host's owner lists it.
    #[graphql(directive = bounds::apply(name(40)))]
    pub profile: MaybeUndefined<String>,
}

/// Free-form labels: up to 50 pairs of strings, each at most 255 characters long.
#[derive(Default)]
pub struct Labels(pub BTreeMap<String, String>);

/// Free-form labels: up to 50 pairs of strings, each at most 255 characters long.
#[async_graphql::Scalar]
impl async_graphql::ScalarType for Labels {
    fn parse(value: async_graphql::Value) -> async_graphql::InputValueResult<Self> {
        let labels: BTreeMap<String, String> = async_graphql::from_value(value)?;
        let fits = |text: &String| text.chars().count() <= LONGEST_LABEL && !text.contains('\0');
        if labels.len() > MAX_LABELS || !labels.iter().all(|(key, value)| fits(key) && fits(value)) {
            let rule = format!(
                "labels must be at most {MAX_LABELS} pairs of strings of at most {LONGEST_LABEL} characters each"
            );
            return Err(rule.into());
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
