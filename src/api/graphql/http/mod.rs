//! The GraphQL endpoint: `/graphql` over HTTP.
//!
//! - `request.rs`: parses a body or a query string into operations, and negotiates the form of the answer.
//! - `run.rs`: runs one operation, from text to response, with the same steps for every transport.
//! - this file: GraphQL over HTTP (POST and GET, single and batch) and its statuses.
//! - `socket.rs`, `sse.rs`: subscriptions (and anything else) over WebSockets and server-sent events.
//! - `again.rs`: storing an answer without secrets, and authorizing its replay.
//! - `explorer.rs`: the page for browsers.
//!
//! Statuses follow the GraphQL-over-HTTP draft. With `application/json`, a well-formed request is answered 200
//! even if its document is invalid; with `application/graphql-response+json`, a document that can't be run is
//! 400. Requests that get no GraphQL answer at all (a body that isn't JSON, a bad credential) have the same
//! status in either form.

mod again;
mod explorer;
mod request;
mod run;
mod socket;
mod sse;

use std::sync::Arc;

use axum::{
    Router,
    body::Body,
    extract::{State, WebSocketUpgrade, ws::rejection::WebSocketUpgradeRejection},
    response::{IntoResponse, Response},
    routing::get,
};
use http::{HeaderMap, HeaderValue, StatusCode, header};

use self::{
    request::{Batch, Media, Operation},
    run::{Answered, Session},
};
use super::Graphql;
use crate::{
    api::middleware::{
        Arrival, Visit,
        idempotency::{self, Answer, KeyedRequest},
        is_json, write_cookie,
    },
    base::{
        ids::OrgId,
        problem::{Code, Problem, Result},
    },
    core::{Core, access::Jar, rate_limits::Class},
};

/// Why a stream of events can't set a cookie.
const IN_STREAM: &str =
    "An event stream can't set a cookie, because its headers are sent first. Accept JSON instead.";

pub fn router(graphql: Arc<Graphql>) -> Router {
    Router::new()
        .route("/graphql", get(on_get).post(on_post))
        .route("/docs/graphql", get(|| async { explorer::page() }))
        .with_state(graphql)
}

async fn on_post(State(graphql): State<Arc<Graphql>>, arrival: Arrival, body: Body) -> Response {
    let media = Media::wanted(&arrival.headers);
    let visit = Visit::new(&graphql.core, &arrival);
    let jar = if sse::is_wanted(&arrival.headers) { Jar::closed(IN_STREAM) } else { visit.jar() };
    let answered = run_post(&graphql, &arrival, (media, jar.clone()), body).await;
    let answered =
        answered.and_then(|mut response| write_cookie(visit, &jar, &mut response).map(|()| response));
    answered.unwrap_or_else(|problem| refuse(&problem, media, &arrival.request_id))
}

async fn run_post(
    graphql: &Arc<Graphql>,
    arrival: &Arrival,
    (media, jar): (Media, Jar),
    body: Body,
) -> Result<Response> {
    let session = Session::open(graphql, arrival).await?.with_jar(jar);
    if !is_json(&arrival.headers) {
        let detail = "Send the request as `Content-Type: application/json`.";
        return Err(Problem::new(Code::UnsupportedMediaType, detail));
    }
    // An anonymous caller pays for the body until its operations are charged.
    let prepaid = session.charge_in_advance()?;
    let body = session.read_body(body).await?;
    let parsed = parse_post(arrival, &body, graphql.core.config.limits.graphql_batch);
    if let Some(prepaid) = &prepaid {
        prepaid.refund();
    }
    let (key, batch) = parsed.map_err(|problem| session.charge_refused(problem))?;
    match batch {
        Batch::Single(operation) if key.is_some() && session.is_mutation(&operation) => {
            let events = sse::is_wanted(&arrival.headers);
            under_key(&graphql.core, session, *operation, (key.unwrap_or_default(), &body), media, events)
                .await
        }
        Batch::Single(operation) if sse::is_wanted(&arrival.headers) => {
            // The operation has its own copy. A caller's first body is admitted regardless of its size.
            let sent = body.len();
            drop(body);
            sse::respond(&session, *operation, sent)
        }
        Batch::Single(operation) => Ok(respond(session.run(*operation).await, media)),
        Batch::Many(operations) => Ok(json(StatusCode::OK, media, session.run_all(operations).await?)),
    }
}

/// Parses a POST request into its operations and its idempotency key.
fn parse_post<'a>(arrival: &'a Arrival, body: &[u8], most: usize) -> Result<(Option<&'a str>, Batch)> {
    let key = idempotency::key_of(&arrival.headers)?;
    let batch = Batch::read(body, most)?;
    if key.is_some() && matches!(batch, Batch::Many(_)) {
        let detail = "`Idempotency-Key` applies to a single operation, not to a batch.";
        return Err(Problem::new(Code::MalformedRequest, detail));
    }
    Ok((key, batch))
}

/// Runs a mutation under an idempotency key, or replays the earlier answer.
async fn under_key(
    core: &Arc<Core>,
    session: Session,
    operation: Operation,
    (key, body): (&str, &[u8]),
    media: Media,
    events: bool,
) -> Result<Response> {
    // Charged before the key is claimed, which already writes.
    session.charge(Class::Writes)?;
    let (asking, asked) = (session.clone(), operation.clone());
    // A document may concern several organizations.
    let keyed = KeyedRequest { caller: asking.caller(), org: OrgId(0), key, parts: &[b"graphql", body] };
    let work = move |claim| async move {
        let session = session.with_claim(claim);
        let answered = session.run(operation.clone()).await;
        let kept = session.kept(&operation, &answered.json);
        Answer {
            status: status_of(&answered, media),
            media: HeaderValue::from_static(media.content_type()),
            kept,
            retry_after: answered.retry_after,
            body: answered.json.into(),
            replayed: false,
        }
    };
    let answer = idempotency::run_once(core, keyed, asking.authorize(&asked), work).await?;
    if events {
        let mut response = sse::answered(&answer.body);
        if answer.replayed {
            response.headers_mut().insert(idempotency::REPLAYED, HeaderValue::from_static("true"));
        }
        return Ok(response);
    }
    let mut response = Response::new(Body::from(answer.body.clone()));
    *response.status_mut() = answer.status;
    answer.write_headers(response.headers_mut());
    response.headers_mut().insert(header::VARY, HeaderValue::from_static("accept"));
    Ok(response)
}

async fn on_get(
    State(graphql): State<Arc<Graphql>>,
    arrival: Arrival,
    handshake: std::result::Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Response {
    let media = Media::wanted(&arrival.headers);
    let answered = if arrival.headers.contains_key(header::UPGRADE) {
        match handshake {
            Ok(handshake) => connect(&graphql, &arrival, handshake).await,
            Err(rejection) => return rejection.into_response(),
        }
    } else if request::weight(&arrival.headers, "text/html") > 0 {
        return explorer::page();
    } else {
        run_get(&graphql, &arrival, media).await
    };
    answered.unwrap_or_else(|problem| refuse(&problem, media, &arrival.request_id))
}

async fn connect(graphql: &Arc<Graphql>, arrival: &Arrival, handshake: WebSocketUpgrade) -> Result<Response> {
    let session = Session::open(graphql, arrival).await?;
    session.charge(Class::Reads)?;
    socket::upgrade(Arc::clone(&graphql.core), session, arrival.request_id.clone(), handshake)
}

async fn run_get(graphql: &Arc<Graphql>, arrival: &Arrival, media: Media) -> Result<Response> {
    let session = Session::open(graphql, arrival).await?;
    let events = sse::is_wanted(&arrival.headers);
    // As for POST: an anonymous caller pays before anything is parsed.
    let prepaid = session.charge_in_advance()?;
    let query = arrival.uri.query().unwrap_or_default();
    let parsed = parse_get(&session, query, events);
    if let Some(prepaid) = &prepaid {
        prepaid.refund();
    }
    let operation = parsed.map_err(|problem| session.charge_refused(problem))?;
    if events {
        return sse::respond(&session, operation, query.len());
    }
    Ok(respond(session.run(operation).await, media))
}

/// Parses a GET request. GET only reads: following a link must not change anything.
fn parse_get(session: &Session, query: &str, events: bool) -> Result<Operation> {
    let operation = Operation::from_query(query)?;
    if session.is_beyond_get(&operation, events) {
        let detail = "GET only runs queries. Send the operation with POST.";
        return Err(Problem::new(Code::MethodNotAllowed, detail));
    }
    Ok(operation)
}

fn respond(answered: Answered, media: Media) -> Response {
    let mut response = json(status_of(&answered, media), media, answered.json);
    if let Some(seconds) = answered.retry_after {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

fn status_of(answered: &Answered, media: Media) -> StatusCode {
    match media {
        _ if answered.limited => StatusCode::TOO_MANY_REQUESTS,
        Media::GraphQl if !answered.executed => StatusCode::BAD_REQUEST,
        Media::GraphQl | Media::Json => StatusCode::OK,
    }
}

fn json(status: StatusCode, media: Media, body: Vec<u8>) -> Response {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(media.content_type()));
    response.headers_mut().insert(header::VARY, HeaderValue::from_static("accept"));
    response
}

/// [`refuse`] for a request whose `Accept` hasn't been read yet.
pub fn refused(problem: &Problem, request_id: &str) -> Response {
    refuse(problem, Media::Json, request_id)
}

/// Answers with a problem instead of a GraphQL response.
fn refuse(problem: &Problem, media: Media, request_id: &str) -> Response {
    let mut response = json(problem.code.status(), media, run::failed(problem, request_id));
    let headers: &mut HeaderMap = response.headers_mut();
    match problem.code.status() {
        StatusCode::UNAUTHORIZED => {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        StatusCode::METHOD_NOT_ALLOWED => {
            headers.insert(header::ALLOW, HeaderValue::from_static("POST"));
        }
        _ => {}
    }
    if let Some(seconds) = problem.retry_after() {
        headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}
