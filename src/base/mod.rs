//! The vocabulary that everything else is written in: ids, enumerations, permissions, time, and the one error.
//!
//! Nothing here knows a table, a setting or a request.

pub mod column;
pub mod enums;
pub mod files;
pub mod folding;
pub mod ids;
pub mod network;
pub mod numerals;
pub mod permission;
pub mod plain;
pub mod problem;
pub mod secret;
pub mod spelling;
pub mod time;
