//! The database: pools, migrations, and the two ways to rows.
//!
//! Reads for a response go through `read`. Everything else goes through a scope:
//! [`Scope::find`](crate::core::access::Scope::find) and its siblings (`scoped.rs`) add the organization to every
//! query, and only a [`Tx`], opened by [`Scope::begin`](crate::core::access::Scope::begin), can write.

pub mod backup;
mod connections;
mod db;
mod folded;
mod links;
mod owner;
mod scoped;
mod servers;
pub mod sql;
mod steps;
mod sums;
mod tables;
mod transaction;
mod tx;
mod words;

pub use connections::{Connections, Driver};
pub use db::{Db, EveryOrg, Installation};
pub use folded::{holding, holding_as_is, holds, holds_in_any_case, starting};
pub use links::{Link, Relinked, linked, relink};
pub use owner::Owner;
pub use scoped::{Foldable, TenantEntity, for_update};
pub(crate) use scoped::{entity, tenant_entity};
pub use steps::{MigrationStep, StepMismatch, newest_step};
pub use sums::{FULL, added};
pub use tables::{Column, ColumnKind, Page, StoredFile, TABLES, Table};
pub use transaction::{Savepoint, Transaction};
pub use tx::{Precondition, Tx};
pub use words::Unusable;
