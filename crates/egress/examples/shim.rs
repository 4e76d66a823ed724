//! The shim for this package's tests: the agent's end of the gate. `cargo nextest run -p muster-egress` builds it.

use std::process::ExitCode;

fn main() -> ExitCode {
    muster_shim::main(&[], std::env::args_os().skip(1))
}
