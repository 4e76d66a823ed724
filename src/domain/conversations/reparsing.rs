//! Reading stored mails again (`sources.rs`) that an earlier version of Muster may have misread. Only the message's
//! text and its words in the search index change. An event in the conversation mentions it; no turn starts.

use std::{slice, sync::Arc};

use muster_channels::Inbound;
use sea_orm::{ColumnTrait, QueryFilter, sea_query::Expr};
use serde::Serialize;
use serde_json::{Value as Json, json};

use super::{
    append::{NewMessage, append_all, preview, rewrite},
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

const EVENT_TEXT: &str = "The message was read again: its text changed.";

/// Selects the messages to read again. All conditions must hold.
#[derive(Clone, Debug, Default)]
pub struct RereadFilter {
    pub org: Option<OrgId>,
    pub channel: Option<ChannelId>,
    pub conversation: Option<ConversationId>,
    /// Empty: all.
    pub messages: Vec<MessageId>,
}

/// The result for a message.
#[derive(Clone, Debug, Serialize)]
pub struct Reread {
    pub id: MessageId,
    pub organization_id: OrgId,
    pub conversation_id: ConversationId,
    /// Whether the text has changed, or would change.
    pub changed: bool,
    /// A preview of the old text.
    pub before: String,
    /// A preview of the new text.
    pub after: String,
    /// The reason why it was not read again.
    pub error: Option<String>,
}

/// Reads stored mails again, and updates messages whose text differs, unless it is a `rehearsal`. Returns the result
/// for each.
///
/// # Errors
/// The database is unreachable. Earlier changes remain.
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

/// Reads one mail again. `None`: it is gone.
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

/// The result for a message that could not be read or changed.
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

/// The reason to leave a message unchanged.
const NO_MESSAGE: &str = "it is a report about another mail";

/// The new content of a message. Notes added to the text and other fields of the content stay.
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

/// Updates a message, unless it has changed in the meantime or is gone. Returns whether it did.
async fn rewrite_message(scope: &Scope, before: &messages::Model, content: Json) -> Result<bool> {
    let tx = scope.begin().await?;
    // No message is written while the agent is locked.
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
    let content = json!({ "event": "message_reread", "text": EVENT_TEXT, "message_id": before.id });
    let event = NewMessage::new(conversation.id, MessageRole::System, MessageKind::Event, content);
    append_all(&tx, slice::from_ref(&conversation), vec![event]).await?;
    // No one has written, so the inbox and the retention of transcripts stay as they are.
    let row =
        tx.scope.update::<conversations::Entity>().filter(conversations::Column::Id.eq(conversation.id));
    let row = row.col_expr(conversations::Column::LastActivityAt, Expr::value(conversation.last_activity_at));
    row.exec(tx.connection()).await?;
    tx.commit().await?;
    Ok(true)
}
