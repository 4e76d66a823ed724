//! One response key, one field: fields that answer under the same key must be the same field with the same
//! arguments, wherever they appear (specification, section 5.3.2). The executor only compares fields within one
//! selection set, but a plan merges sets from different places, and would answer with the first of two
//! different fields.

use async_graphql::{
    Positioned, ServerError,
    parser::types::{ExecutableDocument, Field, SelectionSet},
};

use crate::read::{Fragments, below, merged};

/// Refuses a document whose fields conflict. It must otherwise be valid, because fragments are expanded.
///
/// # Errors
/// Names the first two fields that conflict.
pub fn check(document: &ExecutableDocument) -> Result<(), Vec<ServerError>> {
    for (_, operation) in document.operations.iter() {
        let roots = std::iter::once(&operation.node.selection_set.node);
        check_merged(roots, &document.fragments).map_err(|error| vec![error])?;
    }
    Ok(())
}

fn check_merged<'a>(
    sets: impl IntoIterator<Item = &'a SelectionSet>,
    fragments: &'a Fragments,
) -> Result<(), ServerError> {
    for (key, fields) in merged(sets, fragments, &|_| true) {
        let Some((first, others)) = fields.split_first() else { continue };
        if let Some(other) = others.iter().find(|other| !is_same(&first.node, &other.node)) {
            return Err(conflict(key, first, other));
        }
        if !first.node.selection_set.node.items.is_empty() {
            check_merged(below(&fields), fragments)?;
        }
    }
    Ok(())
}

fn is_same(one: &Field, other: &Field) -> bool {
    one.name.node == other.name.node
        && one.arguments.len() == other.arguments.len()
        && one
            .arguments
            .iter()
            .all(|(name, value)| other.get_argument(&name.node).is_some_and(|given| given.node == value.node))
}

fn conflict(key: &str, one: &Positioned<Field>, other: &Positioned<Field>) -> ServerError {
    let (first, second) = (&one.node.name.node, &other.node.name.node);
    let why = if first == second {
        "they have different arguments".to_owned()
    } else {
        format!("`{first}` and `{second}` are different fields")
    };
    let detail = format!("Two fields answer under the key `{key}`, but {why}. Give one of them an alias.");
    ServerError { locations: vec![one.pos, other.pos], ..ServerError::new(detail, None) }
}

#[cfg(test)]
mod tests {
    use async_graphql::registry::MetaType;

    use super::*;

    fn conflicts(text: &str) -> bool {
        check(&async_graphql::parser::parse_query(text).unwrap()).is_err()
    }

    #[test]
    fn fields_conflict_wherever_they_appear() {
        for text in [
            "{ r: a r: b }",
            "{ r: a(x: 1) r: a(x: 2) }",
            "{ r: a r: a(x: 1) }",
            "{ a { d { x: id } d { x: name } } }",
            "{ a { d { e { x: id } } d { e { x: name } } } }",
            "{ r: a(id: 1) { x: id } r: a(id: 1) { x: name } }",
            "{ a { x: id } ... { a { x: name } } }",
            "{ a { x: id } ...f } fragment f on Query { a { ...g } } fragment g on A { x: name }",
            "query Good { a } query Bad { a { x: id } a { x: name } }",
        ] {
            assert!(conflicts(text), "{text}");
        }
        for text in [
            "{ a { x: id } a { x: id y: name } }",
            "{ a(x: 1, y: $v) { id } a(y: $v, x: 1) { id } }",
            "{ r: a { x: id } s: a { x: name } }",
            "{ a { ...g ...g } } fragment g on A { x: name }",
        ] {
            assert!(!conflicts(text), "{text}");
        }
    }

    #[test]
    fn fields_selected_together_have_one_type() {
        let registry = crate::graphql::catalogue().unwrap().registry;
        let abstracts = |ty: &&MetaType| matches!(ty, MetaType::Interface { .. } | MetaType::Union { .. });
        assert!(registry.types.values().find(abstracts).is_none(), "fields of different types may differ");
    }
}
