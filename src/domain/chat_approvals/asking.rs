//! Rows for requests to people in their chats, written in the transaction that raises an approval and changed in the
//! one that closes it.

use super::queries::{ask_linked, close_asks};
use crate::{
    base::{
        ids::{ApprovalId, UserId},
        problem::Result,
    },
    core::{queue, store::Tx},
};

/// Asks these people in each chat that they have linked, if the approval can be answered.
pub async fn ask(tx: &Tx, approval: ApprovalId, people: &[UserId]) -> Result<()> {
    if people.is_empty() {
        return Ok(());
    }
    if ask_linked(tx, approval, people).await? > 0 {
        queue::wake_after(&tx.scope.core, tx.connection());
    }
    Ok(())
}

/// Closes an approval's messages: their buttons are replaced by the outcome. Unsent messages are not sent.
pub async fn close(tx: &Tx, approval: ApprovalId) -> Result<()> {
    // A sender that is sending a message at this moment keeps its claim and closes the message afterwards.
    if close_asks(tx, approval).await? > 0 {
        queue::wake_after(&tx.scope.core, tx.connection());
    }
    Ok(())
}
