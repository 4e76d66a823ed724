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
    queries::{self, StoredSource},
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
const EVENT_TEXT: &str = "The message was read again: its text changed.";

/// Which messages are read again: those that meet all of these.
#[derive(Clone, Debug, Default)]
pub struct RereadFilter {
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

/// Reads messages again that are kept as they came, and changes those whose text is another now; or only looks, if it is a
/// `rehearsal`. Returns what became of each.
///
/// # Errors
/// The database is unreachable. Earlier changes are kept.
pub async fn reread(core: &Arc<Core>, filter: &RereadFilter, rehearsal: bool) -> Result<Vec<Reread>> {
    let (mut all, mut after) = (Vec::new(), (OrgId(0), MessageId(0)));
    let within = (filter.org, filter.channel, filter.conversation);
    loop {
        let found = queries::list_sources(core, after, within, &filter.messages, i64::from(BATCH)).await?;
        for source in &found {
            let read = reread_one(core, source, rehearsal).await;
            all.extend(read.unwrap_or_else(|problem| Some(failure(source, &problem))));
        }
        match found.last() {
            Some(last) if found.len() == BATCH as usize => after = (last.organization_id, last.message_id),
            _ => return Ok(all),
        }
    }
}

/// Reads a message again. `None`: it is gone.
async fn reread_one(core: &Arc<Core>, stored: &StoredSource, rehearsal: bool) -> Result<Option<Reread>> {
    let scope = Scope::system(core, stored.organization_id);
    let Some(opened) = sources::load_source(&scope, stored.message_id).await? else { return Ok(None) };
    let found = scope.find::<messages::Entity>().filter(messages::Column::Id.eq(stored.message_id));
    let Some(before) = found.one(core.db.read()).await? else { return Ok(None) };
    let source = match opened.source {
        Ok(source) => {
            let now = jiff::Timestamp::from_millisecond(core.clock.now().0).unwrap_or_default();
            muster_channels::reread(source, now).await
        }
        Err(why) => Err(why.to_string()),
    };
    let (changed, after, error) = match source.and_then(|read| read.ok_or_else(|| NO_MESSAGE.to_owned())) {
        Ok(read) => {
            let content = content_of_mail(read, &opened.notes, &before.content);
            let differs = content != before.content;
            let changed = differs && (rehearsal || rewrite_message(&scope, &before, content.clone()).await?);
            (changed, content, None)
        }
        Err(why) => (false, before.content.clone(), Some(why)),
    };
    Ok(Some(Reread {
        id: stored.message_id,
        organization_id: stored.organization_id,
        conversation_id: stored.conversation_id,
        changed,
        before: preview(&text_of(before.kind, &before.content)),
        after: preview(&text_of(before.kind, &after)),
        error,
    }))
}

/// A message that could not be read or changed.
fn failure(stored: &StoredSource, problem: &Problem) -> Reread {
    Reread {
        id: stored.message_id,
        organization_id: stored.organization_id,
        conversation_id: stored.conversation_id,
        changed: false,
        before: String::new(),
        after: String::new(),
        error: Some(problem.to_string()),
    }
}

/// Why a mail is left as it was read before.
const NO_MESSAGE: &str = "it is a report about another mail";

/// The content of a message that says this. Notes that were added to the text stay, and so do the content's other fields.
fn content_of_mail(read: Inbound, notes: &str, before: &Json) -> Json {
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
async fn rewrite_message(scope: &Scope, before: &messages::Model, content: Json) -> Result<bool> {
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
    let told = json!({ "event": "message_reread", "text": EVENT_TEXT, "message_id": before.id });
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
