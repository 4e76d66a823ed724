//! `muster key` with the real program. Concurrent rotations lose no key, and refused commands leave the keys as
//! they were.

use std::{collections::BTreeSet, fs, os::unix::fs::PermissionsExt, path::Path, time::Duration};

use muster::{
    base::ids::OrgId,
    core::{
        keys,
        sealing::{KeyFile, SealContext},
    },
};
use serde_json::{Value, json};

use super::store_secret;
use crate::harness::{TestApp, muster, until};

const ENCRYPTION: [&str; 3] = ["key", "rotate", "--encryption"];
const NOW: [&str; 4] = ["key", "rotate", "--signing", "--now"];

/// A service whose signing keys are in the table, with a secret.
async fn started() -> TestApp {
    let app = TestApp::start().await;
    keys::load(&app.core).await.unwrap();
    store_secret(&app).await;
    app
}

fn file(app: &TestApp) -> KeyFile {
    KeyFile::load(&app.core.config.keys_file).unwrap()
}

#[tokio::test]
async fn concurrent_sealing_key_rotations_each_keep_their_key() {
    let app = started().await;
    let runs = futures::future::join_all((0..4).map(|_| app.cli(&ENCRYPTION))).await;
    let ids: BTreeSet<i64> = runs.into_iter().map(|ran| ran.expect()["id"].as_i64().unwrap()).collect();
    assert_eq!(ids, BTreeSet::from([2, 3, 4, 5]), "a key that another rotation replaces is not announced");
    let keys = file(&app);
    assert_eq!((keys.ring().ids().count(), keys.ring().active_id()), (5, 5));
    // Everything sealed before still opens.
    keys::reload(&app.core);
    let place = SealContext::new(OrgId(1), "t", 1, "f");
    let sealed = app.core.sealing.seal(&"s".into(), &place);
    assert!(file(&app).ring().open(&sealed, &place).is_ok());
    let beside = app.folder().join("keys.toml.lock");
    assert_eq!(fs::metadata(&beside).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(fs::metadata(&beside).unwrap().len(), 0, "the lock file is empty");
}

/// Whether another process has this file open.
fn is_open_elsewhere(file: &Path) -> bool {
    let processes = fs::read_dir("/proc").unwrap().filter_map(|entry| {
        let process: u32 = entry.ok()?.file_name().to_str()?.parse().ok()?;
        (process != std::process::id()).then_some(process)
    });
    let mut files = processes.flat_map(|process| {
        fs::read_dir(format!("/proc/{process}/fd")).into_iter().flatten().filter_map(Result::ok)
    });
    files.any(|open| fs::read_link(open.path()).is_ok_and(|path| path == file))
}

#[tokio::test]
async fn a_second_rotation_waits_for_the_first() {
    let app = started().await;
    let beside = app.folder().canonicalize().unwrap().join("keys.toml.lock");
    let lock = fs::File::create(&beside).unwrap();
    lock.lock().unwrap();
    let second = app.cli(&ENCRYPTION);
    tokio::pin!(second);
    tokio::select! {
        ran = &mut second => panic!("it does not look at the lock: {:?} {}{}", ran.code, ran.text, ran.err),
        () = until("it wants the lock", async || is_open_elsewhere(&beside)) => {}
    }
    // A request without a wait is done by now.
    let waited = tokio::time::timeout(Duration::from_millis(500), &mut second).await;
    assert!(waited.is_err(), "it waits while another process holds the lock");
    assert_eq!(file(&app).ring().ids().count(), 1);
    drop(lock);
    assert_eq!(second.await.expect()["id"], 2);
}

#[tokio::test]
async fn concurrent_key_rotations_leave_one_active_key() {
    let app = started().await;
    let runs = futures::future::join_all((0..3).map(|_| app.cli(&NOW))).await;
    let made: BTreeSet<String> =
        runs.into_iter().map(|ran| ran.expect()["kid"].as_str().unwrap().to_owned()).collect();
    assert_eq!(made.len(), 3);
    let listed = app.cli(&["key", "list"]).await.expect()["signing"].clone();
    let with = |state: &str| -> Vec<&Value> {
        listed.as_array().unwrap().iter().filter(|key| key["state"] == state).collect()
    };
    assert_eq!((with("active").len(), with("retired").len()), (1, 3), "{listed:#}");
    let active = with("active")[0]["kid"].as_str().unwrap();
    assert!(made.contains(active));
    // The next key is published once, however many ask for one.
    let publish = ["key", "rotate", "--signing"];
    let (one, two) = tokio::join!(app.cli(&publish), app.cli(&publish));
    let (one, two) = (one.expect(), two.expect());
    assert_eq!((&one["kid"], &one["state"]), (&two["kid"], &json!("next")));
    // The active key stays. A retired one can go at once, and then does nothing.
    app.refuses(&["key", "retire", active], 1, "IN_USE").await;
    let old = with("retired")[0]["kid"].as_str().unwrap();
    assert_eq!(app.cli(&["key", "retire", old]).await.expect()["retired"], true);
    app.refuses(&["key", "retire", "0123456789abcdef"], 1, "NOT_FOUND").await;
    assert_eq!(
        app.stranger.get(&format!("/v1/org/{}", app.org)).await.status,
        403,
        "the stranger is still known"
    );
}

#[tokio::test]
async fn a_sealing_key_is_rotated_rewrapped_and_retired() {
    let app = started().await;
    let prepared = app.cli(&["key", "rotate", "--encryption", "--prepare"]).await.expect();
    assert_eq!(prepared, json!({ "id": 2, "active": false }));
    assert_eq!(app.cli(&ENCRYPTION).await.expect(), json!({ "id": 2, "active": true }));
    let sealing = app.cli(&["key", "list"]).await.expect()["sealing"].clone();
    // The secret and the signing key.
    let expected = [("older", 2), ("active", 0)].map(|(state, values)| (json!(state), json!(values)));
    let found = [0, 1].map(|n| (sealing[n]["state"].clone(), sealing[n]["values"].clone()));
    assert_eq!(found, expected, "{sealing:#}");
    let retire = ["key", "retire", "1", "--no-wait"];
    let said = app.refuses(&retire, 1, "IN_USE").await;
    assert!(said.contains("muster key rewrap") && said.contains("credential_fields"), "{said}");
    let moved = app.cli(&["key", "rewrap", "--rest", "0"]).await.expect();
    assert_eq!((&moved["moved"], &moved["broken"]), (&json!(2), &json!(0)));
    assert_eq!(app.cli(&retire).await.expect(), json!({ "id": 1, "retired": true }));
    assert_eq!(file(&app).ring().ids().collect::<Vec<_>>(), [2]);
    // A value whose key is gone is counted and not changed, and the exit code says so.
    app.execute("UPDATE credential_fields SET value_sealed = $1", vec![vec![1_u8, 0, 0, 0, 9, 7, 7].into()])
        .await;
    let broken = app.cli(&["key", "rewrap", "--rest", "0"]).await;
    assert_eq!((broken.code, &broken.out["broken"]), (Some(1), &json!(1)), "{}", broken.err);
}

#[tokio::test]
async fn a_retirement_that_must_be_refused_does_not_wait_first() {
    let app = started().await;
    app.cli(&ENCRYPTION).await.expect();
    // Without --json, a wait is announced.
    let mut command = tokio::process::Command::new(env!("CARGO_BIN_EXE_muster"));
    command.args(["key", "retire", "1"]).env_clear().envs(app.variables()).kill_on_drop(true);
    let ran = command.output().await.unwrap();
    let said = String::from_utf8_lossy(&ran.stderr);
    assert!(!ran.status.success() && said.contains("muster key rewrap"), "{said}");
    assert!(!said.contains("waiting"), "{said}");
}

#[tokio::test]
async fn a_refused_command_leaves_the_keys_unchanged() {
    let app = started().await;
    let path = &app.core.config.keys_file;
    let before = fs::read(path).unwrap();
    for wrong in [
        &["key", "rotate"][..],
        &["key", "rotate", "--signing", "--encryption"],
        &["key", "rotate", "--signing", "--prepare"],
        &["key", "rotate", "--encryption", "--now"],
        &["key", "rewrap", "--batch", "0"],
        &["key", "retire"],
        &["key", "forget"],
    ] {
        app.refuses(wrong, 2, "USAGE").await;
    }
    app.refuses(&["key", "retire", "1", "--no-wait"], 1, "IN_USE").await;
    app.refuses(&["key", "retire", "7"], 1, "NOT_FOUND").await;
    // Keys from the environment are changed there.
    let mut given = app.variables();
    given.push(("MUSTER_KEYS".to_owned(), String::from_utf8(before.clone()).unwrap()));
    let said = muster(&ENCRYPTION, &given).await.refused(1, "CONFLICT");
    assert!(said.contains("MUSTER_KEYS"), "{said}");
    assert_eq!(fs::read(path).unwrap(), before);
    // A file that others can read is refused, with the reason.
    fs::set_permissions(path, fs::Permissions::from_mode(0o644)).unwrap();
    let said = app.refuses(&ENCRYPTION, 1, "VALIDATION_FAILED").await;
    assert!(said.contains("chmod 600"), "{said}");
    assert_eq!(fs::read(path).unwrap(), before);
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
    assert_eq!(app.one::<i64>("SELECT COUNT(*) FROM signing_keys", vec![]).await, 1);
}
