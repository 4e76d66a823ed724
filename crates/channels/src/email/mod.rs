//! Email: a mailbox, read by IMAP and sent from by SMTP.
//!
//! Conversations are found by Message-IDs (References, In-Reply-To), never by subject. Targets are addresses; replies
//! go to From, never to Reply-To. Tenants name both servers, so both are guarded.
//!
//! - `imap.rs`: connection to the mailbox; `imap_reader.rs`: reads its responses within limits; `imap_response.rs`:
//!   parses them.
//! - `imap_listener.rs`: listens for new mails; `attempts.rs`: retries and skips unreadable ones.
//! - `smtp.rs`: sends mails; `compose.rs`: composes them; `xoauth2.rs`: access tokens in place of passwords.
//! - `mime.rs`: splits a mail into parts, within limits; `inbound.rs`: decodes it as a message.
//! - `charset.rs`, `encoded_words.rs`, `content_type.rs`, `dates.rs`: decode bytes, headers, parameters and dates.
//! - `body_text.rs`: the text of a whole mail; `html/`, `flowed.rs`: the text of HTML and of soft-wrapped lines.
//! - `automatic.rs`: detects programs as authors; `auth_results.rs`: verifies the sender.

mod attempts;
mod auth_results;
mod automatic;
mod body_text;
mod charset;
mod compose;
mod content_type;
mod dates;
mod encoded_words;
mod flowed;
mod html;
mod imap;
mod imap_listener;
mod imap_reader;
mod imap_response;
mod inbound;
mod mime;
#[cfg(test)]
mod samples;
mod smtp;
mod xoauth2;

pub use self::{auth_results::TOPMOST, inbound::origin};
#[cfg(test)]
pub use self::{
    imap_reader::tests::parse_stream,
    inbound::{MailContext, decode_event},
    smtp::check_login,
};

use std::{convert::Infallible, time::Duration};

use bytes::Bytes;
use futures::future::BoxFuture;
use jiff::Timestamp;

use crate::{
    contract::{
        Abilities, Cursor, Dialect, EmailConfig, Event, Failure, Files, Identity, Inbound, Inlet, Kind,
        Limit, Longest, Part, Receipt, Scope, Sink, Traits, Transport, Unit,
    },
    network::Network,
};

/// Mail has no limits of its own; these avoid looking like bulk mail.
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
    abilities: Abilities { buttons: false, edits: false, typing: None },
    actions: &[],
    largest_in: 25 * 1024 * 1024,
    largest_out: 20 * 1024 * 1024,
};

/// Reads a raw mail again. `None`: a report about another mail.
pub async fn reread(mail: Bytes, now: Timestamp) -> Result<Option<Inbound>, String> {
    let context = inbound::MailContext { labels: Vec::new(), authserv_id: None, now };
    match inbound::read(mail, context).await {
        Ok(Some(Event::Message(message))) => Ok(Some(*message)),
        Ok(_) => Ok(None),
        Err(why) => Err(why.to_string()),
    }
}

pub struct Email {
    config: EmailConfig,
    network: Network,
}

impl Email {
    pub const TRAITS: &'static Traits = &TRAITS;

    pub fn new(config: EmailConfig, network: Network) -> Self {
        Self { config, network }
    }

    async fn identify(&self) -> Result<Identity, Failure> {
        let mut warnings = Vec::new();
        if let Some(server) = &self.config.imap {
            imap::open(&self.network.guard, server, &*self.config.memory).await?.log_out().await;
            warnings.extend(sender_warning(self.config.authserv_id.as_deref()).map(str::to_owned));
        }
        if let Some(server) = &self.config.smtp {
            smtp::check_login(&self.network, server).await?;
        }
        let address =
            compose::sender(&self.config).ok().map(|sender| sender.email.to_string().to_lowercase());
        Ok(Identity {
            self_ids: address.iter().cloned().collect(),
            handle: address,
            warnings,
            ..Identity::default()
        })
    }

    async fn send_part(&self, part: &Part<'_>) -> Result<Receipt, Failure> {
        let server = self.config.smtp.as_ref();
        let server = server.ok_or_else(|| {
            Failure::Refused("The channel has no SMTP server, so nothing can be sent.".into())
        })?;
        let composed = compose::compose_mail(&self.config, part)?;
        smtp::send_mail(&self.network, server, &composed.mail).await?;
        Ok(Receipt { vendor_id: Some(composed.id), target: None })
    }
}

/// A warning about the verification of senders.
fn sender_warning(authserv_id: Option<&str>) -> Option<&'static str> {
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
        Box::pin(self.identify())
    }

    fn listen<'a>(
        &'a self,
        cursor: Option<Cursor>,
        sink: &'a dyn Sink,
    ) -> BoxFuture<'a, Result<Infallible, Failure>> {
        Box::pin(imap_listener::listen(&self.config, &self.network, cursor, sink))
    }

    fn send<'a>(&'a self, part: &'a Part<'a>) -> BoxFuture<'a, Result<Receipt, Failure>> {
        Box::pin(self.send_part(part))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_probe_warns_of_unprovable_senders() {
        for (authserv_id, expected) in [
            (None, Some("Senders are not proven")),
            (Some("spf=pass"), Some("No sender is proven")),
            (Some("mx.b.test; none"), Some("No sender is proven")),
            (Some("mx.b.test"), None),
            (Some(TOPMOST), None),
        ] {
            let said = sender_warning(authserv_id).map(|said| said.split(':').next().unwrap());
            assert_eq!(said, expected, "{authserv_id:?}");
        }
    }
}
