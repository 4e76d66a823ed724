//! The read path: GraphQL objects backed by rows.
//!
//! A stored thing is a [`Record`]: its [`Spec`] lists each field as a column, an SQL expression, an embedded
//! object, or a relation. A root field answers with [`One`], [`List`], [`Page`], or [`Feed`]. Resolving one of these
//! takes three steps, each in its own file:
//!
//! 1. **plan** (`plan.rs`): walk the selection set once and produce the columns to select, the escaped JSON
//!    punctuation, and the relations to load. Cached documents (those behind `/v1`, and those GraphQL callers
//!    repeat) cache their plans too.
//! 2. **fetch** (`fetch.rs`): one statement for the rows, and one for each relation of the whole list, through
//!    the request's `dataloader`. Every statement names the organization.
//! 3. **write** (`write.rs`): write rows by column position straight into one buffer of JSON.
//!
//! This is the only path: the plan handles aliases, fragments, `__typename`, and directives, so REST and GraphQL can't
//! differ. A record's field is never an async function; anything that needs one is a root field.

mod budget;
mod context;
mod feed;
mod fetch;
mod listed;
mod output;
mod plan;
mod reading;
mod schema;
mod selection;
mod spec;
mod write;

pub use self::{
    budget::{AnswerBudget, PARSED_WEIGHT, SharedBudget},
    context::ContextExt,
    feed::{Feed, Keys},
    fetch::Rows,
    listed::{id_of, words},
    output::{Ends, List, OffsetPage, One, Page, Plans, Stretch},
    plan::{NOW, VIEWER, lead},
    reading::Reading,
    selection::{Fragments, Merged, argument, below, is_included, merged},
    spec::{Make, Many, Record, Spec},
};
