//! The keys of an installation: rotated while the service runs, without signing anyone out.
//!
//! There are two kinds, in two places:
//!
//! - *sealing keys* (in the key file) wrap the data keys of everything that is sealed in the database. A running
//!   service notices a changed file within a second (`watch.rs`); `file.rs` changes it, one process at a time;
//!   [`rewrap`] reseals everything with the active key, and [`retire`] removes a key that wraps nothing. `columns.rs`
//!   lists where sealed values are; `bot_tokens.rs` has the one digest that is derived from these keys and kept.
//! - *signing keys* (in the table `signing_keys`, with the private half sealed) sign access tokens (`signing.rs`). All
//!   replicas read the table, though not for every made-up name (`lookups.rs`); `api/files/jwks.rs` publishes the
//!   public halves.
//!
//! Only the operator can change them, at the command line (`cli/key.rs`); no root field does.

mod bot_tokens;
mod columns;
mod file;
mod lookups;
mod present;
mod rewrap;
mod signing;
mod watch;

pub use self::{
    bot_tokens::bot_digests,
    columns::{Digest, Record, SEALED, SealedColumn},
    file::rotate_sealing,
    lookups::Lookups,
    present::require_presence,
    rewrap::{Pace, Progress, in_use, open_one, require_unused, retire, rewrap},
    signing::{
        ListedKey, Rotated, State, list, load, look_up, maintain as maintain_signing,
        retire as retire_signing_key, rotate,
    },
    watch::{reload, watch},
};
