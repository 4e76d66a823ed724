//! Accounts, and changes to them by their owner or the operator.
//!
//! - `users.rs`: the rows, and finding users; `directory.rs`: the operator's view of them.
//! - `credentials.rs`: a person's name, address and password; `links.rs`, `letters.rs`: mails and the links in them.
//! - `preferences.rs`: settings of the panel; `operator.rs`: the operator's commands.

pub mod credentials;
pub mod directory;
pub mod letters;
pub mod links;
pub mod operator;
pub mod preferences;
mod queries;
pub mod users;
