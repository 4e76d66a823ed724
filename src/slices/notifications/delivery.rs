//! Sends the mails that wait in the outbox: notifications, and those about accounts and invitations. What a letter says is
//! written at that moment, so that no secret waits.

use super::letter;
use crate::{
    base::{enums::OutboxKind, problem::Result},
    core::{
        Core,
        mail::SendError,
        outbox::{self, Claim, Mail, Outcome},
    },
    slices::people,
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
        Mail::Link { id } => people::compose_link(core, id).await?,
        Mail::Invitation { id } => people::compose_invitation(core, id).await?,
        Mail::Notifications { user_id, about, more } => letter::compose(core, user_id, &about, more).await?,
        Mail::Notice { user_id, to, what, from } => {
            let letter = people::compose_notice(core, user_id, what, (mail.created_at, &from)).await?;
            Some((to, letter))
        }
    };
    let Some((to, letter)) = composed else { return Ok(Outcome::Over) };
    Ok(match core.mailer.send(mail.id, &to, letter).await {
        Ok(()) => Outcome::Done,
        Err(SendError::Later(why)) => Outcome::Later(why),
        Err(SendError::Never(why)) => Outcome::Never(why),
    })
}
