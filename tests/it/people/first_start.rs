//! The first start: an installation without people, the code in its log, and the first person and organization.

use std::{fs, time::Duration};

use muster::domain::people::{self, NewUser};
use secrecy::ExposeSecret;
use serde_json::{Value, json};

use crate::harness::{Actor, Answer, Browser, Program, TestApp, until};

const OPEN: &str = "{ firstStart { isOpen } }";
const COMPLETE: &str = "mutation($i: CompleteFirstStartInput!) { completeFirstStart(input: $i) { accessToken refreshToken user { id name email emailConfirmed } } }";
const VIEWER: &str = "{ viewer { memberships { organizationId organizationName role } } }";
const EMAIL: &str = "ada@example.org";

/// A service without people, and its code.
async fn service() -> (TestApp, String) {
    let app = TestApp::without_people().await;
    let code = renewed(&app).await;
    (app, code)
}

/// A new code, as a start of the service makes one.
async fn renewed(app: &TestApp) -> String {
    let code = people::renew_first_code(&app.core).await.unwrap();
    code.expect("no user exists").expose_secret().to_owned()
}

async fn is_open(app: &TestApp) -> Value {
    app.anonymous.gql(OPEN, json!({})).await.data()["firstStart"]["isOpen"].clone()
}

fn input(code: &str) -> Value {
    json!({
        "code": code, "name": "Ada", "email": EMAIL, "password": "correct horse", "organizationName": " Acme ",
    })
}

async fn complete(actor: &Actor, input: Value) -> Answer {
    actor.gql(COMPLETE, json!({ "i": input })).await
}

async fn count(app: &TestApp, table: &str) -> i64 {
    app.one(&format!("SELECT CAST(COUNT(*) AS BIGINT) FROM {table}"), vec![]).await
}

#[tokio::test]
async fn the_code_makes_the_first_person_and_organization() {
    let (app, code) = service().await;
    assert_eq!(is_open(&app).await, true);
    let made = complete(&app.anonymous, input(&code)).await.data()["completeFirstStart"].clone();
    assert_eq!(made["user"]["email"], EMAIL);
    assert_eq!((&made["user"]["name"], &made["user"]["emailConfirmed"]), (&json!("Ada"), &json!(true)));
    let (ada, _) = app.session(&made);
    let memberships = ada.gql(VIEWER, json!({})).await.data()["viewer"]["memberships"].clone();
    let org = memberships[0]["organizationId"].clone();
    assert_eq!(memberships, json!([{ "organizationId": org, "organizationName": "Acme", "role": "OWNER" }]));
    let images = "query($o: Id!) { images(orgId: $o) { name } }";
    let images = ada.gql(images, json!({ "o": org })).await.data()["images"].clone();
    assert_eq!(images.as_array().unwrap().len(), 1, "agents can be created at once");
    app.signed_in(EMAIL).await;
    assert_eq!(is_open(&app).await, false);
    assert_eq!(count(&app, "first_start").await, 0);
    let lines = "SELECT operation || ' ' || actor_kind FROM audit_lines \
                 WHERE operation IN ('completeFirstStart', 'createOrganization', 'addMember') ORDER BY operation";
    let lines: Vec<String> = app.column(lines).await;
    assert_eq!(lines, ["addMember SYSTEM", "completeFirstStart USER", "createOrganization SYSTEM"]);
}

#[tokio::test]
async fn the_first_owner_sees_no_other_organization() {
    let (app, code) = service().await;
    let made = complete(&app.anonymous, input(&code)).await.data()["completeFirstStart"].clone();
    let (ada, _) = app.session(&made);
    let query = "query($o: Id!) { organization(orgId: $o) { id } }";
    for org in [app.org, app.other_org] {
        assert_eq!(ada.gql(query, json!({ "o": org })).await.code(), "NOT_A_MEMBER");
    }
}

#[tokio::test]
async fn a_browser_gets_a_cookie_from_the_first_start() {
    let (app, code) = service().await;
    let mut browser = Browser::new(&app);
    let query = "mutation($i: CompleteFirstStartInput!) { completeFirstStart(input: $i, cookie: true) { accessToken user { email } } }";
    let answer = browser.gql(query, json!({ "i": input(&code) })).await;
    assert!(answer.header("set-cookie").starts_with("muster-session=mst_ses_"));
    let expected = json!({ "accessToken": null, "user": { "email": EMAIL } });
    assert_eq!(answer.data()["completeFirstStart"], expected);
    assert_eq!(browser.refusal().await, None);
}

#[tokio::test]
async fn a_code_works_once() {
    let (app, code) = service().await;
    complete(&app.anonymous, input(&code)).await.data();
    let mut again = input(&code);
    again["email"] = json!("bob@example.org");
    assert_eq!(complete(&app.anonymous, again).await.code(), "CONFLICT");
    assert_eq!(count(&app, "users").await, 1);
    assert!(people::renew_first_code(&app.core).await.unwrap().is_none(), "no start makes another one");
}

#[tokio::test]
async fn of_two_at_once_only_one_is_first() {
    for _ in 0..4 {
        let (app, code) = service().await;
        let before = count(&app, "organizations").await;
        let other = json!({ "email": "bob@example.org", "organizationName": "Other" });
        let mut second = input(&code);
        second.as_object_mut().unwrap().extend(other.as_object().unwrap().clone());
        let (one, two) =
            tokio::join!(complete(&app.anonymous, input(&code)), complete(&app.anonymous, second));
        let refused: Vec<_> =
            [&one, &two].into_iter().filter(|answer| !answer.body["errors"].is_null()).collect();
        let [refused] = refused[..] else { panic!("{:#} {:#}", one.body, two.body) };
        assert_eq!(refused.code(), "CONFLICT");
        assert_eq!((count(&app, "users").await, count(&app, "organizations").await), (1, before + 1));
    }
}

#[tokio::test]
async fn a_user_made_meanwhile_ends_the_first_start() {
    let (app, code) = service().await;
    let new = NewUser {
        email: EMAIL.to_owned(),
        name: "Operator".to_owned(),
        password: "correct horse".into(),
        confirmed: true,
    };
    let (made, answer) =
        tokio::join!(people::create_user(&app.core, new), complete(&app.anonymous, input(&code)));
    // The first of the two decides: the other finds the address taken, or the code gone.
    assert_eq!(made.is_ok(), !answer.body["errors"].is_null(), "{:#}", answer.body);
    assert_eq!(count(&app, "users").await, 1);
    assert_eq!(is_open(&app).await, false);
    assert_eq!(count(&app, "first_start").await, 0);
}

#[tokio::test]
async fn an_invited_owner_ends_the_first_start() {
    let (app, code) = service().await;
    people::invite_user(&app.core, "boss@example.org").await.unwrap();
    assert_eq!(is_open(&app).await, false);
    assert_eq!(complete(&app.anonymous, input(&code)).await.code(), "CONFLICT");
}

#[tokio::test]
async fn only_the_newest_code_works() {
    let (app, old) = service().await;
    let code = renewed(&app).await;
    assert_ne!(old, code);
    for wrong in [old.as_str(), "mst_code_0", "a guess"] {
        assert_eq!(complete(&app.anonymous, input(wrong)).await.code(), "LINK_INVALID", "{wrong}");
    }
    let stored: Vec<u8> = app.one("SELECT code_hash FROM first_start", vec![]).await;
    assert_eq!(stored.len(), 32);
    // Pasted, with a line break.
    complete(&app.anonymous, input(&format!(" {code}\n"))).await.data();
}

#[tokio::test]
async fn wrong_codes_are_slowed_down_and_mistakes_are_not() {
    let (app, code) = service().await;
    let mut weak = input(&code);
    weak["password"] = json!("short");
    for _ in 0..8 {
        let refused = complete(&app.anonymous, weak.clone()).await;
        assert_eq!(refused.wrong_inputs(), [("/input/password", "NOT_ALLOWED")]);
    }
    for _ in 0..5 {
        assert_eq!(complete(&app.anonymous, input("a guess")).await.code(), "LINK_INVALID");
    }
    let refused = complete(&app.anonymous, input(&code)).await;
    assert_eq!(refused.code(), "RATE_LIMITED");
    assert_eq!(refused.body["errors"][0]["extensions"]["details"]["retry_after"], 60);
    app.clock.advance(Duration::from_mins(1));
    complete(&app.anonymous, input(&code)).await.data();
}

#[tokio::test]
async fn every_invalid_value_is_named() {
    let (app, code) = service().await;
    let mut wrong = input(&code);
    let values =
        json!({ "name": "http://x", "email": "unknown", "password": "short", "organizationName": "a://b" });
    wrong.as_object_mut().unwrap().extend(values.as_object().unwrap().clone());
    let refused = complete(&app.anonymous, wrong).await;
    let mut named: Vec<_> =
        refused.wrong_inputs().into_iter().map(|(pointer, _)| pointer.to_owned()).collect();
    named.sort();
    assert_eq!(named, ["/input/email", "/input/name", "/input/organizationName", "/input/password"]);
    assert_eq!(count(&app, "users").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_without_people_logs_the_page_with_a_new_code() {
    let program = Program::new(&[("MUSTER_LOG_FORMAT", "json")]);
    let folder = tempfile::tempdir().unwrap();
    let mut codes = Vec::new();
    for n in 0..2 {
        let log = folder.path().join(n.to_string());
        let serving = program.serve_logging_to(fs::File::create(&log).unwrap());
        let start = format!("{}/first-start#code=", serving.base);
        let code = || {
            let text = fs::read_to_string(&log).unwrap();
            let rest = text.split_once(&start)?.1;
            Some(
                rest.chars()
                    .take_while(|letter| letter.is_ascii_alphanumeric() || *letter == '_')
                    .collect::<String>(),
            )
        };
        until("the page is logged", async || code().is_some()).await;
        codes.push(code().unwrap());
    }
    assert!(codes.iter().all(|code| code.starts_with("mst_code_")) && codes[0] != codes[1], "{codes:?}");
    let made = ["user", "create", "--email", EMAIL, "--name", "Ada", "--password-stdin"];
    program.json_told(&made, "correct horse");
    let log = folder.path().join("later");
    let mut serving = program.serve_logging_to(fs::File::create(&log).unwrap());
    serving.terminate();
    assert_eq!(serving.ended().await, Some(0));
    let text = fs::read_to_string(&log).unwrap();
    assert!(text.contains("serve.ready") && !text.contains("first_start"), "{text}");
}
