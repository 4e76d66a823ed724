//! `muster backup` while the service is running: the backup can be restored, whatever is written meanwhile.

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
async fn sqlite_a_policy_file_replaced_during_a_backup_does_not_spoil_it() {
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
    assert_eq!(app.stranger.get(&format!("/v1/org/{}", app.org)).await.status, 403);
}
