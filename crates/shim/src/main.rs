//! The program `muster-shim`.

#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    muster_shim::main(&[], std::env::args_os().skip(1))
}
