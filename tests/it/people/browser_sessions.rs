//! Sessions of browsers: how a cookie is given, how long it lasts, and what ends it.

use std::time::Duration;

use muster::{base::ids::UserId, domain::people};
use reqwest::Method;
use secrecy::ExposeSecret;
use serde_json::{Value, json};
use totp_rs::Totp;

use crate::harness::{Answer, Browser, Socket, TestApp, account, until};

const EMAIL: &str = "someone@example.org";
const DAY: Duration = Duration::from_secs(24 * 60 * 60);
const SESSIONS: &str =
    "{ viewer { user { id } session { id kind current expiresAt } } sessions { id kind current userAgent } }";
const WATCH: &str = "subscription($o: Id!) { changes(orgId: $o) { op } }";

async fn signed_in() -> (TestApp, Browser) {
    let app = TestApp::start().await;
    app.user(EMAIL, true).await;
    let browser = Browser::signed_in(&app, EMAIL).await;
    (app, browser)
}

/// A member of the organization, for what takes a membership.
async fn member(app: &TestApp) {
    let sql = "INSERT INTO members (organization_id, user_id, role, created_at) \
               SELECT $1, id, 'OWNER', 0 FROM users WHERE email = $2";
    app.execute(sql, vec![app.org.into(), EMAIL.into()]).await;
}

#[tokio::test]
async fn a_browser_gets_a_cookie_and_no_tokens() {
    let app = TestApp::start().await;
    let id = app.user(EMAIL, true).await;
    let mut browser = Browser::new(&app);
    let answer = browser.sign_in(EMAIL).await;
    let cookie = answer.header("set-cookie").to_owned();
    let (value, attributes) = cookie.strip_prefix("muster-session=").unwrap().split_once("; ").unwrap();
    assert_eq!(attributes, "Path=/; Max-Age=2592000; HttpOnly; SameSite=Strict");
    assert!(value.starts_with("mst_ses_") && value.len() == 57, "{cookie}");
    let expected = json!({
        "accessToken": null, "accessTokenExpiresAt": null, "refreshToken": null, "refreshTokenExpiresAt": null,
        "user": { "id": id, "email": EMAIL }, "challenge": null,
    });
    assert_eq!(answer.data()["signIn"], expected);
    let mine = browser.gql(SESSIONS, json!({})).await.data();
    let session = &mine["viewer"]["session"];
    assert_eq!((&session["kind"], &session["current"]), (&json!("BROWSER"), &json!(true)));
    assert_eq!(session["expiresAt"], json!(app.clock.now().plus(7 * DAY)));
    assert_eq!((&mine["sessions"][0]["id"], &mine["viewer"]["user"]["id"]), (&session["id"], &json!(id)));
    // The same session at a program: tokens, and no cookie.
    let (program, _) = app.signed_in(EMAIL).await;
    let theirs = program.gql(SESSIONS, json!({})).await;
    assert!(theirs.headers.get("set-cookie").is_none());
    assert_eq!(theirs.data()["viewer"]["session"]["kind"], "TOKENS");
    // The value is worth nothing as a token, and the database does not have it.
    for path in ["/v1/org/1", "/graphql"] {
        let answer = app.anonymous.with_bearer(value).get(path).await;
        assert_eq!(answer.status, 401, "{path}");
    }
    let sql = "SELECT COUNT(*) FROM sessions WHERE kind = 'BROWSER'";
    assert_eq!(app.one::<i64>(sql, vec![]).await, 1);
    let line: String = app
        .one(
            "SELECT credential_kind FROM audit_lines WHERE operation = 'signIn' ORDER BY id DESC LIMIT 1",
            vec![],
        )
        .await;
    assert_eq!(line, "SESSION");
}

#[tokio::test]
async fn a_second_factor_comes_before_the_cookie() {
    let (app, mut browser) = signed_in().await;
    let begun =
        browser.gql("mutation { beginTotp(password: \"correct horse\") { url } }", json!({})).await.data();
    let phone = Totp::from_url(begun["beginTotp"]["url"].as_str().unwrap()).unwrap();
    let code =
        |app: &TestApp| phone.generate(u64::try_from(app.clock.now().unix_seconds()).unwrap()).to_string();
    let confirm = "mutation($c: SecretString!) { confirmTotp(code: $c) }";
    browser.gql(confirm, json!({ "c": code(&app) })).await.data();
    let mut again = Browser::new(&app);
    let asked = again.sign_in(EMAIL).await;
    assert!(asked.headers.get("set-cookie").is_none() && again.cookie.is_empty());
    let challenge = asked.data()["signIn"]["challenge"]["token"].clone();
    app.clock.advance(Duration::from_secs(60));
    let complete = "mutation($t: SecretString!, $c: SecretString!) { \
                    completeSignIn(challenge: $t, code: $c, cookie: true) { accessToken user { email } } }";
    let wrong = again.gql(complete, json!({ "t": challenge, "c": "000000" })).await;
    assert_eq!((wrong.code().as_str(), again.cookie.as_str()), ("SIGN_IN_FAILED", ""));
    let done = again.gql(complete, json!({ "t": challenge, "c": code(&app) })).await.data();
    assert_eq!(done["completeSignIn"], json!({ "accessToken": null, "user": { "email": EMAIL } }));
    assert_eq!(again.refusal().await, None);
}

#[tokio::test]
async fn signing_in_again_ends_only_the_browsers_session() {
    let (app, mut browser) = signed_in().await;
    let other = Browser::signed_in(&app, EMAIL).await;
    let before = browser.clone();
    browser.sign_in(EMAIL).await.data();
    assert_ne!(before.cookie, browser.cookie);
    assert_eq!(before.refusal().await.as_deref(), Some("UNAUTHENTICATED"));
    assert_eq!((browser.refusal().await, other.refusal().await), (None, None));
    // So does someone else's sign-in there.
    app.user("another@example.org", true).await;
    let before = browser.clone();
    browser.sign_in("another@example.org").await.data();
    assert_eq!(before.refusal().await.as_deref(), Some("UNAUTHENTICATED"));
    let sql = "SELECT COUNT(*) FROM audit_lines WHERE operation = 'revokeSession'";
    assert_eq!(app.one::<i64>(sql, vec![]).await, 2);
    // A wrong password ends nothing.
    let wrong = "mutation { signIn(email: \"someone@example.org\", password: \"wrong\", cookie: true) { user { id } } }";
    assert_eq!(browser.gql(wrong, json!({})).await.code(), "SIGN_IN_FAILED");
    assert_eq!(browser.refusal().await, None);
    // A program's sign-in in a browser neither takes nor ends the cookie.
    let program =
        "mutation { signIn(email: \"someone@example.org\", password: \"correct horse\") { accessToken } }";
    assert!(browser.gql(program, json!({})).await.data()["signIn"]["accessToken"].is_string());
    assert_eq!(browser.refusal().await, None);
}

#[tokio::test]
async fn one_request_opens_one_session_and_sign_out_is_last() {
    let app = TestApp::start().await;
    app.user(EMAIL, true).await;
    let mut browser = Browser::new(&app);
    let open = "SELECT COUNT(*) FROM sessions WHERE kind = 'BROWSER' AND revoked_at IS NULL";
    let sign_in =
        format!("signIn(email: \"{EMAIL}\", password: \"correct horse\", cookie: true) {{ user {{ id }} }}");
    let twice = browser.gql(&format!("mutation {{ a: {sign_in} b: {sign_in} }}"), json!({})).await;
    assert_eq!(twice.wrong_inputs(), [("/cookie", "NOT_ALLOWED")]);
    assert_eq!(app.one::<i64>(open, vec![]).await, 1, "no one would hold another one");
    assert_eq!(browser.refusal().await, None, "the browser holds the first");
    let me = "{ viewer { user { id } } }";
    let one = json!({ "query": format!("mutation {{ {sign_in} }}") });
    let batch = browser.post(json!([one, one])).await;
    assert_eq!(batch.body[1]["errors"][0]["extensions"]["code"], "VALIDATION_FAILED");
    assert_eq!(app.one::<i64>(open, vec![]).await, 1, "the one before has ended");

    let name = "mutation { signOut changeName(name: \"Mallory\") { name } }";
    let out = browser.gql(name, json!({})).await;
    assert_eq!(out.code(), "UNAUTHENTICATED");
    browser.sign_in(EMAIL).await.data();
    let batch = json!([{ "query": "mutation { signOut }" }, { "query": me }, one]);
    let batch = browser.post(batch).await;
    assert_eq!(batch.body[0]["data"]["signOut"], true);
    assert_eq!(batch.body[1]["errors"][0]["extensions"]["code"], "UNAUTHENTICATED");
    assert!(batch.body[2]["data"]["signIn"]["user"]["id"].is_i64(), "anyone may sign in: {}", batch.text);
    assert_eq!(browser.refusal().await, None);
    let sql = "SELECT COUNT(*) FROM users WHERE name = 'Mallory'";
    assert_eq!(app.one::<i64>(sql, vec![]).await, 0);
    // The same with a token.
    let (program, _) = app.signed_in(EMAIL).await;
    let batch = json!([{ "query": "mutation { signOut }" }, { "query": me }]);
    let batch = program.post("/graphql", batch).await;
    assert_eq!(batch.body[1]["errors"][0]["extensions"]["code"], "UNAUTHENTICATED");
}

#[tokio::test]
async fn a_session_ends_after_an_idle_week_or_a_month() {
    let (app, browser) = signed_in().await;
    let use_it = async || {
        // Clearing the cache replaces the two seconds that it lasts in a running service.
        app.forget_sessions();
        let refusal = browser.refusal().await;
        if refusal.is_none() {
            // The end moves in the background.
            let sql = "SELECT COUNT(*) FROM sessions WHERE kind = 'BROWSER' AND last_used_at < $1";
            let recent = app.clock.now().0 - 60_000;
            until("the use is written", async || app.one::<i64>(sql, vec![recent.into()]).await == 0).await;
        }
        refusal
    };
    for _ in 0..4 {
        app.clock.advance((7 * DAY).saturating_sub(Duration::from_secs(1)));
        assert_eq!(use_it().await, None);
    }
    let ends: i64 = app.one("SELECT expires_at FROM sessions WHERE kind = 'BROWSER'", vec![]).await;
    assert!(ends < app.clock.now().0 + 3 * 24 * 60 * 60 * 1000, "never later than a month after the sign-in");
    app.clock.advance(2 * DAY + Duration::from_secs(4));
    assert_eq!(use_it().await.as_deref(), Some("UNAUTHENTICATED"));
    // Another one is not used for a week.
    let idle = Browser::signed_in(&app, EMAIL).await;
    app.clock.advance(7 * DAY);
    app.forget_sessions();
    assert_eq!(idle.refusal().await.as_deref(), Some("UNAUTHENTICATED"));
}

#[tokio::test]
async fn a_use_is_written_once_a_minute_at_most() {
    let (app, browser) = signed_in().await;
    let marker = Browser::signed_in(&app, EMAIL).await;
    let ids: [i64; 2] = [
        app.one("SELECT MIN(id) FROM sessions WHERE kind = 'BROWSER'", vec![]).await,
        app.one("SELECT MAX(id) FROM sessions WHERE kind = 'BROWSER'", vec![]).await,
    ];
    let used = async |id: i64| {
        app.one::<i64>("SELECT last_used_at FROM sessions WHERE id = $1", vec![id.into()]).await
    };
    let opened = used(ids[0]).await;
    for (after, written) in [(0, false), (60, false), (1, true)] {
        app.clock.advance(Duration::from_secs(after));
        app.execute("UPDATE sessions SET last_used_at = 0 WHERE id = $1", vec![ids[1].into()]).await;
        app.forget_sessions();
        assert_eq!((browser.refusal().await, marker.refusal().await), (None, None));
        // The later write of the other session says that the first would have been made by now.
        until("the uses are written", async || {
            used(ids[1]).await != 0 && (!written || used(ids[0]).await != opened)
        })
        .await;
        let expected = if written { app.clock.now().0 } else { opened };
        assert_eq!(used(ids[0]).await, expected, "{after}");
    }
}

#[tokio::test]
async fn what_ends_sessions_ends_those_of_browsers() {
    let (app, browser) = signed_in().await;
    member(&app).await;
    let ends = async |of: &mut Browser, query: &str, variables: Value| {
        of.gql(query, variables).await.data();
    };
    let refused = Some("UNAUTHENTICATED".to_owned());
    // Signing out clears the cookie.
    let mut leaving = browser.clone();
    let mut socket = browser.socket().await;
    socket.subscribe("1", WATCH, json!({ "o": app.org })).await;
    let answer = leaving.gql("mutation { signOut }", json!({})).await;
    assert_eq!(answer.header("set-cookie"), "muster-session=; Path=/; Max-Age=0; HttpOnly; SameSite=Strict");
    assert_eq!((leaving.cookie.as_str(), browser.refusal().await), ("", refused.clone()));
    while socket.next().await["closed"].is_null() {}
    // The cookie of an ended session keeps no one from signing in again.
    let mut back = browser.clone();
    back.sign_in(EMAIL).await.data();
    let (mut one, mut two) = (Browser::signed_in(&app, EMAIL).await, back);
    let id = two.gql(SESSIONS, json!({})).await.data()["viewer"]["session"]["id"].clone();
    ends(&mut one, "mutation($i: Id!) { revokeSession(id: $i) }", json!({ "i": id })).await;
    assert_eq!((one.refusal().await, two.refusal().await), (None, refused.clone()));
    let two = Browser::signed_in(&app, EMAIL).await;
    ends(&mut one, "mutation { revokeOtherSessions }", json!({})).await;
    assert_eq!((one.refusal().await, two.refusal().await), (None, refused.clone()));
    let two = Browser::signed_in(&app, EMAIL).await;
    let change = json!({ "c": "correct horse", "n": "correct horse 2" });
    ends(&mut one, account::CHANGE_PASSWORD, change).await;
    assert_eq!((one.refusal().await, two.refusal().await), (None, refused.clone()));
    app.cli(&["user", "disable", EMAIL]).await.expect();
    app.forget_sessions();
    assert_eq!(one.refusal().await, refused);
}

#[tokio::test]
async fn a_socket_of_an_ended_session_closes_with_4401() {
    let (app, browser) = signed_in().await;
    member(&app).await;
    let mut socket = browser.socket().await;
    socket.subscribe("1", WATCH, json!({ "o": app.org })).await;
    socket.subscribe("2", "{ viewer { session { kind } } }", json!({})).await;
    let answer = loop {
        let message = socket.next().await;
        if message["id"] == "2" {
            break message;
        }
    };
    assert_eq!(answer["payload"]["data"]["viewer"]["session"]["kind"], "BROWSER");
    Browser::signed_in(&app, EMAIL).await.gql("mutation { revokeOtherSessions }", json!({})).await.data();
    let closed = loop {
        let message = socket.next().await;
        if !message["closed"].is_null() {
            break message;
        }
    };
    assert_eq!(closed["closed"], 4401);
    // A dead cookie gets as far as the introduction.
    let origin = app.base.clone();
    let mut late =
        Socket::shake(&app.base, &[("cookie", &browser.cookie), ("origin", &origin)]).await.unwrap();
    late.send(json!({ "type": "connection_init" })).await;
    assert_eq!(late.next().await["closed"], 4401);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revocation_reaches_the_other_replica_in_two_seconds() {
    let (app, browser) = signed_in().await;
    let replica = app.replica(None).await;
    let router = muster::service::Service::build(std::sync::Arc::clone(&replica)).unwrap().router();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let stop = tokio_util::sync::CancellationToken::new();
    let (serving, end) = (std::sync::Arc::clone(&replica), stop.clone());
    replica.tasks.spawn(async move { muster::api::middleware::serve(listener, router, &serving, end).await });
    let there = Browser { actor: browser.actor.at(&base), ..browser.clone() };
    let mut socket = there.socket().await;
    assert_eq!(there.refusal().await, None);
    browser.clone().gql("mutation { signOut }", json!({})).await.data();
    // The other replica queries the database again when its cached session is two seconds old.
    until("it is refused there", async || there.refusal().await.is_some()).await;
    assert_eq!(socket.next().await["closed"], 4401);
    drop(socket);
    stop.cancel();
    replica.shut_down().await;
}

#[tokio::test]
async fn a_browser_and_a_program_are_treated_alike() {
    let app = TestApp::start().await;
    app.user(EMAIL, true).await;
    member(&app).await;
    let browser = Browser::signed_in(&app, EMAIL).await;
    let create = "mutation($o: Id!) { createSkill(orgId: $o, input: { name: \"Greeting\", content: \"Say hello.\" }) \
                  { id } }";
    let body = json!({ "query": create, "variables": { "o": app.org } });
    let send = async || {
        let request = browser.request(Method::POST, "/graphql").header("idempotency-key", "k1");
        Answer::of(request.json(&body)).await
    };
    let (first, second) = (send().await, send().await);
    assert_eq!((first.header("idempotent-replayed"), second.header("idempotent-replayed")), ("", "true"));
    assert_eq!(first.text, second.text);
    assert!(first.data()["createSkill"]["id"].is_i64());
    let agent = app.agent().await;
    let can = "query($o: Id!, $i: Id!) { agent(orgId: $o, id: $i) { viewerCan } }";
    let variables = json!({ "o": app.org, "i": agent });
    let here = browser.clone().gql(can, variables.clone()).await.data();
    let theirs = app.owner.gql(can, variables).await.data();
    assert_eq!(here, theirs);
    let sql = "SELECT credential_kind FROM audit_lines WHERE operation = 'createSkill'";
    assert_eq!(app.one::<String>(sql, vec![]).await, "SESSION");
}

#[tokio::test]
async fn an_operators_link_signs_in_once_within_ten_minutes() {
    let app = TestApp::with_mail().await;
    let id = app.user(EMAIL, true).await;
    let exchange = "mutation($c: SecretString!) { exchangeSignInCode(code: $c, cookie: true) { accessToken user { email } } }";
    let shown = app.cli(&["session", "create", "--link", "--email", EMAIL]).await.expect();
    let (page, code) = shown["link"].as_str().unwrap().split_once("#code=").unwrap();
    assert!(page.ends_with("/sign-in"), "{shown:#}");
    let own = Browser::new(&app);
    let get = own.request(Method::GET, &format!("/sign-in?code={code}"));
    assert!(Answer::of(get).await.headers.get("set-cookie").is_none(), "nothing is signed in by a GET");
    let mut browser = Browser::new(&app);
    let answer = browser.gql(exchange, json!({ "c": code })).await;
    assert!(answer.header("set-cookie").starts_with("__Host-muster-session=mst_ses_"));
    assert!(answer.header("set-cookie").ends_with("; HttpOnly; SameSite=Strict; Secure"));
    assert_eq!(
        answer.data()["exchangeSignInCode"],
        json!({ "accessToken": null, "user": { "email": EMAIL } })
    );
    assert_eq!(browser.refusal().await, None);
    assert_eq!(Browser::new(&app).gql(exchange, json!({ "c": code })).await.code(), "LINK_INVALID");
    // A command has a clock of its own, so this one is made here.
    let (code, ends) = people::create_link(&app.core, UserId(id)).await.unwrap();
    assert_eq!(ends, app.clock.now().plus(Duration::from_mins(10)));
    let code = code.expose_secret();
    app.clock.advance(Duration::from_mins(10));
    assert_eq!(Browser::new(&app).gql(exchange, json!({ "c": code })).await.code(), "LINK_INVALID");
    let sql =
        "SELECT COUNT(*) FROM audit_lines WHERE operation = 'createSignInLink' AND actor_kind = 'SYSTEM'";
    assert_eq!(app.one::<i64>(sql, vec![]).await, 2);
}
