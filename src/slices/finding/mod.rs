//! Finding records across all kinds, and the numbers that say where attention is needed.
//!
//! `search.rs`: one list of hits from every kind that the caller may see; `overview.rs`: counts. Neither owns rows: each
//! part requires the permission that reading the records themselves requires.

pub mod overview;
mod queries;
pub mod search;
