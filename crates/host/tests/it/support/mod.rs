//! A control plane and hosts for tests.

mod connection;
mod host;
mod plane;

pub use self::{
    host::{Host, kill},
    plane::{Plane, State, action, text},
};
