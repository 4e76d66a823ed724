//! Shared folders: Google Drive, and any server of WebDAV.
//!
//! A new or changed file of the folder is a message, with the file. At Google, so is a comment that names our account;
//! the target is then the document with the comment, and the answer a reply. Targets of files are the files: the answer
//! to one is a comment at Google, and a further file at WebDAV.
//!
//! - `looking.rs`: what is new, and the position in it; `files.rs`, `comments.rs`: the messages that it becomes.
//! - `google.rs`: Google's API, and `service_account.rs` its tokens; `webdav.rs`: WebDAV, and `own.rs` the names of our
//!   files there.

mod comments;
mod files;
mod google;
mod looking;
mod own;
mod service_account;
mod webdav;

#[cfg(test)]
pub use self::{comments::decode, files::File as SharedFile, google::Me};
use std::{convert::Infallible, time::Duration};

use bytes::Bytes;
use futures::future::BoxFuture;
use serde::Deserialize;
use serde_json::Value;

use self::{
    files::File,
    google::{Google, Login, NO_ACCOUNT},
    service_account::ServiceAccount,
    webdav::WebDav,
};
use crate::{
    bounds,
    contract::{
        Abilities, Action, ActionCall, Cause, Choice, Content, Cursor, Dialect, DriveConfig, DriveLogin,
        Event, Failure, Files, Identity, Inlet, Kind, Limit, Longest, Part, Receipt, RemoteFile, Scope, Sink,
        Spool, Traits, Transport, Unit,
    },
    dav::DavClient,
    network::Network,
};

/// Of Google. <https://developers.google.com/workspace/drive/api/guides/limits>
static TRAITS: Traits = Traits {
    kind: Kind::Drive,
    // Comments have no markup.
    dialect: Dialect::Plain,
    longest: Longest { count: 2000, unit: Unit::Characters },
    limits: &[Limit { scope: Scope::Channel, count: 60, per: Duration::from_secs(60) }],
    longest_send: bounds::TRANSFER.saturating_add(bounds::TRANSFER),
    idempotent_send: true,
    reconciles: false,
    inlet: Inlet::Pull,
    files: Files::Apart,
    abilities: Abilities { buttons: false, edits: false, typing: None },
    actions: &[COMMENT, PUT_FILE],
    largest_in: 50 * 1024 * 1024,
    largest_out: 25 * 1024 * 1024,
};

/// Of WebDAV: texts become files.
static WEBDAV: Traits = Traits {
    dialect: Dialect::Markdown,
    longest: Longest { count: bounds::TEXT, unit: Unit::Characters },
    actions: &[PUT_FILE],
    ..TRAITS
};

const COMMENT: Action = Action {
    name: "comment",
    title: "Comment",
    description: "Writes a new comment on the document of this conversation.",
    schema: r#"{
        "type": "object", "additionalProperties": false, "required": ["text"],
        "properties": { "text": { "type": "string", "description": "The comment, without markup." } }
    }"#,
    check: Comment::check,
    risk: 30,
    is_idempotent: false,
};

const PUT_FILE: Action = Action {
    name: "put_file",
    title: "Put file",
    description: "Puts a text file into the shared folder. It never replaces a file: the name may get an addition.",
    schema: r#"{
        "type": "object", "additionalProperties": false, "required": ["name", "text"],
        "properties": {
            "name": { "type": "string", "description": "The name with its ending: report.md" },
            "text": { "type": "string", "description": "The content." }
        }
    }"#,
    check: PutFile::check,
    risk: 30,
    is_idempotent: true,
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Comment {
    text: String,
}

impl Comment {
    fn check(arguments: &Value) -> Result<(), Cause> {
        Self::read(arguments).map(drop)
    }

    fn read(arguments: &Value) -> Result<Self, Cause> {
        let comment = Self::deserialize(arguments).map_err(|error| invalid(&error))?;
        if comment.text.trim().is_empty() || comment.text.chars().count() > TRAITS.longest.count {
            return Err(
                format!("`text` must be a text of at most {} characters.", TRAITS.longest.count).into()
            );
        }
        Ok(comment)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PutFile {
    name: String,
    text: String,
}

impl PutFile {
    fn check(arguments: &Value) -> Result<(), Cause> {
        Self::read(arguments).map(drop)
    }

    fn read(arguments: &Value) -> Result<Self, Cause> {
        let file = Self::deserialize(arguments).map_err(|error| invalid(&error))?;
        let is_name = !file.name.trim().is_empty() && file.name.len() <= bounds::NAME;
        if !is_name || file.name.contains(['/', '\\']) {
            return Err("`name` must be the name of a file, without folders.".into());
        }
        Ok(file)
    }

    /// By its ending.
    fn media_type(&self) -> &'static str {
        match self.name.rsplit_once('.').map(|(_, end)| end.to_ascii_lowercase()).as_deref() {
            Some("csv") => "text/csv",
            Some("html") => "text/html",
            Some("json") => "application/json",
            Some("md") => "text/markdown",
            _ => "text/plain",
        }
    }
}

fn invalid(error: &serde_json::Error) -> Cause {
    format!("The arguments are not valid: {error}.").into()
}

enum Backend {
    Google(Google),
    WebDav(WebDav),
}

/// A shared folder.
pub struct Drive {
    backend: Backend,
    /// The folder's id or path.
    folder: String,
    /// Its name for people.
    name: String,
    poll: Duration,
    clock: fn() -> jiff::Timestamp,
}

impl Drive {
    pub const TRAITS: &'static Traits = &TRAITS;

    pub fn new(config: DriveConfig, network: &Network) -> Self {
        let DriveConfig { login, folder, folder_name, id_key, poll } = config;
        let google = |login| Backend::Google(Google::new(network, login, folder.clone(), id_key.clone()));
        let backend = match login {
            DriveLogin::Google(tokens) => google(Login::Account(tokens)),
            DriveLogin::GoogleService(key) => google(Login::Service(ServiceAccount::new(key))),
            DriveLogin::WebDav { url, user, pass } => {
                let client = DavClient::new(network, url, user, pass);
                Backend::WebDav(WebDav::new(client, folder.clone(), id_key.clone()))
            }
        };
        let name = folder_name.unwrap_or_else(|| "the folder".to_owned());
        Self { backend, folder, name, poll, clock: network.clock }
    }

    /// The message about a new or changed file. What the agent put there is none.
    fn event_of(&self, file: &File, is_new: bool) -> Option<Event> {
        // At WebDAV, anyone may have changed a file that the agent put there.
        let is_ours = file.is_ours && (is_new || matches!(self.backend, Backend::Google(_)));
        (!is_ours).then(|| file.clone().into_event(is_new, &self.name, (self.clock)()))
    }

    async fn identify(&self) -> Result<Identity, Failure> {
        match &self.backend {
            Backend::Google(google) if !google.has_account() => {
                Ok(Identity { warnings: vec![NO_ACCOUNT.to_owned()], ..Identity::default() })
            }
            Backend::Google(google) => {
                let me = google.me().await?;
                google.folder().await?;
                let handle = Some(me.address).filter(|address| !address.is_empty());
                Ok(Identity { self_ids: me.id.into_iter().collect(), handle, ..Identity::default() })
            }
            Backend::WebDav(dav) => dav.check().await.map(|()| Identity::default()),
        }
    }

    async fn send_part(&self, part: &Part<'_>) -> Result<Receipt, Failure> {
        if let Some(file) = part.files.first() {
            return self.put(part.id, &file.name, &file.media_type, file.content.clone()).await;
        }
        match &self.backend {
            Backend::Google(google) => match google.find_comment(part).await? {
                Some(written) => Ok(written),
                None => google.comment(part.target, &part.text.text).await,
            },
            Backend::WebDav(dav) => {
                let name = format!("{} - answer.md", part.target);
                dav.put(part.id, &name, "text/markdown", part.text.text.clone().into()).await
            }
        }
    }

    async fn put(&self, id: &str, name: &str, media_type: &str, content: Bytes) -> Result<Receipt, Failure> {
        match &self.backend {
            Backend::Google(google) => google.put(id, name, media_type, content).await,
            Backend::WebDav(dav) => dav.put(id, name, media_type, content).await,
        }
    }

    async fn perform(&self, call: &ActionCall<'_>) -> Result<Receipt, Failure> {
        match (call.name, &self.backend) {
            ("put_file", _) => {
                let file = PutFile::read(call.arguments).map_err(Failure::Refused)?;
                self.put(call.id, &file.name, file.media_type(), file.text.clone().into()).await
            }
            ("comment", Backend::Google(google)) => {
                let comment = Comment::read(call.arguments).map_err(Failure::Refused)?;
                let file = call.target.split('/').next().unwrap_or_default();
                let receipt = google.comment(file, &comment.text).await?;
                // The conversation stays where it is.
                Ok(Receipt { target: None, ..receipt })
            }
            (name, _) => Err(Failure::Refused(format!("A drive has no action {name}.").into())),
        }
    }

    async fn download(&self, file: &RemoteFile, to: Spool<'_>, most: u64) -> Result<u64, Failure> {
        let Content::There(handle) = &file.content else {
            return Err(Failure::Refused("The file came with its message.".into()));
        };
        match &self.backend {
            Backend::Google(google) => google.download(handle, to, most).await,
            Backend::WebDav(dav) => dav.download(handle, to, most).await,
        }
    }
}

impl Transport for Drive {
    fn traits(&self) -> &'static Traits {
        match self.backend {
            Backend::Google(_) => &TRAITS,
            Backend::WebDav(_) => &WEBDAV,
        }
    }

    fn probe(&self) -> BoxFuture<'_, Result<Identity, Failure>> {
        Box::pin(self.identify())
    }

    fn choices<'a>(&'a self, parent: Option<&'a str>) -> BoxFuture<'a, Result<Vec<Choice>, Failure>> {
        Box::pin(async move {
            match &self.backend {
                Backend::Google(google) => google.folders(parent).await,
                Backend::WebDav(dav) => dav.folders(parent.unwrap_or_default()).await,
            }
        })
    }

    fn listen<'a>(
        &'a self,
        cursor: Option<Cursor>,
        sink: &'a dyn Sink,
    ) -> BoxFuture<'a, Result<Infallible, Failure>> {
        Box::pin(looking::listen(self, cursor, sink))
    }

    fn send<'a>(&'a self, part: &'a Part<'a>) -> BoxFuture<'a, Result<Receipt, Failure>> {
        Box::pin(self.send_part(part))
    }

    fn act<'a>(&'a self, call: &'a ActionCall<'a>) -> BoxFuture<'a, Result<Receipt, Failure>> {
        Box::pin(self.perform(call))
    }

    fn fetch<'a>(
        &'a self,
        file: &'a RemoteFile,
        to: Spool<'a>,
        most: u64,
    ) -> BoxFuture<'a, Result<u64, Failure>> {
        Box::pin(self.download(file, to, most.min(TRAITS.largest_in)))
    }
}
