//! Describes the errors of providers for the log. Never contains a token, a code or a secret.

use anyhow::anyhow;
use openidconnect::{
    ClaimsVerificationError, DiscoveryError, RequestTokenError, StandardErrorResponse, UserInfoError,
    core::CoreErrorResponseType,
};

use super::http::HttpError;
use crate::base::{bounds, plain::truncated_line};

/// Shortens a foreign text to one line: anyone can put an error into the URL to which the browser returns.
pub fn shown(text: &str) -> String {
    truncated_line(text, bounds::NAME)
}

/// Why a code was not exchanged for tokens.
pub fn describe_exchange_error(
    error: RequestTokenError<HttpError, StandardErrorResponse<CoreErrorResponseType>>,
) -> anyhow::Error {
    match error {
        RequestTokenError::ServerResponse(said) => {
            let (code, more) = (shown(said.error().as_ref()), said.error_description());
            let more = more.map(|text| format!(": {}", shown(text))).unwrap_or_default();
            anyhow!("the provider refused the code ({code}{more})")
        }
        RequestTokenError::Request(error) => anyhow!(error),
        RequestTokenError::Parse(error, _) => unreadable("token", &error),
        RequestTokenError::Other(said) => anyhow!("the token endpoint: {}", shown(&said)),
    }
}

/// Why an ID token was refused.
pub fn describe_claims_error(error: &ClaimsVerificationError) -> String {
    let source = std::error::Error::source(error).map(|source| format!(": {source}")).unwrap_or_default();
    shown(&format!("{error}{source}"))
}

/// Why there are no claims from the userinfo endpoint.
pub fn describe_user_info_error(error: UserInfoError<HttpError>) -> anyhow::Error {
    match error {
        UserInfoError::Request(error) => anyhow!(error),
        UserInfoError::Parse(error) => unreadable("userinfo", &error),
        UserInfoError::Response(status, _, said) => {
            anyhow!("the userinfo endpoint: {status}, {}", shown(&said))
        }
        UserInfoError::ClaimsVerification(error) => {
            anyhow!("the userinfo endpoint: {}", describe_claims_error(&error))
        }
        other => anyhow!("the userinfo endpoint: {}", shown(&other.to_string())),
    }
}

/// Why a provider's metadata or keys could not be fetched.
pub fn describe_discovery_error(error: DiscoveryError<HttpError>) -> anyhow::Error {
    match error {
        DiscoveryError::Request(error) => anyhow!(error),
        DiscoveryError::Parse(error) => unreadable("discovery", &error),
        DiscoveryError::Response(_, _, said)
        | DiscoveryError::Validation(said)
        | DiscoveryError::Other(said) => {
            anyhow!("{}", shown(&said))
        }
        other => anyhow!("{}", shown(&other.to_string())),
    }
}

fn unreadable(endpoint: &str, error: &impl std::fmt::Display) -> anyhow::Error {
    anyhow!("the answer of the {endpoint} endpoint can't be read: {}", shown(&error.to_string()))
}
