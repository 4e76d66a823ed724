//! Tests of the transports against local servers that follow the vendors' documentation.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    reason = "in tests a panic is a failure, and what is spawned ends with the test"
)]

mod calendar;
mod clients;
mod code_host;
mod discord;
mod drive;
mod email;
mod email_faults;
mod encrypted;
mod github;
mod guard;
mod hosts;
mod manual;
mod oauth;
mod slack;
mod support;
mod telegram;
mod webdav;
mod webhook;

use muster_testing::{aiosmtpd, caldav, dovecot, fakes, peers};
