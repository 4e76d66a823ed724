//! Accounts: who can sign in, and what a person or the operator changes about an account.
//!
//! - `users.rs`: the rows and who may be found by what; `directory.rs`: the operator's view of them.
//! - `credentials.rs`: a person's name, address and password; `links.rs`, `letters.rs`: mails and the links in them.
//! - `preferences.rs`: what a person has set for the panel; `operator.rs`: the operator's commands.

pub mod credentials;
pub mod directory;
pub mod letters;
pub mod links;
pub mod operator;
pub mod preferences;
mod queries;
pub mod users;
