//! The page to sign in of an installation without a panel: its own script, run as a browser would (`page.mjs`).

use std::time::Duration;

use serde_json::{Value, json};
use tokio::{process::Command, time::timeout};
use totp_rs::Totp;

use crate::{
    harness::TestApp,
    oidc::{Browser, EMAIL, FOLDER, House},
};

/// What the page to sign in does in a browser with this session storage, opened with this fragment, after these steps.
async fn page(app: &TestApp, fragment: &str, storage: &Value, steps: &Value) -> Value {
    let shown = app.anonymous.get("/sign-in").await;
    assert_eq!(shown.status, 200);
    let policy = shown.headers["content-security-policy"].to_str().unwrap();
    assert!(policy.contains("default-src 'none'") && policy.contains("frame-ancestors 'none'"), "{policy}");
    assert_eq!(shown.headers["cache-control"], "no-store");
    let visit = json!({
        "base": app.base, "fragment": fragment, "storage": storage, "steps": steps, "page": shown.text,
    });
    let mut node = Command::new("node");
    node.current_dir(FOLDER).arg("page.mjs").arg(visit.to_string()).kill_on_drop(true);
    let output = timeout(Duration::from_secs(30), node.output()).await.expect("in time").unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {said}"))
}

#[tokio::test]
async fn where_there_is_no_panel_the_services_own_page_takes_the_code() {
    let house = House::open_for(true, false, None).await;
    let id = house.user(true).await;
    let nothing = json!({});
    // The button begins with a state of the page's own.
    let press = json!([["click", "Sign in with The peer"]]);
    let left = page(&house.app, "", &nothing, &press).await;
    let (storage, start) = (&left["storage"], left["went"].as_str().unwrap());
    assert!(start.starts_with("/auth/oidc/peer/start?state="), "{start}");
    let mut browser = Browser::new(&house.app);
    let url = browser.at_provider(start, "ann").await;
    let end = browser.arrive(&url).await;
    let fragment =
        end.strip_prefix("https://muster.test/sign-in").expect("the service's own page").to_owned();
    // Another browser, which has begun nothing: the code is not even sent.
    let other = page(&house.app, &fragment, &nothing, &json!([])).await;
    assert!(other["said"].as_str().unwrap().contains("not begun here"), "{other:#}");
    let inside = page(&house.app, &fragment, storage, &json!([["click", "show"]])).await;
    assert_eq!((&inside["title"], &inside["who"]), (&json!("Signed in"), &json!(format!("Ann, {EMAIL}"))));
    assert_eq!((&inside["storage"], &inside["address"]), (&nothing, &json!("/sign-in")));
    let ann = house.app.anonymous.with_bearer(inside["token"].as_str().unwrap());
    let viewer = ann.gql("{ viewer { user { id } } }", json!({})).await.data();
    assert_eq!(viewer["viewer"]["user"]["id"], id);
    // Refusals are told in words.
    let mut browser = Browser::new(&house.app);
    let url = browser.at_provider(start, "eve").await;
    let end = browser.arrive(&url).await;
    let refused = page(&house.app, end.split_once("/sign-in").unwrap().1, storage, &json!([])).await;
    assert!(refused["said"].as_str().unwrap().contains("does not say that your"), "{refused:#}");
}

#[tokio::test]
async fn the_page_signs_in_by_password_and_second_factor_and_out() {
    let house = House::open_for(true, false, None).await;
    house.user(true).await;
    let fill = |password: &str| {
        json!([["fill", "email", EMAIL], ["fill", "password", password], ["submit", "password-form"]])
    };
    let steps = |more: &[Value], password: &str| {
        json!([fill(password).as_array().unwrap().as_slice(), more].concat())
    };
    let refused = page(&house.app, "", &json!({}), &fill("wrong horse")).await;
    assert_eq!(refused["said"], "The e-mail address or the password is wrong.");
    let out = [json!(["click", "show"]), json!(["click", "out"])];
    let out = page(&house.app, "", &json!({}), &steps(&out, "correct horse")).await;
    assert_eq!(
        (&out["said"], &out["token"], &out["title"]),
        (&json!("You are signed out."), &json!(""), &json!("Sign in"))
    );
    let open: i64 = house.app.one("SELECT COUNT(*) FROM sessions WHERE user_id NOT IN (SELECT user_id FROM members) AND revoked_at IS NULL", vec![]).await;
    assert_eq!(open, 0);
    // With a second factor, a recovery code does as well.
    let ann = house
        .app
        .anonymous
        .gql(
            "mutation { signIn(email: \"ann@example.org\", password: \"correct horse\") { accessToken } }",
            json!({}),
        )
        .await
        .data();
    let ann = house.actor(&ann["signIn"]);
    let begun = ann.gql("mutation { beginTotp { url } }", json!({})).await.data();
    let phone = Totp::from_url(begun["beginTotp"]["url"].as_str().unwrap()).unwrap();
    let code = phone.generate(u64::try_from(house.app.clock.now().unix_seconds()).unwrap()).to_string();
    let confirm = "mutation($c: SecretString!) { confirmTotp(code: $c) }";
    let codes = ann.gql(confirm, json!({ "c": code })).await.data()["confirmTotp"].clone();
    let factor =
        [json!(["fill", "code", codes[0]]), json!(["submit", "factor-form"]), json!(["click", "show"])];
    let inside = page(&house.app, "", &json!({}), &steps(&factor, "correct horse")).await;
    assert_eq!(inside["who"], format!("Ann, {EMAIL}"), "{inside:#}");
    assert!(!inside["token"].as_str().unwrap().is_empty());
}
