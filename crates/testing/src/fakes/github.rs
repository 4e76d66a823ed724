//! A fake GitHub with an App: <https://docs.github.com/en/rest>. The App `muster` (70) is installed (7) by acme, whose
//! repository acme/shop (9) has an issue and a pull request (12). Ada (5) reaches both.

use std::{
    collections::VecDeque,
    future::pending,
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::SystemTime,
};

use axum::{
    Json, Router,
    body::Bytes,
    extract::State,
    http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, header::AUTHORIZATION},
    response::{IntoResponse, Response},
};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use rustls::{
    SignatureScheme,
    crypto::ring::sign::any_supported_type,
    pki_types::{PrivateKeyDer, pem::PemObject},
};
use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::{asked, serve};

/// The client ID of the App.
pub const CLIENT: &str = "Iv23canary";
/// The private key of the App. It is only for tests.
pub const KEY: &str = include_str!("github.pem");
/// The secret of the App's webhook.
pub const SECRET: &str = "It's a Secret to Everybody";
/// The token of the authorization of Ada.
pub const PERSON: &str = "ghu_canary";

pub struct Fake {
    pub at: Option<SocketAddr>,
    /// Answers that replace the next regular ones to an installation or a person, with a header.
    pub answers: VecDeque<Answer>,
    /// The received requests.
    pub asked: Vec<(String, Value)>,
    /// The deliveries of the App's webhook, with their payloads.
    pub deliveries: Vec<Value>,
    /// The written comments.
    pub comments: Vec<Value>,
    /// The installations that Ada reaches.
    pub reached: Vec<i64>,
    /// How many repositories the installation has.
    pub repositories: u64,
    /// Whether the installation is suspended.
    pub is_suspended: bool,
    /// The number of issued tokens. Only the last one counts.
    pub issued: u64,
    /// Requests that begin so take effect, but get no answer.
    pub hangs: Option<&'static str>,
    /// The next request that begins so is answered after this.
    pub held: Option<(&'static str, oneshot::Receiver<()>)>,
}

pub type Shared = Arc<Mutex<Fake>>;

/// A status, a body and a header.
pub type Answer = (u16, Value, Option<(&'static str, String)>);

pub async fn github() -> (SocketAddr, Shared) {
    let fake = Arc::new(Mutex::new(Fake {
        at: None,
        answers: VecDeque::new(),
        asked: Vec::new(),
        deliveries: Vec::new(),
        comments: Vec::new(),
        reached: vec![7],
        repositories: 1,
        is_suspended: false,
        issued: 0,
        hangs: None,
        held: None,
    }));
    let address = serve(Router::new().fallback(answer).with_state(Arc::clone(&fake))).await;
    fake.lock().unwrap().at = Some(address);
    (address, fake)
}

/// Ada's comment on issue 12.
pub fn commented(id: u64, text: &str) -> Value {
    commented_on(12, id, text)
}

/// Ada's comment on an issue.
pub fn commented_on(issue: u64, id: u64, text: &str) -> Value {
    json!({
        "action": "created", "installation": { "id": 7 }, "sender": ada(), "repository": repository(),
        "issue": {
            "id": 700 + issue, "number": issue, "title": "It breaks", "body": "Look.", "user": ada(),
            "assignees": [], "labels": [], "updated_at": "2026-11-30T09:00:00Z",
        },
        "comment": { "id": id, "body": text, "user": ada(), "updated_at": "2026-11-30T09:00:00Z" },
    })
}

fn ada() -> Value {
    json!({ "id": 5, "login": "ada", "type": "User" })
}

fn repository() -> Value {
    json!({ "id": 9, "name": "shop", "full_name": "acme/shop", "private": true })
}

fn installation(id: i64) -> Value {
    json!({
        "id": id, "account": { "login": "acme", "type": "Organization" }, "app_id": 70, "app_slug": "muster",
        "permissions": { "issues": "write", "pull_requests": "write" }, "suspended_at": null,
    })
}

/// An error response.
pub fn refusal(status: u16, message: &str) -> (u16, Value) {
    (status, json!({ "message": message, "documentation_url": "https://docs.github.com/rest" }))
}

impl Fake {
    /// Something happens. GitHub could deliver it, or not.
    pub fn happens(&mut self, event: &str, payload: &Value, status: u16) {
        let n = self.deliveries.len() as u64 + 1;
        // Later than anything else, one second after the other.
        let at = format!("2098-01-01T{:02}:{:02}:{:02}Z", n / 3600, n / 60 % 60, n % 60);
        self.deliveries.push(json!({
            "id": 1000 + n, "guid": format!("0b989ba4-242f-11e5-81e1-{n:012}"), "delivered_at": at, "redelivery": false,
            "duration": 0.27, "status": if status == 200 { "OK" } else { "Invalid HTTP Response" },
            "status_code": status, "event": event, "action": payload["action"],
            "installation_id": payload["installation"]["id"], "repository_id": 9, "throttled_at": null,
            "request": { "headers": { "X-GitHub-Event": event }, "payload": payload },
            "response": { "headers": {}, "payload": "" },
        }));
    }

    /// The bodies of requests with this method and path.
    pub fn bodies(&self, which: &str) -> Vec<Value> {
        self.asked.iter().filter(|(asked, _)| asked == which).map(|(_, body)| body.clone()).collect()
    }

    fn judge(&mut self, method: &str, path: &str, query: &str, asked: &Value) -> (u16, Value) {
        let parts: Vec<&str> = path.split('/').collect();
        match (method, &parts[..]) {
            ("GET", ["app"]) => (
                200,
                json!({ "id": 70, "slug": "muster", "name": "Muster", "client_id": CLIENT,
                    "html_url": "https://github.com/apps/muster" }),
            ),
            ("GET", ["app", "hook", "deliveries"]) => (200, self.page(query)),
            ("GET", ["app", "hook", "deliveries", id]) => {
                let id = id.parse().ok();
                let found = self.deliveries.iter().find(|one| one["id"].as_u64() == id);
                found.map_or_else(|| refusal(404, "Not Found"), |one| (200, one.clone()))
            }
            ("POST", ["app", "installations", "7", "access_tokens"]) if self.is_suspended => {
                refusal(403, "This installation has been suspended")
            }
            ("POST", ["app", "installations", "7", "access_tokens"]) => {
                self.issued += 1;
                let token = format!("ghs_canary{}", self.issued);
                (
                    201,
                    json!({ "token": token, "expires_at": "2099-01-01T00:00:00Z", "permissions": { "issues": "write" },
                    "repository_selection": "all" }),
                )
            }
            ("POST", ["login", "oauth", "access_token"]) if asked["client_id"] == CLIENT => {
                (200, json!({ "access_token": PERSON, "scope": "", "token_type": "bearer" }))
            }
            ("GET", ["user"]) => (200, ada()),
            ("GET", ["user", "installations"]) => {
                let all: Vec<_> = self.reached.iter().map(|id| installation(*id)).collect();
                (200, json!({ "total_count": all.len(), "installations": all }))
            }
            ("GET", ["user", "installations", _, "repositories"]) => {
                (200, json!({ "total_count": 1, "repositories": [repository()] }))
            }
            ("GET", ["installation", "repositories"]) => {
                (200, json!({ "total_count": self.repositories, "repositories": [repository()] }))
            }
            ("GET", ["repos", "acme", "shop", "issues", _, "comments"]) => (200, json!(self.comments)),
            ("POST", ["repos", "acme", "shop", "issues", _, "comments"]) => (201, self.write(asked)),
            ("POST", ["repos", "acme", "shop", "pulls", "12", "comments", _, "replies"]) => {
                (201, self.write(asked))
            }
            ("POST", ["repos", "acme", "shop", "pulls", "12", "reviews"]) => {
                (200, json!({ "id": 90, "state": "COMMENTED", "body": asked["body"] }))
            }
            ("POST", ["repos", "acme", "shop", .., "reactions"]) => {
                (201, json!({ "id": 1, "content": asked["content"], "user": { "login": "muster[bot]" } }))
            }
            _ => refusal(404, "Not Found"),
        }
    }

    /// The deliveries, the latest first.
    fn page(&self, query: &str) -> Value {
        let from = cursor(query);
        let page = self.deliveries.iter().rev().skip(from).take(100).map(|delivery| {
            let mut shown = delivery.clone();
            for field in ["request", "response"] {
                shown.as_object_mut().unwrap().remove(field);
            }
            shown
        });
        page.collect()
    }

    fn write(&mut self, asked: &Value) -> Value {
        let comment = json!({
            "id": 2000 + self.comments.len() as u64, "body": asked["body"], "created_at": "2026-11-30T09:00:00Z",
            "user": { "id": 71, "login": "muster[bot]", "type": "Bot" },
        });
        self.comments.push(comment.clone());
        comment
    }

    /// Whether a token may be used for a path.
    fn admits(&self, path: &str, token: &str) -> bool {
        match path.split('/').next() {
            Some("app") => is_app(token),
            Some("login") => true,
            Some("user") => token == PERSON,
            _ => !self.is_suspended && token == format!("ghs_canary{}", self.issued),
        }
    }
}

fn cursor(query: &str) -> usize {
    query.split('&').find_map(|field| field.strip_prefix("cursor=")).map_or(0, |at| at.parse().unwrap())
}

/// Whether this is a JSON Web Token of the App, for ten minutes at most. The signature of a text is always the same.
fn is_app(token: &str) -> bool {
    let Some((signed, signature)) = token.rsplit_once('.') else { return false };
    let key = any_supported_type(&PrivateKeyDer::from_pem_slice(KEY.as_bytes()).unwrap()).unwrap();
    let signer = key.choose_scheme(&[SignatureScheme::RSA_PKCS1_SHA256]).unwrap();
    let expected = URL_SAFE_NO_PAD.encode(signer.sign(signed.as_bytes()).unwrap());
    let Some((_, claims)) = signed.split_once('.') else { return false };
    let claims: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(claims).unwrap()).unwrap();
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
    let (from, until) = (claims["iat"].as_u64().unwrap(), claims["exp"].as_u64().unwrap());
    signature == expected && claims["iss"] == CLIENT && from <= now && until > now && until <= now + 600
}

async fn answer(
    State(fake): State<Shared>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let token = headers.get(AUTHORIZATION).and_then(|token| token.to_str().unwrap().split_once(' '));
    let token = token.map_or("", |(_, token)| token);
    let path = uri.path().trim_start_matches("/api/").trim_start_matches('/').to_owned();
    let query = uri.query().unwrap_or_default();
    let asked = asked(&Uri::from_static("/"), &headers, body).await;
    let request = format!("{method} {path}");
    let (status, said, header, hangs, held) = {
        let mut fake = fake.lock().unwrap();
        fake.asked.push((request.clone(), asked.clone()));
        // Those to the App itself are not replaced.
        let is_replaced = !path.starts_with("app");
        let (status, said, header) = if !fake.admits(&path, token) {
            let (status, said) = refusal(401, "Bad credentials");
            (status, said, None)
        } else if let Some(answer) = fake.answers.pop_front_if(|_| is_replaced) {
            answer
        } else {
            let (status, said) = fake.judge(method.as_str(), &path, query, &asked);
            let next = cursor(query) + 100;
            let has_more = path == "app/hook/deliveries" && fake.deliveries.len() > next;
            let next =
                format!("<http://{}/api/{path}?per_page=100&cursor={next}>; rel=\"next\"", fake.at.unwrap());
            (status, said, has_more.then_some(("link", next)))
        };
        let held = fake.held.take_if(|(begin, _)| request.starts_with(*begin));
        (status, said, header, fake.hangs, held)
    };
    if let Some((_, answered)) = held {
        answered.await.ok();
    }
    if hangs.is_some_and(|begin| request.starts_with(begin)) {
        pending::<()>().await;
    }
    let mut response = (StatusCode::from_u16(status).unwrap(), Json(said)).into_response();
    if let Some((name, value)) = header {
        let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
        response.headers_mut().insert(name, HeaderValue::from_str(&value).unwrap());
    }
    response
}
