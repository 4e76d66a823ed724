//! Running a route: authenticate, authorize, read the request, execute the document, hand out the bytes.

use std::{collections::BTreeMap, sync::Arc};

use axum::{
    Router,
    body::{Body, Bytes},
    extract::{RawPathParams, State},
    response::Response,
    routing::{MethodFilter, MethodRouter, on},
};
use http::{HeaderMap, HeaderValue, StatusCode, header};

use super::{
    Operation,
    etag::{self, Precondition},
    operation::{Given, id_in_path},
    problem::{problem_document, problem_response},
};
use crate::{
    access::Caller,
    app::App,
    edge::{
        Arrival, body,
        idempotency::{self, Answer, Keyed},
        is_json,
    },
    enums::DecidedVia,
    error::{Code, Problem, Result},
    graphql::{Document, Request, authorize, problem_of},
    ids::OrgId,
};

/// The routes of the table as an axum router.
pub fn router(app: &Arc<App>) -> Router<Arc<App>> {
    let mut paths: BTreeMap<&str, MethodRouter<Arc<App>>> = BTreeMap::new();
    for (route, operation) in app.routes.iter() {
        let Ok(filter) = MethodFilter::try_from(route.method.clone()) else { continue };
        let (operation, status) = (Arc::clone(operation), route.status);
        let handler = on(
            filter,
            move |State(app): State<Arc<App>>, arrival: Arrival, path: RawPathParams, body: Body| {
                handle(app, operation, status, arrival, path, body)
            },
        );
        let entry = paths.remove(route.path).unwrap_or_default();
        paths.insert(route.path, entry.merge(handler));
    }
    paths.into_iter().fold(Router::new(), |router, (path, methods)| router.route(path, methods))
}

async fn handle(
    app: Arc<App>,
    operation: Arc<Operation>,
    status: StatusCode,
    arrival: Arrival,
    path: RawPathParams,
    body: Body,
) -> Response {
    match run(&app, &operation, status, &arrival, &path, body).await {
        Ok(response) => response,
        Err(problem) => problem_response(&problem, arrival.uri.path(), &arrival.request_id),
    }
}

async fn run(
    app: &Arc<App>,
    operation: &Arc<Operation>,
    status: StatusCode,
    arrival: &Arrival,
    path: &RawPathParams,
    body: Body,
) -> Result<Response> {
    let caller = arrival.caller(app).await?;
    caller.require_identity()?;
    let request = prepared(app, operation, caller, arrival);
    let path: Vec<(&str, &str)> = path.iter().collect();
    let org = path.iter().find(|(name, _)| *name == "org_id").map_or("", |(_, text)| *text);
    let org = org_in_path(org)?;
    authorize(&request, &operation.root, operation.permit, org).await?;
    let body = &body::read(app, arrival, &request.caller, body, app.config.limits.body_bytes).await?;
    check_media_type(&arrival.headers, body)?;
    let given = Given { path, query: arrival.uri.query().unwrap_or_default(), body };
    let variables = operation.variables(&given, &app.catalogue)?;
    if arrival.method.is_safe() {
        let json = execute(app, operation, request, variables).await?;
        return Ok(answer(operation, status, json, Some(&arrival.headers)));
    }
    let precondition = Precondition::of(&arrival.headers, operation, &variables, &request);
    let request = match precondition {
        None => request,
        Some(precondition) => {
            Arc::new(Request { precondition: Some(precondition), ..request.of_document(&operation.document) })
        }
    };
    match idempotency::key_of(&arrival.headers)? {
        None => Ok(answer(operation, status, execute(app, operation, request, variables).await?, None)),
        // In a place of its own, so that the future of those who only read is not as large.
        Some(key) => {
            Box::pin(under_key(app, operation, status, arrival, org, (key, body), request, variables)).await
        }
    }
}

/// Executes under an idempotency key, or gives the answer that was given before.
#[expect(clippy::too_many_arguments, reason = "all of a request")]
async fn under_key(
    app: &Arc<App>,
    operation: &Arc<Operation>,
    status: StatusCode,
    arrival: &Arrival,
    org: OrgId,
    (key, body): (&str, &Bytes),
    request: Arc<Request>,
    variables: async_graphql::Variables,
) -> Result<Response> {
    let (method, uri, caller) = (arrival.method.as_str(), arrival.uri.to_string(), request.caller.clone());
    let demanded = arrival.headers.get_all(header::IF_MATCH).iter().map(HeaderValue::as_bytes);
    let demanded = demanded.collect::<Vec<_>>().join(&b","[..]);
    let parts: &[&[u8]] = &[method.as_bytes(), uri.as_bytes(), &demanded, body];
    let keyed = Keyed { caller: &caller, org, key, parts };
    let (worker, working, instance) = (Arc::clone(app), Arc::clone(operation), arrival.uri.path().to_owned());
    let work = move |claim| async move {
        let request = Arc::new(Request {
            claim,
            precondition: request.precondition.clone(),
            ..request.of_document(&working.document)
        });
        let id = request.id.clone();
        match execute(&worker, &working, request, variables).await {
            Ok(body) => Answer {
                status,
                media: HeaderValue::from_static("application/json"),
                kept: working.without_secrets(&body, &worker.catalogue),
                body,
                retry_after: None,
                replayed: false,
            },
            Err(problem) => refusal(&problem, &instance, &id),
        }
    };
    // Whoever asks again was authorized above like everybody.
    let done = idempotency::once(app, keyed, async { Ok(()) }, work).await?;
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

/// A refusal under an idempotency key.
pub fn refusal(problem: &Problem, instance: &str, request_id: &str) -> Answer {
    problem.log(request_id);
    let status = problem.code.status();
    let body = Bytes::from(problem_document(problem, instance, request_id).to_string());
    Answer {
        status,
        media: HeaderValue::from_static("application/problem+json"),
        kept: idempotency::is_lasting(status.as_u16()).then(|| body.clone()),
        body,
        retry_after: problem.retry_after(),
        replayed: false,
    }
}

/// The answer, with the ETag of a record. `asked` are the headers of a request that only reads.
fn answer(operation: &Operation, status: StatusCode, json: Bytes, asked: Option<&HeaderMap>) -> Response {
    let etag = operation.current.as_ref().map(|current| current.etag(&json));
    let known = asked.zip(etag.as_ref()).is_some_and(|(headers, etag)| etag::is_known(headers, etag));
    let mut response = Response::new(if known { Body::empty() } else { Body::from(json) });
    *response.status_mut() = if known { StatusCode::NOT_MODIFIED } else { status };
    let headers = response.headers_mut();
    if !known {
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    }
    if let Some(etag) = etag {
        headers.insert(header::ETAG, etag);
        // To be kept by the caller alone, and asked for again each time.
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
    }
    response
}

/// The request of a stored document, whose arguments are checked before it is executed.
pub fn prepared(app: &Arc<App>, operation: &Operation, caller: Caller, arrival: &Arrival) -> Arc<Request> {
    let request = Request { via: DecidedVia::Rest, ..Request::new(app, caller, arrival) };
    Arc::new(request.executing(&operation.document))
}

/// Executes the document of an operation whose caller was authorized.
pub async fn execute(
    app: &Arc<App>,
    operation: &Operation,
    request: Arc<Request>,
    variables: async_graphql::Variables,
) -> Result<Bytes> {
    execute_document(app, &operation.document, &operation.root, request, variables).await
}

/// Executes a document of one root field.
pub(super) async fn execute_document(
    app: &Arc<App>,
    document: &Arc<Document>,
    root: &str,
    request: Arc<Request>,
    variables: async_graphql::Variables,
) -> Result<Bytes> {
    let mut graphql =
        async_graphql::Request::new("").variables(variables).data(request).data(Arc::clone(document));
    graphql.set_parsed_query(document.planned());
    let response = app.schema.execute(graphql).await;
    if let Some(error) = response.errors.first() {
        return Err(problem_of(error));
    }
    let async_graphql::Value::Object(mut roots) = response.data else { return Err(no_answer()) };
    match roots.shift_remove(root) {
        Some(async_graphql::Value::Binary(json)) => Ok(json),
        Some(value) => {
            let mut out = Vec::new();
            crate::graphql::write_value(&value, &mut out);
            Ok(out.into())
        }
        None => Err(no_answer()),
    }
}

fn no_answer() -> Problem {
    Problem::internal(anyhow::anyhow!("a stored document answered nothing"))
}

/// An id that can't be one names no organization, of which nobody is a member.
pub fn org_in_path(text: &str) -> Result<OrgId> {
    match id_in_path("org_id", text) {
        Ok(id) => Ok(OrgId(id)),
        Err(problem) if problem.code == Code::NotFound => Ok(OrgId(0)),
        Err(problem) => Err(problem),
    }
}

fn check_media_type(headers: &HeaderMap, body: &Bytes) -> Result<()> {
    if body.is_empty() || is_json(headers) {
        return Ok(());
    }
    Err(Problem::new(Code::UnsupportedMediaType, "Send the body as `Content-Type: application/json`."))
}
