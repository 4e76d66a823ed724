//! The cost limits of a GraphQL request, checked before anything is executed.
//!
//! Complexity is the executor's own limit (see [`build`](super::build)). This file limits the rest: the size of the
//! text; the number of selections, aliases, and root fields; and the depth. The executor would also count introspection
//! as depth, but every code generator's query nests deeper than data ever should (introspection is limited by the size
//! of its answer: [`AnswerBudget`](crate::read::AnswerBudget)). Validation and execution walk a fragment wherever it is
//! spread, so it counts each time: thirty fragments that each spread the next one twice are a short text with a billion
//! selections.

use std::collections::HashMap;

use async_graphql::{
    ErrorExtensionValues, Name, Positioned, ServerError,
    parser::types::{ExecutableDocument, Field, FragmentDefinition, Selection, SelectionSet},
};

use async_graphql_value::Value;

use super::introspection::is_about_schema;
use crate::{base::problem::Code, core::config::RequestLimits};

/// The longest document text, in bytes: anyone can send one.
const LONGEST_TEXT: usize = 64 << 10;
/// The maximum number of fields, fragment spreads, and inline fragments in a document: a caller's text is validated
/// before the executor's own limit applies.
const MAX_SELECTIONS: usize = 2_000;
/// The most of them with every fragment expanded where it is spread: fragments that spread each other multiply.
const MAX_WRITTEN_OUT: usize = 10_000;
/// The maximum number of root fields of an operation, including those in fragments: a caller could ask for everything
/// in one request.
const MAX_ROOTS: usize = 30;
/// The deepest nesting of braces, brackets, and parentheses: the parser is recursive, and a deep text would overflow
/// its stack.
const DEEPEST_NESTING: usize = 64;

pub struct Size {
    /// Its selections, plus the values in it.
    pub nodes: usize,
    /// Its selections with every fragment expanded.
    pub written_out: usize,
}

/// Refuses a text before it is parsed.
///
/// # Errors
/// `QUERY_TOO_COMPLEX`.
pub fn check_text(text: &str) -> Result<(), ServerError> {
    if text.len() > LONGEST_TEXT {
        return Err(too_complex(format!("A document must be at most {LONGEST_TEXT} bytes long.")));
    }
    let mut nesting = 0_usize;
    for byte in text.bytes() {
        match byte {
            b'{' | b'[' | b'(' => nesting += 1,
            b'}' | b']' | b')' => nesting = nesting.saturating_sub(1),
            _ => {}
        }
        if nesting > DEEPEST_NESTING {
            return Err(too_complex(format!("A document can nest at most {DEEPEST_NESTING} levels deep.")));
        }
    }
    Ok(())
}

/// Refuses a document before it is validated.
///
/// # Errors
/// `QUERY_TOO_COMPLEX`.
pub fn check_document(document: &ExecutableDocument, limits: &RequestLimits) -> Result<Size, ServerError> {
    let mut count = Count::default();
    for (_, operation) in document.operations.iter() {
        count.add(&operation.node.selection_set.node);
    }
    for fragment in document.fragments.values() {
        count.add(&fragment.node.selection_set.node);
    }
    if count.selections > MAX_SELECTIONS {
        return Err(too_complex(format!("A document can have at most {MAX_SELECTIONS} selections.")));
    }
    if count.aliases > limits.graphql_aliases {
        return Err(too_complex(format!(
            "A document can have at most {} aliases, not {}.",
            limits.graphql_aliases, count.aliases
        )));
    }
    let mut depths = Depths { fragments: &document.fragments, known: HashMap::new() };
    let mut written_out = 0_usize;
    for (_, operation) in document.operations.iter() {
        let depth = depths.measure(&operation.node.selection_set.node);
        if depth.roots > MAX_ROOTS {
            return Err(too_complex(format!("An operation can have at most {MAX_ROOTS} root fields.")));
        }
        written_out = written_out.saturating_add(depth.written_out);
        if written_out > MAX_WRITTEN_OUT {
            let detail =
                format!("With fragments expanded, a document can have at most {MAX_WRITTEN_OUT} selections.");
            return Err(too_complex(detail));
        }
        if depth.fields > limits.graphql_depth {
            return Err(too_complex(format!(
                "A document can nest fields at most {} levels deep.",
                limits.graphql_depth
            )));
        }
    }
    Ok(Size { nodes: count.selections + count.values, written_out })
}

/// The depth and size of a selection.
#[derive(Clone, Copy, Default)]
struct Depth {
    /// In levels of fields, not counting introspection.
    fields: usize,
    /// Its own fields, without nested ones.
    roots: usize,
    /// Everything in it, with fragments expanded.
    written_out: usize,
}

/// Measures selections. Each fragment is measured once, so that fragments which spread each other cost nothing.
struct Depths<'a> {
    fragments: &'a HashMap<Name, Positioned<FragmentDefinition>>,
    known: HashMap<&'a str, Depth>,
}

impl<'a> Depths<'a> {
    fn measure(&mut self, set: &'a SelectionSet) -> Depth {
        set.items.iter().fold(Depth::default(), |deepest, selection| {
            let depth = match &selection.node {
                Selection::Field(field) => self.field(&field.node),
                Selection::InlineFragment(fragment) => self.measure(&fragment.node.selection_set.node),
                Selection::FragmentSpread(spread) => self.fragment(spread.node.fragment_name.node.as_str()),
            };
            Depth {
                fields: deepest.fields.max(depth.fields),
                roots: deepest.roots.saturating_add(depth.roots),
                written_out: deepest.written_out.saturating_add(depth.written_out).saturating_add(1),
            }
        })
    }

    fn field(&mut self, field: &'a Field) -> Depth {
        let below = self.measure(&field.selection_set.node);
        let fields = if is_about_schema(field) { 1 } else { below.fields + 1 };
        Depth { fields, roots: 1, ..below }
    }

    fn fragment(&mut self, name: &'a str) -> Depth {
        if let Some(depth) = self.known.get(name) {
            return *depth;
        }
        // Validation refuses a fragment that spreads itself. Here the recursion only has to end.
        self.known.insert(name, Depth::default());
        let fragments = self.fragments;
        let depth = fragments
            .get(name)
            .map_or_else(Depth::default, |found| self.measure(&found.node.selection_set.node));
        self.known.insert(name, depth);
        depth
    }
}

#[derive(Default)]
struct Count {
    selections: usize,
    aliases: usize,
    values: usize,
}

impl Count {
    fn add(&mut self, set: &SelectionSet) {
        for selection in &set.items {
            self.selections += 1;
            match &selection.node {
                Selection::Field(field) => {
                    self.aliases += usize::from(field.node.alias.is_some());
                    for (_, value) in &field.node.arguments {
                        self.value(&value.node);
                    }
                    self.add(&field.node.selection_set.node);
                }
                Selection::InlineFragment(fragment) => self.add(&fragment.node.selection_set.node),
                Selection::FragmentSpread(_) => {}
            }
        }
    }

    fn value(&mut self, value: &Value) {
        self.values += 1;
        match value {
            Value::List(items) => items.iter().for_each(|item| self.value(item)),
            Value::Object(fields) => fields.values().for_each(|field| self.value(field)),
            _ => {}
        }
    }
}

fn too_complex(detail: String) -> ServerError {
    let mut extensions = ErrorExtensionValues::default();
    extensions.set("code", Code::QueryTooComplex.as_str());
    extensions.set("status", u32::from(Code::QueryTooComplex.status().as_u16()));
    ServerError { extensions: Some(extensions), ..ServerError::new(detail, None) }
}
