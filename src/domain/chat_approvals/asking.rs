//! Who is asked where: rows, written in the transaction that raises a request, and changed in the one that ends it.

use super::queries::{ask_linked, close_asks};
use crate::{
    base::{
        ids::{ApprovalId, UserId},
        problem::Result,
    },
    core::{queue, store::Tx},
};

/// Asks those of these people who have linked a chat, in each of theirs, if it is something that has an answer.
pub async fn ask(tx: &Tx, approval: ApprovalId, people: &[UserId]) -> Result<()> {
    if people.is_empty() {
        return Ok(());
    }
    if ask_linked(tx, approval, people).await? > 0 {
        queue::wake_after(&tx.scope.core, tx.connection());
    }
    Ok(())
}

/// The request has ended: what was asked loses its buttons, and says how. What was not asked yet is no longer asked.
pub async fn over(tx: &Tx, approval: ApprovalId) -> Result<()> {
    // Who is sending it at this moment keeps the claim, and finds out afterwards.
    if close_asks(tx, approval).await? > 0 {
        queue::wake_after(&tx.scope.core, tx.connection());
    }
    Ok(())
}
