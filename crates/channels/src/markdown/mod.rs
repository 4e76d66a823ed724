//! Renders agents' Markdown (CommonMark with tables and strikethrough) in each vendor's dialect, split into short
//! enough parts; and people's plain text.
//!
//! ```text
//! markdown ──▶ nesting limited ──▶ pieces (text, breaks, marks) ──▶ parts with their marks closed and reopened
//! ```
//!
//! A part ends at the end of a block, if that leaves it at least half full; else at a line, at a word, and only then
//! within one. Marks never cross parts: open marks, code fences included, are closed at the end and reopened in the
//! next part.
//!
//! - `nesting.rs`: limits nesting, in which the parser is quadratic;
//! - `pieces.rs`: from the syntax tree to pieces; `table.rs`: tables as lines of text.
//! - `dialect.rs`: markup and escaping; `writer.rs`: splitting; `mentions.rs`: disables mass mentions.

mod dialect;
mod mentions;
mod nesting;
mod pieces;
mod table;
mod writer;

use crate::contract::{Dialect, Longest, Rendered, Unit};

/// Renders a text in as many parts as it needs, up to 100, the last of which then refers to the rest. An empty text has
/// none. Markdown without visible text, such as an empty code fence or a link definition, is written literally:
/// vendors reject empty messages.
///
/// Time and output depend only on the text's length: nesting is limited, a link takes at most a quarter of a part, and
/// tables aren't padded to many times their length.
///
/// `longest` is at least 600, which fits the deepest nesting of marks.
pub fn render(markdown: &str, dialect: Dialect, longest: Longest) -> Vec<Rendered> {
    let bounded = nesting::limit_nesting(markdown);
    let (pieces, needless) = pieces::parse(&bounded, dialect, longest.count);
    let mut parts = writer::write(&pieces, dialect, longest);
    if parts.is_empty() {
        parts = render_plain(markdown.trim(), dialect, longest);
    }
    match <[Rendered; 1]>::try_from(parts) {
        // Nothing was split, so the original text may stay.
        Ok([whole]) if dialect == Dialect::Markdown => {
            keep_original(&bounded.without(&needless), whole, longest)
        }
        Ok(whole) => whole.into(),
        Err(parts) => parts,
    }
}

/// Renders a text literally, split like [`render`]'s.
pub fn render_plain(text: &str, dialect: Dialect, longest: Longest) -> Vec<Rendered> {
    writer::write(&pieces::parse_literal(text, dialect, longest.count), dialect, longest)
}

fn keep_original(markdown: &str, whole: Rendered, longest: Longest) -> Vec<Rendered> {
    let text = mentions::neutralize_markdown(markdown.trim());
    vec![if longest.unit.length(&text) <= longest.count { Rendered { text, ..whole } } else { whole }]
}

impl Unit {
    /// The length of a text without markup.
    pub(crate) fn length(self, text: &str) -> usize {
        match self {
            Self::Characters => text.chars().count(),
            Self::VisibleUtf16 => text.encode_utf16().count(),
        }
    }
}

#[cfg(test)]
mod tests;
