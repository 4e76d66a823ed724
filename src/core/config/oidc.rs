//! The OpenID providers that people may sign in with: a separate file, with one table per provider; its name appears in
//! URLs.

use std::{collections::BTreeMap, path::Path};

use secrecy::SecretString;
use serde::Deserialize;
use toml::{Table, Value};

use super::{error::ConfigError, file, settings};

/// One provider.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OidcProvider {
    /// The issuer: an `https` URL without a query, whose `/.well-known/openid-configuration` describes the provider.
    pub issuer: String,
    /// The client id of this installation.
    pub client_id: String,
    /// The client secret, or the text of the file `client_secret_file`; none for a public client.
    pub client_secret: Option<SecretString>,
    /// The label of the button.
    pub label: Option<String>,
    /// The scopes requested in addition to `openid`.
    #[serde(default = "scopes")]
    pub scopes: Vec<String>,
    /// Whether a sign-in accepts the open invitations for the address that the provider vouches for, and creates an
    /// account for an invited person who has none.
    #[serde(default)]
    pub join_by_invitation: bool,
    /// Audiences that an ID token may have besides the client id, such as the project at Zitadel.
    #[serde(default)]
    pub audiences: Vec<String>,
    /// How the provider sends the browser back.
    #[serde(default)]
    pub response_mode: ResponseMode,
}

/// How a provider sends a browser back with its answer.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum ResponseMode {
    /// In the query of a redirect.
    #[default]
    Query,
    /// As a form that the browser posts. Apple does so whenever it is asked for a name or an address.
    FormPost,
}

/// The providers by their names.
pub type OidcProviders = BTreeMap<String, OidcProvider>;

const KEYS: [&str; 9] = [
    "issuer",
    "client_id",
    "client_secret",
    "client_secret_file",
    "label",
    "scopes",
    "join_by_invitation",
    "audiences",
    "response_mode",
];

fn scopes() -> Vec<String> {
    vec!["email".to_owned(), "profile".to_owned()]
}

/// Reads the file. An error message names the mistake but never includes a value, which may be a secret.
pub(super) fn read(path: &Path) -> Result<OidcProviders, ConfigError> {
    let mut mistakes = Vec::new();
    let shown = path.display().to_string();
    let text =
        std::fs::read_to_string(path).map_err(|error| ConfigError(vec![format!("{shown}: {error}")]))?;
    let table = settings::parse(&shown, &text, &mut mistakes);
    let mut providers = OidcProviders::new();
    for (name, value) in table {
        match provider(&name, value) {
            Ok(provider) => drop(providers.insert(name, provider)),
            Err(more) => mistakes.extend(more.into_iter().map(|mistake| format!("{shown}: {name}{mistake}"))),
        }
    }
    if mistakes.is_empty() { Ok(providers) } else { Err(ConfigError(mistakes)) }
}

fn provider(name: &str, value: Value) -> Result<OidcProvider, Vec<String>> {
    let mut mistakes = Vec::new();
    let is_name = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if name.len() > 32 || !name.bytes().all(is_name) {
        mistakes.push(": a name must have at most 32 lower-case letters, digits and dashes".to_owned());
    }
    let Value::Table(mut table) = value else {
        mistakes.push(format!(": must be a section: write [{name}]"));
        return Err(mistakes);
    };
    for key in table.keys().filter(|key| !KEYS.contains(&key.as_str())) {
        let hint = settings::hint(key, KEYS.into_iter());
        mistakes.push(format!(".{key}: unknown setting{hint}"));
    }
    for key in ["issuer", "client_id"] {
        if !table.contains_key(key) {
            mistakes.push(format!(".{key}: missing"));
        }
    }
    if table.get("issuer").and_then(Value::as_str).is_some_and(|issuer| !is_issuer(issuer)) {
        let detail = ".issuer: must be an https URL without a query (http only on this machine)";
        mistakes.push(detail.to_owned());
    }
    mistakes.extend(read_secret(&mut table).err());
    if !mistakes.is_empty() {
        return Err(mistakes);
    }
    let mode = table.get("response_mode");
    if mode.is_some_and(|mode| !matches!(mode.as_str(), Some("query" | "form_post"))) {
        return Err(vec![".response_mode: must be \"query\" or \"form_post\"".to_owned()]);
    }
    // The library's message may repeat the value, so this one only says what kind of mistake it is.
    OidcProvider::deserialize(Value::Table(table)).map_err(|_| {
        vec![": a value has the wrong type (expected text, a list of texts, true or false)".into()]
    })
}

/// Puts the text of `client_secret_file` in the place of `client_secret`.
fn read_secret(table: &mut Table) -> Result<(), String> {
    let Some(path) = table.remove("client_secret_file") else { return Ok(()) };
    if table.contains_key("client_secret") {
        return Err(": client_secret and client_secret_file are both set; remove one".to_owned());
    }
    let Some(path) = path.as_str() else {
        return Err(".client_secret_file: must be the path of a file".to_owned());
    };
    let secret = file::read_secret(Path::new(path)).map_err(|why| format!(".client_secret_file: {why}"))?;
    table.insert("client_secret".to_owned(), Value::String(secret));
    Ok(())
}

fn is_issuer(text: &str) -> bool {
    url::Url::parse(text).is_ok_and(|url| {
        let is_local = matches!(url.host_str(), Some("localhost" | "127.0.0.1" | "[::1]"));
        (url.scheme() == "https" || (url.scheme() == "http" && is_local))
            && url.query().is_none()
            && url.fragment().is_none()
            && url.username().is_empty()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<OidcProviders, ConfigError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("oidc.toml");
        std::fs::write(&path, text).unwrap();
        read(&path)
    }

    #[test]
    fn a_provider_is_read_and_its_secret_is_not_printed() {
        let text = "[acme]\nissuer = \"https://id.example.com\"\nclient_id = \"muster\"\nclient_secret = \"hunter2\"";
        let providers = parse(text).unwrap();
        assert_eq!(providers["acme"].scopes, ["email", "profile"]);
        assert!(!providers["acme"].join_by_invitation && providers["acme"].audiences.is_empty());
        assert_eq!(providers["acme"].response_mode, ResponseMode::Query);
        assert!(!format!("{providers:?}").contains("hunter2"));
    }

    #[test]
    fn a_client_secret_may_be_in_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let secret = folder.path().join("secret");
        std::fs::write(&secret, "hunter2\n").unwrap();
        let text = format!(
            "[acme]\nissuer = \"https://id.example.com\"\nclient_id = \"muster\"\nclient_secret_file = \"{}\"\n",
            secret.display()
        );
        let providers = parse(&text).unwrap();
        let found = providers["acme"].client_secret.as_ref().unwrap();
        assert_eq!(secrecy::ExposeSecret::expose_secret(found), "hunter2");
        let ConfigError(both) = parse(&format!("{text}client_secret = \"hunter2\"\n")).unwrap_err();
        assert!(both[0].ends_with("acme: client_secret and client_secret_file are both set; remove one"));
        std::fs::remove_file(&secret).unwrap();
        let ConfigError(gone) = parse(&text).unwrap_err();
        assert!(
            gone[0].contains("acme.client_secret_file: the file is out of reach: No such file"),
            "{gone:?}"
        );
    }

    #[test]
    fn a_response_mode_is_one_of_two() {
        let parse_mode = |mode: &str| {
            let text =
                format!("[a]\nissuer = \"https://a.example\"\nclient_id = \"m\"\nresponse_mode = {mode}");
            parse(&text).map(|providers| providers["a"].response_mode)
        };
        assert_eq!(parse_mode("\"query\"").unwrap(), ResponseMode::Query);
        assert_eq!(parse_mode("\"form_post\"").unwrap(), ResponseMode::FormPost);
        for wrong in ["\"fragment\"", "\"\"", "1", "[\"query\"]"] {
            assert!(parse_mode(wrong).unwrap_err().0[0].contains(".response_mode: must be"), "{wrong}");
        }
    }

    #[test]
    fn every_mistake_is_named_and_no_value() {
        let text = "x = 1\n[Acme]\nissuer = \"http://id.example.com\"\nclient_secrt = \"hunter2\"\n[b]\nissuer = \"https://b.example\"\nclient_id = [\"hunter2\"]";
        let ConfigError(mistakes) = parse(text).unwrap_err();
        let all = mistakes.join("\n");
        assert_eq!(mistakes.len(), 6, "{all}");
        assert!(!all.contains("hunter2") && all.contains("did you mean client_secret?"), "{all}");
    }
}
