//! The claims about a person in a provider's ID token and userinfo response, and which of them are accepted.
//!
//! The library verifies the token: signature, issuer, client id among the audiences, expiry, nonce. This module checks
//! the rest: further audiences and the authorized party (OpenID Connect Core 3.1.3.7, no. 3 to 5), and whether the
//! provider vouches for the address.

use anyhow::{Context, ensure};
use openidconnect::{
    AccessTokenHash, AdditionalClaims, ClaimsVerificationError, EndUserFamilyName, EndUserGivenName,
    EndUserName, IdTokenClaims, LocalizedClaim, Nonce, OAuth2TokenResponse, TokenResponse, UserInfoClaims,
    core::CoreGenderClaim,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    client::{Client, Tokens},
    words::shown,
};
use crate::core::config::OidcProvider;

/// Microsoft's issuers: Entra, its national clouds, External ID, and Azure AD B2C.
const MICROSOFT: [&str; 6] = [
    "login.microsoftonline.com",
    "login.microsoftonline.us",
    "login.partner.microsoftonline.cn",
    "sts.windows.net",
    "ciamlogin.com",
    "b2clogin.com",
];

/// Non-standard claims.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Further {
    /// Microsoft Entra has no `email_verified`. This optional claim says that the owner of the address's domain is
    /// verified. Not trusted from other providers, where people may be able to choose the names of their claims.
    xms_edov: Option<Value>,
}

impl AdditionalClaims for Further {}

/// The verified claims of an ID token.
pub type Claims = IdTokenClaims<Further, CoreGenderClaim>;
/// The claims from the userinfo endpoint.
pub type UserInfo = UserInfoClaims<Further, CoreGenderClaim>;

/// A person according to a provider.
pub struct ProviderUser {
    /// Their identity at the provider, which never changes.
    pub subject: String,
    /// The address, if the provider vouches for it, or why there is none.
    pub email: Result<String, NoEmail>,
    pub name: Option<String>,
}

/// Why a provider vouches for no address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoEmail {
    #[error("the provider sent no `email`; another claim such as `preferred_username` proves no address")]
    Missing,
    /// The provider did not say whether it is verified.
    #[error("the provider sent `email` without `email_verified` (Microsoft Entra: `xms_edov`)")]
    Unsaid,
    #[error("the provider says that `email` is not verified")]
    Unverified,
    #[error("`email` is not an address")]
    Invalid,
}

/// Verifies the ID token of an answer.
///
/// # Errors
/// The library's, for a token that the provider did not issue, or not for this sign-in.
pub fn verify<'t>(
    client: &Client,
    tokens: &'t Tokens,
    nonce: &Nonce,
) -> Result<&'t Claims, ClaimsVerificationError> {
    let missing = || ClaimsVerificationError::Other("the answer has no ID token".to_owned());
    // `check` checks the other audiences, because its error names the setting.
    let verifier = client.id_token_verifier().set_other_audience_verifier_fn(|_| true);
    tokens.id_token().ok_or_else(missing)?.claims(&verifier, nonce)
}

/// Checks the claims that [`verify`] does not check.
///
/// # Errors
/// An audience is not trusted, the token was issued for another client, or the access token does not belong to it.
pub fn check(
    settings: &OidcProvider,
    client: &Client,
    tokens: &Tokens,
    claims: &Claims,
) -> anyhow::Result<()> {
    let own = settings.client_id.as_str();
    let is_trusted =
        |audience: &str| audience == own || settings.audiences.iter().any(|known| known == audience);
    if let Some(other) =
        claims.audiences().iter().map(|audience| audience.as_str()).find(|other| !is_trusted(other))
    {
        let other = shown(other);
        anyhow::bail!(
            "the ID token is also for the audience `{other}`; if this audience is part of the provider, add it to the \
             provider's `audiences` in oidc_file"
        );
    }
    if let Some(party) = claims.authorized_party() {
        let party = party.as_str();
        ensure!(party == own, "the ID token was issued for another client (`azp` is `{}`)", shown(party));
    }
    if let (Some(expected), Some(token)) = (claims.access_token_hash(), tokens.id_token()) {
        let verifier = client.id_token_verifier();
        let (algorithm, key) = (token.signing_alg()?, token.signing_key(&verifier)?);
        let actual = AccessTokenHash::from_token(tokens.access_token(), algorithm, key).context("at_hash")?;
        ensure!(actual == *expected, "the access token does not belong to the ID token");
    }
    Ok(())
}

impl ProviderUser {
    /// The person according to an ID token of this issuer.
    pub fn from_token(issuer: &str, claims: &Claims) -> Self {
        Self {
            subject: claims.subject().to_string(),
            email: vouched_email(
                claims.email().map(|email| email.as_str()),
                claims.email_verified(),
                domain_verified(issuer, claims.additional_claims()),
            ),
            name: full_name(claims.name(), claims.given_name(), claims.family_name()),
        }
    }

    /// Adds the claims from the userinfo endpoint.
    pub fn with_user_info(self, issuer: &str, said: &UserInfo) -> Self {
        let email = vouched_email(
            said.email().map(|email| email.as_str()),
            said.email_verified(),
            domain_verified(issuer, said.additional_claims()),
        );
        let name = self.name.or_else(|| full_name(said.name(), said.given_name(), said.family_name()));
        Self { email, name, ..self }
    }
}

fn vouched_email(
    email: Option<&str>,
    verified: Option<bool>,
    domain_verified: Option<bool>,
) -> Result<String, NoEmail> {
    let email = email.filter(|email| !email.is_empty()).ok_or(NoEmail::Missing)?;
    match verified.or(domain_verified) {
        Some(true) => Ok(email.to_owned()),
        Some(false) => Err(NoEmail::Unverified),
        None => Err(NoEmail::Unsaid),
    }
}

/// Whether Microsoft has verified the owner of the address's domain. `None` for other providers.
fn domain_verified(issuer: &str, further: &Further) -> Option<bool> {
    further.xms_edov.as_ref().filter(|_| is_microsoft(issuer)).map(is_true)
}

fn is_microsoft(issuer: &str) -> bool {
    let url = url::Url::parse(issuer).ok().filter(|url| url.scheme() == "https");
    let host = url.as_ref().and_then(url::Url::host_str).unwrap_or_default();
    let is_below =
        |known: &str| host.strip_suffix(known).is_some_and(|sub| sub.is_empty() || sub.ends_with('.'));
    MICROSOFT.iter().any(|known| is_below(known))
}

/// Whether a claim is true, in all notations that providers use: Cognito and Azure AD B2C write texts and numbers.
pub fn is_true(value: &Value) -> bool {
    match value {
        Value::Bool(truth) => *truth,
        Value::Number(number) => number.as_i64() == Some(1),
        Value::String(text) => text == "1" || text.eq_ignore_ascii_case("true"),
        _ => false,
    }
}

fn full_name(
    name: Option<&LocalizedClaim<EndUserName>>,
    given: Option<&LocalizedClaim<EndUserGivenName>>,
    family: Option<&LocalizedClaim<EndUserFamilyName>>,
) -> Option<String> {
    let whole = name.and_then(|name| name.get(None)).map(|name| name.to_string());
    let given = given.and_then(|name| name.get(None)).map(|name| name.to_string());
    let family = family.and_then(|name| name.get(None)).map(|name| name.to_string());
    whole.filter(|name| !name.trim().is_empty()).or_else(|| joined(given.as_deref(), family.as_deref()))
}

/// A name of two parts, of which either may be missing.
pub fn joined(given: Option<&str>, family: Option<&str>) -> Option<String> {
    let parts: Vec<&str> =
        [given, family].into_iter().flatten().map(str::trim).filter(|part| !part.is_empty()).collect();
    (!parts.is_empty()).then(|| parts.join(" "))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_truth_value_is_written_in_many_ways() {
        for yes in [json!(true), json!("true"), json!("True"), json!("TRUE"), json!(1), json!("1")] {
            assert!(is_true(&yes), "{yes}");
        }
        for no in [
            json!(false),
            json!("false"),
            json!("0"),
            json!(null),
            json!("yes"),
            json!(""),
            json!(" true"),
            json!(2),
            json!(-1),
            json!(1.5),
            json!([true]),
            json!({}),
        ] {
            assert!(!is_true(&no), "{no}");
        }
    }

    #[test]
    fn an_address_counts_only_if_the_provider_vouches_for_it() {
        let entra = |value: Value| {
            let issuer = "https://login.microsoftonline.com/9122040d-6c67-4c5b-b112-36a304b66dad/v2.0";
            domain_verified(issuer, &Further { xms_edov: Some(value) })
        };
        let email = Some("ann@example.org");
        for (email, verified, domain, expected) in [
            (email, Some(true), None, Ok("ann@example.org".to_owned())),
            (email, None, entra(json!(true)), Ok("ann@example.org".to_owned())),
            (email, None, entra(json!("1")), Ok("ann@example.org".to_owned())),
            (email, None, entra(json!(false)), Err(NoEmail::Unverified)),
            (email, None, entra(json!("yes")), Err(NoEmail::Unverified)),
            // The standard claim is the one that counts.
            (email, Some(false), entra(json!(true)), Err(NoEmail::Unverified)),
            (email, None, None, Err(NoEmail::Unsaid)),
            (None, Some(true), None, Err(NoEmail::Missing)),
            (Some(""), Some(true), None, Err(NoEmail::Missing)),
        ] {
            assert_eq!(vouched_email(email, verified, domain), expected, "{email:?} {verified:?} {domain:?}");
        }
    }

    #[test]
    fn only_microsoft_vouches_for_domains() {
        for (issuer, expected) in [
            ("https://login.microsoftonline.com/t/v2.0", Some(true)),
            ("https://sts.windows.net/t/", Some(true)),
            ("https://acme.ciamlogin.com/t/v2.0", Some(true)),
            ("https://acme.b2clogin.com/t/v2.0/", Some(true)),
            ("https://login.microsoftonline.us/t/v2.0", Some(true)),
            ("https://login.microsoftonline.com.evil.example/t/v2.0", None),
            ("https://evilb2clogin.com/t/v2.0/", None),
            ("https://evil.example/login.microsoftonline.com", None),
            ("https://login.microsoftonline.com@evil.example/", None),
            ("http://login.microsoftonline.com/t/v2.0", None),
            ("https://keycloak.example/realms/acme", None),
            ("login.microsoftonline.com", None),
        ] {
            let said = domain_verified(issuer, &Further { xms_edov: Some(json!(true)) });
            assert_eq!(said, expected, "{issuer}");
        }
    }

    #[test]
    fn a_name_has_one_or_two_parts() {
        assert_eq!(joined(Some("Ann"), Some("Other")).as_deref(), Some("Ann Other"));
        assert_eq!(joined(Some(" Ann "), Some(" ")).as_deref(), Some("Ann"));
        assert_eq!(joined(None, Some("Other")).as_deref(), Some("Other"));
        assert_eq!(joined(None, Some("")), None);
    }
}
