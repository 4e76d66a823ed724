//! The service over HTTP: the router, and what happens to every request whatever its face.
//!
//! - `arrival.rs`: what both faces read of a request first: id, address, credential.
//! - `body.rs`: bodies, read when it is known whose they are.
//! - `idempotency.rs`: a change that is asked for twice is made once.
//! - `ledger.rs`: what callers hold at a time: connections, sockets, subscriptions, bodies, answers.
//! - `limits.rs`: how many requests a caller may send, and where a request comes from behind a proxy.
//! - `observe.rs`: around every request: its id, its span and log line, the headers that every response carries.
//! - `refusals.rs`: what the HTTP machinery refuses by itself (unknown route, wrong method, body too large, late,
//!   panicked) as problem documents.
//! - `connections.rs`, `pace.rs`: how many connections there may be, how long one may take to say what it wants, and how
//!   slowly it may take what it is given.
//! - `page.rs`: what a page for browsers may do; `front.rs`: the one at `/`.
//! - `probes.rs`: `/health` and `/ready`.
//!
//! `/openapi.json` is the document of `/v1`: public like the source that it is generated from.
//!
//! A new surface is one line in [`router`]; what it serves lives with its own module.

mod arrival;
pub mod body;
mod connections;
mod front;
pub mod idempotency;
pub mod ledger;
pub mod limits;
mod observe;
mod pace;
mod page;
mod probes;
mod refusals;

use std::sync::{Arc, OnceLock};

use axum::{
    Extension, Router,
    body::Bytes,
    extract::{Path, State},
    middleware::from_fn_with_state,
    response::{IntoResponse, Response},
    routing::{MethodRouter, get},
};
use http::header;

pub use self::{
    arrival::{Advance, Arrival, bearer_of, is_json},
    connections::serve,
    page::policy_of,
};
use crate::{
    app::App,
    audit,
    avatars::serve as avatars,
    conversations::files as attachments,
    error::{Code, Problem},
    graphql::http as graphql,
    keys, people,
    rest::{self, problem_page, problem_response},
    tools,
};

/// Everything that the service answers.
pub fn router(app: Arc<App>) -> Router {
    Router::new()
        .merge(rest::router(&app))
        .merge(graphql::router())
        .merge(attachments::router())
        .merge(avatars::router())
        .merge(tools::router(&app))
        .merge(audit::serve::router())
        .merge(people::oidc::router())
        .merge(people::pages::router())
        .route("/", get(front::page))
        .route("/health", get(probes::health))
        .route("/ready", get(probes::ready))
        .route("/problems/{slug}", get(problem))
        .route("/openapi.json", openapi())
        .route("/.well-known/jwks.json", get(keys::jwks))
        .fallback(refusals::no_route)
        .layer(from_fn_with_state(Arc::clone(&app), observe::observe))
        .with_state(app)
}

/// The page that a problem's `type` points to.
async fn problem(arrival: Arrival, Path(slug): Path<String>) -> Response {
    problem_page(&slug).unwrap_or_else(|| {
        let problem = Problem::new(Code::NotFound, "There is no such problem.");
        problem_response(&problem, arrival.uri.path(), &arrival.request_id)
    })
}

/// The OpenAPI document, rendered when it is first asked for.
fn openapi() -> MethodRouter<Arc<App>> {
    let rendered = Arc::new(OnceLock::<Bytes>::new());
    get(move |State(app): State<Arc<App>>| async move {
        let document = rendered.get_or_init(|| rest::openapi::text(&app.routes, &app.catalogue).into());
        let headers = [(header::CONTENT_TYPE, "application/json")];
        (headers, Extension(ledger::Settled), document.clone()).into_response()
    })
}
