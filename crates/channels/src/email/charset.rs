//! Decodes charsets in texts, headers and file names.
//!
//! `encoding_rs` covers the encodings of the WHATWG standard, mail-parser some older ones. This module adds common
//! aliases, and two encodings outside of the standard.

use std::borrow::Cow;

use encoding_rs::{
    BIG5, EUC_JP, EUC_KR, Encoding, GB18030, GBK, ISO_2022_JP, KOI8_R, KOI8_U, MACINTOSH, SHIFT_JIS, UTF_8,
    UTF_16BE, UTF_16LE, WINDOWS_874, WINDOWS_1252,
};
use mail_parser::decoders::charsets::{DecoderFnc, map::charset_decoder};

/// A way of decoding bytes.
#[derive(Clone, Copy)]
enum Charset {
    Standard(&'static Encoding),
    /// By mail-parser: UTF-7, code page 850.
    Older(DecoderFnc),
    /// UTF-16, in the byte order of its mark, or guessed.
    Utf16,
    /// HZ (RFC 1843) and ISO-2022-KR (RFC 1557): seven-bit encodings with shift sequences around eight-bit text.
    Shifted {
        on: &'static [u8],
        off: &'static [u8],
        meant: &'static Encoding,
    },
    /// No charset is given.
    Unsaid,
}

impl Charset {
    /// Whether the bytes contradict a seven-bit charset: eight-bit bytes, and no shift sequences.
    fn contradicts(self, bytes: &[u8]) -> bool {
        let has = |mark: &[u8]| bytes.windows(mark.len()).any(|found| found == mark);
        match self {
            _ if bytes.is_ascii() => false,
            Self::Standard(encoding) => encoding == ISO_2022_JP && !has(b"\x1b$"),
            Self::Shifted { on, .. } => !has(on),
            _ => false,
        }
    }

    /// Decodes such bytes: as UTF-8, else as another encoding of the same language.
    fn decode_as_meant(self, bytes: &[u8]) -> Cow<'_, str> {
        let encodings = match self {
            Self::Shifted { meant, .. } => [UTF_8, meant, meant],
            _ => [UTF_8, EUC_JP, SHIFT_JIS],
        };
        let mut found = encodings
            .iter()
            .filter_map(|encoding| encoding.decode_without_bom_handling_and_without_replacement(bytes));
        found.next().unwrap_or_else(|| decode_unlabeled(bytes))
    }
}

/// Decodes bytes in a charset, without a byte-order mark.
pub fn decode(name: Option<&str>, bytes: &[u8]) -> String {
    let text = match name.map_or(Charset::Unsaid, find_charset) {
        charset if charset.contradicts(bytes) => charset.decode_as_meant(bytes),
        Charset::Standard(encoding) if encoding == ISO_2022_JP => Cow::Owned(decode_iso2022_jp(bytes)),
        Charset::Standard(encoding) if encoding == UTF_8 => decode_utf8(bytes),
        Charset::Standard(encoding) => encoding.decode(bytes).0,
        Charset::Older(decode) => Cow::Owned(decode(bytes)),
        Charset::Utf16 => utf16_order(bytes).decode(bytes).0,
        Charset::Shifted { on, off, meant } => Cow::Owned(decode_shifted(bytes, on, off, meant)),
        Charset::Unsaid => decode_unlabeled(bytes),
    };
    match text.strip_prefix('\u{feff}') {
        Some(rest) => rest.to_owned(),
        None => text.into_owned(),
    }
}

/// Decodes header bytes outside of encoded words: as UTF-8, else in the mail's charset.
pub fn decode_header(name: Option<&str>, bytes: &[u8]) -> String {
    std::str::from_utf8(bytes).map_or_else(|_| decode(name, bytes), str::to_owned)
}

/// Whether a charset's name is informative: `us-ascii` and `unknown-8bit` are not.
pub fn is_informative(name: &str) -> bool {
    !matches!(find_charset(name), Charset::Unsaid)
}

/// Decodes bytes without an informative charset, by the most common practice.
fn decode_unlabeled(bytes: &[u8]) -> Cow<'_, str> {
    let is_japanese = |pair: &[u8]| matches!(pair, b"\x1b$B" | b"\x1b$@");
    if bytes.is_ascii() && bytes.windows(3).any(is_japanese) {
        return Cow::Owned(decode_iso2022_jp(bytes));
    }
    std::str::from_utf8(bytes).map_or_else(|_| WINDOWS_1252.decode(bytes).0, Cow::Borrowed)
}

/// Decodes UTF-8, with invalid bytes as windows-1252: some programs label every text as UTF-8, or append their own
/// words to one.
fn decode_utf8(bytes: &[u8]) -> Cow<'_, str> {
    let (text, encoding, has_errors) = UTF_8.decode(bytes);
    if !has_errors || encoding != UTF_8 {
        return text;
    }
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        text.push_str(&WINDOWS_1252.decode_without_bom_handling(chunk.invalid()).0);
    }
    Cow::Owned(text)
}

/// Decodes ISO-2022-JP. Of consecutive escape sequences, as at the seams of encoded words, only the last one counts;
/// the standard treats the others as errors.
fn decode_iso2022_jp(bytes: &[u8]) -> String {
    let mut plain = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some((&byte, after)) = rest.split_first() {
        let is_mark = byte == 0x1b && rest.get(3) == Some(&0x1b);
        if !is_mark {
            plain.push(byte);
        }
        rest = if is_mark { rest.get(3..).unwrap_or_default() } else { after };
    }
    ISO_2022_JP.decode_without_bom_handling(&plain).0.into_owned()
}

/// Looks up a charset by name.
fn find_charset(name: &str) -> Charset {
    // `"gbk"`, `utf-8; format=flowed`, `iso-8859-1*en` (RFC 2231, 5).
    let name = name.split([';', '*', ',']).next().unwrap_or_default();
    let name = name.trim_matches(|c: char| c.is_whitespace() || matches!(c, '"' | '\''));
    if name.len() > 60 {
        return Charset::Unsaid;
    }
    // Drops what varies between programs: `Windows-1252`, `CP_1252`, `x-cp1252`, `ISO 8859-1`.
    let plain = |c: &char| c.is_ascii_alphanumeric();
    let plain: String = name.chars().filter(plain).map(|c| c.to_ascii_lowercase()).collect();
    match &*plain {
        "" | "ascii" | "usascii" | "ansix341968" | "unknown8bit" | "8bit" | "binary" => {
            return Charset::Unsaid;
        }
        "utf16" | "ucs2" | "unicode" | "iso10646ucs2" => return Charset::Utf16,
        "hzgb2312" | "hz" => return Charset::Shifted { on: b"~{", off: b"~}", meant: GBK },
        "iso2022kr" | "csiso2022kr" => {
            return Charset::Shifted { on: b"\x0e", off: b"\x0f", meant: EUC_KR };
        }
        _ => {}
    }
    Encoding::for_label_no_replacement(name.as_bytes())
        .or_else(|| find_alias(&plain))
        .map(Charset::Standard)
        .or_else(|| find_older(name, &plain).map(Charset::Older))
        .unwrap_or(Charset::Unsaid)
}

/// Names unknown to the standard, reduced to letters and digits.
fn find_alias(name: &str) -> Option<&'static Encoding> {
    let name = name.strip_prefix('x').unwrap_or(name);
    let page = ["windows", "win", "cp", "ms", "ibm", "dos"].iter().find_map(|maker| name.strip_prefix(maker));
    if let Some(page) = page.and_then(|page| page.parse::<u16>().ok()) {
        return code_page(page);
    }
    if let Some(part) = name.strip_prefix("iso8859") {
        let part = part.trim_end_matches(['e', 'i']);
        return Encoding::for_label(format!("iso-8859-{part}").as_bytes());
    }
    match name {
        "utf8" | "utf8mb4" | "utf8mac" => Some(UTF_8),
        "sjis" | "shiftjis" | "jis" | "mskanji" | "sjiswin" | "windows31j" | "mscp932" => {
            Some(if name == "jis" { ISO_2022_JP } else { SHIFT_JIS })
        }
        "iso2022jp" | "iso2022jp1" | "iso2022jp2" | "iso2022jp3" | "iso2022jp2004" | "iso2022jpms"
        | "junetcode" => Some(ISO_2022_JP),
        "eucjp" | "ujis" | "eucjpms" | "eucjpwin" => Some(EUC_JP),
        "euckr" | "ksc5601" | "ksc56011987" | "ksc56011989" | "ksx1001" | "uhc" | "korean" => Some(EUC_KR),
        "euccn" | "eucgb2312" | "eucgb2312cn" | "gb2312" | "gb231280" | "gbk" | "chinese" => Some(GBK),
        "gb18030" | "gb180302000" | "gb180302005" | "gb180302022" => Some(GB18030),
        "big5" | "big5hkscs" | "big5eten" | "big5tw" => Some(BIG5),
        "koi8" | "koi8r" => Some(KOI8_R),
        "koi8u" | "koi8ru" => Some(KOI8_U),
        "tis620" | "tis6202533" => Some(WINDOWS_874),
        "mac" | "macroman" | "macintosh" => Some(MACINTOSH),
        "latin1" | "isolatin1" | "ansi" | "iso88591windows30latin1" => Some(WINDOWS_1252),
        _ => None,
    }
}

/// Microsoft's code pages.
fn code_page(page: u16) -> Option<&'static Encoding> {
    let label = match page {
        874 => return Some(WINDOWS_874),
        932 | 943 => return Some(SHIFT_JIS),
        936 | 51936 => return Some(GBK),
        949 | 970 | 51949 => return Some(EUC_KR),
        950 => return Some(BIG5),
        819 => return Some(WINDOWS_1252),
        1200 => return Some(UTF_16LE),
        1201 => return Some(UTF_16BE),
        10000 => return Some(MACINTOSH),
        20866 => return Some(KOI8_R),
        21866 => return Some(KOI8_U),
        50220..=50222 => return Some(ISO_2022_JP),
        20932 | 51932 => return Some(EUC_JP),
        54936 => return Some(GB18030),
        65001 => return Some(UTF_8),
        28591..=28606 => format!("iso-8859-{}", page - 28590),
        _ => format!("windows-{page}"),
    };
    Encoding::for_label(label.as_bytes()).or_else(|| Encoding::for_label(format!("ibm{page}").as_bytes()))
}

/// mail-parser's additional charsets.
fn find_older(name: &str, plain: &str) -> Option<DecoderFnc> {
    match plain {
        "utf7" | "unicode11utf7" | "xunicode11utf7" | "cp65000" => charset_decoder(b"utf-7"),
        "cp850" | "850" | "dos850" | "xcp850" => charset_decoder(b"cp850"),
        _ => charset_decoder(name.as_bytes()),
    }
}

/// The byte order of UTF-16: as marked, else by the zeros of Latin letters.
fn utf16_order(bytes: &[u8]) -> &'static Encoding {
    let zeros = |from: usize| bytes.iter().skip(from).step_by(2).filter(|byte| **byte == 0).count();
    if bytes.starts_with(b"\xfe\xff") || !bytes.starts_with(b"\xff\xfe") && zeros(0) > zeros(1) {
        UTF_16BE
    } else {
        UTF_16LE
    }
}

/// Decodes a seven-bit encoding with shift sequences.
fn decode_shifted(bytes: &[u8], on: &[u8], off: &[u8], meant: &'static Encoding) -> String {
    let (mut plain, mut is_on, mut rest) = (Vec::with_capacity(bytes.len()), false, bytes);
    while let Some((&byte, after)) = rest.split_first() {
        if let Some(after) = rest.strip_prefix(if is_on { off } else { on }) {
            (is_on, rest) = (!is_on, after);
        } else if let Some(after) = rest.strip_prefix(b"\x1b$)C") {
            // The header of ISO-2022-KR.
            rest = after;
        } else if let (b"~{", false, Some(after)) = (on, is_on, rest.strip_prefix(b"~~")) {
            plain.push(b'~');
            rest = after;
        } else {
            // A line end resets the shift.
            is_on &= byte != b'\n';
            plain.push(if is_on && byte > b' ' { byte | 0x80 } else { byte });
            rest = after;
        }
    }
    meant.decode_without_bom_handling(&plain).0.into_owned()
}

#[cfg(test)]
mod tests;
