//! Puts a saved file in force within a second.
//!
//! The system's notices make it fast; a poll makes it sure, because notices don't come from every network file system,
//! get lost when the folder itself is replaced, and can run out. The poll asks the file system what was changed, and reads
//! nothing else (`folder`). Every replica watches for itself.

use std::{path::Path, sync::Arc, time::Duration};

use futures::future::BoxFuture;
use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher, event::AccessKind};
use tokio::{sync::Notify, time};

use super::live::Policy;

/// How long after a notice the files are read: a save is often several writes.
const SETTLE: Duration = Duration::from_millis(100);
/// How often the folder is looked at without a notice.
const POLL: Duration = Duration::from_millis(700);

impl Policy {
    /// Puts every saved change in force, for as long as the future is polled. Needs tokio's timer. Before each look it waits
    /// for `given`, which gives what is new: whoever deletes a file has published its text before.
    pub async fn watch(self, given: impl Fn() -> BoxFuture<'static, ()>) {
        watch(self, given).await;
    }
}

async fn watch(policy: Policy, given: impl Fn() -> BoxFuture<'static, ()>) {
    let Some(dir) = policy.dir() else { return };
    let saved = Arc::new(Notify::new());
    // Kept for as long as we watch: dropped, it gives no more notices.
    let _notices = notices(dir, Arc::clone(&saved));
    loop {
        if time::timeout(POLL, saved.notified()).await.is_ok() {
            time::sleep(SETTLE).await;
        }
        given().await;
        let policy = policy.clone();
        let looked = tokio::task::spawn_blocking(move || policy.look()).await;
        if let Err(error) = looked {
            tracing::error!(%error, "reading the policy failed; the last good one stays in force");
        }
    }
}

fn notices(dir: &Path, saved: Arc<Notify>) -> Option<RecommendedWatcher> {
    let on_event = move |event: notify::Result<notify::Event>| {
        if event.is_ok_and(|event| is_change(event.kind)) {
            saved.notify_one();
        }
    };
    notify::recommended_watcher(on_event)
        .and_then(|mut watcher| watcher.watch(dir, RecursiveMode::Recursive).map(|()| watcher))
        .inspect_err(|error| tracing::warn!(%error, "no notices of saved policy files; they are polled"))
        .ok()
}

/// Our own reading gives notices of opening, which would make us read again, for ever.
fn is_change(kind: EventKind) -> bool {
    match kind {
        EventKind::Access(access) => matches!(access, AccessKind::Close(notify::event::AccessMode::Write)),
        _ => true,
    }
}
