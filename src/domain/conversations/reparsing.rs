//! Reading messages again that are kept as they came (`sources.rs`): an earlier version may have misread them. Only their text
//! changes, with its words in the search index. An event in the conversation says so; no turn begins.

use std::{slice, sync::Arc};

use muster_channels::Inbound;
use sea_orm::{ColumnTrait, QueryFilter, sea_query::Expr};
use serde::Serialize;
use serde_json::{Value as Json, json};

use super::{
    append::{NewMessage, add_all, preview, rewrite},
    entity::{conversations, messages},
    incoming::content_of,
    rows::load,
    sources,
    tokenizer::text_of,
    turn_messages::agent_of,
};
use crate::{
    base::{
        bounds::BATCH,
        enums::{ChangeOp, MessageKind, MessageRole, RecordKind, Transport},
        ids::{ChannelId, ConversationId, MessageId, OrgId},
        problem::{Problem, Result},
    },
    core::{Core, access::Scope, audit},
    domain::agents,
};

/// What is said in the conversation.
const TOLD: &str = "The message was read again: its text changed.";

/// Which messages are read again: those that meet all of these.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// Of this organization.
    pub org: Option<OrgId>,
    /// That came in through this channel.
    pub channel: Option<ChannelId>,
    /// In this conversation.
    pub conversation: Option<ConversationId>,
    /// These; all if there are none.
    pub messages: Vec<MessageId>,
}

/// What became of a message.
#[derive(Clone, Debug, Serialize)]
pub struct Reread {
    /// The message.
    pub id: MessageId,
    /// Its organization.
    pub organization_id: OrgId,
    /// Its conversation.
    pub conversation_id: ConversationId,
    /// Whether its text changed, or would.
    pub changed: bool,
    /// The first words of its text until now.
    pub before: String,
    /// The first words of its text from now on.
    pub after: String,
    /// Why it was not read.
    pub error: Option<String>,
}

/// A message that is kept as it came.
struct Place {
    org: OrgId,
    conversation: ConversationId,
    message: MessageId,
}

/// Reads messages again that are kept as they came, and changes those whose text is another now; or only looks, if it is a
/// `rehearsal`. Returns what became of each.
///
/// # Errors
/// The database is unreachable. Earlier changes are kept.
pub async fn reread(core: &Arc<Core>, wanted: &Wanted, rehearsal: bool) -> Result<Vec<Reread>> {
    let (mut all, mut after) = (Vec::new(), (OrgId(0), MessageId(0)));
    loop {
        let places = find(core, wanted, after).await?;
        for place in &places {
            all.extend(
                read(core, place, rehearsal).await.unwrap_or_else(|problem| Some(failed(place, &problem))),
            );
        }
        match places.last() {
            Some(last) if places.len() == BATCH as usize => after = (last.org, last.message),
            _ => return Ok(all),
        }
    }
}

/// The next messages that are kept as they came.
async fn find(core: &Core, wanted: &Wanted, after: (OrgId, MessageId)) -> Result<Vec<Place>> {
    let of = (wanted.org, wanted.channel, wanted.conversation);
    let found = super::queries::kept(core, after, of, &wanted.messages, i64::from(BATCH)).await?;
    let place = |kept: super::queries::Kept| Place {
        org: kept.organization_id,
        conversation: kept.conversation_id,
        message: kept.message_id,
    };
    Ok(found.into_iter().map(place).collect())
}

/// Reads a message again. `None`: it is gone.
async fn read(core: &Arc<Core>, place: &Place, rehearsal: bool) -> Result<Option<Reread>> {
    let scope = Scope::system(core, place.org);
    let Some(kept) = sources::kept(&scope, place.message).await? else { return Ok(None) };
    let found = scope.find::<messages::Entity>().filter(messages::Column::Id.eq(place.message));
    let Some(before) = found.one(core.db.read()).await? else { return Ok(None) };
    let source = match kept.source {
        Ok(source) => {
            let now = jiff::Timestamp::from_millisecond(core.clock.now().0).unwrap_or_default();
            muster_channels::reread(source, now).await
        }
        Err(why) => Err(why.to_string()),
    };
    let (changed, after, error) = match source.and_then(|read| read.ok_or_else(|| NO_MESSAGE.to_owned())) {
        Ok(read) => {
            let content = said(read, &kept.notes, &before.content);
            let differs = content != before.content;
            let changed = differs && (rehearsal || change(&scope, &before, content.clone()).await?);
            (changed, content, None)
        }
        Err(why) => (false, before.content.clone(), Some(why)),
    };
    Ok(Some(Reread {
        id: place.message,
        organization_id: place.org,
        conversation_id: place.conversation,
        changed,
        before: preview(&text_of(before.kind, &before.content)),
        after: preview(&text_of(before.kind, &after)),
        error,
    }))
}

/// A message that could not be read or changed.
fn failed(place: &Place, problem: &Problem) -> Reread {
    Reread {
        id: place.message,
        organization_id: place.org,
        conversation_id: place.conversation,
        changed: false,
        before: String::new(),
        after: String::new(),
        error: Some(problem.to_string()),
    }
}

/// Why a mail is left as it was read before.
const NO_MESSAGE: &str = "it is a report about another mail";

/// The content of a message that says this. Notes that were added to the text stay, and so do the content's other fields.
fn said(read: Inbound, notes: &str, before: &Json) -> Json {
    let files: Vec<_> = read.files.iter().map(|file| file.name.as_str()).collect();
    let title = read.thread.title.as_deref();
    let Json::Object(read) = content_of(Transport::Email, title, read.text + notes, files.into_iter()) else {
        return before.clone();
    };
    let mut content = before.clone();
    for (name, value) in read {
        content[name] = value;
    }
    content
}

/// Changes a message, unless it has changed in the meantime or is gone. Returns whether it did.
async fn change(scope: &Scope, before: &messages::Model, content: Json) -> Result<bool> {
    let tx = scope.begin().await?;
    // Nothing is said while the agent is held.
    let agent = agent_of(&tx, before.conversation_id).await?;
    agents::lock_agent_even_deleted(&tx, agent).await?;
    let mut conversation = load(&tx, before.conversation_id).await?;
    let now = tx.scope.find::<messages::Entity>().filter(messages::Column::Id.eq(before.id));
    let now = now.one(tx.connection()).await?;
    if now.is_none_or(|now| now.content != before.content) {
        return Ok(false);
    }
    rewrite(&tx, &mut conversation, before, content).await?;
    let (op, kind, id) = (ChangeOp::Updated, RecordKind::Message, before.id.0);
    let changes = json!({ "text": audit::CHANGED });
    audit::record(&tx, audit::Entry { operation: "rereadMessage", op, kind, id, changes });
    let told = json!({ "event": "message_reread", "text": TOLD, "message_id": before.id });
    let told = NewMessage::new(conversation.id, MessageRole::System, MessageKind::Event, told);
    add_all(&tx, slice::from_ref(&conversation), vec![told]).await?;
    // No one has written, so the inbox and the retention of transcripts stay as they are.
    let row =
        tx.scope.update::<conversations::Entity>().filter(conversations::Column::Id.eq(conversation.id));
    let row = row.col_expr(conversations::Column::LastActivityAt, Expr::value(conversation.last_activity_at));
    row.exec(tx.connection()).await?;
    tx.commit().await?;
    Ok(true)
}
