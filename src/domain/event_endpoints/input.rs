//! The schema's input objects. Edits take them as they are.

use async_graphql::{InputObject, MaybeUndefined};

use crate::{
    base::enums::EventType,
    resolvers::bounds::{bounds, items, length, name, not_null},
};

/// A new event endpoint.
#[derive(InputObject)]
pub struct CreateEventEndpointInput {
    /// What it is for.
    #[graphql(directive = bounds::apply(name(80)))]
    pub name: String,
    /// The receiver's address, with `https` or `http`. It must be public, unless the installation's operator has allowed
    /// its network.
    #[graphql(directive = bounds::apply(length(1, 2000)))]
    pub url: String,
    /// The types of events that it gets: at least one.
    #[graphql(directive = bounds::apply(items(100)))]
    pub types: Vec<EventType>,
}

/// Changes to an event endpoint. Fields left out keep their value.
#[derive(InputObject, Default)]
pub struct UpdateEventEndpointInput {
    /// What it is for.
    #[graphql(directive = bounds::apply(name(80).not_null()))]
    pub name: MaybeUndefined<String>,
    /// The receiver's address. Events that wait are sent to the new one at once.
    #[graphql(directive = bounds::apply(length(1, 2000).not_null()))]
    pub url: MaybeUndefined<String>,
    /// The complete new list of the types of events that it gets: at least one.
    #[graphql(directive = bounds::apply(items(100).not_null()))]
    pub types: MaybeUndefined<Vec<EventType>>,
    /// Whether events are sent to it. While they are not, they wait for up to 30 days.
    #[graphql(directive = bounds::apply(not_null()))]
    pub is_active: MaybeUndefined<bool>,
}
