//! Sends mails: notifications, and mails about accounts and invitations. The letter is written when it is sent, so that
//! the queue contains no secrets.

use std::sync::Arc;

use super::letter;
use crate::{
    base::problem::Result,
    core::{
        Core,
        mail::SendError,
        queue::{self, Admission, Job, Outcome},
    },
    domain::{
        event_endpoints,
        mails::{self, Mail, Queued},
        people,
    },
};

/// Sends the due mails, if mail is set up. Returns how many were sent.
pub async fn deliver_due(core: &Arc<Core>) -> Result<u64> {
    if !core.mailer.is_on() {
        return Ok(0);
    }
    Ok(queue::work::<Queued>(core, &()).await?.done)
}

/// All mails share one lane, so that a slow mail server delays only mails.
impl Job for Queued {
    const KIND: &'static str = "MAIL";
    type Key = ();
    type Lane = Arc<Core>;
    type Permit = ();

    fn id(&self) -> i64 {
        self.id
    }

    async fn open(core: &Arc<Core>, (): &()) -> Result<Option<Arc<Core>>> {
        Ok(Some(Arc::clone(core)))
    }

    async fn due(core: &Arc<Core>) -> Result<Vec<Self>> {
        Ok(mails::due(core).await?.into_iter().collect())
    }

    async fn admit(&self, _: &Arc<Core>) -> Result<Admission<()>> {
        Ok(Admission::Run(()))
    }

    async fn run(self, core: &Arc<Core>, (): ()) -> Result<Option<Outcome>> {
        mails::attempt(core, &self, |mail| deliver(core, &self, mail)).await
    }
}

async fn deliver(core: &Core, queued: &Queued, mail: Mail) -> Result<Outcome> {
    let composed = match mail {
        Mail::Link { id } => people::compose_link(core, id).await?,
        Mail::Invitation { id } => people::compose_invitation(core, id).await?,
        Mail::EventEndpointOff { org, id, user_id } => {
            event_endpoints::compose_letter(core, org, id, user_id).await?
        }
        Mail::Notifications { user_id, about, more } => letter::compose(core, user_id, &about, more).await?,
        Mail::Notice { user_id, to, what, from } => {
            let letter = people::compose_notice(core, user_id, what, (queued.created_at, &from)).await?;
            Some((to, letter))
        }
    };
    let Some((to, letter)) = composed else { return Ok(Outcome::Obsolete) };
    Ok(match core.mailer.send(queued.id, &to, letter).await {
        Ok(()) => Outcome::Done,
        Err(SendError::Later(why)) => Outcome::Later(why),
        Err(SendError::Never(why)) => Outcome::GivenUp(why),
    })
}
