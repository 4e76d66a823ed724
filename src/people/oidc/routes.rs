//! What a browser visits.

use std::{sync::Arc, time::Duration};

use axum::{
    Router,
    body::Body,
    extract::{Path, State},
    response::Response,
    routing::get,
};
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use secrecy::{ExposeSecret, SecretString};

use super::{
    account::{self, Refusal},
    provider::{Memory, Provider},
};
use crate::{
    access::Caller,
    app::App,
    edge::{Arrival, limits::Class},
    error::{Code, Problem, Result},
    graphql::Request,
    ids::OrgId,
    people::{
        signin::issue_code,
        throttle::{self, Key},
    },
    rest::problem_response,
    sealing::SealContext,
};

/// How long a browser may be away.
const AWAY: Duration = Duration::from_mins(10);
/// Only this browser has it, only this host gets it, and no script reads it.
const COOKIE: &str = "__Host-muster-oidc";

/// The routes of signing in elsewhere.
pub fn router() -> Router<Arc<App>> {
    Router::new()
        .route("/auth/oidc/{provider}/start", get(start))
        .route("/auth/oidc/{provider}/callback", get(callback))
}

fn place() -> SealContext<'static> {
    SealContext::new(OrgId(0), "cookies", "oidc", "memory")
}

async fn start(State(app): State<Arc<App>>, arrival: Arrival, Path(name): Path<String>) -> Response {
    let begun = begin(&app, &arrival, &name).await;
    begun.unwrap_or_else(|problem| problem_response(&problem, arrival.uri.path(), &arrival.request_id))
}

async fn begin(app: &Arc<App>, arrival: &Arrival, name: &str) -> Result<Response> {
    let provider = find(app, name)?;
    // Nothing is tried yet, and any page can make a browser come here: the allowance for signing in is charged when the
    // visit comes back.
    arrival.charge(app, &Caller::Anonymous, Class::Reads)?;
    let now = app.clock.now();
    let begun = provider.begin(now, now.plus(AWAY)).await;
    let (url, mut memory) = begun.map_err(|error| unreachable(provider, &error))?;
    memory.panel_state = query(arrival, "state").filter(|text| is_plain(text));
    let text = serde_json::to_vec(&memory).map_err(Problem::internal)?;
    let sealed = BASE64_URL_SAFE_NO_PAD.encode(app.keys.seal_bytes(&text, &place()));
    redirect(url.as_str(), &cookie(&sealed, AWAY))
}

fn find<'a>(app: &'a App, name: &str) -> Result<&'a Provider> {
    let missing = || Problem::new(Code::NotFound, "There is no such provider to sign in with.");
    app.oidc.get(name).ok_or_else(missing)
}

fn unreachable(provider: &Provider, error: &anyhow::Error) -> Problem {
    tracing::error!(provider = provider.name, error = format!("{error:#}"), "oidc.provider_failed");
    Problem::new(Code::Unavailable, "The provider does not answer as it should; try again.")
}

/// What goes through two redirects unchanged.
fn is_plain(text: &str) -> bool {
    let is_safe = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    !text.is_empty() && text.len() <= 128 && text.bytes().all(is_safe)
}

async fn callback(State(app): State<Arc<App>>, arrival: Arrival, Path(name): Path<String>) -> Response {
    let arrived = arrive(&app, &arrival, &name).await;
    arrived.unwrap_or_else(|problem| problem_response(&problem, arrival.uri.path(), &arrival.request_id))
}

/// However it ends, the browser gets to the panel, and the cookie has done its service.
async fn arrive(app: &Arc<App>, arrival: &Arrival, name: &str) -> Result<Response> {
    let provider = find(app, name)?;
    let memory = remembered(app, arrival).filter(|memory| memory.provider == provider.name);
    let panel_state = memory.as_ref().and_then(|memory| memory.panel_state.clone());
    let end = match finish(app, arrival, provider, memory).await {
        Ok(code) => format!("code={}", code.expose_secret()),
        Err(Refusal::Failed(problem)) => return Err(problem),
        Err(refusal) => {
            tracing::info!(provider = provider.name, reason = refusal.as_str(), "oidc.refused");
            format!("error={}", refusal.as_str())
        }
    };
    let state = panel_state.map(|state| format!("&state={state}")).unwrap_or_default();
    let url = format!("{}/sign-in#{end}{state}", app.config.links());
    redirect(&url, &cookie("", Duration::ZERO))
}

async fn finish(
    app: &Arc<App>,
    arrival: &Arrival,
    provider: &Provider,
    memory: Option<Memory>,
) -> std::result::Result<SecretString, Refusal> {
    let memory = memory.ok_or(Refusal::State)?;
    if query(arrival, "state").as_deref() != Some(memory.state.as_str()) {
        return Err(Refusal::State);
    }
    let Some(code) = query(arrival, "code") else { return Err(Refusal::Provider) };
    let address = Key::elsewhere(arrival.ip);
    throttle::charge(app, std::slice::from_ref(&address)).await?;
    let found = provider.finish(app.clock.now(), &memory, code.into()).await;
    let somebody = found.map_err(|error| {
        tracing::warn!(provider = provider.name, error = format!("{error:#}"), "oidc.not_verified");
        Refusal::Provider
    })?;
    let request = Arc::new(Request::new(app, Caller::Anonymous, arrival));
    let user = account::open(&request, provider, &somebody).await?;
    throttle::forgive(app, app.db.writer(), &[address]).await?;
    Ok(issue_code(app, user).await?)
}

fn remembered(app: &App, arrival: &Arrival) -> Option<Memory> {
    let sealed = BASE64_URL_SAFE_NO_PAD.decode(cookie_of(&arrival.headers)?).ok()?;
    let text = app.keys.open_bytes(&sealed, &place()).ok()?;
    let memory: Memory = serde_json::from_slice(text.expose_secret()).ok()?;
    (memory.expires_at > app.clock.now().0).then_some(memory)
}

fn cookie_of(headers: &HeaderMap) -> Option<&str> {
    let cookies = headers.get_all(header::COOKIE).into_iter().filter_map(|value| value.to_str().ok());
    let mut pairs = cookies.flat_map(|value| value.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(name, _)| *name == COOKIE).map(|(_, value)| value)
}

fn cookie(value: &str, age: Duration) -> String {
    format!("{COOKIE}={value}; Path=/; Max-Age={}; Secure; HttpOnly; SameSite=Lax", age.as_secs())
}

fn query(arrival: &Arrival, name: &str) -> Option<String> {
    let query = arrival.uri.query().unwrap_or_default();
    url::form_urlencoded::parse(query.as_bytes())
        .find(|(known, _)| known == name)
        .map(|(_, value)| value.into_owned())
}

fn redirect(url: &str, cookie: &str) -> Result<Response> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SEE_OTHER;
    let headers = response.headers_mut();
    headers.insert(header::LOCATION, HeaderValue::from_str(url).map_err(Problem::internal)?);
    headers.insert(header::SET_COOKIE, HeaderValue::from_str(cookie).map_err(Problem::internal)?);
    Ok(response)
}
