//! What the tests of several packages share. Never shipped.
//!
//! - [`aiosmtpd`], [`caldav`], [`dovecot`], [`peers`]: programs that others wrote
//! - [`fakes`]: vendors of channels; [`model`]: the provider of a model
//! - [`servers`], [`sources`]: HTTP servers, and what curl, git, npm and pip fetch from them
//! - [`host`]: a small control plane, and hosts as processes
//! - [`engine_client`]: the command line of a container engine

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::missing_panics_doc,
    clippy::cast_possible_wrap,
    clippy::disallowed_methods,
    reason = "in tests a panic is a failure, counts are small, and what is spawned ends with the test"
)]

pub mod aiosmtpd;
pub mod caldav;
pub mod dovecot;
pub mod engine_client;
pub mod fakes;
pub mod host;
pub mod model;
pub mod peers;
pub mod servers;
pub mod sources;
