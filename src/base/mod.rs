//! The vocabulary for everything else: ids, enumerations, permissions, time, and the one error type.
//!
//! Nothing here knows about tables, settings or requests.

pub mod bounds;
pub mod column;
pub mod enums;
pub mod files;
pub mod finding;
pub mod folding;
pub mod ids;
pub mod json;
pub mod network;
pub mod numerals;
pub mod permission;
pub mod plain;
pub mod problem;
pub mod secret;
pub mod spelling;
pub mod time;
pub mod zones;
