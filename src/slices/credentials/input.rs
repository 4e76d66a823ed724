//! What is set: the input objects of the schema, which edits take as they are.

use async_graphql::{InputObject, MaybeUndefined};

use crate::{
    base::{
        enums::{CredentialKind, FieldType},
        ids::UserId,
        secret::SecretText,
    },
    fields::bounds::{bounds, items, length, list, name, not_null, range},
};

/// A field of a credential, as it is set.
#[derive(InputObject)]
pub struct CredentialFieldInput {
    /// What it is called; unique in the credential.
    #[graphql(directive = bounds::apply(name(120)))]
    pub label: String,
    /// What it holds. Left out: what it held so far, and `secret` in a new field.
    pub r#type: Option<FieldType>,
    /// The secret itself, at most 64 KiB. It is never shown again. Left out: the stored one is kept; null: it is
    /// cleared.
    #[graphql(directive = bounds::apply(length(1, 65_536)))]
    pub value: MaybeUndefined<SecretText>,
    /// Where it stands among the others. Left out: where it stood before, and for a new field where it stands in this list,
    /// counted from 0.
    #[graphql(directive = bounds::apply(range(0, 10_000)))]
    pub position: Option<i64>,
}

/// What a new credential is given.
#[derive(InputObject)]
pub struct CreateCredentialInput {
    /// The name, unique in the organization.
    #[graphql(directive = bounds::apply(name(80)))]
    pub name: String,
    /// For people.
    #[graphql(directive = bounds::apply(length(0, 2000)))]
    pub description: Option<String>,
    /// What it is.
    pub kind: CredentialKind,
    /// Hosts or addresses that it may be used for.
    #[graphql(directive = bounds::apply(list(100, length(1, 2000))))]
    pub destinations: Option<Vec<String>>,
    /// The fields; may be empty.
    #[graphql(directive = bounds::apply(items(100)))]
    pub fields: Vec<CredentialFieldInput>,
}

/// What an edit of a credential changes: absent is untouched, null clears what may be empty.
#[derive(InputObject, Default)]
pub struct UpdateCredentialInput {
    /// The name, unique in the organization.
    #[graphql(directive = bounds::apply(name(80).not_null()))]
    pub name: MaybeUndefined<String>,
    /// For people.
    #[graphql(directive = bounds::apply(length(0, 2000)))]
    pub description: MaybeUndefined<String>,
    /// What it is.
    #[graphql(directive = bounds::apply(not_null()))]
    pub kind: MaybeUndefined<CredentialKind>,
    /// Hosts or addresses that it may be used for; the whole list.
    #[graphql(directive = bounds::apply(list(100, length(1, 2000)).not_null()))]
    pub destinations: MaybeUndefined<Vec<String>>,
    /// The fields; the whole list, matched by label. A label that is left out is deleted with its value.
    #[graphql(directive = bounds::apply(items(100).not_null()))]
    pub fields: MaybeUndefined<Vec<CredentialFieldInput>>,
}

/// The members who may use a credential from now on.
#[derive(InputObject)]
pub struct SetMembersInput {
    /// The complete list: members who are not named lose it. Naming one twice is naming them once.
    #[graphql(directive = bounds::apply(items(5000)))]
    pub user_ids: Vec<UserId>,
}
