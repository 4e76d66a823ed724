//! Destinations of credentials: hosts (`api.example.com`, `*.example.com`, `db.example.com:5432`) or URLs
//! (`https://api.example.com/v1`).

use url::Url;

use crate::{
    base::problem::{Problem, Result, Violation},
    domain::orgs::has_no_credentials,
};

/// Trims and deduplicates the destinations.
///
/// # Errors
/// `VALIDATION_FAILED`, naming each that is neither a host nor a URL.
pub fn normalize(given: Vec<String>) -> Result<Vec<String>> {
    let mut destinations: Vec<String> = Vec::with_capacity(given.len());
    let mut violations = Vec::new();
    for (n, text) in given.into_iter().enumerate() {
        let text = text.trim();
        if !is_destination(text) {
            // The value may contain a password, so the message doesn't repeat it.
            let detail = "A destination must be a host, such as api.example.com, or a URL, such as https://api.example.com/v1, \
                          without a user name and a password. A `*` is only for hosts: *.example.com.";
            violations.push(Violation::at(format!("/destinations/{n}"), "NOT_ALLOWED", detail));
        } else if !destinations.iter().any(|known| known == text) {
            destinations.push(text.to_owned());
        }
    }
    Problem::fail_if_any(violations)?;
    Ok(destinations)
}

fn is_destination(text: &str) -> bool {
    if text.contains("://") {
        let is_whole = |url: &Url| url.host_str().is_some_and(|host| !host.contains('*'));
        return Url::parse(text).is_ok_and(|url| is_whole(&url) && has_no_credentials(&url));
    }
    let host = text.strip_prefix("*.").unwrap_or(text);
    let is_invalid =
        |c: char| c.is_whitespace() || c.is_control() || matches!(c, '/' | '\\' | '?' | '#' | '@' | '*');
    !host.contains(is_invalid) && Url::parse(&format!("https://{host}")).is_ok()
}

/// The address of a destination; for a host, its HTTPS address. None for an MCP server (`mcp://NAME`).
pub fn address(destination: &str) -> Option<Url> {
    let is_url = destination.contains("://");
    let url = if is_url { Url::parse(destination) } else { Url::parse(&format!("https://{destination}")) };
    url.ok().filter(|url| url.scheme() != "mcp")
}

/// Parses a destination that is an MCP server; the URL's host is its name.
pub fn mcp_server(destination: &str) -> Option<Url> {
    Url::parse(destination).ok().filter(|url| url.scheme() == "mcp")
}

/// Whether a destination is the MCP server of this name.
#[must_use]
pub fn names_mcp_server(destination: &str, server: &str) -> bool {
    mcp_server(destination).is_some_and(|url| {
        let host = url.host_str().unwrap_or_default();
        percent_encoding::percent_decode_str(host).decode_utf8().is_ok_and(|host| host == server)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_and_addresses_are_destinations() {
        for good in [
            "api.example.com",
            "*.example.com",
            "db.example.com:5432",
            "127.0.0.1",
            "[::1]:8080",
            "https://api.example.com/v1?x=1",
            "postgres://db.example.com/app",
        ] {
            assert!(is_destination(good), "{good}");
        }
        for bad in [
            "",
            "api.example.com/v1",
            "a b",
            "*.*.example.com",
            "user@example.com",
            "https://user:pass@example.com",
            "https://",
            "https://*.example.com",
            "host:port",
            "mailto:someone",
        ] {
            assert!(!is_destination(bad), "{bad}");
        }
    }

    #[test]
    fn an_mcp_server_has_no_address() {
        for (destination, expected) in [
            ("https://api.example.com/v1", Some("https://api.example.com/v1")),
            ("*.example.com", Some("https://*.example.com/")),
            ("db.example.com:5432", Some("https://db.example.com:5432/")),
            ("mcp://tools", None),
            ("MCP://tools:443", None),
        ] {
            assert_eq!(address(destination).as_ref().map(Url::as_str), expected, "{destination}");
        }
    }
}
