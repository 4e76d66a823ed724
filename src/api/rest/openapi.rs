//! Generates the OpenAPI 3.1 document of `/v1`: paths from the route table, parameters and bodies from the schema's
//! arguments with their bounds, answers from what the stored documents select, errors from the error codes.
//!
//! Nothing is stated twice, so nothing can drift: `schema/openapi.json` is this function's output, and a test compares
//! the two.

use std::{
    collections::{BTreeMap, HashMap},
    sync::LazyLock,
};

use http::{Method, StatusCode};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{
    Operation, Route, Routes, Source,
    etag::EtagSource,
    file_paths::{TAG as FILES, file_paths},
    operation::Input,
    shapes::{Shapes, is_required},
};
use crate::{base::problem::Code, core::access::Permit, resolvers::Catalogue};

const DESCRIPTION: &str = "Manages the AI agents of organizations. Errors are RFC 9457 problem documents. Every request \
    that changes something accepts an `Idempotency-Key` (1 to 255 visible ASCII characters): repeating a request with the \
    same key within 24 hours returns the first answer without repeating the change, with `Idempotent-Replayed: true` and \
    null in place of secrets.";

/// An example of an operation: a body, and keys of the answer that follow from it.
#[derive(Clone, Default, Deserialize)]
#[serde(default)]
struct Example {
    body: Map<String, Value>,
    answer: Map<String, Value>,
}

/// The examples, by operation. Tests send them to the service.
static EXAMPLES: LazyLock<HashMap<String, Example>> = LazyLock::new(|| {
    muster_json::from_slice(include_bytes!("../../../schema/rest/examples.json")).unwrap_or_default()
});

/// The document, as JSON with sorted keys.
#[must_use]
pub fn document(routes: &Routes, catalogue: &Catalogue) -> Value {
    let mut shapes = Shapes::new(&catalogue.registry, "#/components/schemas/");
    shapes.schemas.insert("Problem".to_owned(), problem_schema());
    let mut paths: BTreeMap<&str, Map<String, Value>> = BTreeMap::new();
    for (route, operation) in routes.iter() {
        let method = route.method.as_str().to_ascii_lowercase();
        paths.entry(route.path).or_default().insert(method, shapes.operation(route, operation, catalogue));
    }
    for (path, method, described) in file_paths(catalogue) {
        paths.entry(path).or_default().insert(method.to_owned(), described);
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Muster",
            "version": env!("CARGO_PKG_VERSION"),
            "description": DESCRIPTION,
        },
        "servers": [{ "url": "/" }],
        "security": [{ "bearer": [] }],
        "tags": tags(routes),
        "paths": paths,
        "components": {
            "securitySchemes": {
                "bearer": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "A service token (for integrations), or the access token of a person's session.",
                },
            },
            "headers": header_components(),
            "schemas": shapes.schemas,
        },
    })
}

/// The document, formatted as it is served and committed.
#[must_use]
pub fn text(routes: &Routes, catalogue: &Catalogue) -> String {
    format!("{:#}\n", document(routes, catalogue))
}

/// The resource of a route: the last part of its path that is neither a parameter nor a verb.
fn tag(route: &Route) -> &'static str {
    let mut parts = route.path.split('/').skip(4).filter(|part| !part.starts_with('{'));
    match parts.next() {
        None => "organization",
        Some("agent" | "conversation") if route.path.contains("/message") => "message",
        Some("agent") if route.path.contains("/conversation") => "conversation",
        Some(resource) => resource,
    }
}

fn tags(routes: &Routes) -> Vec<Value> {
    let mut names: Vec<_> = routes.iter().map(|(route, _)| tag(route)).chain([FILES]).collect();
    names.sort_unstable();
    names.dedup();
    names.into_iter().map(|name| json!({ "name": name })).collect()
}

impl Shapes<'_> {
    fn operation(&mut self, route: &Route, operation: &Operation, catalogue: &Catalogue) -> Value {
        let about = catalogue.root_field(&operation.root).and_then(|root| root.field.description.clone());
        let mut described = json!({
            "operationId": lower_first(&operation.name),
            "tags": [tag(route)],
            "summary": about.as_deref().unwrap_or_default().lines().next().unwrap_or_default(),
            "description": description(about.as_deref().unwrap_or_default(), operation.permit),
            "parameters": self.parameters(route, operation),
            "responses": self.responses(route, operation),
        });
        if let Some(body) = operation.body() {
            described["requestBody"] = json!({
                "required": true,
                "content": { "application/json": { "schema": self.body(body) } },
            });
        }
        if let Permit::InOrganization { permission, .. } = operation.permit {
            described["x-permission"] = json!(permission.as_str());
        }
        // The specification's operations stay as they are.
        if !route.is_specified() {
            self.add_examples(route, operation, &mut described);
        }
        described
    }

    fn parameters(&mut self, route: &Route, operation: &Operation) -> Vec<Value> {
        let inputs = operation.inputs.iter().filter(|input| input.source != Source::Body);
        let mut parameters: Vec<Value> = inputs.map(|input| self.parameter(input)).collect();
        parameters.extend(conditional_header(operation));
        if route.method != Method::GET && !route.is_specified() {
            parameters.push(idempotency_header());
        }
        parameters
    }

    /// Adds an example of the body, and one of the answer to it.
    fn add_examples(&self, route: &Route, operation: &Operation, described: &mut Value) {
        let example = EXAMPLES.get(&operation.name).cloned().unwrap_or_default();
        if operation.body().is_some() {
            described["requestBody"]["content"]["application/json"]["example"] = json!(example.body);
        }
        let status = route.status.as_u16().to_string();
        let answer = &mut described["responses"][status]["content"]["application/json"];
        let given: Map<String, Value> = example.body.into_iter().chain(example.answer).collect();
        answer["example"] = self.example(&answer["schema"], &given);
    }

    fn parameter(&mut self, input: &Input) -> Value {
        let schema = self.argument(input);
        let in_path = input.source == Source::Path;
        json!({
            "name": input.name,
            "in": if in_path { "path" } else { "query" },
            "required": is_required(input),
            "description": input.declared.description.clone().unwrap_or_default(),
            "schema": schema,
        })
    }

    fn responses(&mut self, route: &Route, operation: &Operation) -> Value {
        let mut responses = Map::new();
        responses.insert(
            route.status.as_u16().to_string(),
            json!({
                "description": "Success.",
                "headers": headers(route.status, operation),
                "content": { "application/json": { "schema": self.answer(operation) } },
            }),
        );
        if route.method == Method::GET && operation.etag_source.as_ref().is_some_and(EtagSource::is_exact) {
            let status = StatusCode::NOT_MODIFIED;
            let unchanged = json!({
                "description": "The record still matches an ETag in `If-None-Match`. No body.",
                "headers": headers(status, operation),
            });
            responses.insert(status.as_u16().to_string(), unchanged);
        }
        for (status, codes) in failures(route, operation) {
            let codes: Vec<&str> = codes.iter().map(|code| code.as_str()).collect();
            responses.insert(
                status.as_u16().to_string(),
                json!({
                    "description": format!("`{}`", codes.join("`, `")),
                    "headers": headers(status, operation),
                    "content": {
                        "application/problem+json": { "schema": { "$ref": "#/components/schemas/Problem" } },
                    },
                }),
            );
        }
        Value::Object(responses)
    }
}

/// The headers of an answer with this status.
fn headers(status: StatusCode, operation: &Operation) -> Value {
    let own: &[&str] = match status {
        StatusCode::UNAUTHORIZED => &["WWW-Authenticate"],
        StatusCode::SERVICE_UNAVAILABLE => &["Retry-After"],
        StatusCode::TOO_MANY_REQUESTS => &["Retry-After", "RateLimit", "RateLimit-Policy"],
        StatusCode::OK | StatusCode::CREATED | StatusCode::NOT_MODIFIED
            if operation.etag_source.is_some() =>
        {
            &["ETag"]
        }
        _ => &[],
    };
    let names = std::iter::once("X-Request-Id").chain(own.iter().copied());
    let headers =
        names.map(|name| (name.to_owned(), json!({ "$ref": format!("#/components/headers/{name}") })));
    Value::Object(headers.collect())
}

fn header_components() -> Value {
    let required =
        |ty: &str, about: &str| json!({ "description": about, "required": true, "schema": { "type": ty } });
    json!({
        "X-Request-Id": required("string", "The request id, as in the log."),
        "WWW-Authenticate": required("string", "`Bearer`."),
        "ETag": required("string", "A strong validator of the record, for `If-None-Match` and `If-Match`."),
        "RateLimit": required("string", "What remains in the caller's bucket (draft ratelimit-headers)."),
        "RateLimit-Policy": required("string", "The size and refill rate of the bucket."),
        "Retry-After": required("integer", "The number of seconds to wait before retrying."),
    })
}

/// The header that makes a request conditional on the record's state.
fn conditional_header(operation: &Operation) -> Option<Value> {
    let current = operation.etag_source.as_ref()?;
    let reads = operation.document.is_query(None);
    let (name, about) = match (reads, current.is_changed()) {
        (true, _) if current.is_exact() => {
            ("If-None-Match", "ETags the caller already has. If the record matches one, the answer is 304.")
        }
        (false, true) => (
            "If-Match",
            "ETags of the expected record. If none matches, nothing is changed and the answer is 412.",
        ),
        (true, _) | (false, false) => return None,
    };
    Some(header_parameter(name, about, &json!({ "type": "string" })))
}

fn idempotency_header() -> Value {
    let about =
        "Identifies the change. A repeated request with the same key returns the first answer, for 24 hours.";
    let visible = json!({ "type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[!-~]+$" });
    header_parameter("Idempotency-Key", about, &visible)
}

fn header_parameter(name: &str, about: &str, schema: &Value) -> Value {
    json!({ "name": name, "in": "header", "required": false, "description": about, "schema": schema })
}

/// A description of an operation and the permission it needs.
pub(crate) fn description(about: &str, permit: Permit) -> String {
    match permit {
        Permit::InOrganization { permission, confirmed_email } => {
            let confirmed = if confirmed_email { " and a confirmed e-mail address" } else { "" };
            format!("{about}\n\nRequires the permission `{permission}`{confirmed}.")
        }
        Permit::Anyone | Permit::SignedIn | Permit::Member => about.to_owned(),
    }
}

/// The errors an operation can answer with, by status.
fn failures(route: &Route, operation: &Operation) -> BTreeMap<StatusCode, Vec<Code>> {
    let mut codes = vec![
        Code::MalformedRequest,
        Code::Unauthenticated,
        Code::TokenExpired,
        Code::NotAMember,
        Code::SecondFactorRequired,
        Code::PermissionDenied,
        Code::ValidationFailed,
        Code::NotFound,
        // An unexpected body is refused, too.
        Code::PayloadTooLarge,
        Code::UnsupportedMediaType,
        Code::RateLimited,
        Code::Internal,
        Code::Unavailable,
    ];
    if let Permit::InOrganization { confirmed_email: true, .. } = operation.permit {
        codes.push(Code::EmailNotConfirmed);
    }
    if route.method != Method::GET {
        codes.push(Code::StorageFull);
        codes.extend(conflicts(&operation.name));
        // The database may refuse a change because of a concurrent one.
        codes.push(Code::Conflict);
        codes.extend([Code::IdempotencyInProgress, Code::IdempotencyInDoubt, Code::IdempotencyKeyReused]);
    }
    if operation.etag_source.as_ref().is_some_and(EtagSource::is_changed) {
        codes.push(Code::PreconditionFailed);
    }
    let mut by_status: BTreeMap<StatusCode, Vec<Code>> = BTreeMap::new();
    for code in codes {
        by_status.entry(code.status()).or_default().push(code);
    }
    by_status
}

/// The state and limit errors that an operation can run into. They follow from what the operation does, and
/// nothing declares them, so tests hold this list against the service in both directions: no operation may
/// answer with a code that isn't listed (`tests/it/harness/documented.rs`), and every listed code occurs
/// (`tests/it/api/conflicts.rs`).
fn conflicts(operation: &str) -> &'static [Code] {
    match operation {
        "CreateServer" | "CreateAgent" | "CreateSkill" => &[Code::PlanLimitReached, Code::NameTaken],
        "CreateChannel" => &[Code::PlanLimitReached],
        "EditChannel" => &[Code::PlanLimitReached, Code::Archived, Code::NotSupported],
        "StartAgent" => &[Code::AgentAlreadyRunning, Code::OrganizationStopped],
        "ResolveApproval" | "DismissApproval" => &[Code::ApprovalNotPending],
        "AnswerApproval" => &[Code::ApprovalNotPending, Code::ApprovalNotAQuestion],
        "CreateCredential" | "UnarchiveMcpServer" => &[Code::NameTaken],
        "EditCredential" | "EditSkill" | "EditMcpServer" => &[Code::NameTaken, Code::Archived],
        "SetCredentialAgents" | "SetMcpServerAgents" | "SetSkillAgents" => &[Code::Archived],
        "CreateMcpServer" | "EditServer" | "UnarchiveCredential" | "UnarchiveSkill" => &[Code::NameTaken],
        "DeleteServer" => &[Code::InUse],
        "EditAgent" => &[Code::AgentAlreadyRunning, Code::NameTaken],
        "DeleteAgent" => &[Code::AgentAlreadyRunning],
        "RestoreAgent" => &[Code::Archived, Code::NameTaken, Code::PlanLimitReached],
        "StopAgent" | "PauseAgent" => &[Code::AgentNotRunning],
        "ResumeAgent" => &[Code::AgentNotRunning, Code::OrganizationStopped],
        "RestartAgent" => &[Code::OrganizationStopped],
        "StartConversation" => &[Code::PlanLimitReached],
        "PostMessage" => &[Code::Archived, Code::PlanLimitReached],
        "EditConversation" | "TakeOverConversation" | "RetryTurn" => &[Code::Archived],
        "EditMember" | "RemoveMember" => &[Code::LastOwner],
        _ => &[],
    }
}

fn problem_schema() -> Value {
    let codes: Vec<&str> = Code::ALL.iter().map(|code| code.as_str()).collect();
    json!({
        "type": "object",
        "description": "An error (RFC 9457). `type` links to a page that explains it.",
        "properties": {
            "type": { "type": "string", "description": "`/problems/<code>`: a page that explains the error." },
            "title": { "type": "string", "description": "A short summary of the kind of error. Always the same for a code." },
            "status": { "type": "integer", "description": "The HTTP status." },
            "detail": { "type": "string", "description": "What went wrong this time." },
            "instance": { "type": "string", "description": "The path of the request." },
            "code": { "type": "string", "enum": codes, "description": "A stable code for programs." },
            "request_id": { "type": "string", "description": "The request id, as in the log." },
            "details": { "type": "object", "description": "Details for programs." },
            "errors": {
                "type": "array",
                "description": "Every invalid value, if the code is VALIDATION_FAILED.",
                "items": {
                    "type": "object",
                    "properties": {
                        "pointer": { "type": "string", "description": "A JSON pointer into the body." },
                        "parameter": { "type": "string", "description": "The name of a path or query parameter." },
                        "code": { "type": "string", "description": "The kind of error: REQUIRED, UNKNOWN_KEY, ….", },
                        "detail": { "type": "string", "description": "What is wrong with the value." },
                    },
                    "required": ["code", "detail"],
                },
            },
        },
        "required": ["type", "title", "status", "detail", "instance", "code", "request_id", "details"],
    })
}

pub(crate) fn lower_first(name: &str) -> String {
    let mut chars = name.chars();
    chars.next().map(|first| first.to_ascii_lowercase().to_string() + chars.as_str()).unwrap_or_default()
}
