//! The part of a document that one request executes.
//!
//! Adjusts the operation where the executor deviates from the specification:
//!
//! - The values of variables must fit their types, or the request is refused (section 6.1.2).
//! - A field of an input object, or an argument, whose variable isn't given counts as not given itself (sections 3.10
//!   and 6.4.1), so an edit leaves the fields that it doesn't name alone.
//! - Root fields with the same response key are merged (section 6.3.2) and answered in the document's order.
//! - Introspection is answered from a cached text ([`Introspection`](super::Introspection)).

use async_graphql::{
    Name, Positioned, Response, ServerError, Value as ConstValue, Variables,
    indexmap::IndexMap,
    parser::types::{
        DocumentOperations, ExecutableDocument, Field, OperationDefinition, Selection, SelectionSet,
    },
    registry::Registry,
};
use async_graphql_value::Value;

use super::introspection::is_about_schema;
use crate::base::problem::{At, Problem};
use crate::{
    read::{is_included, merged},
    resolvers::validate::Validator,
};

/// The part of a document that one request executes.
pub struct Execution {
    /// The document for the executor. None if nothing is left to execute.
    pub document: Option<ExecutableDocument>,
    /// Whether the operation still has its name.
    pub named: bool,
    pub about_schema: Vec<Positioned<Field>>,
    /// The response keys in order, if there are several.
    pub order: Vec<Name>,
    /// How many of the root fields are costly. Each is charged, or aliases would make them cheap.
    pub costly: usize,
}

/// The root fields that search or compile a policy. `auditLog` counts only if it searches.
const COSTLY: [&str; 5] = ["findMessages", "proposePolicy", "search", "searchMessages", "simulatePolicy"];

fn is_costly(root: &Positioned<Selection>, variables: &Variables) -> bool {
    let Selection::Field(field) = &root.node else { return false };
    match field.node.name.node.as_str() {
        // Without a search, it is read in order like any list.
        "auditLog" => field.node.get_argument("search").is_some_and(|words| match &words.node {
            Value::Variable(name) => variables.get(name).is_some_and(|words| *words != ConstValue::Null),
            words => *words != Value::Null,
        }),
        name => COSTLY.contains(&name),
    }
}

impl Execution {
    /// The operation as it was sent. It must be plain: each root is a field with its own response key, executed
    /// no matter what the variables are.
    pub fn plain(
        document: ExecutableDocument,
        operation: &OperationDefinition,
        variables: &Variables,
    ) -> Self {
        let roots = &operation.selection_set.node.items;
        let order = if roots.len() > 1 { roots.iter().filter_map(key).collect() } else { Vec::new() };
        let costly = roots.iter().filter(|root| is_costly(root, variables)).count();
        let (document, about_schema) = (Some(document), Vec::new());
        let mut execution = Self { document, named: true, about_schema, order, costly };
        execution.leave_out(operation, variables);
        execution
    }

    /// The operation with its roots merged, without those that the variables skip.
    pub fn merged(
        parsed: &ExecutableDocument,
        operation: &OperationDefinition,
        variables: &Variables,
    ) -> Self {
        let set = &operation.selection_set;
        let wanted = |directives: &[_]| is_included(directives, variables);
        let (mut items, mut about_schema, mut order) = (Vec::new(), Vec::new(), Vec::new());
        for fields in merged([&set.node], &parsed.fragments, &wanted).into_values() {
            let Some((first, others)) = fields.split_first() else { continue };
            let mut field = (*first).clone();
            field.node.directives.clear();
            for other in others {
                let more = other.node.selection_set.node.items.iter().cloned();
                field.node.selection_set.node.items.extend(more);
            }
            order.push(field.node.response_key().node.clone());
            if is_about_schema(&field.node) {
                about_schema.push(field);
            } else {
                items.push(Positioned::new(Selection::Field(field), first.pos));
            }
        }
        let costly = items.iter().filter(|root| is_costly(root, variables)).count();
        let document = (!items.is_empty()).then(|| {
            let operation = OperationDefinition {
                ty: operation.ty,
                variable_definitions: operation.variable_definitions.clone(),
                directives: operation.directives.clone(),
                selection_set: Positioned::new(SelectionSet { items }, set.pos),
            };
            let operations = DocumentOperations::Single(Positioned::new(operation, set.pos));
            ExecutableDocument { operations, fragments: parsed.fragments.clone() }
        });
        let mut execution = Self { document, named: false, about_schema, order, costly };
        execution.leave_out(operation, variables);
        execution
    }

    /// Removes arguments whose variables aren't given.
    fn leave_out(&mut self, operation: &OperationDefinition, variables: &Variables) {
        let names = operation.variable_definitions.iter().map(|definition| &definition.node.name.node);
        let absent: Vec<&Name> = names.filter(|name| !variables.contains_key(*name)).collect();
        let Some(document) = self.document.as_mut().filter(|_| !absent.is_empty()) else { return };
        match &mut document.operations {
            DocumentOperations::Single(operation) => {
                leave_out(&mut operation.node.selection_set.node, &absent);
            }
            DocumentOperations::Multiple(operations) => {
                for operation in operations.values_mut() {
                    leave_out(&mut operation.node.selection_set.node, &absent);
                }
            }
        }
        for fragment in document.fragments.values_mut() {
            leave_out(&mut fragment.node.selection_set.node, &absent);
        }
    }

    /// The complete response: the executed root fields and the `known` ones, in the document's order.
    pub fn complete(order: &[Name], known: &[(Name, ConstValue)], mut response: Response) -> Response {
        let mut roots = match std::mem::take(&mut response.data) {
            ConstValue::Object(roots) => roots,
            // Nothing was executed.
            _ if !response.errors.is_empty() => return response,
            _ => IndexMap::new(),
        };
        roots.extend(known.iter().cloned());
        if !response.errors.is_empty() {
            // The executor leaves out a root whose arguments it can't read.
            for key in order.iter().filter(|key| !roots.contains_key(*key)).cloned().collect::<Vec<_>>() {
                roots.insert(key, ConstValue::Null);
            }
        }
        if roots.len() > 1 {
            let place = |key: &Name| order.iter().position(|known| known == key);
            roots.sort_by(|one, _, other, _| place(one).cmp(&place(other)));
        }
        response.data = ConstValue::Object(roots);
        response
    }
}

fn key(root: &Positioned<Selection>) -> Option<Name> {
    match &root.node {
        Selection::Field(field) => Some(field.node.response_key().node.clone()),
        Selection::InlineFragment(_) | Selection::FragmentSpread(_) => None,
    }
}

fn leave_out(set: &mut SelectionSet, absent: &[&Name]) {
    for selection in &mut set.items {
        match &mut selection.node {
            Selection::Field(field) => {
                field.node.arguments.retain_mut(|(_, value)| is_given(&mut value.node, absent));
                leave_out(&mut field.node.selection_set.node, absent);
            }
            Selection::InlineFragment(fragment) => leave_out(&mut fragment.node.selection_set.node, absent),
            Selection::FragmentSpread(_) => {}
        }
    }
}

/// Whether there is a value. Missing parts of it are removed, except in a list, where they are null to keep
/// their position.
fn is_given(value: &mut Value, absent: &[&Name]) -> bool {
    match value {
        Value::Variable(name) => return !absent.contains(&&*name),
        Value::Object(fields) => fields.retain(|_, value| is_given(value, absent)),
        Value::List(items) => {
            for item in items {
                is_given(item, absent);
            }
        }
        _ => {}
    }
    true
}

/// The values of an operation's variables, coerced to their types, with defaults.
///
/// # Errors
/// `VALIDATION_FAILED`, naming every value that doesn't fit.
pub fn coerce(
    operation: &OperationDefinition,
    mut given: Variables,
    registry: &Registry,
) -> Result<Variables, ServerError> {
    // Undeclared variables are dropped: a subscription would keep them for its whole life.
    let mut variables = Variables::default();
    let mut validator = Validator::of_types(registry);
    for definition in &operation.variable_definitions {
        let definition = &definition.node;
        let name = &definition.name.node;
        match (given.remove(name), &definition.default_value) {
            (Some(value), _) => {
                let ty = definition.var_type.node.to_string();
                let value = validator.coerce(&ty, value, &format!("/{name}"));
                variables.insert(name.clone(), value);
            }
            (None, Some(default)) => {
                variables.insert(name.clone(), default.node.clone());
            }
            (None, None) if !definition.var_type.node.nullable => validator.require(&format!("/{name}")),
            (None, None) => {}
        }
    }
    for violation in &mut validator.violations {
        if let At::Pointer(pointer) = &violation.at {
            violation.at = At::Parameter(pointer.trim_start_matches('/').to_owned());
        }
    }
    Problem::fail_if_any(validator.violations).map(|()| variables).map_err(|problem| {
        let at = operation.variable_definitions.first().map(|first| first.pos).unwrap_or_default();
        async_graphql::Error::from(problem).into_server_error(at)
    })
}
