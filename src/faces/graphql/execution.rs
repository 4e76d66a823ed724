//! What is executed of a document for one request.
//!
//! The executor is handed the operation as the specification wants it executed where its own way differs:
//!
//! - Values of variables fit their types, or the request is refused (section 6.1.2).
//! - A field of an input object, or an argument, whose variable is not given counts as not given itself (sections 3.10
//!   and 6.4.1): an edit leaves alone what it does not name.
//! - Root fields of one response key are merged (section 6.3.2), and answered in the document's order.
//! - What is asked about the schema is answered from a kept text ([`Introspection`](super::Introspection)).

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
use crate::base::problem::Problem;
use crate::{
    fields::validate::Validator,
    read::{is_included, merged},
};

/// What one request executes.
pub struct Execution {
    /// The document for the executor; none if nothing is left for it.
    pub document: Option<ExecutableDocument>,
    /// Whether the operation is still known by its name.
    pub named: bool,
    /// The root fields about the schema.
    pub about_schema: Vec<Positioned<Field>>,
    /// The response keys in the order of the answer, where there are several.
    pub order: Vec<Name>,
}

impl Execution {
    /// The operation as it was sent, which is plain: each root is a field with a response key of its own, to be
    /// executed whatever the variables are.
    pub fn plain(
        document: ExecutableDocument,
        operation: &OperationDefinition,
        variables: &Variables,
    ) -> Self {
        let roots = &operation.selection_set.node.items;
        let order = if roots.len() > 1 { roots.iter().filter_map(key).collect() } else { Vec::new() };
        let mut execution = Self { document: Some(document), named: true, about_schema: Vec::new(), order };
        execution.leave_out(operation, variables);
        execution
    }

    /// The operation with its roots merged, and without those that the variables leave out.
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
        let mut execution = Self { document, named: false, about_schema, order };
        execution.leave_out(operation, variables);
        execution
    }

    /// Leaves out what is set to variables that are not given.
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

    /// The whole response: what was executed, and the `known` roots, in the document's order.
    pub fn complete(order: &[Name], known: &[(Name, ConstValue)], mut response: Response) -> Response {
        let mut roots = match std::mem::take(&mut response.data) {
            ConstValue::Object(roots) => roots,
            // Nothing was executed.
            _ if !response.errors.is_empty() => return response,
            _ => IndexMap::new(),
        };
        roots.extend(known.iter().cloned());
        if !response.errors.is_empty() {
            // The executor leaves a root out whose arguments it can't read.
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

/// Whether there is a value; what is not given in it is left out. (In a list it is null: it has a place there.)
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

/// The values of an operation's variables, as their types take them, defaults included.
///
/// # Errors
/// `VALIDATION_FAILED`: names every value that does not fit.
pub fn coerce(
    operation: &OperationDefinition,
    mut given: Variables,
    registry: &Registry,
) -> Result<Variables, ServerError> {
    // What nobody has declared is dropped: a subscription would keep it for as long as it lives.
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
    Problem::refuse(validator.violations).map(|()| variables).map_err(|problem| {
        let at = operation.variable_definitions.first().map(|first| first.pos).unwrap_or_default();
        async_graphql::Error::from(problem).into_server_error(at)
    })
}
