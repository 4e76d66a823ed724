//! Laws: what holds for all of the source, or for all of the schema.

use std::collections::BTreeSet;

mod contracts;
mod direction;
mod docs;
pub mod folding;
mod harness;
mod parsers;
mod secrets;
mod settings;
pub mod sql;
mod stalls;
mod tenancy;

/// Checks that a law found exactly what its list allows: a stale line of the list fails too.
fn judge<'a>(found: &BTreeSet<String>, allowed: impl Iterator<Item = &'a str>, instead: &str) {
    let allowed: BTreeSet<String> = allowed.map(str::to_owned).collect();
    let new: Vec<_> = found.difference(&allowed).collect();
    assert!(new.is_empty(), "{instead}: {new:#?}");
    let stale: Vec<_> = allowed.difference(found).collect();
    assert!(stale.is_empty(), "these are gone; remove them from the list: {stale:#?}");
}
