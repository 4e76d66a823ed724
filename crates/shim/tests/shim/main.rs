//! The shim as a process, with real agents: shells, `cat`, `seq`.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod exec;
mod faults;
mod flow;
mod harness;
mod mcp;
mod shutdown;
mod terminal;
