//! Signing in with an account at another provider, against a third-party provider (`tests/peers/oidc`).

use std::{collections::BTreeMap, process::Stdio, time::Duration};

use muster::{
    core::config::Config,
    domain::people::{self, NewUser},
};
use reqwest::{Client, Method, Response, header, redirect::Policy};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, BufReader, Lines},
    process::{Child, ChildStdout},
    time::timeout,
};

use crate::harness::{self, Actor, Answer, PATIENCE, TestApp, node};

pub const EXCHANGE: &str = "mutation($c: SecretString!) { exchangeSignInCode(code: $c) { accessToken user { id email name emailConfirmed } challenge { token } } }";
pub const EMAIL: &str = "ann@example.org";
const INVITE: &str = "mutation($o: Id!) { inviteMember(orgId: $o, input: { email: \"new@example.org\", role: OPERATOR }) { id } }";

/// A provider, running.
pub struct Provider {
    pub issuer: String,
    _process: Child,
    /// The provider keeps writing, and would end if no one read its output.
    _said: Lines<BufReader<ChildStdout>>,
}

impl Provider {
    /// `options` are those of `provider.mjs`.
    pub async fn start(options: &Value) -> Self {
        let mut command = node("oidc", "provider.mjs");
        let command = command.arg(options.to_string()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = command.spawn().expect("node is installed");
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let line = timeout(PATIENCE, lines.next_line()).await.expect("in time").unwrap();
        let issuer = line.expect("the provider runs").strip_prefix("issuer ").unwrap().to_owned();
        Self { issuer, _process: process, _said: lines }
    }

    /// The provider's section in the service's configuration file.
    pub fn settings(&self, join: bool) -> String {
        format!(
            "[peer]\nissuer = \"{}\"\nclient_id = \"muster\"\nclient_secret = \"the client secret\"\n\
             label = \"The peer\"\njoin_by_invitation = {join}\n",
            self.issuer
        )
    }
}

/// The service and its provider. The service's public URL only resolves in the browser below.
pub struct Setup {
    pub app: TestApp,
    _provider: Provider,
}

pub const PUBLIC: &str = "https://muster.test";
pub const START: &str = "/auth/oidc/peer/start?state=panel-state";

impl Setup {
    pub async fn open(in_id_token: bool, join: bool) -> Self {
        Self::open_with(in_id_token, join, |_| ()).await
    }

    async fn open_with(in_id_token: bool, join: bool, configure: impl FnOnce(&mut Config)) -> Self {
        let options = json!({
            "redirect": format!("{PUBLIC}/auth/oidc/peer/callback"),
            "inIdToken": in_id_token,
            "accounts": {
                "ann": { "email": EMAIL, "email_verified": true, "name": "Ann Elsewhere" },
                "eve": { "email": "owner@example.com", "email_verified": false, "name": "Eve" },
                "new": { "email": "new@example.org", "email_verified": true, "name": "New Elsewhere" },
            },
        });
        let provider = Provider::start(&options).await;
        let app = TestApp::with_mail_and(|config| {
            let file = config.data_dir.join("oidc.toml");
            let dead = "[dead]\nissuer = \"http://127.0.0.1:1\"\nclient_id = \"muster\"\n";
            let text = provider.settings(join) + dead;
            std::fs::write(&file, text).unwrap();
            config.oidc_file = Some(file);
            config.public_url = Some(PUBLIC.to_owned());
            configure(config);
        })
        .await;
        Self { app, _provider: provider }
    }

    pub async fn user(&self, confirmed: bool) -> i64 {
        let new = NewUser {
            email: EMAIL.to_owned(),
            name: "Ann".to_owned(),
            password: "correct horse".into(),
            confirmed,
        };
        people::create_user(&self.app.core, new).await.unwrap().0
    }

    /// Signs in as `login` at the provider. Returns what the panel gets after the `#`.
    pub async fn visit(&self, login: &str) -> BTreeMap<String, String> {
        let mut browser = Browser::new(&self.app);
        let url = browser.at_provider(START, login).await;
        fragment(&browser.arrive(&url).await)
    }

    /// A session of `login` there.
    pub async fn signed_in(&self, login: &str) -> Actor {
        self.actor(&self.exchange(&self.visit(login).await["code"]).await)
    }

    pub async fn exchange(&self, code: &str) -> Value {
        let data = self.app.anonymous.gql(EXCHANGE, json!({ "c": code })).await.data();
        data["exchangeSignInCode"].clone()
    }

    pub fn actor(&self, session: &Value) -> Actor {
        self.app.anonymous.with_bearer(session["accessToken"].as_str().unwrap())
    }
}

fn fragment(url: &str) -> BTreeMap<String, String> {
    let rest =
        url.strip_prefix("https://muster.test/sign-in#").unwrap_or_else(|| panic!("not the panel: {url}"));
    rest.split('&').filter_map(|pair| pair.split_once('=')).map(|(a, b)| (a.into(), b.into())).collect()
}

/// A browser: cookies per host, redirects followed by hand.
pub struct Browser {
    client: Client,
    cookies: BTreeMap<(String, String), String>,
    base: String,
}

impl Browser {
    pub fn new(app: &TestApp) -> Self {
        let client = Client::builder().no_proxy().redirect(Policy::none()).build().unwrap();
        Self { client, cookies: BTreeMap::new(), base: app.base.clone() }
    }

    fn host(url: &str) -> String {
        url.split('/').nth(2).unwrap().to_owned()
    }

    /// The service's public name leads to where it runs.
    async fn send(&mut self, url: &str, form: Option<&[(&str, &str)]>) -> Response {
        let host = Self::host(url);
        let place = url.replacen(PUBLIC, &self.base, 1);
        let cookies: Vec<String> = self
            .cookies
            .iter()
            .filter(|((of, _), _)| *of == host)
            .map(|((_, name), value)| format!("{name}={value}"))
            .collect();
        let request = match form {
            None => self.client.get(place),
            Some(form) => {
                let body = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(form).finish();
                let kind = "application/x-www-form-urlencoded";
                self.client.post(place).header(header::CONTENT_TYPE, kind).body(body)
            }
        };
        let response = request.header(header::COOKIE, cookies.join("; ")).send().await.unwrap();
        for cookie in response.headers().get_all(header::SET_COOKIE) {
            let (name, rest) = cookie.to_str().unwrap().split_once('=').unwrap();
            let (value, attributes) = rest.split_once(';').unwrap_or((rest, ""));
            if name.starts_with("__Host-") {
                for needed in ["Path=/", "Secure", "HttpOnly", "SameSite=Lax"] {
                    assert!(attributes.contains(needed), "{cookie:?}");
                }
                assert!(!attributes.contains("Domain"));
            }
            self.cookies.insert((host.clone(), name.to_owned()), value.to_owned());
        }
        response
    }

    fn location(response: &Response, from: &str) -> String {
        let to = response.headers()[header::LOCATION].to_str().unwrap();
        if to.starts_with('/') {
            format!("{}//{}{to}", from.split('/').next().unwrap(), Self::host(from))
        } else {
            to.to_owned()
        }
    }

    /// From the button to the redirect back to the service, which isn't followed.
    pub async fn at_provider(&mut self, start: &str, login: &str) -> String {
        let start = format!("{PUBLIC}{start}");
        let response = self.send(&start, None).await;
        assert_eq!(response.status(), 303);
        let url = Self::location(&response, &start);
        assert!(url.contains("code_challenge_method=S256") && url.contains("nonce="), "{url}");
        self.sign_in(url, login).await
    }

    /// Signs in at the provider, and allows what it asks. Returns the redirect back to the service, which isn't followed.
    pub async fn sign_in(&mut self, mut url: String, login: &str) -> String {
        for _ in 0..12 {
            if url.starts_with(PUBLIC) {
                return url;
            }
            let response = self.send(&url, None).await;
            if response.status().is_redirection() {
                url = Self::location(&response, &url);
                continue;
            }
            let page = response.text().await.unwrap();
            let prompt = if page.contains("value=\"login\"") { "login" } else { "consent" };
            let form = [("prompt", prompt), ("login", login), ("password", "any")];
            let response = self.send(&url, Some(&form)).await;
            url = Self::location(&response, &url);
        }
        panic!("the provider leads nowhere: {url}");
    }

    /// Follows the redirect back. Returns where the service then sends the browser.
    pub async fn arrive(&mut self, url: &str) -> String {
        let response = self.send(url, None).await;
        assert_eq!(
            (response.status().as_u16(), &response.headers()["cache-control"]),
            (303, &"no-store".parse().unwrap())
        );
        Self::location(&response, url)
    }
}

#[tokio::test]
async fn an_account_is_linked_by_address_then_found_by_subject() {
    for in_id_token in [true, false] {
        let setup = Setup::open(in_id_token, false).await;
        let id = setup.user(true).await;
        let end = setup.visit("ann").await;
        assert_eq!(end["state"], "panel-state");
        let session = setup.exchange(&end["code"]).await;
        assert_eq!((&session["user"]["id"], &session["user"]["name"]), (&json!(id), &json!("Ann")));
        let again = setup.app.anonymous.gql(EXCHANGE, json!({ "c": end["code"] })).await;
        assert_eq!(again.code(), "LINK_INVALID");
        assert_eq!(setup.app.mail().await.subject, "Another way to sign in");
        // The address may change on either side: the account stays linked.
        setup
            .app
            .execute("UPDATE users SET email = 'moved@example.org' WHERE id = $1", vec![id.into()])
            .await;
        let session = setup.exchange(&setup.visit("ann").await["code"]).await;
        assert_eq!(session["user"]["id"], id);
        assert!(setup.app.mails().await.is_empty());
        let viewer = setup.actor(&session).gql("{ viewer { user { id } } }", json!({})).await.data();
        assert_eq!(viewer["viewer"]["user"]["id"], id);
        // A second factor is still required.
        let sealed = if harness::is_postgres() { "password_hash::bytea" } else { "password_hash" };
        let sql =
            format!("UPDATE users SET totp_confirmed_at = 1, totp_secret_sealed = {sealed} WHERE id = $1");
        setup.app.execute(&sql, vec![id.into()]).await;
        let session = setup.exchange(&setup.visit("ann").await["code"]).await;
        assert!(session["accessToken"].is_null() && session["challenge"]["token"].is_string(), "{session:#}");
        setup.app.execute("UPDATE users SET disabled_at = 1 WHERE id = $1", vec![id.into()]).await;
        assert_eq!(setup.visit("ann").await["error"], "NO_ACCOUNT");
    }
}

#[tokio::test]
async fn the_code_opens_a_session_in_the_browser_that_came_back() {
    let setup = Setup::open(true, false).await;
    let id = setup.user(true).await;
    let end = setup.visit("ann").await;
    let mut browser = harness::Browser::new(&setup.app);
    // The page that the provider's answer leads to: the panel's, for every user.
    let page = Answer::of(browser.bare(Method::GET, "/sign-in").header("accept", "text/html")).await;
    assert!(page.status == 200 && page.header("set-cookie").is_empty());
    let exchange = "mutation($c: SecretString!) { exchangeSignInCode(code: $c, cookie: true) { accessToken user { id } } }";
    let answer = browser.gql(exchange, json!({ "c": end["code"] })).await;
    assert!(answer.header("set-cookie").starts_with("__Host-muster-session=mst_ses_"), "{answer:#?}");
    assert_eq!(answer.data()["exchangeSignInCode"], json!({ "accessToken": null, "user": { "id": id } }));
    assert_eq!(browser.refusal().await, None);
    let again = browser.gql(exchange, json!({ "c": end["code"] })).await;
    assert_eq!((again.code().as_str(), browser.refusal().await), ("LINK_INVALID", None));
    let list = "{ signInProviders { name label startPath } }";
    let listed = setup.app.anonymous.gql(list, json!({})).await.data();
    assert_eq!(
        listed["signInProviders"][1],
        json!({ "name": "peer", "label": "The peer", "startPath": "/auth/oidc/peer/start" })
    );
    let missing = setup.app.anonymous.get("/auth/oidc/unknown/start").await;
    assert_eq!(missing.problem(), (404, "NOT_FOUND"));
    // The settings of this provider give an invited person no account.
    setup.app.admin.gql(INVITE, json!({ "o": setup.app.org })).await.data();
    assert_eq!(setup.visit("new").await["error"], "NO_ACCOUNT");
}

#[tokio::test]
async fn a_confirmed_address_and_a_valid_invitation_create_an_account() {
    let setup = Setup::open(true, true).await;
    let app = &setup.app;
    // The provider doesn't confirm that the address is theirs, so it stays its owner's.
    assert_eq!(setup.visit("eve").await["error"], "EMAIL_NOT_VERIFIED");
    // Someone has registered the address here without confirming it.
    setup.user(false).await;
    assert_eq!(setup.visit("ann").await["error"], "EMAIL_NOT_CONFIRMED");
    // No account, no invitation.
    assert_eq!(setup.visit("new").await["error"], "NO_ACCOUNT");
    assert_eq!(app.one::<i64>("SELECT COUNT(*) FROM user_identities", vec![]).await, 0);
    app.admin.gql(INVITE, json!({ "o": app.org })).await.data();
    let sender_is = async |role: &str| {
        let sql = "UPDATE members SET role = $1 WHERE user_id = $2";
        app.execute(sql, vec![role.into(), app.admin.user.into()]).await;
    };
    let members_are_at_most = async |max: i64| {
        app.execute("UPDATE plans SET max_members = $1 WHERE plan = 'BUSINESS'", vec![max.into()]).await;
    };
    // An invitation that makes no one a member.
    let count = "SELECT COUNT(*) FROM users";
    let before: i64 = app.one(count, vec![]).await;
    sender_is("VIEWER").await;
    assert_eq!(setup.visit("new").await["error"], "NO_ACCOUNT");
    sender_is("ADMIN").await;
    members_are_at_most(4).await;
    assert_eq!(setup.visit("new").await["error"], "NO_ACCOUNT");
    assert_eq!(app.one::<i64>(count, vec![]).await, before);
    members_are_at_most(5).await;
    let session = setup.exchange(&setup.visit("new").await["code"]).await;
    assert_eq!(app.one::<i64>(count, vec![]).await, before + 1);
    assert_eq!(
        (&session["user"]["name"], &session["user"]["emailConfirmed"]),
        (&json!("New Elsewhere"), &json!(true))
    );
    let record = setup.actor(&session).get(&format!("/v1/org/{}", app.org)).await.expect(200);
    assert_eq!(record["viewer_role"], "OPERATOR");
    let other = setup.actor(&session).get(&format!("/v1/org/{}", app.other_org)).await;
    assert_eq!(other.problem(), (403, "NOT_A_MEMBER"));
    // A person who signs in at a provider has no password here, and can't be asked for one.
    let hash: Option<String> =
        app.one("SELECT password_hash FROM users WHERE email = 'new@example.org'", vec![]).await;
    assert!(hash.is_none());
}

#[tokio::test]
async fn a_callback_is_worthless_to_another_browser_or_later() {
    let setup = Setup::open(true, false).await;
    setup.user(true).await;
    let mut browser = Browser::new(&setup.app);
    let url = browser.at_provider(START, "ann").await;
    let mut other = Browser::new(&setup.app);
    assert_eq!(fragment(&other.arrive(&url).await)["error"], "STATE_INVALID");
    // Another browser with its own visit in progress.
    other.at_provider(START, "ann").await;
    assert_eq!(fragment(&other.arrive(&url).await)["error"], "STATE_INVALID");
    let forged = url.replace("code=", "code=x");
    let end = fragment(&browser.arrive(&forged).await);
    assert_eq!(end["error"], "PROVIDER_FAILED");
    // Under it the log has the reason.
    assert_eq!(end["reference"].len(), 36);
    // The cookie has been used.
    assert_eq!(fragment(&browser.arrive(&url).await)["error"], "STATE_INVALID");
    let late = browser.at_provider(START, "ann").await;
    setup.app.clock.advance(Duration::from_mins(10));
    assert_eq!(fragment(&browser.arrive(&late).await)["error"], "STATE_INVALID");
    // A code that isn't exchanged within a minute expires.
    let code = setup.visit("ann").await["code"].clone();
    setup.app.clock.advance(Duration::from_mins(1));
    assert_eq!(setup.app.anonymous.gql(EXCHANGE, json!({ "c": code })).await.code(), "LINK_INVALID");
}

#[tokio::test]
async fn starting_visits_uses_up_no_sign_in_allowance() {
    let setup = Setup::open_with(true, false, |config| {
        config.rate_limits.enabled = true;
        config.rate_limits.anonymous_per_minute = 100;
    });
    let setup = setup.await;
    setup.user(true).await;
    let browser = Browser::new(&setup.app);
    let start = async || {
        let begun = browser.client.get(format!("{}{START}", setup.app.base)).send();
        begun.await.unwrap().status().as_u16()
    };
    // More visits than an address has sign-in attempts: a page with images can cause that for anyone who views
    // it.
    for _ in 0..60 {
        assert_eq!(start().await, 303);
    }
    assert!(setup.visit("ann").await.contains_key("code"));
    // Attempts are charged to the address's anonymous bucket.
    let mut codes = Vec::new();
    for _ in 0..60 {
        codes.push(start().await);
    }
    assert_eq!(*codes.last().unwrap(), 429);
}
