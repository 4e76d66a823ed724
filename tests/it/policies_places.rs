//! Where policies are written to: folders that refuse, files that can't be replaced, replicas in one folder. A version
//! that was committed stands; what was not committed has left nothing.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
};

use muster::{
    access::{
        Permission, Role, Scope,
        policy::{self, Policy},
    },
    app::{App, Options},
    ids::OrgId,
    policies,
};
use serde_json::json;
use tempfile::TempDir;

use crate::harness::{Actor, Answer, TestApp};

const EDIT: &str =
    "mutation($o: Id!, $input: EditPolicyInput!) { editPolicy(orgId: $o, input: $input) { version text } }";

async fn edit(actor: &Actor, org: i64, version: &str, text: &str) -> Answer {
    let input = json!({ "version": version, "text": text, "reason": "because" });
    actor.gql(EDIT, json!({ "o": org, "input": input })).await
}

fn line(org: i64, permission: &str) -> String {
    format!("p, VIEWER, {org}, {permission}, allow\n")
}

async fn with_folder() -> (TestApp, TempDir) {
    let dir = folder();
    let app = TestApp::start_with(|config| config.policy_dir = Some(dir.path().to_owned())).await;
    (app, dir)
}

fn folder() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    policy::write_defaults(dir.path()).unwrap();
    dir
}

/// Another replica over the same database.
async fn replica(app: &TestApp, dir: &Path) -> Arc<App> {
    let mut config = app.muster.config.clone();
    config.policy_dir = Some(dir.to_owned());
    App::start(config, Options { clock: app.clock.clone(), ..Options::default() }).await.unwrap()
}

/// Something mounted over a path, where this process may mount.
struct Mounted(PathBuf);

impl Mounted {
    fn mount(arguments: &[&str], path: &Path) -> Option<Self> {
        let mounted = Command::new("mount").args(arguments).arg(path).output().ok()?;
        mounted.status.success().then(|| Self(path.to_owned()))
    }

    /// A folder in which nothing can be made, not even by root.
    fn read_only(path: &Path) -> Option<Self> {
        Self::mount(&["-t", "tmpfs", "-o", "ro", "tmpfs"], path)
    }

    /// The file over itself: it can be read and written, and neither replaced nor removed.
    fn pinned(path: &Path) -> Option<Self> {
        Self::mount(&["--bind", path.to_str()?], path)
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

fn files(folder: &Path) -> BTreeSet<String> {
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

async fn is_refused_and_changes_nothing(app: &TestApp) {
    let org = app.org;
    let refused = edit(&app.owner, org, "none", &line(org, "contact.view")).await;
    assert_eq!(refused.code(), "POLICY_NOT_WRITABLE", "{}", refused.text);
    let error = &refused.body["errors"][0];
    let said = error["message"].as_str().unwrap();
    let file = format!("orgs/{org}.csv");
    assert!(said.starts_with(&format!("{file} can't be written (")), "what: {said}");
    assert!(said.contains("nothing was changed") && said.contains("The operator has to"), "what now: {said}");
    assert_eq!(error["extensions"]["details"]["file"], file);
    let folder = app.muster.config.policy_dir.as_ref().unwrap();
    assert!(!refused.text.contains(folder.to_str().unwrap()), "where the folder is, is nobody's business");
    assert_eq!(policies::history(&app.scope(), 9).await.unwrap().len(), 0);
    let lines = "SELECT COUNT(*) FROM audit_lines WHERE operation = 'editPolicy' AND organization_id = $1";
    assert_eq!(app.one::<i64>(lines, vec![org.into()]).await, 0);
    assert!(!app.muster.policy.allows(OrgId(org), Role::Viewer, Permission::ContactView));
    assert_eq!(edit(&app.stranger, org, "none", "").await.code(), "NOT_A_MEMBER");
}

#[tokio::test]
async fn a_folder_that_cannot_be_written_refuses_the_edit_and_nothing_is_changed() {
    let (app, dir) = with_folder().await;
    let orgs = dir.path().join("orgs");
    // A link to nowhere: no organization has a file, and none can be made.
    fs::remove_dir_all(&orgs).unwrap();
    std::os::unix::fs::symlink(dir.path().join("nowhere"), &orgs).unwrap();
    is_refused_and_changes_nothing(&app).await;
    fs::remove_file(&orgs).unwrap();
    fs::create_dir(&orgs).unwrap();
    if let Some(mounted) = Mounted::read_only(&orgs) {
        is_refused_and_changes_nothing(&app).await;
        drop(mounted);
    }
    assert_eq!(files(&orgs), BTreeSet::new(), "nothing is left");
    let text = line(app.org, "contact.view");
    edit(&app.owner, app.org, "none", &text).await.data();
    assert_eq!(files(&orgs), BTreeSet::from([format!("{}.csv", app.org)]));
}

#[test]
fn what_is_prepared_and_not_put_leaves_nothing_and_a_folder_in_the_files_place_is_told() {
    let dir = folder();
    let policy = Policy::load(dir.path()).unwrap();
    let (org, orgs) = (OrgId(7), dir.path().join("orgs"));
    let text = Some(line(7, "contact.view"));
    let before = files(&orgs);
    drop(policy.prepare(org, text.clone()).unwrap());
    drop(policy.prepare(org, None).unwrap());
    assert_eq!(files(&orgs), before);
    fs::create_dir(orgs.join("7.csv")).unwrap();
    let refused = policy.prepare(org, text.clone()).err().unwrap();
    assert_eq!(refused.to_string(), "a folder stands in its place");
    fs::remove_dir(orgs.join("7.csv")).unwrap();
    assert_eq!(files(&orgs), before);

    // After the commit it is too late to refuse: the text is in force, and written as soon as it can be.
    let prepared = policy.prepare(org, text.clone()).unwrap();
    fs::create_dir(orgs.join("7.csv")).unwrap();
    assert!(matches!(policy.put(prepared), Ok(policy::Placed::Held(_))));
    let allowed = || policy.allows(org, Role::Viewer, Permission::ContactView);
    assert!(allowed());
    policy.reload().unwrap();
    assert!(allowed(), "reading the folder again does not undo it");
    assert_eq!((policy.unwritten(), policy.status().unwritten), (vec![org], 1));
    fs::remove_dir(orgs.join("7.csv")).unwrap();
    assert!(matches!(policy.put_org(org, text), Ok(policy::Placed::Written)));
    assert!(allowed() && policy.unwritten().is_empty() && orgs.join("7.csv").is_file());
}

#[tokio::test]
async fn a_file_that_cannot_be_replaced_after_the_commit_is_in_force_and_written_when_it_can_be() {
    let (app, dir) = with_folder().await;
    let (org, owner) = (app.org, &app.owner);
    let allows = |permission| app.muster.policy.allows(OrgId(org), Role::Viewer, permission);
    let texts = ["contact.view", "skill.edit", "mcp.edit"].map(|permission| line(org, permission));
    let version = |text: &String| policies::version_of(Some(text));
    edit(owner, org, "none", &texts[0]).await.data();
    let file = dir.path().join(format!("orgs/{org}.csv"));
    let Some(pinned) = Mounted::pinned(&file) else {
        return; // Only root may mount; the test above does the same with what everybody may do.
    };
    let edited = edit(owner, org, &version(&texts[0]), &texts[1]).await.data();
    assert_eq!(edited["editPolicy"], json!({ "version": version(&texts[1]), "text": texts[1] }));
    assert!(allows(Permission::SkillEdit) && !allows(Permission::ContactView));
    assert_eq!(fs::read_to_string(&file).unwrap(), texts[0]);
    // It goes on like this: rounds, readings, edits, another replica, a start.
    policies::sync(&app.muster).await.unwrap();
    app.muster.policy.reload().unwrap();
    assert!(allows(Permission::SkillEdit), "still");
    edit(owner, org, &version(&texts[1]), &texts[2]).await.data();
    assert!(allows(Permission::McpEdit) && !allows(Permission::SkillEdit));
    let own = folder();
    for path in [dir.path(), own.path()] {
        let other = replica(&app, path).await;
        policies::sync(&other).await.unwrap();
        assert!(other.policy.allows(OrgId(org), Role::Viewer, Permission::McpEdit), "{}", path.display());
        other.shut_down().await;
    }
    assert_eq!(policies::history(&app.scope(), 9).await.unwrap().len(), 3, "no hand has edited anything");
    assert_eq!(fs::read_to_string(&file).unwrap(), texts[0]);
    drop(pinned);
    policies::sync(&app.muster).await.unwrap();
    assert_eq!(fs::read_to_string(&file).unwrap(), texts[2], "healed in the next round");
    assert!(app.muster.policy.unwritten().is_empty());
    // From then on the file is the file again: a hand edit is one.
    fs::write(&file, &texts[0]).unwrap();
    app.muster.policy.reload().unwrap();
    policies::sync(&app.muster).await.unwrap();
    let newest = &policies::history(&app.scope(), 1).await.unwrap()[0];
    assert_eq!((newest.author_kind.as_str(), newest.version.clone()), ("FILE", version(&texts[0])));
    assert_eq!(policies::sync(&app.muster).await.unwrap(), 0, "nothing is left to do");
    assert_eq!(edit(&app.stranger, org, "none", "").await.code(), "NOT_A_MEMBER");
}

#[tokio::test(flavor = "multi_thread")]
async fn replicas_that_share_a_folder_edit_at_the_same_time_and_lose_nothing() {
    let (app, dir) = with_folder().await;
    let org = OrgId(app.org);
    let other = replica(&app, dir.path()).await;
    let permissions =
        ["contact.view", "skill.edit", "mcp.edit", "skill.create", "mcp.create", "credential.edit"];
    let replicas = [&app.muster, &other];
    let edits = permissions.iter().enumerate().map(async |(n, permission)| {
        let scope = Scope::system(replicas[n % 2], org);
        let permission = permission.parse().unwrap();
        policies::set_permission(&scope, Role::Viewer, permission, Some(true), "because").await.unwrap();
    });
    let rounds = replicas.map(async |replica| {
        for _ in 0..20 {
            policies::sync(replica).await.unwrap();
            tokio::task::yield_now().await;
        }
    });
    futures::join!(futures::future::join_all(edits), futures::future::join_all(rounds));
    let history = policies::history(&app.scope(), 99).await.unwrap();
    let authors: Vec<_> = history.iter().map(|version| version.author_kind.as_str()).collect();
    assert_eq!(authors, ["OPERATOR"; 6], "none of it was taken for a hand edit, and none was lost");
    let newest = history[0].text.clone().unwrap();
    assert_eq!(newest.lines().count(), permissions.len(), "{newest}");
    for replica in replicas {
        replica.policy.reload().unwrap();
        while policies::sync(replica).await.unwrap() > 0 {}
        assert_eq!(replica.policy.org_text(org), Some(newest.clone()));
    }
    assert_eq!(fs::read_to_string(dir.path().join(format!("orgs/{org}.csv"))).unwrap(), newest);
    assert_eq!(policies::history(&app.scope(), 99).await.unwrap().len(), 6);
    let left: Vec<_> =
        files(&dir.path().join("orgs")).into_iter().filter(|name| name.starts_with(".new")).collect();
    assert!(left.is_empty(), "{left:?}");
    let stranger =
        app.stranger.gql("query($o: Id!) { policy(orgId: $o) { text } }", json!({ "o": app.org })).await;
    assert_eq!(stranger.code(), "NOT_A_MEMBER");
    other.shut_down().await;
}

#[tokio::test]
async fn what_another_replica_wrote_into_a_shared_folder_is_no_hand_edit() {
    let (app, dir) = with_folder().await;
    let (org, own) = (app.org, folder());
    let (beside, apart) = (replica(&app, dir.path()).await, replica(&app, own.path()).await);
    let texts = ["contact.view", "skill.edit", "mcp.edit"].map(|permission| line(org, permission));
    edit(&app.owner, org, "none", &texts[0]).await.data();
    for replica in [&beside, &apart] {
        replica.policy.reload().unwrap();
        policies::sync(replica).await.unwrap();
    }
    // One writes the second text into the shared folder; one with a folder of its own commits the third.
    edit(&app.owner, org, &policies::version_of(Some(&texts[0])), &texts[1]).await.data();
    let third = policies::Edit { version: None, text: texts[2].clone(), reason: "because".to_owned() };
    policies::edit(&Scope::system(&apart, OrgId(org)), third).await.unwrap();
    // The replica that knows of neither finds a file that is not what it noted, and not the newest one.
    beside.policy.reload().unwrap();
    policies::sync(&beside).await.unwrap();
    assert_eq!(fs::read_to_string(dir.path().join(format!("orgs/{org}.csv"))).unwrap(), texts[2]);
    let history = policies::history(&app.scope(), 9).await.unwrap();
    let authors: Vec<_> = history.iter().map(|version| version.author_kind.as_str()).collect();
    assert_eq!(authors, ["OPERATOR", "USER", "USER"], "the third edit stands");
    assert_eq!(edit(&app.stranger, org, "none", "").await.code(), "NOT_A_MEMBER");
    for other in [beside, apart] {
        other.shut_down().await;
    }
}
