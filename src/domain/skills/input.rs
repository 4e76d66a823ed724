//! The schema's input objects. Edits take them as they are.

use async_graphql::{InputObject, MaybeUndefined};

use crate::{
    base::enums::Effort,
    resolvers::bounds::{bounds, folder, length, name},
};

/// A new skill.
#[derive(InputObject)]
pub struct CreateSkillInput {
    /// The name, unique in the organization. It is also a folder name, so it can't contain slashes or start with a dot.
    #[graphql(directive = bounds::apply(folder(80)))]
    pub name: String,
    /// What the skill is for.
    #[graphql(directive = bounds::apply(length(0, 2000)))]
    pub description: Option<String>,
    /// The text of the skill.
    #[graphql(directive = bounds::apply(length(0, 500_000)))]
    pub content: String,
    /// The model it prefers.
    #[graphql(directive = bounds::apply(name(120)))]
    pub model: Option<String>,
    /// The effort it prefers.
    pub effort: Option<Effort>,
}

/// Changes to a skill. Fields left out keep their value; null clears an optional field.
#[derive(InputObject, Default)]
pub struct UpdateSkillInput {
    /// The name, unique in the organization. It is also a folder name, so it can't contain slashes or start with a dot.
    #[graphql(directive = bounds::apply(folder(80).not_null()))]
    pub name: MaybeUndefined<String>,
    /// What the skill is for.
    #[graphql(directive = bounds::apply(length(0, 2000)))]
    pub description: MaybeUndefined<String>,
    /// The text of the skill.
    #[graphql(directive = bounds::apply(length(0, 500_000).not_null()))]
    pub content: MaybeUndefined<String>,
    /// The model it prefers.
    #[graphql(directive = bounds::apply(name(120)))]
    pub model: MaybeUndefined<String>,
    /// The effort it prefers.
    pub effort: MaybeUndefined<Effort>,
    /// Whether to mark the assigned agents for synchronization even if nothing changes.
    pub force: Option<bool>,
}
