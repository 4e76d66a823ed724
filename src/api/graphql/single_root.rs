//! One root field in a subscription (specification, section 5.2.3.1 of October 2021, 5.2.4.1 of September 2025): each
//! event is the answer to one field. Which one it is must not depend on variables, so the root fields of a
//! subscription take neither `@skip` nor `@include`.

use async_graphql::{
    Positioned, ServerError,
    parser::types::{Directive, ExecutableDocument, OperationType, Selection, SelectionSet},
};

use crate::read::{Fragments, merged};

/// Refuses a document with a subscription of several root fields, or of one that isn't always there. It must
/// otherwise be valid, because fragments are expanded.
///
/// # Errors
/// Names the root fields.
pub fn check(document: &ExecutableDocument) -> Result<(), Vec<ServerError>> {
    let subscriptions =
        document.operations.iter().filter(|(_, operation)| operation.node.ty == OperationType::Subscription);
    for (_, operation) in subscriptions {
        let roots = &operation.node.selection_set.node;
        is_single(roots, &document.fragments).map_err(|error| vec![error])?;
    }
    Ok(())
}

fn is_single(roots: &SelectionSet, fragments: &Fragments) -> Result<(), ServerError> {
    if let Some(directive) = condition(roots, fragments) {
        let name = &directive.node.name.node;
        let detail = format!("The root field of a subscription can't depend on `@{name}`.");
        return Err(ServerError::new(detail, Some(directive.pos)));
    }
    let fields = merged([roots], fragments, &|_| true);
    if let Some((key, second)) = fields.get_index(1) {
        let first = fields.keys().next().copied().unwrap_or_default();
        let detail = format!(
            "A subscription must have exactly one root field, but this one has `{first}` and `{key}`. Subscribe to each of them."
        );
        return Err(ServerError {
            locations: second.iter().map(|field| field.pos).collect(),
            ..ServerError::new(detail, None)
        });
    }
    match fields.values().flatten().find(|field| field.node.name.node.starts_with("__")) {
        Some(field) => {
            let detail = "A subscription can't have an introspection field as its root.";
            Err(ServerError::new(detail, Some(field.pos)))
        }
        None => Ok(()),
    }
}

/// The first directive that may leave out a root field.
fn condition<'a>(set: &'a SelectionSet, fragments: &'a Fragments) -> Option<&'a Positioned<Directive>> {
    set.items.iter().find_map(|selection| {
        let mut own = selection.node.directives().iter();
        let own = own.find(|directive| matches!(directive.node.name.node.as_str(), "skip" | "include"));
        own.or_else(|| match &selection.node {
            Selection::Field(_) => None,
            Selection::InlineFragment(fragment) => condition(&fragment.node.selection_set.node, fragments),
            Selection::FragmentSpread(spread) => {
                let fragment = fragments.get(&spread.node.fragment_name.node)?;
                condition(&fragment.node.selection_set.node, fragments)
            }
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> Option<String> {
        let document = async_graphql::parser::parse_query(text).unwrap();
        check(&document).err().map(|errors| errors[0].message.clone())
    }

    #[test]
    fn a_subscription_has_one_root_field() {
        for fine in [
            "subscription { a }",
            "subscription { key: a(x: 1) { b c } }",
            "subscription { ...F } fragment F on Subscription { a }",
            "subscription { ... { ... on Subscription { a } } }",
            // The same field again is one field.
            "subscription { a { b } a { c } ...F } fragment F on Subscription { a { d } }",
            // Below the root, anything goes.
            "subscription($v: Boolean!) { a { b @skip(if: $v) c @include(if: $v) ... @skip(if: $v) { d } } }",
            "query Q { a b } subscription S { a }",
            "query($v: Boolean!) { a @skip(if: $v) b }",
            "mutation { a b }",
        ] {
            assert_eq!(refused(fine), None, "{fine}");
        }
        for several in [
            "subscription { a b }",
            "subscription { one: a two: a }",
            "subscription { a ...F } fragment F on Subscription { b }",
            "subscription { ...F ...G } fragment F on Subscription { a } fragment G on Subscription { b }",
            "subscription { ...F } fragment F on Subscription { a ...G } fragment G on Subscription { b }",
            "subscription { a ... { b } }",
            "subscription { a ... on Subscription { ... { b } } }",
            "subscription { a __typename }",
            "query Q { a b } subscription S { a b }",
            "subscription One { a } subscription Two { a b }",
        ] {
            assert!(
                refused(several).is_some_and(|detail| detail.contains("exactly one root field")),
                "{several}"
            );
        }
    }

    #[test]
    fn the_root_field_of_a_subscription_is_always_there() {
        for conditional in [
            "subscription { a @skip(if: false) }",
            "subscription($v: Boolean!) { a @include(if: $v) }",
            "subscription($v: Boolean!) { a @skip(if: $v) b @include(if: $v) }",
            "subscription { ... @include(if: true) { a } }",
            "subscription($v: Boolean!) { ...F @skip(if: $v) } fragment F on Subscription { a }",
            "subscription($v: Boolean!) { ...F } fragment F on Subscription { a @skip(if: $v) }",
            "subscription($v: Boolean!) { a ... { ... @include(if: $v) { b } } }",
        ] {
            assert!(
                refused(conditional).is_some_and(|detail| detail.contains("can't depend on")),
                "{conditional}"
            );
        }
    }

    #[test]
    fn the_root_field_of_a_subscription_is_not_about_the_schema() {
        for about in ["subscription { __typename }", "subscription { x: __schema { types { name } } }"] {
            assert!(refused(about).is_some_and(|detail| detail.contains("introspection")), "{about}");
        }
    }
}
