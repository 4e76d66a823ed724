//! The complete host, with real processes: host, shims, reference agents. Only the control plane is the tests' own: a
//! small one, which speaks the protocol, stores reports, and can disconnect, repeat itself, refuse and lie.

#![expect(
    clippy::unwrap_used,
    clippy::cast_possible_wrap,
    reason = "in tests, a panic is a failure, and counts are small"
)]

mod approvals;
mod backups;
mod certificates;
mod commands;
mod faults;
mod gate;
mod joining;
mod metrics;
mod patience;
mod shutdown;
mod turns;
mod unresumable_sessions;

use muster_testing::host as support;
