//! Merges selections as the specification does (section 6.3.2): by response key, in order of first appearance.
//!
//! The schema has no interfaces or unions, so everything selected together belongs to one type, and type
//! conditions on fragments add nothing.

use std::collections::HashMap;

use async_graphql::{
    Name, Positioned, Value as ConstValue, Variables,
    indexmap::IndexMap,
    parser::types::{Directive, Field, FragmentDefinition, Selection, SelectionSet},
};
use async_graphql_value::Value;

/// A document's fragments.
pub type Fragments = HashMap<Name, Positioned<FragmentDefinition>>;

/// The fields under each response key.
pub type Merged<'a> = IndexMap<&'a str, Vec<&'a Positioned<Field>>>;

/// Merges sets that are selected together, leaving out selections whose directives `wanted` rejects. Fragments
/// must not spread themselves.
pub fn merged<'a>(
    sets: impl IntoIterator<Item = &'a SelectionSet>,
    fragments: &'a Fragments,
    wanted: &impl Fn(&[Positioned<Directive>]) -> bool,
) -> Merged<'a> {
    let mut merged = Merged::new();
    for set in sets {
        collect(set, fragments, wanted, &mut merged);
    }
    merged
}

fn collect<'a>(
    set: &'a SelectionSet,
    fragments: &'a Fragments,
    wanted: &impl Fn(&[Positioned<Directive>]) -> bool,
    merged: &mut Merged<'a>,
) {
    for selection in set.items.iter().filter(|selection| wanted(selection.node.directives())) {
        match &selection.node {
            Selection::Field(field) => {
                merged.entry(field.node.response_key().node.as_str()).or_default().push(field);
            }
            Selection::InlineFragment(fragment) => {
                collect(&fragment.node.selection_set.node, fragments, wanted, merged);
            }
            Selection::FragmentSpread(spread) => {
                if let Some(fragment) = fragments.get(&spread.node.fragment_name.node) {
                    collect(&fragment.node.selection_set.node, fragments, wanted, merged);
                }
            }
        }
    }
}

/// The selections of the fields under one response key.
pub fn below<'a>(fields: &[&'a Positioned<Field>]) -> impl Iterator<Item = &'a SelectionSet> {
    fields.iter().map(|field| &field.node.selection_set.node)
}

/// Whether `@skip` and `@include` keep a selection. The variables must be checked, with defaults applied.
pub fn is_included(directives: &[Positioned<Directive>], variables: &Variables) -> bool {
    directives.iter().all(|directive| {
        let wanted = match directive.node.name.node.as_str() {
            "skip" => false,
            "include" => true,
            _ => return true,
        };
        let condition = directive.node.get_argument("if").map(|condition| &condition.node);
        match condition {
            Some(Value::Boolean(condition)) => *condition == wanted,
            Some(Value::Variable(name)) => variables.get(name) == Some(&ConstValue::Boolean(wanted)),
            _ => true,
        }
    })
}

/// The value of a field's argument, or None if it isn't given.
pub fn argument(field: &Field, name: &str, variables: &Variables) -> Option<ConstValue> {
    match &field.get_argument(name)?.node {
        Value::Variable(name) => variables.get(name).cloned(),
        value => value.clone().into_const(),
    }
}
