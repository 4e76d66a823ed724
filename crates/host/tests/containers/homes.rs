//! Backups of homes in containers: a restore is exact, whichever user runs the host.

use std::{
    fs::{self, Permissions},
    os::unix::fs::{PermissionsExt, chown, lchown},
    path::{Path, PathBuf},
};

use muster_protocol::{Command, HostEvent, event::TurnOutcome};

use crate::{
    engine::{Contained, Own, PROBE},
    support::{Plane, State},
};

/// Files of several users, with modes, times, names and holes; and folders that engines omit from archives.
const MAKE: &str = "mkdir -p dev/deep proc sys closed; echo one >dev/deep/file; chmod 640 dev/deep/file; ln dev/deep/file twin; \
    ln -s /etc/passwd out; dd if=/dev/zero of=sparse bs=1 count=0 seek=8388608; echo theirs >closed/in; \
    chown 12345:54321 closed/in; chmod 500 closed; touch -d '2020-02-02 02:02' dev/deep/file closed";
const SPOIL: &str = "rm -rf dev proc closed out; echo two >twin; echo new >new";
/// All entries but the home itself, which changes with each entry.
const LOOK: &str = "find . ! -name . -type d -exec stat -c '%n %A %u %g %Y' {} \\; | sort; \
    find . -type f -exec stat -c '%n %A %u %g %h %s %Y' {} \\; | sort; find . -type f -exec sha256sum {} \\; | sort; \
    find . -type l | sort | while read -r link; do stat -c '%n %u %g' $link; readlink $link; done; stat -c '%A %u %g' .";

fn volume(host: &Contained) -> String {
    format!("muster-{}-7-0", &host.id()[..12])
}

/// Runs a script in the home as the engine's root.
fn root(host: &Contained, script: &str) -> String {
    let (mount, script) =
        (format!("{}:/home/agent", volume(host)), format!("cd /home/agent && {{ {script}; }}"));
    let program = ["--entrypoint", "/busybox", PROBE, "sh", "-c", &script];
    host.says(&[&["run", "--rm", "--network", "none", "--volume", &mount][..], &program].concat())
}

/// The homes from before restores.
fn old_homes(host: &Contained) -> usize {
    let home = PathBuf::from(host.says(&["volume", "inspect", "--format", "{{.Mountpoint}}", &volume(host)]));
    let beside = fs::read_dir(home.parent().unwrap()).unwrap().flatten();
    beside.filter(|entry| entry.file_name().to_string_lossy().starts_with("_data.")).count()
}

fn backed_up(state: &State, agent_id: i64, id: i64) -> Option<Result<String, String>> {
    state.events_of(agent_id).find_map(|what| match what {
        HostEvent::BackedUp { backup_id, sha256, error, .. } if *backup_id == id => {
            Some(sha256.clone().ok_or_else(|| error.clone().unwrap()))
        }
        _ => None,
    })
}

async fn back_up(plane: &Plane, (agent_id, generation): (i64, i64), id: i64) -> Result<String, String> {
    plane.order(agent_id, generation, Command::Backup { backup_id: id });
    plane.wait("it is backed up", |state| backed_up(state, agent_id, id)).await
}

fn restored(state: &State) -> Option<Result<(), String>> {
    state.events_of(7).find_map(|what| match what {
        HostEvent::Restored { error, .. } => Some(error.clone().map_or(Ok(()), Err)),
        _ => None,
    })
}

async fn comes_back(plane: &Plane, host: &Contained) {
    let why = back_up(plane, (8, 0), 1).await.unwrap_err();
    assert!(why.contains("never started here"), "{why}");
    plane.launch(7, 1).await;
    plane.say(7, 1, 70, "remember a").await;
    plane.order(7, 1, Command::Stop);
    plane.set(|state| state.wanted.clear());
    plane.wait("it is stopped", |state| state.ended(7, 1)).await;
    root(host, MAKE);
    let before = root(host, LOOK);
    assert!(before.contains("./closed/in -rw-r--r-- 12345 54321 1 7 "), "{before}");
    let sha256 = back_up(plane, (7, 1), 2).await.unwrap();
    root(host, SPOIL);
    assert_ne!(root(host, LOOK), before);
    plane.order(7, 1, Command::Restore { backup_id: 2, sha256 });
    plane.wait("it is restored", restored).await.unwrap();
    assert_eq!(root(host, LOOK), before);
    assert_eq!(old_homes(host), 1, "the home from before is kept");
    plane.launch(7, 2).await;
    let turn = plane.turn(7, 2, 70, "recall");
    assert_eq!(plane.end_of(turn).await.outcome, TurnOutcome::Done);
    let texts = plane.lock().texts(turn).concat();
    assert!(texts.contains("I remember: a."), "{texts}");
    plane.wait("the home from before is gone", |_| (old_homes(host) == 0).then_some(())).await;
    // Also while it runs.
    back_up(plane, (7, 2), 3).await.unwrap();
    let alone = |_: &State| (host.containers() == [host.name(7, 2)]).then_some(());
    plane.wait("nothing is left beside it", alone).await;
    plane.lock().check();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs an engine: tests/containers"]
async fn a_home_comes_back_as_it_was() {
    let plane = Plane::start().await;
    let host = Contained::start(&plane, &[]);
    comes_back(&plane, &host).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs an engine: tests/containers"]
async fn a_home_comes_back_as_it_was_for_a_host_that_is_not_root() {
    let plane = Plane::start().await;
    let engine = Own::start();
    let socket = engine.socket();
    chown(&socket, Some(65_534), None).unwrap();
    fs::set_permissions(Path::new(&socket).parent().unwrap(), Permissions::from_mode(0o711)).unwrap();
    let mut host = Contained::with(&plane, &socket, &[]);
    host.terminate();
    give(host.path().parent().unwrap());
    host.within =
        ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"].map(str::to_owned).to_vec();
    host.run();
    comes_back(&plane, &host).await;
}

/// Gives everything in a folder to an unprivileged user.
fn give(path: &Path) {
    lchown(path, Some(65_534), Some(65_534)).unwrap();
    if path.is_dir() && !path.is_symlink() {
        for entry in fs::read_dir(path).unwrap() {
            give(&entry.unwrap().path());
        }
    }
}
