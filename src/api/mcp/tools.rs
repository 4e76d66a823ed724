//! Tools, derived from the route table.
//!
//! Each tool is self-contained: a client can read a single tool and check answers against its schema. Most operations
//! return one of a few records, so those schemas are repeated in many tools (`docs/decisions/0023`).

use std::{collections::BTreeMap, sync::Arc};

use http::{Method, StatusCode};
use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use serde_json::{Value, json};

use crate::{
    api::rest::{
        Operation, Route, Routes, Shapes, Source, is_required,
        openapi::{description, lower_first},
    },
    base::{ids::MAX_ID, spelling::snake_case},
    resolvers::Catalogue,
};

/// The path to components in a tool's schema.
const PLACE: &str = "#/$defs/";

/// Patterns that all texts have, and the part worth telling a client. The service checks the rest.
const TEXTS: [(&str, Option<&str>); 2] =
    [(r"^[^\u0000]*$", None), (r"^[^\u0000]*[^\s\u0000][^\u0000]*$", Some(r"\S"))];

/// A tool and the operation it runs.
pub struct ToolRoute {
    pub tool: Tool,
    pub operation: Arc<Operation>,
    /// Whether the answer is a list. The tool wraps it in an object, because the protocol allows no other
    /// answers.
    pub is_list: bool,
}

impl ToolRoute {
    /// Whether a call never changes anything.
    #[must_use]
    pub fn only_reads(&self) -> bool {
        self.operation.document.is_query(None)
    }
}

/// All tools, in the order of the route table.
pub struct ToolRoutes {
    all: Vec<ToolRoute>,
}

#[must_use]
pub fn tool_routes(routes: &Routes, catalogue: &Catalogue) -> ToolRoutes {
    let tools = routes.iter().filter(|(route, _)| route.is_tool);
    ToolRoutes { all: tools.map(|(route, operation)| tool_route(route, operation, catalogue)).collect() }
}

fn tool_route(route: &Route, operation: &Arc<Operation>, catalogue: &Catalogue) -> ToolRoute {
    let name = snake_case(&lower_first(&operation.name));
    let about = catalogue.root_field(&operation.root).and_then(|root| root.field.description.clone());
    let about = description(about.as_deref().unwrap_or_default(), operation.permit);
    let (output, is_list) = output(operation, catalogue);
    let tool = Tool::new(name, about, Arc::new(input(operation, catalogue)))
        .with_raw_output_schema(Arc::new(output))
        .with_title(title(&operation.name))
        .with_annotations(annotations(route));
    ToolRoute { tool, operation: Arc::clone(operation), is_list }
}

impl ToolRoutes {
    #[must_use]
    pub fn all(&self) -> &[ToolRoute] {
        &self.all
    }

    #[must_use]
    pub fn find(&self, name: &str) -> Option<&ToolRoute> {
        self.all.iter().find(|tool_route| tool_route.tool.name == name)
    }
}

/// Removes from a schema the limits that help no client: that an id is below 2^53, and that a text has no U+0000.
fn slim(schema: &mut Value) {
    match schema {
        Value::Object(keys) => {
            if keys.get("maximum") == Some(&json!(MAX_ID)) {
                keys.remove("maximum");
            }
            for (pattern, instead) in TEXTS {
                if keys.get("pattern") == Some(&json!(pattern)) {
                    keys.remove("pattern");
                    keys.extend(instead.map(|instead| ("pattern".to_owned(), json!(instead))));
                }
            }
            keys.values_mut().for_each(slim);
        }
        Value::Array(items) => items.iter_mut().for_each(slim),
        _ => {}
    }
}

/// The operation's name in words: `ListServers` becomes "List servers".
fn title(name: &str) -> String {
    snake_case(&lower_first(name)).replace('_', " ")
}

/// Hints derived from the method. They don't decide anything: permissions are checked on each call.
fn annotations(route: &Route) -> ToolAnnotations {
    let reads = route.method == Method::GET;
    // Creating something removes nothing; a POST to something that exists might.
    let adds = route.status == StatusCode::CREATED && !route.path.contains("{id}");
    let repeatable = route.method != Method::POST;
    ToolAnnotations::new()
        .read_only(reads)
        .destructive(!reads && !adds)
        .idempotent(repeatable)
        .open_world(false)
}

/// One object with the path parameters, the query parameters, and the keys of the body.
fn input(operation: &Operation, catalogue: &Catalogue) -> JsonObject {
    let mut shapes = Shapes::new(&catalogue.registry, PLACE);
    let (mut properties, mut required) = (JsonObject::new(), Vec::new());
    for input in operation.inputs.iter().filter(|input| input.source != Source::Body) {
        let mut schema = shapes.argument(input);
        if let (Some(about), Some(schema)) = (&input.declared.description, schema.as_object_mut()) {
            schema.insert("description".to_owned(), json!(about));
        }
        if is_required(input) {
            required.push(json!(input.name));
        }
        properties.insert(input.name.clone(), schema);
    }
    if let Some(body) = operation.body() {
        let schema = shapes.body(body);
        let opened = shapes.referred(&schema).and_then(|name| shapes.schemas.remove(&name));
        let schema = opened.unwrap_or(schema);
        required.extend(schema.get("required").and_then(Value::as_array).into_iter().flatten().cloned());
        if let Some(Value::Object(keys)) = schema.get("properties") {
            properties.extend(keys.clone());
        }
    }
    let object = json!({
        "type": "object", "properties": properties, "required": required, "additionalProperties": false,
    });
    with_components(object, shapes.schemas)
}

/// What the operation returns, always an object, and whether that object wraps a list.
fn output(operation: &Operation, catalogue: &Catalogue) -> (JsonObject, bool) {
    let mut shapes = Shapes::new(&catalogue.registry, PLACE);
    let answer = shapes.answer(operation);
    let is_list = answer.get("type") == Some(&json!("array"));
    let answer = match shapes.referred(&answer).and_then(|name| shapes.schemas.remove(&name)) {
        Some(record) => record,
        None if is_list => {
            json!({ "type": "object", "properties": { "data": answer }, "required": ["data"] })
        }
        None => answer,
    };
    (with_components(answer, shapes.schemas), is_list)
}

/// A schema with the components it refers to, all slimmed down.
fn with_components(mut schema: Value, mut components: BTreeMap<String, Value>) -> JsonObject {
    slim(&mut schema);
    components.values_mut().for_each(slim);
    let Value::Object(mut schema) = schema else { return JsonObject::new() };
    if !components.is_empty() {
        schema.insert("$defs".to_owned(), Value::Object(components.into_iter().collect()));
    }
    schema
}
