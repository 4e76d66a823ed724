//! What a browser is shown: pages of one file each, whose own script and style are all that runs, and which speak with
//! nobody but this service; and the redirects of signing in elsewhere.

mod front;
mod oidc;
mod page;
mod people;

use std::sync::Arc;

use axum::{Router, routing::get};

pub use self::page::policy_of;
use crate::{core::Core, slices::people::oidc::Providers};

/// The routes of all of them.
pub fn router(core: &Arc<Core>, providers: &Arc<Providers>) -> Router {
    Router::new().route("/", get(front::page)).merge(people::router()).merge(oidc::router(core, providers))
}
