//! WebDAV, as far as transports share it.
//!
//! - `listing.rs`: what a folder contains.

pub mod listing;
