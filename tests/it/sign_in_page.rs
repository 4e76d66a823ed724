//! The pages of an installation without a panel: their own scripts, run as in a browser (`page.mjs`).

use std::time::Duration;

use serde_json::{Value, json};
use tokio::{process::Command, time::timeout};
use totp_rs::Totp;

use crate::{
    harness::TestApp,
    oidc::{Browser, EMAIL, FOLDER, Setup},
};

/// What a page does in a browser with this session storage, opened at this URL, after these steps.
async fn page(app: &TestApp, address: &str, storage: &Value, steps: &Value) -> Value {
    let shown = app.anonymous.get(address.split('#').next().unwrap()).await;
    assert_eq!(shown.status, 200);
    let policy = shown.headers["content-security-policy"].to_str().unwrap();
    assert!(policy.contains("default-src 'none'") && policy.contains("frame-ancestors 'none'"), "{policy}");
    assert_eq!(shown.headers["cache-control"], "no-store");
    let visit = json!({
        "base": app.base, "address": address, "storage": storage, "steps": steps, "page": shown.text,
    });
    let mut node = Command::new("node");
    node.current_dir(FOLDER).arg("page.mjs").arg(visit.to_string()).kill_on_drop(true);
    let output = timeout(Duration::from_secs(30), node.output()).await.expect("in time").unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {said}"))
}

#[tokio::test]
async fn without_a_panel_the_services_own_page_accepts_the_code() {
    let setup = Setup::open_for(true, false, None).await;
    let id = setup.user(true).await;
    let nothing = json!({});
    // The button starts with the page's own state.
    let press = json!([["click", "Sign in with The peer"]]);
    let left = page(&setup.app, "/sign-in", &nothing, &press).await;
    let (storage, start) = (&left["storage"], left["went"].as_str().unwrap());
    assert!(start.starts_with("/auth/oidc/peer/start?state="), "{start}");
    let mut browser = Browser::new(&setup.app);
    let url = browser.at_provider(start, "ann").await;
    let end = browser.arrive(&url).await;
    let address = end.strip_prefix("https://muster.test").expect("the service's own page").to_owned();
    // Another browser, which started nothing: the code isn't even sent.
    let other = page(&setup.app, &address, &nothing, &json!([])).await;
    assert!(other["said"].as_str().unwrap().contains("not started here"), "{other:#}");
    let inside = page(&setup.app, &address, storage, &json!([["click", "show"]])).await;
    assert_eq!((&inside["title"], &inside["who"]), (&json!("Signed in"), &json!(format!("Ann, {EMAIL}"))));
    assert_eq!((&inside["storage"], &inside["address"]), (&nothing, &json!("/sign-in")));
    let ann = setup.app.anonymous.with_bearer(inside["token"].as_str().unwrap());
    let viewer = ann.gql("{ viewer { user { id } } }", json!({})).await.data();
    assert_eq!(viewer["viewer"]["user"]["id"], id);
    // Refusals are explained in words.
    let mut browser = Browser::new(&setup.app);
    let url = browser.at_provider(start, "eve").await;
    let end = browser.arrive(&url).await;
    let refused =
        page(&setup.app, end.strip_prefix("https://muster.test").unwrap(), storage, &json!([])).await;
    assert!(refused["said"].as_str().unwrap().contains("has not verified your"), "{refused:#}");
}

#[tokio::test]
async fn the_page_signs_in_with_password_and_second_factor_and_out() {
    let setup = Setup::open_for(true, false, None).await;
    setup.user(true).await;
    let fill = |password: &str| {
        json!([["fill", "email", EMAIL], ["fill", "password", password], ["submit", "password-form"]])
    };
    let steps = |more: &[Value], password: &str| {
        json!([fill(password).as_array().unwrap().as_slice(), more].concat())
    };
    let refused = page(&setup.app, "/sign-in", &json!({}), &fill("wrong horse")).await;
    assert_eq!(refused["said"], "The e-mail address or password is incorrect.");
    let out = [json!(["click", "show"]), json!(["click", "out"])];
    let out = page(&setup.app, "/sign-in", &json!({}), &steps(&out, "correct horse")).await;
    assert_eq!(
        (&out["said"], &out["token"], &out["title"]),
        (&json!("You have signed out."), &json!(""), &json!("Sign in"))
    );
    let open: i64 = setup.app.one("SELECT COUNT(*) FROM sessions WHERE user_id NOT IN (SELECT user_id FROM members) AND revoked_at IS NULL", vec![]).await;
    assert_eq!(open, 0);
    // With a second factor, a recovery code works too.
    let ann = setup
        .app
        .anonymous
        .gql(
            "mutation { signIn(email: \"ann@example.org\", password: \"correct horse\") { accessToken } }",
            json!({}),
        )
        .await
        .data();
    let ann = setup.actor(&ann["signIn"]);
    let begun =
        ann.gql("mutation { beginTotp(password: \"correct horse\") { url } }", json!({})).await.data();
    let phone = Totp::from_url(begun["beginTotp"]["url"].as_str().unwrap()).unwrap();
    let code = phone.generate(u64::try_from(setup.app.clock.now().unix_seconds()).unwrap()).to_string();
    let confirm = "mutation($c: SecretString!) { confirmTotp(code: $c) }";
    let codes = ann.gql(confirm, json!({ "c": code })).await.data()["confirmTotp"].clone();
    let factor =
        [json!(["fill", "code", codes[0]]), json!(["submit", "factor-form"]), json!(["click", "show"])];
    let inside = page(&setup.app, "/sign-in", &json!({}), &steps(&factor, "correct horse")).await;
    assert_eq!(inside["who"], format!("Ann, {EMAIL}"), "{inside:#}");
    assert!(!inside["token"].as_str().unwrap().is_empty());
}

const EMAIL_OF: &str = "someone@example.org";

/// What the sign-in page tells a person who forgot the password for this address.
async fn forgotten(app: &TestApp, email: &str) -> Value {
    let steps = json!([["click", "forgot"], ["fill", "forgot-email", email], ["submit", "forgot-form"]]);
    page(app, "/sign-in", &json!({}), &steps).await
}

#[tokio::test]
async fn a_forgotten_password_is_replaced_through_the_pages() {
    let app = TestApp::with_mail().await;
    app.user(EMAIL_OF, false).await;
    let nothing = json!({});
    // The address typed before is filled in, and the focus is on the next field.
    let typed = json!([["fill", "email", EMAIL_OF], ["click", "forgot"]]);
    let asked = page(&app, "/sign-in", &nothing, &typed).await;
    assert_eq!(
        (&asked["focused"], &asked["title"]),
        (&json!("forgot-email"), &json!("Forgot your password?"))
    );
    let visible = |shown: &Value, id: &str| shown["visible"].as_array().unwrap().contains(&json!(id));
    assert!(visible(&asked, "forgot-form") && !visible(&asked, "password-form"), "{asked:#}");
    let back = page(&app, "/sign-in#forgot", &nothing, &json!([["click", "back"]])).await;
    assert_eq!((&back["focused"], &back["title"]), (&json!("email"), &json!("Sign in")));
    assert!(visible(&back, "password-form") && !visible(&back, "forgot-form"), "{back:#}");
    assert!(app.mails().await.is_empty(), "nothing was requested yet");

    let sent = forgotten(&app, EMAIL_OF).await;
    assert!(sent["said"].as_str().unwrap().starts_with("If there is an account"), "{sent:#}");
    let mail = app.mail().await;
    assert_eq!((mail.to.as_str(), mail.subject.as_str()), (EMAIL_OF, "Set a new password"));
    let link = format!("/reset-password#token={}", mail.token);
    let set = |password: &str| json!([["fill", "password", password], ["submit", "form"]]);
    let opened = page(&app, &link, &nothing, &json!([])).await;
    assert_eq!((&opened["address"], &opened["said"]), (&json!("/reset-password"), &json!("")));
    let weak = page(&app, &link, &nothing, &set("short")).await;
    assert_eq!(weak["said"], "Password refused: a password must have at least 8 characters.");
    assert!(visible(&weak, "form") && !visible(&weak, "again"), "{weak:#}");
    let done = page(&app, &link, &nothing, &set("battery staple")).await;
    assert_eq!(done["said"], "Your new password is set. You can now sign in with it.");
    assert!(visible(&done, "next") && !visible(&done, "form"), "{done:#}");
    let inside = json!([
        ["fill", "email", EMAIL_OF],
        ["fill", "password", "battery staple"],
        ["submit", "password-form"],
    ]);
    assert_eq!(page(&app, "/sign-in", &nothing, &inside).await["title"], "Signed in");
    // A used or truncated link leads to requesting a new one.
    for link in [link.as_str(), "/reset-password"] {
        let again = if link.contains('#') { set("battery staple 2") } else { json!([]) };
        let again = page(&app, link, &nothing, &again).await;
        assert!(visible(&again, "again") && !visible(&again, "next"), "{again:#}");
    }
}

#[tokio::test]
async fn the_page_never_reveals_who_has_an_account() {
    let app = TestApp::with_mail().await;
    app.user(EMAIL_OF, false).await;
    let known = forgotten(&app, EMAIL_OF).await;
    // The stranger has an account, and sees the same message.
    let stranger: String =
        app.one("SELECT email FROM users WHERE id = $1", vec![app.stranger.user.unwrap().into()]).await;
    assert_eq!(forgotten(&app, &stranger).await, known);
    assert_eq!(forgotten(&app, "nobody@example.org").await, known);
    let mut told: Vec<String> = app.mails().await.into_iter().map(|mail| mail.to).collect();
    told.sort();
    let mut expected = [EMAIL_OF.to_owned(), stranger];
    expected.sort();
    assert_eq!(told, expected);
}
