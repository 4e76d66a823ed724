//! The library's calls to a provider, through our own client, and responses that the library can read.
//!
//! Providers put unexpected values into fields that we never read: `expires_in` or `updated_at` as text, `scope` as a
//! list, `locale` as an object. The library then refuses the whole response. So unsigned responses are reduced to the
//! fields that we use before the library reads them.

use std::{future::Future, pin::Pin};

use openidconnect::{HttpRequest, HttpResponse};
use serde_json::{Map, Value};

use super::claims::is_true;
use crate::{base::bounds, core::outbound};

/// Adapts our client for external servers to the library's interface.
#[derive(Clone, Debug)]
pub struct Http {
    client: outbound::Client,
    filter: Option<FieldFilter>,
}

/// Reduces a response to the fields that are read.
type FieldFilter = fn(Map<String, Value>) -> Map<String, Value>;

impl Http {
    /// The client for everything that the library fetches.
    pub const fn new(client: outbound::Client) -> Self {
        Self { client, filter: None }
    }

    /// For the token endpoint.
    pub fn for_tokens(&self) -> Self {
        Self { filter: Some(token_fields), ..self.clone() }
    }

    /// For the userinfo endpoint.
    pub fn for_user_info(&self) -> Self {
        Self { filter: Some(user_info_fields), ..self.clone() }
    }

    /// Sends a request.
    ///
    /// # Errors
    /// The response is missing or too large.
    pub async fn send(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let response = self.client.execute(request.try_into()?).await?;
        let (status, headers) = (response.status(), response.headers().clone());
        let mut body = outbound::read_body(response, bounds::FILE).await?.ok_or(HttpError::TooLarge)?;
        if let Some(filter) = self.filter.filter(|_| status.is_success()) {
            body = filter_body(body, filter);
        }
        let mut answer = HttpResponse::new(body);
        *answer.status_mut() = status;
        *answer.headers_mut() = headers;
        Ok(answer)
    }
}

impl<'c> openidconnect::AsyncHttpClient<'c> for Http {
    type Error = HttpError;
    type Future = Pin<Box<dyn Future<Output = Result<HttpResponse, HttpError>> + Send + 'c>>;

    fn call(&'c self, request: HttpRequest) -> Self::Future {
        Box::pin(self.send(request))
    }
}

/// Leaves a body that is not a JSON object unchanged: a signed response, or one that the library refuses.
fn filter_body(body: Vec<u8>, filter: FieldFilter) -> Vec<u8> {
    match muster_json::from_slice(&body) {
        Ok(fields) => Value::Object(filter(fields)).to_string().into_bytes(),
        Err(_) => body,
    }
}

/// Keeps only the named fields that are texts.
fn texts<const N: usize>(mut fields: Map<String, Value>, names: [&str; N]) -> Map<String, Value> {
    let read = names.into_iter().filter_map(|name| fields.remove_entry(name));
    read.filter(|(_, value)| value.is_string()).collect()
}

fn token_fields(fields: Map<String, Value>) -> Map<String, Value> {
    texts(fields, ["access_token", "token_type", "id_token"])
}

fn user_info_fields(fields: Map<String, Value>) -> Map<String, Value> {
    let verified = ["email_verified", "xms_edov"];
    let said = |name: &str| fields.get(name).filter(|value| !value.is_null()).map(is_true);
    let verified = verified.map(|name| (name.to_owned(), said(name)));
    let mut read = texts(fields, ["sub", "name", "given_name", "family_name", "email"]);
    read.extend(verified.into_iter().filter_map(|(name, truth)| Some((name, Value::Bool(truth?)))));
    read
}

/// Why a call to a provider failed.
#[derive(Debug, thiserror::Error)]
pub enum HttpError {
    /// The response is missing.
    #[error("{}", without_url(.0))]
    Reqwest(#[from] reqwest::Error),
    /// It could fill the memory.
    #[error("the response is too large")]
    TooLarge,
}

/// The URL may contain secrets.
fn without_url(error: &reqwest::Error) -> String {
    if let Some(text) = outbound::certificate_error(error) {
        format!("the provider can't be trusted: {text}")
    } else if error.is_timeout() {
        "the provider did not answer in time".to_owned()
    } else if error.is_connect() {
        "the provider is unreachable".to_owned()
    } else {
        "the connection to the provider was interrupted".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn filtered(filter: FieldFilter, answer: &Value) -> Value {
        muster_json::from_slice(&filter_body(answer.to_string().into_bytes(), filter)).unwrap()
    }

    #[test]
    fn token_responses_keep_only_the_fields_that_are_read() {
        let plain = json!({ "access_token": "a", "token_type": "Bearer", "id_token": "i" });
        for odd in [
            json!({ "expires_in": "3600" }),
            json!({ "expires_in": 3599.5, "ext_expires_in": "x" }),
            json!({ "expires_in": null, "scope": ["openid", "email"], "refresh_token": {} }),
            json!({ "not_before": "1", "session_state": [1] }),
        ] {
            let mut answer = plain.clone();
            answer.as_object_mut().unwrap().extend(odd.as_object().unwrap().clone());
            assert_eq!(filtered(token_fields, &answer), plain, "{answer}");
        }
        assert_eq!(filtered(token_fields, &json!({ "access_token": 1, "id_token": null })), json!({}));
    }

    #[test]
    fn userinfo_responses_keep_only_the_fields_that_are_read() {
        let plain = json!({ "sub": "1", "name": "Ann", "email": "a@x.test", "email_verified": true });
        for odd in [
            json!({ "email_verified": "true", "updated_at": "2026-11-01T10:00:00Z" }),
            json!({ "email_verified": "True", "updated_at": "1600000000", "locale": { "language": "en" } }),
            json!({ "email_verified": 1, "address": "Street 1", "phone_number": 49, "phone_number_verified": "no" }),
            json!({ "xms_edov": null, "given_name": null, "birthdate": 1990, "picture": { "data": {} } }),
        ] {
            let mut answer = plain.clone();
            answer.as_object_mut().unwrap().extend(odd.as_object().unwrap().clone());
            assert_eq!(filtered(user_info_fields, &answer), plain, "{answer}");
        }
        let odd = json!({ "sub": "1", "email": "a@x.test", "email_verified": "maybe", "name": ["Ann"] });
        let read = json!({ "sub": "1", "email": "a@x.test", "email_verified": false });
        assert_eq!(filtered(user_info_fields, &odd), read);
        let unsaid = json!({ "sub": "1", "email": "a@x.test", "email_verified": null });
        assert_eq!(filtered(user_info_fields, &unsaid), json!({ "sub": "1", "email": "a@x.test" }));
    }

    #[test]
    fn other_bodies_are_left_unchanged() {
        for text in ["", "[1]", "eyJ.e30.x", "{", "{\"$serde_json::private::RawValue\": \"{}\"}"] {
            assert_eq!(filter_body(text.into(), token_fields), text.as_bytes());
        }
    }
}
