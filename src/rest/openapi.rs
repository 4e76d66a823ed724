//! The OpenAPI 3.1 document of `/v1`, generated: paths from the table of routes, parameters and bodies from the
//! schema's arguments with their bounds, answers from what the stored documents select, errors from the codes.
//!
//! Nothing here is written twice, so nothing can drift: `schema/openapi.json` is this function's output, and a
//! test compares.

use std::collections::BTreeMap;

use async_graphql::{
    parser::types::{ExecutableDocument, Field, Selection, SelectionSet},
    registry::{MetaInputValue, MetaType, MetaTypeName, Registry},
};
use http::{Method, StatusCode};
use serde_json::{Map, Value, json};

use super::{Operation, Route, Routes, Source, operation::Input};
use crate::{
    error::Code,
    graphql::{Catalogue, Permit, bounds::Bounds, record::snake_case, values_of_scalar},
};

/// The document, as JSON with sorted keys.
#[must_use]
pub fn document(routes: &Routes, catalogue: &Catalogue) -> Value {
    let mut shapes = Shapes { registry: &catalogue.registry, schemas: BTreeMap::new() };
    shapes.schemas.insert("Problem".to_owned(), problem_schema());
    let mut paths: BTreeMap<&str, Map<String, Value>> = BTreeMap::new();
    for (route, operation) in routes.iter() {
        let method = route.method.as_str().to_ascii_lowercase();
        paths.entry(route.path).or_default().insert(method, shapes.operation(route, operation, catalogue));
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Muster",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Manages the AI agents of organizations. Errors are RFC 9457 problem documents.",
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
                    "description": "A service token (the credential of integrations), or the access token of a person's session.",
                },
            },
            "headers": header_components(),
            "schemas": shapes.schemas,
        },
    })
}

/// The document as it is served and committed.
#[must_use]
pub fn text(routes: &Routes, catalogue: &Catalogue) -> String {
    format!("{:#}\n", document(routes, catalogue))
}

/// The resource that a route is about: the last part of its path that is no parameter and no verb.
fn tag(route: &Route) -> &'static str {
    let mut parts = route.path.split('/').skip(4).filter(|part| !part.starts_with('{'));
    match parts.next() {
        None => "organization",
        Some("agent") if route.path.contains("/message") => "message",
        Some("agent") if route.path.contains("/conversation") => "conversation",
        Some(resource) => resource,
    }
}

fn tags(routes: &Routes) -> Vec<Value> {
    let mut names: Vec<_> = routes.iter().map(|(route, _)| tag(route)).collect();
    names.sort_unstable();
    names.dedup();
    names.into_iter().map(|name| json!({ "name": name })).collect()
}

/// Schemas under construction; types that occur more than once are components.
struct Shapes<'a> {
    registry: &'a Registry,
    schemas: BTreeMap<String, Value>,
}

impl Shapes<'_> {
    fn operation(&mut self, route: &Route, operation: &Operation, catalogue: &Catalogue) -> Value {
        let about = catalogue.root_field(&operation.root).and_then(|root| root.field.description.clone());
        let mut described = json!({
            "operationId": lower_first(&operation.name),
            "tags": [tag(route)],
            "summary": about.as_deref().unwrap_or_default().lines().next().unwrap_or_default(),
            "description": description(about.as_deref().unwrap_or_default(), operation.permit),
            "parameters": self.parameters(operation),
            "responses": self.responses(route, operation),
        });
        if let Some(body) = operation.body() {
            described["requestBody"] = json!({
                "required": true,
                "content": { "application/json": { "schema": self.input(&body.declared.ty, Bounds::default()) } },
            });
        }
        if let Permit::InOrganization { permission, .. } = operation.permit {
            described["x-permission"] = json!(permission.as_str());
        }
        described
    }

    fn parameters(&mut self, operation: &Operation) -> Vec<Value> {
        let inputs = operation.inputs.iter().filter(|input| input.source != Source::Body);
        inputs.map(|input| self.parameter(input)).collect()
    }

    fn parameter(&mut self, input: &Input) -> Value {
        let bounds = Bounds::read(&input.declared.directive_invocations);
        // What is absent is not sent; there is no null in a path or a query.
        let mut schema = self.input(input.declared.ty.trim_end_matches('!'), bounds.not_null());
        if let Some(default) = default_of(&input.declared) {
            schema["default"] = default;
        }
        let in_path = input.source == Source::Path;
        json!({
            "name": input.name,
            "in": if in_path { "path" } else { "query" },
            "required": in_path || (input.declared.ty.ends_with('!') && input.declared.default_value.is_none()),
            "description": input.declared.description.clone().unwrap_or_default(),
            "schema": schema,
        })
    }

    fn responses(&mut self, route: &Route, operation: &Operation) -> Value {
        let mut responses = Map::new();
        responses.insert(
            route.status.as_u16().to_string(),
            json!({
                "description": "Done.",
                "headers": headers(route.status),
                "content": { "application/json": { "schema": self.answer(operation) } },
            }),
        );
        for (status, codes) in failures(route, operation) {
            let codes: Vec<&str> = codes.iter().map(|code| code.as_str()).collect();
            responses.insert(
                status.as_u16().to_string(),
                json!({
                    "description": format!("`{}`", codes.join("`, `")),
                    "headers": headers(status),
                    "content": {
                        "application/problem+json": { "schema": { "$ref": "#/components/schemas/Problem" } },
                    },
                }),
            );
        }
        Value::Object(responses)
    }

    /// What the operation's document selects from its root field.
    fn answer(&mut self, operation: &Operation) -> Value {
        let document = operation.document.executable();
        let Some((_, definition)) = document.operations.iter().next() else { return json!({}) };
        let Some(root) = fields(&definition.node.selection_set.node, document).into_iter().next() else {
            return json!({});
        };
        let ty =
            self.field_type("Query", root).or_else(|| self.field_type("Mutation", root)).unwrap_or_default();
        // A root field may be null only beside an error, and then REST answers with a problem.
        self.output(ty.trim_end_matches('!'), &root.selection_set.node, document, false)
    }

    fn field_type(&self, owner: &str, field: &Field) -> Option<String> {
        Some(self.registry.types.get(owner)?.field_by_name(field.name.node.as_str())?.ty.clone())
    }

    fn output(
        &mut self,
        ty: &str,
        set: &SelectionSet,
        document: &ExecutableDocument,
        nullable: bool,
    ) -> Value {
        match MetaTypeName::create(ty) {
            MetaTypeName::NonNull(inner) => self.output(inner, set, document, false),
            MetaTypeName::List(inner) => {
                let items = self.output(inner.trim_end_matches('!'), set, document, !inner.ends_with('!'));
                or_null(json!({ "type": "array", "items": items }), nullable)
            }
            MetaTypeName::Named(name) if set.items.is_empty() => or_null(self.leaf(name), nullable),
            MetaTypeName::Named(name) => or_null(self.object(name, set, document), nullable),
        }
    }

    fn object(&mut self, name: &str, set: &SelectionSet, document: &ExecutableDocument) -> Value {
        let mut properties = Map::new();
        for field in fields(set, document) {
            let key = field.response_key().node.to_string();
            let Some(MetaType::Object { fields, .. }) = self.registry.types.get(name) else { continue };
            let Some(declared) = fields.get(field.name.node.as_str()) else { continue };
            let (ty, about) = (declared.ty.clone(), declared.description.clone());
            let mut schema = self.output(
                ty.trim_end_matches('!'),
                &field.selection_set.node,
                document,
                !ty.ends_with('!'),
            );
            if let (Some(about), Some(schema)) = (about, schema.as_object_mut()) {
                schema.insert("description".to_owned(), json!(about));
            }
            properties.insert(key, schema);
        }
        let required: Vec<_> = properties.keys().cloned().collect();
        let mut schema = json!({ "type": "object", "properties": properties, "required": required });
        if let Some(MetaType::Object { description: Some(about), .. }) = self.registry.types.get(name) {
            schema["description"] = json!(about);
        }
        self.component(name, schema)
    }

    /// A reference to the component of that name; another selection of the same type gets a number.
    fn component(&mut self, name: &str, schema: Value) -> Value {
        let names = std::iter::once(name.to_owned()).chain((2..).map(|n| format!("{name}{n}")));
        for name in names {
            let known = self.schemas.entry(name.clone()).or_insert_with(|| schema.clone());
            if *known == schema {
                return json!({ "$ref": format!("#/components/schemas/{name}") });
            }
        }
        schema
    }

    fn input(&mut self, ty: &str, bounds: Bounds) -> Value {
        let nullable = !ty.ends_with('!') && !bounds.not_null;
        match MetaTypeName::create(ty.trim_end_matches('!')) {
            MetaTypeName::List(inner) => {
                let items = self.input(inner, Bounds { max_items: None, ..bounds }.not_null());
                let mut schema = json!({ "type": "array", "items": items });
                set(&mut schema, "maxItems", bounds.max_items);
                or_null(schema, nullable)
            }
            MetaTypeName::Named(name) | MetaTypeName::NonNull(name) => {
                let schema = match self.registry.types.get(name) {
                    Some(MetaType::InputObject { .. }) => self.input_object(name),
                    _ => bounded(self.leaf(name), bounds),
                };
                or_null(schema, nullable)
            }
        }
    }

    fn input_object(&mut self, name: &str) -> Value {
        let registry = self.registry;
        let Some(MetaType::InputObject { input_fields, description, .. }) = registry.types.get(name) else {
            return json!({});
        };
        let mut properties = Map::new();
        let mut required = Vec::new();
        for (field, declared) in input_fields {
            let mut schema = self.input(&declared.ty, Bounds::read(&declared.directive_invocations));
            if let (Some(about), Some(schema)) = (&declared.description, schema.as_object_mut()) {
                schema.insert("description".to_owned(), json!(about));
            }
            if let Some(default) = default_of(declared) {
                schema["default"] = default;
            }
            if declared.ty.ends_with('!') && declared.default_value.is_none() {
                required.push(snake_case(field));
            }
            properties.insert(snake_case(field), schema);
        }
        let mut schema = json!({ "type": "object", "properties": properties, "additionalProperties": false });
        if !required.is_empty() {
            schema["required"] = json!(required);
        }
        if let Some(about) = description {
            schema["description"] = json!(about);
        }
        self.component(name, schema)
    }

    /// A scalar or an enumeration.
    fn leaf(&self, name: &str) -> Value {
        if let Some(MetaType::Enum { enum_values, .. }) = self.registry.types.get(name) {
            return json!({ "type": "string", "enum": enum_values.keys().collect::<Vec<_>>() });
        }
        let closed = values_of_scalar(name);
        if !closed.is_empty() {
            return json!({ "type": "string", "enum": closed });
        }
        match name {
            "Id" => json!({ "type": "integer", "minimum": 1, "maximum": crate::ids::MAX_ID }),
            "Int" => json!({ "type": "integer" }),
            "Float" => json!({ "type": "number" }),
            "Boolean" => json!({ "type": "boolean" }),
            "Timestamp" => json!({ "type": "string", "format": "date-time" }),
            "Decimal" => json!({ "type": "string", "pattern": "^-?[0-9]+$" }),
            "SecretString" => json!({ "type": "string", "writeOnly": true }),
            "Labels" => json!({
                "type": "object",
                "maxProperties": 50,
                "additionalProperties": { "type": "string", "maxLength": 255 },
            }),
            "String" => json!({ "type": "string" }),
            // Free JSON.
            _ => json!({}),
        }
    }
}

/// What an answer of this status says beside its body.
fn headers(status: StatusCode) -> Value {
    let own = match status {
        StatusCode::UNAUTHORIZED => Some("WWW-Authenticate"),
        StatusCode::SERVICE_UNAVAILABLE => Some("Retry-After"),
        _ => None,
    };
    let names = std::iter::once("X-Request-Id").chain(own);
    let headers =
        names.map(|name| (name.to_owned(), json!({ "$ref": format!("#/components/headers/{name}") })));
    Value::Object(headers.collect())
}

fn header_components() -> Value {
    let required =
        |ty: &str, about: &str| json!({ "description": about, "required": true, "schema": { "type": ty } });
    json!({
        "X-Request-Id": required("string", "The request's id, which is also in the log."),
        "WWW-Authenticate": required("string", "`Bearer`."),
        "Retry-After": required("integer", "The seconds to wait before another try."),
    })
}

/// The selected fields, fragments opened.
fn fields<'a>(set: &'a SelectionSet, document: &'a ExecutableDocument) -> Vec<&'a Field> {
    let mut found = Vec::new();
    for selection in &set.items {
        match &selection.node {
            Selection::Field(field) => found.push(&field.node),
            Selection::InlineFragment(fragment) => {
                found.extend(fields(&fragment.node.selection_set.node, document));
            }
            Selection::FragmentSpread(spread) => {
                if let Some(fragment) = document.fragments.get(&spread.node.fragment_name.node) {
                    found.extend(fields(&fragment.node.selection_set.node, document));
                }
            }
        }
    }
    found
}

fn bounded(mut schema: Value, bounds: Bounds) -> Value {
    set(&mut schema, "minimum", bounds.min);
    set(&mut schema, "maximum", bounds.max);
    set(&mut schema, "minLength", bounds.min_length);
    set(&mut schema, "maxLength", bounds.max_length);
    if schema.get("type") == Some(&json!("integer")) && schema.get("maximum").is_none() {
        schema["maximum"] = json!(i32::MAX);
    }
    if schema.get("type") == Some(&json!("string"))
        && schema.get("enum").is_none()
        && schema.get("format").is_none()
    {
        // No text holds U+0000, and a name is not blank.
        let pattern = match bounds {
            Bounds { digits: true, .. } => "^[0-9]+$",
            Bounds { not_blank: true, .. } => r"^[^\u0000]*[^\s\u0000][^\u0000]*$",
            _ => r"^[^\u0000]*$",
        };
        schema["pattern"] = json!(pattern);
    }
    schema
}

fn set(schema: &mut Value, key: &str, value: Option<i64>) {
    if let Some(value) = value {
        schema[key] = json!(value);
    }
}

fn or_null(schema: Value, nullable: bool) -> Value {
    if !nullable {
        return schema;
    }
    match schema.get("type").cloned() {
        Some(Value::String(ty)) => {
            let mut schema = schema;
            schema["type"] = json!([ty, "null"]);
            if let Some(Value::Array(values)) = schema.get_mut("enum") {
                values.push(Value::Null);
            }
            schema
        }
        _ if schema == json!({}) => schema,
        _ => json!({ "anyOf": [schema, { "type": "null" }] }),
    }
}

fn default_of(declared: &MetaInputValue) -> Option<Value> {
    let text = declared.default_value.as_ref()?;
    // Enumerations print as bare names.
    Some(serde_json::from_str(text).unwrap_or_else(|_| json!(text)))
}

fn description(about: &str, permit: Permit) -> String {
    match permit {
        Permit::InOrganization { permission, confirmed_email } => {
            let confirmed = if confirmed_email { " and a confirmed e-mail address" } else { "" };
            format!("{about}\n\nNeeds the permission `{permission}`{confirmed}.")
        }
        Permit::Anyone | Permit::SignedIn => about.to_owned(),
    }
}

/// Which failures an operation has to be ready for, by status.
fn failures(route: &Route, operation: &Operation) -> BTreeMap<StatusCode, Vec<Code>> {
    let mut codes = vec![
        Code::MalformedRequest,
        Code::Unauthenticated,
        Code::TokenExpired,
        Code::NotAMember,
        Code::PermissionDenied,
        Code::ValidationFailed,
        Code::NotFound,
        Code::Internal,
        Code::Unavailable,
    ];
    if let Permit::InOrganization { confirmed_email: true, .. } = operation.permit {
        codes.push(Code::EmailNotConfirmed);
    }
    if route.method != Method::GET {
        codes.extend([Code::PayloadTooLarge, Code::UnsupportedMediaType]);
        codes.extend(conflicts(&operation.name));
    }
    let mut by_status: BTreeMap<StatusCode, Vec<Code>> = BTreeMap::new();
    for code in codes {
        by_status.entry(code.status()).or_default().push(code);
    }
    by_status
}

/// The states and limits that an operation may run into.
fn conflicts(operation: &str) -> Vec<Code> {
    let named = [Code::NameTaken, Code::Conflict];
    let own: &[Code] = match operation {
        "CreateServer" | "CreateAgent" | "CreateChannel" => &[Code::PlanLimitReached, Code::NameTaken],
        "StartAgent" => &[Code::AgentAlreadyRunning],
        "ResolveApproval" | "DismissApproval" => &[Code::ApprovalNotPending],
        "AnswerApproval" => &[Code::ApprovalNotPending, Code::ApprovalNotAQuestion],
        "EditCredential" | "EditSkill" => &[Code::NameTaken, Code::Archived],
        "SetCredentialAgents" => &[Code::Archived],
        _ => &named,
    };
    let mut codes = own.to_vec();
    if !codes.contains(&Code::Conflict) {
        codes.push(Code::Conflict);
    }
    codes
}

fn problem_schema() -> Value {
    let codes: Vec<&str> = Code::ALL.iter().map(|code| code.as_str()).collect();
    json!({
        "type": "object",
        "description": "An error (RFC 9457). `type` leads to a page that explains it.",
        "properties": {
            "type": { "type": "string", "description": "`/problems/<code>`: a page that explains it." },
            "title": { "type": "string", "description": "What went wrong, in a few words that never change." },
            "status": { "type": "integer", "description": "The HTTP status." },
            "detail": { "type": "string", "description": "What happened this time." },
            "instance": { "type": "string", "description": "The path of the request." },
            "code": { "type": "string", "enum": codes, "description": "The stable code, for programs." },
            "request_id": { "type": "string", "description": "Also in the log." },
            "details": { "type": "object", "description": "Facts for programs." },
            "errors": {
                "type": "array",
                "description": "Every wrong value, where the code is VALIDATION_FAILED.",
                "items": {
                    "type": "object",
                    "properties": {
                        "pointer": { "type": "string", "description": "A JSON pointer into the body." },
                        "parameter": { "type": "string", "description": "A parameter of the path or the query." },
                        "code": { "type": "string", "description": "The kind of mistake: REQUIRED, UNKNOWN_KEY, ….", },
                        "detail": { "type": "string", "description": "What is wrong." },
                    },
                    "required": ["code", "detail"],
                },
            },
        },
        "required": ["type", "title", "status", "detail", "instance", "code", "request_id", "details"],
    })
}

fn lower_first(name: &str) -> String {
    let mut chars = name.chars();
    chars.next().map(|first| first.to_ascii_lowercase().to_string() + chars.as_str()).unwrap_or_default()
}
