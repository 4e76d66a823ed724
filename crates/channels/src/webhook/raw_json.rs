//! JSON as written: members are slices of the text, so that numbers keep all digits, and only strings are decoded.
//!
//! Numbers may have any length (RFC 8259 §6), and conversion to a float would change them. So the text is validated
//! once, and then sliced. Nothing here recurses, and each function scans the text once.

use serde::de::{DeserializeOwned, IgnoredAny};

/// Valid JSON, without surrounding whitespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawJson<'a>(&'a str);

impl<'a> RawJson<'a> {
    /// Validates a text. `None`: not JSON.
    pub fn of(text: &'a str) -> Option<Self> {
        muster_json::from_str::<IgnoredAny>(text).is_ok().then(|| Self(text.trim_matches(is_space)))
    }

    pub const fn text(self) -> &'a str {
        self.0
    }

    pub fn is_empty_object(self) -> bool {
        self.0.strip_prefix('{').is_some_and(|rest| rest.trim_start_matches(is_space).starts_with('}'))
    }

    /// Whether the text begins with this character, which tells its type.
    pub fn begins(self, sign: char) -> bool {
        self.0.starts_with(sign)
    }

    /// A member of an object, the last of that name; or an item of an array.
    pub fn get(self, name: &str) -> Option<Self> {
        if self.begins('[') {
            let nth: usize = name.parse().ok()?;
            return Values(self.0.get(1..)?).nth(nth);
        }
        let mut values = Values(self.0.strip_prefix('{')?);
        let mut found = None;
        while let Some((key, value)) = values.next().zip(values.next()) {
            if key.is(name) {
                found = Some(value);
            }
        }
        found
    }

    pub fn read<T: DeserializeOwned>(self) -> Result<T, muster_json::Error> {
        muster_json::from_str(self.0)
    }

    /// Whether this is a given string.
    fn is(self, text: &str) -> bool {
        match self.0.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) {
            Some(inner) if !inner.contains('\\') => inner == text,
            Some(_) => self.read::<String>().is_ok_and(|read| read == text),
            None => false,
        }
    }

    /// Without spaces and unneeded escapes.
    pub fn compact(self) -> String {
        let mut written = String::with_capacity(self.0.len());
        for token in Tokens(self.0) {
            push_token(&mut written, token);
        }
        written
    }

    /// On indented lines, up to a maximum length: deep nesting may consist of indentation alone.
    pub fn indented(self, most: usize) -> Option<String> {
        let (mut written, mut depth, mut is_fresh) = (String::new(), 0_usize, false);
        for token in Tokens(self.0) {
            let is_end = matches!(token, "}" | "]");
            depth -= usize::from(is_end);
            // Empty brackets stay together.
            if (is_fresh && !is_end) || (is_end && !is_fresh) || written.ends_with(",\n") {
                let breaks = if written.ends_with('\n') { "" } else { "\n" };
                written.push_str(breaks);
                written.extend(std::iter::repeat_n("  ", depth));
            }
            is_fresh = matches!(token, "{" | "[");
            depth += usize::from(is_fresh);
            push_token(&mut written, token);
            match token {
                "," => written.push('\n'),
                ":" => written.push(' '),
                _ => {}
            }
            if written.len() + 2 * depth > most {
                return None;
            }
        }
        Some(written)
    }
}

/// Writes a token. Strings lose unneeded escapes: some senders escape everything but ASCII.
fn push_token(written: &mut String, token: &str) {
    let read = token.contains('\\').then(|| muster_json::from_str::<String>(token).ok()).flatten();
    match read.and_then(|read| serde_json::to_string(&read).ok()) {
        Some(plain) => written.push_str(&plain),
        None => written.push_str(token),
    }
}

/// Replaces lone surrogates (RFC 8259 §8.2), which no text can contain.
pub fn replace_lone_surrogates(text: &str) -> String {
    let mut whole = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        whole.push_str(before);
        let is_pair = |escape: &str| {
            matches!(escaped_unit(escape), Some(0xD800..=0xDBFF))
                && matches!(escape.get(6..).and_then(escaped_unit), Some(0xDC00..=0xDFFF))
        };
        let length = match escaped_unit(escape) {
            Some(0xD800..=0xDFFF) if is_pair(escape) => 12,
            Some(0xD800..=0xDFFF) => {
                whole.push_str("\\ufffd");
                rest = escape.get(6..).unwrap_or_default();
                continue;
            }
            Some(_) => 6,
            // Any character after the backslash: one byte in JSON, any length otherwise.
            None => 1 + escape.chars().nth(1).map_or(0, char::len_utf8),
        };
        let (kept, after) = escape.split_at(length);
        whole.push_str(kept);
        rest = after;
    }
    whole.push_str(rest);
    whole
}

/// The code unit of a Unicode escape at the beginning.
fn escaped_unit(text: &str) -> Option<u32> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    u32::from_str_radix(digits, 16).ok().filter(|_| digits.bytes().all(|digit| digit.is_ascii_hexdigit()))
}

const fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\r')
}

/// The remaining values of an object or array; keys and values of an object alternate.
struct Values<'a>(&'a str);

impl<'a> Iterator for Values<'a> {
    type Item = RawJson<'a>;

    fn next(&mut self) -> Option<RawJson<'a>> {
        let from = self.0.trim_start_matches(|c| is_space(c) || matches!(c, ',' | ':'));
        if from.is_empty() || from.starts_with(['}', ']']) {
            return None;
        }
        let mut depth = 0_usize;
        let mut tokens = Tokens(from);
        for token in tokens.by_ref() {
            match token {
                "{" | "[" => depth += 1,
                "}" | "]" => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                break;
            }
        }
        let (value, rest) = from.split_at(from.len() - tokens.0.len());
        self.0 = rest;
        Some(RawJson(value))
    }
}

/// The tokens of JSON, without whitespace.
struct Tokens<'a>(&'a str);

impl<'a> Iterator for Tokens<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let from = self.0.trim_start_matches(is_space);
        let length = match from.as_bytes().first()? {
            b'"' => string_length(from.as_bytes()),
            b'{' | b'}' | b'[' | b']' | b',' | b':' => 1,
            _ => from.find(|c| is_space(c) || matches!(c, ',' | ':' | '}' | ']')).unwrap_or(from.len()),
        };
        let (token, rest) = from.split_at(length);
        self.0 = rest;
        Some(token)
    }
}

/// Length of the string at the beginning.
fn string_length(json: &[u8]) -> usize {
    let mut at = 1;
    while let Some(byte) = json.get(at) {
        match byte {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    json.len()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    #[test]
    fn numbers_and_order_stay_as_they_are_written() {
        let text = r#" {"b" : 1000000000000000000001, "a":[1.10, -0.0,1e400 ,{}, [] ], "é\u00e9\"": "\u20ac \/ \n"}"#;
        let source = RawJson::of(text).unwrap();
        let compact = r#"{"b":1000000000000000000001,"a":[1.10,-0.0,1e400,{},[]],"éé\"":"€ / \n"}"#;
        assert_eq!(source.compact(), compact);
        let indented = "{\n  \"b\": 1000000000000000000001,\n  \"a\": [\n    1.10,\n    -0.0,\n    1e400,\n    {},\n    []\n  ],\n  \
                        \"éé\\\"\": \"€ / \\n\"\n}";
        assert_eq!(source.indented(1_000).as_deref(), Some(indented));
        assert_eq!(source.indented(50), None);
        let at =
            |path: &[&str]| path.iter().try_fold(source, |value, step| value.get(step)).map(RawJson::text);
        assert_eq!(at(&["b"]), Some("1000000000000000000001"));
        assert_eq!(at(&["a", "2"]), Some("1e400"));
        assert_eq!(at(&["éé\""]), Some(r#""\u20ac \/ \n""#));
        for nothing in [&["c"][..], &["a", "5"], &["a", "x"], &["b", "0"], &["a", "3", "x"]] {
            assert_eq!(at(nothing), None, "{nothing:?}");
        }
        let twice = RawJson::of(r#"{"a":1,"a":2}"#).unwrap();
        assert_eq!(twice.get("a").unwrap().text(), "2");
    }

    #[test]
    fn invalid_json_is_refused() {
        for text in
            ["", " ", "{", "{} {}", "01", "1.", "\"\n\"", "[1,]", "nul", "\u{feff}{}", "{a:1}", r#"["\x"]"#]
        {
            assert_eq!(RawJson::of(text), None, "{text}");
        }
    }

    #[test]
    fn lone_surrogates_are_replaced() {
        for (text, expected) in [
            (r#""\ud83d""#, r#""\ufffd""#),
            (r#""\uDE00x""#, r#""\ufffdx""#),
            (r#""\ud83d\ude00""#, r#""\ud83d\ude00""#),
            (r#""\ud83d\ud83d\ude00\ude00""#, r#""\ufffd\ud83d\ude00\ufffd""#),
            (r#""\\ud83d \u00e9 \n""#, r#""\\ud83d \u00e9 \n""#),
            (r#""\ud83"#, r#""\ud83"#),
            ("\"\\é\\", "\"\\é\\"),
            (r"\u+12f", r"\u+12f"),
        ] {
            assert_eq!(replace_lone_surrogates(text), expected, "{text}");
        }
    }

    fn values() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            ".{0,8}".prop_map(Value::from)
        ];
        leaf.prop_recursive(5, 40, 5, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                proptest::collection::vec((".{0,4}", inner), 0..5)
                    .prop_map(|members| Value::Object(members.into_iter().collect()))
            ]
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn it_formats_like_serde(value in values()) {
            let (compact, pretty) = (serde_json::to_string(&value).unwrap(), serde_json::to_string_pretty(&value).unwrap());
            for text in [&compact, &pretty] {
                let source = RawJson::of(text).unwrap();
                prop_assert_eq!(&source.compact(), &compact);
                let indented = source.indented(usize::MAX / 2);
                prop_assert_eq!(indented.as_ref(), Some(&pretty));
            }
        }

        #[test]
        fn written_json_stays_valid(text in "[\\[\\]{},:\"\\\\u0d8ef1.e \\n+-]{0,60}") {
            if let Some(source) = RawJson::of(&replace_lone_surrogates(&text)) {
                prop_assert!(RawJson::of(&source.compact()).is_some());
                prop_assert!(source.indented(10_000).is_some());
            }
        }
    }
}
