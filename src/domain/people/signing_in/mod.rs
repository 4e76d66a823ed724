//! Signing in: from a password and a code, or an account at another provider, to a session.
//!
//! - `sign_in.rs`: the steps; `factor.rs`: the second factor; `throttle.rs`: how often anyone may guess.
//! - `sessions.rs`: what comes of it, and how it ends; `browser.rs`: the same for browsers; `listed.rs`: all of one person's.
//! - `oidc/`, `identities.rs`: accounts at other providers, and unlinking them.

pub mod browser;
pub mod factor;
pub mod identities;
pub mod listed;
pub mod oidc;
pub mod queries;
pub mod sessions;
pub mod sign_in;
pub mod throttle;
