//! The fields of a JSON object, without parsing their values: an ignored value costs no more than its length.
//!
//! A forwarded object is rewritten from the parsed fields, so both sides read the same: of duplicate fields the last
//! one wins, and only that one is sent. A name that another reader could confuse with a relevant one is refused.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, SeqAccess, Visitor},
};
use serde_json::{Value, value::RawValue};

use crate::bounds;

/// The fields of an object, in order.
#[derive(Debug)]
pub struct Fields<'a>(Vec<(String, Field<'a>)>);

#[derive(Debug)]
enum Field<'a> {
    Read(&'a RawValue),
    Written(String),
}

impl<'a> Fields<'a> {
    /// Reads an object. `None` for anything else, or for too many fields.
    pub fn read(bytes: &'a [u8]) -> Option<Self> {
        muster_json::from_slice(bytes).ok()
    }

    /// Reads a nested object.
    pub fn within(&self, name: &str) -> Option<Self> {
        Self::read(self.raw(name)?.as_bytes())
    }

    pub fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(own, _)| own == name)
    }

    /// A value as it is written.
    pub fn raw(&self, name: &str) -> Option<&'a str> {
        self.0.iter().find_map(|(own, field)| match field {
            Field::Read(raw) if own == name => Some(raw.get()),
            _ => None,
        })
    }

    /// A short value.
    pub fn value(&self, name: &str) -> Option<Value> {
        let raw = self.raw(name).filter(|raw| raw.len() <= bounds::TEXT)?;
        muster_json::from_str(raw).ok()
    }

    /// A short text.
    pub fn text(&self, name: &str) -> Option<String> {
        match self.value(name) {
            Some(Value::String(text)) => Some(text),
            _ => None,
        }
    }

    /// Keeps only these fields.
    pub fn retain(&mut self, names: &[&str]) {
        self.0.retain(|(own, _)| names.contains(&own.as_str()));
    }

    /// Sets a field to raw JSON.
    pub fn set(&mut self, name: &str, value: String) {
        match self.0.iter_mut().find(|(own, _)| own == name) {
            Some((_, field)) => *field = Field::Written(value),
            None => self.0.push((name.to_owned(), Field::Written(value))),
        }
    }

    /// Whether another reader could confuse a name with one of these.
    pub fn misspells(&self, names: &[&str]) -> bool {
        self.0.iter().any(|(own, _)| {
            !names.contains(&own.as_str()) && {
                let plain = plain(own);
                names.iter().any(|name| plain == self::plain(name))
            }
        })
    }

    /// The object to send, on one line, since some transports end messages at a newline.
    pub fn write(&self, size: usize) -> String {
        let mut text = String::with_capacity(size);
        text.push('{');
        for (at, (name, field)) in self.0.iter().enumerate() {
            if at > 0 {
                text.push(',');
            }
            text.push_str(&Value::from(name.as_str()).to_string());
            text.push(':');
            match field {
                // Between values a newline is a space; texts contain none.
                Field::Read(raw) if raw.get().contains(['\n', '\r']) => {
                    text.push_str(&raw.get().replace(['\n', '\r'], " "));
                }
                Field::Read(raw) => text.push_str(raw.get()),
                Field::Written(value) => text.push_str(value),
            }
        }
        text.push('}');
        text
    }
}

/// Calls `take` with each raw item of a list. False if it is not a list.
pub fn each(bytes: &[u8], mut take: impl FnMut(&[u8])) -> bool {
    struct Reading<'f, F>(&'f mut F);
    impl<'de, F: FnMut(&[u8])> Visitor<'de> for Reading<'_, F> {
        type Value = ();

        fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
            to.write_str("a list")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
            while let Some(part) = list.next_element::<&RawValue>()? {
                (self.0)(part.get().as_bytes());
            }
            Ok(())
        }
    }
    serde_json::Deserializer::from_slice(bytes).deserialize_seq(Reading(&mut take)).is_ok()
}

/// Normalizes a field name: lower case (including `ſ` and `K`), letters and digits only.
pub fn plain(name: &str) -> String {
    let upper = name.chars().flat_map(char::to_uppercase);
    upper.flat_map(char::to_lowercase).filter(|char| char.is_alphanumeric()).collect()
}

impl<'de: 'a, 'a> Deserialize<'de> for Fields<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Reading;
        impl<'de> Visitor<'de> for Reading {
            type Value = Fields<'de>;

            fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
                to.write_str("an object of a few fields")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut fields: Vec<(String, Field<'de>)> = Vec::new();
                while let Some((name, raw)) = map.next_entry::<String, &'de RawValue>()? {
                    match fields.iter().position(|(own, _)| *own == name) {
                        Some(at) => fields[at].1 = Field::Read(raw),
                        None if fields.len() < bounds::LIST => fields.push((name, Field::Read(raw))),
                        None => return Err(serde::de::Error::custom("too many fields")),
                    }
                }
                Ok(Fields(fields))
            }
        }
        from.deserialize_map(Reading)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_is_sent_as_it_was_read() {
        let mut fields = Fields::read(br#" {"a": [1, {"b" : 2}], "c":1,"c":"two", "d\n":null} "#).unwrap();
        assert_eq!(fields.write(0), r#"{"a":[1, {"b" : 2}],"c":"two","d\n":null}"#);
        assert_eq!(
            (fields.text("c").as_deref(), fields.text("a"), fields.value("x")),
            (Some("two"), None, None)
        );
        fields.set("c", "3".to_owned());
        fields.set("e", "true".to_owned());
        assert_eq!(fields.write(0), r#"{"a":[1, {"b" : 2}],"c":3,"d\n":null,"e":true}"#);
        fields.retain(&["c", "d\n"]);
        assert_eq!(fields.write(0), r#"{"c":3,"d\n":null}"#);
        for wrong in ["[]", "1", "{", "{} {}", r#"{"a":}"#, r#"{"a":[}"#, ""] {
            assert!(Fields::read(wrong.as_bytes()).is_none(), "{wrong}");
        }
        let many: Vec<String> = (0..=bounds::LIST).map(|name| format!("\"{name}\":0")).collect();
        assert!(Fields::read(format!("{{{}}}", many.join(",")).as_bytes()).is_none());
    }

    #[test]
    fn an_object_is_one_line() {
        let text = "{\"a\":\n[1,\r\n{\"b\":\"c\\n\"}\n]}\n";
        assert_eq!(Fields::read(text.as_bytes()).unwrap().write(0), r#"{"a":[1,  {"b":"c\n"} ]}"#);
        assert!(Fields::read(b"{\"a\":[\"b\nc\"]}").is_none(), "texts have no line's end");
    }

    #[test]
    fn lookalike_names_are_detected() {
        let misspells = |name: &str| {
            let text = format!("{{{}:1}}", Value::from(name));
            Fields::read(text.as_bytes()).unwrap().misspells(&["method", "params", "max_tokens"])
        };
        for name in [
            "Method",
            "METHOD",
            "paramſ",
            "PARAM\u{17f}",
            "met_hod",
            "method ",
            "MaxTokens",
            "MAX_TO\u{212a}ENS",
        ] {
            assert!(misspells(name), "{name}");
        }
        for name in ["method", "params", "max_tokens", "methods", "_meta", "max_output_tokens", ""] {
            assert!(!misspells(name), "{name}");
        }
    }
}
