//! A stored document as a REST operation: where each variable comes from, and how a request sets it.

use std::{collections::HashSet, sync::Arc};

use anyhow::{Context, anyhow, bail};
use async_graphql::{
    Name, Positioned, Value, Variables,
    indexmap::IndexMap,
    parser::types::{DocumentOperations, ExecutableDocument, Field, Selection, SelectionSet},
    registry::MetaInputValue,
};
use bytes::Bytes;

use super::etag::EtagSource;
use crate::{
    api::{
        graphql::{Document, without_secrets},
        middleware::id_in_path,
    },
    base::{
        problem::{At, Code, Problem, Result, Violation},
        spelling::snake_case,
    },
    core::access::Permit,
    resolvers::{
        Catalogue,
        bounds::{bounds, digits},
        validate::{Spelling, Validator, meant},
    },
};

/// Where a variable's value comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    Path,
    Query,
    Body,
}

pub struct Input {
    /// Its name in the document.
    pub variable: Name,
    /// Its name in REST. For the body, the variable's name.
    pub name: String,
    pub source: Source,
    /// The argument it is passed to: type, bounds, description. For a [`DECIMALS`] parameter, a text of digits.
    pub declared: MetaInputValue,
}

/// Parameters that the specification has as decimal integers of any length. In the schema they are numbers.
const DECIMALS: [&str; 2] = ["before_seq", "after_seq"];

impl Input {
    /// A checked value as the document's variable takes it.
    fn passed(&self, value: Value) -> Value {
        match value {
            Value::String(text) if DECIMALS.contains(&self.name.as_str()) => {
                text.parse().unwrap_or(i64::MAX).into()
            }
            value => value,
        }
    }
}

pub struct Operation {
    /// Its name, used as the OpenAPI operation id.
    pub name: String,
    /// The document, with every field aliased to its snake_case name.
    pub document: Arc<Document>,
    /// The root field that produces the answer.
    pub root: String,
    /// What that field requires of its caller.
    pub permit: Permit,
    pub inputs: Vec<Input>,
    /// How to compute the answer's ETag, if it has one.
    pub etag_source: Option<EtagSource>,
}

/// The raw parts of a request.
pub struct Given<'a> {
    /// The path parameters, percent-decoded.
    pub path: Vec<(&'a str, &'a str)>,
    pub query: &'a str,
    pub body: &'a [u8],
}

impl Operation {
    /// Parses the operations of one document file.
    pub(super) fn parse(text: &str, catalogue: &Catalogue) -> anyhow::Result<Vec<Self>> {
        let parsed = async_graphql::parser::parse_query(text).context("parsing")?;
        let names: Vec<Name> = parsed.operations.iter().filter_map(|(name, _)| name.cloned()).collect();
        names
            .into_iter()
            .map(|name| {
                let single = single(&parsed, &name).ok_or_else(|| anyhow!("no operation {name}"))?;
                Self::new(&name, single, catalogue).with_context(|| name.to_string())
            })
            .collect()
    }

    fn new(name: &Name, document: ExecutableDocument, catalogue: &Catalogue) -> anyhow::Result<Self> {
        let (_, operation) = document.operations.iter().next().ok_or_else(|| anyhow!("no operation"))?;
        let [Positioned { node: Selection::Field(root), .. }] = &operation.node.selection_set.node.items[..]
        else {
            bail!("an operation of /v1 has exactly one root field");
        };
        let root = root.node.clone();
        let found = catalogue
            .root_field(root.name.node.as_str())
            .ok_or_else(|| anyhow!("no root field {}", root.name.node))?;
        let inputs = operation
            .node
            .variable_definitions
            .iter()
            .map(|definition| input(&definition.node.name.node, &root, &found.field.args))
            .collect::<anyhow::Result<_>>()?;
        Ok(Self {
            name: name.to_string(),
            root: root.name.node.to_string(),
            permit: found.permit,
            document: Arc::new(Document::new(document)),
            inputs,
            etag_source: None,
        })
    }

    /// Adds the ETag source, if the operation answers with a record that has an ETag.
    pub(super) fn with_etag_source(mut self, catalogue: &Catalogue) -> Self {
        self.etag_source = EtagSource::for_operation(&self, catalogue);
        self
    }

    /// Whether the document selects a field with this name, at any depth.
    pub(super) fn selects(&self, name: &str) -> bool {
        let document = self.document.executable();
        let fragments = document.fragments.values().map(|fragment| &fragment.node.selection_set.node);
        let roots = document.operations.iter().map(|(_, definition)| &definition.node.selection_set.node);
        roots.chain(fragments).any(|set| selects(set, name))
    }

    /// The answer to store under an idempotency key, without secrets.
    pub(super) fn without_secrets(&self, json: &Bytes, catalogue: &Catalogue) -> Option<Bytes> {
        let mut data = serde_json::Map::new();
        data.insert(self.root.clone(), muster_json::from_slice(json).ok()?);
        let mut data = serde_json::Value::Object(data);
        let hidden = without_secrets(&self.document, None, &catalogue.registry, &mut data);
        Some(if hidden { data[self.root.as_str()].to_string().into() } else { json.clone() })
    }

    /// Marks the variables that are parts of `path`.
    pub(super) fn bind(mut self, path: &str) -> anyhow::Result<Self> {
        let names: HashSet<&str> =
            path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}')).collect();
        for input in &mut self.inputs {
            if names.contains(input.name.as_str()) {
                input.source = Source::Path;
                // A path parameter is always given, even if the schema's argument is optional.
                if !input.declared.ty.ends_with('!') {
                    input.declared.ty.push('!');
                }
            }
        }
        for name in names {
            if !self.inputs.iter().any(|input| input.name == name) {
                bail!("{}: {name} in the path is not a variable", self.name);
            }
        }
        Ok(self)
    }

    /// The body variable, if the operation takes a body.
    #[must_use]
    pub fn body(&self) -> Option<&Input> {
        self.inputs.iter().find(|input| input.source == Source::Body)
    }

    /// The variables set by a request.
    ///
    /// # Errors
    /// `MALFORMED_REQUEST`, or `VALIDATION_FAILED` naming every invalid value.
    pub fn variables(&self, given: &Given<'_>, catalogue: &Catalogue) -> Result<Variables> {
        let mut variables = Variables::default();
        let mut violations = Vec::new();
        let query = self.query(given.query, &mut violations)?;
        let mut validator = Validator::new(&catalogue.registry, Spelling::Snake);
        for input in &self.inputs {
            let value = match input.source {
                Source::Path => Some(path_value(input, &given.path)?),
                Source::Query => {
                    let given = query.iter().find(|(name, _)| *name == input.name);
                    given.map(|(_, text)| typed(&input.declared.ty, text))
                }
                Source::Body => Some(body_value(given.body)?),
            };
            let pointer =
                if input.source == Source::Body { String::new() } else { format!("/{}", input.name) };
            let before = validator.violations.len();
            if let Some(value) = validator.check(&input.declared, value, &pointer) {
                variables.insert(input.variable.clone(), input.passed(value));
            }
            if input.source != Source::Body {
                for violation in &mut validator.violations[before..] {
                    violation.at = At::Parameter(input.name.clone());
                }
            }
        }
        if self.body().is_none() {
            refuse_body(given.body, &mut violations)?;
        }
        violations.extend(validator.violations);
        Problem::fail_if_any(violations)?;
        Ok(variables)
    }

    /// The variables set by one object, whose keys are the names of all parameters and of the body's keys.
    ///
    /// # Errors
    /// `VALIDATION_FAILED` naming every invalid value.
    pub fn variables_of(&self, mut given: IndexMap<Name, Value>, catalogue: &Catalogue) -> Result<Variables> {
        let mut variables = Variables::default();
        let mut validator = Validator::new(&catalogue.registry, Spelling::Snake);
        for input in self.inputs.iter().filter(|input| input.source != Source::Body) {
            // Null means that a parameter isn't given: paths and queries can't express null.
            let value = given.shift_remove(input.name.as_str()).filter(|value| *value != Value::Null);
            if let Some(value) = validator.check(&input.declared, value, &format!("/{}", input.name)) {
                variables.insert(input.variable.clone(), input.passed(value));
            }
        }
        match self.body() {
            Some(body) => {
                if let Some(value) = validator.check(&body.declared, Some(Value::Object(given)), "") {
                    variables.insert(body.variable.clone(), value);
                }
            }
            None => validator.violations.extend(given.keys().map(|key| {
                let names = self.inputs.iter().map(|input| input.name.as_str());
                let detail = format!("Unknown argument `{key}`{}.", meant(key, names));
                Violation::at(format!("/{key}"), "UNKNOWN_KEY", detail)
            })),
        }
        Problem::fail_if_any(validator.violations)?;
        Ok(variables)
    }

    /// Parses the query parameters. Unknown and repeated ones are violations.
    fn query(&self, query: &str, violations: &mut Vec<Violation>) -> Result<Vec<(String, String)>> {
        let mut found: Vec<(String, String)> = Vec::new();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let (name, value) = (decode(name)?, decode(value)?);
            let known = |input: &&Input| input.source == Source::Query;
            if !self.inputs.iter().filter(known).any(|input| input.name == name) {
                let names = self.inputs.iter().filter(known).map(|input| input.name.as_str());
                let detail = format!("Unknown query parameter `{name}`{}.", meant(&name, names));
                violations.push(Violation::parameter(name, "UNKNOWN_KEY", detail));
            } else if found.iter().any(|(earlier, _)| *earlier == name) {
                let detail = format!("The query parameter `{name}` is given more than once.");
                violations.push(Violation::parameter(name, "REPEATED", detail));
            } else {
                found.push((name, value));
            }
        }
        Ok(found)
    }
}

/// One operation of a document with the fragments it uses, its fields aliased for REST.
fn single(document: &ExecutableDocument, name: &Name) -> Option<ExecutableDocument> {
    let (_, operation) = document.operations.iter().find(|(known, _)| *known == Some(name))?;
    let mut operation = operation.clone();
    let mut used = HashSet::new();
    spreads(&operation.node.selection_set.node, document, &mut used);
    let mut fragments = document.fragments.clone();
    fragments.retain(|name, _| used.contains(name));
    for fragment in fragments.values_mut() {
        alias(&mut fragment.node.selection_set.node);
    }
    for root in &mut operation.node.selection_set.node.items {
        if let Selection::Field(root) = &mut root.node {
            alias(&mut root.node.selection_set.node);
        }
    }
    Some(ExecutableDocument { operations: DocumentOperations::Single(operation), fragments })
}

fn spreads(set: &SelectionSet, document: &ExecutableDocument, used: &mut HashSet<Name>) {
    for selection in &set.items {
        match &selection.node {
            Selection::Field(field) => spreads(&field.node.selection_set.node, document, used),
            Selection::InlineFragment(fragment) => {
                spreads(&fragment.node.selection_set.node, document, used);
            }
            Selection::FragmentSpread(spread) => {
                let name = &spread.node.fragment_name.node;
                if used.insert(name.clone())
                    && let Some(fragment) = document.fragments.get(name)
                {
                    spreads(&fragment.node.selection_set.node, document, used);
                }
            }
        }
    }
}

fn selects(set: &SelectionSet, name: &str) -> bool {
    set.items.iter().any(|selection| match &selection.node {
        Selection::Field(field) => {
            field.node.name.node == name || selects(&field.node.selection_set.node, name)
        }
        Selection::InlineFragment(fragment) => selects(&fragment.node.selection_set.node, name),
        Selection::FragmentSpread(_) => false,
    })
}

/// Aliases every field to its REST name. The GraphQL schema stays camelCase, and requests pay nothing for the
/// difference.
fn alias(set: &mut SelectionSet) {
    for selection in &mut set.items {
        match &mut selection.node {
            Selection::Field(field) => {
                let spelled = snake_case(field.node.name.node.as_str());
                if field.node.alias.is_none() && spelled != field.node.name.node.as_str() {
                    field.node.alias = Some(Positioned::new(Name::new(spelled), field.pos));
                }
                alias(&mut field.node.selection_set.node);
            }
            Selection::InlineFragment(fragment) => alias(&mut fragment.node.selection_set.node),
            Selection::FragmentSpread(_) => {}
        }
    }
}

fn input(
    variable: &Name,
    root: &Field,
    args: &async_graphql::indexmap::IndexMap<String, MetaInputValue>,
) -> anyhow::Result<Input> {
    let (argument, _) = root
        .arguments
        .iter()
        .find(|(_, value)| value.node.to_string() == format!("${variable}"))
        .ok_or_else(|| anyhow!("${variable} is not passed to an argument of the root field"))?;
    let declared =
        args.get(argument.node.as_str()).ok_or_else(|| anyhow!("no argument {}", argument.node))?;
    let (name, mut declared) = (snake_case(variable), declared.clone());
    if DECIMALS.contains(&name.as_str()) {
        "String".clone_into(&mut declared.ty);
        declared.directive_invocations = vec![bounds::apply(digits(40))];
    }
    let source = if variable == "input" { Source::Body } else { Source::Query };
    Ok(Input { variable: variable.clone(), name, source, declared })
}

fn path_value(input: &Input, path: &[(&str, &str)]) -> Result<Value> {
    let text = path.iter().find(|(name, _)| *name == input.name).map_or("", |(_, text)| *text);
    if input.declared.ty != "Id!" {
        return Ok(Value::String(text.to_owned()));
    }
    id_in_path(&input.name, text).map(Value::from)
}

/// A query parameter's text as a value of `ty`. Text that doesn't parse stays text, and the validator reports
/// it.
fn typed(ty: &str, text: &str) -> Value {
    match ty.trim_end_matches('!') {
        "Int" | "Id" => text.parse::<i64>().map_or_else(|_| Value::String(text.to_owned()), Value::from),
        "Boolean" => match text {
            "true" => Value::Boolean(true),
            "false" => Value::Boolean(false),
            _ => Value::String(text.to_owned()),
        },
        _ => Value::String(text.to_owned()),
    }
}

fn body_value(body: &[u8]) -> Result<Value> {
    if body.is_empty() {
        return Err(Problem::new(Code::MalformedRequest, "The request requires a JSON body."));
    }
    muster_json::from_slice(body).map_err(|error| {
        Problem::new(Code::MalformedRequest, format!("The body is not valid JSON: {error}."))
            .with("line", error.line())
            .with("column", error.column())
    })
}

/// An operation without a body accepts nothing or an empty object.
fn refuse_body(body: &[u8], violations: &mut Vec<Violation>) -> Result<()> {
    if body.is_empty() {
        return Ok(());
    }
    match body_value(body)? {
        Value::Object(keys) if keys.is_empty() => {}
        Value::Object(keys) => violations.extend(keys.keys().map(|key| {
            Violation::at(
                format!("/{key}"),
                "UNKNOWN_KEY",
                format!("Unknown key `{key}`: the request does not accept a body."),
            )
        })),
        _ => violations.push(Violation::at("", "WRONG_TYPE", "The request does not accept a body.")),
    }
    Ok(())
}

fn decode(text: &str) -> Result<String> {
    let spaced = text.replace('+', " ");
    percent_encoding::percent_decode_str(&spaced)
        .decode_utf8()
        .map(std::borrow::Cow::into_owned)
        .map_err(|_| Problem::new(Code::MalformedRequest, "The query string is not percent-encoded UTF-8."))
}
