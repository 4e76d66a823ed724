//! The read path: GraphQL objects that are rows.
//!
//! A stored thing is a [`Record`]: its [`Spec`] lists each field as a column, an SQL expression, an embedded
//! object or a relation. A root field answers with [`One`], [`List`] or [`Page`]; resolving one of these is
//! three steps, each in its own file:
//!
//! 1. **plan** (`plan.rs`): walk the selection set once; the columns to select, the JSON punctuation already
//!    escaped, the relations to load. Documents that the service keeps (those behind `/v1`, and what GraphQL
//!    callers repeat) keep their plans too.
//! 2. **fetch** (`fetch.rs`): one statement for the rows, and one for each relation of the whole list, through a
//!    `dataloader` of the request. Every statement carries the organization.
//! 3. **write** (`write.rs`): rows go by column position straight into one buffer of JSON.
//!
//! There is no second path: aliases, fragments, `__typename` and directives are all handled by the plan, so
//! REST and GraphQL can't differ. A field of a record is never an async function; what needs one is a root field.

mod fetch;
mod output;
mod plan;
mod reading;
mod room;
mod schema;
mod selection;
mod spec;
mod write;

pub use self::{
    fetch::Rows,
    output::{Counted, List, OffsetPage, One, Page, Plans},
    plan::{NOW, lead},
    reading::Reading,
    room::{Room, Share},
    selection::{Fragments, Merged, argument, below, is_included, merged},
    spec::{Many, Record, Spec},
};
