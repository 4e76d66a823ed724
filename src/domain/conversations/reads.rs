//! Read marks. The author of a message has read up to it.
//!
//! Messages from before a person joined, or from more than thirty days ago, don't count as unread: otherwise a new
//! member would start with thousands. Nor do removed messages (`retention.rs`).

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

/// Records that the caller has read a conversation up to `seq`, or to its end if that comes first. Only the caller's
/// own subscriptions are notified. It does not change the conversation, so it is not in the audit log.
///
/// # Errors
/// `NOT_FOUND`; `PERMISSION_DENIED` for a service token, which has no read marks.
pub async fn mark_read(scope: &Scope, id: ConversationId, seq: i64) -> Result<()> {
    let Some(user) = scope.request.caller.user() else {
        let detail = "Only people have read marks. Sign in as a person.";
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

/// Moves a person's mark forward to `seq`. Returns whether it moved. The conversation must be locked.
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
