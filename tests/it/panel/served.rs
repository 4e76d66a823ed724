//! Serving the panel: its addresses, what protects its pages, and what browsers may keep.

use std::{fs, io::Read, path::Path};

use reqwest::{Method, Response};
use serde_json::json;

use crate::harness::{Answer, TestApp};

const HTML: &str = "text/html,application/xhtml+xml,*/*;q=0.8";
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; font-src \
    'self'; connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
    require-trusted-types-for 'script'; trusted-types 'none'";

/// The response to a browser at this path.
async fn open(app: &TestApp, path: &str) -> Answer {
    Answer::of(app.anonymous.request(Method::GET, path).header("accept", HTML)).await
}

/// The answer to a client that takes this coding.
async fn coded(app: &TestApp, path: &str, coding: &str) -> Response {
    let request = app.anonymous.request(Method::GET, path).header("accept-encoding", coding);
    request.send().await.unwrap()
}

fn header(response: &Response, name: &str) -> String {
    response.headers().get(name).map_or("", |value| value.to_str().unwrap()).to_owned()
}

/// A panel in a folder, which the service serves instead of its own.
async fn with_panel(write: impl FnOnce(&Path)) -> (TestApp, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let page = "<!doctype html><script type=\"module\" src=\"./assets/index.js\"></script>";
    fs::write(folder.path().join("index.html"), page).unwrap();
    fs::create_dir(folder.path().join("assets")).unwrap();
    write(folder.path());
    let app = TestApp::start_with(|config| config.panel_dir = Some(folder.path().to_owned())).await;
    (app, folder)
}

/// The hash in the addresses of a page.
fn hash_in(page: &str) -> String {
    let (_, rest) = page.split_once("\"/assets/").unwrap_or_else(|| panic!("{page}"));
    let (hash, _) = rest.split_once('/').unwrap();
    assert_eq!(hash.len(), 16, "{page}");
    hash.to_owned()
}

#[tokio::test]
async fn every_page_is_the_panel_and_protected() {
    let app = TestApp::start().await;
    let first = open(&app, "/").await;
    assert_eq!(first.header("content-type"), "text/html; charset=utf-8");
    for path in [
        "/",
        "/sign-in",
        "/first-start",
        "/accept-invitation",
        "/reset-password",
        "/confirm-email",
        "/o",
        "/o/",
        "/o/1/agents/2?tab=x",
        "/account",
        "/account/sessions",
        "/oauth/channel?code=a&state=1.2.c",
    ] {
        let page = open(&app, path).await;
        assert_eq!((page.status, &page.text), (200, &first.text), "{path}");
        for (name, value) in [
            ("content-security-policy", POLICY),
            ("cross-origin-opener-policy", "same-origin"),
            ("cross-origin-resource-policy", "same-origin"),
            ("x-content-type-options", "nosniff"),
            ("x-frame-options", "DENY"),
            ("referrer-policy", "no-referrer"),
            ("cache-control", "no-cache"),
            ("vary", "accept-encoding"),
        ] {
            assert_eq!(page.header(name), value, "{path} {name}");
        }
        assert!(page.header("permissions-policy").contains("camera=()"), "{path}");
        let known = app.anonymous.request(Method::GET, path).header("if-none-match", page.header("etag"));
        let known = Answer::of(known).await;
        assert_eq!((known.status, known.text.as_str()), (304, ""), "{path}");
        assert_eq!(known.header("content-security-policy"), POLICY);
    }
    // Simple clients take anything, programs ask for JSON.
    assert_eq!(app.anonymous.get("/sign-in").await.text, first.text);
    let json = app.anonymous.request(Method::GET, "/o/1").header("accept", "application/json");
    assert_eq!(Answer::of(json).await.problem(), (404, "NOT_FOUND"));
    assert_eq!(app.anonymous.post("/sign-in", json!({})).await.problem(), (405, "METHOD_NOT_ALLOWED"));
    let head = Answer::of(app.anonymous.request(Method::HEAD, "/")).await;
    assert_eq!((head.status, head.text.as_str(), head.header("content-security-policy")), (200, "", POLICY));
}

#[tokio::test]
async fn a_browser_gets_the_panel_nowhere_else() {
    let app = TestApp::start().await;
    for path in ["/nothing", "/v1/org/1/nothing", "/other/1", "/offer", "/index.html", "/auth/oidc/x/start"] {
        assert_eq!(open(&app, path).await.problem(), (404, "NOT_FOUND"), "{path}");
    }
    assert_eq!(open(&app, "/v1/org/1").await.problem(), (401, "UNAUTHENTICATED"));
    for path in ["/graphql", "/docs/graphql"] {
        let explorer = open(&app, path).await;
        assert!(explorer.status == 200 && explorer.header("content-security-policy").contains("'sha256-"));
    }
}

#[tokio::test]
async fn the_documentation_of_this_version_is_served() {
    let app = TestApp::start().await;
    let first = open(&app, "/docs").await;
    assert_eq!((first.status, first.header("content-type")), (200, "text/html; charset=utf-8"));
    assert!(first.text.contains("<h1 id=\"documentation\">Documentation</h1>"), "{}", first.text);
    assert!(first.text.contains(concat!("Muster ", env!("CARGO_PKG_VERSION"))));
    assert!(first.text.contains("<a href=\"/docs/api.md\">") && !first.text.contains("{page}"));
    let policy = first.header("content-security-policy");
    assert!(
        policy.starts_with("default-src 'none'; style-src 'sha256-") && !policy.contains("script"),
        "{policy}"
    );
    assert_eq!(open(&app, "/docs/").await.text, first.text);
    assert_eq!(open(&app, "/docs/README.md").await.text, first.text);
    let below = open(&app, "/docs/channels/README.md").await;
    assert!(
        below.status == 200 && below.text.contains("<a href=\"/docs/channels/email.md"),
        "{}",
        below.text
    );
    assert_eq!(open(&app, "/docs/panel/overview.png").await.header("content-type"), "image/png");
    for path in ["/docs/nothing.md", "/docs/channels", "/docs/../Cargo.toml", "/docs/%2e%2e/Cargo.toml"] {
        assert_eq!(open(&app, path).await.problem(), (404, "NOT_FOUND"), "{path}");
    }
}

#[tokio::test]
async fn the_reference_is_a_page_of_its_own_files() {
    let app = TestApp::start().await;
    let page = open(&app, "/docs/api").await;
    assert_eq!(page.status, 200, "{}", page.text);
    let own = POLICY.replace(" blob:", "").replace(" manifest-src 'self';", "");
    let own = own.split("; require-trusted-types-for").next().unwrap();
    assert_eq!(page.header("content-security-policy"), own);
    let hash = hash_in(&page.text);
    for name in ["reference.css", "reference.js", "reference-start.js"] {
        let address = format!("/assets/{hash}/{name}");
        assert!(page.text.contains(&format!("\"{address}\"")), "{}", page.text);
        assert_eq!(open(&app, &address).await.status, 200, "{address}");
    }
    let index = open(&app, "/").await.text;
    assert!(!index.contains("reference"), "the panel loads none of it");
}

#[tokio::test]
async fn assets_are_kept_forever_and_a_missing_one_is_no_page() {
    let app = TestApp::start().await;
    let page = open(&app, "/").await.text;
    let hash = hash_in(&page);
    // The first script that the page names.
    let (_, rest) = page.split_once(&format!("src=\"/assets/{hash}/")).unwrap();
    let name = rest.split_once('"').unwrap().0;
    let asset = app.anonymous.get(&format!("/assets/{hash}/{name}")).await;
    assert_eq!(asset.status, 200);
    assert_eq!(asset.header("cache-control"), "public, max-age=31536000, immutable");
    assert_eq!(asset.header("content-type"), "text/javascript; charset=utf-8");
    assert_eq!(asset.header("cross-origin-resource-policy"), "same-origin");
    let font = format!("/assets/{hash}/inter.woff2");
    assert!(page.contains(&format!("<link rel=\"preload\" href=\"{font}\" as=\"font\"")), "{page}");
    let font = coded(&app, &font, "br").await;
    assert_eq!((font.status().as_u16(), header(&font, "content-type").as_str()), (200, "font/woff2"));
    assert_eq!(header(&font, "content-encoding"), "", "it is compressed already");
    let committed = concat!(env!("CARGO_MANIFEST_DIR"), "/panel/dist/assets");
    assert_eq!(asset.text, fs::read_to_string(Path::new(committed).join(name)).unwrap());
    for missing in [
        format!("/assets/{hash}/nothing.js"),
        format!("/assets/{}/{name}", "0".repeat(16)),
        format!("/assets/{hash}/"),
        format!("/assets/{hash}/../index.html"),
        format!("/assets/{hash}/%2e%2e/index.html"),
        format!("/assets/{name}"),
    ] {
        let answer = open(&app, &missing).await;
        assert_eq!(answer.problem(), (404, "NOT_FOUND"), "{missing}");
        assert_eq!(answer.header("cache-control"), "no-store", "{missing}");
    }
}

#[tokio::test]
async fn a_file_beside_the_page_has_an_address_of_its_own() {
    let icon = "<svg xmlns=\"http://www.w3.org/2000/svg\"/>";
    let (app, _folder) = with_panel(|folder| {
        fs::write(folder.join("favicon.svg"), icon).unwrap();
        fs::write(folder.join("assets/index.js"), "1").unwrap();
    })
    .await;
    let answer = app.anonymous.get("/favicon.svg").await;
    assert_eq!((answer.status, answer.text.as_str()), (200, icon));
    assert_eq!(answer.header("content-type"), "image/svg+xml");
    assert_eq!(
        (answer.header("cache-control"), answer.header("content-security-policy")),
        ("no-cache", POLICY)
    );
    assert_eq!(app.anonymous.get("/assets/favicon.svg").await.problem(), (404, "NOT_FOUND"));
}

#[tokio::test]
async fn files_are_compressed_as_the_client_takes_it() {
    let script = "export const words = \"a panel for people who run agents\";\n".repeat(2_000);
    let picture: Vec<u8> = (0..4_000_u32).flat_map(|n| n.wrapping_mul(2_654_435_761).to_be_bytes()).collect();
    let (app, _folder) = with_panel(|folder| {
        fs::write(folder.join("assets/index.js"), &script).unwrap();
        fs::write(folder.join("assets/small.js"), "1").unwrap();
        fs::write(folder.join("assets/picture.png"), &picture).unwrap();
    })
    .await;
    let hash = hash_in(&open(&app, "/").await.text);
    let path = format!("/assets/{hash}/index.js");
    let mut tags = Vec::new();
    for (taken, coding) in
        [("gzip, deflate, br", "br"), ("br;q=0, gzip;q=0.5", "gzip"), ("deflate", ""), ("identity", "")]
    {
        // Twice: it is compressed once and kept.
        for _ in 0..2 {
            let answer = coded(&app, &path, taken).await;
            assert_eq!(header(&answer, "content-encoding"), coding, "{taken}");
            assert_eq!(header(&answer, "vary"), "accept-encoding");
            tags.push(header(&answer, "etag"));
            let known = app.anonymous.request(Method::GET, &path).header("accept-encoding", taken);
            let known = known.header("if-none-match", header(&answer, "etag")).send().await.unwrap();
            assert_eq!(known.status(), 304, "{taken}");
            let bytes = answer.bytes().await.unwrap();
            let mut text = String::new();
            match coding {
                "br" => brotli::Decompressor::new(&bytes[..], 4_096).read_to_string(&mut text).unwrap(),
                "gzip" => flate2::read::GzDecoder::new(&bytes[..]).read_to_string(&mut text).unwrap(),
                _ => (&bytes[..]).read_to_string(&mut text).unwrap(),
            };
            assert_eq!(text, script, "{taken}");
            assert!(coding.is_empty() || bytes.len() * 10 < script.len(), "{taken}: {}", bytes.len());
        }
    }
    tags.sort();
    tags.dedup();
    assert_eq!(tags.len(), 3, "a tag for each form");
    for (name, length) in [("small.js", 1), ("picture.png", picture.len())] {
        let answer = coded(&app, &format!("/assets/{hash}/{name}"), "br, gzip").await;
        assert_eq!(header(&answer, "content-encoding"), "", "{name}");
        assert_eq!(answer.bytes().await.unwrap().len(), length, "{name}");
    }
}

#[tokio::test]
async fn a_folder_is_read_again_when_a_page_is_opened() {
    let (app, folder) =
        with_panel(|folder| fs::write(folder.join("assets/index.js"), "first").unwrap()).await;
    let before = hash_in(&open(&app, "/").await.text);
    assert_eq!(app.anonymous.get(&format!("/assets/{before}/index.js")).await.text, "first");
    fs::write(folder.path().join("assets/index.js"), "second").unwrap();
    let after = hash_in(&open(&app, "/o/1").await.text);
    assert_ne!(before, after);
    assert_eq!(app.anonymous.get(&format!("/assets/{after}/index.js")).await.text, "second");
    assert_eq!(app.anonymous.get(&format!("/assets/{before}/index.js")).await.problem(), (404, "NOT_FOUND"));
}

#[tokio::test]
async fn a_folder_without_a_panel_is_refused_at_start() {
    let app = TestApp::start().await;
    let folder = tempfile::tempdir().unwrap();
    let mut config = app.core.config.clone();
    for (place, reason) in
        [(folder.path().to_owned(), "no index.html"), (folder.path().join("x"), "can't be read")]
    {
        config.panel_dir = Some(place);
        let core = muster::service::open(config.clone(), muster::core::Options::default()).await.unwrap();
        let error = format!("{:#}", muster::service::Service::build(core).err().unwrap());
        assert!(error.starts_with("panel_dir: ") && error.contains(reason), "{error}");
    }
}
