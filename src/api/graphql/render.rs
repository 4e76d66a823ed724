//! Renders responses: the executor's values, with records' JSON copied through.

use async_graphql::{Response, ServerError, Value};

use crate::{
    base::{
        ids::AN_ID,
        problem::{Code, Problem},
    },
    core::{Request, telemetry::metrics},
};

/// Appends `value` as JSON. Binary values already are JSON: only our own record types produce them.
pub fn write_value(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Binary(json) => out.extend_from_slice(json),
        Value::List(items) => {
            out.push(b'[');
            for (n, item) in items.iter().enumerate() {
                if n > 0 {
                    out.push(b',');
                }
                write_value(item, out);
            }
            out.push(b']');
        }
        Value::Object(fields) => {
            out.push(b'{');
            for (n, (name, value)) in fields.iter().enumerate() {
                if n > 0 {
                    out.push(b',');
                }
                write_json(name.as_str(), out);
                out.push(b':');
                write_value(value, out);
            }
            out.push(b'}');
        }
        scalar => write_json(scalar, out),
    }
}

fn write_json(value: &(impl serde::Serialize + ?Sized), out: &mut Vec<u8>) {
    // Writing strings, numbers and booleans to memory can't fail.
    let _ = serde_json::to_writer(out, value);
}

/// How many bytes the root fields of a response already hold, to allocate once.
fn written(data: &Value) -> usize {
    let Value::Object(roots) = data else { return 0 };
    let sizes = roots.iter().map(|(name, value)| match value {
        Value::Binary(json) => name.len() + json.len() + 4,
        _ => 64,
    });
    sizes.sum()
}

#[must_use]
pub fn render(response: &Response, request: &Request) -> Vec<u8> {
    let mut out = Vec::with_capacity(64 + written(&response.data));
    out.push(b'{');
    // Without data it was a request error: nothing was executed (specification, section 7.1).
    if response.errors.is_empty() || response.data != Value::Null {
        out.extend_from_slice(b"\"data\":");
        write_value(&response.data, &mut out);
    }
    if !response.errors.is_empty() {
        if out.len() > 1 {
            out.push(b',');
        }
        out.extend_from_slice(b"\"errors\":");
        let errors: Vec<_> = response.errors.iter().map(|error| show(error, request)).collect();
        write_json(&errors, &mut out);
    }
    out.push(b'}');
    out
}

/// An error as callers see it: with a code, a status, and the request id, wherever it came from.
#[must_use]
pub fn show(error: &ServerError, request: &Request) -> ServerError {
    let mut shown = error.clone();
    let mut extensions = shown.extensions.take().unwrap_or_default();
    match error.source::<Problem>() {
        Some(problem) => {
            crate::core::telemetry::problem(problem, &request.id);
            problem.extend(&mut extensions, &request.id);
        }
        None => {
            if extensions.get("code").is_none() {
                let code = code_of(error);
                if let Some(meters) = metrics::on() {
                    meters.problem(code);
                }
                extensions.set("code", code.as_str());
                extensions.set("status", u32::from(code.status().as_u16()));
            }
            extensions.set("requestId", request.id.as_str());
            if shown.message.ends_with(r#"expected type "Id""#) {
                shown.message = format!("{}, {AN_ID}", shown.message);
            }
        }
    }
    shown.extensions = Some(extensions);
    shown
}

/// The code of an error from async-graphql: the caller's document or values are invalid.
fn code_of(error: &ServerError) -> Code {
    let limits = ["too complex", "nested too deep", "recursion depth", "number of directives"];
    if limits.iter().any(|limit| error.message.contains(limit)) {
        Code::QueryTooComplex
    } else {
        Code::ValidationFailed
    }
}

/// The problem behind an error, for REST.
#[must_use]
pub fn problem_of(error: &ServerError) -> Problem {
    match error.source::<Problem>() {
        Some(problem) => problem.clone(),
        // REST checks types and bounds before executing, but a scalar may be stricter.
        None => Problem::new(code_of(error), error.message.clone()),
    }
}
