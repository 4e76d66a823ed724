//! People: signing in, sessions, members, service tokens.

mod avatars;
mod browser_rules;
mod browser_sessions;
mod first_start;
mod invitations;
mod linked_accounts;
mod mail;
mod notifications;
pub mod oidc;
mod oidc_vendors;
mod own_account;
mod recovery;
mod second_factor;
mod service_tokens;
mod sessions;
mod throttling;

use std::{io, time::Duration};

use futures::channel::mpsc::UnboundedSender;
use muster::{
    base::ids::UserId,
    core::{
        access::{
            CREDENTIALS_KEPT,
            password::{Cost, Passwords},
        },
        resource_limits::Resource,
    },
    domain::people::{self, NewUser},
};
use reqwest::Method;
use serde_json::json;
use tokio::task::JoinHandle;

use crate::harness::{Actor, Answer, TestApp};

const REFRESH: &str =
    "mutation($t: SecretString!) { refreshSession(refreshToken: $t) { accessToken refreshToken } }";
const VIEWER: &str = "{ viewer { user { id email } memberships { organizationId organizationName role } } }";
const UPDATE_MEMBER: &str = "mutation($o: Id!, $u: Id!, $r: Role!) { updateMember(orgId: $o, userId: $u, input: { role: $r }) { userId role } }";
const REMOVE_MEMBER: &str = "mutation($o: Id!, $u: Id!) { removeMember(orgId: $o, userId: $u) }";
const CREATE_TOKEN: &str = "mutation($o: Id!, $i: CreateServiceTokenInput!) { createServiceToken(orgId: $o, input: $i) { id token hint permissions expiresAt createdBy creator { name } } }";
const REVOKE_TOKEN: &str =
    "mutation($o: Id!, $id: Id!) { revokeServiceToken(orgId: $o, id: $id) { id revokedAt } }";
const TOKENS: &str = "query($o: Id!) { serviceTokens(orgId: $o, page: 1, limit: 50) { total data { id name hint permissions } } }";

async fn refresh(app: &TestApp, token: &str) -> Answer {
    app.anonymous.gql(REFRESH, json!({ "t": token })).await
}

async fn set_role(app: &TestApp, by: &Actor, user: &Actor, role: &str) -> Answer {
    by.gql(UPDATE_MEMBER, json!({ "o": app.org, "u": user.user, "r": role })).await
}

async fn remove(app: &TestApp, by: &Actor, user: &Actor) -> Answer {
    by.gql(REMOVE_MEMBER, json!({ "o": app.org, "u": user.user })).await
}

async fn issue(app: &TestApp, by: &Actor, permissions: &[&str]) -> Answer {
    by.gql(CREATE_TOKEN, json!({ "o": app.org, "i": { "name": "ci", "permissions": permissions } })).await
}

/// The answer of an endpoint to a bad credential: status and code.
async fn refusal(app: &TestApp, actor: &Actor) -> (u16, String) {
    let answer = actor.get(&format!("/v1/org/{}", app.org)).await;
    let (status, code) = answer.problem();
    (status, code.to_owned())
}

#[tokio::test]
async fn signing_in_ignores_the_case_of_ascii_letters_only() {
    let app = TestApp::start().await;
    let id = app.user("Someone@Example.org", true).await;
    let signed_in = app.sign_in("someone@example.ORG", "correct horse").await.data()["signIn"].clone();
    assert_eq!(signed_in["user"]["id"], id);
    assert_eq!(signed_in["user"]["emailConfirmed"], true);
    assert_eq!(signed_in["accessTokenExpiresAt"], "2026-06-01T12:15:00.000Z");
    let (actor, _) = app.session(&signed_in);
    assert_eq!(actor.gql(VIEWER, json!({})).await.data()["viewer"]["user"]["id"], id);
    // PostgreSQL's `lower` turns U+212A into k and U+0130 into i.
    app.user("kim@example.org", true).await;
    for lookalike in ["\u{212a}im@example.org", "k\u{130}m@example.org"] {
        assert_eq!(app.sign_in(lookalike, "correct horse").await.code(), "SIGN_IN_FAILED", "{lookalike}");
    }
}

#[tokio::test]
async fn a_failed_sign_in_does_not_reveal_why() {
    let app = TestApp::start().await;
    app.user("someone@example.org", true).await;
    let id = app.user("gone@example.org", true).await;
    app.execute("UPDATE users SET disabled_at = 1 WHERE id = $1", vec![id.into()]).await;
    let mut said = Vec::new();
    // A wrong password, an unknown address, a disabled account, and one without a password.
    for (email, password) in [
        ("someone@example.org", "wrong horse"),
        ("unknown@example.org", "correct horse"),
        ("gone@example.org", "correct horse"),
        ("owner@example.com", "correct horse"),
    ] {
        let answer = app.sign_in(email, password).await;
        assert_eq!(answer.code(), "SIGN_IN_FAILED", "{email}");
        said.push(answer.body["errors"][0]["message"].clone());
    }
    said.dedup();
    assert_eq!(said.len(), 1);
    assert_eq!(app.sign_in("", "x").await.code(), "VALIDATION_FAILED");
}

#[tokio::test]
async fn a_password_of_an_older_cost_is_hashed_again() {
    let app = TestApp::start().await;
    let id = app.user("someone@example.org", true).await;
    let dearer = Passwords::new(Cost { iterations: 2, ..Cost::CHEAPEST }).unwrap();
    let old = dearer.hash(&"correct horse".into()).await.unwrap();
    app.execute("UPDATE users SET password_hash = $1 WHERE id = $2", vec![old.into(), id.into()]).await;
    for _ in 0..2 {
        app.signed_in("someone@example.org").await;
        let now: String = app.one("SELECT password_hash FROM users WHERE id = $1", vec![id.into()]).await;
        assert!(now.starts_with("$argon2id$v=19$m=8,t=1,p=1$"), "{now}");
    }
}

#[tokio::test]
async fn accounts_are_checked_and_unique() {
    let app = TestApp::start().await;
    let new = |email: &str, password: &str| NewUser {
        email: email.to_owned(),
        name: "Someone".to_owned(),
        password: password.into(),
        confirmed: false,
    };
    let refused = |result: Result<UserId, muster::base::problem::Problem>| result.unwrap_err().code.as_str();
    app.user("someone@example.org", true).await;
    let again = people::create_user(&app.core, new("SOMEONE@example.org", "correct horse")).await;
    assert_eq!(refused(again), "NAME_TAKEN");
    for (email, password) in
        [("unknown", "correct horse"), ("a@example.org", "short"), ("b@example.org", "b@example.org")]
    {
        assert_eq!(refused(people::create_user(&app.core, new(email, password)).await), "VALIDATION_FAILED");
    }
    let invited = people::invite_user(&app.core, "new@example.org").await.unwrap();
    assert_eq!(people::invite_user(&app.core, "New@example.org").await.unwrap(), invited);
    assert_eq!(app.sign_in("new@example.org", "").await.code(), "VALIDATION_FAILED");
    let made = people::create_user(&app.core, new("new@example.org", "correct horse")).await.unwrap();
    assert_eq!(made, invited);
    app.signed_in("new@example.org").await;
}

#[tokio::test]
async fn tokens_expire() {
    let app = TestApp::start().await;
    app.user("someone@example.org", true).await;
    let (actor, token) = app.signed_in("someone@example.org").await;
    app.clock.advance(Duration::from_mins(15));
    assert_eq!(refusal(&app, &actor).await, (401, "TOKEN_EXPIRED".to_owned()));
    let (actor, token) = app.session(&refresh(&app, &token).await.data()["refreshSession"]);
    actor.gql(VIEWER, json!({})).await.data();
    app.clock.advance(Duration::from_hours(30 * 24));
    assert_eq!(refresh(&app, &token).await.code(), "TOKEN_EXPIRED");
    for junk in ["junk", "mst_ref_0", "mst_svc_0"] {
        assert_eq!(refresh(&app, junk).await.code(), "UNAUTHENTICATED");
    }
}

#[tokio::test]
async fn signing_out_ends_the_session_at_once() {
    let app = TestApp::start().await;
    app.user("someone@example.org", true).await;
    let (actor, token) = app.signed_in("someone@example.org").await;
    assert_eq!(actor.gql("mutation { signOut }", json!({})).await.data()["signOut"], true);
    assert_eq!(refusal(&app, &actor).await, (401, "UNAUTHENTICATED".to_owned()));
    assert_eq!(refresh(&app, &token).await.code(), "UNAUTHENTICATED");
}

#[tokio::test]
async fn the_viewer_is_a_person_with_their_organizations() {
    let app = TestApp::start().await;
    let viewer = app.operator.gql(VIEWER, json!({})).await.data()["viewer"].clone();
    assert_eq!(viewer["user"]["id"], json!(app.operator.user));
    assert_eq!(
        viewer["memberships"],
        json!([{ "organizationId": app.org, "organizationName": "Meridian Freight", "role": "OPERATOR" }])
    );
    let other = app.stranger.gql(VIEWER, json!({})).await.data()["viewer"].clone();
    assert_eq!(other["memberships"][0]["organizationId"], app.other_org);
    assert_eq!(app.anonymous.gql(VIEWER, json!({})).await.code(), "UNAUTHENTICATED");
    let token = app.token(&["member.view"]).await;
    let refused = token.gql(VIEWER, json!({})).await;
    assert_eq!(refused.code(), "PERMISSION_DENIED");
    assert!(refused.body["errors"][0]["message"].as_str().unwrap().contains("person"));
}

#[tokio::test]
async fn members_are_listed_to_members() {
    let app = TestApp::start().await;
    let list = "query($o: Id!) { members(orgId: $o, page: 1, limit: 2) { total data { userId name email role avatarUrl } } }";
    let page = app.viewer.gql(list, json!({ "o": app.org })).await.data()["members"].clone();
    assert_eq!(page["total"], 4);
    assert_eq!(page["data"][0]["role"], "OWNER");
    assert_eq!(page["data"][0]["email"], "owner@example.com");
    let one = "query($o: Id!, $u: Id!) { member(orgId: $o, userId: $u) { name } }";
    let hidden = app.viewer.gql(one, json!({ "o": app.org, "u": app.stranger.user })).await;
    assert_eq!(hidden.code(), "NOT_FOUND");
}

#[tokio::test]
async fn a_changed_role_takes_effect_at_once() {
    let app = TestApp::start().await;
    let changed = set_role(&app, &app.admin, &app.viewer, "OPERATOR").await.data();
    assert_eq!(changed["updateMember"]["role"], "OPERATOR");
    let record = app.viewer.get(&format!("/v1/org/{}", app.org)).await.expect(200);
    assert_eq!(record["viewer_role"], "OPERATOR");
    assert_eq!(remove(&app, &app.admin, &app.viewer).await.data()["removeMember"], json!(app.viewer.user));
    assert_eq!(refusal(&app, &app.viewer).await, (403, "NOT_A_MEMBER".to_owned()));
    assert_eq!(remove(&app, &app.admin, &app.viewer).await.code(), "NOT_FOUND");
}

#[tokio::test]
async fn no_one_acts_above_their_own_role() {
    let app = TestApp::start().await;
    assert_eq!(set_role(&app, &app.admin, &app.admin, "OWNER").await.code(), "PERMISSION_DENIED");
    assert_eq!(set_role(&app, &app.admin, &app.viewer, "OWNER").await.code(), "PERMISSION_DENIED");
    assert_eq!(set_role(&app, &app.admin, &app.owner, "VIEWER").await.code(), "PERMISSION_DENIED");
    assert_eq!(remove(&app, &app.admin, &app.owner).await.code(), "PERMISSION_DENIED");
    assert_eq!(set_role(&app, &app.operator, &app.operator, "ADMIN").await.code(), "PERMISSION_DENIED");
    assert_eq!(set_role(&app, &app.owner, &app.stranger, "VIEWER").await.code(), "NOT_FOUND");
    let token = app.token(&["member.edit", "token.edit"]).await;
    assert_eq!(set_role(&app, &token, &app.viewer, "ADMIN").await.code(), "PERMISSION_DENIED");
    set_role(&app, &app.admin, &app.viewer, "ADMIN").await.data();
}

#[tokio::test]
async fn an_organization_keeps_an_owner() {
    let app = TestApp::start().await;
    assert_eq!(set_role(&app, &app.owner, &app.owner, "ADMIN").await.code(), "LAST_OWNER");
    assert_eq!(remove(&app, &app.owner, &app.owner).await.code(), "LAST_OWNER");
    let second = app.person("OWNER", true).await;
    let (one, two) = tokio::join!(remove(&app, &app.owner, &second), remove(&app, &second, &app.owner));
    let won = [&one, &two].iter().filter(|answer| answer.body["errors"].is_null()).count();
    assert_eq!(won, 1, "{:#} {:#}", one.body, two.body);
    let sql = "SELECT COUNT(*) FROM members WHERE organization_id = $1 AND role = 'OWNER'";
    let owners: i64 = app.one(sql, vec![app.org.into()]).await;
    assert_eq!(owners, 1);
}

#[tokio::test]
async fn disabling_the_last_owner_while_another_leaves_is_reported() {
    let app = TestApp::start().await;
    for _ in 0..6 {
        let (leaving, other) = (app.person("OWNER", true).await, app.person("OWNER", true).await);
        let sql = "UPDATE members SET role = 'VIEWER' WHERE organization_id = $1 AND user_id <> $2 AND user_id <> $3";
        app.execute(sql, vec![app.org.into(), leaving.user.into(), other.user.into()]).await;
        app.forget_sessions();
        let (left, disabled) = tokio::join!(
            remove(&app, &leaving, &leaving),
            people::disable_user(&app.core, UserId(other.user.unwrap()))
        );
        let stayed = !left.body["errors"].is_null() && left.code() == "LAST_OWNER";
        assert!(stayed || left.body["errors"].is_null(), "{:#}", left.body);
        assert_eq!(!stayed, !disabled.unwrap().organizations_without_owner.is_empty());
    }
    app.stranger.get(&format!("/v1/org/{}", app.other_org)).await.expect(200);
}

#[tokio::test]
async fn a_service_token_is_shown_once_and_works_until_revoked() {
    let app = TestApp::start().await;
    let issued =
        issue(&app, &app.admin, &["organization.view", "agent.view"]).await.data()["createServiceToken"]
            .clone();
    let text = issued["token"].as_str().unwrap().to_owned();
    assert!(text.starts_with("mst_svc_") && text.ends_with(issued["hint"].as_str().unwrap()));
    assert_eq!((&issued["createdBy"], &issued["creator"]["name"]), (&json!(app.admin.user), &json!("admin")));
    let token = app.anonymous.with_bearer(&text);
    token.get(&format!("/v1/org/{}", app.org)).await.expect(200);
    let list = app.admin.gql(TOKENS, json!({ "o": app.org })).await;
    assert!(!list.text.contains(&text));
    assert_eq!(list.data()["serviceTokens"]["total"], 1);
    let here = json!({ "o": app.org, "id": issued["id"] });
    // A service token can be read by its id, even after it is revoked.
    let one = "query($o: Id!, $id: Id!) { serviceToken(orgId: $o, id: $id) { name hint revokedAt } }";
    let read = async || app.admin.gql(one, here.clone()).await.data()["serviceToken"].clone();
    assert_eq!(read().await, json!({ "name": "ci", "hint": issued["hint"], "revokedAt": null }));
    for _ in 0..2 {
        app.admin.gql(REVOKE_TOKEN, here.clone()).await.data();
    }
    assert_eq!(read().await["revokedAt"], "2026-06-01T12:00:00.000Z");
    assert_eq!(refusal(&app, &token).await, (401, "UNAUTHENTICATED".to_owned()));
    assert_eq!(app.admin.gql(TOKENS, json!({ "o": app.org })).await.data()["serviceTokens"]["total"], 0);
    let stored: Vec<u8> = app.one("SELECT token_hash FROM service_tokens", vec![]).await;
    assert_eq!(stored.len(), 32);
}

#[tokio::test]
async fn a_service_token_expires() {
    let app = TestApp::start().await;
    let input = |at: &str| json!({ "o": app.org, "i": { "name": "ci", "permissions": ["organization.view"], "expiresAt": at } });
    assert_eq!(app.owner.gql(CREATE_TOKEN, input("2026-06-01T12:00:00Z")).await.code(), "VALIDATION_FAILED");
    let issued = app.owner.gql(CREATE_TOKEN, input("2026-06-01T13:00:00Z")).await.data();
    let token = app.anonymous.with_bearer(issued["createServiceToken"]["token"].as_str().unwrap());
    token.get(&format!("/v1/org/{}", app.org)).await.expect(200);
    app.clock.advance(Duration::from_hours(1));
    assert_eq!(refusal(&app, &token).await, (401, "TOKEN_EXPIRED".to_owned()));
}

#[tokio::test]
async fn a_service_token_has_no_more_than_its_issuer_and_the_cap() {
    let app = TestApp::start().await;
    // No role and no token can have these: they could create a way back in.
    for permission in ["member.edit", "token.edit", "policy.edit"] {
        let answer = issue(&app, &app.owner, &["agent.view", permission]).await;
        assert_eq!(answer.code(), "VALIDATION_FAILED");
        let error = &answer.body["errors"][0]["extensions"]["errors"][0];
        assert_eq!(error["pointer"], "/input/permissions/1", "{permission}");
    }
    assert_eq!(issue(&app, &app.owner, &[]).await.code(), "VALIDATION_FAILED");
    let unconfirmed = app.person("ADMIN", false).await;
    assert_eq!(issue(&app, &unconfirmed, &["agent.view"]).await.code(), "EMAIL_NOT_CONFIRMED");
    // A manipulated row is still limited by the cap.
    let token = app.token(&["token.edit", "organization.view"]).await;
    assert_eq!(issue(&app, &token, &["agent.view"]).await.code(), "PERMISSION_DENIED");
    let each_once = issue(&app, &app.owner, &["agent.view", "agent.view"]).await.data();
    assert_eq!(each_once["createServiceToken"]["permissions"], json!(["agent.view"]));
}

/// A request whose body is held back, after the service has let its caller in.
#[expect(clippy::disallowed_methods, reason = "not our service but a client of the test")]
async fn held_back(
    app: &TestApp,
    caller: &Actor,
) -> (UnboundedSender<Result<Vec<u8>, io::Error>>, JoinHandle<Answer>) {
    let (body, chunks) = futures::channel::mpsc::unbounded();
    let path = format!("/v1/org/{}/server", app.org);
    let request = caller.request(Method::POST, &path).header("content-type", "application/json");
    let answer = tokio::spawn(Answer::of(request.body(reqwest::Body::wrap_stream(chunks))));
    // Large enough for the resource limits, which shows that it is being read.
    body.unbounded_send(Ok(vec![b' '; 20 << 10])).unwrap();
    while app.core.resource_limits.limit(Resource::Bodies).total() == 0 {
        tokio::task::yield_now().await;
    }
    (body, answer)
}

#[tokio::test]
async fn a_request_held_back_does_not_outlive_its_callers_rights() {
    let app = TestApp::start().await;
    let (body, answer) = held_back(&app, &app.admin).await;
    remove(&app, &app.owner, &app.admin).await.data();
    body.unbounded_send(Ok(br#"{"name": "held"}"#.to_vec())).unwrap();
    drop(body);
    assert_eq!(answer.await.unwrap().problem(), (403, "NOT_A_MEMBER"));
    // A credential is checked again once its check is as old as a cached one may be.
    let made = issue(&app, &app.owner, &["server.create"]).await.data()["createServiceToken"].clone();
    let (body, answer) = held_back(&app, &app.anonymous.with_bearer(made["token"].as_str().unwrap())).await;
    app.owner.gql(REVOKE_TOKEN, json!({ "o": app.org, "id": made["id"] })).await.data();
    tokio::time::sleep(CREDENTIALS_KEPT).await;
    body.unbounded_send(Ok(br#"{"name": "held"}"#.to_vec())).unwrap();
    drop(body);
    assert_eq!(answer.await.unwrap().problem(), (401, "UNAUTHENTICATED"));
    assert_eq!(app.one::<i64>("SELECT COUNT(*) FROM servers WHERE name = 'held'", vec![]).await, 0);
}
