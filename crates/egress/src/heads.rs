//! Headers of requests that are passed on. A header can switch off what an address, a key or an operator's proxy limits: another
//! method, another host, another account, another mode. So models get those that their clients need, and the addresses of
//! credentials all but those that are known to do that. MCP servers get none of an agent's.

use http::{HeaderMap, HeaderName, header};

use crate::fields;

/// What clients of models need: which version and which trials they speak, who they are, and what identifies a repeated request.
/// Not which account pays (`openai-organization`, `x-goog-user-project`): that is the key's to say.
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

/// What makes another request of one: another method, another address, another sender. Gateways of models take their own orders
/// from headers: which provider to ask, with which key, and what to do with the answer.
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

/// Leaves what a client of a model needs.
pub fn of_model(headers: &mut HeaderMap) {
    leave(headers, OF_MODELS);
}

/// Takes out what makes another request of this one.
pub fn plainly(headers: &mut HeaderMap) {
    headers.remove(header::HOST);
    remove(headers, |name| is_one_of(name, OTHERWISE));
}

/// Takes out a header, under all names that a server could take for it: for many, `X_Key` is `X-Key`.
pub fn take_out(headers: &mut HeaderMap, name: &HeaderName) {
    let plain = fields::plain(name.as_str());
    remove(headers, |own| fields::plain(own) == plain);
}

fn leave(headers: &mut HeaderMap, needed: &[&str]) {
    // With an underscore it is another header for us, and for others the same one.
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
    fn what_changes_a_request_is_not_passed_on() {
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
        for clean in [plainly, of_model] {
            assert_eq!(left(&switches, clean), Vec::<String>::new());
        }
        let own = ["cookie", "depth", "destination", "git-protocol", "if-match", "range", "x-gitlab-token"];
        assert_eq!(left(&own, plainly), own, "of a credential's address");
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
        assert_eq!(left(&all, of_model), of_models);
    }

    #[test]
    fn a_header_goes_under_all_names_that_are_read_as_its_own() {
        let names = ["x-key", "x_key", "xkey", "x-keys"];
        assert_eq!(left(&names, |headers| take_out(headers, &HeaderName::from_static("x-key"))), ["x-keys"]);
    }
}
