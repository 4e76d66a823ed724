//! Backups of agents' homes with real agents: made while they run, restored when they are stopped, each command once,
//! despite kills.

use std::{fs, path::PathBuf, time::Duration};

use muster_protocol::{Command, HostEvent, event::TurnOutcome};

use crate::support::{Host, Plane, State};

/// The result of a backup: its digest, or an error.
fn backed_up(state: &State, id: i64) -> Option<Result<String, String>> {
    state.events_of(7).find_map(|what| match what {
        HostEvent::BackedUp { backup_id, sha256, error, .. } if *backup_id == id => {
            Some(sha256.clone().ok_or_else(|| error.clone().unwrap()))
        }
        _ => None,
    })
}

/// The results of a restore.
fn restored(state: &State, id: i64) -> Vec<Option<String>> {
    let ends = state.events_of(7).filter_map(|what| match what {
        HostEvent::Restored { backup_id, error } if *backup_id == id => Some(error.clone()),
        _ => None,
    });
    ends.collect()
}

async fn back_up(plane: &Plane, generation: i64, id: i64) -> Result<String, String> {
    plane.order(7, generation, Command::Backup { backup_id: id });
    plane.wait("it is backed up", |state| backed_up(state, id)).await
}

async fn restore(plane: &Plane, generation: i64, id: i64, sha256: &str) -> Option<String> {
    let before = restored(&plane.lock(), id).len();
    plane.order(7, generation, Command::Restore { backup_id: id, sha256: sha256.to_owned() });
    plane.wait("it is restored", |state| restored(state, id).get(before).cloned()).await
}

async fn stop(plane: &Plane, generation: i64) {
    plane.order(7, generation, Command::Stop);
    plane.set(|state| state.wanted.clear());
    plane.wait("it is stopped", |state| state.ended(7, generation)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restore_brings_back_the_agents_memory() {
    let plane = Plane::start().await;
    let host = Host::start(&plane, &[]);
    plane.launch(7, 1).await;
    plane.say(7, 1, 70, "remember a").await;
    let file = host.home(7).join("notes");
    fs::write(&file, "first").unwrap();
    let sha256 = back_up(&plane, 1, 1).await.unwrap();
    plane.say(7, 1, 70, "remember b").await;
    fs::write(&file, "second").unwrap();
    let refused = restore(&plane, 1, 1, &sha256).await;
    assert!(refused.is_some_and(|why| why.contains("The agent is running")));
    assert_eq!(fs::read_to_string(&file).unwrap(), "second");
    stop(&plane, 1).await;
    assert_eq!(restore(&plane, 1, 1, &sha256).await, None);
    assert_eq!(fs::read_to_string(&file).unwrap(), "first");
    let before = || fs::read_dir(file.parent().unwrap().parent().unwrap()).unwrap().flatten();
    let olds = || before().filter(|entry| entry.file_name().to_string_lossy().starts_with("home.")).count();
    assert_eq!(olds(), 1, "the home from before is kept");
    plane.launch(7, 2).await;
    let turn = plane.turn(7, 2, 70, "recall");
    assert_eq!(plane.end_of(turn).await.outcome, TurnOutcome::Done);
    let texts = plane.lock().texts(turn).concat();
    assert!(texts.contains("I remember: a."), "{texts}");
    plane.wait("the home from before is gone", |_| (olds() == 0).then_some(())).await;
    // A deadline doesn't apply.
    plane.order_until(1000, 7, 2, Command::Forget { backup_id: 1 });
    let kept = host.path().join("backups/7/1.tar.zst");
    plane.wait("the file is gone", |_| (!kept.exists()).then_some(())).await;
    let why = restore_of_nothing(&plane, &sha256).await;
    assert!(why.contains("no longer on this host"), "{why}");
    assert!(!plane.lock().events_of(7).any(|what| matches!(what, HostEvent::Refused { .. })));
    plane.lock().check();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_home_from_before_that_can_not_be_removed_is_removed_later() {
    let plane = Plane::start().await;
    let mut host = Host::start(&plane, &[]);
    plane.launch(7, 1).await;
    let sha256 = back_up(&plane, 1, 1).await.unwrap();
    stop(&plane, 1).await;
    assert_eq!(restore(&plane, 1, 1, &sha256).await, None);
    let home = host.home(7);
    let mut beside = fs::read_dir(home.parent().unwrap()).unwrap().flatten().map(|entry| entry.path());
    let is_old = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().starts_with("home.before-");
    let old = beside.find(is_old).unwrap();
    // A file in its place can't be removed as a folder.
    fs::remove_dir_all(&old).unwrap();
    fs::write(&old, "").unwrap();
    plane.launch(7, 2).await;
    // Commands run in order: the removal was tried before this.
    back_up(&plane, 2, 2).await.unwrap();
    assert!(old.is_file());
    fs::remove_file(&old).unwrap();
    fs::create_dir(&old).unwrap();
    host.kill();
    host.run();
    plane.wait("the home from before is gone", |_| (!old.exists()).then_some(())).await;
    plane.lock().check();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failed_backup_removal_is_retried_after_a_host_restart() {
    let plane = Plane::start().await;
    let mut host = Host::start(&plane, &[]);
    plane.launch(7, 1).await;
    back_up(&plane, 1, 1).await.unwrap();
    let kept = host.path().join("backups/7/1.tar.zst");
    // A folder in its place can't be removed as a file.
    fs::remove_file(&kept).unwrap();
    fs::create_dir(&kept).unwrap();
    plane.order(7, 1, Command::Forget { backup_id: 1 });
    // Commands run in order: the removal was tried before this.
    back_up(&plane, 1, 2).await.unwrap();
    assert!(kept.is_dir());
    host.kill();
    fs::remove_dir(&kept).unwrap();
    fs::write(&kept, "").unwrap();
    host.run();
    plane.wait("the file is gone", |_| (!kept.exists()).then_some(())).await;
    plane.lock().check();
}

async fn restore_of_nothing(plane: &Plane, sha256: &str) -> String {
    stop(plane, 2).await;
    restore(plane, 2, 1, sha256).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_host_completes_its_backup_and_restore() {
    let plane = Plane::start().await;
    let mut host = Host::start(&plane, &[]);
    plane.launch(7, 1).await;
    let home = host.home(7);
    let noise: Vec<u8> =
        (0..4_000_000_u32).flat_map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes()).collect();
    for n in 0..5 {
        fs::write(home.join(format!("noise{n}")), &noise).unwrap();
    }
    plane.order(7, 1, Command::Backup { backup_id: 1 });
    let folder = host.path().join("backups/7");
    for pause in [30, 60, 120] {
        plane.wait("it writes", |_| folder.join("1.tar.part").exists().then_some(())).await;
        tokio::time::sleep(Duration::from_millis(pause)).await;
        host.kill();
        assert!(backed_up(&plane.lock(), 1).is_some() || !folder.join("1.tar.zst").exists());
        host.run();
    }
    let sha256 = plane.wait("it is backed up", |state| backed_up(state, 1)).await.unwrap();
    fs::write(home.join("noise0"), "changed").unwrap();
    stop(&plane, 1).await;
    plane.order(7, 1, Command::Restore { backup_id: 1, sha256 });
    let beside = |name: &str| home.with_file_name(name).exists();
    for pause in [20, 80, 200] {
        let begun =
            |state: &State| (beside("home.unpacking") || !restored(state, 1).is_empty()).then_some(());
        plane.wait("it unpacks", begun).await;
        tokio::time::sleep(Duration::from_millis(pause)).await;
        host.kill();
        let first = fs::read(home.join("noise0")).unwrap();
        assert!(first == noise || first == b"changed", "the home is the old one or the new one");
        host.run();
    }
    // The launch waits for its home.
    plane.launch(7, 2).await;
    assert_eq!(restored(&plane.lock(), 1), [None], "it is reported once");
    assert!(fs::read(home.join("noise0")).unwrap() == noise);
    assert!(!beside("home.unpacking"));
    plane.lock().check();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failed_restore_says_why_and_keeps_the_home() {
    let plane = Plane::start().await;
    let host = Host::start(&plane, &[]);
    let why = back_up(&plane, 0, 1).await.unwrap_err();
    assert!(why.contains("never started here"), "{why}");
    plane.launch(7, 1).await;
    let file = host.home(7).join("notes");
    fs::write(&file, "first").unwrap();
    let sha256 = back_up(&plane, 1, 2).await.unwrap();
    let kept = host.path().join("backups/7/2.tar.zst");
    let mut bytes = fs::read(&kept).unwrap();
    bytes[20] ^= 1;
    fs::write(&kept, bytes).unwrap();
    fs::write(&file, "second").unwrap();
    stop(&plane, 1).await;
    let why = restore(&plane, 1, 2, &sha256).await.unwrap();
    assert!(why.contains("was changed"), "{why}");
    assert_eq!(fs::read_to_string(&file).unwrap(), "second");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_in_place_of_a_folder_is_reported() {
    let plane = Plane::start().await;
    let host = Host::start(&plane, &[]);
    plane.launch(7, 1).await;
    let backups = host.path().join("backups");
    fs::create_dir(&backups).unwrap();
    for path in [backups.join("7"), backups.clone()] {
        fs::write(&path, "").unwrap();
        let why = back_up(&plane, 1, if path == backups { 2 } else { 1 }).await.unwrap_err();
        assert_eq!(why, format!("{} is not a folder. Move it away.", path.display()));
        fs::remove_file(&path).unwrap();
        let _ = fs::remove_dir(&backups);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_nearly_full_disk_is_not_filled() {
    let plane = Plane::start().await;
    // More than any disk has.
    let host = Host::start(&plane, &["--reserve-mb", "1000000000"]);
    plane.launch(7, 1).await;
    let why = back_up(&plane, 1, 1).await.unwrap_err();
    assert!(why.contains("disk is full"), "{why}");
    let left = fs::read_dir(host.path().join("backups/7")).unwrap().count();
    assert_eq!(left, 0);
    assert_eq!(plane.say(7, 1, 70, "Hello").await.outcome, TurnOutcome::Done);
}
