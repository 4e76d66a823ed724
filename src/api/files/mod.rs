//! Content outside of the schema's JSON: attachments, avatars, exports of the audit log, and the public signing keys.

mod attachments;
mod audit;
mod avatars;
mod jwks;

use std::sync::Arc;

use axum::Router;

use crate::core::Core;

pub fn router(core: &Arc<Core>) -> Router {
    Router::new()
        .merge(attachments::router())
        .merge(audit::router())
        .merge(avatars::router())
        .merge(jwks::router())
        .with_state(Arc::clone(core))
}
