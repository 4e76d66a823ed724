//! Parameters of an address, under all names that a server could read. What an address sets itself limits the agent
//! (`read_only=true`), so the agent can't set it again under a name that some server takes for the same.

use std::collections::BTreeSet;

use percent_encoding::percent_decode_str;

use crate::fields;

/// How often text may be encoded. Some servers decode twice, or more often; an agent encodes as often as it likes.
pub const MOST_DECODED: usize = 8;

/// The query of an address that the agent has added to, in its path or in its query. None if it sets what the address sets.
pub fn joined(own: Option<&str>, path: &str, asked: Option<&str>) -> Option<String> {
    let (own, asked) = (own.unwrap_or_default(), asked.unwrap_or_default());
    if !own.is_empty() {
        // A server that decodes first takes `%3F` in a path for the beginning of the query.
        let (set, more) = (names(&format!("?{own}"))?, names(&format!("{path}?{asked}"))?);
        if !set.is_disjoint(&more) {
            return None;
        }
    }
    let both = [own, asked].into_iter().filter(|query| !query.is_empty());
    Some(both.collect::<Vec<_>>().join("&"))
}

/// All names that a server could read after the first question mark. None if the text is encoded too often.
fn names(text: &str) -> Option<BTreeSet<String>> {
    let (mut found, mut text) = (BTreeSet::new(), text.to_owned());
    for _ in 0..MOST_DECODED {
        let asked = text.split_once('?').map_or("", |(_, asked)| asked);
        // Some separate by semicolons, and some stop at the next question mark or at a fragment.
        found.extend(asked.split(['&', ';', '?', '#']).map(name).filter(|name| !name.is_empty()));
        let decoded = percent_decode_str(&text).decode_utf8_lossy().into_owned();
        if decoded == text {
            return Some(found);
        }
        text = decoded;
    }
    None
}

/// What is left of a parameter's name: of `Read-Only[]=1` and `read_only=0` the same.
pub fn name(pair: &str) -> String {
    // `[a]` is `a` for some, and `a[b]` is a part of `a`; a NUL ends texts.
    let name = pair.trim_start_matches('[').split(['=', '[', '\0']).next().unwrap_or_default();
    let plain = fields::plain(name);
    if plain.is_empty() { name.trim().to_lowercase() } else { plain }
}

#[cfg(test)]
mod tests {
    use super::*;

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
            ("", "pro%ffject=other"),
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
        ] {
            assert_eq!(joined(own, path, Some(query)), None, "{path} {query}");
        }
        for (path, query) in [("project", "page=2"), ("a/b", ""), ("", "projects=1&q=project"), ("", "=;&?")]
        {
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
    }
}
