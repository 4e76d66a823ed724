//! "… is typing": shown in a chat while the agent works on its answer, if the vendor supports it.
//!
//! Part of listening, which one process does for each channel. While the agent is idle, it waits for events of turns
//! and does not query the database.

use std::{collections::HashMap, sync::Arc, time::Duration};

use muster_channels::Transport;
use tokio::time::{Instant, sleep, timeout};

use super::queries::chats_being_answered;
use crate::{
    base::{
        bounds,
        enums::{ChannelDirection, RecordKind},
        problem::Result,
    },
    core::{
        Core, News,
        access::{Caller, Scope},
        events::Subscription,
    },
    domain::channels::Channel,
};

/// Shows the indicator until dropped, in at most twenty chats of the channel. Ignores failures of the vendor.
pub(super) async fn show(core: &Arc<Core>, channel: &Channel, transport: &dyn Transport) -> Result<()> {
    let Some(again) = transport.traits().abilities.typing else { return std::future::pending().await };
    if channel.direction != ChannelDirection::Bidirectional {
        return std::future::pending().await;
    }
    let scope = Scope::system(core, channel.organization_id);
    let mut news = core.events.subscribe(scope.org, &Caller::System);
    let mut shown: HashMap<String, Instant> = HashMap::new();
    loop {
        let targets = chats_being_answered(&scope, channel.id, 20).await?;
        shown.retain(|target, _| targets.contains(target));
        if targets.is_empty() {
            wait_for_turn(&mut news).await;
            continue;
        }
        for target in targets {
            if shown.get(&target).is_some_and(|at| at.elapsed() < again) {
                continue;
            }
            if let Ok(Err(failure)) = timeout(bounds::BRIEF_WAIT, transport.typing(&target)).await {
                tracing::debug!(channel = channel.id.0, %failure, "channel.writing_not_shown");
            }
            shown.insert(target, Instant::now());
        }
        sleep(Duration::from_secs(4)).await;
    }
}

/// Waits until a turn may have started.
async fn wait_for_turn(news: &mut Subscription) {
    loop {
        match news.next().await {
            Some((News::Changed(event), _)) if event.kind != RecordKind::Turn => {}
            Some((News::Recheck, _)) => {}
            Some(_) => return,
            None => return std::future::pending().await,
        }
    }
}
