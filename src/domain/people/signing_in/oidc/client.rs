//! The library's client for a provider, with our claims, created from the provider's metadata.

use openidconnect::{
    AuthType, ClientId, ClientSecret, EmptyExtraTokenFields, EndpointMaybeSet, EndpointNotSet, EndpointSet,
    IdTokenFields, RedirectUrl, StandardErrorResponse, StandardTokenResponse,
    core::{
        CoreAuthDisplay, CoreAuthPrompt, CoreClientAuthMethod, CoreErrorResponseType, CoreGenderClaim,
        CoreJsonWebKey, CoreJweContentEncryptionAlgorithm, CoreJwsSigningAlgorithm, CoreProviderMetadata,
        CoreRevocableToken, CoreRevocationErrorResponse, CoreTokenIntrospectionResponse, CoreTokenType,
    },
};
use secrecy::ExposeSecret;

use super::claims::Further;
use crate::core::config::OidcProvider;

/// The response of the token endpoint.
pub type Tokens = StandardTokenResponse<
    IdTokenFields<
        Further,
        EmptyExtraTokenFields,
        CoreGenderClaim,
        CoreJweContentEncryptionAlgorithm,
        CoreJwsSigningAlgorithm,
    >,
    CoreTokenType,
>;

/// The library's client.
pub type Client = openidconnect::Client<
    Further,
    CoreAuthDisplay,
    CoreGenderClaim,
    CoreJweContentEncryptionAlgorithm,
    CoreJsonWebKey,
    CoreAuthPrompt,
    StandardErrorResponse<CoreErrorResponseType>,
    Tokens,
    CoreTokenIntrospectionResponse,
    CoreRevocableToken,
    CoreRevocationErrorResponse,
    EndpointSet,
    EndpointNotSet,
    EndpointNotSet,
    EndpointNotSet,
    EndpointMaybeSet,
    EndpointMaybeSet,
>;

/// Creates the client for a provider with this metadata.
///
/// # Errors
/// The redirect URL is invalid.
pub fn client(
    settings: &OidcProvider,
    metadata: CoreProviderMetadata,
    redirect: &str,
) -> Result<Client, url::ParseError> {
    let secret = settings.client_secret.as_ref();
    let secret = secret.map(|secret| ClientSecret::new(secret.expose_secret().to_owned()));
    let (id, auth) = (ClientId::new(settings.client_id.clone()), auth_type(&metadata));
    let client = Client::from_provider_metadata(metadata, id, secret);
    Ok(client.set_redirect_uri(RedirectUrl::new(redirect.to_owned())?).set_auth_type(auth))
}

/// How the secret is sent. A provider that lists no methods accepts the header; Apple accepts it only in the form.
fn auth_type(metadata: &CoreProviderMetadata) -> AuthType {
    let methods = metadata.token_endpoint_auth_methods_supported();
    let takes = |method| methods.is_none_or(|methods| methods.contains(&method));
    if !takes(CoreClientAuthMethod::ClientSecretBasic) && takes(CoreClientAuthMethod::ClientSecretPost) {
        AuthType::RequestBody
    } else {
        AuthType::BasicAuth
    }
}
