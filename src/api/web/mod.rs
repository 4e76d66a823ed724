//! The panel: the web pages for people, the documentation, and the redirects for signing in at a provider.
//!
//! The pages are one program for browsers. Its source is in `panel/`, its build in `panel/dist`, which is compiled into
//! the service (decision 32). All its data comes from `/graphql`; nothing here identifies the caller.
//!
//! - this file: the addresses · `site.rs`: the files, and the addresses at which browsers may keep them
//! - `answer.rs`: compression, caching, and the headers that protect the pages · `oidc.rs`: the redirects
//! - `docs.rs`, `markdown.rs`: the documentation of this version, and the reference of `/v1`

mod answer;
mod docs;
mod markdown;
mod oidc;
mod site;

use std::sync::Arc;

use anyhow::Context;
use axum::{
    Router,
    extract::{Path, State},
    response::Response,
    routing::get,
};
use http::{HeaderMap, header};

use self::{
    answer::{CachePolicy, answer},
    site::{Asset, Source},
};
use crate::{
    api::middleware::{Arrival, HoldsCore, problem_response},
    base::problem::{Code, Problem},
    core::Core,
    domain::people::oidc::Providers,
};

/// The addresses of the panel's pages, each with everything below it. The panel itself routes them.
const PAGES: [&str; 8] = [
    "/sign-in",
    "/first-start",
    "/accept-invitation",
    "/reset-password",
    "/confirm-email",
    "/oauth",
    "/o",
    "/account",
];

/// The state of the panel's routes.
#[derive(Clone)]
struct Panel {
    core: Arc<Core>,
    source: Arc<Source>,
}

impl HoldsCore for Panel {
    fn core(&self) -> &Arc<Core> {
        &self.core
    }
}

/// Checks that a folder contains a build of the panel.
///
/// # Errors
/// It has none.
pub fn check_folder(folder: &std::path::Path) -> anyhow::Result<()> {
    Source::open(Some(folder)).map(drop)
}

/// The routes of the panel.
///
/// # Errors
/// The folder in `panel_dir` has no panel.
pub fn router(core: &Arc<Core>, providers: &Arc<Providers>) -> anyhow::Result<Router> {
    let source = Arc::new(Source::open(core.config.panel_dir.as_deref()).context("panel_dir")?);
    let files = source.now().root_files();
    let mut router = Router::new().route("/", get(page)).route("/assets/{hash}/{*name}", get(asset));
    for address in PAGES {
        let below = [format!("{address}/"), format!("{address}/{{*rest}}")];
        router = router.route(address, get(page)).route(&below[0], get(page)).route(&below[1], get(page));
    }
    for name in files {
        router = router.route(&format!("/{name}"), get(file));
    }
    let panel = Panel { core: Arc::clone(core), source };
    Ok(router.merge(docs::router()).with_state(panel).merge(oidc::router(core, providers)))
}

/// Serves any page of the panel: all are the same file.
async fn page(State(panel): State<Panel>, arrival: Arrival) -> Response {
    if !wants_a_page(&arrival.headers) {
        return missing(
            &arrival,
            "This address is a page of the panel, which is only available as text/html.",
        );
    }
    match panel.source.newest().await {
        Ok(site) => answer(&site.index, &arrival.headers, CachePolicy::Checked).await,
        Err(error) => {
            let problem = Problem::internal(error);
            problem_response(&problem, arrival.uri.path(), &arrival.request_id)
        }
    }
}

/// Serves a file whose address contains the hash of the whole panel, so that it never changes.
async fn asset(
    State(panel): State<Panel>,
    arrival: Arrival,
    Path((hash, name)): Path<(String, String)>,
) -> Response {
    let site = panel.source.now();
    let found = site.file(&format!("assets/{name}")).filter(|_| site.hash == hash);
    show(found, &arrival, CachePolicy::Forever).await
}

/// Serves a file outside of `/assets`, such as the icon.
async fn file(State(panel): State<Panel>, arrival: Arrival) -> Response {
    let name = arrival.uri.path().trim_start_matches('/');
    show(panel.source.now().file(name), &arrival, CachePolicy::Checked).await
}

async fn show(found: Option<Arc<Asset>>, arrival: &Arrival, policy: CachePolicy) -> Response {
    match found {
        Some(asset) => answer(&asset, &arrival.headers, policy).await,
        // Not the page: a browser would run it as a script and show nothing.
        None => missing(arrival, "The panel has no such file. Reload the page: there is a newer version."),
    }
}

fn missing(arrival: &Arrival, detail: &str) -> Response {
    let problem = Problem::new(Code::NotFound, detail);
    problem_response(&problem, arrival.uri.path(), &arrival.request_id)
}

/// Whether the client accepts a page: browsers name the type, and simple clients accept anything.
fn wants_a_page(headers: &HeaderMap) -> bool {
    let mut accept = headers.get_all(header::ACCEPT).iter().peekable();
    accept.peek().is_none()
        || accept
            .filter_map(|value| value.to_str().ok())
            .flat_map(|value| value.split(','))
            .filter_map(|range| range.split(';').next())
            .any(|range| matches!(range.trim(), "text/html" | "text/*" | "*/*"))
}
