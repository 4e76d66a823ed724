//! Policies through the schema: asked, tried, edited, taken back; never into a lock-out, and alike on every replica.

use std::{fs, time::Duration};

use muster::{
    base::{
        ids::{OrgId, UserId},
        permission::{Permission, Role},
    },
    core::{Core, policy::Policy},
    slices::policies,
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
async fn an_owner_edits_the_policy_against_a_version_and_it_holds_at_once() {
    let (app, dir) = TestApp::with_policy_folder().await;
    let org = app.org;
    let before = in_force(&app).await;
    assert_eq!((&before["version"], &before["text"]), (&json!("none"), &Value::Null));
    let text = format!("# operators see the list\np, OPERATOR, {org}, conversation.view, allow\n");
    let edited = app.owner.edit_policy(org, "none", &text).await.data()["editPolicy"].clone();
    assert_eq!(edited["text"], text);
    assert!(allows(&app.core, org, Role::Operator, Permission::ConversationView));
    assert_eq!(fs::read_to_string(dir.path().join(format!("orgs/{org}.csv"))).unwrap(), text);
    let listed = app.operator.get(&format!("/v1/org/{org}/conversation?limit=10&offset=0")).await;
    assert_ne!(listed.status, 403, "{:#}", listed.body);
    // Two had the same text before them: the second is told.
    let stale = app.owner.edit_policy(org, "none", "").await;
    assert_eq!(stale.code(), "CONFLICT");
    assert_eq!(stale.body["errors"][0]["extensions"]["details"]["version"], edited["version"]);
    let line = audited(&app, "editPolicy").await;
    assert_eq!(line["changes"]["reason"], "because");
    assert_eq!(line["changes"]["lines"][1], format!("+p, OPERATOR, {org}, conversation.view, allow"));
    let version = edited["version"].as_str().unwrap();
    assert_eq!(app.admin.edit_policy(org, version, "").await.code(), "PERMISSION_DENIED");
    assert_eq!(app.stranger.edit_policy(org, version, "").await.code(), "NOT_A_MEMBER");
    // A blank text removes the file.
    app.owner.edit_policy(org, version, " \n").await.data();
    assert!(!dir.path().join(format!("orgs/{org}.csv")).exists());
    assert!(!allows(&app.core, org, Role::Operator, Permission::ConversationView));
}

#[tokio::test]
async fn an_edit_that_is_wrong_passes_the_ceiling_or_locks_out_is_refused_with_all_reasons() {
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
    // The shipped expectations hold in every organization.
    let wide = format!("p, VIEWER, {org}, agent.delete, allow\n");
    let refused = app.owner.edit_policy(org, "none", &wide).await;
    assert!(lines(&refused)[0].contains("expected deny of agent.delete to VIEWER"), "{:#}", refused.body);
    let unsaid = json!({ "version": "none", "text": "", "reason": " " });
    let refused = app.owner.gql(EDIT_POLICY, json!({ "o": org, "input": unsaid })).await;
    assert_eq!(refused.code(), "VALIDATION_FAILED");
    assert_eq!(in_force(&app).await["version"], "none");
    assert_eq!(app.stranger.edit_policy(org, "none", "").await.code(), "NOT_A_MEMBER");
}

#[tokio::test]
async fn an_organization_without_anybody_who_can_sign_in_and_edit_takes_no_edit() {
    let app = TestApp::start().await;
    let org = app.org;
    let sql = "UPDATE users SET disabled_at = 1 WHERE id IN \
               (SELECT user_id FROM members WHERE organization_id = $1 AND role = 'OWNER')";
    app.execute(sql, vec![org.into()]).await;
    let edit = policies::Edit {
        version: Some(policies::NO_FILE.to_owned()),
        text: format!("p, VIEWER, {org}, contact.view, allow\n"),
        reason: "because".to_owned(),
    };
    let refused = policies::edit(&app.scope(), edit).await.unwrap_err();
    assert_eq!(refused.code.as_str(), "POLICY_LOCKS_OUT");
    assert!(!allows(&app.core, org, Role::Viewer, Permission::ContactView));
    assert_eq!(app.stranger.gql(POLICY, json!({ "o": org })).await.code(), "NOT_A_MEMBER");
}

#[tokio::test]
async fn one_line_is_set_and_reset_and_the_history_takes_it_back() {
    let app = TestApp::start().await;
    let org = app.org;
    let line = |verb: &str, role: &str| {
        let document = format!(
            "mutation($o: Id!) {{ {verb}(orgId: $o, input: {{ role: {role}, permission: \"contact.view\", \
             reason: \"so\" }}) {{ version text }} }}"
        );
        let owner = app.owner.clone();
        async move { owner.gql(&document, json!({ "o": org })).await }
    };
    line("allowPermission", "VIEWER").await.data();
    assert!(allows(&app.core, org, Role::Viewer, Permission::ContactView));
    let denied = line("denyPermission", "OPERATOR").await;
    assert_eq!(denied.data()["denyPermission"]["text"].as_str().unwrap().lines().count(), 2);
    assert!(!allows(&app.core, org, Role::Viewer, Permission::ContactView));
    let beaten = line("allowPermission", "VIEWER").await;
    assert_eq!(beaten.code(), "CONFLICT", "a deny above it beats it: {:#}", beaten.body);
    // What is wrong is shown where the caller has said it.
    let locked = "mutation($o: Id!) { denyPermission(orgId: $o, input: { role: OWNER, permission: \"policy.edit\", \
                  reason: \"so\" }) { version } }";
    let locked = app.owner.gql(locked, json!({ "o": org })).await;
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
    let revert = "mutation($o: Id!, $v: Id!) { revertPolicy(orgId: $o, input: { versionId: $v, reason: \"back\" }) { text } }";
    let to = listed["data"][1]["id"].clone();
    let reverted = app.owner.gql(revert, json!({ "o": org, "v": to })).await.data();
    assert_eq!(reverted["revertPolicy"]["text"], listed["data"][1]["text"]);
    assert!(!allows(&app.core, org, Role::Viewer, Permission::ContactView));
    assert_eq!(audited(&app, "revertPolicy").await["changes"]["reverts_to"], to);
    let foreign = app.stranger.gql(revert, json!({ "o": app.other_org, "v": to })).await;
    assert_eq!(foreign.code(), "NOT_FOUND", "another organization's version");
    assert_eq!(app.stranger.gql(history, json!({ "o": org })).await.code(), "NOT_A_MEMBER");
}

#[tokio::test]
async fn every_replica_comes_to_the_same_policy_and_a_hand_edit_becomes_a_version() {
    let (app, dir) = TestApp::with_policy_folder().await;
    let (org, own) = (app.org, policy_folder());
    let (apart, none) = (app.replica(Some(own.path())).await, app.replica(None).await);
    let text = format!("# mine\np, VIEWER, {org}, contact.view, allow\n");
    app.owner.edit_policy(org, "none", &text).await.data();
    for other in [&apart, &none] {
        assert!(!allows(other, org, Role::Viewer, Permission::ContactView));
        policies::sync(other).await.unwrap();
        assert!(allows(other, org, Role::Viewer, Permission::ContactView));
        assert_eq!(policies::sync(other).await.unwrap(), 0, "nothing is left to do");
    }
    let file = format!("orgs/{org}.csv");
    assert_eq!(fs::read_to_string(own.path().join(&file)).unwrap(), text);

    // By hand, in the folder of one of them.
    let by_hand = format!("{text}p, VIEWER, {org}, skill.edit, allow\n");
    fs::write(own.path().join(&file), &by_hand).unwrap();
    apart.policy.reload().unwrap();
    for replica in [&apart, &app.core, &none] {
        policies::sync(replica).await.unwrap();
        assert!(allows(replica, org, Role::Viewer, Permission::SkillEdit));
    }
    assert_eq!(fs::read_to_string(dir.path().join(&file)).unwrap(), by_hand);
    let newest = &policies::history(&app.scope(), 5).await.unwrap()[0];
    assert_eq!((newest.author_kind.as_str(), newest.text.as_deref()), ("FILE", Some(by_hand.as_str())));
    assert_eq!(audited(&app, "policyFileEdited").await["changes"]["author"], "file");
    let stale = app.owner.edit_policy(org, &policies::version_of(Some(&text)), "").await;
    assert_eq!(stale.code(), "CONFLICT");

    // A file that is refused is no version.
    fs::write(own.path().join(&file), "nonsense\n").unwrap();
    assert!(apart.policy.reload().is_err());
    policies::sync(&apart).await.unwrap();
    assert_eq!(policies::history(&app.scope(), 9).await.unwrap().len(), 2);
    // A new folder takes what the database has, and keeps beside what it had.
    let fresh = policy_folder();
    fs::write(fresh.path().join(&file), &text).unwrap();
    let late = app.replica(Some(fresh.path())).await;
    policies::sync(&late).await.unwrap();
    assert_eq!(fs::read_to_string(fresh.path().join(&file)).unwrap(), by_hand);
    assert_eq!(fs::read_to_string(fresh.path().join(format!("orgs/.{org}.csv.replaced"))).unwrap(), text);
    // Removed by hand, removed everywhere.
    fs::remove_file(dir.path().join(&file)).unwrap();
    app.core.policy.reload().unwrap();
    policies::sync(&app.core).await.unwrap();
    policies::sync(&late).await.unwrap();
    assert!(!fresh.path().join(&file).exists());
    assert_eq!(app.stranger.gql(POLICY, json!({ "o": org })).await.code(), "NOT_A_MEMBER");
    for other in [apart, none, late] {
        other.shut_down().await;
    }
}

#[tokio::test]
async fn the_operators_files_are_remembered_and_only_the_operator_takes_them_back() {
    let (app, dir) = TestApp::with_policy_folder().await;
    policies::sync(&app.core).await.unwrap();
    let file = dir.path().join("policy.csv");
    let before = fs::read_to_string(&file).unwrap();
    fs::write(&file, before.replace("p, ADMIN, *, image.edit, allow", "p, OPERATOR, *, image.edit, allow"))
        .unwrap();
    app.core.policy.reload().unwrap();
    policies::sync(&app.core).await.unwrap();
    let history = policies::operator_history(&app.core, 9).await.unwrap();
    let of_policy: Vec<_> = history.iter().filter(|version| version.file == "policy.csv").collect();
    assert_eq!(of_policy.len(), 2);
    let (owner, of) = policies::owner_of(&app.core, of_policy[1].id).await.unwrap();
    assert_eq!((owner, &*of), (None, "policy.csv"));
    assert!(allows(&app.core, app.org, Role::Operator, Permission::ImageEdit));
    policies::revert_operators(&app.core, of_policy[1].id, "not yet").await.unwrap();
    assert!(!allows(&app.core, app.org, Role::Operator, Permission::ImageEdit));
    assert_eq!(fs::read_to_string(&file).unwrap(), before);
    // Who did it, to which lines, is in the log of the instance; what was found at the beginning, nobody did.
    let sql =
        "SELECT CAST(changes AS TEXT) FROM audit_lines WHERE organization_id IS NULL AND operation = $1";
    let edited: String = app.one(sql, vec!["policyFileEdited".into()]).await;
    assert!(edited.contains("+p, OPERATOR, *, image.edit, allow"), "{edited}");
    let reverted: String = app.one(sql, vec!["revertPolicy".into()]).await;
    assert!(reverted.contains("not yet") && reverted.contains("+p, ADMIN, *, image.edit"), "{reverted}");
    let sql = "SELECT COUNT(*) FROM audit_lines WHERE organization_id IS NULL AND target_kind = 'policy'";
    assert_eq!(app.one::<i64>(sql, vec![]).await, 2);
    let revert = "mutation($o: Id!, $v: Id!) { revertPolicy(orgId: $o, input: { versionId: $v, reason: \"me\" }) { text } }";
    let tried = json!({ "o": app.org, "v": of_policy[0].id });
    assert_eq!(app.owner.gql(revert, tried.clone()).await.code(), "NOT_FOUND");
    assert_eq!(app.stranger.gql(revert, tried).await.code(), "NOT_A_MEMBER");
}

#[tokio::test]
async fn edits_at_the_same_time_take_turns() {
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
    assert_eq!(app.stranger.edit_policy(org, "none", "").await.code(), "NOT_A_MEMBER");
}

#[tokio::test]
async fn a_proposal_says_what_an_edit_would_come_to_and_changes_nothing() {
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
    assert_eq!(app.viewer.gql(propose, json!({ "o": org, "t": "" })).await.code(), "PERMISSION_DENIED");
    assert_eq!(app.stranger.gql(propose, json!({ "o": org, "t": "" })).await.code(), "NOT_A_MEMBER");
}

#[tokio::test]
async fn who_may_read_the_policy_is_told_which_line_refuses() {
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
    // A refusal names the line to an ADMIN, and to nobody who may not read the policy.
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
    assert_eq!(seen[1]["reason"], "VIEWER may not agent.edit in this organization.");
    assert_eq!(app.stranger.gql(can, json!({ "o": org })).await.code(), "NOT_A_MEMBER");
    // On the records themselves: what about them the caller may do.
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
async fn a_candidate_is_tried_on_what_was_really_called() {
    let app = TestApp::start().await;
    let org = app.org;
    let list = format!("/v1/org/{org}/agent?page=1&limit=10");
    for _ in 0..3 {
        assert_eq!(app.viewer.get(&list).await.status, 200);
    }
    assert_eq!(app.viewer.post(&format!("/v1/org/{org}/agent"), json!({})).await.status, 403);
    let token = app.token(&["agent.view"]).await;
    assert_eq!(token.get(&list).await.status, 200);
    muster::core::access::decisions::flush(&app.core).await.unwrap();
    assert_eq!(app.viewer.get(&list).await.status, 200);
    muster::core::access::decisions::flush(&app.core).await.unwrap();
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
    // What is older than it is kept is forgotten.
    app.clock.advance(Duration::from_secs(13 * 86_400));
    assert_eq!(muster::core::access::decisions::prune(&app.core).await.unwrap(), 0);
    app.clock.advance(Duration::from_secs(3 * 86_400));
    assert!(muster::core::access::decisions::prune(&app.core).await.unwrap() > 0);
    assert_eq!(app.stranger.gql(simulate, json!({ "o": org, "t": "" })).await.code(), "NOT_A_MEMBER");
}

#[tokio::test]
async fn breaking_the_glass_gives_somebody_the_policy_back() {
    let (app, dir) = TestApp::with_policy_folder().await;
    let org = app.org;
    app.owner.edit_policy(org, "none", &format!("p, VIEWER, {org}, contact.view, allow\n")).await.data();
    let user = UserId(member(&app, "VIEWER").await);
    let broken = policies::break_glass(&app.core, OrgId(org), user, "locked out", policies::Aside::Always)
        .await
        .unwrap();
    assert_eq!((broken.was, broken.file_set_aside), (Some(Role::Viewer), true));
    let file = dir.path().join(format!("orgs/{org}.csv"));
    assert!(!file.exists());
    let seen = app.viewer.gql(POLICY, json!({ "o": org })).await.data();
    assert_eq!(seen["policy"]["version"], "none");
    let line = audited(&app, "breakGlass").await;
    assert_eq!((&line["actorKind"], &line["changes"]["reason"]), (&json!("SYSTEM"), &json!("locked out")));
    // A file that keeps the service from starting is put aside before it starts.
    fs::write(&file, "nonsense\n").unwrap();
    assert!(Policy::load(dir.path()).is_err());
    assert!(policies::set_aside(dir.path(), OrgId(org + 1)).unwrap().is_none());
    assert!(policies::set_aside(dir.path(), OrgId(org)).unwrap().is_some());
    assert!(Policy::load(dir.path()).is_ok());
    assert_eq!(app.stranger.gql(POLICY, json!({ "o": org })).await.code(), "NOT_A_MEMBER");
}

#[tokio::test]
async fn nobody_reads_of_another_organization_in_the_policy() {
    let (app, dir) = TestApp::with_policy_folder().await;
    let (org, other) = (app.org, app.other_org);
    let expectations = dir.path().join("expectations.csv");
    let text = fs::read_to_string(&expectations).unwrap();
    let mine = format!("OWNER, {org}, agent.view, allow\n");
    fs::write(&expectations, format!("{text}{mine}OWNER, {other}, agent.view, allow\n")).unwrap();
    app.core.policy.reload().unwrap();
    let files = "query($o: Id!) { policy(orgId: $o) { files { file text } problems { file reason } } }";
    let seen = app.owner.gql(files, json!({ "o": org })).await;
    assert!(seen.text.contains(&format!("OWNER, {org}, agent.view")), "{}", seen.text);
    assert!(!seen.text.contains(&format!("OWNER, {other}, agent.view")), "{}", seen.text);
    fs::write(dir.path().join(format!("orgs/{other}.csv")), "theirs\n").unwrap();
    assert!(app.core.policy.reload().is_err());
    let seen = app.owner.gql(files, json!({ "o": org })).await;
    assert!(seen.text.contains("has problems"), "{}", seen.text);
    let refused = app.owner.edit_policy(org, "none", "").await;
    assert_eq!(refused.code(), "CONFLICT");
    for answer in [seen, refused] {
        assert!(
            !answer.text.contains("theirs") && !answer.text.contains(&format!("orgs/{other}")),
            "{}",
            answer.text
        );
    }
    assert_eq!(app.stranger.gql(files, json!({ "o": org })).await.code(), "NOT_A_MEMBER");
}
