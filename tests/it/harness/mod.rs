//! The running service under test, and the people who use it. `tests/README.md` is the introduction.

pub mod account;
mod actor;
mod app;
mod database;
mod documented;
mod fixtures;
pub mod gateway;
mod good_calls;
mod host;
mod machine;
mod mailbox;
mod picture;
mod policies;
mod populate;
mod process;
mod schema;
mod socket;

pub use actor::{Actor, Answer};
pub use app::TestApp;
pub use database::{config, connect, empty as empty_database, is_postgres};
pub use documented::{documented, undocumented};
pub use good_calls::{Spare, good_calls, picture_input};
pub use host::Host;
pub use machine::Crew;
pub use picture::{PNG, picture};
pub use policies::{EDIT_POLICY, policy_folder};
pub use populate::Population;
pub use process::{Postgres, Program, Ran, Serving, Tenant, muster};
pub use schema::{Walker, named};
pub use socket::{Socket, introduction};
