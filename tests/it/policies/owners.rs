//! The source of an organization's rules: its file, if the policy folder has one, and otherwise the database. The
//! folder is the operator's, and the service never writes to it.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
    time::Duration,
};

use muster::{
    base::{
        ids::OrgId,
        permission::{Permission, Role},
    },
    core::{
        access::{Scope, org_policies},
        replicas,
    },
    domain::policies,
    jobs,
};
use serde_json::{Value, json};

use crate::harness::{Answer, TestApp, muster, policy_folder, sources};

fn line(org: i64, permission: &str) -> String {
    format!("p, VIEWER, {org}, {permission}, allow\n")
}

fn allows(app: &TestApp, org: i64, permission: Permission) -> bool {
    app.core.policy.allows(OrgId(org), Role::Viewer, permission)
}

fn code(answer: &Answer) -> Option<&str> {
    answer.body["errors"][0]["extensions"]["code"].as_str()
}

/// Every policy mutation in the schema.
async fn every_edit(app: &TestApp, version: i64) -> Vec<Answer> {
    let org = app.org;
    let mut answers = vec![app.owner.edit_policy(org, "none", &line(org, "mcp.edit")).await];
    for verb in ["allowPermission", "denyPermission", "resetPermission"] {
        answers.push(app.owner.set_permission(org, verb, "VIEWER", "contact.view").await);
    }
    let revert = "mutation($o: Id!, $v: Id!) { revertPolicy(orgId: $o, input: { version: \"none\", versionId: $v, reason: \"so\" }) { text } }";
    answers.push(app.owner.gql(revert, json!({ "o": org, "v": version })).await);
    answers
}

#[tokio::test]
async fn rules_in_a_file_can_only_be_edited_by_the_operator() {
    let (app, dir) = TestApp::with_policy_folder().await;
    let (org, file) = (app.org, dir.path().join(format!("orgs/{}.csv", app.org)));
    app.owner.edit_policy(org, "none", &line(org, "contact.view")).await.data();
    let stored = policies::history(&app.scope(), 9).await.unwrap();
    // The folder hasn't been read since the file was saved.
    fs::write(&file, line(org, "skill.edit")).unwrap();
    for refused in every_edit(&app, stored[0].id.0).await {
        assert_eq!(refused.code(), "POLICY_OWNED_BY_FILE", "{}", refused.text);
        let error = &refused.body["errors"][0];
        assert_eq!(error["extensions"]["status"], 409);
        assert_eq!(error["extensions"]["details"]["file"], format!("orgs/{org}.csv"));
        let said = error["message"].as_str().unwrap();
        assert!(said.contains(&format!("orgs/{org}.csv")), "what: {said}");
        assert!(
            said.contains("muster policy publish") && said.contains("deletes the file"),
            "what now: {said}"
        );
        assert!(
            !refused.text.contains(dir.path().to_str().unwrap()),
            "the folder's location is not revealed"
        );
    }
    assert_eq!(policies::history(&app.scope(), 9).await.unwrap().len(), 1, "no version");
    assert!(allows(&app, org, Permission::SkillEdit) && !allows(&app, org, Permission::ContactView));
    let shown = "query($o: Id!) { policy(orgId: $o) { text files { file editable } } \
                 policyHistory(orgId: $o, page: 1, limit: 9) { total data { text } } }";
    let shown = app.owner.gql(shown, json!({ "o": org })).await.data();
    assert_eq!(shown["policy"]["text"], line(org, "skill.edit"));
    assert_eq!(shown["policy"]["files"][0], json!({ "file": format!("orgs/{org}.csv"), "editable": false }));
    assert_eq!(shown["policyHistory"]["data"], json!([{ "text": line(org, "contact.view") }]));
    // Simulating changes nothing.
    let tried = "query($o: Id!, $t: String!) { proposePolicy(orgId: $o, text: $t) { ok lines } \
                 simulatePolicy(orgId: $o, text: $t, days: 1) { calls } }";
    let tried = app.owner.gql(tried, json!({ "o": org, "t": line(org, "mcp.edit") })).await.data();
    assert_eq!(tried["proposePolicy"]["ok"], true);
    assert_eq!(tried["proposePolicy"]["lines"][0], format!("-{}", line(org, "skill.edit").trim()));
    // The other organization controls its own rules; without the file, so does this one.
    let other = app.stranger.edit_policy(app.other_org, "none", &line(app.other_org, "contact.view")).await;
    other.data();
    fs::remove_file(&file).unwrap();
    app.core.policy.reload().unwrap();
    assert!(allows(&app, org, Permission::ContactView) && !allows(&app, org, Permission::SkillEdit));
    app.owner.edit_policy(org, &stored[0].version, &line(org, "mcp.edit")).await.data();
    assert!(allows(&app, org, Permission::McpEdit));
}

#[tokio::test]
async fn a_bad_file_still_owns_the_rules_and_the_last_good_ones_hold() {
    let (app, dir) = TestApp::with_policy_folder().await;
    let org = app.org;
    app.owner.edit_policy(org, "none", &line(org, "contact.view")).await.data();
    fs::write(dir.path().join(format!("orgs/{org}.csv")), "nonsense\n").unwrap();
    let refused = app.owner.edit_policy(org, "none", "").await;
    assert_eq!(refused.code(), "POLICY_OWNED_BY_FILE");
    assert!(allows(&app, org, Permission::ContactView));
    let problems = "query($o: Id!) { policy(orgId: $o) { problems { file line } } }";
    let problems = app.owner.gql(problems, json!({ "o": org })).await.data()["policy"]["problems"].clone();
    assert_eq!(problems, json!([{ "file": format!("orgs/{org}.csv"), "line": 1 }]));
    assert_eq!(app.anonymous.get("/health").await.body["policy"]["problems"], 1);
}

#[tokio::test]
async fn only_denials_hold_of_no_longer_permitted_rules() {
    let (app, dir) = TestApp::with_policy_folder().await;
    let org = app.org;
    let text = format!("{}p, OPERATOR, {org}, agent.create, deny\n", line(org, "contact.view"));
    let version = app.owner.edit_policy(org, "none", &text).await.data()["editPolicy"]["version"].clone();
    app.stranger.edit_policy(app.other_org, "none", &line(app.other_org, "skill.edit")).await.data();
    let policy = dir.path().join("policy.csv");
    let ceiling = format!("{}p, VIEWER, *, contact.view, deny\n", fs::read_to_string(&policy).unwrap());
    fs::write(&policy, ceiling).unwrap();
    assert!(app.core.policy.reload().is_err());
    assert!(!allows(&app, org, Permission::ContactView));
    assert!(!app.core.policy.allows(OrgId(org), Role::Operator, Permission::AgentCreate));
    assert!(allows(&app, app.other_org, Permission::SkillEdit), "the others have their rules");
    let shown = "query($o: Id!) { policy(orgId: $o) { version text problems { file line reason } } }";
    let shown = app.owner.gql(shown, json!({ "o": org })).await.data()["policy"].clone();
    assert_eq!((&shown["version"], &shown["text"]), (&version, &json!(text)));
    assert_eq!((&shown["problems"][0]["line"], shown["problems"].as_array().unwrap().len()), (&json!(1), 1));
    let found = finding(&app, dir.path(), "policy versions").await;
    assert_eq!(found["level"], "bad", "{found:#}");
    assert!(found["found"].as_str().unwrap().starts_with(&format!("orgs/{org}.csv:1: VIEWER")), "{found:#}");
    // Once the file is good again, it is applied.
    let mended = format!("p, OPERATOR, {org}, agent.create, deny\n");
    app.owner.edit_policy(org, version.as_str().unwrap(), &mended).await.data();
    assert!(app.core.policy.status().problems.is_empty());
}

#[tokio::test]
async fn an_organization_expects_results_but_the_operator_decides() {
    let (app, dir) = TestApp::with_policy_folder().await;
    let org = app.org;
    let rules = format!("{}e, OPERATOR, contact.view, allow\n", line(org, "skill.edit"));
    let failing = format!("{rules}e, VIEWER, skill.edit, deny\n");
    let propose = "query($o: Id!, $t: String!) { proposePolicy(orgId: $o, text: $t) { ok problems { line } \
                   changes { subject permission } expectations { line subject permission allowed met } } }";
    let draft =
        app.admin.gql(propose, json!({ "o": org, "t": failing })).await.data()["proposePolicy"].clone();
    let results = json!([
        { "line": 2, "subject": "OPERATOR", "permission": "contact.view", "allowed": true, "met": true },
        { "line": 3, "subject": "VIEWER", "permission": "skill.edit", "allowed": false, "met": false },
    ]);
    assert_eq!((&draft["ok"], &draft["problems"]), (&json!(false), &json!([{ "line": 3 }])));
    assert_eq!(draft["expectations"], results);
    assert_eq!(draft["changes"], json!([{ "subject": "VIEWER", "permission": "skill.edit" }]));
    let refused = app.owner.edit_policy(org, "none", &failing).await;
    assert_eq!(refused.code(), "VALIDATION_FAILED");
    let reason = format!(
        "orgs/{org}.csv:3: expected deny of skill.edit to VIEWER, who may in organization {org}: orgs/{org}.csv:1 decides"
    );
    assert!(refused.text.contains(&reason), "{}", refused.text);
    let version = app.owner.edit_policy(org, "none", &rules).await.data()["editPolicy"]["version"].clone();
    // A later denial can't undo what is expected.
    let denied = app.owner.set_permission(org, "denyPermission", "OPERATOR", "contact.view").await;
    assert_eq!(denied.code(), "VALIDATION_FAILED");
    // The operator's change can, and takes nothing else out of force.
    let policy = dir.path().join("policy.csv");
    let general = fs::read_to_string(&policy).unwrap();
    fs::write(&policy, general.replace("p, OPERATOR, *, contact.view", "p, ADMIN, *, contact.view")).unwrap();
    app.core.policy.reload().unwrap();
    assert!(!app.core.policy.allows(OrgId(org), Role::Operator, Permission::ContactView));
    assert!(allows(&app, org, Permission::SkillEdit));
    let shown = "query($o: Id!) { policy(orgId: $o) { problems { line } expectations { line met } } }";
    let shown = app.owner.gql(shown, json!({ "o": org })).await.data()["policy"].clone();
    assert_eq!(shown, json!({ "problems": [], "expectations": [{ "line": 2, "met": false }] }));
    let found = finding(&app, dir.path(), "policy versions").await;
    assert_eq!(found["level"], "warning", "{found:#}");
    assert!(found["found"].as_str().unwrap().contains("expected allow of contact.view"), "{found:#}");
    app.owner.edit_policy(org, version.as_str().unwrap(), &line(org, "skill.edit")).await.data();
    assert!(app.core.policy.status().warnings.is_empty());
}

fn with_folder(app: &TestApp, dir: &Path) -> Vec<(String, String)> {
    let mut variables = app.variables();
    variables.push(("MUSTER_POLICY_DIR".into(), dir.to_str().unwrap().into()));
    variables
}

/// The finding of `doctor` for this check.
async fn finding(app: &TestApp, dir: &Path, check: &str) -> Value {
    let ran = muster(&["doctor"], &with_folder(app, dir)).await;
    let findings = ran.out["findings"].as_array().unwrap();
    findings.iter().find(|found| found["check"] == check).unwrap().clone()
}

/// Everything a folder shows about its files: bytes, times, identity.
fn snapshot(dir: &Path) -> BTreeMap<PathBuf, (u64, i64, i64, u32, Vec<u8>)> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(dir).unwrap().chain(fs::read_dir(dir.join("orgs")).unwrap()) {
        let path = entry.unwrap().path();
        let about = fs::metadata(&path).unwrap();
        let bytes = fs::read(&path).unwrap_or_default();
        found.insert(path, (about.ino(), about.mtime_nsec(), about.ctime_nsec(), about.mode(), bytes));
    }
    found
}

#[tokio::test]
async fn the_policy_folder_is_never_written() {
    let (app, dir) = TestApp::with_policy_folder().await;
    let (org, other) = (app.org, app.other_org);
    fs::write(dir.path().join(format!("orgs/{other}.csv")), line(other, "contact.view")).unwrap();
    app.core.policy.reload().unwrap();
    // The comparison detects a write even if the permissions allowed it.
    for folder in [dir.path().join("orgs"), dir.path().to_owned()] {
        fs::set_permissions(folder, fs::Permissions::from_mode(0o555)).unwrap();
    }
    let before = snapshot(dir.path());
    let edited = app.owner.edit_policy(org, "none", &line(org, "contact.view")).await.data();
    assert!(allows(&app, org, Permission::ContactView), "{edited}");
    let version = policies::history(&app.scope(), 1).await.unwrap()[0].id;
    for done in every_edit(&app, version.0).await {
        assert_ne!(code(&done), Some("POLICY_OWNED_BY_FILE"), "{}", done.text);
    }
    for _ in 0..3 {
        org_policies::follow(&app.core).await.unwrap();
        replicas::refresh_and_compare(&app.core).await.unwrap();
    }
    jobs::sweep(&app.core).await.unwrap();
    let tenant = other.to_string();
    let sql = "SELECT email FROM users ORDER BY id LIMIT 1";
    let user: String = app.one(sql, vec![]).await;
    let number = version.to_string();
    for command in [
        &["publish", "--org", &tenant, "--reason", "so"][..],
        &["revert", &number, "--reason", "so"],
        &["history", "--org", &tenant],
        &["export", "--org", &tenant],
        &["break-glass", "--org", &tenant, "--user", &user, "--reason", "so", "--drop-rules"],
        &["check"],
    ] {
        let ran = muster(&[&["policy"], command].concat(), &with_folder(&app, dir.path())).await;
        assert!(ran.good(), "{command:?}: {}", ran.err);
    }
    assert_eq!(snapshot(dir.path()), before);
    for folder in [dir.path().to_owned(), dir.path().join("orgs")] {
        fs::set_permissions(folder, fs::Permissions::from_mode(0o755)).unwrap();
    }
}

#[test]
fn the_policy_code_never_writes_files() {
    let writing = [
        "fs::write",
        "File::create",
        "create_new",
        "OpenOptions",
        "rename(",
        "remove_",
        "create_dir",
        "copy(",
        "hard_link",
        "unix::fs::symlink",
        "set_permissions",
        "set_len",
        "set_modified",
        "tempfile",
        "replace_file",
        "files::",
        "write_all",
    ];
    let mut seen = 0;
    for folder in ["src/core/policy", "src/domain/policies", "src/graphql/policies"] {
        for (file, code) in sources(folder) {
            let found: Vec<_> = writing.iter().filter(|word| code.contains(**word)).collect();
            assert!(found.is_empty(), "{folder}/{file}: {found:?}: the policy folder is the operator's");
            seen += 1;
        }
    }
    assert!(seen > 20, "{seen}");
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_edits_through_two_replicas_lose_nothing() {
    let app = TestApp::start().await;
    let (org, other) = (OrgId(app.org), app.replica(None).await);
    let permissions =
        ["contact.view", "skill.edit", "mcp.edit", "skill.create", "mcp.create", "credential.edit"];
    let replicas = [&app.core, &other];
    let edits = permissions.iter().enumerate().map(async |(n, permission)| {
        let scope = Scope::system(replicas[n % 2], org);
        let permission = permission.parse().unwrap();
        policies::set_permission(&scope, Role::Viewer, permission, Some(true), "because").await.unwrap();
    });
    futures::future::join_all(edits).await;
    let history = policies::history(&app.scope(), 99).await.unwrap();
    assert_eq!(history.len(), permissions.len());
    let newest = history[0].text.clone().unwrap();
    assert_eq!(newest.lines().count(), permissions.len(), "{newest}");
    for replica in replicas {
        org_policies::follow(replica).await.unwrap();
        assert_eq!(replica.policy.now().org_text(org).as_deref(), Some(newest.as_str()));
    }
    other.shut_down().await;
}

#[tokio::test]
async fn a_different_policy_folder_is_reported() {
    let (app, dir) = TestApp::with_policy_folder().await;
    let (same, own) = (app.replica(Some(dir.path())).await, policy_folder());
    fs::write(own.path().join(format!("orgs/{}.csv", app.org)), line(app.org, "contact.view")).unwrap();
    let apart = app.replica(Some(own.path())).await;
    let name = |replica: &muster::core::Core| replica.replicas.own_id().to_owned();
    let report = async || {
        for replica in [&same, &apart, &app.core] {
            replicas::refresh_and_compare(replica).await.unwrap();
        }
    };
    report().await;
    report().await;
    let health = async || app.anonymous.get("/health").await.expect(200)["policy"].clone();
    assert_eq!(health().await["differing_replicas"], json!([name(&apart)]));
    assert_eq!(health().await["replica"], name(&app.core));
    let differing = |replica: &muster::core::Core| replica.replicas.differing().len();
    assert_eq!([differing(&same), differing(&apart)], [1, 2]);
    // The command uses the machine's time.
    let sql = "UPDATE replicas SET seen_at = $1";
    app.execute(sql, vec![muster::base::time::Clock::system().now().into()]).await;
    let found = finding(&app, dir.path(), "policy folders").await;
    assert_eq!(found["level"], "warning", "{found:#}");
    assert!(found["found"].as_str().unwrap().contains(&name(&apart)), "{found:#}");
    assert!(!found["found"].as_str().unwrap().contains(&name(&same)), "{found:#}");
    // The same folder everywhere.
    fs::write(dir.path().join(format!("orgs/{}.csv", app.org)), line(app.org, "contact.view")).unwrap();
    for replica in [&same, &app.core] {
        replica.policy.reload().unwrap();
    }
    report().await;
    assert_eq!(health().await["differing_replicas"], json!([]));
    // A replica that is gone isn't waited for, announced or not.
    fs::write(own.path().join("orgs/77.csv"), line(77, "contact.view")).unwrap();
    apart.policy.reload().unwrap();
    report().await;
    assert_eq!(health().await["differing_replicas"], json!([name(&apart)]));
    same.shut_down().await;
    app.clock.advance(Duration::from_secs(31));
    replicas::refresh_and_compare(&app.core).await.unwrap();
    assert_eq!(health().await["differing_replicas"], json!([]));
    let rows = "SELECT COUNT(*) FROM replicas";
    assert_eq!(app.one::<i64>(rows, vec![]).await, 2);
    app.clock.advance(Duration::from_hours(1));
    replicas::refresh_and_compare(&app.core).await.unwrap();
    jobs::sweep(&app.core).await.unwrap();
    assert_eq!(app.one::<i64>(rows, vec![]).await, 1);
    apart.shut_down().await;
}
