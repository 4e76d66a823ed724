//! The service: the core, the faces on top of it, and every route that it answers.

use std::sync::{Arc, OnceLock};

use anyhow::Context;
use axum::{
    Extension, Router,
    body::Bytes,
    extract::{Path, State},
    middleware::from_fn_with_state,
    response::{IntoResponse, Response},
    routing::get,
};
use http::header;

use crate::{
    base::problem::{Code, Problem},
    core::{Core, Options, config::Config, ledger::Settled},
    faces::{
        edge::{self, Arrival, Outermost, problem_page, problem_response},
        files,
        graphql::{self, Graphql},
        mcp, pages,
        rest::{self, Rest},
    },
    schema,
    slices::people::oidc::Providers,
};

/// Everything that a process serves with.
pub struct Service {
    /// What every slice may hold.
    pub core: Arc<Core>,
    /// What executes documents.
    pub graphql: Arc<Graphql>,
    /// What runs the operations of `/v1`.
    pub rest: Arc<Rest>,
    providers: Arc<Providers>,
}

/// Opens an installation without serving it: for commands.
///
/// # Errors
/// Those of [`Core::start`].
pub async fn open(config: Config, options: Options) -> anyhow::Result<Arc<Core>> {
    Core::start(config, options, schema::catalogue()?.permits().clone()).await
}

impl Service {
    /// Opens an installation, and makes everything that serves it. Does not migrate, and listens to nothing yet.
    ///
    /// # Errors
    /// Whatever is wrong with the configuration, the keys, the policy files or the database.
    pub async fn start(config: Config, options: Options) -> anyhow::Result<Arc<Self>> {
        Self::of(open(config, options).await?)
    }

    /// Makes everything that serves an open installation.
    ///
    /// # Errors
    /// The settings name a sign-in provider that can't be one.
    pub fn of(core: Arc<Core>) -> anyhow::Result<Arc<Self>> {
        let catalogue = Arc::new(schema::catalogue()?);
        let providers = Arc::new(Providers::new(&core.config).context("oidc_file")?);
        let graphql = Arc::new(Graphql::new(&core, &catalogue, &providers));
        let rest = Arc::new(Rest::new(&graphql)?);
        Ok(Arc::new(Self { core, graphql, rest, providers }))
    }

    /// Everything that the service answers. A new surface is one line here; what it serves lives with its own module.
    pub fn router(&self) -> Router {
        let core = &self.core;
        Router::new()
            .merge(rest::router(Arc::clone(&self.rest)))
            .merge(graphql::http::router(Arc::clone(&self.graphql)))
            .merge(mcp::router(&self.rest))
            .merge(files::router(core))
            .merge(pages::router(core, &self.providers))
            .merge(self.openapi())
            .merge(own(core))
            .layer(from_fn_with_state(Outermost { core: Arc::clone(core), refuse }, edge::observe))
    }

    /// The OpenAPI document, rendered when it is first asked for. It is public, like the source that it is made from.
    fn openapi(&self) -> Router {
        let (rendered, rest) = (Arc::new(OnceLock::<Bytes>::new()), Arc::clone(&self.rest));
        let document = move || async move {
            let catalogue = &rest.graphql.catalogue;
            let text = rendered.get_or_init(|| rest::openapi::text(&rest.routes, catalogue).into());
            ([(header::CONTENT_TYPE, "application/json")], Extension(Settled), text.clone()).into_response()
        };
        Router::new().route("/openapi.json", get(document))
    }
}

/// What the service says about itself.
fn own(core: &Arc<Core>) -> Router {
    Router::new()
        .route("/health", get(edge::health))
        .route("/ready", get(edge::ready))
        .route("/problems/{slug}", get(problem))
        .fallback(edge::no_route)
        .with_state(Arc::clone(core))
}

/// The page that a problem's `type` points to.
async fn problem(State(_): State<Arc<Core>>, arrival: Arrival, Path(slug): Path<String>) -> Response {
    problem_page(&slug).unwrap_or_else(|| {
        let problem = Problem::new(Code::NotFound, "There is no such problem.");
        problem_response(&problem, arrival.uri.path(), &arrival.request_id)
    })
}

/// A refusal in the form of the face that was asked.
fn refuse(problem: &Problem, path: &str, request_id: &str) -> Response {
    match path {
        "/graphql" => graphql::http::refused(problem, request_id),
        path => problem_response(problem, path, request_id),
    }
}
