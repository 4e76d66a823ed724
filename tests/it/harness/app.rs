//! The service, started for one test.

use std::{
    sync::{
        Arc, LazyLock, Mutex,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    time::Duration,
};

use axum::{body::Body, extract::Request, middleware::Next, response::Response};
use muster::{
    base::{
        ids::{OrgId, SessionId, UserId},
        time::{Clock, Timestamp},
    },
    core::{
        Core, Options,
        access::{Caller, Scope, authn::recognize, password::Cost},
        config::Config,
    },
    service::Service,
};
use reqwest::Client;
use sea_orm::DatabaseConnection;
use tempfile::TempDir;

use super::{Actor, PATIENCE, database, documented, fixtures};

/// Panics in the service itself: its files are `src/…`, the tests' are `tests/…`.
static PANICS: LazyLock<AtomicU32> = LazyLock::new(|| {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if panic.location().is_some_and(|location| location.file().starts_with("src/")) {
            PANICS.fetch_add(1, Ordering::Relaxed);
        }
        before(panic);
    }));
    AtomicU32::new(0)
});

/// Answers that the service must not give.
#[derive(Default)]
struct Seen {
    /// The number of answers that are failures of the service.
    failures: AtomicU32,
    /// Answers from routes that the OpenAPI document doesn't list.
    undocumented: Mutex<Vec<String>>,
}

/// The service on its own port with its own database.
pub struct TestApp {
    /// The service as a value, for what can't be seen from outside.
    pub service: Arc<Service>,
    /// Its core.
    pub core: Arc<Core>,
    /// The clock. It stands still until advanced.
    pub clock: Clock,
    /// The base URL: `http://127.0.0.1:…`.
    pub base: String,
    /// The organization that everyone except the stranger belongs to. Its plan is BUSINESS.
    pub org: i64,
    /// The stranger's organization.
    pub other_org: i64,
    pub owner: Actor,
    pub admin: Actor,
    pub operator: Actor,
    pub viewer: Actor,
    /// OWNER of [`Self::other_org`], and no one here.
    pub stranger: Actor,
    pub anonymous: Actor,
    pub database: DatabaseConnection,
    pub(super) named: AtomicU32,
    seen: Arc<Seen>,
    failing_is_expected: AtomicBool,
    pub(super) folder: TempDir,
}

impl TestApp {
    /// A fresh service.
    pub async fn start() -> Self {
        Self::start_with(|_| ()).await
    }

    /// A fresh service with different settings.
    pub async fn start_with(configure: impl FnOnce(&mut Config)) -> Self {
        LazyLock::force(&PANICS);
        // The HTTP client is built without a TLS provider of its own.
        let _ = rustls::crypto::ring::default_provider().install_default();
        // Shown if a test fails: the cause of a 5xx is only in the log.
        let _ = tracing_subscriber::fmt().with_max_level(tracing::Level::WARN).with_test_writer().try_init();
        let folder = tempfile::tempdir().unwrap();
        let url = database::fresh(folder.path()).await;
        let mut config = database::config(folder.path(), &url);
        configure(&mut config);
        let clock = Clock::fixed(now());
        let options = Options {
            clock: clock.clone(),
            password_cost: Cost::CHEAPEST,
            // Longer than any test: the number of statements must not depend on the speed of the machine.
            credential_cache_ttl: Duration::from_secs(3600),
            audited: true,
            has_read_timeout: true,
        };
        let service = Service::start(config, options).await.unwrap();
        let core = Arc::clone(&service.core);
        let seen = Arc::new(Seen::default());
        let base = serve(&service, &seen).await;
        let client = Client::builder().no_proxy().timeout(PATIENCE).build().unwrap();
        let anonymous = Actor::anonymous(&client, &base);
        let person = |user| anonymous.person(user, access_token(&core, user, user));
        Self {
            org: fixtures::ORG,
            other_org: fixtures::OTHER_ORG,
            owner: person(fixtures::OWNER),
            admin: person(fixtures::ADMIN),
            operator: person(fixtures::OPERATOR),
            viewer: person(fixtures::VIEWER),
            stranger: person(fixtures::STRANGER),
            anonymous,
            database: database::connect(&url).await,
            named: AtomicU32::new(0),
            failing_is_expected: AtomicBool::new(false),
            service,
            core,
            clock,
            base,
            seen,
            folder,
        }
    }

    /// The system's own scope in [`Self::org`], for creating what a test starts from.
    pub fn scope(&self) -> Scope {
        Scope::system(&self.core, OrgId(self.org))
    }

    /// The system's own scope in [`Self::other_org`].
    pub fn other_scope(&self) -> Scope {
        Scope::system(&self.core, OrgId(self.other_org))
    }

    /// The folder with the service's files.
    pub fn folder(&self) -> &std::path::Path {
        self.folder.path()
    }

    /// Seals every waiting audit entry. In a running service, a job does so every second.
    pub async fn seal(&self) {
        while muster::core::audit::seal(&self.core).await.unwrap() > 0 {}
    }

    /// Removes this many expired entries of the audit log. A retention run that coincides with sealing removes nothing,
    /// so it is repeated.
    pub async fn retain(&self, lines: u64) {
        let mut removed = 0;
        while removed < lines {
            removed += muster::core::audit::retain(&self.core).await.unwrap();
        }
        assert_eq!(removed, lines);
    }

    /// The number of statements the service has sent to the database so far.
    pub fn statements(&self) -> u64 {
        self.core.db.statements()
    }

    /// The number of statements run so far on connections for writing.
    pub fn writes(&self) -> u64 {
        self.core.db.writes()
    }

    /// The actor as the service knows them.
    pub async fn caller(&self, actor: &Actor) -> Caller {
        recognize(&self.core, actor.bearer()).unwrap().caller(&self.core).await.unwrap()
    }

    /// Declares that this test makes the service answer 5xx or panic.
    pub fn expects_failures(&self) {
        self.failing_is_expected.store(true, Ordering::Relaxed);
    }

    /// The metrics page, if the service's settings turn it on.
    pub async fn measured(&self) -> Actor {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let page = self.anonymous.at(&format!("http://{}", listener.local_addr().unwrap()));
        let router = muster::api::middleware::scrape::router(Arc::clone(&self.core));
        self.core.tasks.spawn(async move { axum::serve(listener, router).await.unwrap() });
        page
    }

    /// Clears cached credentials and memberships, after a test has changed them behind the service's back.
    pub fn forget_sessions(&self) {
        self.core.access.cache.invalidate_all();
    }
}

impl Drop for TestApp {
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        let undocumented = self.seen.undocumented.lock().unwrap();
        assert!(undocumented.is_empty(), "schema/openapi.json does not document: {undocumented:#?}");
        if self.failing_is_expected.load(Ordering::Relaxed) {
            return;
        }
        let failures = self.seen.failures.load(Ordering::Relaxed);
        assert!(failures == 0, "the service answered {failures} requests with 5xx");
        let panics = PANICS.load(Ordering::Relaxed);
        assert!(panics == 0, "the service panicked {panics} times");
    }
}

/// The time at which every test begins.
pub fn now() -> Timestamp {
    "2026-06-01T12:00:00.000Z".parse().unwrap()
}

/// An access token that is valid longer than any test advances the clock.
pub(super) fn access_token(core: &Core, user: i64, session: i64) -> String {
    let year = Duration::from_secs(365 * 24 * 60 * 60);
    core.access.jwt.issue(UserId(user), SessionId(session), core.clock.now(), year).unwrap()
}

async fn serve(service: &Service, seen: &Arc<Seen>) -> String {
    let seen = Arc::clone(seen);
    let look = move |request, next| watch(Arc::clone(&seen), request, next);
    let router = service.router().layer(axum::middleware::from_fn(look));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let core = Arc::clone(&service.core);
    // Requests to a stopping service count too: connections are accepted until the test ends.
    let until = tokio_util::sync::CancellationToken::new();
    service
        .core
        .tasks
        .spawn(async move { muster::api::middleware::serve(listener, router, &core, until).await });
    format!("http://{address}")
}

/// Counts answers that are failures of the service (GraphQL reports them in a body with status 200), and
/// collects answers that the OpenAPI document doesn't list.
async fn watch(seen: Arc<Seen>, request: Request, next: Next) -> Response {
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let (parts, body) = next.run(request).await.into_parts();
    let kind = parts.headers.get("content-type").map_or(&b""[..], |kind| kind.as_bytes());
    if !kind.ends_with(b"json") {
        seen.failures.fetch_add(u32::from(parts.status.is_server_error()), Ordering::Relaxed);
        return Response::from_parts(parts, body);
    }
    let body = axum::body::to_bytes(body, usize::MAX).await.unwrap();
    let internal = br#""code":"INTERNAL""#;
    let failed = parts.status.is_server_error() || body.windows(internal.len()).any(|part| part == internal);
    seen.failures.fetch_add(u32::from(failed), Ordering::Relaxed);
    let undocumented = documented::undocumented(&method, &path, parts.status, &body);
    seen.undocumented.lock().unwrap().extend(undocumented);
    Response::from_parts(parts, Body::from(body))
}
