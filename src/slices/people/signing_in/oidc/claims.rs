//! What a provider's ID token and userinfo endpoint say of a person, and what of it counts.
//!
//! The library verifies the token: signature, issuer, client id among the audiences, expiry, nonce. Here is what it
//! leaves to its users: further audiences and the authorized party (OpenID Connect Core 3.1.3.7, no. 3 to 5), and
//! when a provider vouches for an address.

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

/// Claims that are not standard ones.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Further {
    /// Microsoft Entra has no `email_verified`. This optional claim says that the owner of the address's domain is
    /// verified.
    xms_edov: Option<Value>,
}

impl AdditionalClaims for Further {}

/// The verified claims of an ID token.
pub type Claims = IdTokenClaims<Further, CoreGenderClaim>;
/// What the userinfo endpoint says.
pub type UserInfo = UserInfoClaims<Further, CoreGenderClaim>;

/// What a provider says of a person.
pub struct ProviderUser {
    /// Their identity at the provider, which never changes.
    pub subject: String,
    /// The address, if the provider vouches for it, or why there is none.
    pub email: Result<String, NoEmail>,
    /// The name.
    pub name: Option<String>,
}

/// Why a provider vouches for no address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoEmail {
    /// There is none.
    #[error("the provider sent no `email`; another claim such as `preferred_username` proves no address")]
    Missing,
    /// It may be anyone's.
    #[error("the provider sent `email` without `email_verified` (Microsoft Entra: `xms_edov`)")]
    Unsaid,
    /// It may be anyone's, and the provider says so.
    #[error("the provider says that `email` is not verified")]
    Unverified,
    /// It is not one.
    #[error("`email` is not an address")]
    Invalid,
}

/// Verifies the ID token of an answer.
///
/// # Errors
/// The library's, for a token that is not the provider's, or not for this sign-in.
pub fn verify<'t>(
    client: &Client,
    tokens: &'t Tokens,
    nonce: &Nonce,
) -> Result<&'t Claims, ClaimsVerificationError> {
    let missing = || ClaimsVerificationError::Other("the answer has no ID token".to_owned());
    // Which other audiences are trusted is checked in `check`, whose refusal names the setting.
    let verifier = client.id_token_verifier().set_other_audience_verifier_fn(|_| true);
    tokens.id_token().ok_or_else(missing)?.claims(&verifier, nonce)
}

/// Checks what [`verify`] leaves open.
///
/// # Errors
/// An audience is not trusted, the token was issued for another client, or the access token is another one's.
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
            "the ID token is also for the audience `{other}`; if that is a part of this provider, add it to the provider's `audiences` in \
             oidc_file"
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
    /// The person as the ID token describes them.
    pub fn of_token(claims: &Claims) -> Self {
        Self {
            subject: claims.subject().to_string(),
            email: vouched(
                claims.email().map(|email| email.as_str()),
                claims.email_verified(),
                claims.additional_claims(),
            ),
            name: full_name(claims.name(), claims.given_name(), claims.family_name()),
        }
    }

    /// Adds what the userinfo endpoint says.
    pub fn completed(self, said: &UserInfo) -> Self {
        let email = vouched(
            said.email().map(|email| email.as_str()),
            said.email_verified(),
            said.additional_claims(),
        );
        let name = self.name.or_else(|| full_name(said.name(), said.given_name(), said.family_name()));
        Self { email, name, ..self }
    }
}

fn vouched(email: Option<&str>, verified: Option<bool>, further: &Further) -> Result<String, NoEmail> {
    let email = email.filter(|email| !email.is_empty()).ok_or(NoEmail::Missing)?;
    match verified.or_else(|| further.xms_edov.as_ref().and_then(truth)) {
        Some(true) => Ok(email.to_owned()),
        Some(false) => Err(NoEmail::Unverified),
        None => Err(NoEmail::Unsaid),
    }
}

/// A truth value, in all of the ways in which providers write one.
pub fn truth(value: &Value) -> Option<bool> {
    match value {
        Value::Bool(truth) => Some(*truth),
        Value::Number(number) => match number.as_i64() {
            Some(0) => Some(false),
            Some(1) => Some(true),
            _ => None,
        },
        Value::String(text) => match text.to_ascii_lowercase().as_str() {
            "true" | "1" => Some(true),
            "false" | "0" => Some(false),
            _ => None,
        },
        _ => None,
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
            assert_eq!(truth(&yes), Some(true), "{yes}");
        }
        for no in [json!(false), json!("false"), json!("False"), json!(0), json!("0")] {
            assert_eq!(truth(&no), Some(false), "{no}");
        }
        for neither in [json!(null), json!("yes"), json!(""), json!(2), json!(0.5), json!([true]), json!({})]
        {
            assert_eq!(truth(&neither), None, "{neither}");
        }
    }

    #[test]
    fn an_address_counts_only_if_the_provider_vouches_for_it() {
        let entra = |value: Value| Further { xms_edov: Some(value) };
        let none = Further { xms_edov: None };
        let email = Some("ann@example.org");
        for (email, verified, further, expected) in [
            (email, Some(true), &none, Ok("ann@example.org".to_owned())),
            (email, None, &entra(json!(true)), Ok("ann@example.org".to_owned())),
            (email, None, &entra(json!("1")), Ok("ann@example.org".to_owned())),
            (email, None, &entra(json!(false)), Err(NoEmail::Unverified)),
            (email, None, &entra(json!("yes")), Err(NoEmail::Unsaid)),
            // The standard claim is the one that counts.
            (email, Some(false), &entra(json!(true)), Err(NoEmail::Unverified)),
            (email, None, &none, Err(NoEmail::Unsaid)),
            (None, Some(true), &none, Err(NoEmail::Missing)),
            (Some(""), Some(true), &none, Err(NoEmail::Missing)),
        ] {
            assert_eq!(vouched(email, verified, further), expected, "{email:?} {verified:?} {further:?}");
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
