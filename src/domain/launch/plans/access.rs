//! Credentials in the form that an agent's host receives. Does no I/O.
//!
//! For a credential with an http or https destination, the host adds headers to the agent's requests to it, if the
//! destination is also on the organization's list. Credentials that agents may read, by a person's decision, become
//! environment variables and files. A field becomes the variable `CREDENTIAL_LABEL`: both names in upper case, with
//! each run of characters other than ASCII letters and digits replaced by an underscore. Names that the dynamic loader
//! or Muster interprets are left out. Of two equal names, the first wins. Keys, certificates and fields of several
//! lines become files, `.credentials/name/label`.
//!
//! A bearer token, and a user with a password, become the header `Authorization`. Each field of an API key or of a
//! custom credential becomes the header that its label names; a field of an API key with a generic label such as `key`
//! becomes `X-Api-Key`. Other kinds are not sent in headers.
//!
//! An MCP server names the credentials that it needs. At an address below a credential's destination it gets the
//! headers. A program, or another address, gets only credentials that the agent may read or that have the server as a
//! destination (`mcp://NAME`), because an editor of the MCP server controls their use.

use base64::{Engine, engine::general_purpose::STANDARD};
use http::{HeaderName, HeaderValue};
use muster_protocol::{
    Secret,
    plan::{Destination, Injected, McpServer, McpTransport, SecretFile, Variable},
};
use secrecy::{ExposeSecret, SecretString};

use crate::{
    base::{enums, enums::CredentialKind},
    domain::{
        credentials::{self, OpenedCredential},
        mcp_servers::Callable,
        network,
    },
};

/// Prefixes that names of variables may not have.
const RESERVED: [&str; 3] = ["LD_", "DYLD_", "MUSTER_"];

/// Generic labels, which don't name a header.
const GENERIC_LABELS: [&str; 6] = ["key", "api_key", "apikey", "secret", "token", "value"];

/// Whether a field becomes a file.
fn is_file(credential: &OpenedCredential, label: &String) -> bool {
    let is_whole = matches!(credential.kind, CredentialKind::SshKey | CredentialKind::Certificate);
    is_whole || credential.multiline.contains(label)
}

/// The files of these credentials.
pub fn files<'a>(credentials: impl IntoIterator<Item = &'a OpenedCredential>) -> Vec<SecretFile> {
    let mut files: Vec<SecretFile> = Vec::new();
    for credential in credentials {
        for (label, value) in credential.fields.iter().filter(|(label, _)| is_file(credential, label)) {
            let path = format!(".credentials/{}/{}", path_part(&credential.name), path_part(label));
            if !files.iter().any(|known| known.path == path) {
                files.push(SecretFile { path, content: Secret::from(value.expose_secret().to_owned()) });
            }
        }
    }
    files
}

/// A name as a part of a path: in lower case, with each run of characters other than ASCII letters and digits replaced
/// by a hyphen.
fn path_part(name: &str) -> String {
    let mut part = String::new();
    for letter in name.chars() {
        if letter.is_ascii_alphanumeric() {
            part.push(letter.to_ascii_lowercase());
        } else if !part.ends_with('-') {
            part.push('-');
        }
    }
    let part = part.trim_matches('-');
    if part.is_empty() { "unnamed".to_owned() } else { part.to_owned() }
}

/// Headers that the host adds to requests, for the http and https destinations of these credentials that the list
/// allows. Names are unique: those of a credential's further destinations end in a number.
pub fn injected(credentials: &[OpenedCredential], allowed: &[Destination]) -> Vec<Injected> {
    let mut all: Vec<Injected> = Vec::new();
    for credential in credentials {
        let urls = credential.destinations.iter().filter_map(|text| url::Url::parse(text).ok());
        let urls =
            urls.filter(|url| matches!(url.scheme(), "http" | "https") && network::reaches(allowed, url));
        for url in urls {
            let headers = headers(std::iter::once(credential));
            if !headers.is_empty() {
                let name = free_name(&all, &credential.name);
                all.push(Injected { credential_id: credential.id.0, name, url: url.into(), headers });
            }
        }
    }
    all
}

fn free_name(taken: &[Injected], credential: &str) -> String {
    let name = path_part(credential);
    let is_free = |name: &String| !taken.iter().any(|known| known.name == *name);
    let numbered = (2..).map(|number| format!("{name}-{number}"));
    std::iter::once(name.clone()).chain(numbered).find(is_free).unwrap_or(name)
}

/// The environment variables of these credentials, without fields that become files.
pub fn environment<'a>(credentials: impl IntoIterator<Item = &'a OpenedCredential>) -> Vec<Variable> {
    variables(credentials, |credential, label| !is_file(credential, label))
}

/// The variables of these fields of the credentials.
fn variables<'a>(
    credentials: impl IntoIterator<Item = &'a OpenedCredential>,
    is_wanted: impl Fn(&OpenedCredential, &String) -> bool,
) -> Vec<Variable> {
    let mut variables: Vec<Variable> = Vec::new();
    for credential in credentials {
        for (label, value) in credential.fields.iter().filter(|(label, _)| is_wanted(credential, label)) {
            let name = variable_name(&credential.name, label);
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
fn variable_name(credential: &str, label: &str) -> String {
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

/// An MCP server with the credentials that it needs and may have, without its tools.
pub fn mcp_server(server: Callable, credentials: &[OpenedCredential]) -> McpServer {
    let url = server.url.clone().unwrap_or_default();
    let address = url::Url::parse(&url).ok();
    let may_have = |credential: &&OpenedCredential| {
        let is_its_own = || address.as_ref().is_some_and(|address| is_destination(credential, address));
        let is_at_address = server.transport != enums::McpTransport::Stdio;
        let may_go = credential.agent_may_read
            || credential.destinations.iter().any(|text| credentials::names_mcp_server(text, &server.name))
            || is_at_address && is_its_own();
        server.auth.contains(&credential.name) && may_go
    };
    let needed = || credentials.iter().filter(may_have);
    let transport = match server.transport {
        enums::McpTransport::Stdio => McpTransport::Stdio {
            command: server.command.clone().unwrap_or_default(),
            args: server.args.clone(),
            environment: variables(needed(), |_, _| true),
        },
        enums::McpTransport::Http => McpTransport::Http { url, headers: headers(needed()) },
        enums::McpTransport::Sse => McpTransport::Sse { url, headers: headers(needed()) },
    };
    let reads_workspace = server.workspace == enums::McpWorkspace::Read;
    let credential_ids = needed().map(|credential| credential.id.0).collect();
    McpServer { id: server.id, name: server.name, transport, reads_workspace, credential_ids, tools: None }
}

/// Whether an address is one of a credential's destinations, or below it.
fn is_destination(credential: &OpenedCredential, address: &url::Url) -> bool {
    let destinations = credential.destinations.iter().filter_map(|text| url::Url::parse(text).ok());
    destinations.filter(|url| url.origin().is_tuple() && url.origin() == address.origin()).any(|url| {
        let below = address.path().strip_prefix(url.path().trim_end_matches('/'));
        below.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    })
}

fn headers<'a>(credentials: impl Iterator<Item = &'a OpenedCredential>) -> Vec<Variable> {
    let mut headers: Vec<Variable> = Vec::new();
    for credential in credentials {
        for (name, value) in headers_of(credential) {
            let is_valid =
                HeaderName::from_bytes(name.as_bytes()).is_ok() && HeaderValue::from_str(&value).is_ok();
            if is_valid && !headers.iter().any(|known| known.name.eq_ignore_ascii_case(&name)) {
                headers.push(variable(name, &value));
            }
        }
    }
    headers
}

fn headers_of(credential: &OpenedCredential) -> Vec<(String, String)> {
    let authorization = |value: String| vec![("Authorization".to_owned(), value)];
    let values: Vec<&str> = credential.fields.iter().map(|(_, value)| value.expose_secret()).collect();
    match (credential.kind, values.as_slice()) {
        (CredentialKind::BearerToken, [token, ..]) => authorization(format!("Bearer {token}")),
        (CredentialKind::BasicAuth, [user, password, ..]) => {
            authorization(format!("Basic {}", STANDARD.encode(format!("{user}:{password}"))))
        }
        (CredentialKind::ApiKey, _) => labelled(credential, key_header),
        (CredentialKind::Custom, _) => labelled(credential, str::to_owned),
        _ => Vec::new(),
    }
}

fn labelled(credential: &OpenedCredential, header: impl Fn(&str) -> String) -> Vec<(String, String)> {
    let exposed = |(label, value): &(String, SecretString)| (header(label), value.expose_secret().to_owned());
    credential.fields.iter().map(exposed).collect()
}

/// The header of an API key.
fn key_header(label: &str) -> String {
    let is_generic = GENERIC_LABELS.iter().any(|word| word.eq_ignore_ascii_case(label));
    let is_name = HeaderName::from_bytes(label.as_bytes()).is_ok();
    if is_name && !is_generic { label.to_owned() } else { "X-Api-Key".to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::ids::CredentialId;

    fn credential(name: &str, kind: CredentialKind, fields: &[(&str, &str)]) -> OpenedCredential {
        let fields =
            fields.iter().map(|(label, value)| ((*label).to_owned(), SecretString::from(*value))).collect();
        OpenedCredential {
            id: CredentialId(1),
            name: name.to_owned(),
            kind,
            destinations: Vec::new(),
            agent_may_read: true,
            multiline: Vec::new(),
            fields,
        }
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
        assert_eq!(shown(&environment(&all)), expected);
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
            id: 1,
            name: "s".to_owned(),
            transport,
            command: Some("npx".to_owned()),
            args: vec!["-y".to_owned()],
            url: Some("https://mcp.example".to_owned()),
            auth: auth.iter().map(|name| (*name).to_owned()).collect(),
            workspace: enums::McpWorkspace::None,
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
        assert!(headers(&["unknown"]).is_empty());
        let McpTransport::Stdio { environment, command, args } =
            mcp_server(server(enums::McpTransport::Stdio, &["key"]), &all).transport
        else {
            panic!("not a program")
        };
        assert_eq!((command.as_str(), args.len()), ("npx", 1));
        assert_eq!(shown(&environment)[0], ("KEY_X_API_KEY", "k"));
        assert!(environment.iter().all(|variable| variable.name.starts_with("KEY_")));
    }

    #[test]
    fn each_kind_has_its_headers() {
        let of = |kind, fields: &[(&str, &str)]| {
            let all = [credential("one", kind, fields)];
            let found = headers(all.iter());
            shown(&found).iter().map(|(name, value)| format!("{name}: {value}")).collect::<Vec<_>>()
        };
        for word in ["key", "API key", "Token", "cl\u{e9}"] {
            assert_eq!(of(CredentialKind::ApiKey, &[(word, "k")]), ["X-Api-Key: k"], "{word}");
        }
        let two = [("DD-API-KEY", "k"), ("DD-APPLICATION-KEY", "a")];
        assert_eq!(of(CredentialKind::ApiKey, &two), ["DD-API-KEY: k", "DD-APPLICATION-KEY: a"]);
        assert_eq!(of(CredentialKind::Custom, &[("X-One", "1"), ("not a name", "2")]), ["X-One: 1"]);
        for kind in [CredentialKind::Oauth2, CredentialKind::SshKey, CredentialKind::Certificate] {
            assert!(of(kind, &[("client_id", "i"), ("client_secret", "s")]).is_empty());
        }
    }

    #[test]
    fn an_mcp_server_elsewhere_gets_only_what_the_agent_may_read() {
        let mut held = credential("held", CredentialKind::BearerToken, &[("token", "t0k")]);
        held.agent_may_read = false;
        held.destinations =
            ["https://mcp.example/v1", "mcp.example", "ssh://mcp.example", "mcp://Our%20tools"]
                .map(str::to_owned)
                .to_vec();
        let gets_as = |name: &str, transport, url: &str| {
            let server = Callable {
                id: 1,
                name: name.to_owned(),
                transport,
                command: Some("/bin/sh".to_owned()),
                args: Vec::new(),
                url: Some(url.to_owned()),
                auth: vec!["held".to_owned()],
                workspace: enums::McpWorkspace::None,
            };
            match mcp_server(server, std::slice::from_ref(&held)).transport {
                McpTransport::Stdio { environment, .. } => environment.len(),
                McpTransport::Http { headers, .. } | McpTransport::Sse { headers, .. } => headers.len(),
            }
        };
        let gets = |transport, url: &str| gets_as("s", transport, url);
        for url in ["https://mcp.example/v1", "https://mcp.example:443/v1/mcp", "https://mcp.example/v1/"] {
            assert_eq!(gets(enums::McpTransport::Http, url), 1, "{url}");
            assert_eq!(gets(enums::McpTransport::Sse, url), 1, "{url}");
        }
        let elsewhere = [
            "https://mcp.example/v10",
            "https://mcp.example/",
            "http://mcp.example/v1",
            "https://mcp.example:8443/v1",
            "https://evil.example/v1",
            "https://mcp.example/v1/../admin",
            "nonsense",
        ];
        for url in elsewhere {
            assert_eq!(gets(enums::McpTransport::Http, url), 0, "{url}");
        }
        assert_eq!(gets(enums::McpTransport::Stdio, "https://mcp.example/v1"), 0);
        assert_eq!(gets_as("Our tools", enums::McpTransport::Stdio, ""), 1, "the credential names it");
        assert_eq!(gets_as("our tools", enums::McpTransport::Stdio, ""), 0);
    }

    #[test]
    fn keys_and_texts_of_several_lines_become_files() {
        let mut mixed =
            credential("My deploy key!", CredentialKind::Custom, &[("Note", "a\nb"), ("user", "u")]);
        mixed.multiline = vec!["Note".to_owned()];
        let all = [mixed, credential("../etc", CredentialKind::SshKey, &[("..", "key"), ("/", "other")])];
        let files = files(&all);
        let paths: Vec<&str> = files.iter().map(|file| file.path.as_str()).collect();
        assert_eq!(paths, [".credentials/my-deploy-key/note", ".credentials/etc/unnamed"]);
        assert_eq!(shown(&environment(&all)), [("MY_DEPLOY_KEY_USER", "u")]);
    }

    #[test]
    fn a_destination_is_reached_where_the_list_allows_it_too() {
        let mut one = credential("Shop API", CredentialKind::BearerToken, &[("token", "t0k")]);
        one.destinations =
            ["https://shop.example/v1", "https://other.example", "shop.example", "ssh://shop.example"]
                .map(str::to_owned)
                .to_vec();
        let entry = |host: &str, port| Destination { host: host.to_owned(), port };
        assert!(injected(std::slice::from_ref(&one), &[]).is_empty());
        let found = injected(&[one.clone(), one], &[entry("shop.example", 443), entry("other.example", 80)]);
        let shown: Vec<(&str, &str)> =
            found.iter().map(|injected| (injected.name.as_str(), injected.url.as_str())).collect();
        assert_eq!(
            shown,
            [("shop-api", "https://shop.example/v1"), ("shop-api-2", "https://shop.example/v1")]
        );
        assert_eq!(found[0].headers[0].value.expose(), "Bearer t0k");
    }
}
