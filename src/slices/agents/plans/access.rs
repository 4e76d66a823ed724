//! Credentials as an agent finds them: variables of its environment, and headers of the MCP servers it calls. Pure.
//!
//! A field becomes the variable `CREDENTIAL_LABEL`: both names in upper case, everything but ASCII letters and digits as one
//! underscore. Names that a loader or Muster itself obeys are left out, and of two equal names the later one.
//!
//! An MCP server names the credentials that it needs. A program gets their variables. For an address, a bearer token and a user
//! with a password become the header `Authorization`; of any other credential each field becomes a header named by its label.

use base64::{Engine, engine::general_purpose::STANDARD};
use http::{HeaderName, HeaderValue};
use muster_protocol::{
    Secret,
    plan::{McpServer, McpTransport, Variable},
};
use secrecy::{ExposeSecret, SecretString};

use crate::{
    base::{enums, enums::CredentialKind},
    slices::{credentials::Opened, mcp_servers::Callable},
};

/// What the names of variables may not begin with.
const RESERVED: [&str; 3] = ["LD_", "DYLD_", "MUSTER_"];

/// The variables of these credentials.
pub fn variables<'a>(credentials: impl IntoIterator<Item = &'a Opened>) -> Vec<Variable> {
    let mut variables: Vec<Variable> = Vec::new();
    for credential in credentials {
        for (label, value) in &credential.fields {
            let name = name_of(&credential.name, label);
            let is_usable = !RESERVED.iter().any(|reserved| name.starts_with(reserved))
                && !value.expose_secret().contains('\0')
                && !variables.iter().any(|known| known.name == name);
            if is_usable {
                variables.push(variable(name, value.expose_secret()));
            }
        }
    }
    variables
}

fn variable(name: String, value: &str) -> Variable {
    Variable { name, value: Secret::from(value.to_owned()) }
}

/// `CREDENTIAL_LABEL`.
fn name_of(credential: &str, label: &str) -> String {
    let mut name = String::new();
    for letter in format!("{credential} {label}").chars() {
        if letter.is_ascii_alphanumeric() {
            name.push(letter.to_ascii_uppercase());
        } else if !name.ends_with('_') {
            name.push('_');
        }
    }
    let name = name.trim_end_matches('_');
    let begins = name.starts_with(|c: char| c.is_ascii_digit());
    if begins { format!("_{name}") } else { name.to_owned() }
}

/// An MCP server with what it needs of these credentials.
pub fn mcp_server(server: Callable, credentials: &[Opened]) -> McpServer {
    let is_needed = |credential: &&Opened| server.auth.contains(&credential.name);
    let needed = || credentials.iter().filter(is_needed);
    let url = server.url.clone().unwrap_or_default();
    let transport = match server.transport {
        enums::McpTransport::Stdio => McpTransport::Stdio {
            command: server.command.clone().unwrap_or_default(),
            args: server.args.clone(),
            environment: variables(needed()),
        },
        enums::McpTransport::Http => McpTransport::Http { url, headers: headers(needed()) },
        enums::McpTransport::Sse => McpTransport::Sse { url, headers: headers(needed()) },
    };
    McpServer { name: server.name, transport }
}

fn headers<'a>(credentials: impl Iterator<Item = &'a Opened>) -> Vec<Variable> {
    let mut headers: Vec<Variable> = Vec::new();
    for credential in credentials {
        for (name, value) in of_credential(credential) {
            let is_valid =
                HeaderName::from_bytes(name.as_bytes()).is_ok() && HeaderValue::from_str(&value).is_ok();
            if is_valid && !headers.iter().any(|known| known.name.eq_ignore_ascii_case(&name)) {
                headers.push(variable(name, &value));
            }
        }
    }
    headers
}

fn of_credential(credential: &Opened) -> Vec<(String, String)> {
    let authorization = |value: String| vec![("Authorization".to_owned(), value)];
    let values: Vec<&str> = credential.fields.iter().map(|(_, value)| value.expose_secret()).collect();
    match (credential.kind, values.as_slice()) {
        (CredentialKind::BearerToken, [token, ..]) => authorization(format!("Bearer {token}")),
        (CredentialKind::BasicAuth, [user, password, ..]) => {
            authorization(format!("Basic {}", STANDARD.encode(format!("{user}:{password}"))))
        }
        _ => {
            let exposed =
                |(label, value): &(String, SecretString)| (label.clone(), value.expose_secret().to_owned());
            credential.fields.iter().map(exposed).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn credential(name: &str, kind: CredentialKind, fields: &[(&str, &str)]) -> Opened {
        let fields =
            fields.iter().map(|(label, value)| ((*label).to_owned(), SecretString::from(*value))).collect();
        Opened { name: name.to_owned(), kind, fields }
    }

    fn shown(variables: &[Variable]) -> Vec<(&str, &str)> {
        variables.iter().map(|variable| (variable.name.as_str(), variable.value.expose())).collect()
    }

    #[test]
    fn fields_become_variables() {
        let all = [
            credential("GitHub (bot)", CredentialKind::ApiKey, &[("API key", "k"), ("user name", "ann")]),
            credential("github bot", CredentialKind::ApiKey, &[("api-key", "later"), ("n\u{e4}me", "x")]),
            credential("ld", CredentialKind::Custom, &[("preload", "/evil.so")]),
            credential("muster", CredentialKind::Custom, &[("socket", "x")]),
            credential("7zip", CredentialKind::Custom, &[("code", "a\nb"), ("bad", "a\0b")]),
        ];
        let expected = [
            ("GITHUB_BOT_API_KEY", "k"),
            ("GITHUB_BOT_USER_NAME", "ann"),
            ("GITHUB_BOT_N_ME", "x"),
            ("_7ZIP_CODE", "a\nb"),
        ];
        assert_eq!(shown(&variables(&all)), expected);
    }

    #[test]
    fn an_mcp_server_gets_what_it_names_and_nothing_else() {
        let all = [
            credential("bearer", CredentialKind::BearerToken, &[("token", "t0k")]),
            credential("basic", CredentialKind::BasicAuth, &[("user", "u"), ("password", "p")]),
            credential(
                "key",
                CredentialKind::ApiKey,
                &[("X-Api-Key", "k"), ("not a name", "x"), ("X-Two", "a\nb")],
            ),
        ];
        let server = |transport, auth: &[&str]| Callable {
            name: "s".to_owned(),
            transport,
            command: Some("npx".to_owned()),
            args: vec!["-y".to_owned()],
            url: Some("https://mcp.example".to_owned()),
            auth: auth.iter().map(|name| (*name).to_owned()).collect(),
        };
        let headers =
            |auth: &[&str]| match mcp_server(server(enums::McpTransport::Http, auth), &all).transport {
                McpTransport::Http { headers, .. } => headers,
                other => panic!("{other:?}"),
            };
        assert_eq!(
            shown(&headers(&["bearer", "key"])),
            [("Authorization", "Bearer t0k"), ("X-Api-Key", "k")]
        );
        assert_eq!(shown(&headers(&["basic"])), [("Authorization", "Basic dTpw")]);
        assert!(headers(&["nobody"]).is_empty());
        let McpTransport::Stdio { environment, command, args } =
            mcp_server(server(enums::McpTransport::Stdio, &["key"]), &all).transport
        else {
            panic!("not a program")
        };
        assert_eq!((command.as_str(), args.len()), ("npx", 1));
        assert_eq!(shown(&environment)[0], ("KEY_X_API_KEY", "k"));
        assert!(environment.iter().all(|variable| variable.name.starts_with("KEY_")));
    }
}
