//! What is written for messages of one channel that came in together, in this order:
//!
//! | | statements |
//! | --- | --- |
//! | the agent is held, the channel's activity noted, duplicates and known authors found | four for all |
//! | who writes for the first time | two for each person |
//! | the conversation | one for each message; more if it begins one, refers to others, has files, or is kept as it came |
//! | its turn and summary | two for each conversation |
//! | the messages' rows, and their words | two for all |

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
    time::Duration,
};

use muster_channels::Proof;
use serde::Serialize;
use tokio::time::sleep;

use super::{Arrived, Ignored};
use crate::{
    base::{
        ids::{AgentId, ContactId, ConversationId, IdentityId, MessageId},
        problem::Result,
    },
    core::store::Tx,
    domain::{
        agents, channels, contacts,
        conversations::{self, Incoming, turns},
    },
};

/// Where a message is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Admitted {
    /// Its conversation.
    pub conversation_id: ConversationId,
    /// The message.
    pub message_id: MessageId,
}

/// Where a message is stored, or why it is not.
pub(super) type Fate = std::result::Result<Admitted, Ignored>;

/// The contacts and addresses behind origins.
type Known = HashMap<String, (ContactId, IdentityId)>;

/// Stores messages of one channel, in this order: all, or none if it fails. What they have in common is read and written once.
/// The agent is held first, as everywhere, so what is found is still true when it is written.
pub(super) async fn admit(tx: &Tx, arrived: &[&Arrived]) -> Result<Vec<Fate>> {
    let Some(first) = arrived.first() else { return Ok(Vec::new()) };
    let inactive = || Ok(vec![Err(Ignored::Inactive); arrived.len()]);
    let Some(agent) = agents::lock_agent(tx, first.agent).await? else { return inactive() };
    if !channels::note_activity(tx, first.channel).await? {
        return inactive();
    }
    let keys: Vec<_> = arrived.iter().copied().map(Arrived::key).collect();
    let given: Vec<_> = keys.iter().flatten().cloned().collect();
    let mut stored = conversations::find_stored_keys(tx, first.channel, &given).await?;
    let mut is_new = |key: Option<String>| key.is_none_or(|key| stored.insert(key));
    let new: Vec<_> =
        arrived.iter().zip(keys).map(|(arrived, key)| is_new(key).then_some(*arrived)).collect();
    let mut known = seen(tx, &new).await?;
    let mut incoming = Vec::with_capacity(new.len());
    for arrived in new.iter().flatten() {
        incoming.push(from_known(tx, arrived, &mut known).await?);
    }
    let stored = conversations::receive(tx, &agent, incoming).await?;
    let of = |are_parts: bool| {
        let places = stored.iter().zip(new.iter().flatten());
        let places = places.filter(|(_, arrived)| arrived.message.album.is_some() == are_parts);
        places.map(|((conversation, _), _)| *conversation).collect::<Vec<_>>()
    };
    turns::send(tx, &agent, &of(false)).await?;
    let parts: BTreeSet<_> = of(true).into_iter().collect();
    send_later(tx, agent.id, albums(tx, parts.into_iter().collect()).await?);
    let mut stored = stored.into_iter();
    let fates = new.iter().map(|arrived| {
        let stored = arrived.and_then(|_| stored.next());
        let admitted = stored.map(|(conversation_id, message_id)| Admitted { conversation_id, message_id });
        admitted.ok_or(Ignored::Duplicate)
    });
    Ok(fates.collect())
}

/// Conversations with their newest albums.
type Albums = Vec<(ConversationId, Option<(MessageId, i64)>)>;

async fn albums(tx: &Tx, conversations: Vec<ConversationId>) -> Result<Albums> {
    let mut albums = Albums::new();
    for conversation in conversations {
        albums.push((conversation, conversations::newest_album(tx, conversation).await?));
    }
    Ok(albums)
}

/// Sends the turns that wait in these conversations once no part has joined their albums for three seconds: vendors bring them one
/// by one. Without it, they are sent as those that were left (`turns::send_left`).
fn send_later(tx: &Tx, agent: AgentId, before: Albums) {
    if before.is_empty() {
        return;
    }
    let (scope, core) = (tx.scope.clone(), Arc::clone(&tx.scope.core));
    tx.scope.core.tasks.spawn(async move {
        if core.tasks.stopping.run_until_cancelled(sleep(Duration::from_secs(3))).await.is_none() {
            return;
        }
        let sent = async {
            let tx = scope.begin().await?;
            if let Some(agent) = agents::lock_agent(&tx, agent).await? {
                // One that has grown meanwhile is sent by its newest part.
                let waiting: Vec<_> = before.iter().map(|(conversation, _)| *conversation).collect();
                let now = albums(&tx, waiting).await?;
                let whole = now.into_iter().filter(|album| before.contains(album));
                let whole: Vec<_> = whole.map(|(conversation, _)| conversation).collect();
                turns::send(&tx, &agent, &whole).await?;
            }
            tx.commit().await
        };
        if let Err(problem) = sent.await {
            tracing::warn!(agent = agent.0, %problem, "channel.album_not_sent");
        }
    });
}

impl Arrived {
    /// What is the same in each copy of the message.
    fn key(&self) -> Option<String> {
        self.message.key.as_deref().map(conversations::bounded_name)
    }
}

/// Those behind the messages who wrote before.
async fn seen(tx: &Tx, new: &[Option<&Arrived>]) -> Result<Known> {
    let Some(first) = new.iter().flatten().next() else { return Ok(Known::new()) };
    let origins: Vec<_> = new.iter().flatten().map(|arrived| arrived.message.origin.id.clone()).collect();
    contacts::find_seen(tx, (first.channel, first.transport), &origins).await
}

/// The message, with who is behind its origin: those who write for the first time are known now.
async fn from_known<'a>(tx: &Tx, arrived: &'a Arrived, known: &mut Known) -> Result<Incoming<'a>> {
    let message = &*arrived.message;
    let origin = &message.origin;
    let (contact, identity) = match known.get(&origin.id) {
        Some(known) => *known,
        None => {
            let new = contacts::create_contact(tx, (arrived.channel, arrived.transport), origin).await?;
            known.insert(origin.id.clone(), new);
            new
        }
    };
    Ok(Incoming {
        channel: arrived.channel,
        transport: arrived.transport,
        contact,
        identity,
        author: origin.author().map(|author| author.to_string()),
        key: arrived.key(),
        vendor_id: message.vendor_id.clone(),
        album: message.album.clone(),
        is_edit: message.is_edit,
        thread: &message.thread,
        context: &message.context,
        text: message.text.clone(),
        files: arrived.files.iter().collect(),
        source: arrived.source.as_ref(),
        is_answered: arrived.is_answered,
        is_automatic: message.is_automatic,
        is_unproven: message.proof == Proof::None,
    })
}
