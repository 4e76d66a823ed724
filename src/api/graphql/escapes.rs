//! Escapes in the strings of a document, as the specification of September 2025 has them (section 2.9.4): pairs of
//! surrogates, such as `\ud83d\udc68`, and `\u{1f468}`. The parser knows only the `\uXXXX` of a whole character, so the
//! others are rewritten to that form, or to the character itself.

use std::borrow::Cow;

use async_graphql::{Pos, ServerError};

/// The same document, with escapes that the parser knows.
///
/// # Errors
/// An escape that stands for no character, such as half of a pair.
pub fn readable(text: &str) -> Result<Cow<'_, str>, ServerError> {
    if !text.contains("\\u") {
        return Ok(Cow::Borrowed(text));
    }
    let (mut out, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(start) = rest.find(['"', '#']) {
        out.push_str(&rest[..start]);
        rest = &rest[start..];
        let as_it_is = match rest {
            _ if rest.starts_with('#') => rest.find(['\n', '\r']).unwrap_or(rest.len()),
            _ if rest.starts_with("\"\"\"") => block_string(rest),
            _ => 1,
        };
        out.push_str(&rest[..as_it_is]);
        rest = &rest[as_it_is..];
        if as_it_is == 1 && out.ends_with('"') {
            rest = string(rest, &mut out).map_err(|at| refused(text, text.len() - at.len()))?;
        }
    }
    out.push_str(rest);
    Ok(Cow::Owned(out))
}

/// The length of the block string at the start. Nothing in it is an escape but `\"""`.
fn block_string(text: &str) -> usize {
    let ends = text.match_indices("\"\"\"").map(|(at, _)| at).skip(1);
    ends.filter(|at| !text[..*at].ends_with('\\')).map(|at| at + 3).next().unwrap_or(text.len())
}

/// Writes the rest of a string to `out`, with its closing quote. Returns the text after it, or the position of an
/// invalid escape.
fn string<'a>(mut rest: &'a str, out: &mut String) -> Result<&'a str, &'a str> {
    loop {
        let Some(at) = rest.find(['"', '\\', '\n', '\r']) else { return Ok(rest) };
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        if !rest.starts_with('\\') {
            // The parser refuses a line that ends inside a string.
            out.push_str(&rest[..1]);
            return Ok(&rest[1..]);
        }
        let (character, length) = match escape(rest) {
            Escape::Character(character, length) => (character, length),
            Escape::Other => {
                let length = 1 + rest[1..].chars().next().map_or(0, char::len_utf8);
                out.push_str(&rest[..length]);
                rest = &rest[length..];
                continue;
            }
            Escape::Half => return Err(rest),
        };
        match u16::try_from(u32::from(character)) {
            Ok(short) => out.push_str(&format!("\\u{short:04x}")),
            Err(_) => out.push(character),
        }
        rest = &rest[length..];
    }
}

enum Escape {
    /// A character, and the length of its escape in bytes.
    Character(char, usize),
    /// Half of a pair, or no character.
    Half,
    /// An escape of another kind, or one that the parser refuses.
    Other,
}

/// The escape at the start.
fn escape(text: &str) -> Escape {
    if let Some((digits, _)) = text.strip_prefix("\\u{").and_then(|rest| rest.split_once('}')) {
        if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Escape::Other;
        }
        let character = u32::from_str_radix(digits, 16).ok().and_then(char::from_u32);
        let length = digits.len() + "\\u{}".len();
        return character.map_or(Escape::Half, |character| Escape::Character(character, length));
    }
    let Some(first) = unit(text) else { return Escape::Other };
    let units = [first, unit(&text[6..]).unwrap_or_default()];
    let units = if (0xd800..0xdc00).contains(&first) { &units[..] } else { &units[..1] };
    match char::decode_utf16(units.iter().copied()).next() {
        Some(Ok(character)) => Escape::Character(character, 6 * units.len()),
        _ => Escape::Half,
    }
}

/// The number of the `\uXXXX` at the start.
fn unit(text: &str) -> Option<u16> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    // `from_str_radix` would accept a sign as well.
    let is_number = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_number.then(|| u16::from_str_radix(digits, 16).ok())?
}

fn refused(text: &str, at: usize) -> ServerError {
    let line_start = text[..at].rfind('\n').map_or(0, |end| end + 1);
    let pos =
        Pos { line: 1 + text[..at].matches('\n').count(), column: 1 + text[line_start..at].chars().count() };
    let message = "This escape stands for no character: half of a surrogate pair must come with its other half, \
                   as in \"\\ud83d\\udc68\", and the highest character is \\u{10ffff}.";
    ServerError::new(message, Some(pos))
}

#[cfg(test)]
mod tests {
    use async_graphql::parser::parse_query;
    use async_graphql_value::Value;

    use super::*;

    fn read(document: &str) -> Result<String, Pos> {
        let text = readable(document).map_err(|error| error.locations[0])?;
        let parsed = parse_query(&*text).unwrap_or_else(|error| panic!("{document}: {error}"));
        let operation = parsed.operations.iter().next().unwrap().1;
        let async_graphql::parser::types::Selection::Field(field) =
            &operation.node.selection_set.node.items[0].node
        else {
            panic!("{document}")
        };
        let Value::String(value) = &field.node.arguments[0].1.node else { panic!("{document}") };
        Ok(value.clone())
    }

    #[test]
    fn every_escape_is_its_character() {
        for (literal, value) in [
            (r#""\ud83d\udc68\u200D\uD83D\uDC69""#, "👨\u{200d}👩"),
            (r#""\u{1F468}\u{41}\u{000022}\u{5C}\u{a}""#, "👨A\"\\\n"),
            (r#""\u0041\\ud83d\"\ud83d\ude00""#, "A\\ud83d\"😀"),
            // In a block string nothing is an escape. The parser doesn't even read its `\"""`.
            (r#""""\ud83d \""" \u{1}""""#, r#"\ud83d \""" \u{1}"#),
            ("\"\", #\" \\ud83d\n b: \"\\u0041\"", ""),
        ] {
            assert_eq!(read(&format!("{{ f(a: {literal}) }}")).as_deref(), Ok(value), "{literal}");
        }
        assert!(matches!(readable("{ f(a: \"👨\") }"), Ok(Cow::Borrowed(_))));
    }

    #[test]
    fn what_is_no_character_is_refused_where_it_stands() {
        for bad in [r"\ud83d", r"\udc68\ud83d", r"\ud83dx", r"\ud83d\u0041", r"\u{d83d}", r"\u{110000}"] {
            assert_eq!(
                read(&format!("{{\n é: f(a: \"ä{bad}\") }}")),
                Err(Pos { line: 2, column: 12 }),
                "{bad}"
            );
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_as_pairs_is_that_text(value in "\\PC*", noise in "[\"\\\\u{}#a-f0-9\\n]{0,40}") {
            let units = value.encode_utf16().map(|unit| format!("\\u{unit:04x}")).collect::<String>();
            assert_eq!(read(&format!("{{ f(a: \"{units}\") }}")), Ok(value));
            // No text is too odd.
            let _ = readable(&noise);
        }
    }
}
