//! The shim: one small process per agent. It owns the agent's pipes, so the agent survives the host that started it. It
//! numbers the agent's lines, stores them in a spool until the host has them, writes each line for the agent once, and
//! records the agent's exit (`docs/shim.md`).
//!
//! ```text
//! host ── DIR/socket ── shim ── stdin, stdout, stderr ── agent
//!                         └── DIR/spool, DIR/stderr, DIR/shim, DIR/exit
//! ```
//!
//! The host starts a shim with [`args::Launch`], talks to it by [`wire`], finds its socket in [`folder`], checks
//! [`record`] for whether it lives, and reads the lines of a dead one with [`spool::read`]. The same program archives
//! the homes of agents in containers ([`home_archive`]). There are as many shims as agents, so the only dependencies
//! are std, rustix and tar.

#![forbid(unsafe_code)]

pub mod args;
mod bounds;
pub mod client;
pub mod contain;
mod detach;
mod exec;
pub mod folder;
mod gate;
pub mod home_archive;
pub mod isolate;
mod mcp;
mod output;
pub mod record;
mod relay;
mod seccomp;
mod serve;
pub mod spool;
pub mod wire;

use std::{ffi::OsString, io, process::ExitCode};

use self::args::{Subcommand, USAGE};
pub use self::bounds::PIECE;

/// Runs the program. `prefix` are the words between the executable and `args`: none for `muster-shim`, `["shim"]` for
/// `muster shim`. The shim restarts its own executable with them.
pub fn main(prefix: &[&str], args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let subcommand = match Subcommand::parse(args) {
        Ok(subcommand) => subcommand,
        Err(error) => {
            output::print_error(format_args!("{error}\n\n{USAGE}"));
            return ExitCode::from(2);
        }
    };
    let done = match subcommand {
        Subcommand::Run(launch) => detach::run(prefix, &launch),
        Subcommand::Serve(launch) => serve::serve(prefix, &launch, None),
        Subcommand::Contain(launch) => contain::contain(prefix, &launch),
        Subcommand::Read(file, most) => contain::read(&file, most),
        Subcommand::WriteFiles => contain::write_files(),
        Subcommand::HomeTask(socket, home, task) => home_archive::run_task(&socket, &home, task),
        Subcommand::Exec(spec) => return exec::exec(prefix, &spec),
        Subcommand::Gate(gate, program, args) => return gate::exec(prefix, &gate, &program, &args),
        Subcommand::ServeGate(socket, parent) => gate::serve(&socket, parent),
        Subcommand::Relay(socket) => relay::relay(&socket),
        Subcommand::RelayMcp(socket, program, args) => mcp::relay(prefix, &socket, program, args),
        Subcommand::Isolation => output::print(isolate::isolation()),
        Subcommand::Help => output::print(format_args!("{USAGE}\n")),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            output::print_error(error);
            ExitCode::FAILURE
        }
    }
}

/// Adds its subject to an error.
fn about(subject: impl std::fmt::Display, error: impl Into<io::Error>) -> io::Error {
    let error = error.into();
    io::Error::new(error.kind(), format!("{subject}: {error}"))
}
