//! Google Drive's API: <https://developers.google.com/workspace/drive/api/reference/rest/v3>.

use std::{collections::VecDeque, time::Duration};

use bytes::Bytes;
use http::{Method, header::CONTENT_TYPE};
use jiff::Timestamp;
use reqwest::RequestBuilder;
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Value, json};
use url::Url;

use super::{
    files::{File, check_count, digest},
    own::own_id,
    service_account::ServiceAccount,
};
use crate::{
    bounds,
    contract::{Cause, Choice, Failure, Part, Receipt, Scope, Spool},
    network::{HttpResponse, Network, VendorClient},
    oauth::TokenSource,
};

const PEER: &str = "Google";
/// What is missing before anything can come in or go out.
pub const NO_ACCOUNT: &str = "No account is connected. Connect a Google account, or set a service account's key or the address of a WebDAV server.";
const FOLDER: &str = "application/vnd.google-apps.folder";
/// The fields of a file.
const FIELDS: &str = "id,name,mimeType,md5Checksum,modifiedTime,size,webViewLink,\
                      lastModifyingUser(me,displayName,emailAddress,permissionId)";
/// Google's own documents, in forms that agents can read.
static EXPORTS: [(&str, &str, &str); 4] = [
    ("application/vnd.google-apps.document", "text/markdown", "md"),
    ("application/vnd.google-apps.drawing", "image/png", "png"),
    ("application/vnd.google-apps.presentation", "text/plain", "txt"),
    ("application/vnd.google-apps.spreadsheet", "text/csv", "csv"),
];

/// Whose access it is.
pub enum Login {
    /// `None`: none is connected yet.
    Account(Option<TokenSource>),
    Service(ServiceAccount),
}

/// A folder at Google Drive.
pub struct Google {
    vendor: VendorClient,
    api: Url,
    tokens: Url,
    clock: fn() -> Timestamp,
    login: Login,
    folder: String,
    /// Makes the ids of our files.
    key: SecretString,
}

/// Our account.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Me {
    pub id: Option<String>,
    pub name: String,
    pub address: String,
}

/// A position in the list of changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changes {
    pub token: String,
    /// Whether any file has changed since the last position.
    pub any: bool,
}

impl Google {
    pub fn new(network: &Network, login: Login, folder: String, key: SecretString) -> Self {
        Self {
            vendor: network.vendor.clone(),
            api: network.vendors.google_api.clone(),
            tokens: network.vendors.google_tokens.clone(),
            clock: network.clock,
            login,
            folder,
            key,
        }
    }

    pub fn has_account(&self) -> bool {
        !matches!(self.login, Login::Account(None))
    }

    pub async fn me(&self) -> Result<Me, Failure> {
        let said =
            self.get("drive/v3/about", &[("fields", "user(permissionId,displayName,emailAddress)")]).await?;
        let text = |field: &str| said["user"][field].as_str().unwrap_or_default().to_owned();
        let id = Some(text("permissionId")).filter(|id| !id.is_empty());
        Ok(Me { id, name: text("displayName"), address: text("emailAddress") })
    }

    /// The folder's id, for which the setting may be an alias (`root`), and that of the shared drive that it is in.
    pub async fn folder(&self) -> Result<(String, Option<String>), Failure> {
        let path = format!("drive/v3/files/{}", identifier(&self.folder)?);
        let fields = [("fields", "id,mimeType,driveId"), ("supportsAllDrives", "true")];
        let folder = self.get(&path, &fields).await?;
        if folder["mimeType"] != FOLDER {
            return Err(Failure::Refused("Google: the id is that of a file, not of a folder.".into()));
        }
        let id = folder["id"].as_str().unwrap_or(&self.folder).to_owned();
        Ok((id, folder["driveId"].as_str().map(str::to_owned)))
    }

    /// The current position in the list of changes, and the time at Google.
    pub async fn begin(&self, drive: Option<&str>) -> Result<(String, Timestamp), Failure> {
        let mut query = vec![("supportsAllDrives", "true")];
        query.extend(drive.map(|drive| ("driveId", drive)));
        let answer = self.call("drive/v3/changes/startPageToken", &query).await?;
        let now = answer.date().unwrap_or_else(self.clock);
        let said = self.read(&answer).await?;
        let token = said["startPageToken"].as_str().map(str::to_owned);
        token.map(|token| (token, now)).ok_or_else(|| unexpected("the position of changes"))
    }

    /// Whether there are changes since a position. `None`: Google no longer knows the position.
    pub async fn changes(&self, token: &str, drive: Option<&str>) -> Result<Option<Changes>, Failure> {
        let mut changes = Changes { token: token.to_owned(), any: false };
        loop {
            let page = changes.token.clone();
            let mut query = vec![
                ("pageToken", page.as_str()),
                ("pageSize", "1000"),
                ("fields", "nextPageToken,newStartPageToken,changes(fileId)"),
                ("supportsAllDrives", "true"),
                ("includeItemsFromAllDrives", "true"),
            ];
            query.extend(drive.map(|drive| ("driveId", drive)));
            let answer = self.call("drive/v3/changes", &query).await?;
            if matches!(answer.status.as_u16(), 400 | 410) {
                return Ok(None);
            }
            let said = self.read(&answer).await?;
            changes.any |= said["changes"].as_array().is_some_and(|changes| !changes.is_empty());
            if let Some(token) = said["newStartPageToken"].as_str() {
                token.clone_into(&mut changes.token);
                return Ok(Some(changes));
            }
            let next = said["nextPageToken"].as_str().filter(|next| *next != page);
            next.ok_or_else(|| unexpected("the changes"))?.clone_into(&mut changes.token);
        }
    }

    /// All files of the folder and of those below it.
    pub async fn files(&self) -> Result<Vec<File>, Failure> {
        let mut folders = VecDeque::from([identifier(&self.folder)?.to_owned()]);
        let (mut files, mut entries) = (Vec::new(), 0);
        while let Some(folder) = folders.pop_front() {
            for found in self.list(&format!("'{folder}' in parents and trashed = false")).await? {
                let Some(id) = found["id"].as_str().filter(|id| identifier(id).is_ok()) else { continue };
                let file = read_file(id, &found);
                entries += file.weight();
                check_count(entries)?;
                if found["mimeType"] == FOLDER {
                    folders.push_back(file.id);
                } else {
                    files.push(file);
                }
            }
        }
        Ok(files)
    }

    /// The folders in a folder. `None`: those of the account, and those shared with it.
    pub async fn folders(&self, parent: Option<&str>) -> Result<Vec<Choice>, Failure> {
        let place = match parent {
            Some(parent) => format!("'{}' in parents", identifier(parent)?),
            None => "('root' in parents or sharedWithMe)".to_owned(),
        };
        let found = self.list(&format!("{place} and mimeType = '{FOLDER}' and trashed = false")).await?;
        let folder = |found: &Value| {
            Some(Choice { id: found["id"].as_str()?.to_owned(), name: found["name"].as_str()?.to_owned() })
        };
        Ok(found.iter().filter_map(folder).take(bounds::LIST).collect())
    }

    /// The comments on a file that changed at this time or later, with their replies.
    pub async fn comments(&self, file: &str, since: Timestamp) -> Result<Vec<Value>, Failure> {
        let since = since.to_string();
        let query = [
            ("pageSize", "100"),
            ("fields", "nextPageToken,comments"),
            ("startModifiedTime", since.as_str()),
        ];
        self.pages(&comments_path(file)?, &query, "comments").await
    }

    /// Comments on a file, or replies to a comment: `FILE` or `FILE/COMMENT`.
    pub async fn comment(&self, target: &str, text: &str) -> Result<Receipt, Failure> {
        let mut path = comments_path(target)?;
        if target.contains('/') {
            path.push_str("/replies");
        }
        let request = self.request(Method::POST, &path, &[("fields", "id")]).await?;
        let answer = self.send(request.json(&json!({"content": text})), bounds::ANSWER).await?;
        Ok(receipt(target, &self.read(&answer).await?).unwrap_or_default())
    }

    /// The comment or reply that an earlier attempt wrote. Comments have no ids of ours: it is one of ours with this text,
    /// written since the message was, that is none of our earlier messages.
    pub async fn find_comment(&self, part: &Part<'_>) -> Result<Option<Receipt>, Failure> {
        // Google's clock may be behind.
        let since = Timestamp::from_second(part.written_at.as_second() - 5 * 60).unwrap_or_default();
        let written = if part.target.contains('/') {
            let mut thread = self.get(&comments_path(part.target)?, &[("fields", "*")]).await?;
            match thread["replies"].take() {
                Value::Array(replies) => replies,
                _ => Vec::new(),
            }
        } else {
            self.comments(part.target, since).await?
        };
        let is_it = |said: &&Value| {
            let at = said["createdTime"].as_str().and_then(|at| at.parse::<Timestamp>().ok());
            said["author"]["me"] == true && said["content"] == part.text.text.as_str() && at >= Some(since)
        };
        let is_unknown =
            |receipt: &Receipt| receipt.vendor_id.as_ref().is_some_and(|id| !part.refs.contains(id));
        let mut found = written.iter().rev().filter(is_it).filter_map(|said| receipt(part.target, said));
        Ok(found.find(is_unknown))
    }

    /// Puts a file into the folder, once for each delivery: its id is a property of the file that only Muster sees, and
    /// that no other installation with the same account makes.
    pub async fn put(
        &self,
        id: &str,
        name: &str,
        media_type: &str,
        content: Bytes,
    ) -> Result<Receipt, Failure> {
        let id = own_id(&self.key, identifier(id)?);
        let query = format!("appProperties has {{ key='muster' and value='{id}' }} and trashed = false");
        if let Some(put) = self.list(&query).await?.first() {
            return Ok(Receipt { vendor_id: put["id"].as_str().map(str::to_owned), target: None });
        }
        let folder = identifier(&self.folder)?;
        let about = json!({"name": name, "mimeType": media_type, "parents": [folder], "appProperties": {"muster": id}});
        // The content may hold any other boundary.
        let boundary = format!("muster-{id}-{:016x}", digest(&format!("{id}{:?}", (self.clock)())));
        let head = format!(
            "--{boundary}\r\ncontent-type: application/json; charset=utf-8\r\n\r\n{about}\r\n\
             --{boundary}\r\ncontent-type: application/octet-stream\r\n\r\n"
        );
        let body = [head.as_bytes(), &content[..], format!("\r\n--{boundary}--").as_bytes()].concat();
        let parameters = [("uploadType", "multipart"), ("fields", "id"), ("supportsAllDrives", "true")];
        let request = self.request(Method::POST, "upload/drive/v3/files", &parameters).await?;
        let request =
            request.header(CONTENT_TYPE, format!("multipart/related; boundary={boundary}")).body(body);
        let said = self.read(&self.send(request, bounds::TRANSFER).await?).await?;
        Ok(Receipt { vendor_id: said["id"].as_str().map(str::to_owned), target: None })
    }

    /// Downloads a file: `ID VERSION`, or `ID VERSION TYPE` for a document in this form. Fails if it is no longer that
    /// version: the message names its author, whom the whitelist admits.
    pub async fn download(&self, handle: &str, to: Spool<'_>, most: u64) -> Result<u64, Failure> {
        let mut words = handle.split(' ');
        let id = identifier(words.next().unwrap_or_default())?;
        let path = format!("drive/v3/files/{id}");
        let request = match words.nth(1) {
            Some(form) => self.request(Method::GET, &format!("{path}/export"), &[("mimeType", form)]).await?,
            None => {
                self.request(Method::GET, &path, &[("alt", "media"), ("supportsAllDrives", "true")]).await?
            }
        };
        let length = self.vendor.download(PEER, request, to, most).await?;
        let now = self.get(&path, &[("fields", FIELDS), ("supportsAllDrives", "true")]).await?;
        if read_file(id, &now).handle.as_deref() == Some(handle) {
            Ok(length)
        } else {
            Err(Failure::NotSent("The file has changed meanwhile.".into()))
        }
    }

    async fn list(&self, query: &str) -> Result<Vec<Value>, Failure> {
        let fields = format!("nextPageToken,files({FIELDS})");
        let parameters = [
            ("q", query),
            ("pageSize", "1000"),
            ("fields", fields.as_str()),
            ("supportsAllDrives", "true"),
            ("includeItemsFromAllDrives", "true"),
        ];
        self.pages("drive/v3/files", &parameters, "files").await
    }

    /// All pages of a list, as far as we read.
    async fn pages(&self, path: &str, query: &[(&str, &str)], field: &str) -> Result<Vec<Value>, Failure> {
        let (mut all, mut next) = (Vec::new(), None::<String>);
        loop {
            let mut said = {
                let page = next.iter().map(|next| ("pageToken", next.as_str()));
                self.get(path, &query.iter().copied().chain(page).collect::<Vec<_>>()).await?
            };
            if let Value::Array(some) = said[field].take() {
                all.extend(some);
            }
            next = said["nextPageToken"].as_str().map(str::to_owned);
            check_count(all.len())?;
            if next.is_none() {
                return Ok(all);
            }
        }
    }

    async fn get(&self, path: &str, query: &[(&str, &str)]) -> Result<Value, Failure> {
        self.read(&self.call(path, query).await?).await
    }

    async fn call(&self, path: &str, query: &[(&str, &str)]) -> Result<HttpResponse, Failure> {
        self.send(self.request(Method::GET, path, query).await?, bounds::ANSWER).await
    }

    async fn send(&self, request: RequestBuilder, most: Duration) -> Result<HttpResponse, Failure> {
        self.vendor.call(PEER, request, most).await
    }

    async fn request(
        &self,
        method: Method,
        path: &str,
        query: &[(&str, &str)],
    ) -> Result<RequestBuilder, Failure> {
        let mut url =
            self.api.join(path).map_err(|_| Failure::NotSent("Google's address can't be used.".into()))?;
        url.query_pairs_mut().extend_pairs(query);
        let token = match &self.login {
            Login::Account(Some(tokens)) => tokens().await?,
            Login::Account(None) => return Err(Failure::NotSent(NO_ACCOUNT.into())),
            Login::Service(account) => account.token(&self.vendor, &self.tokens, (self.clock)()).await?,
        };
        Ok(self.vendor.http.request(method, url).bearer_auth(token.expose_secret()))
    }

    async fn read(&self, answer: &HttpResponse) -> Result<Value, Failure> {
        let read = read_response(answer, (self.clock)());
        if let (Err(Failure::Credentials(_)), Login::Service(account)) = (&read, &self.login) {
            account.forget().await;
        }
        read
    }
}

/// <https://developers.google.com/workspace/drive/api/guides/handle-errors>
fn read_response(answer: &HttpResponse, now: Timestamp) -> Result<Value, Failure> {
    let said: Value = muster_json::from_slice(&answer.body).unwrap_or_default();
    if answer.status.is_success() {
        return Ok(said);
    }
    let status = answer.status.as_u16();
    let cause = match said["error"]["message"].as_str() {
        Some(words) => Cause::from(format!("Google: {words}")),
        None => Cause::from(format!("Google answered with status {status}.")),
    };
    let reason = said["error"]["errors"][0]["reason"].as_str().unwrap_or_default();
    Err(match (status, reason) {
        (401, _) => Failure::Credentials(cause),
        (429, _)
        | (
            403,
            "rateLimitExceeded" | "userRateLimitExceeded" | "sharingRateLimitExceeded" | "dailyLimitExceeded",
        ) => {
            let wait = answer.retry_after(now).unwrap_or(bounds::RETRY);
            Failure::RateLimited { wait, scope: Scope::Channel, cause }
        }
        (404, _) => Failure::TargetGone(cause),
        (400..500, _) => Failure::Refused(cause),
        _ => Failure::Unknown(cause),
    })
}

fn read_file(id: &str, found: &Value) -> File {
    let text = |field: &str| found[field].as_str().map(str::to_owned);
    let kind = text("mimeType").unwrap_or_default();
    let user = &found["lastModifyingUser"];
    let of = |field: &str| user[field].as_str().map(str::to_owned);
    let name = text("name").unwrap_or_default();
    let export = EXPORTS.iter().find(|(of, ..)| *of == kind);
    // Forms, shortcuts and others have no bytes.
    let has_bytes = !kind.starts_with("application/vnd.google-apps.");
    let version = text("md5Checksum").or_else(|| text("modifiedTime")).unwrap_or_default();
    // Their name alone says nothing about who they are.
    let author = of("emailAddress").or_else(|| of("permissionId")).zip(of("displayName"));
    let state = digest(&format!("{version} {author:?}"));
    let handle = match export {
        Some((_, form, _)) => Some(format!("{id} {state:016x} {form}")),
        None => has_bytes.then(|| format!("{id} {state:016x}")),
    };
    File {
        id: id.to_owned(),
        target: id.to_owned(),
        version,
        name: export.map_or_else(|| name.clone(), |(_, _, end)| format!("{name}.{end}")),
        media_type: export.map_or(kind, |(_, form, _)| (*form).to_owned()),
        size: found["size"].as_str().filter(|_| export.is_none()).and_then(|size| size.parse().ok()),
        modified: text("modifiedTime").and_then(|time| time.parse().ok()),
        author,
        is_ours: user["me"] == true,
        handle,
        link: text("webViewLink"),
    }
}

/// The path of a file's comments, or of one of them: `FILE` or `FILE/COMMENT`.
fn comments_path(target: &str) -> Result<String, Failure> {
    Ok(match target.split_once('/') {
        None => format!("drive/v3/files/{}/comments", identifier(target)?),
        Some((file, comment)) => {
            format!("drive/v3/files/{}/comments/{}", identifier(file)?, identifier(comment)?)
        }
    })
}

/// The receipt of a comment, of which replies are the answers, or of a reply.
fn receipt(target: &str, said: &Value) -> Option<Receipt> {
    let id = said["id"].as_str()?;
    Some(match target.split_once('/') {
        None => Receipt { vendor_id: Some(id.to_owned()), target: Some(format!("{target}/{id}")) },
        Some((_, comment)) => Receipt { vendor_id: Some(format!("{comment}/{id}")), target: None },
    })
}

/// An id in a path or a query.
fn identifier(id: &str) -> Result<&str, Failure> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let is_id = !id.is_empty() && id.chars().all(is_part);
    if is_id { Ok(id) } else { Err(Failure::Refused("This is not an id of Google Drive.".into())) }
}

fn unexpected(what: &str) -> Failure {
    Failure::NotSent(format!("Google does not tell {what}.").into())
}
