//! Pages for browsers, each a single file that only runs its own script and style and only talks to this
//! service; and the redirects for signing in at a provider.

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
