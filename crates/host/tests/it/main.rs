//! The host as a whole, with real processes: host, shims, reference agents. Only the control plane is the tests' own: a
//! small one, which speaks the protocol, keeps what it is told, and can go away, repeat itself, refuse and lie.

#![expect(
    clippy::unwrap_used,
    clippy::cast_possible_wrap,
    reason = "in tests, a panic is a failure, and counts are small"
)]

mod asks;
mod backups;
mod commands;
mod ends;
mod faults;
mod gate;
mod joining;
mod kept_sessions;
mod patience;
mod support;
mod turns;
