//! A host's API, with the credential of a channel.

use http::Method;
use jiff::Timestamp;
use secrecy::SecretString;
use serde_json::Value;
use url::Url;

use super::{app::App, calls::Caller, host::Host};
use crate::{contract::Failure, network::Network};

/// A host's API with one credential.
pub struct Api {
    pub host: &'static Host,
    caller: Caller,
    credential: Credential,
}

pub enum Credential {
    /// The token of an account.
    Account(SecretString),
    /// A GitHub App's installation.
    Installation(Box<App>, i64),
}

impl Api {
    pub fn new(host: &'static Host, base: Url, credential: Credential, network: &Network) -> Self {
        Self { host, caller: Caller::new(host, base, network), credential }
    }

    pub fn now(&self) -> Timestamp {
        self.caller.now()
    }

    pub async fn get(&self, path: &str) -> Result<Value, Failure> {
        self.call(Method::GET, path, None).await
    }

    pub async fn post(&self, path: &str, body: &Value) -> Result<Value, Failure> {
        self.call(Method::POST, path, Some(body)).await
    }

    /// Calls the API. A token of an installation that is refused is replaced once.
    pub async fn call(&self, method: Method, path: &str, body: Option<&Value>) -> Result<Value, Failure> {
        let (app, installation) = match &self.credential {
            Credential::Account(token) => return self.caller.call(token, method, path, body).await,
            Credential::Installation(app, installation) => (app, *installation),
        };
        let token = app.installation_token(installation).await?;
        match self.caller.call(&token, method.clone(), path, body).await {
            Err(Failure::Credentials(_)) => {
                app.memory.forget_token(installation);
                let token = app.installation_token(installation).await?;
                self.caller.call(&token, method, path, body).await
            }
            said => said,
        }
    }
}
