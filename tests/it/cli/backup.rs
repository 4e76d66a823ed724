//! `muster backup` while the service is running: the backup can be restored, in spite of writes meanwhile, and all of it
//! or nothing.

use std::{
    fs,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use muster::core::store::backup::{backup, restore};

use crate::harness::{TestApp, config};

#[tokio::test]
async fn sqlite_a_backup_survives_a_replaced_policy_file() {
    let (app, policies) = TestApp::with_policy_folder().await;
    let orgs = policies.path().join("orgs");
    fs::create_dir_all(&orgs).unwrap();
    for hidden in [".notes.json", "orgs/.t1.csv"] {
        fs::write(policies.path().join(hidden), "{}").unwrap();
    }
    let (file, next) = (orgs.join("1.csv"), orgs.join(".t2.csv"));
    fs::write(&file, "# first\n").unwrap();
    let done = Arc::new(AtomicBool::new(false));
    let replacing = std::thread::spawn({
        let done = Arc::clone(&done);
        move || {
            for n in 0_usize.. {
                fs::write(&next, "# another one\n".repeat(n % 7)).unwrap();
                fs::rename(&next, &file).unwrap();
                if done.load(Ordering::Relaxed) {
                    return;
                }
            }
        }
    });
    for n in 0..8 {
        let out = app.folder().join(format!("{n}.backup"));
        let made = backup(&app.core.config, &out, app.clock.now()).await.unwrap();
        let names: Vec<&str> = made.files.iter().map(|file| file.name.as_str()).collect();
        assert!(names.contains(&"policies/orgs/1.csv"), "{names:?}");
        assert!(!names.iter().any(|name| name.contains("/.")), "{names:?}");
        let place = tempfile::tempdir().unwrap();
        let url = format!("sqlite://{}", place.path().join("muster.db").display());
        restore(&config(place.path(), &url), &out).await.unwrap();
    }
    done.store(true, Ordering::Relaxed);
    replacing.join().unwrap();
}

#[tokio::test]
async fn sqlite_a_failed_restore_leaves_no_policy_files() {
    let (app, policies) = TestApp::with_policy_folder().await;
    fs::create_dir_all(policies.path().join("orgs")).unwrap();
    fs::write(policies.path().join("orgs/1.csv"), "# first\n").unwrap();
    let file = app.folder().join("made.backup");
    backup(&app.core.config, &file, app.clock.now()).await.unwrap();
    let place = tempfile::tempdir().unwrap();
    let (database, folder) = (place.path().join("muster.db"), place.path().join("policies"));
    fs::create_dir(&folder).unwrap();
    // The database doesn't exist, but its name is taken.
    std::os::unix::fs::symlink(place.path().join("nowhere"), &database).unwrap();
    let mut there = config(place.path(), &format!("sqlite://{}", database.display()));
    there.policy_dir = Some(folder.clone());
    let refused = format!("{:#}", restore(&there, &file).await.unwrap_err());
    assert!(refused.starts_with(database.to_str().unwrap()), "{refused}");
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
    fs::remove_file(&database).unwrap();
    let (manifest, is_restored) = restore(&there, &file).await.unwrap();
    assert!(is_restored && manifest.policies() > 1);
    assert_eq!(fs::read_to_string(folder.join("orgs/1.csv")).unwrap(), "# first\n");
}
