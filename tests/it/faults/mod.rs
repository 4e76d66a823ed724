//! Faults from outside: clients, databases and locks.

mod clients;
mod database;
pub mod failover;
mod locks;
