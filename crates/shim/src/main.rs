//! `muster-shim`: the program. Everything is in the library.

#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    muster_shim::main(&[], std::env::args_os().skip(1))
}
