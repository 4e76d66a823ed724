//! A control plane and hosts for tests.

mod connection;
mod host;
mod plane;

pub use self::{
    host::{Host, kill, program, within},
    plane::{PATIENCE, Plane, State, action},
};
