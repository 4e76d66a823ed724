//! The schema's input objects. Edits take them as they are.

use async_graphql::{InputObject, MaybeUndefined};

use crate::{
    base::{enums::ModelCredentialType, secret::SecretText},
    resolvers::bounds::{bounds, length, name, not_null},
};

/// A new model credential.
#[derive(InputObject)]
pub struct CreateModelCredentialInput {
    /// The name, unique in the organization.
    #[graphql(directive = bounds::apply(name(80)))]
    pub name: String,
    /// The provider, such as `anthropic` or `openai`. Case does not matter.
    #[graphql(directive = bounds::apply(name(80)))]
    pub provider: String,
    /// The base URL of the model's API. Null: the provider's own.
    #[graphql(directive = bounds::apply(length(1, 2000)))]
    pub base_url: Option<String>,
    /// How it authenticates. Not applied yet: hosts send it as the provider takes API keys.
    #[graphql(default_with = "ModelCredentialType::ApiKey")]
    pub r#type: ModelCredentialType,
    /// The key or token. Write-only: it is never shown again.
    #[graphql(directive = bounds::apply(length(1, 8000)))]
    pub secret: SecretText,
    /// Whether agents of this provider inherit it. It takes the place of another default.
    #[graphql(default)]
    pub is_default: bool,
}

/// Changes to a model credential. Fields left out keep their value; null clears an optional field.
#[derive(InputObject, Default)]
pub struct UpdateModelCredentialInput {
    /// The name, unique in the organization.
    #[graphql(directive = bounds::apply(name(80).not_null()))]
    pub name: MaybeUndefined<String>,
    /// The provider, such as `anthropic` or `openai`. Case does not matter.
    #[graphql(directive = bounds::apply(name(80).not_null()))]
    pub provider: MaybeUndefined<String>,
    /// The base URL of the model's API. Null: the provider's own. When it changes, `secret` is required.
    #[graphql(directive = bounds::apply(length(1, 2000)))]
    pub base_url: MaybeUndefined<String>,
    /// How it authenticates. Not applied yet: hosts send it as the provider takes API keys.
    #[graphql(directive = bounds::apply(not_null()))]
    pub r#type: MaybeUndefined<ModelCredentialType>,
    /// The key or token. Write-only: it is never shown again. A new one ends the wait for a refused or a limited one.
    #[graphql(directive = bounds::apply(length(1, 8000).not_null()))]
    pub secret: MaybeUndefined<SecretText>,
    /// Whether agents of this provider inherit it. It takes the place of another default.
    #[graphql(directive = bounds::apply(not_null()))]
    pub is_default: MaybeUndefined<bool>,
}
