//! Tests a provider as far as possible without a browser, for `muster doctor --oidc`.

use http::{HeaderMap, Method, header};
use openidconnect::{
    AuthorizationCode, DiscoveryError, JsonWebKey, JsonWebKeyUse, PkceCodeChallenge, RequestTokenError,
    TokenUrl, UserInfoUrl,
    core::{CoreErrorResponseType, CoreJsonWebKey, CoreJwsSigningAlgorithm, CoreProviderMetadata},
};
use url::Url;

use super::{
    client::client,
    provider::Provider,
    words::{describe_discovery_error, describe_exchange_error, shown},
};
use crate::base::{bounds, finding::Finding, numerals::with_noun, time::Clock};

/// Tests a provider: discovery, issuer, clock, keys, endpoints, and whether it knows this client.
pub async fn try_out(provider: &Provider, clock: &Clock) -> Vec<Finding> {
    let metadata = match provider.discover().await {
        Ok(metadata) => metadata,
        Err(error) => return vec![not_discovered(error), redirect(provider)],
    };
    let mut tried = vec![Finding::good("issuer", metadata.issuer().to_string())];
    tried.extend(skew(provider, clock).await);
    tried.push(keys(provider, &metadata));
    tried.push(endpoints(&metadata));
    if metadata.token_endpoint().is_some() {
        tried.push(credentials(provider, metadata).await);
    }
    tried.push(redirect(provider));
    tried
}

fn not_discovered(error: DiscoveryError<super::http::HttpError>) -> Finding {
    let advice = match error {
        DiscoveryError::Validation(_) => {
            "write `issuer` letter by letter as the provider's metadata does, with or without the slash at its end; for \
             Microsoft Entra, with the tenant's id"
        }
        _ => {
            "check `issuer`: its /.well-known/openid-configuration, and the keys named there, must be reachable from here"
        }
    };
    Finding::bad("issuer", format!("{:#}", describe_discovery_error(error)), advice)
}

/// The difference between the clocks, without the round trip. `None` for a provider that doesn't send its time.
async fn skew(provider: &Provider, clock: &Clock) -> Option<Finding> {
    let url = format!("{}/.well-known/openid-configuration", provider.settings.issuer.trim_end_matches('/'));
    let request = http::Request::builder().method(Method::GET).uri(url).body(Vec::new()).ok()?;
    let before = clock.now().0;
    let answer = provider.http.send(request).await.ok()?;
    let after = clock.now().0;
    let there = provider_time(answer.headers())?;
    // The header has whole seconds.
    let off = if there + 1_000 < before { before - there } else { (there - after).max(0) };
    // Its tokens are often valid for only a few minutes.
    Some(if off <= bounds::CLOCK_SKEW.as_millis() as i64 {
        Finding::good("clock", format!("{off} ms from the provider's"))
    } else {
        let advice = "synchronize this machine with a time server (NTP): ID tokens look expired otherwise";
        Finding::bad("clock", format!("{} from the provider's", with_noun(off / 1_000, "second")), advice)
    })
}

fn provider_time(headers: &HeaderMap) -> Option<i64> {
    let text = |name| headers.get(name)?.to_str().ok();
    // A cache sends the time of the original response, and its age.
    let age: i64 = text(header::AGE).and_then(|age| age.parse().ok()).unwrap_or_default();
    let date = jiff::fmt::rfc2822::parse(text(header::DATE)?).ok()?.timestamp().as_millisecond();
    Some(date + age.clamp(0, 1 << 31) * 1_000)
}

fn keys(provider: &Provider, metadata: &CoreProviderMetadata) -> Finding {
    let signs = |key: &&CoreJsonWebKey| key.key_use().is_none_or(JsonWebKeyUse::allows_signature);
    let keys = metadata.jwks().keys().iter().filter(signs).count();
    let algorithms = metadata.id_token_signing_alg_values_supported();
    if algorithms.is_empty() {
        let found = "it signs ID tokens with no algorithm that is known here".to_owned();
        return Finding::bad("keys", found, "let it sign with RS256");
    }
    let is_secret = |algorithm: &CoreJwsSigningAlgorithm| {
        matches!(
            algorithm,
            CoreJwsSigningAlgorithm::HmacSha256
                | CoreJwsSigningAlgorithm::HmacSha384
                | CoreJwsSigningAlgorithm::HmacSha512
        )
    };
    match keys {
        0 if provider.settings.client_secret.is_some() && algorithms.iter().any(is_secret) => {
            Finding::good("keys", "none: ID tokens are signed with the client secret".to_owned())
        }
        0 => Finding::bad(
            "keys",
            format!("{} has no key for signatures", metadata.jwks_uri().as_str()),
            "give the provider a key to sign ID tokens with",
        ),
        keys => Finding::good("keys", format!("{} for signatures", with_noun(keys, "key"))),
    }
}

fn endpoints(metadata: &CoreProviderMetadata) -> Finding {
    let authorization = metadata.authorization_endpoint().as_str();
    let Some(token) = metadata.token_endpoint() else {
        let found = format!("{authorization}, but none for tokens");
        return Finding::bad("endpoints", found, "use a provider with the authorization code flow");
    };
    if let Some(plain) = plain_endpoint(metadata) {
        let found = format!("{plain} is not encrypted, though the issuer is");
        return Finding::bad("endpoints", found, "let the provider's metadata name https URLs only");
    }
    let user_info = metadata.userinfo_endpoint().map_or("no userinfo", |url| url.as_str());
    Finding::good("endpoints", format!("{authorization}, {}, {user_info}", token.as_str()))
}

/// The first http endpoint of an https issuer: an eavesdropper could learn the client secret or replace the keys.
fn plain_endpoint(metadata: &CoreProviderMetadata) -> Option<&Url> {
    let endpoints = [
        Some(metadata.authorization_endpoint().url()),
        metadata.token_endpoint().map(TokenUrl::url),
        Some(metadata.jwks_uri().url()),
        metadata.userinfo_endpoint().map(UserInfoUrl::url),
    ];
    let is_encrypted = metadata.issuer().url().scheme() == "https";
    endpoints.into_iter().flatten().find(|url| is_encrypted && url.scheme() != "https")
}

/// Sends an invented code. If the provider refuses only the code, it knows the client.
async fn credentials(provider: &Provider, metadata: CoreProviderMetadata) -> Finding {
    const CHECK: &str = "client";
    let advice = "compare `client_id`, `client_secret` and the kind of client (with or without a secret) with the provider's settings";
    let client = match client(&provider.settings, metadata, &provider.redirect) {
        Ok(client) => client,
        Err(error) => return Finding::bad(CHECK, error.to_string(), "correct public_url"),
    };
    let invented = AuthorizationCode::new("muster-doctor".to_owned());
    let (_, verifier) = PkceCodeChallenge::new_random_sha256();
    let request = match client.exchange_code(invented) {
        Ok(request) => request.set_pkce_verifier(verifier),
        Err(error) => return Finding::bad(CHECK, error.to_string(), advice),
    };
    match request.request_async(&provider.http.for_tokens()).await {
        Ok(_) => Finding::bad(CHECK, "it takes an invented code".to_owned(), "do not use this provider"),
        Err(RequestTokenError::ServerResponse(said)) => match said.error() {
            CoreErrorResponseType::InvalidGrant => {
                Finding::good(CHECK, "it refuses an invented code and nothing else".to_owned())
            }
            CoreErrorResponseType::InvalidClient | CoreErrorResponseType::UnauthorizedClient => Finding::bad(
                CHECK,
                format!("it refuses the client ({})", shown(said.error().as_ref())),
                advice,
            ),
            other => {
                let found = format!("it answers an invented code with `{}`", shown(other.as_ref()));
                Finding::warning(CHECK, found, advice)
            }
        },
        Err(error) => Finding::warning(CHECK, format!("{:#}", describe_exchange_error(error)), advice),
    }
}

fn redirect(provider: &Provider) -> Finding {
    let found = format!("register {} at the provider", provider.redirect);
    if provider.redirect.starts_with("https:") {
        return Finding::good("redirect URI", found);
    }
    let advice = "set public_url to an https URL: browsers keep the cookie of a sign-in only then (and on this machine)";
    Finding::warning("redirect URI", found, advice)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::base::finding::Level;

    #[test]
    fn an_endpoint_of_an_encrypted_issuer_is_encrypted() {
        let of = |scheme: &str, changed: Option<&str>| {
            let url = |name: &str| {
                let scheme = if changed == Some(name) { "http" } else { scheme };
                format!("{scheme}://id.example.org/{name}")
            };
            let metadata: Value = json!({
                "issuer": url("issuer"), "authorization_endpoint": url("authorize"), "token_endpoint": url("token"),
                "jwks_uri": url("keys"), "userinfo_endpoint": url("userinfo"), "response_types_supported": ["code"],
                "subject_types_supported": ["public"], "id_token_signing_alg_values_supported": ["RS256"],
            });
            endpoints(&serde_json::from_value(metadata).unwrap())
        };
        for endpoint in ["authorize", "token", "keys", "userinfo"] {
            let finding = of("https", Some(endpoint));
            assert_eq!(finding.level, Level::Bad);
            assert!(
                finding.found.starts_with(&format!("http://id.example.org/{endpoint} ")),
                "{}",
                finding.found
            );
        }
        for (scheme, changed) in [("https", None), ("http", None)] {
            assert_eq!(of(scheme, changed).level, Level::Good, "{scheme}");
        }
    }
}
