//! Credentials.

mod entity;
