//! The service: the core, the interfaces on top of it, and every route it answers.

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
    api::{
        files, gateway,
        graphql::{self, Graphql},
        mcp,
        middleware::{self, Arrival, Outermost, problem_page, problem_response},
        rest::{self, Rest},
        web, webhooks,
    },
    base::problem::{Code, Problem},
    core::{Core, Options, config::Config, resource_limits::AlreadyCounted},
    domain::{ingest::Ingest, people::oidc::Providers},
    graphql as schema,
    handlers::handlers,
};

/// The parts of a serving process.
pub struct Service {
    pub core: Arc<Core>,
    /// Executes the documents.
    pub graphql: Arc<Graphql>,
    /// Runs the operations of `/v1`.
    pub rest: Arc<Rest>,
    /// Receives the deliveries of channels' vendors.
    pub ingest: Arc<Ingest>,
    panel: Router,
}

/// Opens an installation without serving it, for commands.
///
/// # Errors
/// See [`Core::start`].
pub async fn open(config: Config, options: Options) -> anyhow::Result<Arc<Core>> {
    Core::start(config, options, schema::catalogue()?.permits().clone(), handlers().0).await
}

impl Service {
    /// Opens an installation and builds the service. Doesn't migrate, and doesn't listen yet.
    ///
    /// # Errors
    /// Any problem with the configuration, the keys, the policy files, or the database.
    pub async fn start(config: Config, options: Options) -> anyhow::Result<Arc<Self>> {
        Self::build(open(config, options).await?)
    }

    /// Builds the service of an open installation.
    ///
    /// # Errors
    /// The settings name an invalid sign-in provider, or a folder without a panel.
    pub fn build(core: Arc<Core>) -> anyhow::Result<Arc<Self>> {
        let catalogue = Arc::new(schema::catalogue()?);
        let providers = Arc::new(Providers::new(&core.config).context("oidc_file")?);
        let graphql = Arc::new(Graphql::new(&core, &catalogue, &providers));
        let rest = Arc::new(Rest::new(&graphql)?);
        let panel = web::router(&core, &providers)?;
        let ingest = Ingest::open(&core);
        Ok(Arc::new(Self { core, graphql, rest, ingest, panel }))
    }

    /// All routes of the service. A new interface is one line here; its routes live in its own module.
    pub fn router(&self) -> Router {
        let core = &self.core;
        Router::new()
            .merge(rest::router(Arc::clone(&self.rest)))
            .merge(graphql::http::router(Arc::clone(&self.graphql)))
            .merge(mcp::router(&self.rest))
            .merge(files::router(core))
            .merge(gateway::router(core))
            .merge(webhooks::router(core, &self.ingest))
            .merge(self.panel.clone())
            .merge(self.openapi())
            .merge(own_routes(core))
            .layer(from_fn_with_state(Outermost { core: Arc::clone(core), refuse }, middleware::observe))
    }

    /// The OpenAPI document, rendered on first use. It is public, like the source it is made from.
    fn openapi(&self) -> Router {
        let (rendered, rest) = (Arc::new(OnceLock::<Bytes>::new()), Arc::clone(&self.rest));
        let document = move || async move {
            let catalogue = &rest.graphql.catalogue;
            let text = rendered.get_or_init(|| rest::openapi::text(&rest.routes, catalogue).into());
            ([(header::CONTENT_TYPE, "application/json")], Extension(AlreadyCounted), text.clone())
                .into_response()
        };
        Router::new().route("/openapi.json", get(document))
    }
}

/// The service's own routes.
fn own_routes(core: &Arc<Core>) -> Router {
    Router::new()
        .route("/health", get(middleware::health))
        .route("/ready", get(middleware::ready))
        .route("/problems/{slug}", get(problem))
        .fallback(middleware::no_route)
        .with_state(Arc::clone(core))
}

/// The page that a problem's `type` links to.
async fn problem(State(_): State<Arc<Core>>, arrival: Arrival, Path(slug): Path<String>) -> Response {
    problem_page(&slug).unwrap_or_else(|| {
        let problem = Problem::new(Code::NotFound, "This problem type does not exist.");
        problem_response(&problem, arrival.uri.path(), &arrival.request_id)
    })
}

/// A refusal in the form of the requested interface.
fn refuse(problem: &Problem, path: &str, request_id: &str) -> Response {
    match path {
        "/graphql" => graphql::http::refused(problem, request_id),
        path => problem_response(problem, path, request_id),
    }
}
