//! The running service under test, and the people who use it. `tests/README.md` is the introduction.

pub mod account;
mod actor;
mod address;
mod app;
mod browser;
mod cable;
mod copies;
mod database;
mod documented;
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
mod picture;
mod policies;
mod populate;
mod process;
mod schema;
mod scripts;
mod socket;
pub mod spending;
mod wait;

pub use muster_testing::{
    aiosmtpd::Smtp,
    caldav,
    dovecot::{Dovecot, USER as MAILBOX},
    fakes, model,
    peers::{node, peer_folder},
};

pub use actor::{Actor, Answer};
pub use address::{Address, served};
pub use app::TestApp;
pub use browser::{Browser, OWN_PAGE};
pub use cable::Cable;
pub use copies::copied;
pub use database::{config, connect, empty as empty_database, is_postgres};
pub use documented::{documented, undocumented};
pub use files::{files_below, sources};
pub use git::GitServer;
pub use good_calls::{Spare, good_calls, picture_input};
pub use host::Host;
pub use logged::Logged;
pub use machine::{Crew, Machine};
pub use mailbox::Mail;
pub use picture::{PNG, picture};
pub use policies::{EDIT_POLICY, policy_folder};
pub use populate::Population;
pub use process::{ChildProcess, Postgres, Program, Ran, Serving, Tenant, muster};
pub use schema::{Walker, named};
pub use scripts::Scripts;
pub use socket::{Socket, introduction, reaches};
pub use wait::{PATIENCE, found, until};
