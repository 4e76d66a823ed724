//! The shim: one small process for each agent. It owns the agent's pipes, so that the agent survives the host that
//! started it: it numbers the lines that the agent writes, keeps them in a spool until the host has them, writes each
//! line for the agent once, and records how the agent ended (`docs/hosts.md`).
//!
//! ```text
//! host ── DIR/socket ── shim ── stdin, stdout, stderr ── agent
//!                         └── DIR/spool, DIR/stderr, DIR/shim, DIR/exit
//! ```
//!
//! The host uses [`args::Launch`] to start one, [`wire`] to talk to it, [`folder`] to find its socket, [`record`] to find
//! out whether it lives, and [`spool::read`] for what a dead one left behind. The same program copies the homes of agents in
//! containers ([`keep`]). Depends on std, rustix and tar alone: there are as many shims as agents.

#![forbid(unsafe_code)]

pub mod args;
mod bounds;
pub mod client;
pub mod contain;
mod detach;
mod filter;
pub mod folder;
mod gate;
pub mod isolate;
pub mod keep;
mod mcp;
pub mod record;
mod relay;
mod say;
mod serve;
pub mod spool;
mod step;
pub mod wire;

use std::{ffi::OsString, io, process::ExitCode};

use self::args::{Order, USAGE};
pub use self::bounds::PIECE;

/// Runs the program. `prefix` are the words between the executable and `args`: none for `muster-shim`, `["shim"]` for
/// `muster shim`. The shim starts its own executable again, with them.
pub fn main(prefix: &[&str], args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let order = match Order::parse(args) {
        Ok(order) => order,
        Err(error) => {
            say::complain(format_args!("{error}\n\n{USAGE}"));
            return ExitCode::from(2);
        }
    };
    let done = match order {
        Order::Run(launch) => detach::run(prefix, &launch),
        Order::Serve(launch) => serve::serve(prefix, &launch, None),
        Order::Contain(launch) => contain::contain(prefix, &launch),
        Order::Read(file, most) => contain::read(&file, most),
        Order::Place => contain::place(),
        Order::Keep(socket, home, task) => keep::keep(&socket, &home, task),
        Order::Exec(step) => return step::exec(prefix, &step),
        Order::Gate(gate, program, args) => return gate::exec(prefix, &gate, &program, &args),
        Order::ServeGate(socket, parent) => gate::serve(&socket, parent),
        Order::Relay(socket) => relay::relay(&socket),
        Order::RelayMcp(socket, program, args) => mcp::relay(prefix, &socket, program, args),
        Order::Isolation => say::print(isolate::isolation()),
        Order::Help => say::print(format_args!("{USAGE}\n")),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say::complain(error);
            ExitCode::FAILURE
        }
    }
}

/// The same error, with what it is about.
fn about(subject: impl std::fmt::Display, error: impl Into<io::Error>) -> io::Error {
    let error = error.into();
    io::Error::new(error.kind(), format!("{subject}: {error}"))
}
