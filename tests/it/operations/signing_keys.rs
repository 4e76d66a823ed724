//! Signing keys: rotated while people are signed in, published for others, and known to every replica.

use std::{process::Stdio, sync::Arc, time::Duration};

use muster::{
    base::ids::{SessionId, UserId},
    core::{
        Core, Options,
        keys::{self, Rotated, State},
    },
};
use serde_json::{Value, json};

use crate::harness::{Actor, TestApp, node};

const JWKS: &str = "/.well-known/jwks.json";

async fn started() -> TestApp {
    let app = TestApp::start().await;
    keys::load(&app.core).await.unwrap();
    app
}

/// An owner's token as the service issues it now.
fn signed_in(app: &TestApp, muster: &Core) -> Actor {
    let (user, ttl) = (UserId(app.owner.user.unwrap()), Duration::from_mins(15));
    let session = SessionId(user.0);
    app.anonymous.with_bearer(muster.access.jwt.issue(user, session, app.clock.now(), ttl).unwrap())
}

async fn status(app: &TestApp, actor: &Actor) -> u16 {
    actor.get(&format!("/v1/org/{}", app.org)).await.status
}

async fn kids(app: &TestApp) -> Vec<String> {
    let set = app.anonymous.get(JWKS).await.expect(200);
    set["keys"].as_array().unwrap().iter().map(|key| key["kid"].as_str().unwrap().to_owned()).collect()
}

/// Another replica with the same database and key file.
async fn replica(app: &TestApp) -> Arc<Core> {
    let options = Options { clock: app.clock.clone(), ..Options::default() };
    let other = muster::service::open(app.core.config.clone(), options).await.unwrap();
    keys::load(&other).await.unwrap();
    other
}

#[tokio::test]
async fn a_rotation_signs_no_one_out() {
    let app = started().await;
    let before = signed_in(&app, &app.core);
    let Rotated::Active(new) = keys::rotate(&app.core, true).await.unwrap() else { panic!("at once") };
    assert_eq!(app.core.access.jwt.active(), new);
    let after = signed_in(&app, &app.core);
    assert_eq!((status(&app, &before).await, status(&app, &after).await), (200, 200));
    assert_eq!(status(&app, &app.stranger).await, 403, "the stranger is still known");
    assert_eq!(kids(&app).await.len(), 2);
    // The private half of the retired key is destroyed; only the new one can sign.
    let sealed: Vec<Vec<u8>> =
        app.column("SELECT private_key_sealed FROM signing_keys ORDER BY retired_at IS NULL").await;
    assert!(sealed[0].is_empty() && !sealed[1].is_empty());
    // The last token of the old key has expired, plus a minute for slow replicas.
    app.clock.advance(Duration::from_mins(17));
    keys::maintain_signing(&app.core).await.unwrap();
    assert_eq!(kids(&app).await, [new]);
    let listed = keys::list(&app.core).await.unwrap();
    assert_eq!(listed.iter().filter(|key| key.state == State::Expired).count(), 1);
}

#[tokio::test]
async fn a_retired_key_that_leaked_is_refused_at_once() {
    let app = started().await;
    let (before, old) = (signed_in(&app, &app.core), app.core.access.jwt.active());
    assert!(keys::retire_signing_key(&app.core, &old).await.is_err(), "the active key stays");
    keys::rotate(&app.core, true).await.unwrap();
    keys::retire_signing_key(&app.core, &old).await.unwrap();
    assert_eq!(status(&app, &before).await, 401);
    assert_eq!(status(&app, &signed_in(&app, &app.core)).await, 200);
    assert!(keys::retire_signing_key(&app.core, "0123456789abcdef").await.is_err());
}

#[tokio::test]
async fn a_key_is_published_before_it_signs_and_replaced_by_age() {
    let app = started().await;
    let first = app.core.access.jwt.active();
    keys::maintain_signing(&app.core).await.unwrap();
    assert_eq!(kids(&app).await, std::slice::from_ref(&first), "no rotation is due");
    app.clock.advance(Duration::from_hours(24 * 90) - Duration::from_mins(60));
    keys::maintain_signing(&app.core).await.unwrap();
    assert_eq!((kids(&app).await.len(), app.core.access.jwt.active()), (2, first.clone()));
    keys::maintain_signing(&app.core).await.unwrap();
    assert_eq!(kids(&app).await.len(), 2, "there is one next key");
    app.clock.advance(Duration::from_mins(59));
    keys::maintain_signing(&app.core).await.unwrap();
    assert_eq!(app.core.access.jwt.active(), first);
    app.clock.advance(Duration::from_mins(1));
    keys::maintain_signing(&app.core).await.unwrap();
    assert_ne!(app.core.access.jwt.active(), first);
    // Requested manually: as soon as everyone can know the key.
    let Rotated::Planned(kid, at) = keys::rotate(&app.core, false).await.unwrap() else { panic!("planned") };
    assert_eq!(at, app.clock.now().plus(Duration::from_mins(60)));
    let Rotated::Planned(again, same) = keys::rotate(&app.core, false).await.unwrap() else {
        panic!("planned")
    };
    assert_eq!((again, same), (kid.clone(), at));
    app.clock.advance(Duration::from_mins(60));
    keys::maintain_signing(&app.core).await.unwrap();
    assert_eq!(app.core.access.jwt.active(), kid);
}

#[tokio::test]
async fn another_replica_accepts_tokens_of_an_unseen_key() {
    let app = started().await;
    let other = replica(&app).await;
    keys::rotate(&other, true).await.unwrap();
    assert_ne!(app.core.access.jwt.active(), other.access.jwt.active());
    let actor = signed_in(&app, &other);
    assert_eq!(status(&app, &actor).await, 200);
    assert_eq!(app.core.access.jwt.active(), other.access.jwt.active(), "it signs with it as well");
    other.shut_down().await;
}

#[tokio::test]
async fn invented_keys_query_the_database_only_a_few_times() {
    let app = started().await;
    let header = |kid: String| {
        use base64::Engine as _;
        let encode = |text: String| base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(text);
        let head = json!({ "typ": "at+jwt", "alg": "EdDSA", "kid": kid }).to_string();
        app.anonymous.with_bearer(format!("{}.{}.{}", encode(head), encode("{}".into()), "A".repeat(86)))
    };
    let before = app.statements();
    for n in 0..100 {
        assert_eq!(status(&app, &header(format!("{n:016x}"))).await, 401);
        assert_eq!(status(&app, &header("00000000ffffffff".into())).await, 401);
        assert_eq!(status(&app, &header(format!("no kid of ours {n}"))).await, 401);
    }
    let asked = app.statements() - before;
    assert!((1..=60).contains(&asked), "{asked} statements");
}

#[tokio::test]
async fn replicas_that_rotate_at_once_agree_on_one_key() {
    let app = started().await;
    let other = replica(&app).await;
    app.clock.advance(Duration::from_hours(24 * 90));
    let (one, two) = tokio::join!(keys::maintain_signing(&app.core), keys::maintain_signing(&other));
    one.and(two).unwrap();
    assert_eq!(kids(&app).await.len(), 2);
    app.clock.advance(Duration::from_mins(61));
    let (one, two) = tokio::join!(keys::maintain_signing(&app.core), keys::maintain_signing(&other));
    one.and(two).unwrap();
    keys::maintain_signing(&app.core).await.unwrap();
    keys::maintain_signing(&other).await.unwrap();
    assert_eq!(app.core.access.jwt.active(), other.access.jwt.active());
    let active: i64 = app
        .one(
            "SELECT COUNT(*) FROM signing_keys WHERE activated_at IS NOT NULL AND retired_at IS NULL",
            vec![],
        )
        .await;
    assert_eq!(active, 1);
    other.shut_down().await;
}

#[tokio::test]
async fn another_implementation_verifies_with_published_keys() {
    let app = started().await;
    let before = signed_in(&app, &app.core);
    keys::rotate(&app.core, true).await.unwrap();
    let after = signed_in(&app, &app.core);
    for actor in [&before, &after] {
        let said = verify(&app, actor.bearer()).await.unwrap();
        assert_eq!(said["payload"]["sub"], app.owner.user.unwrap().to_string());
        assert_eq!(said["kid"], said["named"]);
    }
    // Another installation's token, and a modified one.
    let other = TestApp::start().await;
    assert!(verify(&app, signed_in(&other, &other.core).bearer()).await.is_err());
    let changed = after.bearer().rsplit_once('.').unwrap().0.to_owned()
        + "."
        + before.bearer().rsplit('.').next().unwrap();
    assert!(verify(&app, &changed).await.is_err());
}

async fn verify(app: &TestApp, token: &str) -> Result<Value, String> {
    let mut library = node("jose", "verify.mjs");
    library.arg(format!("{}{JWKS}", app.base)).args(["muster", token]).stdin(Stdio::null());
    let output = library.output().await.expect("node is installed");
    if output.status.success() {
        Ok(serde_json::from_slice(&output.stdout).unwrap())
    } else {
        Err(String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

#[tokio::test]
async fn the_published_keys_are_cacheable_and_contain_nothing_private() {
    let app = started().await;
    let answer = app.anonymous.get(JWKS).await;
    assert_eq!(answer.status, 200);
    let header = |name: &str| answer.headers.get(name).unwrap().to_str().unwrap().to_owned();
    assert_eq!(header("cache-control"), "public, max-age=300");
    assert_eq!(header("content-type"), "application/jwk-set+json");
    let key = &answer.body["keys"][0];
    let names: Vec<&String> = key.as_object().unwrap().keys().collect();
    assert_eq!(names, ["kty", "crv", "alg", "use", "kid", "x"]);
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let again = client.get(format!("{}{JWKS}", app.base)).header("if-none-match", header("etag"));
    assert_eq!(again.send().await.unwrap().status(), 304);
}
