//! The model proxy: adds the key, reserves the maximal cost before a call, and reports the actual cost after it.
//!
//! - `call.rs`: parses a request; `attachments.rs`: its content beyond its bytes; `usage.rs`: tokens in an answer;
//!   `prices.rs`: their cost.
//! - `surcharges.rs`: options with another price; `visitor.rs`: finds both in JSON.
//! - `lease_pool.rs`: leases; `limits.rs`: a provider's refusals; `refusal_reports.rs`: the rate of their reports.
//! - `meter.rs`: an answer on its way to the agent; `redaction.rs`: removes the key from it.

mod attachments;
mod call;
mod lease_pool;
mod limits;
mod meter;
mod prices;
mod redaction;
mod refusal_reports;
mod surcharges;
mod usage;
mod visitor;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use http::{HeaderValue, Request, Response, StatusCode, header};
use http_body::Body as _;
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use muster_protocol::{
    HostEvent,
    plan::ModelAccess,
    spending::{ModelCall, price_of},
};
use tokio::time::timeout;

use self::{
    call::{CallKind, Interface, Question, RequestError},
    meter::{Meter, Receipt},
    redaction::KeyRedactor,
};
pub use self::{lease_pool::LeasePool, refusal_reports::RefusalReports};
use crate::{
    answers::{Answer, Body, full, model_error, streamed_body},
    bounds,
    client::ExchangeError,
    encoding, forward, header_filter, memory,
    rules::Rules,
    shared::{MAX_HEARD_OUT, Shared},
};

/// The longest request in bytes: an agent could fill the host's memory.
const LONGEST_REQUEST: usize = 32 * 1024 * 1024;

/// Answers a request below `/model/`.
pub async fn answer(shared: &Arc<Shared>, rules: &Rules, path: &str, request: Request<Incoming>) -> Answer {
    if request.headers().contains_key(header::UPGRADE) {
        let words = "This model is reached over HTTP, and not over WebSockets.";
        return model_error(StatusCode::UPGRADE_REQUIRED, "invalid_request_error", words);
    }
    let Some(access) = &rules.model else {
        let words = "This agent has no access to a model. Ask an administrator to give it a credential.";
        return model_error(StatusCode::FORBIDDEN, "permission_error", words);
    };
    let Some(asked) = CallKind::parse(request.method(), path, &access.provider) else {
        let words =
            "This agent may use chat completions, responses, messages and generateContent, and list models.";
        return model_error(StatusCode::NOT_FOUND, "not_found_error", words);
    };
    match call(shared, rules, access, asked, request).await {
        Ok(answer) => answer,
        Err(refused) => refused.into_answer(rules),
    }
}

/// Why a request does not reach the model.
enum CallRefusal {
    Invalid(RequestError),
    NoPrice(String),
    /// This field or header changes the model's price.
    Unpriced(&'static str),
    Spent(String),
    /// No permit to read the answer without the agent.
    Crowded,
    /// The answer can't be counted.
    Compressed,
    /// It can't be reported.
    Unready,
    Unreached(ExchangeError),
}

impl From<RequestError> for CallRefusal {
    fn from(wrong: RequestError) -> Self {
        Self::Invalid(wrong)
    }
}

impl CallRefusal {
    fn into_answer(self, rules: &Rules) -> Answer {
        match self {
            Self::Invalid(wrong) => {
                let (status, kind) = wrong.kind();
                model_error(status, kind, &wrong.to_string())
            }
            Self::NoPrice(model) => {
                let words = format!(
                    "The budget is in money, and the model {model} has no price. An administrator can add one."
                );
                model_error(rules.stop_status, "billing_error", &words)
            }
            Self::Unpriced(field) => {
                let words = format!(
                    "The budget is in money, and `{field}` changes what this model costs. Leave it out, or give it the \
                     value that costs no more."
                );
                model_error(StatusCode::BAD_REQUEST, "invalid_request_error", &words)
            }
            Self::Spent(reason) => model_error(rules.stop_status, "billing_error", &reason),
            Self::Crowded => {
                let words = format!(
                    "{MAX_HEARD_OUT} calls of this agent are under way. Those that it has given up count until the model has \
                     answered. Try again later."
                );
                model_error(StatusCode::TOO_MANY_REQUESTS, "rate_limit_error", &words)
            }
            Self::Compressed => {
                let words =
                    "The model's answer is compressed, though the request forbids that: it can't be counted.";
                let mut answer = model_error(StatusCode::BAD_GATEWAY, "api_error", words);
                // This call is already paid, and so would be a retry.
                answer.headers_mut().insert("x-should-retry", HeaderValue::from_static("false"));
                answer
            }
            Self::Unready => {
                let words =
                    "The control plane, which counts calls of models, can't be reached. Try again later.";
                model_error(StatusCode::SERVICE_UNAVAILABLE, "overloaded_error", words)
            }
            Self::Unreached(ExchangeError::Late) => {
                model_error(StatusCode::GATEWAY_TIMEOUT, "api_error", "The model did not answer in time.")
            }
            Self::Unreached(ExchangeError::NotPublic(reason)) => {
                model_error(StatusCode::FORBIDDEN, "permission_error", &format!("{reason}."))
            }
            Self::Unreached(ExchangeError::Broken(reason)) => {
                let words = format!("The model can't be reached: {reason}.");
                model_error(StatusCode::BAD_GATEWAY, "api_error", &words)
            }
        }
    }
}

async fn call(
    shared: &Arc<Shared>,
    rules: &Rules,
    access: &ModelAccess,
    asked: CallKind,
    request: Request<Incoming>,
) -> Result<Answer, CallRefusal> {
    let target = asked.target(access, request.uri().query())?;
    let redactor = KeyRedactor::new(access.key.expose());
    let (mut head, body) = request.into_parts();
    let CallKind::Generate { interface, .. } = &asked else {
        let request = prepare_request(&mut head, target, access, asked.interface(), streamed_body(body));
        let answer = forward::exchange(shared, request).await.map_err(CallRefusal::Unreached)?;
        if !encoding::is_plain(answer.headers()) {
            return Err(CallRefusal::Compressed);
        }
        return Ok(redactor.redact_answer(answer.map(streamed_body)));
    };
    // Before the call holds any resource. An agent that gives up here is not noticed, and keeps its connection's
    // permit.
    timeout(bounds::WAIT, shared.services.ready()).await.map_err(|_| CallRefusal::Unready)?;
    encoding::check_head(&head.headers).map_err(RequestError::Encoded)?;
    let (mut question, sent) = read_question(shared, &asked, body).await?;
    question.unpriced = question.unpriced.or(surcharges::by_headers(&head.headers));
    encoding::set(&mut head.headers);
    // A call that counts against a budget is always read to its end.
    let mut place = None;
    if rules.metered {
        question.input = question.input.saturating_add(question.unseen);
        let found = Arc::clone(&shared.heard_out).try_acquire_owned();
        place = Some(found.map_err(|_| CallRefusal::Crowded)?);
    }
    let price = price_of(&rules.prices, &question.model).filter(|_| question.unpriced.is_none());
    let bound = prices::bound(price, &question);
    let mut lease = None;
    if rules.metered {
        let reserved = shared.leases.reserve(&question.model, bound).await;
        lease = Some(reserved.map_err(|refused| match refused {
            lease_pool::ReserveError::NoPrice => match question.unpriced {
                Some(field) => CallRefusal::Unpriced(field),
                None => CallRefusal::NoPrice(question.model.clone()),
            },
            lease_pool::ReserveError::Spent(reason) => CallRefusal::Spent(reason),
        })?);
    }
    let receipt = Receipt {
        shared: Arc::clone(shared),
        lease,
        place,
        price: price.cloned(),
        estimate: question.input,
        most: question.output,
        call: ModelCall {
            turn_id: None,
            provider: access.provider.clone(),
            model: question.model,
            started_at: shared.services.now(),
            millis: 0,
            status: None,
            usage: muster_protocol::event::Usage::default(),
            cache_hour: None,
            lease_id: None,
        },
        begun: Instant::now(),
    };
    let meter = Meter::new(receipt, *interface);
    let request = prepare_request(&mut head, target, access, *interface, full(sent));
    let (meter, exchanged) =
        meter.exchange(request).await.map_err(|_| CallRefusal::Unreached(ExchangeError::Late))?;
    let answer = match exchanged {
        Ok(answer) => answer,
        Err(failed) => {
            meter.refused(None);
            return Err(CallRefusal::Unreached(failed));
        }
    };
    if answer.status().is_success() {
        shared.refusal_reports.limit.close();
        return match meter.watch(answer) {
            Some(answer) => Ok(redactor.redact_answer(answer)),
            None => Err(CallRefusal::Compressed),
        };
    }
    Ok(handle_refusal(shared, access, meter, answer).await)
}

/// Reads the question once there is memory for its pieces, the whole, and the forwarded copy.
async fn read_question(
    shared: &Shared,
    asked: &CallKind,
    body: Incoming,
) -> Result<(Question, Bytes), RequestError> {
    let size = body.size_hint().exact().and_then(|size| usize::try_from(size).ok());
    let size = size.unwrap_or(LONGEST_REQUEST);
    if size > LONGEST_REQUEST {
        return Err(RequestError::Unreadable);
    }
    let mut held = shared.memory.take(3 * size).await.ok_or(RequestError::NoRoom)?;
    let reading = timeout(bounds::WAIT, Limited::new(body, LONGEST_REQUEST).collect()).await;
    let bytes = reading.ok().and_then(Result::ok).ok_or(RequestError::Unreadable)?.to_bytes();
    encoding::check_body(&bytes).map_err(RequestError::Encoded)?;
    let (question, text) = call::read(asked, &bytes)?;
    drop(bytes);
    held.shrink(text.len());
    Ok((question, memory::into_bytes(text, held)))
}

/// The provider's request: with the real key, and without any other identification of the agent.
fn prepare_request(
    head: &mut http::request::Parts,
    target: http::Uri,
    access: &ModelAccess,
    interface: Interface,
    body: Body,
) -> Request<Body> {
    let mut headers = std::mem::take(&mut head.headers);
    forward::strip(&mut headers);
    header_filter::keep_model_headers(&mut headers);
    // Compressed answers can't be counted.
    headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    let key = access.key.expose();
    let (name, value) = match interface {
        Interface::Anthropic => ("x-api-key", key.to_owned()),
        Interface::Gemini => ("x-goog-api-key", key.to_owned()),
        Interface::Chat | Interface::Responses => ("authorization", format!("Bearer {key}")),
    };
    if let Ok(mut value) = HeaderValue::try_from(value)
        && !key.is_empty()
    {
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    let mut request = Request::new(body);
    (*request.method_mut(), *request.uri_mut(), *request.headers_mut()) =
        (head.method.clone(), target, headers);
    request
}

/// Handles a refusal. People must learn about a bad key or a limit.
async fn handle_refusal(
    shared: &Shared,
    access: &ModelAccess,
    meter: Meter,
    answer: Response<Incoming>,
) -> Answer {
    let (mut head, body) = answer.into_parts();
    let reading = Limited::new(body, 256 * 1024).collect();
    let read = timeout(bounds::WAIT, reading).await;
    let bytes = read.ok().and_then(Result::ok).map(http_body_util::Collected::to_bytes).unwrap_or_default();
    // A compressed body could hide the key.
    let mut bytes = if encoding::is_plain(&head.headers) { bytes.to_vec() } else { Vec::new() };
    head.headers.remove(header::CONTENT_ENCODING);
    head.headers.remove(header::CONTENT_LENGTH);
    let redactor = KeyRedactor::of_any(access.key.expose());
    redactor.redact(&mut bytes);
    let detail = limits::refusal_text(&bytes);
    let model = meter.model().to_owned();
    meter.refused(Some(head.status));
    match head.status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN if shared.refusal_reports.key.is_due() => {
            let detail = format!("{} refuses the key ({}): {detail}", access.provider, head.status);
            shared.services.report(HostEvent::AuthRequired { detail });
        }
        StatusCode::TOO_MANY_REQUESTS => {
            let now = shared.services.now();
            let until = limits::retry_at(&head.headers, &bytes, now);
            let wait = until.map(|until| Duration::from_millis(until.saturating_sub(now).unsigned_abs()));
            let credential_id = access.credential_id;
            if shared.refusal_reports.limit.opens(credential_id, wait, Instant::now()) {
                shared.services.report(HostEvent::Limited { credential_id, model, until, detail });
            }
        }
        _ => {}
    }
    redactor.redact_answer(Response::from_parts(head, full(bytes)))
}

/// For tests of hostile input: parses bytes as a refusal.
#[cfg(test)]
pub(crate) fn read_refusal(headers: &http::HeaderMap, body: &[u8]) {
    assert!(limits::refusal_text(body).len() <= 4 * 500);
    limits::retry_at(headers, body, 1_700_000_000_000);
}

/// For tests of hostile input: parses bytes as questions and answers, in pieces and whole.
#[cfg(test)]
pub(crate) fn read_all(bytes: &[u8]) {
    for (path, interface) in [
        ("chat/completions", Interface::Chat),
        ("responses", Interface::Responses),
        ("messages", Interface::Anthropic),
        ("models/m:generateContent", Interface::Gemini),
    ] {
        let asked = CallKind::parse(&http::Method::POST, path, "openai");
        _ = asked.map(|asked| call::read(&asked, bytes));
        for size in [1000, usize::MAX] {
            let mut counter = usage::Counter::new(interface, memory::MemoryBudget::new(memory::of_host()));
            bytes.chunks(size).for_each(|piece| counter.take(piece));
            counter.usage();
        }
    }
    let mut covered = bytes.to_vec();
    KeyRedactor::new("aaaaaaaaaaaaaaab").redact(&mut covered);
    assert_eq!(covered.len(), bytes.len());
}
