//! The headers `Content-Type` and `Content-Disposition`, with their parameters (RFC 2045, RFC 2231).
//!
//! Programs write parameters in more ways than the standards allow: unquoted, as encoded words, as raw bytes of a
//! charset, in pieces. All are read, in any charset known to `charset.rs`.

use std::collections::BTreeMap;

use super::{charset, encoded_words};

/// A type (`text/plain`) or a disposition (`attachment`), with its parameters by lower-case name.
#[derive(Clone, Debug, Default)]
pub struct ContentType {
    pub kind: String,
    /// Empty if missing.
    pub subtype: String,
    params: BTreeMap<String, String>,
}

impl ContentType {
    /// Reads a header's value. `name`: the charset of bytes outside of encoded words.
    pub fn read(written: &[u8], name: Option<&str>) -> Option<Self> {
        let mut sections = split_sections(written);
        let first = sections.next()?;
        let first = String::from_utf8_lossy(&first).to_ascii_lowercase();
        let mut words = first.split_ascii_whitespace();
        let (kind, subtype) =
            words.next().map_or(("", ""), |word| word.split_once('/').unwrap_or((word, "")));
        let (kind, subtype) = (kind.to_owned(), subtype.to_owned());
        let mut found = BTreeMap::<String, Param>::new();
        // `text/plain charset=utf-8`
        let forgotten: Vec<Vec<u8>> = words.map(|word| word.as_bytes().to_vec()).collect();
        for section in forgotten.into_iter().chain(sections) {
            Param::add(&section, &mut found);
        }
        let params = found.into_iter().map(|(key, param)| (key, param.decode(name))).collect();
        Some(Self { kind, subtype, params }).filter(|found| !found.kind.is_empty())
    }

    pub fn is(&self, kind: &str, subtype: &str) -> bool {
        self.kind == kind && self.subtype == subtype
    }

    pub fn param(&self, name: &str) -> Option<&str> {
        self.params.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }
}

/// Splits a value at semicolons outside of quotes, without comments, quotes and insignificant blanks.
fn split_sections(written: &[u8]) -> impl Iterator<Item = Vec<u8>> + '_ {
    let mut rest = Some(written);
    std::iter::from_fn(move || {
        let (mut section, mut quoted, mut escaped, mut depth) = (Section::default(), false, false, 0_usize);
        let text = rest.take()?;
        for (at, byte) in text.iter().copied().enumerate() {
            match byte {
                b'\r' | b'\n' => {}
                _ if depth > 0 => match byte {
                    _ if escaped => escaped = false,
                    b'\\' => escaped = true,
                    b'(' => depth += 1,
                    b')' => depth -= 1,
                    _ => {}
                },
                _ if escaped => {
                    escaped = false;
                    section.push(byte, true);
                }
                b'\\' if quoted => escaped = true,
                b'"' => quoted = !quoted,
                // A comment follows a blank: `charset=utf-8 (Unicode)`, but `name=a(1).pdf`.
                b'(' if !quoted && (section.blank || section.bytes.is_empty()) => depth += 1,
                b';' if !quoted => {
                    rest = text.get(at + 1..);
                    return Some(section.bytes);
                }
                byte => section.push(byte, quoted),
            }
        }
        Some(section.bytes)
    })
}

/// A section of a value.
#[derive(Default)]
struct Section {
    bytes: Vec<u8>,
    /// Whether a blank precedes the next byte.
    blank: bool,
}

impl Section {
    /// Adds a byte. Blanks around the equals sign and at both ends are insignificant.
    fn push(&mut self, byte: u8, quoted: bool) {
        let byte = if byte == b'\t' { b' ' } else { byte };
        if byte == b' ' && !quoted {
            self.blank = true;
            return;
        }
        let means = self.bytes.last().is_some_and(|last| *last != b'=') && (quoted || byte != b'=');
        if std::mem::take(&mut self.blank) && means {
            self.bytes.push(b' ');
        }
        self.bytes.push(byte);
    }
}

/// A raw parameter.
#[derive(Default)]
struct Param {
    plain: Option<Vec<u8>>,
    /// Numbered pieces (RFC 2231), and whether each is encoded. They take precedence over `plain`.
    pieces: BTreeMap<u32, (bool, Vec<u8>)>,
}

impl Param {
    /// Adds `name=value`, `name*=charset''value`, `name*0=value` or `name*0*=charset''value`. The first of a name
    /// counts.
    fn add(section: &[u8], found: &mut BTreeMap<String, Self>) {
        let Some(equals) = section.iter().position(|byte| *byte == b'=') else { return };
        let (name, value) = section.split_at(equals);
        let value = value.get(1..).unwrap_or_default().to_vec();
        let name = String::from_utf8_lossy(name).trim().to_ascii_lowercase();
        let (name, piece) = name.split_once('*').map_or((&*name, None), |(name, piece)| (name, Some(piece)));
        let param = found.entry(name.to_owned()).or_default();
        let Some(piece) = piece else {
            param.plain.get_or_insert(value);
            return;
        };
        let is_encoded = piece.is_empty() || piece.ends_with('*');
        let number = piece.trim_end_matches('*');
        if let Some(number) = if number.is_empty() { Some(0) } else { number.parse().ok() } {
            param.pieces.entry(number).or_insert((is_encoded, value));
        }
    }

    fn decode(self, name: Option<&str>) -> String {
        let Some((is_encoded, first)) = self.pieces.get(&0) else {
            return encoded_words::decode_text(&self.plain.unwrap_or_default(), name);
        };
        // `utf-8'en'a%20b`
        let mut parts = first.splitn(3, |byte| *byte == b'\'');
        let (own, value) = match (parts.next(), parts.next(), parts.next()) {
            (Some(own), Some(_), Some(value)) if *is_encoded => (std::str::from_utf8(own).ok(), value),
            _ => (None, first.as_slice()),
        };
        let decoded = |is_encoded: bool, value: &[u8]| {
            if is_encoded { encoded_words::decode_escapes(value, b'%') } else { value.to_vec() }
        };
        let mut bytes = decoded(*is_encoded, value);
        for (is_encoded, value) in self.pieces.values().skip(1) {
            bytes.extend(decoded(*is_encoded, value));
        }
        match own.filter(|own| !own.is_empty()) {
            Some(own) => charset::decode(Some(own), &bytes),
            None => encoded_words::decode_text(&bytes, name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(value: &str) -> ContentType {
        ContentType::read(value.as_bytes(), None).unwrap()
    }

    #[test]
    fn types_are_read_as_programs_write_them() {
        for (value, kind, subtype, charset) in [
            (" text/plain; charset=utf-8\r\n", "text", "plain", Some("utf-8")),
            ("TEXT/HTML; CHARSET=\"GBK\"", "text", "html", Some("GBK")),
            ("text/plain; charset = us-ascii (plain)", "text", "plain", Some("us-ascii")),
            ("text/plain charset=utf-8", "text", "plain", Some("utf-8")),
            ("text/plain;;charset=a;charset=b", "text", "plain", Some("a")),
            ("(comment) text/plain (one; two)", "text", "plain", None),
            ("text", "text", "", None),
            ("attachment", "attachment", "", None),
            ("text/plain; charset=\"\"", "text", "plain", None),
        ] {
            let read = of(value);
            assert_eq!(
                (&*read.kind, &*read.subtype, read.param("charset")),
                (kind, subtype, charset),
                "{value}"
            );
        }
        for nothing in ["", " \r\n", ";", "/"] {
            assert!(ContentType::read(nothing.as_bytes(), None).is_none(), "{nothing:?}");
        }
    }

    #[test]
    fn names_of_files_are_read_as_programs_write_them() {
        for (params, expected) in [
            ("filename=a.pdf", "a.pdf"),
            ("filename=a b(1).pdf", "a b(1).pdf"),
            ("filename=\"a; b.pdf\"", "a; b.pdf"),
            ("filename=\"a \\\"b\\\".pdf\"", "a \"b\".pdf"),
            ("filename=\"a\r\n b.pdf\"", "a b.pdf"),
            ("filename=\"grüße.pdf\"", "grüße.pdf"),
            ("filename=\"=?gb2312?B?xOO6ww==?=.pdf\"", "你好.pdf"),
            ("filename=\"=?utf-8?Q?=E4=BD?=\r\n =?utf-8?Q?=A0?=.pdf\"", "你.pdf"),
            ("filename==?iso-2022-jp?B?GyRCRnxLXBsoQg==?=", "日本"),
            ("filename*=utf-8''gr%C3%BC%C3%9Fe.pdf", "grüße.pdf"),
            ("filename*=iso-8859-1'de'gr%FC%DFe.pdf", "grüße.pdf"),
            ("filename*=\"UTF-8''a%20b.pdf\"", "a b.pdf"),
            ("filename*=a%20b.pdf", "a b.pdf"),
            ("filename=plain.pdf; filename*=utf-8''b%C3%A4.pdf", "bä.pdf"),
            // In pieces, also out of order, and cut within a character.
            ("filename*0=long; filename*1=\" name\"; filename*2=.pdf", "long name.pdf"),
            ("filename*1*=%BA%C3.pdf; filename*0*=gb2312''%C4%E3", "你好.pdf"),
            ("filename*0*=euc-kr''%BE; filename*1*=%C8; filename*2=\".pdf\"", "안.pdf"),
            ("filename*0*=utf-8''%E4%BD; filename*1*=%A0.pdf", "你.pdf"),
            ("filename*0=\"=?utf-8?B?5L2g\"; filename*1=\"5aW9?=.pdf\"", "你好.pdf"),
        ] {
            let read = of(&format!("attachment; {params}; size=5"));
            assert_eq!((read.param("filename"), read.param("size")), (Some(expected), Some("5")), "{params}");
        }
        let raw = ContentType::read(b"attachment; filename=\"\xc4\xe3.pdf\"", Some("gbk")).unwrap();
        assert_eq!(raw.param("filename"), Some("你.pdf"));
    }
}
