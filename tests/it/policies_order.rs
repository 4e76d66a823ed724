//! The order in publishing: what comes in between neither overtakes, nor is overlooked, nor undoes anything.
//!
//! A piece of work is stopped at every point where it waits for the database or the disk, one point after the other, and
//! there another replica edits, or somebody by hand, or the process is killed. So these tests don't know what is done in which order, and fail
//! where it is the wrong one: where the organization is not held while its file is put in place, where the mark is taken
//! after what it marks, where the note comes before the file.

use std::{
    fs,
    path::Path,
    pin::pin,
    sync::{Arc, mpsc},
    task::{Context, Poll, Wake, Waker},
    time::Duration,
};

use futures::{
    FutureExt,
    future::{BoxFuture, maybe_done},
};
use muster::{
    base::{enums::PolicyAuthor, ids::OrgId, problem::Result},
    core::{Core, access::Scope},
    slices::policies::{self, Version},
};
use serde_json::json;
use tempfile::TempDir;
use tokio::{
    runtime::{Builder, Runtime},
    sync::{Notify, oneshot},
    task::spawn_blocking,
    time::timeout,
};

use crate::harness::{TestApp, policy_folder};

/// How long who comes in between is waited for: he goes on at once, or has to wait for the work's end.
const PATIENCE: Duration = Duration::from_millis(400);
/// Who is not answered for so long while the disk does nothing waits for the disk.
const QUIET: Duration = Duration::from_millis(60);
/// When so many points in a row are not reached, there are none any more. One alone may be missed: an answer of the database
/// that is there at once is no point.
const BEYOND: usize = 3;

/// Where work is stopped.
#[derive(Clone, Copy, Debug)]
enum Stop {
    /// Where it waits for the nth time, for the database or the disk.
    Wait(usize),
    /// Where it waits for the disk for the nth time.
    Disk(usize),
}

/// Every point, for as long as `stops` says that it has come there.
fn at_every_point(mut stops: impl FnMut(Stop) -> bool) {
    for kind in [Stop::Wait as fn(usize) -> Stop, Stop::Disk] {
        let (mut reached, mut missed) = (0, 0);
        for n in 1.. {
            if stops(kind(n)) {
                (reached, missed) = (n, 0);
            } else {
                missed += 1;
            }
            if missed == BEYOND {
                break;
            }
        }
        println!("{:?} was the last point", kind(reached));
        assert!(reached > 1);
    }
}

type Work = BoxFuture<'static, Result<()>>;

struct Wakes(Notify);

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.notify_one();
    }
}

/// Where work is done that is to be stopped: one thread does what it wants of the disk.
fn stoppable() -> Runtime {
    Builder::new_current_thread().enable_all().max_blocking_threads(1).build().unwrap()
}

/// Keeps that thread busy until it is dropped.
async fn gate() -> mpsc::Sender<()> {
    let (open, shut) = mpsc::channel();
    let (busy, is_busy) = oneshot::channel();
    spawn_blocking(move || {
        let _ = busy.send(());
        let _ = shut.recv();
    });
    is_busy.await.unwrap();
    open
}

/// Polls `work` up to a point. What it wants of the disk in a poll, it gets after the poll; in the last one, when the gate
/// that is answered opens. None if the work has ended before.
async fn polled(work: &mut Work, stop: Stop) -> Option<mpsc::Sender<()>> {
    let wakes = Arc::new(Wakes(Notify::new()));
    let waker = Waker::from(Arc::clone(&wakes));
    let mut disk = 0;
    for wait in 1.. {
        let gate = gate().await;
        if let Poll::Ready(done) = work.poll_unpin(&mut Context::from_waker(&waker)) {
            done.unwrap();
            return None;
        }
        let here = match stop {
            Stop::Wait(n) => wait == n,
            Stop::Disk(n) => {
                let woken = timeout(QUIET, wakes.0.notified()).await.is_ok();
                if woken {
                    wakes.0.notify_one();
                }
                disk += usize::from(!woken);
                disk == n && !woken
            }
        };
        if here {
            return Some(gate);
        }
        drop(gate);
        wakes.0.notified().await;
    }
    None
}

async fn publish(app: Arc<Core>, org: OrgId, text: String) -> Result<()> {
    let edit = policies::Edit { version: None, text, reason: "because".to_owned() };
    policies::edit(&Scope::system(&app, org), edit).await.map(drop)
}

/// A text that no file has had before.
fn text(org: OrgId, whose: &str, at: Stop) -> String {
    format!("# {whose}, stopped at {at:?}\np, VIEWER, {org}, contact.view, allow\n")
}

/// A service with a folder, and replicas over the same database.
struct Scene {
    app: TestApp,
    org: OrgId,
    dir: TempDir,
    /// Where the service runs.
    main: Runtime,
}

impl Scene {
    fn new() -> Self {
        let main = Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let (app, dir) = main.block_on(TestApp::with_policy_folder());
        Self { org: OrgId(app.org), app, dir, main }
    }

    fn replica(&self, runtime: &Runtime, dir: &Path) -> Arc<Core> {
        runtime.block_on(self.app.replica(Some(dir)))
    }

    /// Does `work`; the service does something else in between, at that point. Whether there is such a point.
    fn interrupted(&self, slow: &Runtime, mut work: Work, at: Stop, between: Work) -> bool {
        slow.block_on(async {
            let Some(gate) = polled(&mut work, at).await else { return false };
            let mut between = self.main.spawn(between);
            let done = timeout(PATIENCE, &mut between).await;
            drop(gate);
            work.await.unwrap();
            match done {
                Ok(done) => done,
                Err(_) => between.await,
            }
            .unwrap()
            .unwrap();
            true
        })
    }

    fn history(&self) -> Vec<Version> {
        self.main.block_on(policies::history(&self.app.scope(), 1_000)).unwrap()
    }

    /// The stranger has no part in any of it.
    fn end(self) {
        let revert =
            "mutation($o: Id!) { revertPolicy(orgId: $o, input: { versionId: 1, reason: \"me\" }) { text } }";
        let refused = self.main.block_on(self.app.stranger.gql(revert, json!({ "o": self.app.org })));
        assert_eq!(refused.code(), "NOT_A_MEMBER");
    }
}

fn file(dir: &Path, org: OrgId) -> Option<String> {
    fs::read_to_string(dir.join(format!("orgs/{org}.csv"))).ok()
}

fn write(dir: &Path, org: OrgId, text: &str) {
    fs::write(dir.join(format!("orgs/{org}.csv")), text).unwrap();
}

fn by_hand(history: &[Version]) -> usize {
    history.iter().filter(|version| version.author_kind == PolicyAuthor::File).count()
}

/// A replica in the service's folder does `work`, which publishes one version of its own or of somebody else; the service
/// publishes another one meanwhile, at every point of it.
fn the_newest_version_wins(scene: Scene, work: impl Fn(&Scene, &Arc<Core>, Stop) -> Work) {
    let (slow, org) = (stoppable(), scene.org);
    let other = scene.replica(&slow, scene.dir.path());
    let mut versions = 0;
    at_every_point(|at| {
        let work = work(&scene, &other, at);
        let quick = publish(Arc::clone(&scene.app.core), org, text(org, "quick", at)).boxed();
        let stopped = scene.interrupted(&slow, work, at, quick);
        let newest = scene.history().remove(0).text;
        assert_eq!(file(scene.dir.path(), org), newest, "stopped at {at:?}: the file has the newest version");
        scene.main.block_on(policies::sync(&scene.app.core)).unwrap();
        slow.block_on(policies::sync(&other)).unwrap();
        for replica in [&scene.app.core, &other] {
            assert_eq!(
                replica.policy.org_text(org),
                newest,
                "stopped at {at:?}: all replicas have it in force"
            );
        }
        let history = scene.history();
        assert_eq!(by_hand(&history), 0, "stopped at {at:?}: nobody has edited by hand");
        versions += 1 + usize::from(stopped);
        assert_eq!(history.len(), versions, "stopped at {at:?}: every edit is kept");
        stopped
    });
    slow.block_on(other.shut_down());
    scene.end();
}

#[test]
fn an_edit_while_another_replica_publishes_one_is_not_overwritten() {
    the_newest_version_wins(Scene::new(), |scene, other, at| {
        publish(Arc::clone(other), scene.org, text(scene.org, "slow", at)).boxed()
    });
}

#[test]
fn an_edit_while_another_replica_brings_the_folder_up_to_date_is_not_overwritten() {
    let (scene, own) = (Scene::new(), policy_folder());
    let elsewhere = scene.replica(&scene.main, own.path());
    the_newest_version_wins(scene, move |scene, other, at| {
        let (elsewhere, other) = (Arc::clone(&elsewhere), Arc::clone(other));
        scene.main.block_on(publish(elsewhere, scene.org, text(scene.org, "elsewhere", at))).unwrap();
        async move { policies::sync(&other).await.map(drop) }.boxed()
    });
}

#[test]
fn a_version_that_comes_while_a_replica_looks_is_found_in_its_next_round() {
    let (scene, slow, own) = (Scene::new(), stoppable(), policy_folder());
    let (org, second) = (scene.org, OrgId(scene.app.other_org));
    let other = scene.replica(&slow, own.path());
    at_every_point(|at| {
        let texts = [text(org, "first", at), text(second, "second", at)];
        let first = publish(Arc::clone(&scene.app.core), org, texts[0].clone());
        scene.main.block_on(first).unwrap();
        let looking = Arc::clone(&other);
        let work = async move { policies::sync(&looking).await.map(drop) }.boxed();
        let quick = publish(Arc::clone(&scene.app.core), second, texts[1].clone()).boxed();
        let stopped = scene.interrupted(&slow, work, at, quick);
        slow.block_on(policies::sync(&other)).unwrap();
        for (org, text) in [org, second].into_iter().zip(&texts).take(1 + usize::from(stopped)) {
            assert_eq!(other.policy.org_text(org).as_ref(), Some(text), "stopped at {at:?}: overlooked");
            assert_eq!(file(own.path(), org).as_ref(), Some(text), "stopped at {at:?}");
        }
        stopped
    });
    slow.block_on(other.shut_down());
    scene.end();
}

#[test]
fn a_hand_edit_that_another_replica_has_taken_and_undone_meanwhile_is_not_made_again() {
    let (scene, slow) = (Scene::new(), stoppable());
    let (org, dir) = (scene.org, scene.dir.path().to_owned());
    let other = scene.replica(&slow, &dir);
    let mut edits = 0;
    at_every_point(|at| {
        let (base, hand) = (text(org, "base", at), text(org, "hand", at));
        let service = Arc::clone(&scene.app.core);
        scene.main.block_on(publish(Arc::clone(&service), org, base.clone())).unwrap();
        slow.block_on(policies::sync(&other)).unwrap();
        write(&dir, org, &hand);
        other.policy.reload().unwrap();
        edits += 1;
        let (looking, again) = (Arc::clone(&other), base.clone());
        let work = async move { policies::sync(&looking).await.map(drop) }.boxed();
        let stopped = scene.interrupted(&slow, work, at, publish(service, org, again).boxed());
        slow.block_on(policies::sync(&other)).unwrap();
        let newest = if stopped { base } else { hand };
        assert_eq!(file(&dir, org), Some(newest.clone()), "stopped at {at:?}");
        assert_eq!(other.policy.org_text(org), Some(newest), "stopped at {at:?}");
        assert_eq!(by_hand(&scene.history()), edits, "stopped at {at:?}: it was one edit");
        stopped
    });
    slow.block_on(other.shut_down());
    scene.end();
}

/// What was read of the folder is old by the time that the organization is held.
#[test]
fn a_hand_edit_that_somebody_has_changed_again_is_not_taken_as_it_was_read() {
    let (scene, slow) = (Scene::new(), stoppable());
    let (org, dir) = (scene.org, scene.dir.path().to_owned());
    let other = scene.replica(&slow, &dir);
    at_every_point(|at| {
        let [base, hand, again] = ["base", "hand", "again"].map(|whose| text(org, whose, at));
        let service = Arc::clone(&scene.app.core);
        scene.main.block_on(publish(Arc::clone(&service), org, base.clone())).unwrap();
        slow.block_on(policies::sync(&other)).unwrap();
        write(&dir, org, &hand);
        other.policy.reload().unwrap();
        let looking = Arc::clone(&other);
        let work = async move { policies::sync(&looking).await.map(drop) }.boxed();
        let between = {
            let (dir, base, again) = (dir.clone(), base.clone(), again.clone());
            async move {
                write(&dir, org, &again);
                publish(service, org, base).await
            }
        };
        let stopped = scene.interrupted(&slow, work, at, between.boxed());
        slow.block_on(policies::sync(&other)).unwrap();
        let history = scene.history();
        let newest = if stopped { &base } else { &hand };
        assert_eq!(history[0].text.as_ref(), Some(newest), "stopped at {at:?}: it stays undone");
        assert_eq!(file(&dir, org).as_ref(), Some(newest), "stopped at {at:?}");
        let times =
            |text: &str| history.iter().filter(|version| version.text.as_deref() == Some(text)).count();
        if stopped {
            assert_eq!(history[1].text.as_ref(), Some(&again), "stopped at {at:?}: nothing came in between");
        }
        assert_eq!(times(&again), usize::from(stopped), "stopped at {at:?}");
        assert!(times(&hand) <= 1, "stopped at {at:?}");
        stopped
    });
    slow.block_on(other.shut_down());
    scene.end();
}

/// Somebody takes a hand edit back, and the replica that does it is busy before it has replaced the file.
#[test]
fn a_hand_edit_that_was_taken_back_is_not_made_again_while_the_file_still_has_it() {
    let (scene, slow) = (Scene::new(), stoppable());
    let (org, dir) = (scene.org, scene.dir.path().to_owned());
    let other = scene.replica(&slow, &dir);
    let mut edits = 0;
    let sync = |app: &Arc<Core>| {
        let app = Arc::clone(app);
        async move { policies::sync(&app).await.map(drop) }.boxed()
    };
    at_every_point(|at| {
        let (base, hand) = (text(org, "base", at), text(org, "hand", at));
        let service = &scene.app.core;
        scene.main.block_on(publish(Arc::clone(service), org, base.clone())).unwrap();
        slow.block_on(sync(&other)).unwrap();
        write(&dir, org, &hand);
        edits += 1;
        let stopped = slow.block_on(async {
            let mut undoing = publish(Arc::clone(&other), org, base.clone()).boxed();
            let Some(gate) = polled(&mut undoing, at).await else { return false };
            drop(gate);
            // From here on a round of its own keeps it from the folder, but not from the database.
            // (A database that answers in the same breath may end it at once, where there was nothing to do.)
            let mut round = pin!(maybe_done(sync(&other)));
            let _ = round.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            let done = timeout(PATIENCE, &mut undoing).await;
            scene.main.spawn(sync(service)).await.unwrap().unwrap();
            round.as_mut().await;
            round.take_output().unwrap().unwrap();
            match done {
                Ok(done) => done,
                Err(_) => undoing.await,
            }
            .unwrap();
            true
        });
        scene.main.block_on(sync(service)).unwrap();
        slow.block_on(sync(&other)).unwrap();
        assert_eq!(by_hand(&scene.history()), edits, "stopped at {at:?}: it was one edit");
        assert_eq!(scene.history()[0].text.as_ref(), Some(&base), "stopped at {at:?}: it stays undone");
        assert_eq!(file(&dir, org).as_ref(), Some(&base), "stopped at {at:?}");
        // The same edit once more is an edit.
        write(&dir, org, &hand);
        edits += 1;
        service.policy.reload().unwrap();
        scene.main.block_on(sync(service)).unwrap();
        slow.block_on(sync(&other)).unwrap();
        assert_eq!(by_hand(&scene.history()), edits, "stopped at {at:?}: it was another edit");
        assert_eq!(other.policy.org_text(org), Some(hand), "stopped at {at:?}");
        stopped
    });
    slow.block_on(other.shut_down());
    scene.end();
}

/// A replica with a folder of its own does `work`; its file is edited by hand meanwhile, at every point of it. That edit is
/// kept, and so is whatever `work` publishes.
fn a_hand_edit_meanwhile_is_kept(work: impl Fn(&Scene, &Arc<Core>, Stop) -> Work) {
    let (scene, slow, own) = (Scene::new(), stoppable(), policy_folder());
    let org = scene.org;
    let other = scene.replica(&slow, own.path());
    // In a folder that has never been seen, the database would be right.
    let first = format!("p, VIEWER, {org}, contact.view, allow\n");
    scene.main.block_on(publish(Arc::clone(&scene.app.core), org, first)).unwrap();
    slow.block_on(policies::sync(&other)).unwrap();
    at_every_point(|at| {
        let hand = text(org, "hand", at);
        let (dir, edit) = (own.path().to_owned(), hand.clone());
        let between = async move {
            write(&dir, org, &edit);
            Ok(())
        };
        let stopped = scene.interrupted(&slow, work(&scene, &other, at), at, between.boxed());
        other.policy.reload().unwrap();
        slow.block_on(policies::sync(&other)).unwrap();
        let history = scene.history();
        let has = |wanted: &str| history.iter().any(|version| version.text.as_deref() == Some(wanted));
        assert!(has(&text(org, "slow", at)), "stopped at {at:?}: what was published is in the history");
        assert_eq!(has(&hand), stopped, "stopped at {at:?}: the hand edit is in the history");
        let newest = &history[0].text;
        assert_eq!(&file(own.path(), org), newest, "stopped at {at:?}");
        assert_eq!(&other.policy.org_text(org), newest, "stopped at {at:?}");
        stopped
    });
    slow.block_on(other.shut_down());
    scene.end();
}

#[test]
fn a_hand_edit_while_a_replica_publishes_is_not_overwritten() {
    a_hand_edit_meanwhile_is_kept(|scene, other, at| {
        publish(Arc::clone(other), scene.org, text(scene.org, "slow", at)).boxed()
    });
}

#[test]
fn a_hand_edit_while_a_replica_brings_its_folder_up_to_date_is_not_overwritten() {
    a_hand_edit_meanwhile_is_kept(|scene, other, at| {
        let (service, other) = (Arc::clone(&scene.app.core), Arc::clone(other));
        scene.main.block_on(publish(service, scene.org, text(scene.org, "slow", at))).unwrap();
        async move { policies::sync(&other).await.map(drop) }.boxed()
    });
}

/// A replica with a folder of its own is killed at every point of its `work`, and started again. `check` sees the history
/// before the work and after the start.
fn killed_and_started(
    work: impl Fn(&Arc<Core>, &Path, OrgId, Stop) -> Work,
    check: impl Fn(&[Version], &[Version], Stop),
) {
    let (scene, own) = (Scene::new(), policy_folder());
    let org = scene.org;
    let start = || {
        let slow = stoppable();
        let replica = scene.replica(&slow, own.path());
        slow.block_on(policies::sync(&replica)).unwrap();
        (slow, replica)
    };
    let mut running = Some(start());
    at_every_point(|at| {
        let before = scene.history();
        let (slow, replica) = running.take().unwrap();
        let mut work = work(&replica, own.path(), org, at);
        let gate = slow.block_on(polled(&mut work, at));
        slow.block_on(async {
            drop(work);
            replica.db.close().await;
        });
        slow.shutdown_background();
        let stopped = gate.is_some();
        // Never opened: what stands in line for the disk is not done any more.
        std::mem::forget(gate);
        let (slow, replica) = start();
        let after = scene.history();
        check(&before, &after, at);
        let newest = after.first().and_then(|newest| newest.text.clone());
        assert_eq!(file(own.path(), org), newest, "killed at {at:?}: the file has the newest version");
        assert_eq!(replica.policy.org_text(org), newest, "killed at {at:?}");
        running = Some((slow, replica));
        stopped
    });
    scene.end();
}

#[test]
fn an_edit_that_is_killed_is_made_or_is_not_and_is_never_taken_back() {
    killed_and_started(
        |replica, _, org, at| publish(Arc::clone(replica), org, text(org, "edit", at)).boxed(),
        |before, after, at| {
            assert_eq!(by_hand(after), 0, "killed at {at:?}: nobody has edited by hand");
            assert!(after.len() - before.len() <= 1, "killed at {at:?}");
        },
    );
}

#[test]
fn a_hand_edit_is_not_lost_when_its_taking_is_killed() {
    killed_and_started(
        |replica, dir, org, at| {
            write(dir, org, &text(org, "hand", at));
            replica.policy.reload().unwrap();
            let replica = Arc::clone(replica);
            async move { policies::sync(&replica).await.map(drop) }.boxed()
        },
        |before, after, at| {
            assert_eq!(after.len() - before.len(), 1, "killed at {at:?}: it is one version");
            assert_eq!(by_hand(after), after.len(), "killed at {at:?}");
        },
    );
}
