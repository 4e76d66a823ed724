//! Tools, derived from the table of routes.

use std::sync::Arc;

use http::{Method, StatusCode};
use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use serde_json::{Value, json};

use crate::{
    graphql::{Catalogue, record::snake_case},
    rest::{
        Operation, Route, Routes, Shapes, Source, is_required,
        openapi::{description, lower_first},
    },
};

/// Where a schema of a tool keeps its components.
const PLACE: &str = "#/$defs/";

/// A tool and the operation that it runs.
pub struct Offer {
    /// What clients are told.
    pub tool: Tool,
    /// What a call runs.
    pub operation: Arc<Operation>,
    /// Whether the answer is a list, which the tool puts into an object: the protocol knows no other answers.
    pub is_list: bool,
}

/// A tool for every route, in the order of the table.
#[must_use]
pub fn offers(routes: &Routes, catalogue: &Catalogue) -> Vec<Offer> {
    routes.iter().map(|(route, operation)| offer(route, operation, catalogue)).collect()
}

fn offer(route: &Route, operation: &Arc<Operation>, catalogue: &Catalogue) -> Offer {
    let name = snake_case(&lower_first(&operation.name));
    let about = catalogue.root_field(&operation.root).and_then(|root| root.field.description.clone());
    let about = description(about.as_deref().unwrap_or_default(), operation.permit);
    let (output, is_list) = output(operation, catalogue);
    let tool = Tool::new(name, about, Arc::new(input(operation, catalogue)))
        .with_title(title(&operation.name))
        .with_annotations(annotations(route))
        .with_raw_output_schema(Arc::new(output));
    Offer { tool, operation: Arc::clone(operation), is_list }
}

/// `ListServers` as a person would say it.
fn title(name: &str) -> String {
    snake_case(&lower_first(name)).replace('_', " ")
}

/// What the method says. Hints only: what a caller may do is decided when they do it.
fn annotations(route: &Route) -> ToolAnnotations {
    let reads = route.method == Method::GET;
    // Making something new takes nothing away; a POST to what is there already may.
    let adds = route.status == StatusCode::CREATED && !route.path.contains("{id}");
    let repeatable = route.method != Method::POST;
    ToolAnnotations::new()
        .read_only(reads)
        .destructive(!reads && !adds)
        .idempotent(repeatable)
        .open_world(false)
}

/// One object with the parts of the path, the query parameters and the keys of the body.
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
        let schema = opened(&mut shapes, schema);
        required.extend(schema.get("required").and_then(Value::as_array).into_iter().flatten().cloned());
        if let Some(Value::Object(keys)) = schema.get("properties") {
            properties.extend(keys.clone());
        }
    }
    let object = json!({
        "type": "object", "properties": properties, "required": required, "additionalProperties": false,
    });
    with_components(object, &shapes)
}

/// The answer; a list is put into an object.
fn output(operation: &Operation, catalogue: &Catalogue) -> (JsonObject, bool) {
    let mut shapes = Shapes::new(&catalogue.registry, PLACE);
    let answer = shapes.answer(operation);
    let schema = opened(&mut shapes, answer);
    let is_list = schema.get("type") != Some(&json!("object"));
    let schema = if is_list {
        json!({ "type": "object", "properties": { "data": schema }, "required": ["data"] })
    } else {
        schema
    };
    (with_components(schema, &shapes), is_list)
}

/// The component itself, where `schema` only refers to one.
fn opened(shapes: &mut Shapes<'_>, schema: Value) -> Value {
    match shapes.referred(&schema) {
        Some(name) => shapes.schemas.remove(&name).unwrap_or(schema),
        None => schema,
    }
}

fn with_components(schema: Value, shapes: &Shapes<'_>) -> JsonObject {
    let Value::Object(mut schema) = schema else { return JsonObject::new() };
    if !shapes.schemas.is_empty() {
        schema.insert("$defs".to_owned(), json!(shapes.schemas));
    }
    schema
}
