//! Parses a body or a query string into operations, and negotiates the form of the answer.

use std::collections::HashMap;

use async_graphql::Variables;
use http::{HeaderMap, header};
use serde::Deserialize;

use crate::base::{
    numerals::with_noun,
    problem::{Code, Problem, Result},
};

/// An operation as it was sent. Unknown keys are ignored, as the specification requires.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Operation {
    pub query: String,
    /// The name of the operation within the document.
    #[serde(default, rename = "operationName")]
    pub name: Option<String>,
    #[serde(default)]
    pub variables: Variables,
    /// Unused, but must be an object if present.
    #[serde(default)]
    extensions: Option<HashMap<String, serde_json::Value>>,
}

#[derive(Debug)]
pub enum Batch {
    Single(Box<Operation>),
    /// Operations to answer in order.
    Many(Vec<Operation>),
}

impl Batch {
    /// Reads a body.
    ///
    /// # Errors
    /// `MALFORMED_REQUEST` for an invalid request; `QUERY_TOO_COMPLEX` for more than `most` operations.
    pub fn read(body: &[u8], most: usize) -> Result<Self> {
        if body.iter().find(|byte| !byte.is_ascii_whitespace()) != Some(&b'[') {
            return Ok(Self::Single(muster_json::from_slice(body).map_err(malformed)?));
        }
        let operations: Vec<Operation> = muster_json::from_slice(body).map_err(malformed)?;
        match operations.len() {
            0 => Err(Problem::new(Code::MalformedRequest, "The batch is empty.")),
            given if given > most => {
                let detail =
                    format!("A batch can have at most {}, not {given}.", with_noun(most, "operation"));
                Err(Problem::new(Code::QueryTooComplex, detail))
            }
            _ => Ok(Self::Many(operations)),
        }
    }
}

impl Operation {
    /// An operation that did not come in a body.
    pub fn new(query: String, name: Option<String>, variables: Variables) -> Self {
        Self { query, name, variables, extensions: None }
    }

    /// Reads the parameters of a GET request.
    ///
    /// # Errors
    /// `MALFORMED_REQUEST`.
    pub fn from_query(query: &str) -> Result<Self> {
        let mut operation = Self::default();
        let mut has_document = false;
        for (name, text) in url::form_urlencoded::parse(query.as_bytes()) {
            match &*name {
                "query" => {
                    operation.query = text.into_owned();
                    has_document = true;
                }
                "operationName" if !text.is_empty() => operation.name = Some(text.into_owned()),
                "variables" if !text.is_empty() => {
                    operation.variables = muster_json::from_str(&text).map_err(malformed)?;
                }
                "extensions" if !text.is_empty() => {
                    operation.extensions = muster_json::from_str(&text).map_err(malformed)?;
                }
                _ => {}
            }
        }
        if has_document {
            return Ok(operation);
        }
        Err(Problem::new(
            Code::MalformedRequest,
            "The parameter `query` is required. It must be a GraphQL document.",
        ))
    }
}

#[expect(clippy::needless_pass_by_value, reason = "it is what map_err hands over")]
fn malformed(error: serde_json::Error) -> Problem {
    Problem::new(Code::MalformedRequest, format!("The body is not a GraphQL request: {error}."))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Media {
    /// `application/graphql-response+json`: the status says whether the document ran.
    GraphQl,
    /// `application/json`: 200 for every well-formed request.
    Json,
}

impl Media {
    /// The form the caller prefers. JSON if the caller accepts neither.
    pub fn wanted(headers: &HeaderMap) -> Self {
        let (graphql, json) =
            (weight(headers, "application/graphql-response+json"), weight(headers, "application/json"));
        if graphql > json || (graphql > 0 && names_first(headers)) { Self::GraphQl } else { Self::Json }
    }

    pub const fn content_type(self) -> &'static str {
        match self {
            Self::GraphQl => "application/graphql-response+json; charset=utf-8",
            Self::Json => "application/json; charset=utf-8",
        }
    }
}

/// The caller's preference for `media` by its exact name, in thousandths. 0 if it isn't named.
pub fn weight(headers: &HeaderMap, media: &str) -> u16 {
    ranges(headers).filter(|(name, _)| name.eq_ignore_ascii_case(media)).map(|(_, q)| q).max().unwrap_or(0)
}

/// Whether GraphQL's own form comes first among equally preferred ones.
fn names_first(headers: &HeaderMap) -> bool {
    let first = ranges(headers).find(|(name, q)| *q > 0 && name.starts_with("application/"));
    let json = weight(headers, "application/json");
    first.is_some_and(|(name, q)| name.eq_ignore_ascii_case("application/graphql-response+json") && q >= json)
}

/// The media ranges in `Accept` with their weights.
fn ranges(headers: &HeaderMap) -> impl Iterator<Item = (&str, u16)> {
    headers
        .get_all(header::ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(|range| {
            let mut parts = range.split(';').map(str::trim);
            let name = parts.next().unwrap_or_default();
            let q = parts.find_map(|part| part.strip_prefix("q=")?.parse::<f32>().ok()).unwrap_or(1.0);
            (name, (q.clamp(0.0, 1.0) * 1000.0) as u16)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(accept: &str) -> Media {
        let mut headers = HeaderMap::new();
        headers.insert(header::ACCEPT, accept.parse().unwrap());
        Media::wanted(&headers)
    }

    #[test]
    fn the_caller_chooses_the_form() {
        assert_eq!(Media::wanted(&HeaderMap::new()), Media::Json);
        assert_eq!(wanted("*/*"), Media::Json);
        assert_eq!(wanted("application/json"), Media::Json);
        assert_eq!(wanted("application/graphql-response+json"), Media::GraphQl);
        assert_eq!(
            wanted("application/graphql-response+json; charset=utf-8, application/json; charset=utf-8"),
            Media::GraphQl
        );
        assert_eq!(wanted("application/json, application/graphql-response+json"), Media::Json);
        assert_eq!(wanted("application/graphql-response+json;q=0.5, application/json"), Media::Json);
        assert_eq!(wanted("application/graphql-response+json, application/json;q=0.9"), Media::GraphQl);
    }

    #[test]
    fn invalid_requests_are_refused() {
        for body in [
            "",
            "{",
            "7",
            "{}",
            "[]",
            r#"{"query": 7}"#,
            r#"{"query": "{x}", "variables": []}"#,
            r#"[{"query": "{x}"}, 1]"#,
        ] {
            assert_eq!(Batch::read(body.as_bytes(), 3).unwrap_err().code, Code::MalformedRequest, "{body}");
        }
        let four = format!("[{}]", [r#"{"query": "{x}"}"#; 4].join(","));
        assert_eq!(Batch::read(four.as_bytes(), 3).unwrap_err().code, Code::QueryTooComplex);
        assert!(matches!(
            Batch::read(br#" {"query": "{x}", "variables": null, "more": 1}"#, 3),
            Ok(Batch::Single(_))
        ));
    }
}
