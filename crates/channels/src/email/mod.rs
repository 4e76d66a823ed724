//! EMAIL: a mailbox, read by IMAP and written by SMTP.
//!
//! A conversation is found by the ids of its mails (References, In-Reply-To), never by the subject. Targets are addresses; the
//! answer goes to the mail's From, never to its Reply-To. Both servers are typed by tenants, so both are guarded.
//!
//! - `bearer.rs`: access tokens in place of passwords.
//! - `responses.rs`: what a mail server says, within bounds; `said.rs`: what that means.
//! - `mailbox.rs`: the connection to the mailbox; `listening.rs`: what is new in it, and when; `attempts.rs`: what can't be read.
//! - `parts.rs`: a mail in parts, within bounds; `parsed.rs`: what it says.
//! - `automatic.rs`: whether a program wrote it; `proof.rs`: whether its From is true.
//! - `letter.rs`: an answer as a mail; `post.rs`: handing it over.

mod attempts;
mod automatic;
mod bearer;
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
pub use self::{
    parsed::{Beside, event},
    post::try_out,
    responses::tests::heard,
};

use std::{convert::Infallible, time::Duration};

use futures::future::BoxFuture;

use crate::{
    contract::{
        Actions, Cursor, Dialect, EmailConfig, Failure, Files, Identity, Inlet, Kind, Limit, Longest, Part,
        Receipt, Scope, Sink, Traits, Transport, Unit,
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
            if self.config.authserv_id.is_none() {
                warnings.push("Senders are not proven: anyone can forge a mail's address.".to_owned());
            }
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
