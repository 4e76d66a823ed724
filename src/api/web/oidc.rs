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
    api::middleware::{Arrival, HoldsCore, body, problem_response},
    base::{
        bounds,
        enums::DecidedVia,
        ids::OrgId,
        problem::{Code, Problem, Result},
    },
    core::{Core, access::Caller, config::ResponseMode, rate_limits::Class, sealing::SealContext},
    domain::people::oidc::{Memory, Provider, Providers, Refusal, Returned, complete, joined, shown},
};

/// Bound to this browser and this host, and invisible to scripts.
const COOKIE: &str = "__Host-muster-oidc";

pub fn router(core: &Arc<Core>, providers: &Arc<Providers>) -> Router {
    let state = OidcState { core: Arc::clone(core), providers: Arc::clone(providers) };
    Router::new()
        .route("/auth/oidc/{provider}/start", get(start))
        .route("/auth/oidc/{provider}/callback", get(callback).post(posted))
        .with_state(state)
}

#[derive(Clone)]
struct OidcState {
    core: Arc<Core>,
    providers: Arc<Providers>,
}

impl HoldsCore for OidcState {
    fn core(&self) -> &Arc<Core> {
        &self.core
    }
}

fn place() -> SealContext<'static> {
    SealContext::new(OrgId(0), "cookies", "oidc", "memory")
}

async fn start(State(state): State<OidcState>, arrival: Arrival, Path(name): Path<String>) -> Response {
    let begun = start_sign_in(&state, &arrival, &name).await;
    begun.unwrap_or_else(|problem| problem_response(&problem, arrival.uri.path(), &arrival.request_id))
}

async fn start_sign_in(state: &OidcState, arrival: &Arrival, name: &str) -> Result<Response> {
    let (core, provider) = (&state.core, find(&state.providers, name)?);
    // Nothing has been tried yet, and any page can send a browser here. The sign-in allowance is charged when the
    // browser returns.
    arrival.charge(core, &Caller::Anonymous, Class::Reads)?;
    let now = core.clock.now();
    let panel_state = field(arrival.uri.query().unwrap_or_default(), "state").filter(|text| is_plain(text));
    let (url, mut memory) = match provider.start_sign_in(now, now.plus(bounds::AWAY)).await {
        Ok(begun) => begun,
        Err(error) => {
            let end = refused(arrival, provider, &Refusal::Provider(format!("{error:#}")));
            return redirect_to_panel(core, provider, &end, panel_state);
        }
    };
    memory.panel_state = panel_state;
    let text = serde_json::to_vec(&memory).map_err(Problem::internal)?;
    let sealed = BASE64_URL_SAFE_NO_PAD.encode(core.sealing.seal_bytes(&text, &place()));
    redirect(url.as_str(), &cookie(provider, &sealed, bounds::AWAY))
}

fn find<'a>(providers: &'a Providers, name: &str) -> Result<&'a Provider> {
    let missing = || Problem::new(Code::NotFound, "This sign-in provider does not exist.");
    providers.get(name).ok_or_else(missing)
}

/// Whether a text survives two redirects unchanged.
fn is_plain(text: &str) -> bool {
    let is_safe = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    !text.is_empty() && text.len() <= 128 && text.bytes().all(is_safe)
}

async fn callback(State(state): State<OidcState>, arrival: Arrival, Path(name): Path<String>) -> Response {
    let arrived = async {
        // A browser may return any number of times, and each refusal is logged.
        arrival.charge(&state.core, &Caller::Anonymous, Class::Reads)?;
        finish_sign_in(&state, &arrival, &name, arrival.uri.query().unwrap_or_default()).await
    };
    arrived
        .await
        .unwrap_or_else(|problem| problem_response(&problem, arrival.uri.path(), &arrival.request_id))
}

/// The same for a provider that lets the browser post a form.
async fn posted(
    State(state): State<OidcState>,
    arrival: Arrival,
    Path(name): Path<String>,
    form: Body,
) -> Response {
    let arrived = async {
        arrival.charge(&state.core, &Caller::Anonymous, Class::Reads)?;
        let form = body::read(&state.core, &arrival, &Caller::Anonymous, form, bounds::TEXT).await?;
        finish_sign_in(&state, &arrival, &name, &String::from_utf8_lossy(&form)).await
    };
    arrived
        .await
        .unwrap_or_else(|problem| problem_response(&problem, arrival.uri.path(), &arrival.request_id))
}

/// Finishes the sign-in. In any case the browser returns to the panel, and the cookie is cleared.
async fn finish_sign_in(state: &OidcState, arrival: &Arrival, name: &str, said: &str) -> Result<Response> {
    let (core, provider) = (&state.core, find(&state.providers, name)?);
    let memory = read_memory(core, arrival).filter(|memory| memory.provider == provider.name);
    let panel_state = memory.as_ref().and_then(|memory| memory.panel_state.clone());
    let end = match exchange_code(core, arrival, provider, memory, said).await {
        Ok(code) => format!("code={}", code.expose_secret()),
        Err(Refusal::Failed(problem)) => return Err(problem),
        Err(refusal) => refused(arrival, provider, &refusal),
    };
    redirect_to_panel(core, provider, &end, panel_state)
}

/// The part of a refusal that the panel shows. Causes that only the operator can fix are in the log, under the
/// reference that the panel shows.
fn refused(arrival: &Arrival, provider: &Provider, refusal: &Refusal) -> String {
    let (request_id, code) = (arrival.request_id.as_str(), refusal.as_str());
    let Some(cause) = refusal.reason() else {
        tracing::info!(request_id, provider = provider.name, reason = code, "oidc.refused");
        return format!("error={code}");
    };
    tracing::warn!(request_id, provider = provider.name, reason = code, cause, "oidc.refused");
    let mut end = url::form_urlencoded::Serializer::new(String::new());
    end.append_pair("error", code).append_pair("reference", request_id).finish()
}

fn redirect_to_panel(
    core: &Core,
    provider: &Provider,
    end: &str,
    panel_state: Option<String>,
) -> Result<Response> {
    let state = panel_state.map(|state| format!("&state={state}")).unwrap_or_default();
    let url = format!("{}/sign-in#{end}{state}", core.config.links());
    redirect(&url, &cookie(provider, "", Duration::ZERO))
}

async fn exchange_code(
    core: &Arc<Core>,
    arrival: &Arrival,
    provider: &Provider,
    memory: Option<Memory>,
    said: &str,
) -> std::result::Result<SecretString, Refusal> {
    let memory = memory.ok_or(Refusal::State)?;
    if field(said, "state").as_deref() != Some(memory.state.as_str()) {
        return Err(Refusal::State);
    }
    let Some(code) = field(said, "code") else { return Err(Refusal::Provider(declined(said))) };
    let request = Arc::new(arrival.request(core, Caller::Anonymous, DecidedVia::Rest));
    let returned = Returned { code: code.into(), name: posted_name(said) };
    complete(&request, provider, &memory, returned).await
}

/// Why a provider sent no code (RFC 6749, section 4.1.2.1).
fn declined(said: &str) -> String {
    let Some(error) = field(said, "error") else {
        return "the provider sent neither a code nor an error".to_owned();
    };
    let more = field(said, "error_description").map(|text| format!(": {}", shown(&text))).unwrap_or_default();
    format!("the provider answered {}{more}", shown(&error))
}

/// The name in the form that Apple posts at the first sign-in.
fn posted_name(said: &str) -> Option<String> {
    let user: serde_json::Value = muster_json::from_str(&field(said, "user")?).ok()?;
    joined(user["name"]["firstName"].as_str(), user["name"]["lastName"].as_str())
}

fn read_memory(core: &Core, arrival: &Arrival) -> Option<Memory> {
    let sealed = BASE64_URL_SAFE_NO_PAD.decode(cookie_of(&arrival.headers)?).ok()?;
    let text = core.sealing.open_bytes(&sealed, &place()).ok()?;
    let memory: Memory = muster_json::from_slice(text.expose_secret()).ok()?;
    (memory.expires_at > core.clock.now().0).then_some(memory)
}

fn cookie_of(headers: &HeaderMap) -> Option<&str> {
    let cookies = headers.get_all(header::COOKIE).into_iter().filter_map(|value| value.to_str().ok());
    let mut pairs = cookies.flat_map(|value| value.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(name, _)| *name == COOKIE).map(|(_, value)| value)
}

/// Browsers send a cookie that is `Lax` with a redirect, but not with a form that another site posts.
fn cookie(provider: &Provider, value: &str, age: Duration) -> String {
    let same_site = match provider.settings.response_mode {
        ResponseMode::Query => "Lax",
        ResponseMode::FormPost => "None",
    };
    format!("{COOKIE}={value}; Path=/; Max-Age={}; Secure; HttpOnly; SameSite={same_site}", age.as_secs())
}

/// A field of a query or a form.
fn field(text: &str, name: &str) -> Option<String> {
    url::form_urlencoded::parse(text.as_bytes())
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
