//! The shim as a process, with real agents: shells, `cat`, `seq`.

mod end;
mod faults;
mod flow;
mod harness;
mod step;
