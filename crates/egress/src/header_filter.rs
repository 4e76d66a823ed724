//! Headers of forwarded requests. A header can override the restrictions of an address, a key or a proxy in between:
//! the method, the host, the account, the mode. So models get an allowlist, addresses of credentials all but known
//! overrides, and MCP servers no header of the agent.

use http::{HeaderMap, HeaderName, header};

use crate::fields;

/// Headers that model clients need: API versions and betas, client identification, idempotency keys. The account that
/// pays (`openai-organization`, `x-goog-user-project`) is determined by the key.
const OF_MODELS: &[&str] = &[
    "accept",
    "accept-language",
    "anthropic-beta",
    "anthropic-dangerous-direct-browser-access",
    "anthropic-version",
    "content-type",
    "idempotency-key",
    "openai-beta",
    "user-agent",
    "x-app",
    "x-client-request-id",
    "x-goog-api-client",
    "x-request-id",
    "x-stainless-*",
];

/// Headers that override the method, the address or the sender. Gateways of models also take commands from headers:
/// provider, key, or treatment of the response.
const OTHERWISE: &[&str] = &[
    "cf-aig-*",
    "cf-connecting-ip",
    "client-ip",
    "fastly-client-ip",
    "forwarded",
    "front-end-https",
    "helicone-*",
    "max-forwards",
    "proxy-*",
    "remote-*",
    "true-client-ip",
    "via",
    "x-auth-request-*",
    "x-authenticated-*",
    "x-client-cert*",
    "x-client-ip",
    "x-cluster-client-ip",
    "x-envoy-*",
    "x-forward*",
    "x-host",
    "x-http-*",
    "x-litellm-*",
    "x-method*",
    "x-original-*",
    "x-override-*",
    "x-portkey-*",
    "x-proxy*",
    "x-real-ip",
    "x-remote-*",
    "x-rewrite-*",
    "x-ssl-*",
    "x-webauth-*",
];

/// Keeps the headers that model clients need.
pub fn keep_model_headers(headers: &mut HeaderMap) {
    keep_only(headers, OF_MODELS);
}

/// Removes overriding headers.
pub fn remove_overrides(headers: &mut HeaderMap) {
    headers.remove(header::HOST);
    remove(headers, |name| is_one_of(name, OTHERWISE));
}

/// Removes a header in every spelling: many servers treat `X_Key` as `X-Key`.
pub fn remove_aliases(headers: &mut HeaderMap, name: &HeaderName) {
    let plain = fields::plain(name.as_str());
    remove(headers, |own| fields::plain(own) == plain);
}

fn keep_only(headers: &mut HeaderMap, needed: &[&str]) {
    // A name with an underscore is another header here, but the same one for some servers.
    remove(headers, |name| name.contains('_') || !is_one_of(name, needed));
}

fn is_one_of(name: &str, list: &[&str]) -> bool {
    let name = name.replace('_', "-");
    list.iter().any(|entry| match entry.strip_suffix('*') {
        Some(begin) => name.starts_with(begin),
        None => name == *entry,
    })
}

fn remove(headers: &mut HeaderMap, is_meant: impl Fn(&str) -> bool) {
    let meant: Vec<HeaderName> = headers.keys().filter(|name| is_meant(name.as_str())).cloned().collect();
    for name in meant {
        headers.remove(name);
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn left(names: &[&'static str], clean: impl Fn(&mut HeaderMap)) -> Vec<String> {
        let value = || HeaderValue::from_static("x");
        let mut headers = names.iter().map(|name| (HeaderName::from_static(name), value())).collect();
        clean(&mut headers);
        let mut left: Vec<String> = headers.keys().map(ToString::to_string).collect();
        left.sort();
        left
    }

    #[test]
    fn overriding_headers_are_removed() {
        let switches = [
            "x-http-method-override",
            "x-http-method",
            "x_http_method_override",
            "x-method-override",
            "x-forwarded-host",
            "x-forwarded-for",
            "x_forwarded_proto",
            "x-forwarded",
            "forwarded",
            "x-original-url",
            "x-rewrite-url",
            "x-real-ip",
            "x-remote-user",
            "remote-user",
            "remote_user",
            "x-webauth-user",
            "x-auth-request-email",
            "x-ssl-client-verify",
            "x-forwarded-user",
            "x-authenticated-user",
            "x-client-cert-dn",
            "x-host",
            "max-forwards",
            "via",
            "host",
            "proxy-connection",
            "x-portkey-custom-host",
            "x_portkey_provider",
            "helicone-target-url",
            "helicone-openai-api-base",
            "cf-aig-custom-cost",
            "x-litellm-timeout",
            "x-envoy-original-path",
        ];
        for clean in [remove_overrides, keep_model_headers] {
            assert_eq!(left(&switches, clean), Vec::<String>::new());
        }
        let own = ["cookie", "depth", "destination", "git-protocol", "if-match", "range", "x-gitlab-token"];
        assert_eq!(left(&own, remove_overrides), own, "of a credential's address");
    }

    #[test]
    fn models_get_what_their_clients_need() {
        let all = [
            "accept",
            "accept-encoding",
            "anthropic-beta",
            "anthropic-version",
            "authorization",
            "content-type",
            "cookie",
            "idempotency-key",
            "last-event-id",
            "mcp-protocol-version",
            "mcp-session-id",
            "mcp_session_id",
            "openai-beta",
            "openai-organization",
            "openai-project",
            "referer",
            "user-agent",
            "x-api-key",
            "x-goog-user-project",
            "x-mcp-readonly",
            "x-mcp-toolsets",
            "x-stainless-lang",
        ];
        let of_models = [
            "accept",
            "anthropic-beta",
            "anthropic-version",
            "content-type",
            "idempotency-key",
            "openai-beta",
            "user-agent",
            "x-stainless-lang",
        ];
        assert_eq!(left(&all, keep_model_headers), of_models);
    }

    #[test]
    fn a_header_goes_under_all_names_that_are_read_as_its_own() {
        let names = ["x-key", "x_key", "xkey", "x-keys"];
        assert_eq!(
            left(&names, |headers| remove_aliases(headers, &HeaderName::from_static("x-key"))),
            ["x-keys"]
        );
    }
}
