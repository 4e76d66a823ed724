//! Access tokens of a service account: <https://developers.google.com/identity/protocols/oauth2/service-account>.

use std::{sync::Arc, time::Duration};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use jiff::Timestamp;
use rustls::{
    SignatureScheme,
    crypto::ring::sign::any_supported_type,
    pki_types::{PrivateKeyDer, pem::PemObject},
    sign::SigningKey,
};
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::{sync::Mutex, time::Instant};
use url::Url;

use crate::{
    bounds,
    contract::Failure,
    network::{VendorClient, with_form},
};

/// A service account's key, as Google's console issues it.
#[derive(Deserialize)]
struct Key {
    client_email: String,
    private_key: String,
}

/// A service account, with its current access token.
pub struct ServiceAccount {
    key: SecretString,
    token: Mutex<Option<(SecretString, Instant)>>,
}

impl ServiceAccount {
    pub fn new(key: SecretString) -> Self {
        Self { key, token: Mutex::default() }
    }

    /// A valid token. The audience is Google's own address, not that of the operator's setting.
    pub async fn token(
        &self,
        vendor: &VendorClient,
        tokens: &Url,
        now: Timestamp,
    ) -> Result<SecretString, Failure> {
        let mut held = self.token.lock().await;
        if let Some((token, until)) = &*held
            && *until > Instant::now()
        {
            return Ok(token.clone());
        }
        let assertion = self.assertion(now)?;
        let unusable = |_| Failure::NotSent("Google's address can't be used.".into());
        let url = tokens.join("token").map_err(unusable)?;
        let grant = [
            ("grant_type", "urn:ietf:params:oauth:grant-type:jwt-bearer"),
            ("assertion", assertion.as_str()),
        ];
        let answer = vendor.call("Google", with_form(vendor.http.post(url), &grant), bounds::ANSWER).await?;
        let said: Value = muster_json::from_slice(&answer.body).unwrap_or_default();
        let Some(token) = said["access_token"].as_str().filter(|_| answer.status.is_success()) else {
            let word = said["error"].as_str().unwrap_or_default();
            let cause = format!("Google does not accept the key of the service account ({word}).").into();
            let is_refused = matches!(word, "invalid_grant" | "invalid_client" | "unauthorized_client");
            return Err(if is_refused { Failure::Credentials(cause) } else { Failure::NotSent(cause) });
        };
        let token = SecretString::from(token.to_owned());
        // A minute early, so that it does not lapse during a call.
        let lifetime = said["expires_in"].as_u64().unwrap_or_default().saturating_sub(60);
        *held = Some((token.clone(), Instant::now() + Duration::from_secs(lifetime.min(60 * 60))));
        Ok(token)
    }

    /// Forgets a token that Google no longer takes.
    pub async fn forget(&self) {
        *self.token.lock().await = None;
    }

    /// A JWT (RS256) that asks for access to files. Valid from five minutes ago, for a clock that is ahead.
    fn assertion(&self, now: Timestamp) -> Result<String, Failure> {
        let wrong =
            || Failure::Credentials("This is not the key of a Google service account in JSON.".into());
        let key: Key = muster_json::from_str(self.key.expose_secret()).map_err(|_| wrong())?;
        let der = PrivateKeyDer::from_pem_slice(key.private_key.as_bytes()).map_err(|_| wrong())?;
        let signing: Arc<dyn SigningKey> = any_supported_type(&der).map_err(|_| wrong())?;
        let signer = signing.choose_scheme(&[SignatureScheme::RSA_PKCS1_SHA256]).ok_or_else(wrong)?;
        let from = now.as_second() - 5 * 60;
        let claims = json!({
            "iss": key.client_email,
            "scope": "https://www.googleapis.com/auth/drive",
            "aud": "https://oauth2.googleapis.com/token",
            "iat": from,
            "exp": from + 60 * 60,
        });
        let encode = |part: Value| URL_SAFE_NO_PAD.encode(part.to_string());
        let signed = format!("{}.{}", encode(json!({"alg": "RS256", "typ": "JWT"})), encode(claims));
        let signature = signer.sign(signed.as_bytes()).map_err(|_| wrong())?;
        Ok(format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature)))
    }
}
