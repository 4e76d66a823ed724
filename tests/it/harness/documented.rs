//! The answers that `schema/openapi.json` documents for each route. Every answer in every test is checked against them.

use std::{collections::BTreeMap, sync::LazyLock};

use axum::http::{Method, StatusCode};
use muster::api::rest::{ROUTES, Route};
use serde_json::Value;

static DOCUMENT: LazyLock<Value> =
    LazyLock::new(|| serde_json::from_str(include_str!("../../../schema/openapi.json")).unwrap());

/// The codes an operation may answer with, by status. A success has none.
pub fn documented(route: &Route) -> BTreeMap<u16, Vec<&'static str>> {
    let method = route.method.as_str().to_lowercase();
    let responses =
        DOCUMENT["paths"][route.path][method]["responses"].as_object().expect("a route is described");
    let codes = |answer: &'static Value| {
        let problem = answer["content"].get("application/problem+json").is_some();
        let text = answer["description"].as_str().filter(|_| problem).unwrap_or_default();
        text.split('`').skip(1).step_by(2).collect()
    };
    responses.iter().map(|(status, answer)| (status.parse().unwrap(), codes(answer))).collect()
}

/// A route's answer that the document doesn't list.
pub fn undocumented(method: &Method, path: &str, status: StatusCode, body: &[u8]) -> Option<String> {
    let route = ROUTES.iter().find(|route| route.method == *method && fits(route.path, path))?;
    let code = serde_json::from_slice::<Value>(body).ok().filter(|_| !status.is_success());
    let code = code.and_then(|body| Some(body["code"].as_str()?.to_owned())).unwrap_or_default();
    let said = documented(route);
    let known = said.get(&status.as_u16()).is_some_and(|codes| {
        if status.is_success() { codes.is_empty() } else { codes.contains(&code.as_str()) }
    });
    (!known).then(|| format!("{}: {} {code}", route.operation, status.as_u16()))
}

fn fits(template: &str, path: &str) -> bool {
    let same = template.split('/').zip(path.split('/'));
    template.split('/').count() == path.split('/').count()
        && same.into_iter().all(|(part, given)| part.starts_with('{') || part == given)
}
