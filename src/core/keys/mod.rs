//! The keys of an installation: rotated while the service runs, and nobody is signed out or locked out by it.
//!
//! There are two kinds, and they live in two places:
//!
//! - *sealing keys* (`key file`): they wrap the data keys of everything that is sealed in the database. A running
//!   service sees a changed file within a second (`watch.rs`); `file.rs` changes it, one process at a time; [`rewrap`] moves what is sealed to the active key, and
//!   [`retire`] forgets a key that nothing is wrapped with any more. Where sealed values are is said once, in
//!   `columns.rs`.
//! - *signing keys* (table `signing_keys`, the private half sealed): they sign access tokens (`signing.rs`). All
//!   replicas read the table; `jwks.rs` publishes the public halves.
//!
//! The operator alone may touch them, at the command line (`cli/key.rs`); there is no root field for it.

mod columns;
mod file;
mod present;
mod rewrap;
mod signing;
mod watch;

pub use self::{
    columns::{Record, SEALED, SealedColumn},
    file::rotate_sealing,
    present::require_presence,
    rewrap::{Pace, Progress, in_use, retire, rewrap},
    signing::{
        LOOK, Listed, Lookups, Rotated, State, keep, list, load, look_for, retire as retire_signing_key,
        rotate,
    },
    watch::{reload, watch},
};
