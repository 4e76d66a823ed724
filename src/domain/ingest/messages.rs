//! Writes the messages of one channel that came in together, in this order:
//!
//! | | statements |
//! | --- | --- |
//! | lock the agent, record the channel's activity, find duplicates and known authors | four for all |
//! | add new authors | two for each author |
//! | the conversation | one for each message; more if it starts one, refers to others, or has files or a stored source |
//! | its turn and summary | two for each conversation |
//! | the messages' rows and search index | two for all |

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

/// A stored message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Admitted {
    pub conversation_id: ConversationId,
    pub message_id: MessageId,
}

/// A stored message, or why it was not stored.
pub(super) type Fate = std::result::Result<Admitted, Ignored>;

/// The contacts and identities of origins.
type Known = HashMap<String, (ContactId, IdentityId)>;

/// Stores messages of one channel, in order: all, or none if it fails. Shared rows are read and written once. Locks the
/// agent first, so that rows read here can't change before they are written.
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
    let mut known = find_known_authors(tx, &new).await?;
    let mut incoming = Vec::with_capacity(new.len());
    for arrived in new.iter().flatten() {
        incoming.push(to_incoming(tx, arrived, &mut known).await?);
    }
    let stored = conversations::receive(tx, &agent, incoming).await?;
    let conversations_of = |are_parts: bool| {
        let places = stored.iter().zip(new.iter().flatten());
        let places = places.filter(|(_, arrived)| arrived.message.album.is_some() == are_parts);
        places.map(|((conversation, _), _)| *conversation).collect::<Vec<_>>()
    };
    turns::send(tx, &agent, &conversations_of(false)).await?;
    let parts: BTreeSet<_> = conversations_of(true).into_iter().collect();
    send_after_albums(tx, agent.id, newest_albums(tx, parts.into_iter().collect()).await?);
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

async fn newest_albums(tx: &Tx, conversations: Vec<ConversationId>) -> Result<Albums> {
    let mut albums = Albums::new();
    for conversation in conversations {
        albums.push((conversation, conversations::newest_album(tx, conversation).await?));
    }
    Ok(albums)
}

/// Sends the turns that wait in these conversations once their albums have not grown for three seconds: vendors deliver
/// the parts of an album one by one. If the process ends first, `turns::send_left` sends them.
fn send_after_albums(tx: &Tx, agent: AgentId, before: Albums) {
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
                // An album that has grown meanwhile is sent by the call for its newest part.
                let waiting: Vec<_> = before.iter().map(|(conversation, _)| *conversation).collect();
                let now = newest_albums(&tx, waiting).await?;
                let whole = now.into_iter().filter(|album| before.contains(album));
                let whole: Vec<_> = whole.map(|(conversation, _)| conversation).collect();
                turns::send(&tx, &agent, &whole).await?;
            }
            tx.commit().await
        };
        if let Err(problem) = sent.await {
            tracing::warn!(org = scope.org.0, agent = agent.0, %problem, "channel.album_not_sent");
        }
    });
}

impl Arrived {
    /// Identifies duplicates: the same in each copy of the message.
    fn key(&self) -> Option<String> {
        self.message.key.as_deref().map(conversations::bounded_name)
    }
}

/// Finds the authors of the messages who have written before.
async fn find_known_authors(tx: &Tx, new: &[Option<&Arrived>]) -> Result<Known> {
    let Some(first) = new.iter().flatten().next() else { return Ok(Known::new()) };
    let origins: Vec<_> = new.iter().flatten().map(|arrived| arrived.message.origin.id.clone()).collect();
    contacts::find_seen(tx, (first.channel, first.transport), &origins).await
}

/// The message with its author's contact. Creates the contact of a new author and adds it to `known`.
async fn to_incoming<'a>(tx: &Tx, arrived: &'a Arrived, known: &mut Known) -> Result<Incoming<'a>> {
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
