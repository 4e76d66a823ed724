//! Removes the values of `@shownOnce` fields from answers that are stored.

use std::collections::HashMap;

use async_graphql::{
    Name, Positioned,
    parser::types::{Field, FragmentDefinition, OperationType, Selection, SelectionSet},
    registry::{MetaTypeName, Registry},
};

use super::Document;

/// Replaces the values of `@shownOnce` fields in an answer's `data` with null. If a field can't be null, its
/// record becomes null instead. Returns whether there were any.
pub fn without_secrets(
    document: &Document,
    operation: Option<&str>,
    registry: &Registry,
    data: &mut serde_json::Value,
) -> bool {
    let (Some(definition), serde_json::Value::Object(roots)) = (document.operation(operation), data) else {
        return false;
    };
    let root = match definition.ty {
        OperationType::Query => "Query",
        OperationType::Mutation => "Mutation",
        OperationType::Subscription => "Subscription",
    };
    let mut hiding = Hiding { fragments: &document.executable().fragments, registry, found: false };
    hiding.fields(&definition.selection_set.node, root, roots);
    hiding.found
}

struct Hiding<'a> {
    fragments: &'a HashMap<Name, Positioned<FragmentDefinition>>,
    registry: &'a Registry,
    found: bool,
}

impl Hiding<'_> {
    /// Returns whether the value must become null because a secret in it can't be null.
    fn value(&mut self, set: &SelectionSet, ty: &str, value: &mut serde_json::Value) -> bool {
        match value {
            serde_json::Value::Object(fields) => self.fields(set, ty, fields),
            serde_json::Value::Array(items) => {
                // Every item is visited, even after one must become null.
                let mut lost = false;
                for item in items {
                    lost |= self.value(set, ty, item);
                }
                lost
            }
            _ => false,
        }
    }

    fn fields(
        &mut self,
        set: &SelectionSet,
        ty: &str,
        fields: &mut serde_json::Map<String, serde_json::Value>,
    ) -> bool {
        let mut lost = false;
        for selection in &set.items {
            match &selection.node {
                Selection::Field(field) => lost |= self.field(&field.node, ty, fields),
                Selection::InlineFragment(fragment) => {
                    let on = fragment.node.type_condition.as_ref();
                    let ty = on.map_or(ty, |on| on.node.on.node.as_str());
                    lost |= self.fields(&fragment.node.selection_set.node, ty, fields);
                }
                Selection::FragmentSpread(spread) => {
                    if let Some(fragment) = self.fragments.get(&spread.node.fragment_name.node) {
                        let ty = fragment.node.type_condition.node.on.node.as_str();
                        lost |= self.fields(&fragment.node.selection_set.node, ty, fields);
                    }
                }
            }
        }
        lost
    }

    fn field(
        &mut self,
        field: &Field,
        ty: &str,
        fields: &mut serde_json::Map<String, serde_json::Value>,
    ) -> bool {
        let registry = self.registry;
        let declared = registry.types.get(ty).and_then(|ty| ty.field_by_name(&field.name.node));
        let key = field.alias.as_ref().unwrap_or(&field.name).node.as_str();
        let (Some(declared), Some(value)) = (declared, fields.get_mut(key)) else { return false };
        let is_secret = declared.directive_invocations.iter().any(|directive| directive.name == "shownOnce");
        let lost = if is_secret {
            self.found |= !value.is_null();
            true
        } else {
            self.value(&field.selection_set.node, MetaTypeName::concrete_typename(&declared.ty), value)
        };
        if lost {
            *value = serde_json::Value::Null;
        }
        lost && declared.ty.ends_with('!')
    }
}
