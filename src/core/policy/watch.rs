//! Puts saved files in force within a second.
//!
//! File system notifications make this fast; a poll makes it reliable, because not every network file system sends
//! notifications, they stop when the folder itself is replaced, and they can run out. The poll only asks the file
//! system what changed (`folder`). Every replica watches for itself.

use std::{path::Path, sync::Arc, time::Duration};

use futures::future::BoxFuture;
use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher, event::AccessKind};
use tokio::{sync::Notify, time};

use super::live::Policy;

use crate::base::bounds;

impl Policy {
    /// Puts every saved change in force, for as long as the future is polled. Needs tokio's timer. Before each look it
    /// awaits `given`, which loads new rules: an operator who deletes a file has published its text first.
    pub async fn watch(self, given: impl Fn() -> BoxFuture<'static, ()>) {
        watch(self, given).await;
    }
}

async fn watch(policy: Policy, given: impl Fn() -> BoxFuture<'static, ()>) {
    let Some(dir) = policy.dir() else { return };
    let saved = Arc::new(Notify::new());
    // Dropping it would end the notifications.
    let _notices = notices(dir, Arc::clone(&saved));
    loop {
        if time::timeout(bounds::POLL, saved.notified()).await.is_ok() {
            // A save is often several writes.
            time::sleep(Duration::from_millis(100)).await;
        }
        given().await;
        let policy = policy.clone();
        let looked = tokio::task::spawn_blocking(move || policy.look()).await;
        if let Err(error) = looked {
            tracing::error!(%error, "reading the policy failed; the last valid one stays in force");
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
        .inspect_err(
            |error| tracing::warn!(%error, "no notifications of saved policy files; they are polled"),
        )
        .ok()
}

/// Our own reading causes access notifications, which would make us read again forever.
fn is_change(kind: EventKind) -> bool {
    match kind {
        EventKind::Access(access) => matches!(access, AccessKind::Close(notify::event::AccessMode::Write)),
        _ => true,
    }
}
