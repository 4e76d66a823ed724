//! The law of the audit log: every mutation in the schema is run once with success and leaves its entry: the
//! field's own name, who did it with which credential and from where, in which organization, and by which
//! permission. Each runs under an idempotency key, which it marks as used in the transaction of its change; the
//! kept answer contains no secret.
//!
//! A new mutation fails here until it gets a call below.

use std::collections::BTreeSet;

use async_graphql::registry::MetaField;
use futures::FutureExt;
use muster::{
    base::{enums::ChangeOp, ids::OrgId},
    core::{
        News,
        access::{
            Caller, Permit,
            token::{Token, TokenKind},
        },
        events::Subscription,
    },
    domain::people,
};
use reqwest::Method;
use secrecy::ExposeSecret;
use serde_json::{Value, json};
use totp_rs::Totp;

use crate::{
    channels::accounts::Google,
    harness::{Actor, Answer, Spare, TestApp, Walker, good_calls, picture_input, until},
    laws::folding,
};

/// Mutations whose entry names no one, with the reason. The list only shrinks.
const BY_NOBODY: &[(&str, &str)] = &[(
    "requestPasswordReset",
    "the caller has proved nothing yet; the entry says whose account it concerns",
)];

/// Mutations without an entry, with the reason. They change nothing that others see.
const UNLOGGED: &[(&str, &str)] = &[
    ("markRead", "how far a person has read is private, and would fill the log"),
    ("snoozeApproval", "hides it from the person alone"),
    ("watchConversation", "tells the person alone"),
];

#[test]
fn mutations_without_a_line_are_documented() {
    let page = std::fs::read_to_string("docs/audit.md").unwrap();
    let start = page.find("Three have no line").expect("it says so");
    let sentence: String = page[start..].chars().take_while(|c| *c != '.').collect();
    let named: Vec<_> = sentence.split('`').skip(1).step_by(2).collect();
    assert_eq!(named, UNLOGGED.iter().map(|(name, _)| *name).collect::<Vec<_>>());
}

/// The actor that an entry must name.
#[derive(Clone, Copy)]
enum By {
    /// A person, through their session.
    Session(i64),
    /// A person identified by a password, a link, or a code in the request itself.
    Proof(i64),
    /// A service token of the organization.
    Token,
}

struct Law {
    walker: Walker,
    done: BTreeSet<String>,
}

impl Law {
    fn field(&self, name: &str) -> (&MetaField, Permit) {
        let found = self.walker.catalogue.root_field(name).unwrap_or_else(|| panic!("no root field {name}"));
        (found.field, found.permit)
    }

    /// Runs a mutation that must succeed and leave its entry. Returns the answer.
    async fn run(&mut self, app: &TestApp, (actor, by): (&Actor, By), name: &str, mut given: Value) -> Value {
        let (field, permit) = self.field(name);
        let in_org = matches!(permit, Permit::Member | Permit::InOrganization { .. });
        if in_org {
            given["orgId"] = json!(app.org);
        }
        let given_names = || given.as_object().unwrap().keys();
        let declared: Vec<String> =
            given_names().map(|arg| format!("${arg}: {}", field.args[arg].ty)).collect();
        let passed: Vec<String> = given_names().map(|arg| format!("{arg}: ${arg}")).collect();
        let list = |parts: Vec<String>| {
            if parts.is_empty() { String::new() } else { format!("({})", parts.join(", ")) }
        };
        let (declared, passed, selection) = (list(declared), list(passed), self.selection(&field.ty));
        let document = format!("mutation{declared} {{ {name}{passed} {selection} }}");
        let before: i64 = app.one("SELECT COALESCE(MAX(id), 0) FROM audit_lines", vec![]).await;
        let key = format!("{name}-{before}");
        let asked = json!({ "query": document, "variables": given });
        let ask = || actor.request(Method::POST, "/graphql").header("idempotency-key", &key).json(&asked);
        let mut news = app.core.events.subscribe(OrgId(app.org), &Caller::System);
        let answer = Answer::of(ask()).await;
        assert!(answer.body["errors"].is_null(), "{name}: {:#}", answer.body);
        let permission = match permit {
            Permit::InOrganization { permission, .. } => permission.as_str(),
            Permit::Anyone | Permit::SignedIn | Permit::Member => "-",
        };
        if UNLOGGED.iter().any(|(unlogged, _)| *unlogged == name) {
            let lines = "SELECT COUNT(*) FROM audit_lines WHERE id > $1";
            assert_eq!(
                app.one::<i64>(lines, vec![before.into()]).await,
                0,
                "{name} leaves an entry after all"
            );
        } else {
            self.check(app, name, by, before, permission).await;
            if in_org {
                self.tells(app, name, before, &mut news).await;
            }
        }
        if !actor.bearer().is_empty() {
            let marked = "SELECT CAST(COUNT(*) AS BIGINT) FROM idempotency_keys WHERE idempotency_key = $1 AND changed";
            assert_eq!(
                app.one::<i64>(marked, vec![key.clone().into()]).await,
                1,
                "{name} does not mark its key"
            );
            let again = Answer::of(ask()).await;
            for secret in secrets(&answer.body["data"]) {
                assert!(!again.text.contains(secret), "{name} needs `shown_once`: {}", again.text);
            }
        }
        folding::is_kept(app, name).await;
        self.done.insert(name.to_owned());
        answer.body["data"][name].clone()
    }

    /// Everything that isn't an object, and objects one field deeper.
    fn selection(&self, ty: &str) -> String {
        let Some(fields) = self.walker.fields(ty) else { return String::new() };
        let mut names = vec!["__typename".to_owned()];
        for field in fields {
            if !self.walker.is_object(&field.ty) {
                names.push(field.name.clone());
            } else if let Some(inner) = self.walker.fields(&field.ty).filter(|_| !self.walker.is_planned(ty))
            {
                let inner: Vec<&str> = inner
                    .filter(|field| !self.walker.is_object(&field.ty))
                    .map(|field| field.name.as_str())
                    .collect();
                names.push(format!("{} {{ {} }}", field.name, inner.join(" ")));
            }
        }
        format!("{{ {} }}", names.join(" "))
    }

    /// Subscribers of the organization hear about the entry's record.
    async fn tells(&self, app: &TestApp, name: &str, before: i64, news: &mut Subscription) {
        let sql = format!(
            "SELECT target_kind || ' ' || CAST(target_id AS TEXT) FROM audit_lines WHERE id > {before} AND operation = '{name}'"
        );
        let target = app.column::<String>(&sql).await.remove(0);
        let mut heard = Vec::new();
        while let Some(Some((News::Changed(event), _))) = news.next().now_or_never() {
            heard.push((format!("{} {}", event.kind.noun(), event.id), event.op));
        }
        let told = heard.iter().find(|(record, _)| *record == target);
        let Some((_, op)) = told else { panic!("{name} announces nothing about {target}: {heard:?}") };
        let expected = match name {
            "addWhitelistOrigin" | "removeWhitelistOrigin" | "removeAllowedHost" | "deleteBackup" => {
                ChangeOp::Updated
            }
            name if ["create", "add", "invite", "upload", "start"]
                .iter()
                .any(|verb| name.starts_with(verb))
                && !name.starts_with("startAgent") =>
            {
                ChangeOp::Created
            }
            name if ["delete", "remove", "revoke", "leave"].iter().any(|verb| name.starts_with(verb)) => {
                ChangeOp::Deleted
            }
            _ => ChangeOp::Updated,
        };
        assert_eq!(*op, expected, "{name}");
    }

    async fn check(&self, app: &TestApp, name: &str, by: By, before: i64, permission: &str) {
        let sql = format!(
            "SELECT actor_kind || '|' || COALESCE(CAST(actor_id AS TEXT), '-') || '|' || COALESCE(actor_name, '-') || '|' \
             || COALESCE(credential_kind, '-') || '|' || COALESCE(CAST(credential_id AS TEXT), '-') || '|' \
             || COALESCE(ip, '-') || '|' || outcome || '|' || COALESCE(permission, '-') || '|' \
             || COALESCE(CAST(organization_id AS TEXT), '-') || '|' || COALESCE(request_id, '-') \
             FROM audit_lines WHERE id > {before} AND operation = '{name}'"
        );
        let mut lines: Vec<String> = app.column(&sql).await;
        // Some operations are answered before they are done, so that no one learns whether an account exists;
        // they are done soon after.
        if lines.is_empty() {
            until(&format!("{name} leaves an entry"), async || {
                lines = app.column(&sql).await;
                !lines.is_empty()
            })
            .await;
        }
        let [line] = &lines[..] else { panic!("{name} left {} lines: {lines:?}", lines.len()) };
        let parts: Vec<&str> = line.split('|').collect();
        let [kind, actor, called, credential, credential_id, ip, outcome, permitted, org, request] =
            parts[..]
        else {
            panic!("{line}")
        };
        assert_eq!((ip, outcome), ("127.0.0.1", "ALLOWED"), "{name}: {line}");
        assert_ne!(request, "-", "{name}: {line}");
        assert_eq!(permitted, permission, "{name}: {line}");
        let of_org = permission != "-" || name == "acceptInvitation";
        assert_eq!(org, if of_org { app.org.to_string() } else { "-".to_owned() }, "{name}: {line}");
        if BY_NOBODY.iter().any(|(exempt, _)| *exempt == name) {
            assert_eq!(
                (kind, actor, credential),
                ("ANONYMOUS", "-", "-"),
                "{name} needs no exemption: {line}"
            );
            return;
        }
        assert_ne!(called, "-", "{name}: {line}");
        match by {
            By::Session(user) => {
                assert_eq!(
                    (kind, actor, credential),
                    ("USER", &*user.to_string(), "SESSION"),
                    "{name}: {line}"
                );
                let whose = format!("SELECT user_id FROM sessions WHERE id = {credential_id}");
                assert_eq!(app.one::<i64>(&whose, vec![]).await, user, "{name}: whose session? {line}");
            }
            By::Proof(user) => {
                assert_eq!((kind, actor, credential), ("USER", &*user.to_string(), "-"), "{name}: {line}");
            }
            By::Token => {
                assert_eq!((kind, credential), ("SERVICE_TOKEN", "SERVICE_TOKEN"), "{name}: {line}");
                assert_eq!(actor, credential_id, "{name}: {line}");
            }
        }
    }
}

/// The texts in an answer that look like credentials: tokens, URLs of second factors, recovery codes.
fn secrets(answer: &Value) -> Vec<&str> {
    match answer {
        Value::String(text) => {
            let starts = ["mst_", "eyJ", "otpauth:", "whsec_"].iter().any(|start| text.starts_with(start));
            let is_code = [14, 19].contains(&text.len()) && text.split('-').all(|part| part.len() == 4);
            if starts || is_code { vec![text] } else { vec![] }
        }
        Value::Array(items) => items.iter().flat_map(secrets).collect(),
        Value::Object(fields) => fields.values().flat_map(secrets).collect(),
        _ => vec![],
    }
}

async fn organization(law: &mut Law) {
    let app = TestApp::with_mail().await;
    let all = app.populate(4).await;
    let owner = (&app.owner, By::Session(app.owner.user.unwrap()));
    let spare = Spare::make(&app, &all).await;
    let linked = "INSERT INTO channel_links (organization_id, channel_id, user_id, origin_id, target, created_at) \
                  VALUES ($1, $2, $3, '5', '5', 1)";
    app.execute(linked, vec![app.org.into(), all.channels[1].into(), app.owner.user.unwrap().into()]).await;
    for (name, given) in good_calls(&all, spare) {
        law.run(&app, owner, name, given).await;
    }
    let invited = json!({ "input": { "email": "law@example.org", "role": "VIEWER" } });
    let invited = json!({ "id": law.run(&app, owner, "inviteMember", invited).await["id"] });
    law.run(&app, owner, "resendInvitation", invited.clone()).await;
    law.run(&app, owner, "revokeInvitation", invited).await;
    law.run(&app, (&app.admin, By::Session(app.admin.user.unwrap())), "leaveOrganization", json!({})).await;
    // The same with a service token: the entry names it.
    let token = app.token(&["agent.edit", "server.create"]).await;
    law.run(&app, (&token, By::Token), "stopAgent", json!({ "id": all.agents[0] })).await;
    law.run(&app, (&token, By::Token), "createServer", json!({ "input": { "name": "by a token" } })).await;
    // A refused operation by the stranger leaves no entry of success.
    let refused = "mutation($o: Id!) { createServer(orgId: $o, input: { name: \"theirs\" }) { id } }";
    assert_eq!(app.stranger.gql(refused, json!({ "o": app.org })).await.code(), "NOT_A_MEMBER");
    let theirs = "SELECT COUNT(*) FROM audit_lines WHERE actor_id = $1 AND outcome = 'ALLOWED'";
    assert_eq!(app.one::<i64>(theirs, vec![app.stranger.user.unwrap().into()]).await, 0);
}

async fn account_of_a_channel(law: &mut Law) {
    let google = Google::open().await;
    let app = &google.app;
    let owner = (&app.owner, By::Session(app.owner.user.unwrap()));
    let begun = law.run(app, owner, "authorizeChannel", json!({ "id": google.channel })).await;
    let (code, state) = google.visit(begun["url"].as_str().unwrap()).await;
    let returned = json!({ "id": google.channel, "code": code, "state": state });
    law.run(app, owner, "completeChannelAuthorization", returned).await;
    law.run(app, owner, "disconnectChannel", json!({ "id": google.channel })).await;
}

async fn policy(law: &mut Law) {
    let app = TestApp::start().await;
    let owner = (&app.owner, By::Session(app.owner.user.unwrap()));
    let line =
        |role: &str| json!({ "input": { "role": role, "permission": "contact.view", "reason": "so" } });
    law.run(&app, owner, "allowPermission", line("VIEWER")).await;
    law.run(&app, owner, "denyPermission", line("OPERATOR")).await;
    let now = law.run(&app, owner, "resetPermission", line("OPERATOR")).await;
    let edit = json!({ "version": now["version"], "text": "", "reason": "so" });
    let now = law.run(&app, owner, "editPolicy", json!({ "input": edit })).await;
    let first: i64 =
        app.one("SELECT MIN(id) FROM policy_versions WHERE organization_id = $1", vec![app.org.into()]).await;
    let revert = json!({ "version": now["version"], "versionId": first, "reason": "so" });
    law.run(&app, owner, "revertPolicy", json!({ "input": revert })).await;
}

/// The token of the last mailed link.
async fn link(app: &TestApp) -> String {
    let mut token = String::new();
    until("a link is sent", async || {
        let found = app.mails().await.into_iter().rev().find(|mail| !mail.token.is_empty());
        token = found.map(|mail| mail.token).unwrap_or_default();
        !token.is_empty()
    })
    .await;
    token
}

const EMAIL: &str = "ann@example.org";

/// People's changes to their own accounts.
async fn account(law: &mut Law) {
    let app = TestApp::with_mail().await;
    let user = app.user(EMAIL, false).await;
    let (anyone, by) = (&app.anonymous, By::Session(user));
    let proof = (anyone, By::Proof(user));
    let password = |password: &str| json!({ "email": EMAIL, "password": password });
    let session = law.run(&app, (anyone, by), "signIn", password("correct horse")).await;
    let refresh = json!({ "refreshToken": session["refreshToken"] });
    let session = law.run(&app, (anyone, by), "refreshSession", refresh).await;
    let ann = anyone.with_bearer(session["accessToken"].as_str().unwrap());
    law.run(&app, (&ann, by), "requestEmailConfirmation", json!({})).await;
    law.run(&app, proof, "confirmEmail", json!({ "token": link(&app).await })).await;
    law.run(&app, (&ann, by), "changeName", json!({ "name": "Anna" })).await;
    law.run(&app, (&ann, by), "setPreferences", json!({ "preferences": { "theme": "dark" } })).await;
    law.run(&app, (&ann, by), "setViewerAvatar", json!({ "input": picture_input() })).await;
    let passwords = json!({ "currentPassword": "correct horse", "newPassword": "another horse" });
    law.run(&app, (&ann, by), "changePassword", passwords).await;
    let email = json!({ "email": "Anna@example.org", "password": "another horse" });
    law.run(&app, (&ann, by), "changeEmail", email).await;
    let sql = "INSERT INTO user_identities (user_id, provider, subject, email, created_at, last_used_at) \
               VALUES ($1, 'elsewhere', 'ann', 'ann@example.org', $2, $2) RETURNING id";
    let linked: i64 = app.one(sql, vec![user.into(), app.clock.now().0.into()]).await;
    law.run(&app, (&ann, by), "unlinkAccount", json!({ "id": linked })).await;
    law.run(&app, (&ann, by), "revokeOtherSessions", json!({})).await;
    let other = law.run(&app, (anyone, by), "signIn", password("another horse")).await;
    let newest: i64 = app.one("SELECT MAX(id) FROM sessions WHERE user_id = $1", vec![user.into()]).await;
    assert!(other["accessToken"].is_string());
    law.run(&app, (&ann, by), "revokeSession", json!({ "id": newest })).await;
    law.run(&app, (&ann, by), "signOut", json!({})).await;
    app.mails().await;
    law.run(&app, (anyone, by), "requestPasswordReset", json!({ "email": EMAIL })).await;
    let reset = json!({ "token": link(&app).await, "newPassword": "the third horse" });
    law.run(&app, proof, "resetPassword", reset).await;
    second_factor(law, &app, user).await;
    // A code as issued by a provider's callback (`people/oidc.rs` covers the whole flow).
    let (code, hash) = Token::generate(TokenKind::Code);
    let now = app.clock.now().0;
    let sql = "INSERT INTO sign_in_challenges (user_id, kind, token_hash, created_at, expires_at) VALUES ($1, 'CODE', $2, $3, $4)";
    let values = vec![user.into(), hash.as_bytes().to_vec().into(), now.into(), (now + 60_000).into()];
    app.execute(sql, values).await;
    law.run(&app, proof, "exchangeSignInCode", json!({ "code": code.expose_secret() })).await;
    app.mails().await;
    let invite = json!({ "input": { "email": EMAIL, "role": "VIEWER" } });
    law.run(&app, (&app.owner, By::Session(app.owner.user.unwrap())), "inviteMember", invite).await;
    let accept = json!({ "token": link(&app).await, "password": "the third horse" });
    law.run(&app, proof, "acceptInvitation", accept).await;
}

/// The first person has the next id.
async fn first_start(law: &mut Law) {
    let app = TestApp::without_people().await;
    let before = app.user(EMAIL, false).await;
    app.execute("DELETE FROM users", vec![]).await;
    let code = people::renew_first_code(&app.core).await.unwrap().expect("no user exists");
    let input = json!({
        "code": code.expose_secret(), "name": "Ann", "email": EMAIL, "password": "correct horse",
        "organizationName": "Acme",
    });
    let proof = (&app.anonymous, By::Proof(before + 1));
    law.run(&app, proof, "completeFirstStart", json!({ "input": input })).await;
}

async fn second_factor(law: &mut Law, app: &TestApp, user: i64) {
    let (anyone, by) = (&app.anonymous, By::Session(user));
    let password = json!({ "email": EMAIL, "password": "the third horse" });
    let session = law.run(app, (anyone, by), "signIn", password.clone()).await;
    let ann = anyone.with_bearer(session["accessToken"].as_str().unwrap());
    let begun = law.run(app, (&ann, by), "beginTotp", json!({ "password": "the third horse" })).await;
    let phone = Totp::from_url(begun["url"].as_str().unwrap()).unwrap();
    let code = || {
        app.clock.advance(std::time::Duration::from_secs(30));
        json!(phone.generate(u64::try_from(app.clock.now().unix_seconds()).unwrap()).to_string())
    };
    law.run(app, (&ann, by), "confirmTotp", json!({ "code": code() })).await;
    law.run(app, (&ann, by), "regenerateRecoveryCodes", json!({ "code": code() })).await;
    let ask = "mutation($e: String!, $p: SecretString!) { signIn(email: $e, password: $p) { challenge { token } } }";
    let asked = anyone.gql(ask, json!({ "e": EMAIL, "p": "the third horse" })).await.data();
    let complete = json!({ "challenge": asked["signIn"]["challenge"]["token"], "code": code() });
    law.run(app, (anyone, By::Proof(user)), "completeSignIn", complete).await;
    law.run(app, (&ann, by), "disableTotp", json!({ "password": "the third horse", "code": code() })).await;
}

#[tokio::test]
async fn every_mutation_leaves_its_entry() {
    let mut law = Law { walker: Walker::new(), done: BTreeSet::new() };
    organization(&mut law).await;
    account_of_a_channel(&mut law).await;
    policy(&mut law).await;
    account(&mut law).await;
    first_start(&mut law).await;
    let all: BTreeSet<String> = law
        .walker
        .catalogue
        .root_fields()
        .filter(|root| root.root == "Mutation")
        .map(|root| root.field.name.clone())
        .collect();
    let missing: Vec<&String> = all.difference(&law.done).collect();
    assert!(missing.is_empty(), "give these mutations a call that succeeds: {missing:?}");
    assert!(UNLOGGED.iter().chain(BY_NOBODY).all(|(name, why)| all.contains(*name) && !why.is_empty()));
}
