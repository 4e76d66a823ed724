//! The GraphQL endpoint while the service has none of its own.

use std::sync::Arc;

use async_graphql::Variables;
use axum::{body::Bytes, extract::State, response::Response};
use muster::{
    app::App,
    edge::Arrival,
    graphql::{self, Request},
};
use serde_json::Value;

pub async fn graphql(State(app): State<Arc<App>>, arrival: Arrival, body: Bytes) -> Response {
    let body: Value = serde_json::from_slice(&body).unwrap();
    let caller = match arrival.caller(&app).await {
        Ok(caller) => caller,
        Err(problem) => return muster::rest::problem_response(&problem, "/graphql", &arrival.request_id),
    };
    let request = Arc::new(Request { raw: true, ..Request::new(&app, caller, &arrival) });
    let document = async_graphql::Request::new(body["query"].as_str().unwrap_or_default())
        .variables(Variables::from_json(body["variables"].clone()))
        .data(Arc::clone(&request));
    let answer = app.schema.execute(document).await;
    let body = graphql::render(&answer, &request);
    Response::builder().header("content-type", "application/json").body(body.into()).unwrap()
}
