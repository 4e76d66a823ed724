//! TOML, read into [`Node`]s.

use serde_json::Number;
use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use super::tree::{Content, Mistake, Node};
use crate::core::config::line_of;

/// The document of a text.
pub fn read(text: &str) -> Result<Node, Mistake> {
    let document = DeTable::parse(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        Mistake::new(line_of(text, at), error.message().replace('\n', ", "))
    })?;
    from_table(1, document.get_ref(), text)
}

fn from_table(at: usize, table: &DeTable<'_>, text: &str) -> Result<Node, Mistake> {
    let mut entries = Vec::with_capacity(table.len());
    for (key, value) in table {
        let mut node = from_toml(value, text)?;
        // A table's own place is its whole text; its key is where people look.
        node.line = line_of(text, key.span().start);
        entries.push((key.get_ref().to_string(), node));
    }
    Ok(Node { line: at, content: Content::Map(entries) })
}

fn from_toml(value: &Spanned<DeValue<'_>>, text: &str) -> Result<Node, Mistake> {
    let at = line_of(text, value.span().start);
    let content = match value.get_ref() {
        DeValue::String(words) => Content::Scalar(words.clone().into()),
        DeValue::Boolean(flag) => Content::Scalar((*flag).into()),
        DeValue::Integer(digits) => {
            let number = i64::from_str_radix(digits.as_str(), digits.radix());
            Content::Scalar(number.map_err(|error| Mistake::new(at, error.to_string()))?.into())
        }
        DeValue::Float(digits) => {
            let number = digits.as_str().parse().ok().and_then(Number::from_f64);
            Content::Scalar(number.ok_or_else(|| Mistake::new(at, "this is not a number"))?.into())
        }
        DeValue::Datetime(time) => Content::Scalar(time.to_string().into()),
        DeValue::Array(items) => {
            let items = items.iter().map(|item| from_toml(item, text));
            Content::List(items.collect::<Result<_, _>>()?)
        }
        DeValue::Table(table) => return from_table(at, table, text),
    };
    Ok(Node { line: at, content })
}
