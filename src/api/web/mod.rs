//! The panel: the web pages for people, and the redirects for signing in at a provider.
//!
//! The pages are one program for browsers. Its source is in `panel/`, its build in `panel/dist`, which is compiled into
//! the service (decision 32). Everything that it knows and does goes through `/graphql`; nothing here asks who is there.
//!
//! - this file: the addresses · `site.rs`: the files, and the addresses at which browsers may keep them
//! - `answer.rs`: compression, caching, and the headers that protect the pages · `oidc.rs`: the redirects

mod answer;
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
    answer::{Kept, answer},
    site::{Asset, Source},
};
use crate::{
    api::middleware::{Arrival, HoldsCore, problem_response},
    base::problem::{Code, Problem},
    core::Core,
    domain::people::oidc::Providers,
};

/// Where the panel has pages: each address and everything below it. The panel itself says what is there.
const PAGES: [&str; 6] =
    ["/sign-in", "/accept-invitation", "/reset-password", "/confirm-email", "/o", "/account"];

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

/// Whether a folder has a panel.
///
/// # Errors
/// It has none.
pub fn check_folder(folder: &std::path::Path) -> anyhow::Result<()> {
    Source::of(Some(folder)).map(drop)
}

/// The routes of the panel.
///
/// # Errors
/// The folder in `panel_dir` has no panel.
pub fn router(core: &Arc<Core>, providers: &Arc<Providers>) -> anyhow::Result<Router> {
    let source = Arc::new(Source::of(core.config.panel_dir.as_deref()).context("panel_dir")?);
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
    Ok(router.with_state(panel).merge(oidc::router(core, providers)))
}

/// Any page of the panel: the same file everywhere.
async fn page(State(panel): State<Panel>, arrival: Arrival) -> Response {
    if !wants_a_page(&arrival.headers) {
        return missing(&arrival, "This address is a page of the panel: it is only there as text/html.");
    }
    match panel.source.newest().await {
        Ok(site) => answer(&site.index, &arrival.headers, Kept::Checked).await,
        Err(error) => {
            let problem = Problem::internal(error);
            problem_response(&problem, arrival.uri.path(), &arrival.request_id)
        }
    }
}

/// A file whose address contains the hash of the whole panel, so that it never changes.
async fn asset(
    State(panel): State<Panel>,
    arrival: Arrival,
    Path((hash, name)): Path<(String, String)>,
) -> Response {
    let site = panel.source.now();
    let found = site.file(&format!("assets/{name}")).filter(|_| site.hash == hash);
    show(found, &arrival, Kept::Forever).await
}

/// A file with an address of its own, such as the icon.
async fn file(State(panel): State<Panel>, arrival: Arrival) -> Response {
    let name = arrival.uri.path().trim_start_matches('/');
    show(panel.source.now().file(name), &arrival, Kept::Checked).await
}

async fn show(found: Option<Arc<Asset>>, arrival: &Arrival, kept: Kept) -> Response {
    match found {
        Some(asset) => answer(&asset, &arrival.headers, kept).await,
        // Never the page: a browser would run it as a script and show nothing.
        None => missing(arrival, "The panel has no such file. Reload the page: there is a newer version."),
    }
}

fn missing(arrival: &Arrival, detail: &str) -> Response {
    let problem = Problem::new(Code::NotFound, detail);
    problem_response(&problem, arrival.uri.path(), &arrival.request_id)
}

/// Whether the client takes a page: browsers say so, and simple clients take anything.
fn wants_a_page(headers: &HeaderMap) -> bool {
    let mut accept = headers.get_all(header::ACCEPT).iter().peekable();
    accept.peek().is_none()
        || accept
            .filter_map(|value| value.to_str().ok())
            .flat_map(|value| value.split(','))
            .filter_map(|range| range.split(';').next())
            .any(|range| matches!(range.trim(), "text/html" | "text/*" | "*/*"))
}
