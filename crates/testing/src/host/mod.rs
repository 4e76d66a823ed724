//! A control plane and hosts for tests.

mod connection;
mod plane;
mod process;

pub use self::{
    plane::{PATIENCE, Plane, State, action},
    process::{Host, kill, program, within},
};
