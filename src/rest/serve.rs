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
    operation::{Given, id_in_path},
    problem::problem_response,
};
use crate::{
    access::Caller,
    app::App,
    edge::{Arrival, is_json},
    enums::DecidedVia,
    error::{Code, Problem, Result},
    graphql::{Request, authorize, problem_of},
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
            move |State(app): State<Arc<App>>, arrival: Arrival, path: RawPathParams, body: Bytes| {
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
    body: Bytes,
) -> Response {
    match run(&app, &operation, &arrival, &path, &body).await {
        Ok(json) => {
            let mut response = Response::new(Body::from(json));
            *response.status_mut() = status;
            let json = HeaderValue::from_static("application/json");
            response.headers_mut().insert(header::CONTENT_TYPE, json);
            response
        }
        Err(problem) => problem_response(&problem, arrival.uri.path(), &arrival.request_id),
    }
}

async fn run(
    app: &Arc<App>,
    operation: &Operation,
    arrival: &Arrival,
    path: &RawPathParams,
    body: &Bytes,
) -> Result<Bytes> {
    let caller = arrival.caller(app).await?;
    caller.require_identity()?;
    let request = prepared(app, operation, caller, arrival);
    let path: Vec<(&str, &str)> = path.iter().collect();
    let org = path.iter().find(|(name, _)| *name == "org_id").map_or("", |(_, text)| *text);
    authorize(&request, &operation.root, operation.permit, org_in_path(org)?).await?;
    check_media_type(&arrival.headers, body)?;
    let given = Given { path, query: arrival.uri.query().unwrap_or_default(), body };
    let variables = operation.variables(&given, &app.catalogue)?;
    execute(app, operation, request, variables).await
}

/// The request of a stored document, whose arguments are checked before it is executed.
pub fn prepared(app: &Arc<App>, operation: &Operation, caller: Caller, arrival: &Arrival) -> Arc<Request> {
    Arc::new(Request {
        plans: operation.document.plans.clone(),
        raw: true,
        validated: true,
        via: DecidedVia::Rest,
        ..Request::new(app, caller, arrival)
    })
}

/// Executes the document of an operation whose caller was authorized.
pub async fn execute(
    app: &Arc<App>,
    operation: &Operation,
    request: Arc<Request>,
    variables: async_graphql::Variables,
) -> Result<Bytes> {
    let mut graphql = async_graphql::Request::new("")
        .variables(variables)
        .data(request)
        .data(Arc::clone(&operation.document));
    graphql.set_parsed_query(operation.document.planned());
    let response = app.schema.execute(graphql).await;
    if let Some(error) = response.errors.first() {
        return Err(problem_of(error));
    }
    let async_graphql::Value::Object(mut roots) = response.data else { return Err(no_answer()) };
    match roots.shift_remove(operation.root.as_str()) {
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
