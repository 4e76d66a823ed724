//! The program `muster-host`.

use std::process::ExitCode;

fn main() -> ExitCode {
    muster_host::main(&[], std::env::args_os().skip(1))
}
