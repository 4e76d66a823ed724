//! The documentation of this version, for everyone: the pages of `docs/` at `/docs`, and at `/docs/api` the reference of
//! `/v1`, a renderer of OpenAPI documents in the panel's build. Nothing of either is fetched from elsewhere.

use std::{
    collections::BTreeMap,
    sync::{Arc, LazyLock, OnceLock},
};

use axum::{
    Router,
    extract::{Path, State},
    response::Response,
    routing::get,
};
use base64::{Engine, prelude::BASE64_STANDARD};
use bytes::Bytes;
use http::{HeaderValue, header};
use rust_embed::RustEmbed;
use sha2::{Digest, Sha256};

use super::{
    Panel,
    answer::{CachePolicy, answer},
    markdown::render,
    missing,
    site::{Asset, bytes_of},
};
use crate::{api::middleware::Arrival, base::plain::html_escaped};

/// The pages and their pictures.
#[derive(RustEmbed)]
#[folder = "docs"]
struct Folder;

/// The first page, in each folder.
const FIRST: &str = "README.md";
const FRAME: &str = include_str!("docs.html");

/// Each file, rendered on first use.
static FILES: LazyLock<BTreeMap<String, OnceLock<Arc<Asset>>>> =
    LazyLock::new(|| Folder::iter().map(|name| (name.into_owned(), OnceLock::new())).collect());

/// A page may show only its own style, and pictures.
static POLICY: LazyLock<HeaderValue> = LazyLock::new(|| {
    let (_, style) = FRAME.split_once("<style>").unwrap_or_default();
    let (style, _) = style.split_once("</style>").unwrap_or_default();
    let hash = BASE64_STANDARD.encode(Sha256::digest(style));
    let policy = format!(
        "default-src 'none'; style-src 'sha256-{hash}'; img-src 'self' data:; base-uri 'none'; form-action 'none'; \
         frame-ancestors 'none'"
    );
    HeaderValue::try_from(policy).unwrap_or(HeaderValue::from_static("default-src 'none'"))
});

/// Like the panel's, except that the renderer makes markup of the document's descriptions, which Trusted Types refuse.
/// They come from this service only.
const REFERENCE_POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; \
     connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
);

pub(super) fn router() -> Router<Panel> {
    Router::new()
        .route("/docs", get(first))
        .route("/docs/", get(first))
        .route("/docs/{*name}", get(page))
        .route("/docs/api", get(reference))
}

async fn first(arrival: Arrival) -> Response {
    show(FIRST, &arrival).await
}

async fn page(arrival: Arrival, Path(name): Path<String>) -> Response {
    show(&name, &arrival).await
}

async fn show(name: &str, arrival: &Arrival) -> Response {
    let Some(file) = file(name) else {
        return missing(arrival, "The documentation of this version has no such page.");
    };
    with_policy(answer(&file, &arrival.headers, CachePolicy::Checked).await, POLICY.clone())
}

async fn reference(State(panel): State<Panel>, arrival: Arrival) -> Response {
    match &panel.source.now().reference {
        Some(page) => {
            with_policy(answer(page, &arrival.headers, CachePolicy::Checked).await, REFERENCE_POLICY)
        }
        None => {
            missing(&arrival, "This build of the panel has no reference. /openapi.json is what it shows.")
        }
    }
}

fn with_policy(mut response: Response, policy: HeaderValue) -> Response {
    response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, policy);
    response
}

/// A page, or a picture.
fn file(name: &str) -> Option<Arc<Asset>> {
    let (kept, file) = (FILES.get(name)?, Folder::get(name)?);
    let asset = kept.get_or_init(|| {
        let bytes = bytes_of(&file);
        let text = name.strip_suffix(".md").and_then(|_| std::str::from_utf8(&bytes).ok());
        match text.map(|text| Bytes::from(framed(name, text))) {
            Some(page) => {
                let digest = Sha256::digest(&page).into();
                Asset::new("page.html", page, digest)
            }
            None => Asset::new(name, bytes, file.metadata.sha256_hash()),
        }
    });
    Some(Arc::clone(asset))
}

fn framed(name: &str, markdown: &str) -> String {
    let page = render(markdown, |link| target(name, link));
    let filled =
        FRAME.replace("{title}", &html_escaped(&page.title)).replace("{version}", env!("CARGO_PKG_VERSION"));
    filled.replace("{page}", &page.html)
}

/// Where a link of a page leads: to its own parts, another page, or another site. None: to a file that is not part of
/// the documentation.
fn target(page: &str, link: &str) -> Option<String> {
    if link.starts_with('#') || link.contains("://") {
        return Some(link.to_owned());
    }
    let (path, part) = match link.find('#') {
        Some(at) => link.split_at(at),
        None => (link, ""),
    };
    let mut folders: Vec<&str> = page.split('/').collect();
    folders.pop();
    for step in path.split('/') {
        match step {
            "" | "." => {}
            ".." => {
                folders.pop()?;
            }
            step => folders.push(step),
        }
    }
    let name = folders.join("/");
    let name = if FILES.contains_key(&name) { name } else { format!("{name}/{FIRST}") };
    FILES.contains_key(&name).then(|| format!("/docs/{name}{part}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_between_pages_lead_to_pages() {
        let of = |page: &str, link: &str| target(page, link);
        assert_eq!(of("README.md", "api.md#turns").as_deref(), Some("/docs/api.md#turns"));
        assert_eq!(of("channels/email.md", "../api.md").as_deref(), Some("/docs/api.md"));
        assert_eq!(of("README.md", "decisions/").as_deref(), Some("/docs/decisions/README.md"));
        assert_eq!(of("README.md", "../README.md"), None);
        assert_eq!(of("README.md", "nothing.md"), None);
        assert_eq!(of("README.md", "https://example.org/x").as_deref(), Some("https://example.org/x"));
    }

    #[test]
    fn each_part_that_a_page_links_to_exists() {
        let html = |name: &str| {
            let text = Folder::get(name).unwrap();
            framed(name, std::str::from_utf8(&text.data).unwrap())
        };
        let pages = FILES.keys().filter(|name| name.strip_suffix(".md").is_some());
        let pages: BTreeMap<String, String> =
            pages.map(|name| (format!("/docs/{name}"), html(name))).collect();
        let mut wrong = Vec::new();
        for (page, html) in &pages {
            for link in html.split("<a href=\"").skip(1).filter_map(|rest| rest.split('"').next()) {
                let Some((to, part)) = link.split_once('#').filter(|(to, _)| !to.contains("://")) else {
                    continue;
                };
                let to = if to.is_empty() { page.as_str() } else { to };
                if !pages.get(to).is_some_and(|html| html.contains(&format!(" id=\"{part}\""))) {
                    wrong.push(format!("{page}: {link}"));
                }
            }
        }
        assert!(wrong.is_empty(), "{wrong:#?}");
    }
}
