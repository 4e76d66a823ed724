//! Invitations: from a mail to a membership.

use std::time::Duration;

use serde_json::{Value, json};

use crate::{
    harness::{Actor, Answer, TestApp},
    people::remove,
};

const INVITE: &str = "mutation($o: Id!, $e: String!, $r: Role!) { inviteMember(orgId: $o, input: { email: $e, role: $r }) { id email role invitedBy inviter { name } sentAt expiresAt } }";
const RESEND: &str = "mutation($o: Id!, $id: Id!) { resendInvitation(orgId: $o, id: $id) { id } }";
const REVOKE: &str = "mutation($o: Id!, $id: Id!) { revokeInvitation(orgId: $o, id: $id) { id revokedAt } }";
const LIST: &str = "query($o: Id!, $c: Boolean) { invitations(orgId: $o, page: 1, limit: 50, includeClosed: $c) { total data { id email acceptedBy sentAt } } }";
const ONE: &str = "query($o: Id!, $id: Id!) { invitation(orgId: $o, id: $id) { email role revokedAt } }";
const ACCEPT: &str = "mutation($t: SecretString!, $n: String, $p: SecretString) { acceptInvitation(token: $t, name: $n, password: $p) { organizationId role user { id name email emailConfirmed } } }";
const OFFER: &str =
    "query($t: SecretString!) { invitationOffer(token: $t) { organization inviter email role } }";
const LEAVE: &str = "mutation($o: Id!) { leaveOrganization(orgId: $o) }";

async fn invite(app: &TestApp, by: &Actor, email: &str, role: &str) -> Answer {
    by.gql(INVITE, json!({ "o": app.org, "e": email, "r": role })).await
}

async fn invited(app: &TestApp, email: &str, role: &str) -> (Value, String) {
    invited_by(app, &app.admin, email, role).await
}

async fn invited_by(app: &TestApp, by: &Actor, email: &str, role: &str) -> (Value, String) {
    let invitation = invite(app, by, email, role).await.data()["inviteMember"].clone();
    (invitation["id"].clone(), app.mail().await.token)
}

async fn accept(actor: &Actor, token: &str, name: Option<&str>, password: Option<&str>) -> Answer {
    actor.gql(ACCEPT, json!({ "t": token, "n": name, "p": password })).await
}

#[tokio::test]
async fn the_organization_says_whether_mail_is_sent() {
    for (app, can) in [(TestApp::start().await, false), (TestApp::with_mail().await, true)] {
        let query = "query($o: Id!) { organization(orgId: $o) { canMail } }";
        let found = app.viewer.gql(query, json!({ "o": app.org })).await.data();
        assert_eq!(found["organization"]["canMail"], can);
    }
}

#[tokio::test]
async fn a_new_person_gets_an_account_and_a_membership() {
    let app = TestApp::with_mail().await;
    let made = invite(&app, &app.admin, " New@example.org ", "OPERATOR").await.data()["inviteMember"].clone();
    assert_eq!((&made["email"], &made["role"]), (&json!("New@example.org"), &json!("OPERATOR")));
    assert_eq!((&made["inviter"]["name"], &made["sentAt"]), (&json!("admin"), &Value::Null));
    let mail = app.mail().await;
    assert_eq!(mail.subject, "Invitation to Meridian Freight");
    assert!(mail.text.contains("admin invites you") && mail.text.contains("as OPERATOR"), "{}", mail.text);
    assert!(
        mail.text.contains("https://muster.example.com/accept-invitation#token=mst_link_"),
        "{}",
        mail.text
    );
    let offer = || app.anonymous.gql(OFFER, json!({ "t": mail.token }));
    let said = json!({
        "organization": "Meridian Freight", "inviter": "admin", "email": "New@example.org", "role": "OPERATOR",
    });
    assert_eq!(offer().await.data()["invitationOffer"], said);
    let missing = accept(&app.anonymous, &mail.token, None, Some("correct horse")).await;
    assert_eq!(missing.wrong_inputs(), [("/name", "REQUIRED")]);
    let missing = accept(&app.anonymous, &mail.token, Some("New"), None).await;
    assert_eq!(missing.wrong_inputs(), [("/password", "REQUIRED")]);
    let weak = accept(&app.anonymous, &mail.token, Some("New"), Some("short")).await;
    assert_eq!(weak.wrong_inputs(), [("/password", "NOT_ALLOWED")]);
    let accepted = accept(&app.anonymous, &mail.token, Some("New"), Some("correct horse")).await.data();
    let accepted = accepted["acceptInvitation"].clone();
    assert_eq!((&accepted["organizationId"], &accepted["role"]), (&json!(app.org), &json!("OPERATOR")));
    assert_eq!(accepted["user"]["emailConfirmed"], true);
    let again = accept(&app.anonymous, &mail.token, Some("New"), Some("correct horse")).await;
    assert_eq!(again.code(), "LINK_INVALID");
    assert_eq!(offer().await.code(), "LINK_INVALID");
    let member = app.signed_in("new@example.org").await.0;
    let record = member.get(&format!("/v1/org/{}", app.org)).await.expect(200);
    assert_eq!(record["viewer_role"], "OPERATOR");
    let listed = |closed: bool| app.viewer.gql(LIST, json!({ "o": app.org, "c": closed }));
    assert_eq!(listed(false).await.data()["invitations"]["total"], 0);
    let closed = listed(true).await.data()["invitations"].clone();
    assert_eq!(closed["data"][0]["acceptedBy"], accepted["user"]["id"]);
    assert!(closed["data"][0]["sentAt"].is_string());
}

#[tokio::test]
async fn account_owners_must_prove_it_is_theirs() {
    let app = TestApp::with_mail().await;
    app.user("someone@example.org", false).await;
    let (_, token) = invited(&app, "Someone@example.org", "VIEWER").await;
    // Only the link, another person's session, a wrong password: none of them is enough.
    for (actor, password) in
        [(&app.anonymous, None), (&app.stranger, None), (&app.owner, Some("wrong horse"))]
    {
        let refused = accept(actor, &token, Some("Thief"), password).await;
        assert_eq!(refused.code(), "SIGN_IN_FAILED");
        assert_eq!(refused.body["errors"][0]["extensions"]["details"]["email"], "Someone@example.org");
    }
    accept(&app.anonymous, &token, Some("Ignored"), Some("correct horse")).await.data();
    let someone = app.signed_in("someone@example.org").await.0;
    let viewer = someone.gql("{ viewer { user { name emailConfirmed } } }", json!({})).await.data();
    assert_eq!(viewer["viewer"]["user"], json!({ "name": "Someone", "emailConfirmed": true }));
    // A session of the account is enough.
    app.user("another@example.org", false).await;
    let (_, token) = invited(&app, "another@example.org", "VIEWER").await;
    let another = app.signed_in("another@example.org").await.0;
    accept(&another, &token, None, None).await.data();
    another.get(&format!("/v1/org/{}", app.org)).await.expect(200);
    // The stranger joins by invitation like anyone else, and stays OWNER at home.
    let (_, token) = invited(&app, "stranger@example.com", "VIEWER").await;
    accept(&app.stranger, &token, None, None).await.data();
    let record = app.stranger.get(&format!("/v1/org/{}", app.org)).await.expect(200);
    assert_eq!(record["viewer_role"], "VIEWER");
}

#[tokio::test]
async fn an_invitation_needs_the_permission_and_the_role() {
    let app = TestApp::with_mail().await;
    assert_eq!(invite(&app, &app.admin, "a@example.org", "OWNER").await.code(), "PERMISSION_DENIED");
    let unconfirmed = app.person("ADMIN", false).await;
    assert_eq!(invite(&app, &unconfirmed, "a@example.org", "VIEWER").await.code(), "EMAIL_NOT_CONFIRMED");
    for wrong in ["unknown", "bob@example"] {
        let refused = invite(&app, &app.admin, wrong, "VIEWER").await;
        assert_eq!(refused.wrong_inputs(), [("/input/email", "NOT_ALLOWED")], "{wrong}");
    }
    assert_eq!(invite(&app, &app.admin, "VIEWER@example.com", "VIEWER").await.code(), "NAME_TAKEN");
    assert!(app.mails().await.is_empty());
    invite(&app, &app.owner, "a@example.org", "OWNER").await.data();
    let id = app.one::<i64>("SELECT id FROM invitations", vec![]).await;
    // Roles above the caller's are out of reach.
    for mutation in [RESEND, REVOKE] {
        let variables = json!({ "o": app.org, "id": id });
        assert_eq!(app.admin.gql(mutation, variables).await.code(), "PERMISSION_DENIED");
    }
}

#[tokio::test]
async fn an_invitation_is_resent_revoked_and_expires() {
    let app = TestApp::with_mail().await;
    let (id, first) = invited(&app, "new@example.org", "VIEWER").await;
    assert_eq!(invite(&app, &app.admin, "NEW@example.org", "VIEWER").await.code(), "NAME_TAKEN");
    let this = json!({ "o": app.org, "id": id });
    app.admin.gql(RESEND, this.clone()).await.data();
    let early = accept(&app.anonymous, &first, Some("New"), Some("correct horse")).await;
    assert_eq!(early.code(), "LINK_INVALID", "the first link ends when the second is asked for");
    let second = app.mail().await.token;
    // An invitation can be read by its id, even after it is revoked.
    let read = async || app.viewer.gql(ONE, this.clone()).await.data()["invitation"].clone();
    assert_eq!(read().await, json!({ "email": "new@example.org", "role": "VIEWER", "revokedAt": null }));
    app.admin.gql(REVOKE, this.clone()).await.data();
    assert_eq!(read().await["revokedAt"], "2026-06-01T12:00:00.000Z");
    for token in [&first, &second] {
        let refused = accept(&app.anonymous, token, Some("New"), Some("correct horse")).await;
        assert_eq!(refused.code(), "LINK_INVALID");
    }
    for mutation in [RESEND, REVOKE] {
        assert_eq!(app.admin.gql(mutation, this.clone()).await.code(), "NOT_FOUND");
    }
    // Revoked before the mail was sent: no mail is sent.
    app.clock.advance(Duration::from_mins(2));
    let id =
        invite(&app, &app.admin, "other@example.org", "VIEWER").await.data()["inviteMember"]["id"].clone();
    app.admin.gql(REVOKE, json!({ "o": app.org, "id": id })).await.data();
    assert!(app.mails().await.is_empty());
    let (_, late) = invited(&app, "late@example.org", "VIEWER").await;
    app.clock.advance(Duration::from_hours(7 * 24));
    let refused = accept(&app.anonymous, &late, Some("Late"), Some("correct horse")).await;
    assert_eq!(refused.code(), "LINK_INVALID");
    // An expired invitation doesn't block another.
    let (_, token) = invited(&app, "late@example.org", "VIEWER").await;
    accept(&app.anonymous, &token, Some("Late"), Some("correct horse")).await.data();
}

#[tokio::test]
async fn an_invitation_is_worth_no_more_than_its_sender() {
    let app = TestApp::with_mail().await;
    let (_, token) = invited(&app, "new@example.org", "ADMIN").await;
    let demote = "mutation($o: Id!, $u: Id!) { updateMember(orgId: $o, userId: $u, input: { role: OPERATOR }) { role } }";
    app.owner.gql(demote, json!({ "o": app.org, "u": app.admin.user })).await.data();
    let refused = accept(&app.anonymous, &token, Some("New"), Some("correct horse")).await;
    assert_eq!(refused.code(), "LINK_INVALID");
    let made: i64 = app.one("SELECT COUNT(*) FROM users WHERE email = 'new@example.org'", vec![]).await;
    assert_eq!(made, 0, "refused invitations leave nothing behind");
    // The same for an invitation from a person who still has the role but can no longer sign in.
    let (_, of_disabled) = invited_by(&app, &app.owner, "late@example.org", "OWNER").await;
    app.execute("UPDATE users SET disabled_at = 1 WHERE id = $1", vec![app.owner.user.into()]).await;
    let refused = accept(&app.anonymous, &of_disabled, Some("Late"), Some("correct horse")).await;
    assert_eq!(refused.code(), "LINK_INVALID");
    app.execute("UPDATE users SET disabled_at = NULL WHERE id = $1", vec![app.owner.user.into()]).await;
    // Sending it again makes one its sender.
    let id: i64 = app.one("SELECT id FROM invitations WHERE email LIKE 'new@%'", vec![]).await;
    app.owner.gql(RESEND, json!({ "o": app.org, "id": id })).await.data();
    let token = app.mail().await.token;
    accept(&app.anonymous, &token, Some("New"), Some("correct horse")).await.data();
}

#[tokio::test]
async fn when_two_accept_at_once_one_is_too_late() {
    let app = TestApp::with_mail().await;
    let (_, token) = invited(&app, "new@example.org", "VIEWER").await;
    let both = (0..4).map(|_| accept(&app.anonymous, &token, Some("New"), Some("correct horse")));
    let answers = futures::future::join_all(both).await;
    let won = answers.iter().filter(|answer| answer.body["errors"].is_null()).count();
    assert_eq!(won, 1, "{answers:#?}");
    assert_eq!(app.one::<i64>("SELECT COUNT(*) FROM users WHERE email = 'new@example.org'", vec![]).await, 1);
}

#[tokio::test]
async fn a_member_who_leaves_gets_no_more_alerts() {
    let app = TestApp::with_mail().await;
    let agent = app.agent().await;
    let body = json!({ "agent_id": agent, "name": "bot", "transport": "TELEGRAM", "bot_token": "1:a" });
    let channel = app.admin.post(&format!("/v1/org/{}/channel", app.org), body).await.expect(201);
    let path = format!("/v1/org/{}/channel/{}", app.org, channel["id"]);
    let told = json!({ "alert_recipient_user_ids": [app.viewer.user, app.admin.user, app.operator.user] });
    app.admin.patch(&path, told).await.expect(200);
    let leave = json!({ "o": app.org });
    app.viewer.gql(LEAVE, leave.clone()).await.data();
    assert_eq!(app.viewer.get(&format!("/v1/org/{}", app.org)).await.problem(), (403, "NOT_A_MEMBER"));
    remove(&app, &app.admin, &app.operator).await.data();
    let left =
        "query($o: Id!, $id: Id!) { agent(orgId: $o, id: $id) { channels { alertRecipientUserIds } } }";
    let left = app.admin.gql(left, json!({ "o": app.org, "id": agent })).await.data();
    assert_eq!(left["agent"]["channels"][0]["alertRecipientUserIds"], json!([app.admin.user]));
    assert_eq!(app.owner.gql(LEAVE, leave.clone()).await.code(), "LAST_OWNER");
    let token = app.token(&["organization.view"]).await;
    assert_eq!(token.gql(LEAVE, leave).await.code(), "PERMISSION_DENIED");
}

#[tokio::test]
async fn owners_who_demote_each_other_leave_one() {
    for _ in 0..3 {
        let app = TestApp::start().await;
        let second = app.person("OWNER", true).await;
        let demote = "mutation($o: Id!, $u: Id!) { updateMember(orgId: $o, userId: $u, input: { role: VIEWER }) { role } }";
        let (one, two, three) = tokio::join!(
            app.owner.gql(demote, json!({ "o": app.org, "u": second.user })),
            second.gql(demote, json!({ "o": app.org, "u": app.owner.user })),
            second.gql(LEAVE, json!({ "o": app.org })),
        );
        let sql = "SELECT COUNT(*) FROM members WHERE organization_id = $1 AND role = 'OWNER'";
        let owners: i64 = app.one(sql, vec![app.org.into()]).await;
        assert_eq!(owners, 1, "{:#} {:#} {:#}", one.body, two.body, three.body);
    }
}

#[tokio::test]
async fn invalid_addresses_and_hostile_names_are_refused() {
    let app = TestApp::with_mail().await;
    for email in ["\"x y\"@example.com", "x@[127.0.0.1]", "a@example.com\nBcc: b@example.com"] {
        let refused = invite(&app, &app.admin, email, "VIEWER").await;
        assert_eq!(refused.code(), "VALIDATION_FAILED", "{email}: {}", refused.text);
    }
    assert!(app.mails().await.is_empty());
    let rename =
        "mutation($o: Id!, $n: String!) { updateOrganization(orgId: $o, input: { name: $n }) { name } }";
    let server =
        "mutation($o: Id!, $n: String!) { createServer(orgId: $o, input: { name: $n }) { server { id } } }";
    let change = "mutation($n: String!) { changeName(name: $n) { name } }";
    for name in ["a\nb", "\u{1b}[31mred", "a\u{7}", "a\u{2028}b", "a\u{202e}b"] {
        for document in [rename, server, change] {
            let refused = app.owner.gql(document, json!({ "o": app.org, "n": name })).await;
            assert_eq!(refused.code(), "VALIDATION_FAILED", "{document} {name:?}: {}", refused.text);
        }
    }
    let link = "see https://evil.example";
    for document in [rename, change] {
        let refused = app.owner.gql(document, json!({ "o": app.org, "n": link })).await;
        assert_eq!(refused.code(), "VALIDATION_FAILED", "{document}: {}", refused.text);
    }
    app.owner.gql(rename, json!({ "o": app.org, "n": "Étoile & Söhne: \u{65e5}\u{672c}" })).await.data();
}

/// SQLite has a single writer.
#[tokio::test(flavor = "multi_thread")]
async fn postgres_an_accepted_invitation_is_not_revoked_or_resent() {
    let app = TestApp::with_mail().await;
    for (email, query) in [("one@example.com", REVOKE), ("two@example.com", RESEND)] {
        let (id, _) = invited(&app, email, "VIEWER").await;
        // As accepting does: first the organization, then the invitation.
        let lock = format!("SELECT 1 FROM organizations WHERE id = {} FOR NO KEY UPDATE", app.org);
        let accepted = format!("UPDATE invitations SET accepted_at = 1 WHERE id = {id}");
        let asked = app.admin.gql(query, json!({ "o": app.org, "id": id }));
        assert_eq!(app.while_changed(&lock, Some(&accepted), asked).await.code(), "NOT_FOUND");
    }
}
