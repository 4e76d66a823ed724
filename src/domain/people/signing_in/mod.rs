//! Signing in with a password and a code, or an account at another provider.
//!
//! - `sign_in.rs`: the steps; `factor.rs`: the second factor; `throttle.rs`: limits on guessing.
//! - `sessions.rs`: sessions with tokens; `browser.rs`: sessions of browsers; `listed.rs`: a person's open sessions.
//! - `first_start.rs`: the first person and organization.
//! - `oidc/`, `identities.rs`: accounts at other providers, and unlinking them.

pub mod browser;
pub mod factor;
pub mod first_start;
pub mod identities;
pub mod listed;
pub mod oidc;
pub mod queries;
pub mod sessions;
pub mod sign_in;
pub mod throttle;
