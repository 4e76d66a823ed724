//! Laws: what holds for all of the source, or for all of the schema.

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
