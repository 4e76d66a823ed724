//! Sends the mails that wait in the outbox. What a letter says is written at that moment, so that no secret waits.

use super::{
    accounts::{letters, links, users::by_id},
    membership::invitations,
};
use crate::{
    base::{enums::OutboxKind, problem::Result},
    core::{
        Core,
        mail::SendError,
        outbox::{self, Claim, Mail, Outcome},
    },
    slices::notifications,
};

/// Sends the mail that is due, if mail is set up. Returns how many were sent.
///
/// # Errors
/// The database is unreachable.
pub async fn deliver_due(core: &Core) -> Result<u64> {
    if !core.mailer.is_on() {
        return Ok(0);
    }
    outbox::work(core, OutboxKind::Mail, |mail| deliver(core, mail)).await
}

async fn deliver(core: &Core, mail: Claim<Mail>) -> Result<Outcome> {
    let composed = match mail.work {
        Mail::Link { id } => links::compose(core, id).await?,
        Mail::Invitation { id } => invitations::compose(core, id).await?,
        Mail::Notifications { user_id, about, more } => {
            notifications::compose(core, user_id, &about, more).await?
        }
        Mail::Notice { user_id, to, what, from } => {
            let name = by_id(core.db.read(), user_id).await?.name;
            Some((to, letters::notice(core, &name, what, (mail.created_at, &from))))
        }
    };
    let Some((to, letter)) = composed else { return Ok(Outcome::Over) };
    Ok(match core.mailer.send(mail.id, &to, letter).await {
        Ok(()) => Outcome::Done,
        Err(SendError::Later(why)) => Outcome::Later(why),
        Err(SendError::Never(why)) => Outcome::Never(why),
    })
}
