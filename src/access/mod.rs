//! Who is asking, and what may they do: authentication, membership, permissions.
//!
//! The order is fixed and lives in `graphql/context.rs`: authentication (`authn.rs`) makes a [`Caller`];
//! membership of an organization makes a [`Scope`]; the scope is asked for a [`Permission`]. What a role may do is
//! decided by casbin from the files in `policies/` (`policy`), never here.

mod authn;
mod caller;
pub mod jwt;
pub mod password;
mod permit;
pub mod policy;
mod scope;
pub mod token;

pub use authn::{CREDENTIALS_KEPT, Recognized, Sessions, membership, recognize, still_good};
pub use caller::{Caller, Membership, Person, ServiceToken};
pub use permit::{Permission, PermissionSet, Role, UnknownName, closest as nearest};
pub use scope::Scope;
