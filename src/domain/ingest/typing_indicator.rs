//! "… is writing": shown in a chat for as long as the agent works on its answer, where the vendor has that.
//!
//! It belongs to listening, which one process does for each channel. While nothing is written it waits for news of turns, and asks
//! the database nothing.

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

/// Shows it until it is dropped, in twenty chats of the channel at most. What a vendor does not hear is no loss.
pub(super) async fn show(core: &Arc<Core>, channel: &Channel, transport: &dyn Transport) -> Result<()> {
    let Some(again) = transport.traits().actions.typing else { return std::future::pending().await };
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
            of_turns(&mut news).await;
            continue;
        }
        for target in targets {
            if shown.get(&target).is_some_and(|at| at.elapsed() < again) {
                continue;
            }
            if let Ok(Err(failure)) = timeout(bounds::FAREWELL, transport.typing(&target)).await {
                tracing::debug!(channel = channel.id.0, %failure, "channel.writing_not_shown");
            }
            shown.insert(target, Instant::now());
        }
        sleep(Duration::from_secs(4)).await;
    }
}

/// Waits until a turn may have begun.
async fn of_turns(news: &mut Subscription) {
    loop {
        match news.next().await {
            Some((News::Changed(event), _)) if event.kind != RecordKind::Turn => {}
            Some((News::Recheck, _)) => {}
            Some(_) => return,
            None => return std::future::pending().await,
        }
    }
}
