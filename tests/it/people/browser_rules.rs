//! Where the session cookie counts, and what else a request must show: a table of cases for each place.

use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};

use crate::harness::{Actor, Answer, Browser, OWN_PAGE, Socket, TestApp};

const EMAIL: &str = "someone@example.org";
const VIEWER: &str = "{ viewer { user { email } } }";
const SIGN_IN: &str = "mutation { signIn(email: \"someone@example.org\", password: \"correct horse\", cookie: true) { \
                       user { email } accessToken } }";

/// A place, and the request that reaches it.
type Place = (&'static str, fn(&App, &Actor) -> RequestBuilder);

struct App {
    app: TestApp,
    browser: Browser,
    attachment: i64,
}

impl App {
    async fn start() -> Self {
        let app = TestApp::start().await;
        let user = app.user(EMAIL, true).await;
        let sql =
            "INSERT INTO members (organization_id, user_id, role, created_at) VALUES ($1, $2, 'OWNER', 0)";
        app.execute(sql, vec![app.org.into(), user.into()]).await;
        let browser = Browser::signed_in(&app, EMAIL).await;
        let path = format!("/v1/org/{}/attachment?filename=a.txt", app.org);
        let upload = app.operator.request(Method::POST, &path).body("text");
        let attachment = Answer::of(upload).await.expect(201)["id"].as_i64().unwrap();
        Self { app, browser, attachment }
    }

    fn graphql(&self, actor: &Actor, accept: &str) -> RequestBuilder {
        let request = self.browser.sending(actor, Method::POST, "/graphql").header("accept", accept);
        request.json(&json!({ "query": VIEWER }))
    }

    fn at(&self, actor: &Actor, method: Method, path: &str) -> RequestBuilder {
        self.browser.sending(actor, method, &path.replace("ORG", &self.app.org.to_string()))
    }
}

/// Where the cookie counts.
const PLACES: [Place; 6] = [
    ("POST /graphql", |app, actor| app.graphql(actor, "application/json")),
    ("GET /graphql", |app, actor| {
        app.at(actor, Method::GET, "/graphql?query=%7Bviewer%7Buser%7Bemail%7D%7D%7D")
    }),
    ("events", |app, actor| app.graphql(actor, "text/event-stream")),
    ("GET attachment", |app, actor| {
        app.at(actor, Method::GET, &format!("/v1/org/ORG/attachment/{}", app.attachment))
    }),
    ("POST attachment", |app, actor| {
        app.at(actor, Method::POST, "/v1/org/ORG/attachment?filename=b.txt").body("more")
    }),
    ("export", |app, actor| app.at(actor, Method::GET, "/export/audit/ORG")),
];

/// Where it does not, with any credential.
const ELSEWHERE: [Place; 4] = [
    ("read", |app, actor| app.at(actor, Method::GET, "/v1/org/ORG")),
    ("list", |app, actor| app.at(actor, Method::GET, "/v1/org/ORG/agent?page=1&limit=1")),
    ("change", |app, actor| {
        app.at(actor, Method::POST, "/v1/org/ORG/server").json(&json!({ "name": "Made elsewhere" }))
    }),
    ("tools", |app, actor| {
        app.at(actor, Method::POST, "/mcp")
            .header("accept", "application/json, text/event-stream")
            .json(&json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" }))
    }),
];

/// Whether the answer is that of a person who is signed in.
fn is_in(answer: &Answer) -> bool {
    answer.status < 300 && !answer.text.contains("UNAUTHENTICATED")
}

#[tokio::test]
async fn the_cookie_counts_only_in_requests_of_our_own_pages() {
    let app = App::start().await;
    let port = app.app.base.rsplit(':').next().unwrap();
    let [own, localhost] = ["127.0.0.1", "localhost"].map(|host| format!("http://{host}:{port}"));
    let other_port = "http://127.0.0.1:1";
    let cases: &[(&[(&str, &str)], bool)] = &[
        (&[OWN_PAGE], true),
        (&[("origin", &own)], true),
        (&[("origin", &localhost)], true),
        // `Sec-Fetch-Site` takes precedence over `Origin`.
        (&[OWN_PAGE, ("origin", other_port)], true),
        (&[("sec-fetch-site", "same-site"), ("origin", &own)], false),
        (&[("sec-fetch-site", "cross-site"), ("origin", &own)], false),
        (&[], false),
        (&[("sec-fetch-site", "same-site")], false),
        (&[("sec-fetch-site", "cross-site")], false),
        // Typed by a person, or opened by a program.
        (&[("sec-fetch-site", "none")], false),
        (&[("sec-fetch-site", "Same-Origin")], false),
        (&[("sec-fetch-site", "")], false),
        (&[("origin", "null")], false),
        (&[("origin", other_port)], false),
        (&[("origin", "http://localhost")], false),
        (&[("origin", "https://evil.example")], false),
        (&[("origin", &own[7..])], false),
        // The Host header proves nothing.
        (&[("host", "evil.example"), ("origin", "http://evil.example")], false),
        (&[("referer", &own)], false),
    ];
    for (name, place) in PLACES {
        for (headers, counts) in cases {
            let request = headers
                .iter()
                .fold(place(&app, &app.app.anonymous), |request, (key, value)| request.header(*key, *value));
            let answer = Answer::of(request).await;
            if *counts {
                assert!(is_in(&answer), "{name} {headers:?}: {answer:#?}");
            } else {
                assert!(
                    answer.status == 403 && answer.text.contains("CROSS_ORIGIN"),
                    "{name} {headers:?}: {answer:#?}"
                );
            }
            // No other page may read an answer either.
            let open = answer.headers.keys().find(|key| key.as_str().starts_with("access-control-"));
            assert!(open.is_none(), "{name}: {open:?}");
        }
    }
}

#[tokio::test]
async fn a_socket_with_the_cookie_always_needs_our_own_origin() {
    let app = App::start().await;
    let own = app.app.base.clone();
    let cases: &[(&[(&'static str, &str)], bool)] = &[
        (&[("origin", &own)], true),
        (&[OWN_PAGE, ("origin", &own)], true),
        (&[OWN_PAGE], false),
        (&[], false),
        (&[OWN_PAGE, ("origin", "http://127.0.0.1:1")], false),
        (&[("sec-fetch-site", "same-site"), ("origin", &own)], false),
        (&[("origin", "http://evil.example"), ("host", "evil.example")], false),
        (&[("origin", "null")], false),
    ];
    for (headers, counts) in cases {
        let cookie = ("cookie", app.browser.cookie.as_str());
        let all: Vec<_> = headers.iter().copied().chain([cookie]).collect();
        match Socket::shake(&own, &all).await {
            Ok(mut socket) => {
                assert!(*counts, "{headers:?}");
                socket.send(json!({ "type": "connection_init" })).await;
                assert_eq!(socket.next().await["type"], "connection_ack");
            }
            Err(status) => assert!(!counts && status == 403, "{headers:?}: {status}"),
        }
    }
    // Without the cookie nothing is asked of the handshake: a token proves itself.
    let mut socket = Socket::shake(&own, &[("origin", "http://evil.example")]).await.unwrap();
    socket.send(crate::harness::introduction(&app.app.owner)).await;
    assert_eq!(socket.next().await["type"], "connection_ack");
    // Both at once.
    let both = [("cookie", app.browser.cookie.as_str()), ("origin", own.as_str())];
    let mut socket = Socket::shake(&own, &both).await.unwrap();
    socket.send(crate::harness::introduction(&app.app.owner)).await;
    assert_eq!(socket.next().await["closed"], 4400);
    let bearer = format!("Bearer {}", app.app.owner.bearer());
    let both = [both[0], both[1], ("authorization", bearer.as_str())];
    assert_eq!(Socket::shake(&own, &both).await.err(), Some(400));
}

#[tokio::test]
async fn a_cookie_is_ignored_elsewhere_and_refused_with_a_token() {
    let app = App::start().await;
    for (name, place) in ELSEWHERE {
        let alone = Answer::of(place(&app, &app.app.anonymous).header(OWN_PAGE.0, OWN_PAGE.1)).await;
        assert_eq!(alone.problem(), (401, "UNAUTHENTICATED"), "{name}");
        let with_token = Answer::of(place(&app, &app.app.owner)).await;
        assert!(with_token.status < 300, "{name}: {with_token:#?}");
    }
    for (name, place) in PLACES {
        let both = Answer::of(place(&app, &app.app.owner).header(OWN_PAGE.0, OWN_PAGE.1)).await;
        assert!(both.status == 400 && both.text.contains("MALFORMED_REQUEST"), "{name}: {both:#?}");
    }
}

#[tokio::test]
async fn a_cookie_is_only_given_where_it_can_be_kept() {
    let app = App::start().await;
    let refusal = async |request: RequestBuilder| {
        let answer = Answer::of(request.json(&json!({ "query": SIGN_IN }))).await;
        assert!(answer.headers.get("set-cookie").is_none(), "{answer:#?}");
        let error = answer.text.split_once('{').map(|(_, json)| format!("{{{json}")).unwrap_or_default();
        let error: Value = serde_json::Deserializer::from_str(&error).into_iter().next().unwrap().unwrap();
        let error = &error["errors"][0];
        assert_eq!(error["extensions"]["code"], "VALIDATION_FAILED", "{error:#}");
        assert_eq!(error["extensions"]["errors"][0]["pointer"], "/cookie", "{error:#}");
        error["message"].as_str().unwrap().to_owned()
    };
    let post = |actor: &Actor| actor.request(Method::POST, "/graphql");
    let anonymous = &app.app.anonymous;
    let said = refusal(post(anonymous)).await;
    assert!(said.contains("own pages") && said.contains(&app.app.base), "{said}");
    let said = refusal(post(anonymous).header("origin", "https://evil.example")).await;
    assert!(said.contains("own pages"), "{said}");
    let said = refusal(post(&app.app.owner).header(OWN_PAGE.0, OWN_PAGE.1)).await;
    assert!(said.contains("must not have a token"), "{said}");
    let events = post(anonymous).header(OWN_PAGE.0, OWN_PAGE.1).header("accept", "text/event-stream");
    assert!(refusal(events).await.contains("event stream"));
    let mut socket = app.browser.socket().await;
    socket.subscribe("1", SIGN_IN, json!({})).await;
    let message = socket.next().await;
    let said = message["payload"]["errors"][0]["message"].as_str().unwrap_or_else(|| panic!("{message}"));
    assert!(said.contains("POST to /graphql"), "{said}");
    // The password was not even looked at.
    let sql = "SELECT COUNT(*) FROM sessions s JOIN users u ON u.id = s.user_id WHERE u.email = $1";
    assert_eq!(app.app.one::<i64>(sql, vec![EMAIL.into()]).await, 1);
}

/// The cookie's name and whether it is `Secure`, or the refusal, of a sign-in with these headers.
async fn given(app: &TestApp, headers: &[(&str, &str)]) -> (String, bool) {
    let request = app.anonymous.request(Method::POST, "/graphql").json(&json!({ "query": SIGN_IN }));
    let request = headers.iter().fold(request, |request, (key, value)| request.header(*key, *value));
    let answer = Answer::of(request).await;
    let cookie = answer.header("set-cookie");
    match cookie.split_once('=') {
        Some((name, rest)) => (name.to_owned(), rest.ends_with("; Secure")),
        None => (answer.body["errors"][0]["message"].as_str().unwrap().to_owned(), false),
    }
}

#[tokio::test]
async fn the_cookie_is_insecure_only_on_loopback_without_a_proxy() {
    let plain = ("muster-session".to_owned(), false);
    let secure = ("__Host-muster-session".to_owned(), true);
    let app = TestApp::start().await;
    app.user(EMAIL, true).await;
    assert_eq!(given(&app, &[OWN_PAGE]).await, plain);
    for forwarded in
        ["x-forwarded-for", "x-forwarded-proto", "x-forwarded-host", "forwarded", "via", "x-real-ip"]
    {
        assert_eq!(given(&app, &[OWN_PAGE, (forwarded, "for=x")]).await, secure, "{forwarded}");
    }
    // Over plain http from a network the browser says nothing about the page, and its origin is not ours.
    let (said, _) = given(&app, &[("origin", "http://192.0.2.2:8080"), ("host", "192.0.2.2:8080")]).await;
    assert!(said.contains("own pages"), "{said}");
    for (public, own, expected) in [
        ("https://muster.example", "https://muster.example", Ok(secure.clone())),
        ("https://muster.example:8443", "https://muster.example:8443", Ok(secure.clone())),
        ("http://localhost:8080", "http://localhost:8080", Ok(secure.clone())),
        ("http://127.0.0.1:8080", "http://127.0.0.1:8080", Ok(secure.clone())),
        ("http://muster.lan", "http://muster.lan", Err("over TLS")),
        ("http://192.0.2.2:8080", "http://192.0.2.2:8080", Err("over TLS")),
        // With a public URL, pages at the address that the service listens on are refused.
        ("https://muster.example", "BASE", Err("open Muster there")),
        ("https://muster.example", "https://muster.example.evil", Err("open Muster there")),
        ("https://muster.example", "http://muster.example", Err("open Muster there")),
    ] {
        let app = TestApp::start_with(|config| config.public_url = Some(public.to_owned())).await;
        app.user(EMAIL, true).await;
        let own = own.replace("BASE", &app.base);
        let answer = given(&app, &[("origin", &own)]).await;
        // `Sec-Fetch-Site` doesn't make another address the public one.
        let (said, _) = given(&app, &[OWN_PAGE, ("origin", "https://elsewhere.example")]).await;
        assert!(said.contains("open Muster there") || said.contains("over TLS"), "{public}: {said}");
        match expected {
            Ok(expected) => assert_eq!(answer, expected, "{public}"),
            Err(reason) => assert!(answer.0.contains(reason), "{public}: {answer:?}"),
        }
    }
}

#[tokio::test]
async fn the_cookie_without_tls_counts_for_nothing_where_tls_is() {
    let app = TestApp::start().await;
    app.user(EMAIL, true).await;
    let browser = Browser::signed_in(&app, EMAIL).await;
    let ask = async |cookie: String, more: &[(&str, &str)]| {
        let request = app.anonymous.request(Method::POST, "/graphql").header("cookie", cookie);
        let request = request.header(OWN_PAGE.0, OWN_PAGE.1).json(&json!({ "query": VIEWER }));
        let request = more.iter().fold(request, |request, (key, value)| request.header(*key, *value));
        is_in(&Answer::of(request).await)
    };
    let value = browser.cookie.split_once('=').unwrap().1;
    assert!(ask(browser.cookie.clone(), &[]).await);
    assert!(ask(format!("a=b; {}; c=d", browser.cookie), &[]).await);
    assert!(!ask(browser.cookie.clone(), &[("x-forwarded-for", "192.0.2.1")]).await);
    assert!(ask(format!("__Host-muster-session={value}"), &[("x-forwarded-for", "192.0.2.1")]).await);
    // Of two, another page on this machine may have set one.
    assert!(!ask(format!("{}; muster-session=mst_ses_x", browser.cookie), &[]).await);
    assert!(!ask("muster-session=".to_owned(), &[]).await);
    assert!(!ask(format!("muster-session={}", app.owner.bearer()), &[]).await, "a token is not a cookie");
}
