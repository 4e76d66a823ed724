//! JSON schemas for the input and output of operations, derived from the schema's types with their bounds and
//! from what the stored documents select. Both descriptions of the operations use them: `openapi.rs` and the
//! tools of `/mcp`.

use std::collections::BTreeMap;

use async_graphql::{
    parser::types::{ExecutableDocument, Field, Selection, SelectionSet},
    registry::{MetaInputValue, MetaType, MetaTypeName, Registry},
};
use serde_json::{Map, Value, json};

use super::{Operation, Source, operation::Input};
use crate::{
    base::spelling::snake_case,
    resolvers::{
        bounds::{Bounds, LONGEST_LABEL, MAX_LABELS},
        values_of_scalar,
    },
};

/// A single line that isn't blank, as in [`Bounds::line`]: without any character that
/// [`is_line`](crate::base::plain::is_line) refuses.
const LINE: &str = r"^[^\u0000-\u001f\u007f-\u009f\u2028-\u202e\u2066-\u2069]*[^\s\u0000-\u001f\u007f-\u009f\u2028-\u202e\u2066-\u2069][^\u0000-\u001f\u007f-\u009f\u2028-\u202e\u2066-\u2069]*$";
/// A folder name, as in [`Bounds::folder`]: such a line without slashes that doesn't start with a dot, even
/// after white space.
const FOLDER: &str = r"^[^\S\u0000-\u001f\u007f-\u009f\u2028-\u202e\u2066-\u2069]*[^\s./\\\u0000-\u001f\u007f-\u009f\u2028-\u202e\u2066-\u2069][^/\\\u0000-\u001f\u007f-\u009f\u2028-\u202e\u2066-\u2069]*$";
/// Any text: PostgreSQL stores no NUL.
const TEXT: &str = r"^[^\u0000]*$";

/// Schemas under construction. Types that occur more than once become components.
pub struct Shapes<'a> {
    registry: &'a Registry,
    /// The prefix of references to components.
    place: &'static str,
    /// The components so far.
    pub schemas: BTreeMap<String, Value>,
}

impl<'a> Shapes<'a> {
    /// No schemas yet. References to components start with `place`.
    pub fn new(registry: &'a Registry, place: &'static str) -> Self {
        Self { registry, place, schemas: BTreeMap::new() }
    }

    /// A path or query parameter. Absent ones are left out, because neither has null.
    pub fn argument(&mut self, input: &Input) -> Value {
        let bounds = Bounds::read(&input.declared.directive_invocations);
        let mut schema = self.input(input.declared.ty.trim_end_matches('!'), bounds.not_null());
        if let Some(default) = default_of(&input.declared) {
            schema["default"] = default;
        }
        schema
    }

    pub fn body(&mut self, input: &Input) -> Value {
        self.input(&input.declared.ty, Bounds::default())
    }

    /// The component a schema refers to, if any.
    pub fn referred(&self, schema: &Value) -> Option<String> {
        Some(schema.get("$ref")?.as_str()?.strip_prefix(self.place)?.to_owned())
    }

    /// An example that fits `schema`: the keys in `given`, and the plainest value for everything else, which is null
    /// where that is possible.
    pub fn example(&self, schema: &Value, given: &Map<String, Value>) -> Value {
        if let Some(name) = self.referred(schema) {
            return self.schemas.get(&name).map_or(Value::Null, |component| self.example(component, given));
        }
        let none = Map::new();
        match schema.get("type").and_then(Value::as_str) {
            Some("object") => {
                let properties = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
                let filled = properties.map(|(key, schema)| {
                    // The list of a page has what is given.
                    let inner = if key == "data" { given } else { &none };
                    (key.clone(), given.get(key).cloned().unwrap_or_else(|| self.example(schema, inner)))
                });
                Value::Object(filled.collect())
            }
            Some("array") => {
                json!([self.example(schema.get("items").unwrap_or(&Value::Null), given)])
            }
            Some("integer") => schema.get("minimum").cloned().unwrap_or(json!(1)),
            Some("number") => json!(1),
            Some("boolean") => json!(false),
            Some("string") => {
                let first = schema.get("enum").and_then(|values| values.get(0)).cloned();
                first.unwrap_or_else(|| json!(text_example(schema)))
            }
            _ => Value::Null,
        }
    }

    /// What the operation's document selects from its root field.
    pub fn answer(&mut self, operation: &Operation) -> Value {
        let document = operation.document.executable();
        let Some((_, definition)) = document.operations.iter().next() else { return json!({}) };
        let Some(root) = fields(&definition.node.selection_set.node, document).into_iter().next() else {
            return json!({});
        };
        let ty =
            self.field_type("Query", root).or_else(|| self.field_type("Mutation", root)).unwrap_or_default();
        // A root field is only null next to an error, and REST then answers with a problem.
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

    /// A reference to the component with this name. A different selection of the same type gets a number.
    fn component(&mut self, name: &str, schema: Value) -> Value {
        let names = std::iter::once(name.to_owned()).chain((2..).map(|n| format!("{name}{n}")));
        for name in names {
            let known = self.schemas.entry(name.clone()).or_insert_with(|| schema.clone());
            if *known == schema {
                return json!({ "$ref": format!("{}{name}", self.place) });
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

    /// A scalar or enum.
    fn leaf(&self, name: &str) -> Value {
        if let Some(MetaType::Enum { enum_values, .. }) = self.registry.types.get(name) {
            return json!({ "type": "string", "enum": enum_values.keys().collect::<Vec<_>>() });
        }
        let closed = values_of_scalar(name);
        if !closed.is_empty() {
            return json!({ "type": "string", "enum": closed });
        }
        match name {
            "Id" => json!({ "type": "integer", "minimum": 1, "maximum": crate::base::ids::MAX_ID }),
            "Int" => json!({ "type": "integer" }),
            "Float" => json!({ "type": "number" }),
            "Boolean" => json!({ "type": "boolean" }),
            "Timestamp" => json!({ "type": "string", "format": "date-time" }),
            "Decimal" => json!({ "type": "string", "pattern": "^-?[0-9]+$" }),
            "SecretString" => json!({ "type": "string", "writeOnly": true }),
            "Labels" => json!({
                "type": "object",
                "maxProperties": MAX_LABELS,
                "propertyNames": { "maxLength": LONGEST_LABEL, "pattern": TEXT },
                "additionalProperties": { "type": "string", "maxLength": LONGEST_LABEL, "pattern": TEXT },
            }),
            "String" => json!({ "type": "string" }),
            // Any JSON.
            _ => json!({}),
        }
    }
}

/// Whether a path or query parameter is required.
pub fn is_required(input: &Input) -> bool {
    input.source == Source::Path
        || (input.declared.ty.ends_with('!') && input.declared.default_value.is_none())
}

/// The selected fields, with fragments expanded.
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
        // No text contains U+0000, and a name is not blank.
        let pattern = match bounds {
            Bounds { digits: true, .. } => "^[0-9]+$",
            Bounds { folder: true, .. } => FOLDER,
            Bounds { line: true, .. } => LINE,
            Bounds { not_blank: true, .. } => r"^[^\u0000]*[^\s\u0000][^\u0000]*$",
            _ => TEXT,
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

/// A text that fits the schema of a scalar.
fn text_example(schema: &Value) -> &'static str {
    let is_number = schema.get("pattern").and_then(Value::as_str).is_some_and(|text| text.contains("[0-9]"));
    match schema.get("format") {
        Some(_) => "2026-06-01T08:00:00.000Z",
        None if is_number => "1500",
        None => "text",
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
    // Enum values print as bare names.
    Some(muster_json::from_str(text).unwrap_or_else(|_| json!(text)))
}
