//! Runs a route: authenticate, authorize, read the request, execute the document, return the bytes.

use std::{collections::BTreeMap, sync::Arc};

use axum::{
    Router,
    body::{Body, Bytes},
    extract::{RawPathParams, State},
    response::Response,
    routing::{MethodFilter, MethodRouter, on},
};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use http_body::Body as _;

use super::{
    Operation, Rest,
    etag::{EtagSource, IfMatch},
    operation::Given,
};
use crate::{
    api::{
        graphql::{Document, Graphql, problem_of},
        middleware::{
            Arrival, body,
            etag::is_known,
            idempotency::{self, Answer, Claim, KeyedRequest},
            is_json, org_in_path, problem_response, refusal,
        },
    },
    base::{
        enums::DecidedVia,
        problem::{Code, Problem, Result},
    },
    core::{
        Core, Request,
        access::{Caller, Scope},
    },
    read::{AnswerBudget, Reading},
    resolvers::{authorize, authorize_again},
};

pub fn router(rest: Arc<Rest>) -> Router {
    let mut paths: BTreeMap<&str, MethodRouter<Arc<Rest>>> = BTreeMap::new();
    for (route, operation) in rest.routes.iter() {
        let Ok(filter) = MethodFilter::try_from(route.method.clone()) else { continue };
        let (operation, status) = (Arc::clone(operation), route.status);
        let handler = on(
            filter,
            move |State(rest): State<Arc<Rest>>, arrival: Arrival, path: RawPathParams, body: Body| {
                handle(rest, operation, status, arrival, path, body)
            },
        );
        let entry = paths.remove(route.path).unwrap_or_default();
        paths.insert(route.path, entry.merge(handler));
    }
    let router = Router::new();
    paths.into_iter().fold(router, |router, (path, methods)| router.route(path, methods)).with_state(rest)
}

async fn handle(
    rest: Arc<Rest>,
    operation: Arc<Operation>,
    status: StatusCode,
    arrival: Arrival,
    path: RawPathParams,
    body: Body,
) -> Response {
    match run(&rest, &operation, status, &arrival, &path, body).await {
        Ok(response) => response,
        Err(problem) => problem_response(&problem, arrival.uri.path(), &arrival.request_id),
    }
}

async fn run(
    rest: &Arc<Rest>,
    operation: &Arc<Operation>,
    status: StatusCode,
    arrival: &Arrival,
    path: &RawPathParams,
    body: Body,
) -> Result<Response> {
    let core = &rest.core;
    let caller = arrival.caller(core).await?;
    caller.require_identity()?;
    let request = prepared(core, caller, arrival);
    let path: Vec<(&str, &str)> = path.iter().collect();
    let org = path.iter().find(|(name, _)| *name == "org_id").map_or("", |(_, text)| *text);
    let mut scope = authorize(&request, &operation.root, operation.permit, org_in_path(org)?).await?;
    let is_complete = body.is_end_stream();
    let body = &body::read(core, arrival, &request.caller, body, core.config.limits.body_bytes).await?;
    if !is_complete {
        // While the body arrived, the caller may have lost the right.
        scope = authorize_again(&request, &operation.root, operation.permit, scope.org).await?;
    }
    check_media_type(&arrival.headers, body)?;
    let given = Given { path, query: arrival.uri.query().unwrap_or_default(), body };
    let variables = operation.variables(&given, &rest.graphql.catalogue)?;
    if arrival.method.is_safe() {
        let json = execute(&rest.graphql, operation, scope, variables).await?;
        return Ok(answer(operation, status, json, Some(&arrival.headers)));
    }
    if let Some(if_match) = IfMatch::from_headers(&arrival.headers, operation, &variables, &rest.graphql) {
        request.set_precondition(if_match);
    }
    match idempotency::key_of(&arrival.headers)? {
        None => {
            Ok(answer(operation, status, execute(&rest.graphql, operation, scope, variables).await?, None))
        }
        // Boxed, so that the future of a plain read stays small.
        Some(key) => {
            Box::pin(under_key(rest, operation, status, arrival, scope, (key, body), variables)).await
        }
    }
}

/// Executes under an idempotency key, or replays the earlier answer.
async fn under_key(
    rest: &Arc<Rest>,
    operation: &Arc<Operation>,
    status: StatusCode,
    arrival: &Arrival,
    scope: Scope,
    (key, body): (&str, &Bytes),
    variables: async_graphql::Variables,
) -> Result<Response> {
    let (method, uri, caller) =
        (arrival.method.as_str(), arrival.uri.to_string(), scope.request.caller.clone());
    let if_match = arrival.headers.get_all(header::IF_MATCH).iter().map(HeaderValue::as_bytes);
    let if_match = if_match.collect::<Vec<_>>().join(&b","[..]);
    let parts: &[&[u8]] = &[method.as_bytes(), uri.as_bytes(), &if_match, body];
    let keyed = KeyedRequest { caller: &caller, org: scope.org, key, parts };
    let (graphql, working, instance) =
        (Arc::clone(&rest.graphql), Arc::clone(operation), arrival.uri.path().to_owned());
    let work = move |claim: Option<Arc<Claim>>| async move {
        let request = Arc::clone(&scope.request);
        if let Some(claim) = claim {
            request.set_key(claim);
        }
        match execute(&graphql, &working, scope, variables).await {
            Ok(body) => Answer {
                status,
                media: HeaderValue::from_static("application/json"),
                kept: working.without_secrets(&body, &graphql.catalogue),
                body,
                retry_after: None,
                replayed: false,
            },
            Err(problem) => refusal(&problem, &instance, &request.id),
        }
    };
    // The caller of a repeated request was authorized above like any other.
    let done = idempotency::run_once(&rest.core, keyed, async { Ok(()) }, work).await?;
    let mut response = if done.status.is_success() {
        answer(operation, done.status, done.body.clone(), None)
    } else {
        let mut refused = Response::new(Body::from(done.body.clone()));
        *refused.status_mut() = done.status;
        refused
    };
    done.write_headers(response.headers_mut());
    Ok(response)
}

/// The answer, with the record's ETag. `asked` has the headers of a request that only reads.
fn answer(operation: &Operation, status: StatusCode, json: Bytes, asked: Option<&HeaderMap>) -> Response {
    let etag = operation.etag_source.as_ref().map(|current| current.etag(&json));
    let exact = operation.etag_source.as_ref().is_some_and(EtagSource::is_exact);
    let known = exact && asked.zip(etag.as_ref()).is_some_and(|(headers, etag)| is_known(headers, etag));
    let mut response = Response::new(if known { Body::empty() } else { Body::from(json) });
    *response.status_mut() = if known { StatusCode::NOT_MODIFIED } else { status };
    let headers = response.headers_mut();
    if !known {
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    }
    if let Some(etag) = etag {
        headers.insert(header::ETAG, etag);
        // Only for this caller, and revalidated each time.
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
    }
    response
}

/// Creates a request for a stored document whose arguments are already checked.
pub fn prepared(core: &Arc<Core>, caller: Caller, arrival: &Arrival) -> Arc<Request> {
    let mut request = arrival.request(core, caller, DecidedVia::Rest);
    request.validated = true;
    Arc::new(request)
}

/// Executes an operation's document for an authorized caller.
pub async fn execute(
    graphql: &Graphql,
    operation: &Operation,
    scope: Scope,
    variables: async_graphql::Variables,
) -> Result<Bytes> {
    let reading = Reading::new(operation.document.plans.clone(), true, AnswerBudget::default());
    execute_document(graphql, &operation.document, &operation.root, scope, reading, variables).await
}

/// Executes a document with one root field in a scope.
pub(in crate::api) async fn execute_document(
    graphql: &Graphql,
    document: &Arc<Document>,
    root: &str,
    scope: Scope,
    reading: Reading,
    variables: async_graphql::Variables,
) -> Result<Bytes> {
    let mut request = async_graphql::Request::new("")
        .variables(variables)
        .data(Arc::clone(&scope.request))
        .data(Arc::new(reading))
        .data(scope)
        .data(Arc::clone(document));
    request.set_parsed_query(document.planned());
    let response = graphql.schema.execute(request).await;
    if let Some(error) = response.errors.first() {
        return Err(problem_of(error));
    }
    let async_graphql::Value::Object(mut roots) = response.data else { return Err(no_answer()) };
    match roots.shift_remove(root) {
        Some(async_graphql::Value::Binary(json)) => Ok(json),
        Some(value) => {
            let mut out = Vec::new();
            crate::api::graphql::write_value(&value, &mut out);
            Ok(out.into())
        }
        None => Err(no_answer()),
    }
}

fn no_answer() -> Problem {
    Problem::internal(anyhow::anyhow!("a stored document produced no answer"))
}

fn check_media_type(headers: &HeaderMap, body: &Bytes) -> Result<()> {
    if body.is_empty() || is_json(headers) {
        return Ok(());
    }
    Err(Problem::new(Code::UnsupportedMediaType, "Send the body as `Content-Type: application/json`."))
}
