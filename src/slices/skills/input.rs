//! What is set: the input objects of the schema, which edits take as they are.

use async_graphql::{InputObject, MaybeUndefined};

use crate::{
    base::enums::Effort,
    fields::bounds::{bounds, folder, length, name},
};

/// What a new skill is given.
#[derive(InputObject)]
pub struct CreateSkillInput {
    /// The name, unique in the organization. It is a folder's as well: no slashes, no dot at the beginning.
    #[graphql(directive = bounds::apply(folder(80)))]
    pub name: String,
    /// What it is good for.
    #[graphql(directive = bounds::apply(length(0, 2000)))]
    pub description: Option<String>,
    /// The know-how itself.
    #[graphql(directive = bounds::apply(length(0, 500_000)))]
    pub content: String,
    /// The model that it wants.
    #[graphql(directive = bounds::apply(name(120)))]
    pub model: Option<String>,
    /// The effort that it wants.
    pub effort: Option<Effort>,
}

/// What an edit of a skill changes: absent is untouched, null clears what may be empty.
#[derive(InputObject, Default)]
pub struct UpdateSkillInput {
    /// The name, unique in the organization. It is a folder's as well: no slashes, no dot at the beginning.
    #[graphql(directive = bounds::apply(folder(80).not_null()))]
    pub name: MaybeUndefined<String>,
    /// What it is good for.
    #[graphql(directive = bounds::apply(length(0, 2000)))]
    pub description: MaybeUndefined<String>,
    /// The know-how itself.
    #[graphql(directive = bounds::apply(length(0, 500_000).not_null()))]
    pub content: MaybeUndefined<String>,
    /// The model that it wants.
    #[graphql(directive = bounds::apply(name(120)))]
    pub model: MaybeUndefined<String>,
    /// The effort that it wants.
    pub effort: MaybeUndefined<Effort>,
    /// Whether the assigned agents are marked as needing synchronization although nothing changes.
    pub force: Option<bool>,
}
