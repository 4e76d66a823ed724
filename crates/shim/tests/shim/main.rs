//! The shim as a process, with real agents: shells, `cat`, `seq`.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod end;
mod faults;
mod flow;
mod harness;
mod mcp;
mod step;
mod terminal;
