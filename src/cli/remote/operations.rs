//! The operations of `operations.graphql`. One begins with its name in the first column, and the next `}` there ends it.

/// The operations.
const OPERATIONS: &str = include_str!("operations.graphql");

/// The text of an operation. Empty if there is none of this name, which a test rules out.
pub fn text(name: &str) -> &'static str {
    let begins = |kind: &str| {
        let head = format!("\n{kind} {name}");
        let is_whole =
            |at: &usize| !OPERATIONS[at + head.len()..].starts_with(|c: char| c.is_ascii_alphanumeric());
        OPERATIONS.match_indices(&head).map(|(at, _)| at).find(is_whole)
    };
    let Some(begin) = begins("query").or_else(|| begins("mutation")) else { return "" };
    let rest = &OPERATIONS[begin + 1..];
    rest.find("\n}").map_or(rest, |end| &rest[..end + 2])
}

/// Whether an operation has this variable.
pub fn takes(name: &str, variable: &str) -> bool {
    let head = text(name).split('{').next().unwrap_or_default();
    head.contains(&format!("${variable}:"))
}

#[cfg(test)]
mod tests {
    use async_graphql::{
        parser::{
            parse_query,
            types::{Selection, SelectionSet},
        },
        registry::{MetaType, MetaTypeName},
    };

    use super::*;
    use crate::resolvers::Catalogue;

    /// What the schema lacks of a selection.
    fn lacks(catalogue: &Catalogue, ty: &str, set: &SelectionSet) -> Vec<String> {
        let Some(MetaType::Object { fields, .. }) = catalogue.registry.types.get(ty) else {
            return vec![format!("{ty} is not an object")];
        };
        let mut lacking = Vec::new();
        for selection in &set.items {
            let Selection::Field(field) = &selection.node else {
                lacking.push(format!("{ty}: a fragment"));
                continue;
            };
            let (name, set) = (field.node.name.node.as_str(), &field.node.selection_set.node);
            let Some(declared) = fields.get(name) else {
                lacking.push(format!("{ty}.{name}"));
                continue;
            };
            let given: Vec<&str> = field.node.arguments.iter().map(|(name, _)| name.node.as_str()).collect();
            lacking.extend(
                given
                    .iter()
                    .filter(|name| !declared.args.contains_key(**name))
                    .map(|name| format!("{ty}({name})")),
            );
            let required =
                declared.args.values().filter(|arg| arg.ty.ends_with('!') && arg.default_value.is_none());
            lacking.extend(
                required
                    .filter(|arg| !given.contains(&arg.name.as_str()))
                    .map(|arg| format!("no {}", arg.name)),
            );
            if !set.items.is_empty() {
                lacking.extend(lacks(catalogue, MetaTypeName::concrete_typename(&declared.ty), set));
            }
        }
        lacking
    }

    #[test]
    fn every_operation_fits_the_schema() {
        let catalogue = crate::graphql::catalogue().unwrap();
        let parsed = parse_query(OPERATIONS).unwrap();
        let mut names = Vec::new();
        for (name, operation) in parsed.operations.iter() {
            let name = name.unwrap().as_str();
            let root = if operation.node.ty.to_string() == "query" { "Query" } else { "Mutation" };
            let lacking = lacks(&catalogue, root, &operation.node.selection_set.node);
            assert!(lacking.is_empty(), "{name}: {lacking:?}");
            // Its own text is only the operation.
            let alone = parse_query(text(name)).unwrap();
            assert_eq!(alone.operations.iter().count(), 1, "{name}");
            names.push(name.to_owned());
        }
        assert!(names.len() > 30 && text("NoSuch").is_empty());
        assert!(takes("Skills", "page") && !takes("Skills", "after") && takes("Agents", "after"));
    }
}
