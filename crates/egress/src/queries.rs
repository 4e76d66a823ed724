//! Query parameters, under every name that a server could read. Parameters of a credential's address restrict the agent
//! (`read_only=true`), so the agent can't set them again under an equivalent name.

use std::{borrow::Cow, collections::BTreeSet};

use percent_encoding::percent_decode_str;

use crate::fields;

/// Levels of encoding. Some servers decode more than once, and an agent can encode any number of times.
pub const MAX_DECODED: usize = 8;

/// Merges the address's query with the agent's additions in path or query. A repeated identical pair is sent once.
/// `None` if the agent overrides a parameter of the address.
pub fn joined(own: Option<&str>, path: &str, asked: Option<&str>) -> Option<String> {
    let (own, asked) = (own.unwrap_or_default(), asked.unwrap_or_default());
    if own.is_empty() {
        return Some(asked.to_owned());
    }
    let set: BTreeSet<Vec<u8>> = own.split('&').map(value).collect();
    let added: Vec<&str> = asked.split('&').filter(|pair| !set.contains(&value(pair))).collect();
    let added = added.join("&");
    if has_odd_escapes(path) || has_odd_escapes(&added) {
        return None;
    }
    // A server that decodes first treats `%3F` in a path as the start of the query.
    let (set, more) = (names(&format!("?{own}"))?, names(&format!("{path}?{added}"))?);
    let both = [own, &added].into_iter().filter(|query| !query.is_empty());
    set.is_disjoint(&more).then(|| both.collect::<Vec<_>>().join("&"))
}

/// Whether a `%` has no two digits behind it: `%u0041` is `A` for some servers only.
pub fn has_odd_escapes(text: &str) -> bool {
    let is_odd = |(at, _): (usize, &str)| {
        let digits = text.as_bytes().get(at + 1..at + 3);
        !digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    };
    text.match_indices('%').any(is_odd)
}

/// Decodes text once more. Decoded text may contain a lone `%`, but no `%u0041`, and must be shortest-form UTF-8.
/// Otherwise `None`.
pub fn decoded(text: &str) -> Option<Cow<'_, str>> {
    let is_unicode = |(at, _): (usize, &str)| {
        let behind = &text.as_bytes()[at + 1..];
        let is_long = behind.len() >= 5 && behind[1..5].iter().all(u8::is_ascii_hexdigit);
        is_long && matches!(behind[0], b'u' | b'U')
    };
    if text.match_indices('%').any(is_unicode) {
        return None;
    }
    percent_decode_str(text).decode_utf8().ok()
}

/// A pair as most servers read it.
fn value(pair: &str) -> Vec<u8> {
    percent_decode_str(&pair.replace('+', " ")).collect()
}

/// Whether a server that decodes a path first sees an early end, at a question mark or a fragment. The rest of the
/// address would be ignored.
pub fn ends_early(path: &str) -> bool {
    const ENDS: [char; 5] = ['?', '#', '\u{fe56}', '\u{ff1f}', '\u{ff03}'];
    let mut text = path.to_owned();
    for _ in 0..MAX_DECODED {
        if text.contains(ENDS) {
            return true;
        }
        match decoded(&text) {
            Some(decoded) if decoded == text => return false,
            Some(decoded) => text = decoded.into_owned(),
            None => return true,
        }
    }
    true
}

/// All names that a server could read after the first question mark. `None` if the text is encoded too deeply or
/// malformed.
fn names(text: &str) -> Option<BTreeSet<String>> {
    let (mut found, mut text) = (BTreeSet::new(), text.to_owned());
    for _ in 0..MAX_DECODED {
        let asked = text.split_once('?').map_or("", |(_, asked)| asked);
        // Some servers separate at semicolons, also in the path, some stop at the next question mark or fragment, and
        // some drop NULs.
        let whole = text.replace('\0', "");
        let (path, rest) = whole.split_once('?').unwrap_or((&whole, ""));
        let matrix = path.split('/').flat_map(|segment| segment.split(';').skip(1));
        found
            .extend(matrix.chain(rest.split(['&', ';', '?', '#'])).map(name).filter(|name| !name.is_empty()));
        found.extend(asked.split(['&', ';', '?', '#']).map(name).filter(|name| !name.is_empty()));
        let decoded = decoded(&text)?.into_owned();
        if decoded == text {
            return Some(found);
        }
        text = decoded;
    }
    None
}

/// Normalizes a parameter's name: `Read-Only[]=1` and `read_only=0` are the same.
pub fn name(pair: &str) -> String {
    // `[a]` is `a` for some servers, and `a[b]` a part of `a`; a NUL ends texts.
    let name = pair.trim_start_matches('[').split(['=', '[', '\0']).next().unwrap_or_default();
    let plain = fields::plain(name);
    if plain.is_empty() { name.trim().to_lowercase() } else { plain }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_ends_where_it_ends() {
        for path in ["..%3fx", "..%23x", "a%3fx", "a%23", "a%253fx", "a%2523x", "a%ef%bc%9fx", "a%ef%bc%83x"]
        {
            assert!(ends_early(path), "{path}");
        }
        for path in ["", "a/b.c", "a..b/c", "a...b", "a%20b/.git", "100%25", "%C3%A9", "a;v=1/b"] {
            assert!(!ends_early(path), "{path}");
        }
    }

    #[test]
    fn a_parameter_of_the_address_is_set_once() {
        let own = Some("read_only=true&project=mine");
        for (path, query) in [
            ("", "read_only=false"),
            ("", "x=1&project=other"),
            ("", "READ_ONLY=false"),
            ("", "read%5Fonly=false"),
            ("", "%72ead_only"),
            ("", "%2572ead_only=false"),
            ("", "read_only[]=false"),
            ("", "project%5B0%5D=other"),
            ("", "[project]=other"),
            ("", "+project=other"),
            ("", "project%00=other"),
            ("", "project%00x=other"),
            ("", "pro%ffject=other"),
            ("", "%u0072ead_only=false"),
            ("", "%U0072ead_only=false"),
            ("", "%25u0072ead_only=false"),
            ("", "%2525u0072ead_only=false"),
            ("", "x=1%u0026project=other"),
            ("", "%c1%b2ead_only=false"),
            ("", "x=1%c0%a6project=other"),
            ("", "page=1%"),
            ("", "page=%zz"),
            ("a%u003Fproject=other", ""),
            ("a%", "page=1"),
            ("", "+read+only+=false"),
            ("", "project=mine;project=other"),
            ("", "project=mine&project=other"),
            ("", "project.=other"),
            ("", "read.only=false"),
            ("", "readOnly=false"),
            ("", "x=1;project=other"),
            ("", "x=1%26project=other"),
            ("", "x=1%2526project=other"),
            ("", "x=1?project=other"),
            ("", "&&project=other"),
            ("a%3Fproject=other", ""),
            ("a%253Fproject=other", "x=1"),
            ("", "x=%2525252525252525252525"),
            ("", "pro%00ject=other"),
            ("", "pro%2500ject=other"),
            ("a;project=other", ""),
            ("a;x=1;project=other/b", ""),
            ("a%3bproject=other", ""),
        ] {
            assert_eq!(joined(own, path, Some(query)), None, "{path} {query}");
        }
        let kept = [("", "projects=1&q=project"), ("", "=;&?"), ("", "q=100%25&x=%25up"), ("", "q=%C3%A9+a")];
        for (path, query) in kept.into_iter().chain([("project", "page=2"), ("a/b", "")]) {
            assert!(joined(own, path, Some(query)).is_some(), "{path} {query}");
        }
        assert_eq!(
            joined(Some("read%5Fonly=true"), "", Some("read_only=0")),
            None,
            "however the address writes it"
        );
        assert_eq!(joined(Some("a=1;mode=ro"), "", Some("mode=rw")), None);
        assert_eq!(joined(None, "", Some("a=1&a=2")).as_deref(), Some("a=1&a=2"), "it sets nothing");
        assert_eq!(joined(own, "", Some("page=2")).as_deref(), Some("read_only=true&project=mine&page=2"));
        assert_eq!(joined(Some("a"), "", None).as_deref(), Some("a"));
        assert_eq!(joined(None, "", Some("q=100%")).as_deref(), Some("q=100%"));
    }

    #[test]
    fn a_pair_that_is_repeated_as_it_is_is_sent_once() {
        let address = "api-version=2024-10-21&scope=a+b";
        let own = Some(address);
        for (asked, sent) in [
            ("api-version=2024-10-21", ""),
            ("api%2Dversion=2024%2d10-21&scope=a%20b", ""),
            ("page=2&api-version=2024-10-21&page=3", "&page=2&page=3"),
        ] {
            let expected = format!("{address}{sent}");
            assert_eq!(joined(own, "x", Some(asked)), Some(expected), "{asked}");
        }
        for other in
            ["api-version=2025-01-01", "Api-Version=2024-10-21", "api-version", "scope=a", "scope=A+b"]
        {
            assert_eq!(joined(own, "x", Some(other)), None, "{other}");
        }
    }
}
