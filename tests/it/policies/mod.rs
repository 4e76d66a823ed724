//! Policies through the schema: explain, simulate, edit, revert; never into a lockout, and the same on every
//! replica.

pub mod files;
mod owners;
mod permits;
mod replicas;

use std::{fs, time::Duration};

use muster::{
    base::{
        ids::{OrgId, UserId},
        permission::{Permission, Role},
    },
    core::{
        Core,
        access::{decisions, org_policies},
    },
    domain::policies,
};
use serde_json::{Value, json};

use crate::harness::{Answer, EDIT_POLICY, TestApp, policy_folder};

const POLICY: &str = "query($o: Id!) { policy(orgId: $o) { version text problems { reason } } }";
const AUDITED: &str = "query($o: Id!, $f: String!) { auditLog(orgId: $o, page: 1, limit: 1, operation: $f) \
                       { data { actorKind actorName changes } } }";

async fn in_force(app: &TestApp) -> Value {
    app.owner.gql(POLICY, json!({ "o": app.org })).await.data()["policy"].clone()
}

async fn audited(app: &TestApp, operation: &str) -> Value {
    app.seal().await;
    let answer = app.owner.gql(AUDITED, json!({ "o": app.org, "f": operation })).await;
    answer.data()["auditLog"]["data"][0].clone()
}

fn allows(app: &Core, org: i64, role: Role, permission: Permission) -> bool {
    app.policy.allows(OrgId(org), role, permission)
}

#[tokio::test]
async fn an_owners_policy_edit_holds_at_once() {
    let (app, dir) = TestApp::with_policy_folder().await;
    let org = app.org;
    let before = in_force(&app).await;
    assert_eq!((&before["version"], &before["text"]), (&json!("none"), &Value::Null));
    let text = format!("# operators see the list\np, OPERATOR, {org}, conversation.view, allow\n");
    let edited = app.owner.edit_policy(org, "none", &text).await.data()["editPolicy"].clone();
    assert_eq!(edited["text"], text);
    assert!(allows(&app.core, org, Role::Operator, Permission::ConversationView));
    assert!(!dir.path().join(format!("orgs/{org}.csv")).exists(), "nothing is written to the folder");
    let listed = app.operator.get(&format!("/v1/org/{org}/conversation?limit=10&offset=0")).await;
    assert_ne!(listed.status, 403, "{:#}", listed.body);
    // Two editors saw the same text: the second one is refused.
    let stale = app.owner.edit_policy(org, "none", "").await;
    assert_eq!(stale.code(), "CONFLICT");
    assert_eq!(stale.body["errors"][0]["extensions"]["details"]["version"], edited["version"]);
    let line = audited(&app, "editPolicy").await;
    assert_eq!(line["changes"]["reason"], "because");
    assert_eq!(line["changes"]["lines"][1], format!("+p, OPERATOR, {org}, conversation.view, allow"));
    let version = edited["version"].as_str().unwrap();
    // A blank text means no rules.
    let blank = app.owner.edit_policy(org, version, " \n").await.data()["editPolicy"].clone();
    assert_eq!((&blank["version"], &blank["text"]), (&json!("none"), &Value::Null));
    assert!(!allows(&app.core, org, Role::Operator, Permission::ConversationView));
}

#[tokio::test]
async fn a_refused_policy_edit_lists_all_reasons() {
    let app = TestApp::start().await;
    let org = app.org;
    let lines = |answer: &Answer| -> Vec<String> {
        let errors = answer.body["errors"][0]["extensions"]["errors"].as_array().unwrap().iter();
        errors.map(|error| error["detail"].as_str().unwrap().to_owned()).collect()
    };
    let text = format!("p, VIEWER, {org}, agent.edti, allow\np, VIEWER, {org}, member.edit, allow\n");
    let refused = app.owner.edit_policy(org, "none", &text).await;
    assert_eq!(refused.code(), "VALIDATION_FAILED");
    let reasons = lines(&refused);
    assert_eq!(reasons.len(), 2, "{reasons:?}");
    assert!(reasons[0].starts_with(&format!("orgs/{org}.csv:1: unknown permission")), "{reasons:?}");
    assert!(
        reasons[1].starts_with(&format!("orgs/{org}.csv:2: VIEWER can't be given member.edit")),
        "{reasons:?}"
    );
    assert_eq!(refused.body["errors"][0]["extensions"]["details"]["problems"][0]["line"], 1);
    for kept in ["policy.edit", "policy.view", "member.edit", "member.view", "organization.view"] {
        let refused = app.owner.edit_policy(org, "none", &format!("p, OWNER, {org}, {kept}, deny\n")).await;
        assert_eq!(refused.code(), "VALIDATION_FAILED", "{kept}: {:#}", refused.body);
    }
    // The shipped expectations apply to every organization.
    let wide = format!("p, VIEWER, {org}, agent.delete, allow\n");
    let refused = app.owner.edit_policy(org, "none", &wide).await;
    assert!(lines(&refused)[0].contains("expected deny of agent.delete to VIEWER"), "{:#}", refused.body);
    let unsaid = json!({ "version": "none", "text": "", "reason": " " });
    let refused = app.owner.gql(EDIT_POLICY, json!({ "o": org, "input": unsaid })).await;
    assert_eq!(refused.code(), "VALIDATION_FAILED");
    assert_eq!(in_force(&app).await["version"], "none");
}

#[tokio::test]
async fn an_edit_that_leaves_no_editor_is_refused() {
    let app = TestApp::start().await;
    let org = app.org;
    let sql = "UPDATE users SET disabled_at = 1 WHERE id IN \
               (SELECT user_id FROM members WHERE organization_id = $1 AND role = 'OWNER')";
    app.execute(sql, vec![org.into()]).await;
    let edit = policies::Edit {
        version: Some(policies::NONE.to_owned()),
        text: format!("p, VIEWER, {org}, contact.view, allow\n"),
        reason: "because".to_owned(),
    };
    let refused = policies::edit(&app.scope(), edit).await.unwrap_err();
    assert_eq!(refused.code.as_str(), "POLICY_LOCKS_OUT");
    assert!(!allows(&app.core, org, Role::Viewer, Permission::ContactView));
}

#[tokio::test]
async fn one_line_is_set_and_reset_and_reverted() {
    let app = TestApp::start().await;
    let org = app.org;
    let line = |verb, role| app.owner.set_permission(org, verb, role, "contact.view");
    line("allowPermission", "VIEWER").await.data();
    assert!(allows(&app.core, org, Role::Viewer, Permission::ContactView));
    let denied = line("denyPermission", "OPERATOR").await;
    assert_eq!(denied.data()["denyPermission"]["text"].as_str().unwrap().lines().count(), 2);
    assert!(!allows(&app.core, org, Role::Viewer, Permission::ContactView));
    let beaten = line("allowPermission", "VIEWER").await;
    assert_eq!(beaten.code(), "CONFLICT", "a deny above overrules it: {:#}", beaten.body);
    // Errors point to the caller's input.
    let locked = app.owner.set_permission(org, "denyPermission", "OWNER", "policy.edit").await;
    assert_eq!(locked.code(), "VALIDATION_FAILED");
    assert_eq!(locked.body["errors"][0]["extensions"]["errors"][0]["pointer"], "/input/permission");
    line("resetPermission", "OPERATOR").await.data();
    assert!(allows(&app.core, org, Role::Viewer, Permission::ContactView));

    let history = "query($o: Id!) { policyHistory(orgId: $o, page: 1, limit: 10) \
                   { total data { id text reason authorKind } } }";
    let listed = app.owner.gql(history, json!({ "o": org })).await.data()["policyHistory"].clone();
    assert_eq!(listed["total"], 3);
    assert_eq!(
        (&listed["data"][0]["reason"], &listed["data"][0]["authorKind"]),
        (&json!("so"), &json!("USER"))
    );
    let revert = "mutation($o: Id!, $seen: String!, $v: Id!) { \
                  revertPolicy(orgId: $o, input: { version: $seen, versionId: $v, reason: \"back\" }) { text } }";
    let to = listed["data"][1]["id"].clone();
    let seen = in_force(&app).await["version"].clone();
    let reverts = async || app.owner.gql(revert, json!({ "o": org, "seen": seen, "v": to })).await;
    let reverted = reverts().await.data();
    assert_eq!(reverts().await.code(), "CONFLICT", "another member was faster");
    assert_eq!(reverted["revertPolicy"]["text"], listed["data"][1]["text"]);
    assert!(!allows(&app.core, org, Role::Viewer, Permission::ContactView));
    assert_eq!(audited(&app, "revertPolicy").await["changes"]["reverts_to"], to);
}

#[tokio::test]
async fn every_replica_arrives_at_the_same_rules() {
    let (app, _dir) = TestApp::with_policy_folder().await;
    let (org, own) = (app.org, policy_folder());
    let (apart, none) = (app.replica(Some(own.path())).await, app.replica(None).await);
    let text = format!("# mine\np, VIEWER, {org}, contact.view, allow\n");
    app.owner.edit_policy(org, "none", &text).await.data();
    for other in [&apart, &none] {
        assert!(!allows(other, org, Role::Viewer, Permission::ContactView));
        org_policies::follow(other).await.unwrap();
        assert!(allows(other, org, Role::Viewer, Permission::ContactView));
        assert_eq!(org_policies::follow(other).await.unwrap(), 0, "there is nothing left to do");
    }
    // A replica that starts later knows the version before it serves.
    let late = app.replica(None).await;
    assert!(allows(&late, org, Role::Viewer, Permission::ContactView));
    // A version that started earlier and committed later than another isn't overlooked.
    let insert = "INSERT INTO policy_versions (id, organization_id, text, version, author_kind, reason, at) \
                  VALUES ($1, $2, $3, 'x', 'OPERATOR', 'so', 0)";
    for (id, org) in [(1_000_001, app.org), (1_000_000, app.other_org)] {
        let text = format!("p, VIEWER, {org}, skill.edit, allow\n");
        app.execute(insert, vec![id.into(), org.into(), text.into()]).await;
        org_policies::follow(&late).await.unwrap();
        assert!(allows(&late, org, Role::Viewer, Permission::SkillEdit), "{id}");
    }
    for other in [apart, none, late] {
        other.shut_down().await;
    }
}

#[tokio::test]
async fn concurrent_edits_take_turns() {
    let app = TestApp::start().await;
    let org = app.org;
    let permissions = ["contact.view", "skill.edit", "mcp.edit", "skill.create"];
    let texts = permissions.map(|permission| format!("p, VIEWER, {org}, {permission}, allow\n"));
    let tried =
        futures::future::join_all(texts.iter().map(|text| app.owner.edit_policy(org, "none", text))).await;
    let done: Vec<_> = tried.iter().filter(|answer| answer.body["errors"].is_null()).collect();
    assert_eq!(done.len(), 1, "one of them was first: {:#}", tried[0].body);
    assert_eq!(done[0].body["data"]["editPolicy"]["version"], in_force(&app).await["version"]);
    assert_eq!(policies::history(&app.scope(), 9).await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_proposal_shows_an_edits_effect_and_changes_nothing() {
    let app = TestApp::start().await;
    let org = app.org;
    let propose = "query($o: Id!, $t: String!) { proposePolicy(orgId: $o, text: $t) { ok lines version \
                   problems { file line reason } \
                   changes { subject permission allowed decidedBy { file line text } } } }";
    let ask = |text: String| {
        let admin = app.admin.clone();
        async move { admin.gql(propose, json!({ "o": org, "t": text })).await.data()["proposePolicy"].clone() }
    };
    let good = ask(format!("p, VIEWER, {org}, contact.view, allow\n")).await;
    assert_eq!((&good["ok"], &good["version"]), (&json!(true), &json!("none")));
    let line = format!("p, VIEWER, {org}, contact.view, allow");
    let decided_by = json!({ "file": format!("orgs/{org}.csv"), "line": 1, "text": line });
    let change = json!({ "subject": "VIEWER", "permission": "contact.view", "allowed": true, "decidedBy": decided_by });
    assert_eq!((&good["changes"], &good["lines"]), (&json!([change]), &json!([format!("+{line}")])));
    let bad = ask("p, VIEWER, 1\n".to_owned()).await;
    assert_eq!((&bad["ok"], &bad["problems"][0]["line"]), (&json!(false), &json!(1)));
    assert_eq!(in_force(&app).await["version"], "none");
}

#[tokio::test]
async fn policy_readers_learn_which_line_refuses() {
    let app = TestApp::start().await;
    let org = app.org;
    let explain = "query($o: Id!, $r: Role, $u: Id) { \
                   explainPermission(orgId: $o, permission: \"agent.delete\", role: $r, userId: $u) \
                   { allowed subject inheritance decidedBy { file text } remedy { change file text withinCeiling } } }";
    let why = |of: Value| {
        let (admin, mut variables) = (app.admin.clone(), of);
        variables["o"] = org.into();
        async move { admin.gql(explain, variables).await.data()["explainPermission"].clone() }
    };
    let operator = why(json!({ "r": "OPERATOR" })).await;
    assert_eq!((&operator["allowed"], &operator["decidedBy"]), (&json!(false), &Value::Null));
    let text = format!("p, OPERATOR, {org}, agent.delete, allow");
    let file = format!("orgs/{org}.csv");
    let remedy = json!({ "change": "ADD", "file": file, "text": text, "withinCeiling": true });
    assert_eq!(operator["remedy"], remedy);
    let owner = why(json!({ "r": "OWNER" })).await;
    assert_eq!((&owner["allowed"], &owner["inheritance"]), (&json!(true), &json!(["OWNER", "ADMIN"])));
    assert_eq!(why(json!({ "u": member(&app, "VIEWER").await })).await["subject"], "VIEWER");
    assert_eq!(why(json!({})).await["subject"], "service_token");
    let both = json!({ "o": org, "r": "VIEWER", "u": member(&app, "VIEWER").await });
    let both = app.admin.gql(explain, both).await;
    assert_eq!(both.code(), "VALIDATION_FAILED");
    assert_eq!(both.body["errors"][0]["extensions"]["errors"][0]["pointer"], "/userId");
    // A refusal names the line to an ADMIN, but not to callers who may not read the policy.
    let details = |answer: Answer| answer.body["errors"][0]["extensions"]["details"].clone();
    let told = details(app.admin.edit_policy(org, "none", "").await);
    assert_eq!(
        (&told["permission"], &told["decided_by"]),
        (&json!("policy.edit"), &json!("no line allows it"))
    );
    let would = told["would_allow"].as_str().unwrap();
    assert!(would.contains(&format!("p, ADMIN, {org}, policy.edit, allow")), "{told}");
    let untold = details(app.viewer.edit_policy(org, "none", "").await);
    assert_eq!(untold, json!({ "permission": "policy.edit" }));
    let can = "query($o: Id!) { viewerCan(orgId: $o, permissions: [\"agent.view\", \"agent.edit\"]) \
               { permission allowed reason decidedBy { file } } }";
    let seen = app.viewer.gql(can, json!({ "o": org })).await.data()["viewerCan"].clone();
    assert_eq!((&seen[0]["allowed"], &seen[1]["allowed"]), (&json!(true), &json!(false)));
    assert_eq!(seen[1]["decidedBy"], Value::Null);
    assert_eq!(seen[1]["reason"], "Viewers may not do this: it needs the permission agent.edit.");
    // On the records themselves: the caller's permissions on them.
    let agent = app.agent().await;
    let record = "query($o: Id!, $a: Id!) { agent(orgId: $o, id: $a) { viewerCan } organization(orgId: $o) { viewerCan } }";
    let seen = app.viewer.gql(record, json!({ "o": org, "a": agent })).await.data();
    assert_eq!(seen["agent"]["viewerCan"], json!(["agent.view", "agent.output.view"]));
    assert_eq!(seen["organization"]["viewerCan"], json!(["organization.view", "member.view"]));
}

async fn member(app: &TestApp, role: &str) -> i64 {
    let sql = "SELECT user_id FROM members WHERE organization_id = $1 AND role = $2 ORDER BY user_id LIMIT 1";
    app.one(sql, vec![app.org.into(), role.into()]).await
}

#[tokio::test]
async fn a_candidate_is_tried_on_real_calls() {
    let app = TestApp::start().await;
    let org = app.org;
    let list = format!("/v1/org/{org}/agent?page=1&limit=10");
    for _ in 0..3 {
        assert_eq!(app.viewer.get(&list).await.status, 200);
    }
    assert_eq!(app.viewer.post(&format!("/v1/org/{org}/agent"), json!({})).await.status, 403);
    let token = app.token(&["agent.view"]).await;
    assert_eq!(token.get(&list).await.status, 200);
    decisions::flush(&app.core).await.unwrap();
    assert_eq!(app.viewer.get(&list).await.status, 200);
    decisions::flush(&app.core).await.unwrap();
    let simulate = "query($o: Id!, $t: String!) { simulatePolicy(orgId: $o, text: $t, days: 2) { calls flipped \
                    flips { subject operation permission allowed count } unusedLines { line } } }";
    let text = format!(
        "p, VIEWER, {org}, agent.view, deny\np, VIEWER, {org}, agent.create, allow\n\
         p, VIEWER, {org}, mcp.edit, allow\n"
    );
    let found =
        app.admin.gql(simulate, json!({ "o": org, "t": text })).await.data()["simulatePolicy"].clone();
    let flip = |operation: &str, permission: &str, allowed: bool, count: i64| {
        json!({
            "subject": "VIEWER", "operation": operation, "permission": permission,
            "allowed": allowed, "count": count,
        })
    };
    let flips = [flip("agents", "agent.view", false, 4), flip("createAgent", "agent.create", true, 1)];
    assert_eq!(found["flips"], json!(flips));
    assert_eq!((&found["flipped"], &found["calls"]), (&json!(5), &json!(6)));
    assert_eq!(found["unusedLines"], json!([{ "line": 3 }]));
    // In force, it changes nothing, however the calls ended before.
    app.owner.edit_policy(org, "none", &text).await.data();
    let again = app.admin.gql(simulate, json!({ "o": org, "t": text })).await.data();
    assert_eq!(again["simulatePolicy"]["flipped"], 0);
    // Calls older than the retention are forgotten.
    app.clock.advance(Duration::from_secs(13 * 86_400));
    assert_eq!(decisions::prune(&app.core).await.unwrap(), 0);
    app.clock.advance(Duration::from_secs(3 * 86_400));
    assert!(decisions::prune(&app.core).await.unwrap() > 0);
}

#[tokio::test]
async fn breaking_the_glass_restores_access_to_the_policy() {
    let app = TestApp::start().await;
    let org = app.org;
    app.owner.edit_policy(org, "none", &format!("p, VIEWER, {org}, contact.view, allow\n")).await.data();
    let user = UserId(member(&app, "VIEWER").await);
    let broken = policies::break_glass(&app.core, OrgId(org), user, "locked out", true).await.unwrap();
    assert_eq!((broken.was, broken.rules_dropped), (Some(Role::Viewer), true));
    org_policies::follow(&app.core).await.unwrap();
    assert_eq!(app.viewer.gql(POLICY, json!({ "o": org })).await.data()["policy"]["version"], "none");
    let line = audited(&app, "breakGlass").await;
    assert_eq!((&line["actorKind"], &line["changes"]["reason"]), (&json!("SYSTEM"), &json!("locked out")));
    // The rules stay unless they are the problem.
    app.owner.edit_policy(org, "none", &format!("p, VIEWER, {org}, skill.edit, allow\n")).await.data();
    let broken = policies::break_glass(&app.core, OrgId(org), user, "again", false).await.unwrap();
    assert_eq!((broken.was, broken.rules_dropped), (Some(Role::Owner), false));
    assert_ne!(in_force(&app).await["version"], "none");
}

#[tokio::test]
async fn breaking_the_glass_is_atomic() {
    let app = TestApp::start().await;
    let user = member(&app, "VIEWER").await;
    let text = format!("p, VIEWER, {}, contact.view, allow\n", app.org);
    app.owner.edit_policy(app.org, "none", &text).await.data();
    // The second step fails: the organization can't get another version.
    app.execute("CREATE UNIQUE INDEX one_version ON policy_versions (organization_id)", vec![]).await;
    let broken = policies::break_glass(&app.core, OrgId(app.org), UserId(user), "locked out", true).await;
    assert!(broken.is_err());
    let sql = "SELECT role FROM members WHERE organization_id = $1 AND user_id = $2";
    assert_eq!(app.one::<String>(sql, vec![app.org.into(), user.into()]).await, "VIEWER");
}

#[tokio::test]
async fn the_policy_reveals_nothing_about_other_organizations() {
    let (app, dir) = TestApp::with_policy_folder().await;
    let (org, other) = (app.org, app.other_org);
    let expectations = dir.path().join("expectations.csv");
    let text = fs::read_to_string(&expectations).unwrap();
    let mine = format!("OWNER, {org}, agent.view, allow\n");
    let comments = "# Their contract 4711:\n\n# Since May:\n";
    let others = format!("{comments}OWNER, {other}, agent.view, allow\n# Their end.\n");
    fs::write(&expectations, format!("{text}# Our contract:\n{mine}{others}")).unwrap();
    app.core.policy.reload().unwrap();
    let files = "query($o: Id!) { policy(orgId: $o) { files { file text } problems { file reason } } }";
    let seen = app.owner.gql(files, json!({ "o": org })).await;
    assert!(seen.text.contains(&format!("OWNER, {org}, agent.view")), "{}", seen.text);
    assert!(!seen.text.contains(&format!("OWNER, {other}, agent.view")), "{}", seen.text);
    assert!(seen.text.contains("# Our contract:") && seen.text.contains("# Roles inherit"), "{}", seen.text);
    for theirs in ["Their contract", "Since May", "Their end"] {
        assert!(!seen.text.contains(theirs), "{}", seen.text);
    }
    fs::write(dir.path().join(format!("orgs/{other}.csv")), "theirs\n").unwrap();
    assert!(app.core.policy.reload().is_err());
    let seen = app.owner.gql(files, json!({ "o": org })).await;
    let nothing = seen.body["data"]["policy"]["problems"].clone();
    assert_eq!(nothing, json!([]), "it concerns another organization");
    // It doesn't keep the owner from editing their own rules either.
    let line = format!("p, VIEWER, {org}, contact.view, allow\n");
    let edited = app.owner.edit_policy(org, "none", &line).await;
    assert_eq!(edited.body["data"]["editPolicy"]["text"], line);
    assert!(allows(&app.core, org, Role::Viewer, Permission::ContactView));
    // Everyone learns that the operator's files have problems, but not which ones.
    fs::write(dir.path().join("policy.csv"), format!("p, VIEWER, {other}, theirs, allow\n")).unwrap();
    assert!(app.core.policy.reload().is_err());
    let refused = app.owner.gql(files, json!({ "o": org })).await;
    assert!(refused.text.contains("the operator's files have problems"), "{}", refused.text);
    for answer in [seen, edited, refused] {
        assert!(
            !answer.text.contains("theirs") && !answer.text.contains(&format!("orgs/{other}")),
            "{}",
            answer.text
        );
    }
}
