//! Encoded words of headers (RFC 2047), in any charset known to `charset.rs`.
//!
//! Adjacent words of one charset are joined before decoding: many programs split characters. Structured headers, such
//! as lists of addresses, are decoded by mail-parser after it has found the structure, with their words in UTF-8.

use std::borrow::Cow;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use mail_parser::decoders::base64::base64_decode;

use super::charset;

/// Bytes of an encoded word: RFC 2047 allows 75, and programs write more. Bounds the search for the end of each of a
/// stranger's many words.
pub const LONGEST_WORD: usize = 1_000;

/// Decodes an unstructured header. `name`: the charset of bytes outside of encoded words, if they aren't UTF-8.
pub fn decode_text(written: &[u8], name: Option<&str>) -> String {
    let mut text = String::new();
    for piece in split_pieces(written) {
        match piece {
            Piece::Plain(bytes) => push_plain(bytes, name, &mut text),
            // A word may contain line ends, which a header can't.
            Piece::Decoded(words) => text.extend(words.chars().map(|c| if c.is_control() { ' ' } else { c })),
        }
    }
    text.trim().to_owned()
}

/// Recodes a header's words in UTF-8.
pub fn recode_utf8(written: &[u8]) -> Cow<'_, [u8]> {
    let pieces = split_pieces(written);
    if let [Piece::Plain(all)] = pieces.as_slice() {
        return Cow::Borrowed(all);
    }
    let mut header = Vec::with_capacity(written.len());
    for piece in pieces {
        match piece {
            Piece::Plain(bytes) => header.extend_from_slice(bytes),
            Piece::Decoded(words) if words.is_empty() => {}
            Piece::Decoded(words) => {
                header.extend_from_slice(format!("=?utf-8?B?{}?=", STANDARD.encode(words)).as_bytes());
            }
        }
    }
    Cow::Owned(header)
}

/// Adds text outside of words, with blanks and line ends collapsed.
fn push_plain(bytes: &[u8], name: Option<&str>, text: &mut String) {
    let words = charset::decode_header(name, bytes);
    let is_blank = |c: char| matches!(c, ' ' | '\t' | '\r' | '\n');
    let mut space = false;
    for c in words.chars() {
        if !is_blank(c) {
            text.push(c);
        } else if !space {
            text.push(' ');
        }
        space = is_blank(c);
    }
}

enum Piece<'a> {
    Plain(&'a [u8]),
    /// Adjacent encoded words.
    Decoded(String),
}

fn split_pieces(written: &[u8]) -> Vec<Piece<'_>> {
    let (mut pieces, mut from, mut at) = (Vec::new(), 0, 0);
    while let Some(begin) = find_next(written, at) {
        let Some((length, words)) = decode_adjacent(written.get(begin..).unwrap_or_default()) else {
            at = begin + 2;
            continue;
        };
        pieces.push(Piece::Plain(written.get(from..begin).unwrap_or_default()));
        pieces.push(Piece::Decoded(words));
        (from, at) = (begin + length, begin + length);
    }
    pieces.push(Piece::Plain(written.get(from..).unwrap_or_default()));
    pieces
}

/// The next possible encoded word.
fn find_next(written: &[u8], at: usize) -> Option<usize> {
    written.get(at..)?.windows(2).position(|pair| pair == b"=?").map(|found| at + found)
}

/// Decodes the adjacent words at the beginning. Also returns their length.
fn decode_adjacent(text: &[u8]) -> Option<(usize, String)> {
    let first = Word::read(text)?;
    let (mut length, mut name, mut bytes) = (first.length, first.charset, first.bytes);
    let mut words = String::new();
    loop {
        let rest = text.get(length..).unwrap_or_default();
        let blank = rest.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        let Some(word) = rest.get(blank..).and_then(Word::read) else { break };
        length += blank + word.length;
        if word.charset.eq_ignore_ascii_case(name) {
            bytes.extend(word.bytes);
        } else {
            words.push_str(&charset::decode(Some(name), &bytes));
            (name, bytes) = (word.charset, word.bytes);
        }
    }
    words.push_str(&charset::decode(Some(name), &bytes));
    Some((length, words))
}

struct Word<'a> {
    length: usize,
    charset: &'a str,
    bytes: Vec<u8>,
}

impl<'a> Word<'a> {
    /// Reads the word at the beginning: `=?charset?q?text?=`.
    fn read(text: &'a [u8]) -> Option<Self> {
        let text = text.get(..LONGEST_WORD).unwrap_or(text);
        let inside = text.strip_prefix(b"=?")?;
        let mut parts = inside.splitn(3, |byte| *byte == b'?');
        let charset = std::str::from_utf8(parts.next()?).ok()?;
        let is_name = !charset.is_empty() && charset.bytes().all(|byte| byte.is_ascii_graphic());
        let (encoding, rest) = (parts.next().filter(|_| is_name)?, parts.next()?);
        let end = rest.windows(2).position(|pair| pair == b"?=")?;
        let encoded = rest.get(..end)?;
        let bytes = match encoding {
            b"q" | b"Q" => decode_q(encoded),
            b"b" | b"B" if encoded.is_empty() => Vec::new(),
            b"b" | b"B" => base64_decode(encoded)?,
            _ => return None,
        };
        let length = b"=?".len() + charset.len() + b"?q?".len() + end + b"?=".len();
        // A language may follow the charset (RFC 2231, 5).
        let charset = charset.split('*').next().unwrap_or(charset);
        Some(Self { length, charset, bytes })
    }
}

/// Decodes the Q encoding: `_` is a space.
fn decode_q(encoded: &[u8]) -> Vec<u8> {
    let encoded: Vec<u8> = encoded.iter().map(|byte| if *byte == b'_' { b' ' } else { *byte }).collect();
    decode_escapes(&encoded, b'=')
}

/// Decodes bytes written as a sign and two hexadecimal digits.
pub fn decode_escapes(encoded: &[u8], sign: u8) -> Vec<u8> {
    let (mut bytes, mut rest) = (Vec::with_capacity(encoded.len()), encoded);
    while let Some((&byte, after)) = rest.split_first() {
        let digits = after.get(..2).filter(|digits| byte == sign && digits.iter().all(u8::is_ascii_hexdigit));
        let code = digits.and_then(|digits| std::str::from_utf8(digits).ok());
        if let Some(code) = code.and_then(|code| u8::from_str_radix(code, 16).ok()) {
            bytes.push(code);
            rest = after.get(2..).unwrap_or_default();
        } else {
            bytes.push(byte);
            rest = after;
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adjacent_encoded_words_are_joined_before_decoding() {
        for (written, expected) in [
            ("=?utf-8?Q?=C3?= =?utf-8?Q?=BC?=", "ü"),
            ("=?utf-8?B?5L0=?=\r\n =?UTF-8?b?oA==?=", "你"),
            ("=?utf-8?Q?a=C3?==?utf-8?Q?=BC?=", "aü"),
            ("=?gb2312?B?xA==?= =?GB2312?B?47rD?=", "你好"),
            ("=?shift_jis?B?g26DjYE=?= =?shift_jis?B?Ww==?=", "ハロー"),
            ("=?iso-2022-jp?B?GyRCRnxLXBsoQg==?= =?iso-2022-jp?B?GyRCOGwbKEI=?=", "日本語"),
            // Other charsets stay apart, and blanks next to plain text count.
            ("=?utf-8?Q?a?= =?iso-8859-1?Q?=E4?=", "aä"),
            ("=?utf-8?Q?a?= b =?utf-8?Q?c?=", "a b c"),
            ("(=?utf-8?Q?a?=)", "(a)"),
            ("Re:  =?utf-8?Q?a_b?=\r\n\tc", "Re: a b c"),
            ("=?utf-8*de?Q?=C3=A4?=", "ä"),
            ("=?utf-8?Q?Hi=0D=0ABcc:_eve?=", "Hi  Bcc: eve"),
            ("=?utf-8?Q??=x", "x"),
            ("=?utf-8?B??=x", "x"),
            // Malformed words stay.
            ("=?utf-8?X?a?= =?utf-8?Q?a", "=?utf-8?X?a?= =?utf-8?Q?a"),
            ("=??Q?a?= =?=", "=??Q?a?= =?="),
            ("=?utf-8?Q?50=?=", "50="),
        ] {
            assert_eq!(decode_text(written.as_bytes(), None), expected, "{written}");
        }
    }

    #[test]
    fn bytes_outside_of_words_are_of_the_mails_charset() {
        let of = |bytes: &[u8], name| decode_text(bytes, name);
        assert_eq!(of("Grüße".as_bytes(), Some("gbk")), "Grüße");
        assert_eq!(of(b"Gr\xfc\xdfe", None), "Grüße");
        assert_eq!(of(b"\xc4\xe3\xba\xc3", Some("gb2312")), "你好");
        assert_eq!(of(b"=?utf-8?Q?=C3=A4?= \xc4\xe3", Some("gb2312")), "ä 你");
    }

    #[test]
    fn a_header_with_structure_keeps_it() {
        let header = b"From: =?gbk?B?xOO6ww==?= <a@b.test>, \"c\" <d@e.test>";
        assert_eq!(
            String::from_utf8_lossy(&recode_utf8(header)),
            "From: =?utf-8?B?5L2g5aW9?= <a@b.test>, \"c\" <d@e.test>"
        );
        assert!(matches!(recode_utf8(b"From: a@b.test"), Cow::Borrowed(_)));
        // A word never becomes an address.
        let sly = recode_utf8(b"From: =?utf-8?q?<eve=40evil.test>,?= <a@b.test>");
        assert!(!String::from_utf8_lossy(&sly).contains("eve"));
    }
}
