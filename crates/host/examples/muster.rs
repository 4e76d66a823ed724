//! The host, the shim and the reference agent in one program, as in `muster`, for the tests.

use std::{ffi::OsString, process::ExitCode};

fn main() -> ExitCode {
    let mut args = std::env::args_os().skip(1);
    let word = args.next().and_then(|word| word.into_string().ok()).unwrap_or_default();
    let args: Vec<OsString> = args.collect();
    match word.as_str() {
        "host" => muster_host::main(&["host"], args),
        "shim" => muster_shim::main(&["shim"], args),
        "agent" => muster_agent::main(args),
        _ => ExitCode::from(2),
    }
}
