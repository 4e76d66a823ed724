//! Signing in at the providers that people use, each with the peculiarities of its own: `tests/samples/id_tokens`. A
//! provider here answers as the sample says, and signs; everything else is the real sign-in.

use std::{collections::BTreeMap, sync::Arc};

use axum::{
    Router,
    body::{Body, to_bytes},
    extract::{Request, State},
    response::Response,
};
use base64::{
    Engine,
    prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD},
};
use muster::base::time::Clock;
use openidconnect::{
    JsonWebKeyId, PrivateSigningKey,
    core::{CoreEdDsaPrivateSigningKey, CoreJwsSigningAlgorithm},
};
use reqwest::{Client, header, redirect::Policy};
use serde_json::{Map, Value, json};

use crate::{
    harness::{Logged, Ran, TestApp, muster},
    people::oidc::EXCHANGE,
};

const PUBLIC: &str = "https://muster.test";
const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/samples/id_tokens");
const CLIENT: &str = "muster-client";
const SECRET: &str = "canary-secret";

/// A key of this test.
fn key(seed: u8) -> CoreEdDsaPrivateSigningKey {
    let mut der = b"\x30\x2e\x02\x01\x00\x30\x05\x06\x03\x2b\x65\x70\x04\x22\x04\x20".to_vec();
    der.extend([seed; 32]);
    let pem =
        format!("-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n", BASE64_STANDARD.encode(der));
    CoreEdDsaPrivateSigningKey::from_ed25519_pem(&pem, Some(JsonWebKeyId::new("key-1".to_owned()))).unwrap()
}

/// `given` over `default`, field by field. The text `{absent}` takes a field away.
fn over(default: Value, given: &Value) -> Value {
    let Value::Object(mut fields) = default else { panic!("not an object") };
    for (name, value) in given.as_object().into_iter().flatten() {
        if value == "{absent}" {
            fields.remove(name);
        } else {
            fields.insert(name.clone(), value.clone());
        }
    }
    Value::Object(fields)
}

/// Providers, each below a folder of its own.
struct Vendors {
    base: String,
    all: BTreeMap<String, Value>,
}

impl Vendors {
    /// Each of `about` says how one answers, as far as it differs from a plain provider: `issuer` (what follows its
    /// folder), `metadata`, `keys`, `id_token` (claims), `header` (of the token), `forged`, `token_response`,
    /// `userinfo`, `returned` (what the browser brings back), `date`; and `settings` (of the service's file),
    /// `invited` (an address), `linked` (whose account it is by now). `{issuer}` and `{client}` stand for the provider's issuer and the client id.
    #[expect(clippy::disallowed_methods, reason = "it ends with the test")]
    async fn start(about: impl IntoIterator<Item = (String, Value)>) -> Arc<Self> {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let filled = about.into_iter().map(|(name, about)| {
            let issuer = format!("{base}/{name}{}", about["issuer"].as_str().unwrap_or_default());
            let text = about.to_string().replace("{issuer}", &issuer).replace("{client}", CLIENT);
            (name, over(serde_json::from_str(&text).unwrap(), &json!({ "issuer": issuer })))
        });
        let vendors = Arc::new(Self { all: filled.collect(), base: base.clone() });
        let router = Router::new().fallback(answer).with_state(Arc::clone(&vendors));
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        vendors
    }

    /// The providers' sections in the service's configuration file.
    fn settings(&self) -> String {
        let tables = self.all.iter().map(|(name, about)| {
            let settings = json!({ "client_id": CLIENT, "client_secret": SECRET, "issuer": about["issuer"] });
            let settings = over(settings, &about["settings"]);
            let lines = settings.as_object().unwrap().iter().map(|(key, value)| format!("{key} = {value}\n"));
            format!("[{}]\n{}", table(name), lines.collect::<String>())
        });
        tables.collect()
    }

    fn metadata(&self, name: &str) -> Value {
        let (about, base) = (&self.all[name], format!("{}/{name}", self.base));
        let mut metadata = json!({
            "issuer": about["issuer"],
            "authorization_endpoint": format!("{base}/authorize"),
            "token_endpoint": format!("{base}/token"),
            "jwks_uri": format!("{base}/keys"),
            "response_types_supported": ["code"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["RS256", "EdDSA"],
        });
        if about["userinfo"].is_object() {
            metadata["userinfo_endpoint"] = format!("{base}/userinfo").into();
        }
        over(metadata, &about["metadata"])
    }

    fn tokens(&self, name: &str, head: &http::HeaderMap, form: &str) -> (u16, Value) {
        let fields: BTreeMap<_, _> = url::form_urlencoded::parse(form.as_bytes()).into_owned().collect();
        let in_form =
            self.metadata(name)["token_endpoint_auth_methods_supported"] == json!(["client_secret_post"]);
        let basic = format!("Basic {}", BASE64_STANDARD.encode(format!("{CLIENT}:{SECRET}")));
        let known = if in_form {
            fields.get("client_secret").is_some_and(|secret| secret == SECRET)
        } else {
            head.get(header::AUTHORIZATION).is_some_and(|sent| *sent == *basic)
        };
        match fields.get("code") {
            _ if !known => (401, json!({ "error": "invalid_client" })),
            Some(nonce) if nonce != "muster-doctor" => (200, self.signed(name, nonce)),
            _ => (400, json!({ "error": "invalid_grant", "error_description": "unknown\ncode" })),
        }
    }

    fn signed(&self, name: &str, nonce: &str) -> Value {
        let (about, now) = (&self.all[name], Clock::system().now().0 / 1_000);
        let usual = json!({
            "iss": about["issuer"], "aud": CLIENT, "sub": "subject-1", "nonce": nonce, "iat": now, "exp": now + 300,
        });
        let claims = over(usual, &about["id_token"]);
        let part = |value: &Value| BASE64_URL_SAFE_NO_PAD.encode(value.to_string());
        let header = over(json!({ "alg": "EdDSA", "kid": "key-1", "typ": "JWT" }), &about["header"]);
        let text = format!("{}.{}", part(&header), part(&claims));
        let key = key(if about["forged"] == true { 8 } else { 7 });
        let signature = key.sign(&CoreJwsSigningAlgorithm::EdDsa, text.as_bytes()).unwrap();
        let token = format!("{text}.{}", BASE64_URL_SAFE_NO_PAD.encode(signature));
        let usual = json!({
            "access_token": "canary-access", "token_type": "Bearer", "expires_in": 3600, "id_token": token,
        });
        over(usual, &about["token_response"])
    }
}

/// The name of a sample in the service's file.
fn table(name: &str) -> String {
    name.replace('_', "-")
}

async fn answer(State(vendors): State<Arc<Vendors>>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let body = to_bytes(body, 1 << 16).await.unwrap();
    let (name, place) = head.uri.path().trim_start_matches('/').split_once('/').unwrap();
    let about = &vendors.all[name];
    let (status, value) = match place {
        "token" => vendors.tokens(name, &head.headers, std::str::from_utf8(&body).unwrap()),
        "userinfo" => {
            assert_eq!(head.headers[header::AUTHORIZATION], "Bearer canary-access");
            (200, over(json!({ "sub": "subject-1" }), &about["userinfo"]))
        }
        "keys" => (
            200,
            about.get("keys").cloned().unwrap_or_else(|| json!({ "keys": [key(7).as_verification_key()] })),
        ),
        place if place.ends_with(".well-known/openid-configuration") => (200, vendors.metadata(name)),
        other => (404, json!({ "error": other })),
    };
    let mut response = Response::builder().status(status).header(header::CONTENT_TYPE, "application/json");
    if let Some(date) = about["date"].as_str() {
        response = response.header(header::DATE, date);
    }
    response.body(Body::from(value.to_string())).unwrap()
}

fn found<'a>(value: &'a Value, name: &str) -> Option<&'a Value> {
    let fields = value.as_object()?;
    fields.get(name).or_else(|| fields.values().find_map(|value| found(value, name)))
}

/// The service, its providers, and a browser.
struct Setup {
    app: TestApp,
    vendors: Arc<Vendors>,
    log: Logged,
    client: Client,
}

impl Setup {
    async fn open(about: impl IntoIterator<Item = (String, Value)>) -> Self {
        let (vendors, log) = (Vendors::start(about).await, Logged::capture("info"));
        let app = TestApp::with_mail_and(|config| {
            let file = config.data_dir.join("oidc.toml");
            std::fs::write(&file, vendors.settings()).unwrap();
            config.oidc_file = Some(file);
            config.public_url = Some(PUBLIC.to_owned());
        })
        .await;
        app.user("ann@example.org", true).await;
        // The service closes a connection whose request is too long, and a client that keeps it would use it once more.
        let client = Client::builder().no_proxy().redirect(Policy::none()).pool_max_idle_per_host(0);
        let client = client.build().unwrap();
        Self { app, vendors, log, client }
    }

    /// The whole sign-in at a provider: what the panel finds behind the `#`.
    async fn visit(&self, name: &str) -> BTreeMap<String, String> {
        let about = &self.vendors.all[name];
        let place = format!("{}/auth/oidc/{}", self.app.base, table(name));
        let begun = self.client.get(format!("{place}/start?state=panel")).send().await.unwrap();
        let to = begun.headers()[header::LOCATION].to_str().unwrap().to_owned();
        if to.starts_with(PUBLIC) {
            return fragment(&to);
        }
        let to = url::Url::parse(&to).unwrap();
        let asked: BTreeMap<_, _> = to.query_pairs().into_owned().collect();
        let cookie = begun.headers()[header::SET_COOKIE].to_str().unwrap();
        let form = about["settings"]["response_mode"] == "form_post";
        // Browsers send no other cookie with a form that another site posts.
        assert!(cookie.ends_with(if form { "; SameSite=None" } else { "; SameSite=Lax" }), "{cookie}");
        assert_eq!(asked.get("response_mode").map(String::as_str), form.then_some("form_post"));
        let cookie = cookie.split(';').next().unwrap();
        // The provider's page. The code tells the nonce, which the provider knows from here on.
        let usual = json!({ "state": asked["state"], "code": asked["nonce"] });
        let said = over(usual, &about["returned"]);
        let said = said
            .as_object()
            .unwrap()
            .iter()
            .map(|(key, value)| (key, value.as_str().map_or_else(|| value.to_string(), str::to_owned)));
        let said = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(said).finish();
        let callback = format!("{place}/callback");
        let request = if form {
            let kind = "application/x-www-form-urlencoded";
            self.client.post(callback).header(header::CONTENT_TYPE, kind).body(said)
        } else {
            self.client.get(format!("{callback}?{said}"))
        };
        let ended = request.header(header::COOKIE, cookie).send().await.unwrap();
        assert_eq!(ended.status(), 303);
        let end = fragment(ended.headers()[header::LOCATION].to_str().unwrap());
        assert_eq!(end["state"], "panel");
        end
    }

    /// The outcome of a sign-in, as the person sees it.
    async fn outcome(&self, name: &str) -> Value {
        let end = self.visit(name).await;
        if let Some(error) = end.get("error") {
            let cause = end.get("reference").map(|reference| self.cause(reference).to_string());
            let cause = cause.map(|cause| cause.trim_matches('"').replace(&self.vendors.base, "{base}"));
            // The library also tells the time.
            let cause = cause.map(|cause| cause.split(" (current time").next().unwrap().to_owned());
            return json!({ "refused": error, "log": cause });
        }
        let session = self.app.anonymous.gql(EXCHANGE, json!({ "c": end["code"] })).await.data();
        let user = &session["exchangeSignInCode"]["user"];
        let sql = "SELECT subject FROM user_identities WHERE provider = $1";
        let subject: String = self.app.one(sql, vec![table(name).into()]).await;
        json!({ "signed_in": user["email"], "name": user["name"], "subject": subject })
    }

    /// The cause in this request's log line.
    fn cause(&self, reference: &str) -> Value {
        let text = self.log.text();
        let lines = text.lines().filter(|line| line.contains("oidc.refused") && line.contains(reference));
        let lines: Vec<Value> = lines.map(|line| serde_json::from_str(line).unwrap()).collect();
        let [line] = lines.as_slice() else { panic!("{} lines of {reference}", lines.len()) };
        found(line, "cause").expect("a cause").clone()
    }

    /// `muster doctor --oidc`.
    async fn doctor(&self, arguments: &[&str]) -> Ran {
        let mut variables = self.app.variables();
        let file = self.app.core.config.oidc_file.as_ref().unwrap().display().to_string();
        variables.push(("MUSTER_OIDC_FILE".to_owned(), file));
        variables.push(("MUSTER_PUBLIC_URL".to_owned(), PUBLIC.to_owned()));
        muster(&[["doctor", "--oidc"].as_slice(), arguments].concat(), &variables).await
    }
}

fn fragment(url: &str) -> BTreeMap<String, String> {
    let (page, rest) = url.split_once('#').unwrap();
    assert_eq!(page, format!("{PUBLIC}/sign-in"));
    url::form_urlencoded::parse(rest.as_bytes()).into_owned().collect()
}

/// The samples by their names.
fn all_samples() -> BTreeMap<String, Vec<u8>> {
    let files = std::fs::read_dir(FOLDER).unwrap().map(|file| file.unwrap().path());
    let inputs = files.filter(|file| !file.to_string_lossy().ends_with(".expected.json"));
    inputs
        .map(|file| (file.file_stem().unwrap().to_string_lossy().into_owned(), std::fs::read(&file).unwrap()))
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn samples() {
    let all = all_samples();
    let read = |bytes: &Vec<u8>| -> Value { serde_json::from_slice(bytes).unwrap() };
    let setup = Setup::open(all.iter().map(|(name, bytes)| (name.clone(), read(bytes)))).await;
    let invite = "mutation($o: Id!, $e: String!) { inviteMember(orgId: $o, input: { email: $e, role: VIEWER }) { id } }";
    for (name, about) in &setup.vendors.all {
        if let Some(email) = about["linked"].as_str() {
            let sql = "INSERT INTO user_identities (user_id, provider, subject, email, created_at, last_used_at) \
                       SELECT id, $1, $2, $3, 1, 1 FROM users WHERE email = $3";
            let subject = about["id_token"]["sub"].as_str().unwrap_or("subject-1");
            setup.app.execute(sql, vec![table(name).into(), subject.into(), email.into()]).await;
        }
        if let Some(email) = about["invited"].as_str() {
            setup.app.admin.gql(invite, json!({ "o": setup.app.org, "e": email })).await.data();
        }
    }
    muster_samples::check("id_tokens", |bytes| {
        let (name, _) = all.iter().find(|(_, known)| *known == bytes).unwrap();
        tokio::task::block_in_place(|| tokio::runtime::Handle::current().block_on(setup.outcome(name)))
    });
    let log = setup.log.text();
    assert!(log.contains("oidc.refused"));
    for secret in ["eyJ", "canary-"] {
        assert!(!log.contains(secret), "a token or a secret is in the log");
    }
}

/// Providers that answer as they should, and in all the ways in which they don't.
fn broken() -> Vec<(String, Value)> {
    let jwks = |keys: Value| json!({ "keys": { "keys": keys } });
    let named = [
        ("good", json!({ "issuer": "/realms/acme", "userinfo": {} })),
        ("other_issuer", json!({ "metadata": { "issuer": "https://login.example.com/{tenantid}/v2.0" } })),
        ("slash", json!({ "metadata": { "issuer": "{issuer}/" } })),
        ("no_keys", jwks(json!([]))),
        (
            "only_encrypts",
            jwks(json!([{ "kty": "RSA", "use": "enc", "kid": "e", "n": "AQAB", "e": "AQAB" }])),
        ),
        ("no_algorithm", json!({ "metadata": { "id_token_signing_alg_values_supported": ["X1"] } })),
        (
            "signs_with_secret",
            json!({
                "keys": { "keys": [] }, "metadata": { "id_token_signing_alg_values_supported": ["HS256"] },
            }),
        ),
        ("wrong_secret", json!({ "settings": { "client_secret": "canary-other" } })),
        (
            "secret_in_form",
            json!({
                "metadata": { "token_endpoint_auth_methods_supported": ["client_secret_post"] },
            }),
        ),
        ("no_tokens", json!({ "metadata": { "token_endpoint": "{absent}" } })),
        ("late", json!({ "date": "Sun, 06 Nov 1994 08:49:37 GMT" })),
        ("early", json!({ "date": "Fri, 01 Jan 2100 00:00:00 GMT" })),
        ("dead", json!({ "settings": { "issuer": "http://127.0.0.1:1" } })),
        (
            "nothing_there",
            json!({ "settings": { "issuer": "{issuer}/elsewhere" }, "metadata": { "issuer": 1 } }),
        ),
    ];
    let all: Map<String, Value> = named.into_iter().map(|(name, about)| (name.to_owned(), about)).collect();
    all.into_iter().collect()
}

/// The findings of a kind of check, as `level found`.
fn findings(ran: &Ran, check: &str) -> Vec<String> {
    let all = ran.out["findings"].as_array().unwrap().iter().filter(|finding| finding["check"] == check);
    all.map(|finding| {
        format!("{} {}", finding["level"].as_str().unwrap(), finding["found"].as_str().unwrap())
    })
    .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_is_tried_without_a_browser() {
    let setup = Setup::open(broken()).await;
    let base = &setup.vendors.base;
    let ran = setup.doctor(&["good"]).await;
    assert!(ran.good(), "{}", ran.text);
    assert_eq!(findings(&ran, "issuer"), [format!("good good: {base}/good/realms/acme")]);
    assert_eq!(findings(&ran, "keys"), ["good good: 1 key for signatures"]);
    let endpoints = format!("good good: {base}/good/authorize, {base}/good/token, {base}/good/userinfo");
    assert_eq!(findings(&ran, "endpoints"), [endpoints]);
    assert_eq!(findings(&ran, "client"), ["good good: it refuses an invented code and nothing else"]);
    let redirect = "good good: register https://muster.test/auth/oidc/good/callback at the provider";
    assert_eq!(findings(&ran, "redirect URI"), [redirect]);
    assert!(findings(&ran, "clock")[0].starts_with("good good: "), "{}", ran.text);

    for (name, check, expected) in [
        ("other-issuer", "issuer", "unexpected issuer URI `https://login.example.com/{tenantid}/v2.0`"),
        ("slash", "issuer", "/slash/` (expected `"),
        ("no-keys", "keys", "/no_keys/keys has no key for signatures"),
        ("only-encrypts", "keys", "has no key for signatures"),
        ("no-algorithm", "keys", "no algorithm that is known here"),
        ("wrong-secret", "client", "it refuses the client (invalid_client)"),
        ("no-tokens", "endpoints", "but none for tokens"),
        ("late", "clock", "seconds from the provider's"),
        ("early", "clock", "seconds from the provider's"),
        ("dead", "issuer", "the provider is unreachable"),
        ("nothing-there", "issuer", "can't be read: issuer: "),
    ] {
        let ran = setup.doctor(&[name]).await;
        assert_eq!(ran.code, Some(1), "{name}: {}", ran.text);
        let found = findings(&ran, check);
        assert!(
            found[0].starts_with(&format!("bad {name}: ")) && found[0].contains(expected),
            "{name}: {found:?}"
        );
        // The redirect URI is reported in any case.
        assert_eq!(findings(&ran, "redirect URI").len(), 1);
        assert!(!ran.text.contains("canary-"), "{name}: {}", ran.text);
    }
    for (name, check) in [("secret-in-form", "client"), ("signs-with-secret", "keys")] {
        let ran = setup.doctor(&[name]).await;
        assert!(ran.good() && findings(&ran, check)[0].starts_with("good"), "{name}: {}", ran.text);
    }
    // Without a name, all of them.
    let ran = setup.doctor(&[]).await;
    assert_eq!((ran.code, findings(&ran, "issuer").len()), (Some(1), broken().len()));
    let ran = setup.doctor(&["unknown"]).await;
    assert!(ran.code == Some(1) && ran.text.contains("there are dead, early, good"), "{}", ran.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_is_down_leads_back_with_a_reference() {
    let setup = Setup::open(broken()).await;
    for (name, cause) in
        [("dead", "unreachable"), ("slash", "unexpected issuer"), ("nothing_there", "can't be read")]
    {
        let end = setup.visit(name).await;
        assert_eq!((end["error"].as_str(), end["state"].as_str()), ("PROVIDER_FAILED", "panel"), "{name}");
        let said = setup.cause(&end["reference"]);
        assert!(said.as_str().unwrap().contains(cause), "{name}: {said}");
    }
    // A reference that the browser's own proxy chose is passed on as it is.
    let start = format!("{}/auth/oidc/dead/start", setup.app.base);
    let begun = setup.client.get(start).header("x-request-id", "a/b+c=d@e").send().await.unwrap();
    let end = fragment(begun.headers()[header::LOCATION].to_str().unwrap());
    assert_eq!(end["reference"], "a/b+c=d@e");
    assert!(setup.cause("a/b+c=d@e").is_string());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_posted_form_needs_the_browser_that_started() {
    let apple = json!({ "settings": { "response_mode": "form_post" }, "id_token": { "email": "ann@example.org", "email_verified": "true" } });
    let setup = Setup::open([("apple".to_owned(), apple)]).await;
    let callback = format!("{}/auth/oidc/apple/callback", setup.app.base);
    let post = async |form: String| {
        let kind = "application/x-www-form-urlencoded";
        setup.client.post(&callback).header(header::CONTENT_TYPE, kind).body(form).send().await.unwrap()
    };
    let forged = post("state=s&code=c".to_owned()).await;
    assert_eq!(fragment(forged.headers()[header::LOCATION].to_str().unwrap())["error"], "STATE_INVALID");
    let large = post(format!("state=s&code=c&user={}", "x".repeat(70_000))).await;
    assert_eq!(large.status(), 413);
    assert!(setup.visit("apple").await.contains_key("code"));
}
