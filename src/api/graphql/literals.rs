//! Literals in a document. In a document, enum values are written without quotes (specification, section 3.9); in the
//! JSON of variables they are strings. The executor accepts either in both places, and does not check that the value
//! exists.

use async_graphql::{
    Pos, Positioned, ServerError,
    parser::types::{ExecutableDocument, OperationType, Selection, SelectionSet},
    registry::{MetaInputValue, MetaType, MetaTypeName, Registry},
};
use async_graphql_value::Value;

use crate::resolvers::validate::{MAX_WRONG, not_one_of};

/// Refuses enum literals that aren't written the way their type requires, or aren't values of it. Ignores other errors
/// in the document.
///
/// # Errors
/// Names each of them, or the first hundred.
pub fn check(document: &ExecutableDocument, registry: &Registry) -> Result<(), Vec<ServerError>> {
    let mut literals = Literals { registry, wrong: Vec::new() };
    for (_, operation) in document.operations.iter() {
        let root = match operation.node.ty {
            OperationType::Query => Some(&registry.query_type),
            OperationType::Mutation => registry.mutation_type.as_ref(),
            OperationType::Subscription => registry.subscription_type.as_ref(),
        };
        for variable in &operation.node.variable_definitions {
            if let Some(default) = &variable.node.default_value {
                let (ty, value) =
                    (variable.node.var_type.node.to_string(), default.node.clone().into_value());
                literals.value(&ty, &value, variable.node.name.node.as_str(), default.pos);
            }
        }
        literals.set(root.and_then(|root| registry.types.get(root)), &operation.node.selection_set.node);
    }
    for fragment in document.fragments.values() {
        let on = registry.types.get(fragment.node.type_condition.node.on.node.as_str());
        literals.set(on, &fragment.node.selection_set.node);
    }
    if literals.wrong.is_empty() { Ok(()) } else { Err(literals.wrong) }
}

struct Literals<'a> {
    registry: &'a Registry,
    wrong: Vec<ServerError>,
}

impl Literals<'_> {
    fn set(&mut self, of: Option<&MetaType>, set: &SelectionSet) {
        for selection in &set.items {
            match &selection.node {
                Selection::Field(field) => {
                    let Some(declared) = of.and_then(|ty| ty.field_by_name(&field.node.name.node)) else {
                        continue;
                    };
                    for (name, value) in &field.node.arguments {
                        if let Some(argument) = declared.args.get(name.node.as_str()) {
                            self.argument(argument, value);
                        }
                    }
                    let ty = self.registry.types.get(declared.ty.trim_matches(['[', ']', '!']));
                    self.set(ty, &field.node.selection_set.node);
                }
                Selection::InlineFragment(fragment) => self.set(of, &fragment.node.selection_set.node),
                Selection::FragmentSpread(_) => {}
            }
        }
    }

    fn argument(&mut self, declared: &MetaInputValue, value: &Positioned<Value>) {
        self.value(&declared.ty, &value.node, &declared.name, value.pos);
    }

    fn value(&mut self, ty: &str, value: &Value, name: &str, at: Pos) {
        if self.wrong.len() >= MAX_WRONG {
            return;
        }
        match (MetaTypeName::create(ty), value) {
            (_, Value::Null | Value::Variable(_)) => {}
            (MetaTypeName::NonNull(inner), value) => self.value(inner, value, name, at),
            (MetaTypeName::List(inner), Value::List(items)) => {
                for item in items {
                    self.value(inner, item, name, at);
                }
            }
            // A single value stands for a list of one.
            (MetaTypeName::List(inner), value) => self.value(inner, value, name, at),
            (MetaTypeName::Named(ty), value) => match (self.registry.types.get(ty), value) {
                (Some(MetaType::Enum { .. }), Value::String(text)) => {
                    let detail = format!(
                        "`{name}` is a value of the enum {ty}: write it without quotes, not \"{text}\"."
                    );
                    self.wrong.push(ServerError::new(detail, Some(at)));
                }
                (Some(MetaType::Enum { enum_values, .. }), Value::Enum(text))
                    if !enum_values.contains_key(text.as_str()) =>
                {
                    let known: Vec<&str> = enum_values.keys().map(String::as_str).collect();
                    self.wrong.push(ServerError::new(not_one_of(name, text, &known), Some(at)));
                }
                (Some(MetaType::InputObject { input_fields, .. }), Value::Object(given)) => {
                    for (key, value) in given {
                        if let Some(field) = input_fields.get(key.as_str()) {
                            self.value(&field.ty, value, key, at);
                        }
                    }
                }
                _ => {}
            },
        }
    }
}
