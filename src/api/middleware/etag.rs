//! Entity tags (RFC 9110, section 8.8.3): computed from bytes, and listed by clients.

use std::hash::{BuildHasher, Hasher};

use foldhash::quality::FixedState;
use http::{HeaderMap, HeaderValue, header};

/// The ETag for these bytes.
#[must_use]
pub fn hash(json: &[u8]) -> HeaderValue {
    let half = |seed| {
        let mut hasher = FixedState::with_seed(seed).build_hasher();
        hasher.write(json);
        hasher.finish()
    };
    // Two independent 64-bit halves. Not a secure hash: the author of a record can write anything into it.
    let both = u128::from(half(0x6d75_7374)) << 64 | u128::from(half(0x6574_6167));
    let text = ["\"", &hex::encode(both.to_be_bytes()), "\""].concat();
    HeaderValue::try_from(text).unwrap_or(HeaderValue::from_static("\"\""))
}

/// Whether `If-None-Match` lists this ETag: the client has the current version.
#[must_use]
pub fn is_known(headers: &HeaderMap, etag: impl AsRef<[u8]>) -> bool {
    let tags = tags(headers, &header::IF_NONE_MATCH);
    tags.into_iter()
        .flatten()
        .any(|tag| tag == "*" || tag.trim_start_matches("W/").as_bytes() == etag.as_ref())
}

/// The entity tags in a header, or None if it wasn't sent.
pub fn tags<'a>(headers: &'a HeaderMap, name: &header::HeaderName) -> Option<Vec<&'a str>> {
    let mut values = headers.get_all(name).iter().peekable();
    values.peek()?;
    let parts = values.filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(','));
    Some(parts.map(str::trim).filter(|tag| !tag.is_empty()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_etag_covers_every_byte() {
        assert_eq!(hash(b"{\"id\":1}"), hash(b"{\"id\":1}"));
        let many: std::collections::HashSet<_> =
            (0..10_000).map(|n| hash(format!("{{\"id\":{n}}}").as_bytes())).collect();
        assert_eq!(many.len(), 10_000);
        assert!(hash(b"").to_str().is_ok_and(|text| text.len() == 34));
    }

    #[test]
    fn any_of_several_tags_may_be_known() {
        let etag = hash(b"x");
        let known = |values: &[&str]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(header::IF_NONE_MATCH, value.parse().unwrap());
            }
            is_known(&headers, &etag)
        };
        let text = etag.to_str().unwrap();
        assert!(known(&[text]) && known(&["*"]) && known(&["\"a\"", &format!("\"b\", W/{text}")]));
        assert!(!known(&[]) && !known(&["\"a\""]) && !known(&[text.trim_matches('"')]) && !known(&[""]));
    }
}
