//! A fake Google Drive: <https://developers.google.com/workspace/drive/api/reference/rest/v3>. The account agent@example.test
//! (9) and Ada (5) share a folder (`folder1`) with a folder in it (`folder2`).

use std::{
    collections::{HashMap, VecDeque},
    future::pending,
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use axum::{
    Json, Router,
    body::Bytes,
    extract::State,
    http::{
        HeaderMap, Method, StatusCode, Uri,
        header::{AUTHORIZATION, CONTENT_TYPE},
    },
    response::{IntoResponse, Response},
};
use serde_json::{Value, json};

use super::{asked, serve};

/// The account's access token.
pub const TOKEN: &str = "ya29.canary";
const FOLDER: &str = "application/vnd.google-apps.folder";

#[derive(Default)]
pub struct Fake {
    /// Answers that replace the next regular ones.
    pub answers: VecDeque<(u16, Value)>,
    /// The received requests, with the query and the body.
    pub asked: Vec<(String, Value)>,
    /// The files, of which people see a part.
    pub files: Vec<Value>,
    /// Their bytes.
    pub contents: HashMap<String, Vec<u8>>,
    /// The comments of files.
    pub comments: HashMap<String, Vec<Value>>,
    /// The id of the account's topmost folder.
    pub root: &'static str,
    /// Positions before this one are forgotten.
    pub oldest: usize,
    /// Requests that begin so take effect, but get no answer.
    pub hangs: Option<&'static str>,
    changes: usize,
    /// Counts what was written.
    written: usize,
}

pub type Shared = Arc<Mutex<Fake>>;

pub async fn drive() -> (SocketAddr, Shared) {
    let fake = Shared::default();
    {
        let mut fake = fake.lock().unwrap();
        fake.files.push(file("folder1", "Reports", FOLDER, "root", &ada()));
        fake.files.push(file("folder2", "2026", FOLDER, "folder1", &ada()));
    }
    let router = Router::new().fallback(answer).with_state(Arc::clone(&fake));
    (serve(router).await, fake)
}

/// The key of a service account, which the fake takes for the account itself.
pub async fn service_account() -> String {
    let mut command = tokio::process::Command::new("openssl");
    command.args(["genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048"]);
    let key = String::from_utf8(command.output().await.unwrap().stdout).unwrap();
    json!({"type": "service_account", "client_email": "muster@project.test", "private_key": key}).to_string()
}

/// An error response.
pub fn refusal(status: u16, reason: &str, message: &str) -> (u16, Value) {
    let error = json!({"message": message, "domain": "global", "reason": reason});
    (status, json!({"error": {"code": status, "message": message, "errors": [error]}}))
}

fn ada() -> Value {
    json!({"kind": "drive#user", "displayName": "Ada", "me": false, "permissionId": "5", "emailAddress": "ada@example.test"})
}

fn agent() -> Value {
    json!({"kind": "drive#user", "displayName": "Agent", "me": true, "permissionId": "9",
        "emailAddress": "agent@example.test"})
}

/// Google shows no address of a comment's author.
fn author(user: &Value) -> Value {
    json!({"kind": "drive#user", "displayName": user["displayName"], "me": user["me"]})
}

fn file(id: &str, name: &str, kind: &str, parent: &str, user: &Value) -> Value {
    json!({"kind": "drive#file", "id": id, "name": name, "mimeType": kind, "parents": [parent], "trashed": false,
        "lastModifyingUser": user, "modifiedTime": time(0), "webViewLink": format!("https://drive.test/{id}")})
}

/// Later than the tests.
fn time(nth: usize) -> String {
    format!("2100-01-01T{:02}:{:02}:{:02}.000Z", nth / 3600, nth / 60 % 60, nth % 60)
}

impl Fake {
    /// Ada puts a file into a folder, or changes it.
    pub fn puts(&mut self, id: &str, name: &str, parent: &str, content: &str) {
        self.files.retain(|file| file["id"] != id);
        let mut file = file(id, name, "text/plain", parent, &ada());
        self.written += 1;
        (file["modifiedTime"], file["size"]) = (time(self.written).into(), content.len().to_string().into());
        file["md5Checksum"] = format!("md5 of {content}").into();
        self.files.push(file);
        self.contents.insert(id.to_owned(), content.into());
        self.changes += 1;
    }

    /// Ada comments on a file. Returns the comment's id.
    pub fn says(&mut self, file: &str, text: &str) -> String {
        let comment = self.comment(&ada(), text);
        let id = comment["id"].as_str().unwrap().to_owned();
        self.comments.entry(file.to_owned()).or_default().push(comment);
        id
    }

    /// Ada replies to a comment.
    pub fn replies(&mut self, file: &str, comment: &str, text: &str) {
        let reply = self.comment(&ada(), text);
        self.reply(file, comment, reply).unwrap();
    }

    /// The texts of comments and replies of the account, in their order.
    pub fn sent(&self) -> Vec<String> {
        let all = self.comments.values().flatten();
        let said = all.flat_map(|comment| comment["replies"].as_array().unwrap().iter().chain([comment]));
        let ours = said.filter(|said| said["author"]["me"] == true);
        let mut ours: Vec<_> =
            ours.map(|said| (said["createdTime"].as_str(), said["content"].as_str())).collect();
        ours.sort_unstable();
        ours.into_iter().map(|(_, text)| text.unwrap().to_owned()).collect()
    }

    /// Asks again for all that may have changed.
    pub fn forget_positions(&mut self) {
        self.changes += 1;
        self.oldest = self.changes;
    }

    /// The bodies of requests with this method and path.
    pub fn bodies(&self, which: &str) -> Vec<Value> {
        self.asked.iter().filter(|(asked, _)| asked == which).map(|(_, body)| body.clone()).collect()
    }

    fn comment(&mut self, user: &Value, text: &str) -> Value {
        self.written += 1;
        let at = time(self.written);
        json!({"kind": "drive#comment", "id": format!("C{}", self.written), "createdTime": at, "modifiedTime": at,
            "author": author(user), "content": text, "deleted": false, "replies": []})
    }

    fn reply(&mut self, file: &str, comment: &str, reply: Value) -> Option<Value> {
        let comments = self.comments.get_mut(file)?;
        let comment = comments.iter_mut().find(|it| it["id"] == comment)?;
        comment["modifiedTime"] = reply["createdTime"].clone();
        comment["replies"].as_array_mut()?.push(reply.clone());
        Some(reply)
    }

    fn find(&self, id: &str) -> Option<&Value> {
        self.files.iter().find(|file| file["id"] == id)
    }

    fn judge(&mut self, method: &Method, path: &str, query: &Value, body: &Value) -> (u16, Value) {
        if let Some(answer) = self.answers.pop_front() {
            return answer;
        }
        let parts: Vec<&str> = path.split('/').collect();
        let missing = || refusal(404, "notFound", "File not found");
        let found = match (method.as_str(), &parts[..]) {
            ("GET", ["about"]) => Some(json!({"user": agent()})),
            ("GET", ["changes", "startPageToken"]) => {
                Some(json!({"startPageToken": self.changes.to_string()}))
            }
            ("GET", ["changes"]) => return self.changes_since(query),
            ("GET", ["files"]) => {
                Some(json!({"files": self.search(query["q"].as_str().unwrap_or_default())}))
            }
            ("GET", ["files", "root"]) => Some(file(self.root, "My Drive", FOLDER, "", &agent())),
            ("GET", ["files", id]) => self.find(id).cloned(),
            ("GET", ["files", id, "comments"]) if self.find(id).is_some() => {
                let since = query["startModifiedTime"].as_str().unwrap_or_default();
                let comments = self.comments.get(*id).cloned().unwrap_or_default();
                let of = comments.into_iter().filter(|it| it["modifiedTime"].as_str().unwrap() >= since);
                Some(json!({"comments": of.collect::<Vec<_>>()}))
            }
            ("GET", ["files", id, "comments", comment]) => {
                let comments = self.comments.get(*id);
                comments.and_then(|all| all.iter().find(|it| it["id"] == *comment)).cloned()
            }
            ("POST", ["files", id, "comments"]) if self.find(id).is_some() => {
                let comment = self.comment(&agent(), body["content"].as_str().unwrap());
                self.comments.entry((*id).to_owned()).or_default().push(comment.clone());
                Some(comment)
            }
            ("POST", ["files", id, "comments", comment, "replies"]) => {
                let reply = self.comment(&agent(), body["content"].as_str().unwrap());
                self.reply(id, comment, reply)
            }
            _ => None,
        };
        found.map_or_else(missing, |found| (200, found))
    }

    fn changes_since(&self, query: &Value) -> (u16, Value) {
        let token = query["pageToken"].as_str().and_then(|token| token.parse::<usize>().ok());
        let Some(token) = token.filter(|token| *token >= self.oldest) else {
            return refusal(410, "invalid", "Invalid Value");
        };
        let changes: Vec<Value> = (token..self.changes).map(|_| json!({"fileId": "any"})).collect();
        (200, json!({"changes": changes, "newStartPageToken": self.changes.to_string()}))
    }

    /// The queries that our transport makes.
    fn search(&self, query: &str) -> Vec<Value> {
        let between = |begin: &str, end: &str| Some(query.split_once(begin)?.1.split_once(end)?.0.to_owned());
        let (id, parent) =
            (between("value='", "'"), query.strip_prefix('\'').and(between("'", "' in parents")));
        let is_it = |file: &&Value| {
            id.as_ref().is_none_or(|id| file["appProperties"]["muster"] == **id)
                && parent.as_ref().is_none_or(|parent| file["parents"][0] == **parent)
                && (!query.contains("mimeType = ") || file["mimeType"] == FOLDER)
        };
        self.files.iter().filter(is_it).cloned().collect()
    }

    fn upload(&mut self, about: &Value, content: Vec<u8>) -> (u16, Value) {
        if let Some(answer) = self.answers.pop_front() {
            return answer;
        }
        self.written += 1;
        let id = format!("U{}", self.written);
        let mut file = file(&id, "", "text/plain", "folder1", &agent());
        for (field, value) in about.as_object().unwrap() {
            file[field] = value.clone();
        }
        file["md5Checksum"] = format!("md5 of {}", String::from_utf8_lossy(&content)).into();
        self.files.push(file.clone());
        self.contents.insert(id, content);
        self.changes += 1;
        (200, file)
    }
}

/// The JSON and the content of an upload.
fn parts(headers: &HeaderMap, body: &[u8]) -> (Value, Vec<u8>) {
    let kind = headers[CONTENT_TYPE].to_str().unwrap();
    let boundary =
        kind.strip_prefix("multipart/related; boundary=").expect("one form of uploads is understood");
    let text = String::from_utf8_lossy(body);
    let parts: Vec<&str> = text.split(&format!("--{}", boundary.trim_matches('"'))).collect();
    let content = |part: &str| {
        let (_, content) = part.split_once("\r\n\r\n").expect("a part has a head");
        content.strip_suffix("\r\n").unwrap_or(content).to_owned()
    };
    (serde_json::from_str(&content(parts[1])).unwrap(), content(parts[2]).into_bytes())
}

async fn answer(
    State(fake): State<Shared>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let query = asked(&uri, &HeaderMap::new(), Bytes::new()).await;
    if uri.path() == "/token" {
        let form = asked(&Uri::from_static("/"), &headers, body).await;
        let mut fake = fake.lock().unwrap();
        fake.asked.push(("POST token".to_owned(), form));
        let granted = json!({"access_token": TOKEN, "expires_in": 3599, "token_type": "Bearer"});
        return respond(fake.answers.pop_front().unwrap_or((200, granted)));
    }
    let token = headers.get(AUTHORIZATION).map(|token| token.to_str().unwrap().to_owned());
    if token != Some(format!("Bearer {TOKEN}")) {
        return respond(refusal(401, "authError", "Invalid Credentials"));
    }
    if uri.path() == "/upload/drive/v3/files" {
        let (about, content) = parts(&headers, &body);
        let mut fake = fake.lock().unwrap();
        fake.asked.push((format!("{method} upload"), about.clone()));
        return respond(fake.upload(&about, content));
    }
    let path = uri.path().trim_start_matches("/drive/v3/").to_owned();
    let body = if body.is_empty() { Value::Null } else { serde_json::from_slice(&body).unwrap() };
    let request = format!("{method} {path}");
    let (answer, hangs) = {
        let mut fake = fake.lock().unwrap();
        fake.asked.push((request.clone(), json!({"query": query.clone(), "body": body.clone()})));
        let content = path.strip_prefix("files/").map(|id| id.trim_end_matches("/export"));
        if let Some(content) = content.and_then(|id| fake.contents.get(id))
            && (query["alt"] == "media" || path.ends_with("/export"))
        {
            return content.clone().into_response();
        }
        (fake.judge(&method, &path, &query, &body), fake.hangs)
    };
    if hangs.is_some_and(|begin| request.starts_with(begin)) {
        pending::<()>().await;
    }
    respond(answer)
}

fn respond((status, said): (u16, Value)) -> Response {
    (StatusCode::from_u16(status).unwrap(), Json(said)).into_response()
}
