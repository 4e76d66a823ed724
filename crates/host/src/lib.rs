//! The host.
#![forbid(unsafe_code)]
pub mod acp;
pub mod clock;
pub mod folder;
pub mod journal;
pub mod programs;
