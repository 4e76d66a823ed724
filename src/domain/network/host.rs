//! Names of hosts on the list of allowed hosts. Pure.

use muster_protocol::plan::Destination;
use url::{Host, Url};

use crate::base::problem::{Problem, Result};

/// Normalizes a name to lower case and ASCII. It is either exact, or `*.` and a name of at least two labels.
///
/// # Errors
/// `VALIDATION_FAILED` for any other text, such as an IP address.
pub fn normalize(pointer: &str, text: &str) -> Result<String> {
    let text = text.trim();
    let (star, name) = text.strip_prefix("*.").map_or(("", text), |name| ("*.", name));
    let refused = |detail: &str| Err(Problem::invalid_at(pointer, "NOT_ALLOWED", detail));
    let name = match Host::parse(name) {
        Ok(Host::Domain(name)) if is_name(&name) => name,
        Ok(Host::Ipv4(_) | Host::Ipv6(_)) => {
            return refused("An IP address is never allowed. Give the host's name.");
        }
        _ => {
            return refused(
                "This is not the name of a host. Leave out the scheme, the port and the path. Examples: api.example.com, \
                 *.example.com.",
            );
        }
    };
    if !star.is_empty() && !name.contains('.') {
        return refused("After `*.` a name of at least two labels is required, such as *.example.com.");
    }
    Ok(format!("{star}{name}"))
}

/// Labels of 1 to 63 letters, digits, hyphens and underscores; the last one not only digits.
fn is_name(name: &str) -> bool {
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
    };
    let last = name.rsplit('.').next().unwrap_or_default();
    name.len() <= 253 && name.split('.').all(is_label) && !last.bytes().all(|byte| byte.is_ascii_digit())
}

/// Whether an entry of the list covers this host.
#[must_use]
pub fn covers(entry: &str, host: &str) -> bool {
    let host = host.to_ascii_lowercase();
    match entry.strip_prefix("*.") {
        Some(name) => host.strip_suffix(name).is_some_and(|rest| rest.len() > 1 && rest.ends_with('.')),
        None => entry == host,
    }
}

/// Whether the list allows connections to the host of this URL.
#[must_use]
pub fn reaches(list: &[Destination], url: &Url) -> bool {
    let (Some(host), Some(port)) = (url.host_str(), url.port_or_known_default()) else { return false };
    list.iter().any(|entry| entry.port == port && covers(&entry.host, host))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_has_only_names() {
        for (given, kept) in [
            (" API.Example.com ", "api.example.com"),
            ("*.Example.com", "*.example.com"),
            ("b\u{fc}cher.example", "xn--bcher-kva.example"),
            ("git", "git"),
            ("under_score.example", "under_score.example"),
        ] {
            assert_eq!(normalize("/host", given).unwrap(), kept);
        }
        for bad in [
            "",
            "*",
            "*.",
            "*.com",
            "*.*.example.com",
            "a.*.example.com",
            "127.0.0.1",
            "0x7f.1",
            "2130706433",
            "[::1]",
            "::1",
            "a b",
            "a/b",
            "a:443",
            "a..b",
            ".a",
            "a.",
            "user@a.example",
            "a.123",
            "-a.example",
            "a-.example",
        ] {
            assert!(normalize("/host", bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_star_stands_for_labels_and_not_for_none() {
        assert!(covers("*.example.com", "api.example.com") && covers("*.example.com", "a.b.EXAMPLE.com"));
        for other in ["example.com", ".example.com", "badexample.com", "example.com.evil.example"] {
            assert!(!covers("*.example.com", other), "{other}");
        }
        assert!(covers("example.com", "Example.com") && !covers("example.com", "api.example.com"));
    }

    #[test]
    fn a_url_is_reached_on_its_port() {
        let list = [Destination { host: "api.example.com".to_owned(), port: 443 }];
        let is = |url: &str| reaches(&list, &Url::parse(url).unwrap());
        assert!(is("https://api.example.com/v1") && is("http://api.example.com:443/"));
        assert!(!is("http://api.example.com/") && !is("https://api.example.com:8443/"));
    }
}
