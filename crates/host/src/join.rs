//! Joining a control plane, once. The host's token is generated and stored before it is sent, so a lost response is
//! harmless: the same host asks again with the same token.

use std::{error::Error, path::Path, sync::Arc};

use muster_certificates::{FileError, Remedy};
use muster_protocol::{
    Secret,
    join::{Join, Joined, PATH},
    token,
};
use rustls::ClientConfig;
use serde_json::Value;

use crate::{
    address::{self, AddressError},
    bounds::NETWORK_WAIT,
    folder::{Folder, FolderError, Identity, JoinedState},
    machine,
    trust::Trust,
};

#[derive(Debug, thiserror::Error)]
pub enum JoinError {
    #[error(transparent)]
    Folder(#[from] FolderError),
    #[error(transparent)]
    Address(#[from] AddressError),
    /// The file of `--ca-file`, or its copy in the folder.
    #[error(transparent)]
    Certificates(#[from] FileError),
    #[error("This provisioning token is not complete, or has a wrong character. Copy it again.")]
    Mistyped,
    /// A token of another kind.
    #[error(
        "This is not a provisioning token: one begins with `mst_prov_`. A server shows its own once, when it is created or \
         its token is regenerated."
    )]
    OtherToken,
    #[error("The system provides no random numbers: {0}.")]
    Random(getrandom::Error),
    #[error("{url} can't be reached: {reason}.")]
    Unreachable { url: String, reason: String },
    #[error("The control plane refused: {0}")]
    Refused(String),
    /// The response isn't from a control plane.
    #[error(
        "{url} answered with status {status}, but not as a Muster control plane does. Give the address that people open in \
         their browser, without any path that belongs to an interface."
    )]
    Stranger { url: String, status: u16 },
}

#[derive(Debug)]
pub enum Outcome {
    Now(JoinedState),
    /// Joined earlier; nothing was changed.
    Before(JoinedState),
}

/// Joins, unless the folder has joined. `ca_file`: authorities that vouch for the control plane; the folder keeps them.
pub async fn join(
    folder: &Folder,
    url: &str,
    token: &Secret,
    insecure_http: bool,
    ca_file: Option<&Path>,
) -> Result<Outcome, JoinError> {
    folder.require_own()?;
    if let Some(joined) = folder.joined()? {
        return Ok(Outcome::Before(joined));
    }
    folder.create()?;
    let _lock = folder.lock()?;
    let base = address::read(url, insecure_http)?;
    require_well_formed(token)?;
    let trust = Trust::read(folder, ca_file)?;
    let identity = match folder.identity()? {
        Some(identity) => identity,
        None => {
            let identity = new_identity().map_err(JoinError::Random)?;
            folder.keep_identity(&identity)?;
            identity
        }
    };
    let machine = machine::describe(&identity.machine_id, folder.root());
    let request = Join { host_token: identity.token, machine, again: None };
    let joined = send(address::below(&base, PATH).as_str(), token, &request, &trust.tls).await?;
    trust.keep(folder)?;
    let state = JoinedState {
        url: base.to_string(),
        organization_id: joined.organization_id,
        server_id: joined.server_id,
        server_name: joined.server_name,
        insecure_http,
        runtime: None,
        sandbox: None,
    };
    folder.keep_joined(&state)?;
    Ok(Outcome::Now(state))
}

/// Refuses a malformed provisioning token before any request.
pub fn require_well_formed(token: &Secret) -> Result<(), JoinError> {
    if token::is_well_formed(token::PROVISIONING, token.expose()) {
        return Ok(());
    }
    let is_one = token.expose().starts_with(token::PROVISIONING);
    Err(if is_one { JoinError::Mistyped } else { JoinError::OtherToken })
}

fn new_identity() -> Result<Identity, getrandom::Error> {
    let (mut secret, mut id) = ([0; 32], [0; 16]);
    getrandom::fill(&mut secret)?;
    getrandom::fill(&mut id)?;
    let machine_id = id.iter().map(|byte| format!("{byte:02x}")).collect();
    let token = token::of_secret(token::HOST, &mut secret).to_string();
    Ok(Identity { machine_id, token: token.into() })
}

pub async fn send(
    url: &str,
    token: &Secret,
    request: &Join,
    tls: &Arc<ClientConfig>,
) -> Result<Joined, JoinError> {
    let unreachable =
        |error: reqwest::Error| JoinError::Unreachable { url: url.to_owned(), reason: root_cause(&error) };
    let client = http_client(tls).map_err(unreachable)?;
    let response =
        client.post(url).bearer_auth(token.expose()).json(request).send().await.map_err(unreachable)?;
    let status = response.status();
    let kind = response.headers().get("content-type").and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let is_problem = kind.starts_with("application/problem+json");
    let body = response.bytes().await.map_err(unreachable)?;
    let stranger = || JoinError::Stranger { url: url.to_owned(), status: status.as_u16() };
    if status.is_success() {
        return muster_json::from_slice(&body).map_err(|_| stranger());
    }
    let problem: Value = muster_json::from_slice(&body).unwrap_or_default();
    let part = |name| problem.get(name).and_then(Value::as_str);
    match (part("title"), part("detail")) {
        (title, detail) if is_problem && (title.is_some() || detail.is_some()) => {
            let text = match (title, detail) {
                (Some(title), Some(detail)) => format!("{}. {detail}", title.trim_end_matches('.')),
                (title, detail) => title.or(detail).unwrap_or_default().to_owned(),
            };
            Err(JoinError::Refused(text))
        }
        _ => Err(stranger()),
    }
}

/// A client for the control plane.
pub fn http_client(tls: &Arc<ClientConfig>) -> reqwest::Result<reqwest::Client> {
    let client = reqwest::Client::builder().timeout(NETWORK_WAIT).redirect(reqwest::redirect::Policy::none());
    client.tls_backend_preconfigured(ClientConfig::clone(tls)).build()
}

/// The innermost error: "connection refused", or what is wrong with a certificate.
pub fn root_cause(error: &(dyn Error + 'static)) -> String {
    if let Some(text) = muster_certificates::explain(error, Remedy::HostOption) {
        return text;
    }
    let mut reason = error;
    while let Some(source) = reason.source() {
        reason = source;
    }
    let text = reason.to_string().trim_end_matches('.').to_owned();
    // rustls' errors for a server that answers in plain HTTP, or closes.
    if text.contains("InvalidContentType") || text.contains("handshake eof") {
        return "this port doesn't speak TLS. If the control plane is served in plain HTTP, the address begins with http://"
            .to_owned();
    }
    text
}
