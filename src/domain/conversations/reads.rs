//! How far each person has read. Whoever writes has read up to their own message.
//!
//! What was said before a person joined, or more than thirty days ago, is no news: otherwise whoever joins would begin with
//! thousands of unread messages. What was forgotten (`retention.rs`) can't be read any more.

use sea_orm::{ActiveModelTrait, ActiveValue::Set, ColumnTrait, Condition, QueryFilter, sea_query::Expr};

use super::{
    entity::conversation_reads::{self, Column},
    rows::load,
};
use crate::{
    base::{
        enums::{ChangeOp, RecordKind},
        ids::{ConversationId, UserId},
        problem::{Code, Problem, Result},
    },
    core::{Event, access::Scope, store::Tx},
};

/// Notes that the caller has read a conversation up to `seq`, or to its end if that comes before. Only the caller's own
/// subscriptions hear of it. It is not a change to the conversation, so the audit log doesn't have it.
///
/// # Errors
/// `NOT_FOUND`; `PERMISSION_DENIED` for a service token, which reads nothing.
pub async fn mark_read(scope: &Scope, id: ConversationId, seq: i64) -> Result<()> {
    let Some(user) = scope.request.caller.user() else {
        let detail = "Only a person reads. Sign in as one.";
        return Err(scope.refused(Problem::new(Code::PermissionDenied, detail)));
    };
    let tx = scope.begin().await?;
    let conversation = load(&tx, id).await?;
    if !read_to(&tx, id, user, seq.min(conversation.last_seq)).await? {
        return Ok(());
    }
    let read = Event::new(scope.org, ChangeOp::Updated, RecordKind::Conversation, id);
    tx.announce(read.with_parent(conversation.agent_id).only(user));
    tx.commit().await
}

/// Moves a person's mark forward to `seq`. Returns whether it moved. The conversation is locked, so no other mark comes in
/// between.
pub(super) async fn read_to(tx: &Tx, id: ConversationId, user: UserId, seq: i64) -> Result<bool> {
    let mark = Condition::all().add(Column::ConversationId.eq(id)).add(Column::UserId.eq(user));
    let before = tx.scope.find::<conversation_reads::Entity>().filter(mark.clone());
    match before.one(tx.connection()).await? {
        Some(before) if before.seq >= seq => return Ok(false),
        Some(_) => {
            let moved = tx.scope.update::<conversation_reads::Entity>().filter(mark);
            moved.col_expr(Column::Seq, Expr::value(seq)).exec(tx.connection()).await?;
        }
        None if seq == 0 => return Ok(false),
        None => {
            let (organization_id, conversation_id, user_id) = (Set(tx.scope.org), Set(id), Set(user));
            let row =
                conversation_reads::ActiveModel { organization_id, conversation_id, user_id, seq: Set(seq) };
            row.insert(tx.connection()).await?;
        }
    }
    Ok(true)
}
