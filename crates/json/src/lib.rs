//! Reads JSON that others write.
//!
//! With its feature `raw_value`, which several of our libraries need, serde_json takes an object whose first key is [`RAW`] for a text
//! that holds JSON, and reads that with a limit of depth of its own. So a few kilobytes can nest without end, overflow the stack, and
//! end the process. Here, such a key is an error. `tests/it/laws/parsers.rs` finds JSON that is read elsewhere.

use memchr::{memchr, memchr2, memmem};
use serde::{Deserialize, de::Error as _};
pub use serde_json::Error;

/// The key by which serde_json marks JSON that it has not read.
const RAW: &str = "$serde_json::private::RawValue";
/// The longest form of a key with an escape for each character, in bytes.
const LONGEST: usize = RAW.len() * 6;

/// Reads a value.
///
/// # Errors
/// It is not JSON, not of this type, nested more than 128 deep, or has a key that is not allowed.
pub fn from_slice<'a, T: Deserialize<'a>>(json: &'a [u8]) -> Result<T, Error> {
    check(json)?;
    serde_json::from_slice(json)
}

/// Reads a value.
///
/// # Errors
/// See [`from_slice`].
pub fn from_str<'a, T: Deserialize<'a>>(json: &'a str) -> Result<T, Error> {
    check(json.as_bytes())?;
    serde_json::from_str(json)
}

/// Checks JSON that a library reads afterwards.
///
/// # Errors
/// It has a key that is not allowed.
pub fn check(json: &[u8]) -> Result<(), Error> {
    let is_plain = memmem::find(json, RAW.as_bytes()).is_some();
    // Its characters can be written only in this way.
    let is_escaped = || memmem::find(json, br"\u").is_some();
    if (is_plain || is_escaped()) && has_key(json) {
        return Err(Error::custom(format_args!("the key {RAW} is not allowed")));
    }
    Ok(())
}

/// Whether the key stands in JSON, however it is written. What is not JSON may be taken for it.
fn has_key(json: &[u8]) -> bool {
    let mut rest = json;
    while let Some(begin) = memchr(b'"', rest) {
        let Some(from) = rest.get(begin..) else { return false };
        let Some(length) = string_length(from) else { return false };
        let (string, after) = from.split_at(length);
        let is_key = after.trim_ascii_start().starts_with(b":");
        if is_key
            && length <= LONGEST + 2
            && serde_json::from_slice::<String>(string).is_ok_and(|key| key == RAW)
        {
            return true;
        }
        rest = after;
    }
    false
}

/// The length of the string that JSON begins with, with its quotes.
fn string_length(json: &[u8]) -> Option<usize> {
    let mut at = 1;
    loop {
        let found = at + memchr2(b'"', b'\\', json.get(at..)?)?;
        if json.get(found) == Some(&b'"') {
            return Some(found + 1);
        }
        at = found + 2;
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use serde_json::Value;

    use super::*;

    /// JSON that nests without end, although no reader sees more than 128 levels at once.
    fn nested(levels: usize) -> String {
        let mut text = "0".to_owned();
        for _ in 0..levels {
            let inner = text.replace('\\', r"\u005c").replace('"', r"\u0022");
            text = format!("{}{{\"{RAW}\":\"{inner}\"}}{}", "[".repeat(120), "]".repeat(120));
        }
        text
    }

    #[test]
    fn json_that_nests_without_end_is_refused() {
        let read = || from_str::<Value>(&nested(3)).map_err(|error| error.to_string());
        // A worker's stack.
        let read = thread::Builder::new().stack_size(2 << 20).spawn(read).unwrap().join().unwrap();
        assert_eq!(read.unwrap_err(), format!("the key {RAW} is not allowed"));
    }

    #[test]
    fn the_key_is_found_however_it_is_written() {
        let escaped: String = RAW.chars().map(|c| format!("\\u{:04x}", u32::from(c))).collect();
        let half = RAW.replace('R', r"\u0052");
        for key in [RAW, &escaped, &escaped.to_uppercase().replace("\\U", "\\u"), &half] {
            for json in [
                format!(r#"{{"{key}":"1"}}"#),
                format!(r#"[{{"a":"\\","{key}" : "1"}}]"#),
                format!("{{\"a\\u0062\":1,\"{key}\"\n:\"1\"}}"),
            ] {
                assert!(from_str::<Value>(&json).is_err(), "{json}");
                assert!(from_slice::<Value>(json.as_bytes()).is_err(), "{json}");
            }
            for json in [
                format!(r#"["{key}"]"#),
                format!(r#"{{"a":"{key}"}}"#),
                format!(r#"{{"a":"\"{key}\":","b\u0062":1}}"#),
                format!(r#"{{"x{key}":1}}"#),
            ] {
                assert!(from_str::<Value>(&json).is_ok(), "{json}");
            }
        }
        assert!(from_str::<Value>(r#"{"a": {"b": [1, "\u00e9"]}}"#).is_ok());
        for broken in ["", "\"", "\"\\", "{\"\\u", "\u{feff}"] {
            assert!(from_str::<Value>(broken).is_err(), "{broken}");
        }
    }
}
