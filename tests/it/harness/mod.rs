//! The running service under test, and the people who use it. `tests/README.md` is the introduction.

pub mod account;
mod actor;
mod address;
/// A real mail server that takes mails.
#[path = "../../../crates/channels/tests/vendors/aiosmtpd.rs"]
mod aiosmtpd;
mod app;
mod browser;
mod cable;
mod copies;
mod database;
mod documented;
/// A real mail server that keeps a mailbox.
#[path = "../../../crates/channels/tests/vendors/dovecot.rs"]
#[expect(
    dead_code,
    clippy::disallowed_methods,
    reason = "tests of the transport use more of it, and no clock"
)]
mod dovecot;
/// Servers that play the vendors of channels.
#[path = "../../../crates/channels/tests/vendors/fakes/mod.rs"]
#[expect(clippy::disallowed_methods, reason = "what is spawned ends with the test")]
pub mod fakes;
mod files;
mod fixtures;
pub mod gateway;
mod git;
mod good_calls;
mod host;
mod locks;
mod logged;
mod machine;
pub mod mailbox;
/// The model that agents talk to.
#[path = "../../../crates/agent/tests/support/model.rs"]
pub mod model;
/// Programs that others wrote.
#[path = "../../../crates/channels/tests/vendors/peers.rs"]
#[expect(dead_code, reason = "tests of the transport use more of it")]
mod peers;
mod picture;
mod policies;
mod populate;
mod process;
mod schema;
mod socket;
pub mod spending;
mod wait;

pub use actor::{Actor, Answer};
pub use address::{Address, served};
pub use aiosmtpd::Smtp;
pub use app::TestApp;
pub use browser::{Browser, OWN_PAGE};
pub use cable::Cable;
pub use copies::copied;
pub use database::{config, connect, empty as empty_database, is_postgres};
pub use documented::{documented, undocumented};
pub use dovecot::{Dovecot, USER as MAILBOX};
pub use files::{files_below, sources};
pub use git::GitServer;
pub use good_calls::{Spare, good_calls, picture_input};
pub use host::Host;
pub use logged::Logged;
pub use machine::{Crew, Machine};
pub use mailbox::Mail;
pub use peers::{node, peer_folder};
pub use picture::{PNG, picture};
pub use policies::{EDIT_POLICY, policy_folder};
pub use populate::Population;
pub use process::{Postgres, Program, Ran, Serving, Tenant, muster};
pub use schema::{Walker, named};
pub use socket::{Socket, introduction};
pub use wait::{PATIENCE, found, until};
