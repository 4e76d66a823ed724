//! Where policies are written to: folders that refuse, files that can't be replaced, replicas in one folder. A version
//! that was committed stands; what was not committed has left nothing.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
    time::{Duration, UNIX_EPOCH},
};

use muster::{
    base::{
        ids::OrgId,
        permission::{Permission, Role},
    },
    core::{
        Core,
        access::Scope,
        policy::{self, Policy},
        telemetry::metrics,
    },
    slices::policies,
};
use serde_json::json;

use crate::harness::{Ran, TestApp, muster, policy_folder};

fn line(org: i64, permission: &str) -> String {
    format!("p, VIEWER, {org}, {permission}, allow\n")
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
    let refused = app.owner.edit_policy(org, "none", &line(org, "contact.view")).await;
    assert_eq!(refused.code(), "POLICY_NOT_WRITABLE", "{}", refused.text);
    let error = &refused.body["errors"][0];
    let said = error["message"].as_str().unwrap();
    let file = format!("orgs/{org}.csv");
    assert!(said.starts_with(&format!("{file} can't be written (")), "what: {said}");
    assert!(said.contains("nothing was changed") && said.contains("The operator has to"), "what now: {said}");
    assert_eq!(error["extensions"]["details"]["file"], file);
    let folder = app.core.config.policy_dir.as_ref().unwrap();
    assert!(!refused.text.contains(folder.to_str().unwrap()), "where the folder is, is nobody's business");
    assert_eq!(policies::history(&app.scope(), 9).await.unwrap().len(), 0);
    let lines = "SELECT COUNT(*) FROM audit_lines WHERE operation = 'editPolicy' AND organization_id = $1";
    assert_eq!(app.one::<i64>(lines, vec![org.into()]).await, 0);
    assert!(!app.core.policy.allows(OrgId(org), Role::Viewer, Permission::ContactView));
    assert_eq!(app.stranger.edit_policy(org, "none", "").await.code(), "NOT_A_MEMBER");
}

#[tokio::test]
async fn a_folder_that_cannot_be_written_refuses_the_edit_and_nothing_is_changed() {
    let (app, dir) = TestApp::with_policy_folder().await;
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
    app.owner.edit_policy(app.org, "none", &text).await.data();
    assert_eq!(files(&orgs), BTreeSet::from([format!("{}.csv", app.org)]));
}

#[test]
fn what_is_prepared_and_not_put_leaves_nothing_and_a_folder_in_the_files_place_is_told() {
    let dir = policy_folder();
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
    assert!(matches!(policy.put(prepared, None), Ok(policy::Placed::Held(_))));
    let allowed = || policy.allows(org, Role::Viewer, Permission::ContactView);
    assert!(allowed());
    policy.reload().unwrap();
    assert!(allowed(), "reading the folder again does not undo it");
    assert_eq!((policy.unwritten(), policy.status().unwritten), (vec![org], 1));
    fs::remove_dir(orgs.join("7.csv")).unwrap();
    assert!(matches!(policy.put_org(org, text, None), Ok(policy::Placed::Written)));
    assert!(allowed() && policy.unwritten().is_empty() && orgs.join("7.csv").is_file());
}

#[tokio::test]
async fn a_file_that_cannot_be_replaced_after_the_commit_is_in_force_and_written_when_it_can_be() {
    let (app, dir) = TestApp::with_policy_folder().await;
    let (org, owner) = (app.org, &app.owner);
    let allows = |permission| app.core.policy.allows(OrgId(org), Role::Viewer, permission);
    let texts = ["contact.view", "skill.edit", "mcp.edit"].map(|permission| line(org, permission));
    let version = |text: &String| policies::version_of(Some(text));
    owner.edit_policy(org, "none", &texts[0]).await.data();
    let file = dir.path().join(format!("orgs/{org}.csv"));
    let Some(pinned) = Mounted::pinned(&file) else {
        return; // Only root may mount; the test above does the same with what everybody may do.
    };
    let edited = owner.edit_policy(org, &version(&texts[0]), &texts[1]).await.data();
    assert_eq!(edited["editPolicy"], json!({ "version": version(&texts[1]), "text": texts[1] }));
    assert!(allows(Permission::SkillEdit) && !allows(Permission::ContactView));
    assert_eq!(fs::read_to_string(&file).unwrap(), texts[0]);
    // It goes on like this: rounds, readings, edits, another replica, a start.
    policies::sync(&app.core).await.unwrap();
    app.core.policy.reload().unwrap();
    assert!(allows(Permission::SkillEdit), "still");
    owner.edit_policy(org, &version(&texts[1]), &texts[2]).await.data();
    assert!(allows(Permission::McpEdit) && !allows(Permission::SkillEdit));
    let own = policy_folder();
    for path in [dir.path(), own.path()] {
        let other = app.replica(Some(path)).await;
        policies::sync(&other).await.unwrap();
        assert!(other.policy.allows(OrgId(org), Role::Viewer, Permission::McpEdit), "{}", path.display());
        other.shut_down().await;
    }
    assert_eq!(policies::history(&app.scope(), 9).await.unwrap().len(), 3, "no hand has edited anything");
    assert_eq!(fs::read_to_string(&file).unwrap(), texts[0]);
    drop(pinned);
    app.clock.advance(Duration::from_mins(1));
    policies::sync(&app.core).await.unwrap();
    assert_eq!(fs::read_to_string(&file).unwrap(), texts[2], "healed when it is tried again");
    assert!(app.core.policy.unwritten().is_empty());
    // From then on the file is the file again: a hand edit is one.
    fs::write(&file, &texts[0]).unwrap();
    app.core.policy.reload().unwrap();
    policies::sync(&app.core).await.unwrap();
    let newest = &policies::history(&app.scope(), 1).await.unwrap()[0];
    assert_eq!((newest.author_kind.as_str(), newest.version.clone()), ("FILE", version(&texts[0])));
    assert_eq!(policies::sync(&app.core).await.unwrap(), 0, "nothing is left to do");
    assert_eq!(app.stranger.edit_policy(org, "none", "").await.code(), "NOT_A_MEMBER");
}

#[tokio::test(flavor = "multi_thread")]
async fn replicas_that_share_a_folder_edit_at_the_same_time_and_lose_nothing() {
    let (app, dir) = TestApp::with_policy_folder().await;
    let org = OrgId(app.org);
    let other = app.replica(Some(dir.path())).await;
    let permissions =
        ["contact.view", "skill.edit", "mcp.edit", "skill.create", "mcp.create", "credential.edit"];
    let replicas = [&app.core, &other];
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
    let (app, dir) = TestApp::with_policy_folder().await;
    let (org, own) = (app.org, policy_folder());
    let (beside, apart) = (app.replica(Some(dir.path())).await, app.replica(Some(own.path())).await);
    let texts = ["contact.view", "skill.edit", "mcp.edit"].map(|permission| line(org, permission));
    app.owner.edit_policy(org, "none", &texts[0]).await.data();
    for replica in [&beside, &apart] {
        replica.policy.reload().unwrap();
        policies::sync(replica).await.unwrap();
    }
    // One writes the second text into the shared folder; one with a folder of its own commits the third.
    app.owner.edit_policy(org, &policies::version_of(Some(&texts[0])), &texts[1]).await.data();
    let third = policies::Edit { version: None, text: texts[2].clone(), reason: "because".to_owned() };
    policies::edit(&Scope::system(&apart, OrgId(org)), third).await.unwrap();
    // The replica that knows of neither finds a file that is not what it noted, and not the newest one.
    beside.policy.reload().unwrap();
    policies::sync(&beside).await.unwrap();
    assert_eq!(fs::read_to_string(dir.path().join(format!("orgs/{org}.csv"))).unwrap(), texts[2]);
    let history = policies::history(&app.scope(), 9).await.unwrap();
    let authors: Vec<_> = history.iter().map(|version| version.author_kind.as_str()).collect();
    assert_eq!(authors, ["OPERATOR", "USER", "USER"], "the third edit stands");
    assert_eq!(app.stranger.edit_policy(org, "none", "").await.code(), "NOT_A_MEMBER");
    for other in [beside, apart] {
        other.shut_down().await;
    }
}

/// An organization's folder that can't be written, whoever tries: a link to nowhere. Nobody has a file in it.
fn unwritable(dir: &Path) -> PathBuf {
    let orgs = dir.join("orgs");
    fs::remove_dir_all(&orgs).unwrap();
    std::os::unix::fs::symlink(dir.join("nowhere"), &orgs).unwrap();
    orgs
}

fn mend(orgs: &Path) {
    fs::remove_file(orgs).unwrap();
    fs::create_dir(orgs).unwrap();
}

async fn publish(replica: &Arc<Core>, org: i64, text: &str) {
    let edit = policies::Edit { version: None, text: text.to_owned(), reason: "because".to_owned() };
    policies::edit(&Scope::system(replica, OrgId(org)), edit).await.unwrap();
}

#[tokio::test]
async fn a_file_that_cannot_be_written_is_tried_ever_more_rarely_and_a_newer_text_at_once() {
    let dir = policy_folder();
    let app = TestApp::start_with(|config| {
        config.policy_dir = Some(dir.path().to_owned());
        config.metrics.listen = Some("127.0.0.1:0".parse().unwrap());
    });
    let (app, own) = (app.await, policy_folder());
    let (org, orgs, elsewhere) = (app.org, unwritable(dir.path()), app.replica(Some(own.path())).await);
    let texts = ["contact.view", "skill.edit"].map(|permission| line(org, permission));
    // How often it was tried, after as many rounds as one likes at this moment.
    let tried = async || {
        for _ in 0..5 {
            policies::sync(&app.core).await.unwrap();
        }
        let page = muster::faces::edge::scrape::page(&app.core, metrics::begin()).await;
        let sample =
            page.lines().find_map(|line| line.strip_prefix("muster_policy_file_writes_failed_total "));
        sample.unwrap().parse::<f64>().unwrap() as u64
    };
    let in_force = || app.core.policy.org_text(OrgId(org));
    let millisecond = Duration::from_millis(1);
    let mut expected = 0;
    for (text, pauses) in texts.iter().zip([&[1, 2, 4, 8, 16, 32, 60, 60][..], &[1, 2][..]]) {
        publish(&elsewhere, org, text).await;
        expected += 1;
        assert_eq!(tried().await, expected, "a newer text is tried at once");
        assert_eq!(in_force().as_ref(), Some(text));
        for pause in pauses {
            app.clock.advance(Duration::from_secs(*pause).saturating_sub(millisecond));
            assert_eq!(tried().await, expected, "not before {pause} s");
            app.clock.advance(millisecond);
            expected += 1;
            assert_eq!(tried().await, expected, "after {pause} s");
        }
    }
    // Meanwhile the database is looked at as before: only that one file waits.
    publish(&elsewhere, app.other_org, &line(app.other_org, "contact.view")).await;
    assert_eq!(tried().await, expected + 1);
    assert!(app.core.policy.allows(OrgId(app.other_org), Role::Viewer, Permission::ContactView));
    mend(&orgs);
    tried().await;
    assert_eq!(files(&orgs), BTreeSet::new());
    app.clock.advance(Duration::from_secs(4));
    assert_eq!(tried().await, expected + 1);
    assert_eq!(fs::read_to_string(orgs.join(format!("{org}.csv"))).unwrap(), texts[1]);
    assert_eq!(files(&orgs).len(), 2);
    assert!(app.core.policy.unwritten().is_empty());
    assert_eq!(app.stranger.edit_policy(org, "none", "").await.code(), "NOT_A_MEMBER");
    elsewhere.shut_down().await;
}

#[tokio::test]
async fn what_is_in_force_and_not_in_its_file_is_shown_where_an_operator_looks() {
    let (app, dir) = TestApp::with_policy_folder().await;
    let (org, own, orgs) = (app.org, policy_folder(), dir.path().join("orgs"));
    policies::sync(&app.core).await.unwrap();
    let (elsewhere, file) = (app.replica(Some(own.path())).await, format!("orgs/{org}.csv"));
    let doctor = async || {
        let folder = ("MUSTER_POLICY_DIR".to_owned(), dir.path().to_str().unwrap().to_owned());
        let ran: Ran = muster(&["doctor"], &[app.variables(), vec![folder]].concat()).await;
        assert!(ran.good(), "{}: it works, and somebody should look", ran.text);
        let findings = ran.out["findings"].as_array().unwrap();
        findings.iter().find(|finding| finding["check"] == "policy files").unwrap().clone()
    };
    let health = async || {
        // To anybody: how many, and not whose.
        let [health, same] = [&app.anonymous, &app.stranger].map(async |actor| actor.get("/health").await);
        let (health, same) = (health.await, same.await);
        assert_eq!((health.status, &health.body), (200, &same.body));
        assert!(health.body["status"] == "ok" && !health.text.contains("orgs/"), "{}", health.text);
        assert_eq!(app.anonymous.get("/ready").await.expect(200)["status"], "ready");
        health.body["policy"]["unwritten"].as_i64().unwrap()
    };
    assert_eq!((doctor().await["level"].as_str(), health().await), (Some("good"), 0));
    let texts = ["contact.view", "skill.edit"].map(|permission| line(org, permission));
    unwritable(dir.path());
    publish(&elsewhere, org, &texts[1]).await;
    policies::sync(&app.core).await.unwrap();
    assert!(app.core.policy.allows(OrgId(org), Role::Viewer, Permission::SkillEdit));
    assert_eq!(health().await, 1);
    let version = policies::history(&app.scope(), 1).await.unwrap()[0].id;
    let found = doctor().await;
    assert_eq!(found["level"], "look", "{found:#}");
    assert_eq!(found["found"], format!("{file} does not have version {version}"));
    let advice = found["advice"].as_str().unwrap();
    assert!(
        advice.contains(orgs.to_str().unwrap()) && advice.contains("policy.file_not_written"),
        "{advice}"
    );
    mend(&orgs);
    app.clock.advance(Duration::from_secs(1));
    policies::sync(&app.core).await.unwrap();
    assert_eq!(fs::read_to_string(dir.path().join(&file)).unwrap(), texts[1]);
    assert_eq!((doctor().await["level"].as_str(), health().await), (Some("good"), 0));
    // A hand edit that no service has seen yet is not behind: it is going to be a version itself.
    fs::write(dir.path().join(&file), &texts[0]).unwrap();
    assert_eq!(doctor().await["level"], "good");
    // A version that this folder's service has not seen yet, for it was stopped.
    fs::write(dir.path().join(&file), &texts[1]).unwrap();
    publish(&elsewhere, org, &texts[0]).await;
    assert_eq!(doctor().await["level"], "look");
    elsewhere.shut_down().await;
}

#[tokio::test]
async fn what_a_killed_process_has_prepared_is_removed_and_nothing_else() {
    let (app, dir) = TestApp::with_policy_folder().await;
    let (org, orgs) = (app.org, dir.path().join("orgs"));
    publish(&app.core, org, &line(org, "contact.view")).await;
    // Made by a real prepare, and left as by a kill.
    let left = |folder: &Path, minutes: u64| {
        let before = files(&orgs);
        let prepared = app.core.policy.prepare(OrgId(org), Some("# never put\n".to_owned())).unwrap();
        let name = files(&orgs).difference(&before).next().unwrap().clone();
        let path = folder.join(&name);
        fs::rename(orgs.join(&name), &path).unwrap();
        std::mem::forget(prepared);
        age(&path, &app, minutes);
        path
    };
    let old = [left(&orgs, 16), left(&orgs, 60 * 24 * 365), left(dir.path(), 16)];
    let fresh = [left(&orgs, 0), left(&orgs, 14), left(dir.path(), 14)];
    let others =
        [".new-", ".new-0123", ".new-0123456789abcdeg", ".new-0123456789abcdef0", ".1.csv.replaced", "x~"];
    let others = others.map(|name| orgs.join(name));
    for path in &others {
        fs::write(path, "somebody's own").unwrap();
        age(path, &app, 600);
    }
    let folder = orgs.join(".new-0123456789abcdef");
    fs::create_dir(&folder).unwrap();
    age(&folder, &app, 600);
    let before = files(&orgs).len();
    assert_eq!(policies::sweep(&app.core).await.unwrap(), 3);
    assert_eq!(files(&orgs).len(), before - 2);
    assert!(old.iter().all(|path| !path.exists()));
    assert!(fresh.iter().chain(&others).chain([&folder]).all(|path| path.exists()));
    assert_eq!(policies::sync(&app.core).await.unwrap(), 0, "none of it is a file of the policy");
    assert_eq!(policies::sweep(&app.core).await.unwrap(), 0);
    app.clock.advance(Duration::from_mins(2));
    assert_eq!(policies::sweep(&app.core).await.unwrap(), 2);
    assert_eq!(fs::read_to_string(orgs.join(format!("{org}.csv"))).unwrap(), line(org, "contact.view"));
    // A folder that is gone is none of its business.
    fs::remove_dir_all(&orgs).unwrap();
    assert_eq!(policies::sweep(&app.core).await.unwrap(), 0);
    assert_eq!(app.stranger.edit_policy(org, "none", "").await.code(), "NOT_A_MEMBER");
}

/// A file, or a folder, that was last written so many minutes before the service's present.
fn age(path: &Path, app: &TestApp, minutes: u64) {
    let at = app.clock.now().minus(Duration::from_mins(minutes));
    let at = UNIX_EPOCH + Duration::from_millis(at.0.unsigned_abs());
    fs::File::open(path).unwrap().set_modified(at).unwrap();
}
