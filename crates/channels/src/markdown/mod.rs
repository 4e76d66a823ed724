//! What agents write (CommonMark with tables and strikethrough), as each vendor's people read it, in parts that are short enough;
//! and what people write, who mean no markup.
//!
//! ```text
//! markdown ──▶ no deep nests ──▶ pieces (words, breaks, marks that open and close) ──▶ parts, each with its marks closed and reopened
//! ```
//!
//! A part ends where a block ends, if that leaves it at least half full; else at a line, a word, and only then within one. Marks
//! never cross a part: what is open is closed at its end and opened again in the next one, code fences too.
//!
//! - `nests.rs`: no nest is deeper than the parser is quick;
//! - `pieces.rs`: from the syntax tree to pieces; `table.rs`: tables as lines of text.
//! - `dialect.rs`: how each dialect writes marks and text; `writer.rs`: where parts end; `mentions.rs`: nobody calls everybody.

mod dialect;
mod mentions;
mod nests;
mod pieces;
mod table;
mod writer;

use crate::contract::{Dialect, Longest, Rendered, Unit};

/// Renders a text, in as many parts as it needs, or in 100, of which the last says where the rest is. An empty text has none.
/// Markdown that shows no words, such as an empty code fence or the definition of a link, is written letter by letter: vendors
/// take no empty message.
///
/// How long it takes, and how much becomes of a text, depends on its length only: marks are nested only so deep, no link takes more than a quarter of
/// a part, and no table is padded to many times its length.
///
/// `longest` is at least 600, which holds the deepest nesting of marks.
pub fn render(markdown: &str, dialect: Dialect, longest: Longest) -> Vec<Rendered> {
    let bounded = nests::bounded(markdown);
    let (pieces, needless) = pieces::of(&bounded, dialect, longest.count);
    let mut parts = writer::write(&pieces, dialect, longest);
    if parts.is_empty() {
        parts = render_plain(markdown.trim(), dialect, longest);
    }
    match <[Rendered; 1]>::try_from(parts) {
        // Nothing was split, so it may stay as it was written.
        Ok([whole]) if dialect == Dialect::Markdown => {
            as_written(&bounded.without(&needless), whole, longest)
        }
        Ok(whole) => whole.into(),
        Err(parts) => parts,
    }
}

/// Renders a text letter by letter, as [`render`] does markdown.
pub fn render_plain(text: &str, dialect: Dialect, longest: Longest) -> Vec<Rendered> {
    writer::write(&pieces::verbatim(text, dialect, longest.count), dialect, longest)
}

fn as_written(markdown: &str, whole: Rendered, longest: Longest) -> Vec<Rendered> {
    let text = mentions::in_markdown(markdown.trim());
    vec![if longest.unit.length(&text) <= longest.count { Rendered { text, ..whole } } else { whole }]
}

impl Unit {
    /// How long a text without marks is.
    pub(crate) fn length(self, text: &str) -> usize {
        match self {
            Self::Characters => text.chars().count(),
            Self::VisibleUtf16 => text.encode_utf16().count(),
        }
    }
}

#[cfg(test)]
mod tests;
