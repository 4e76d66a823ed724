//! The only accepted encoding of bodies that the gate reads is JSON in UTF-8. A reader that follows a charset in the
//! head, or guesses one from the first bytes, would read other content than the gate judged and counted.

use http::{HeaderMap, HeaderValue, header};

const CHARSET: &str =
    "The Content-Type names a charset other than UTF-8, or there are several. Send JSON in UTF-8.";
const ENCODED: &str = "The request has a Content-Encoding. Send it uncompressed.";
const NOT_UTF_8: &str =
    "The request is not plain UTF-8: it has other bytes, NUL, or a byte order mark. Send JSON in UTF-8.";

/// Checks the headers. The error is for the agent.
pub fn check_head(headers: &HeaderMap) -> Result<(), &'static str> {
    let kinds = headers.get_all(header::CONTENT_TYPE);
    if kinds.iter().count() > 1 || !kinds.iter().all(is_utf_8) {
        return Err(CHARSET);
    }
    if is_plain(headers) { Ok(()) } else { Err(ENCODED) }
}

/// Whether a body is uncompressed.
pub fn is_plain(headers: &HeaderMap) -> bool {
    let mut codings = headers
        .get_all(header::CONTENT_ENCODING)
        .iter()
        .flat_map(|value| value.as_bytes().split(|byte| *byte == b','));
    codings
        .all(|coding| coding.trim_ascii().is_empty() || coding.trim_ascii().eq_ignore_ascii_case(b"identity"))
}

/// Checks the body. UTF-16 and UTF-32 contain NULs in JSON syntax.
pub fn check_body(bytes: &[u8]) -> Result<(), &'static str> {
    let is_plain = |text: &str| !text.starts_with('\u{feff}') && !text.contains('\0');
    if std::str::from_utf8(bytes).is_ok_and(is_plain) { Ok(()) } else { Err(NOT_UTF_8) }
}

/// Sets the headers of a forwarded body.
pub fn set(headers: &mut HeaderMap) {
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.remove(header::CONTENT_ENCODING);
}

/// Whether a content type names no charset, or UTF-8 or its subset ASCII.
fn is_utf_8(kind: &HeaderValue) -> bool {
    let Ok(kind) = kind.to_str() else { return false };
    let parameters = kind.split([';', ',']).filter_map(|parameter| parameter.split_once('='));
    let mut charsets = parameters.filter(|(name, _)| name.trim().to_lowercase().starts_with("charset"));
    charsets.all(|(_, value)| {
        let value = value.trim().trim_matches('"').to_lowercase();
        matches!(value.as_str(), "utf-8" | "utf8" | "us-ascii")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_names_utf_8_or_no_charset() {
        let is_utf_8 = |kind: &'static str| is_utf_8(&HeaderValue::from_static(kind));
        for kind in [
            "application/json",
            "",
            "application/json; charset=utf-8",
            "application/json;Charset=\"UTF-8\"",
            "text/plain; charset=US-ASCII; x=y",
        ] {
            assert!(is_utf_8(kind), "{kind}");
        }
        for kind in [
            "application/json; charset=utf-7",
            "application/json; CHARSET = \"utf-16\"",
            "application/json; charset*=utf-7",
            "application/json; charset=utf-8; charset=utf-7",
            "application/json, text/plain; charset=latin1",
            "application/json; charset=",
        ] {
            assert!(!is_utf_8(kind), "{kind}");
        }
    }

    #[test]
    fn a_body_is_plain_unless_a_coding_is_named() {
        let is_plain = |values: &[&'static str]| {
            let headers =
                values.iter().map(|value| (header::CONTENT_ENCODING, HeaderValue::from_static(value)));
            is_plain(&headers.collect())
        };
        for values in [&[][..], &[""], &["identity"], &["Identity , identity"], &["identity", " "]] {
            assert!(is_plain(values), "{values:?}");
        }
        for values in [&["gzip"][..], &["identity, br"], &["identity", "zstd"], &["deflate"], &["x-unknown"]]
        {
            assert!(!is_plain(values), "{values:?}");
        }
    }

    #[test]
    fn a_body_is_utf_8_without_a_mark() {
        assert!(check_body("{\"a\":\"é\u{feff}\"}".as_bytes()).is_ok() && check_body(b"").is_ok());
        for body in [&b"\xef\xbb\xbf{}"[..], b"\xff\xfe{\0}\0", b"\0{\0}", b"{\0}\0", b"{\"a\":\"\xe9\"}"] {
            assert_eq!(check_body(body), Err(NOT_UTF_8), "{body:?}");
        }
    }
}
