//! EMAIL: a mailbox, read by IMAP and written by SMTP.
//!
//! A conversation is found by the ids of its mails (References, In-Reply-To), never by the subject. Targets are addresses; the
//! answer goes to the mail's From, never to its Reply-To. Both servers are typed by tenants, so both are guarded.
//!
//! - `bearer.rs`: access tokens in place of passwords.
//! - `responses.rs`: what a mail server says, within bounds; `said.rs`: what that means.
//! - `mailbox.rs`: the connection to the mailbox; `listening.rs`: what is new in it, and when; `attempts.rs`: what can't be read.
//! - `parts.rs`: a mail in parts, within bounds; `parsed.rs`: what it says.
//! - `charset.rs`, `words.rs`, `content_type.rs`: bytes, encoded words and parameters as words.
//! - `dates.rs`: when it was written.
//! - `texts.rs`: the words of a whole mail; `html/`, `flowed.rs`, `calendar.rs`: those of HTML, of lines that go on, of events;
//!   `zones.rs`: time zones of events.
//! - `automatic.rs`: whether a program wrote it; `proof.rs`: whether its From is true.
//! - `letter.rs`: an answer as a mail; `post.rs`: handing it over.

mod attempts;
mod automatic;
mod bearer;
mod calendar;
mod charset;
mod content_type;
mod dates;
mod flowed;
mod html;
mod letter;
mod listening;
mod mailbox;
mod parsed;
mod parts;
mod post;
mod proof;
mod responses;
mod said;
#[cfg(test)]
mod samples;
mod texts;
mod words;
mod zones;

pub use self::{parsed::origin, proof::TOPMOST};
#[cfg(test)]
pub use self::{
    parsed::{Beside, event},
    post::try_out,
    responses::tests::heard,
};

use std::{convert::Infallible, time::Duration};

use bytes::Bytes;
use futures::future::BoxFuture;
use jiff::Timestamp;

use crate::{
    contract::{
        Actions, Cursor, Dialect, EmailConfig, Event, Failure, Files, Identity, Inbound, Inlet, Kind, Limit,
        Longest, Part, Receipt, Scope, Sink, Traits, Transport, Unit,
    },
    world::World,
};

/// Mail has no limits of its own; these keep us from being taken for a sender of bulk mail.
static TRAITS: Traits = Traits {
    kind: Kind::Email,
    dialect: Dialect::Html,
    longest: Longest { count: 500_000, unit: Unit::Characters },
    limits: &[
        Limit { scope: Scope::Channel, count: 60, per: Duration::from_secs(60) },
        Limit { scope: Scope::Target, count: 20, per: Duration::from_secs(60 * 60) },
    ],
    longest_send: Duration::from_secs(300),
    idempotent_send: false,
    reconciles: false,
    inlet: Inlet::Pull,
    files: Files::Together,
    actions: Actions { buttons: false, edits: false, typing: None },
    largest_in: 25 * 1024 * 1024,
    largest_out: 20 * 1024 * 1024,
};

/// Reads a mail again. `None`: it is a report about another mail.
///
/// # Errors
/// Why it can't be read.
pub async fn reread(mail: Bytes, now: Timestamp) -> Result<Option<Inbound>, String> {
    let beside = parsed::Beside { labels: Vec::new(), authserv_id: None, now };
    match parsed::read(mail, beside).await {
        Ok(Some(Event::Message(message))) => Ok(Some(*message)),
        Ok(_) => Ok(None),
        Err(why) => Err(why.to_string()),
    }
}

/// A mailbox.
pub struct Email {
    config: EmailConfig,
    world: World,
}

impl Email {
    /// What is true of all of them.
    pub const TRAITS: &'static Traits = &TRAITS;

    /// Opens a mailbox.
    pub fn new(config: EmailConfig, world: World) -> Self {
        Self { config, world }
    }

    async fn who(&self) -> Result<Identity, Failure> {
        let mut warnings = Vec::new();
        if let Some(server) = &self.config.imap {
            mailbox::open(&self.world.guard, server, &*self.config.room).await?.log_out().await;
            warnings.extend(doubt(self.config.authserv_id.as_deref()).map(str::to_owned));
        }
        if let Some(server) = &self.config.smtp {
            post::try_out(&self.world, server).await?;
        }
        let address = letter::sender(&self.config).ok().map(|sender| sender.email.to_string().to_lowercase());
        Ok(Identity {
            self_ids: address.iter().cloned().collect(),
            handle: address,
            warnings,
            ..Identity::default()
        })
    }

    async fn post(&self, part: &Part<'_>) -> Result<Receipt, Failure> {
        let server = self.config.smtp.as_ref();
        let server = server.ok_or_else(|| {
            Failure::Refused("The channel has no SMTP server, so nothing can be sent.".into())
        })?;
        let letter = letter::write(&self.config, part)?;
        post::hand_over(&self.world, server, &letter.mail).await?;
        Ok(Receipt { vendor_id: Some(letter.id), target: None })
    }
}

/// What is to be said about how senders are proven.
fn doubt(authserv_id: Option<&str>) -> Option<&'static str> {
    match authserv_id {
        None => Some("Senders are not proven: anyone can forge a mail's address."),
        Some(name) if name.contains(['=', ';']) => Some(
            "No sender is proven: `authserv_id` is a result of a check, not a server's name. For Microsoft 365, set `*topmost`.",
        ),
        Some(_) => None,
    }
}

impl Transport for Email {
    fn traits(&self) -> &'static Traits {
        Self::TRAITS
    }

    fn probe(&self) -> BoxFuture<'_, Result<Identity, Failure>> {
        Box::pin(self.who())
    }

    fn listen<'a>(
        &'a self,
        cursor: Option<Cursor>,
        sink: &'a dyn Sink,
    ) -> BoxFuture<'a, Result<Infallible, Failure>> {
        Box::pin(listening::listen(&self.config, &self.world, cursor, sink))
    }

    fn send<'a>(&'a self, part: &'a Part<'a>) -> BoxFuture<'a, Result<Receipt, Failure>> {
        Box::pin(self.post(part))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_said_when_no_sender_can_be_proven() {
        for (authserv_id, expected) in [
            (None, Some("Senders are not proven")),
            (Some("spf=pass"), Some("No sender is proven")),
            (Some("mx.b.test; none"), Some("No sender is proven")),
            (Some("mx.b.test"), None),
            (Some(TOPMOST), None),
        ] {
            let said = doubt(authserv_id).map(|said| said.split(':').next().unwrap());
            assert_eq!(said, expected, "{authserv_id:?}");
        }
    }
}
