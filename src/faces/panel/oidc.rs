//! The pages a browser visits to sign in at a provider.

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

use crate::{
    base::{
        enums::DecidedVia,
        ids::OrgId,
        problem::{Code, Problem, Result},
    },
    core::{Core, access::Caller, limits::Class, sealing::SealContext},
    faces::edge::{Arrival, HoldsCore, problem_response},
    slices::people::oidc::{Memory, Provider, Providers, Refusal, complete},
};

/// How long a browser may stay at the provider.
const AWAY: Duration = Duration::from_mins(10);
/// Bound to this browser and this host, and invisible to scripts.
const COOKIE: &str = "__Host-muster-oidc";

/// The routes for signing in at a provider.
pub fn router(core: &Arc<Core>, providers: &Arc<Providers>) -> Router {
    let state = Elsewhere { core: Arc::clone(core), providers: Arc::clone(providers) };
    Router::new()
        .route("/auth/oidc/{provider}/start", get(start))
        .route("/auth/oidc/{provider}/callback", get(callback))
        .with_state(state)
}

#[derive(Clone)]
struct Elsewhere {
    core: Arc<Core>,
    providers: Arc<Providers>,
}

impl HoldsCore for Elsewhere {
    fn core(&self) -> &Arc<Core> {
        &self.core
    }
}

fn place() -> SealContext<'static> {
    SealContext::new(OrgId(0), "cookies", "oidc", "memory")
}

async fn start(State(state): State<Elsewhere>, arrival: Arrival, Path(name): Path<String>) -> Response {
    let begun = begin(&state, &arrival, &name).await;
    begun.unwrap_or_else(|problem| problem_response(&problem, arrival.uri.path(), &arrival.request_id))
}

async fn begin(state: &Elsewhere, arrival: &Arrival, name: &str) -> Result<Response> {
    let (core, provider) = (&state.core, find(&state.providers, name)?);
    // Nothing has been tried yet, and any page can send a browser here. The sign-in allowance is charged when
    // the visit comes back.
    arrival.charge(core, &Caller::Anonymous, Class::Reads)?;
    let now = core.clock.now();
    let begun = provider.begin(now, now.plus(AWAY)).await;
    let (url, mut memory) = begun.map_err(|error| unreachable(provider, &error))?;
    memory.panel_state = query(arrival, "state").filter(|text| is_plain(text));
    let text = serde_json::to_vec(&memory).map_err(Problem::internal)?;
    let sealed = BASE64_URL_SAFE_NO_PAD.encode(core.keys.seal_bytes(&text, &place()));
    redirect(url.as_str(), &cookie(&sealed, AWAY))
}

fn find<'a>(providers: &'a Providers, name: &str) -> Result<&'a Provider> {
    let missing = || Problem::new(Code::NotFound, "This sign-in provider does not exist.");
    providers.get(name).ok_or_else(missing)
}

fn unreachable(provider: &Provider, error: &anyhow::Error) -> Problem {
    tracing::error!(provider = provider.name, error = format!("{error:#}"), "oidc.provider_failed");
    Problem::new(Code::Unavailable, "The provider did not answer correctly. Try again.")
}

/// Whether a text survives two redirects unchanged.
fn is_plain(text: &str) -> bool {
    let is_safe = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    !text.is_empty() && text.len() <= 128 && text.bytes().all(is_safe)
}

async fn callback(State(state): State<Elsewhere>, arrival: Arrival, Path(name): Path<String>) -> Response {
    let arrived = arrive(&state, &arrival, &name).await;
    arrived.unwrap_or_else(|problem| problem_response(&problem, arrival.uri.path(), &arrival.request_id))
}

/// However the visit ends, the browser returns to the panel, and the cookie is cleared.
async fn arrive(state: &Elsewhere, arrival: &Arrival, name: &str) -> Result<Response> {
    let (core, provider) = (&state.core, find(&state.providers, name)?);
    let memory = remembered(core, arrival).filter(|memory| memory.provider == provider.name);
    let panel_state = memory.as_ref().and_then(|memory| memory.panel_state.clone());
    let end = match finish(core, arrival, provider, memory).await {
        Ok(code) => format!("code={}", code.expose_secret()),
        Err(Refusal::Failed(problem)) => return Err(problem),
        Err(refusal) => {
            tracing::info!(provider = provider.name, reason = refusal.as_str(), "oidc.refused");
            format!("error={}", refusal.as_str())
        }
    };
    let state = panel_state.map(|state| format!("&state={state}")).unwrap_or_default();
    let url = format!("{}/sign-in#{end}{state}", core.config.links());
    redirect(&url, &cookie("", Duration::ZERO))
}

async fn finish(
    core: &Arc<Core>,
    arrival: &Arrival,
    provider: &Provider,
    memory: Option<Memory>,
) -> std::result::Result<SecretString, Refusal> {
    let memory = memory.ok_or(Refusal::State)?;
    if query(arrival, "state").as_deref() != Some(memory.state.as_str()) {
        return Err(Refusal::State);
    }
    let Some(code) = query(arrival, "code") else { return Err(Refusal::Provider) };
    let request = Arc::new(arrival.request(core, Caller::Anonymous, DecidedVia::Rest));
    complete(&request, provider, &memory, code.into()).await
}

fn remembered(core: &Core, arrival: &Arrival) -> Option<Memory> {
    let sealed = BASE64_URL_SAFE_NO_PAD.decode(cookie_of(&arrival.headers)?).ok()?;
    let text = core.keys.open_bytes(&sealed, &place()).ok()?;
    let memory: Memory = muster_json::from_slice(text.expose_secret()).ok()?;
    (memory.expires_at > core.clock.now().0).then_some(memory)
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
