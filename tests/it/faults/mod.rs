//! Faults from outside: clients, databases and locks.

mod clients;
mod database;
mod failover;
mod locks;
