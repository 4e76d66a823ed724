//! What one GraphQL request may ask for, checked before anything is executed.
//!
//! Depth and complexity are the executor's own limits (see [`build`](super::build)); here is what it does not
//! bound: the size of the text and the number of selections, aliases and root fields.

use async_graphql::{
    ErrorExtensionValues, ServerError,
    parser::types::{ExecutableDocument, Selection, SelectionSet},
};

use crate::error::Code;

/// The longest document text, in bytes.
const LONGEST_TEXT: usize = 64 << 10;
/// The most fields, fragments spreads and inline fragments that one document may hold.
const MOST_SELECTIONS: usize = 2_000;
/// The most fields at the root of an operation.
const MOST_ROOTS: usize = 30;
/// The deepest that braces, brackets and parentheses may nest: the parser is recursive.
const DEEPEST_NESTING: usize = 64;

/// Refuses a text before it is parsed.
///
/// # Errors
/// `QUERY_TOO_COMPLEX`.
pub fn check_text(text: &str) -> Result<(), ServerError> {
    if text.len() > LONGEST_TEXT {
        return Err(too_complex(format!("A document takes at most {LONGEST_TEXT} bytes.")));
    }
    let mut nesting = 0_usize;
    for byte in text.bytes() {
        match byte {
            b'{' | b'[' | b'(' => nesting += 1,
            b'}' | b']' | b')' => nesting = nesting.saturating_sub(1),
            _ => {}
        }
        if nesting > DEEPEST_NESTING {
            return Err(too_complex(format!("A document nests at most {DEEPEST_NESTING} levels.")));
        }
    }
    Ok(())
}

/// Refuses a document before it is validated; `most_aliases` is a setting.
///
/// # Errors
/// `QUERY_TOO_COMPLEX`.
pub fn check_document(document: &ExecutableDocument, most_aliases: usize) -> Result<(), ServerError> {
    let mut count = Count::default();
    for (_, operation) in document.operations.iter() {
        let roots = operation.node.selection_set.node.items.len();
        if roots > MOST_ROOTS {
            return Err(too_complex(format!("An operation takes at most {MOST_ROOTS} root fields.")));
        }
        count.add(&operation.node.selection_set.node);
    }
    for fragment in document.fragments.values() {
        count.add(&fragment.node.selection_set.node);
    }
    if count.selections > MOST_SELECTIONS {
        return Err(too_complex(format!("A document takes at most {MOST_SELECTIONS} selections.")));
    }
    if count.aliases > most_aliases {
        return Err(too_complex(format!("A document takes at most {most_aliases} aliases.")));
    }
    Ok(())
}

#[derive(Default)]
struct Count {
    selections: usize,
    aliases: usize,
}

impl Count {
    fn add(&mut self, set: &SelectionSet) {
        for selection in &set.items {
            self.selections += 1;
            match &selection.node {
                Selection::Field(field) => {
                    self.aliases += usize::from(field.node.alias.is_some());
                    self.add(&field.node.selection_set.node);
                }
                Selection::InlineFragment(fragment) => self.add(&fragment.node.selection_set.node),
                Selection::FragmentSpread(_) => {}
            }
        }
    }
}

fn too_complex(detail: String) -> ServerError {
    let mut extensions = ErrorExtensionValues::default();
    extensions.set("code", Code::QueryTooComplex.as_str());
    extensions.set("status", u32::from(Code::QueryTooComplex.status().as_u16()));
    ServerError { extensions: Some(extensions), ..ServerError::new(detail, None) }
}
