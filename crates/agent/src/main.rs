//! The program `muster-agent`.

use std::process::ExitCode;

fn main() -> ExitCode {
    muster_agent::main(std::env::args_os().skip(1))
}
