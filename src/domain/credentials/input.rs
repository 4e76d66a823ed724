//! The schema's input objects. Edits take them as they are.

use async_graphql::{InputObject, MaybeUndefined};

use crate::{
    base::{
        enums::{CredentialKind, FieldType},
        ids::UserId,
        secret::SecretText,
    },
    resolvers::bounds::{bounds, items, length, list, name, not_null, range},
};

/// A field of a credential to set.
#[derive(InputObject)]
pub struct CredentialFieldInput {
    /// The label, unique in the credential.
    #[graphql(directive = bounds::apply(name(120)))]
    pub label: String,
    /// The type of its value. If left out, an existing field keeps its type and a new one is a `secret`.
    pub r#type: Option<FieldType>,
    /// The secret, at most 64 KiB. Write-only: it is never shown again. If left out, the stored value is kept;
    /// null clears it.
    #[graphql(directive = bounds::apply(length(1, 65_536)))]
    pub value: MaybeUndefined<SecretText>,
    /// Its position among the fields. If left out, an existing field keeps its position and a new one takes its
    /// index in this list, counted from 0.
    #[graphql(directive = bounds::apply(range(0, 10_000)))]
    pub position: Option<i64>,
}

/// A new credential.
#[derive(InputObject)]
pub struct CreateCredentialInput {
    /// The name, unique in the organization.
    #[graphql(directive = bounds::apply(name(80)))]
    pub name: String,
    /// A description for people.
    #[graphql(directive = bounds::apply(length(0, 2000)))]
    pub description: Option<String>,
    /// The kind of credential.
    pub kind: CredentialKind,
    /// The hosts or URLs it may be used for.
    #[graphql(directive = bounds::apply(list(100, length(1, 2000))))]
    pub destinations: Option<Vec<String>>,
    /// The fields. May be empty.
    #[graphql(directive = bounds::apply(items(100)))]
    pub fields: Vec<CredentialFieldInput>,
}

/// Changes to a credential. Fields left out keep their value; null clears an optional field.
#[derive(InputObject, Default)]
pub struct UpdateCredentialInput {
    /// The name, unique in the organization.
    #[graphql(directive = bounds::apply(name(80).not_null()))]
    pub name: MaybeUndefined<String>,
    /// A description for people.
    #[graphql(directive = bounds::apply(length(0, 2000)))]
    pub description: MaybeUndefined<String>,
    /// The kind of credential.
    #[graphql(directive = bounds::apply(not_null()))]
    pub kind: MaybeUndefined<CredentialKind>,
    /// The hosts or URLs it may be used for. Replaces the whole list.
    #[graphql(directive = bounds::apply(list(100, length(1, 2000)).not_null()))]
    pub destinations: MaybeUndefined<Vec<String>>,
    /// The fields, matched by label. Replaces the whole list: a label left out is deleted with its value.
    #[graphql(directive = bounds::apply(items(100).not_null()))]
    pub fields: MaybeUndefined<Vec<CredentialFieldInput>>,
}

/// The complete list of members who may use a credential.
#[derive(InputObject)]
pub struct SetMembersInput {
    /// The complete list: members left out lose it. Duplicates count once.
    #[graphql(directive = bounds::apply(items(5000)))]
    pub user_ids: Vec<UserId>,
}
