//! What is new in a mailbox, and when.
//!
//! Where we are: which mailbox, its UIDVALIDITY, and the last UID that was read. A mailbox that is opened for the first time
//! is read from when the channel was connected. If its UIDVALIDITY changes, its UIDs mean nothing any more: the mails of the last
//! days are read again, and the core knows those that it has by their key. The server wakes us (IDLE); and since that dies silently behind some
//! routers, we also look by ourselves.

use std::{collections::BTreeMap, convert::Infallible, time::Duration};

use async_imap::{
    extensions::idle::IdleResponse,
    types::{Fetch, Flag, UnsolicitedResponse},
};
use futures::TryStreamExt;
use jiff::{SignedDuration, Timestamp, tz::TimeZone};
use serde::{Deserialize, Serialize};
use tokio::time::timeout;

use super::{
    mailbox::{self, Mailbox, within},
    parsed,
};
use crate::{
    contract::{Cursor, EmailConfig, Event, Failure, Link, Refusal, Sink},
    pauses::Pauses,
    world::World,
};

/// How long IDLE lasts at most; servers end it after 30 minutes.
const LONGEST_IDLE: Duration = Duration::from_secs(25 * 60);
/// How far back is read again if the mailbox was made anew.
const DAYS_AGAIN: i64 = 7;
/// The largest mail that is read.
const LARGEST: u32 = 40 * 1024 * 1024;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Place {
    /// The user and the host.
    mailbox: String,
    validity: u32,
    uid: u32,
}

/// Why a session ended.
enum Ended {
    Failed(Failure),
    Stopped(Failure),
}

impl From<Failure> for Ended {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

struct Reader<'a> {
    config: &'a EmailConfig,
    world: &'a World,
    sink: &'a dyn Sink,
    place: Option<Place>,
}

/// Reads until it is dropped, or the credentials don't count any more.
pub async fn listen(
    config: &EmailConfig,
    world: &World,
    cursor: Option<Cursor>,
    sink: &dyn Sink,
) -> Result<Infallible, Failure> {
    let place = cursor.and_then(|cursor| serde_json::from_str(&cursor.0).ok());
    let mut reader = Reader { config, world, sink, place };
    let mut pauses = Pauses::new();
    loop {
        match reader.session(&mut pauses).await {
            Ok(never) => match never {},
            Err(Ended::Stopped(failure)) => return Err(failure),
            Err(Ended::Failed(failure @ (Failure::Credentials(_) | Failure::Refused(_)))) => {
                return Err(failure);
            }
            Err(Ended::Failed(failure)) => {
                sink.link(Link::Down(failure.to_string().into()));
                pauses.wait(None).await;
            }
        }
    }
}

impl Reader<'_> {
    /// One connection, for as long as it lasts.
    async fn session(&mut self, pauses: &mut Pauses) -> Result<Infallible, Ended> {
        let server = self.config.imap.as_ref();
        let server = server.ok_or_else(|| Failure::Refused("The channel has no IMAP server.".into()))?;
        let mut mailbox = mailbox::open(&self.world.guard, server).await?;
        let can_idle = within(mailbox.capabilities()).await?.has_str("IDLE");
        let opened = within(mailbox.select("INBOX")).await?;
        self.sink.link(Link::Up);
        pauses.reset();
        let validity = opened.uid_validity.unwrap_or_default();
        let user = server.login.as_ref().map_or("", |(user, _)| user);
        let mailbox_name = format!("{user}@{}", server.host);
        let before = self.place.clone();
        let is_read = |place: &Place| place.mailbox == mailbox_name && place.validity == validity;
        if !before.as_ref().is_some_and(is_read) {
            let last = self.last(&mut mailbox, opened.uid_next).await?;
            let recent = (self.world.clock)() - SignedDuration::from_hours(24 * DAYS_AGAIN);
            match &before {
                None => self.read_since(&mut mailbox, self.config.since).await?,
                Some(before) if before.mailbox == mailbox_name => {
                    self.read_since(&mut mailbox, recent.max(self.config.since)).await?;
                }
                // Another mailbox than before is read from now on.
                Some(_) => {}
            }
            self.kept(Vec::new(), Place { mailbox: mailbox_name, validity, uid: last }).await?;
        }
        loop {
            // What was told so far is read now.
            while mailbox.unsolicited_responses.try_recv().is_ok() {}
            self.read_new(&mut mailbox).await?;
            mailbox = self.wait(mailbox, can_idle).await?;
        }
    }

    /// The last UID that was given.
    async fn last(&self, mailbox: &mut Mailbox, next: Option<u32>) -> Result<u32, Ended> {
        match next {
            Some(next) => Ok(next.saturating_sub(1)),
            None => Ok(within(mailbox.uid_search("ALL")).await?.into_iter().max().unwrap_or_default()),
        }
    }

    /// Reads the mails that have arrived since then, though they may have been read before.
    async fn read_since(&mut self, mailbox: &mut Mailbox, since: Timestamp) -> Result<(), Ended> {
        // Servers search by days, each in its own zone.
        let day =
            (since - SignedDuration::from_hours(24)).to_zoned(TimeZone::UTC).strftime("%d-%b-%Y").to_string();
        let uids = within(mailbox.uid_search(format!("SINCE {day}"))).await?;
        let Some(first) = uids.into_iter().min() else { return Ok(()) };
        let is_since =
            |mail: &Fetch| mail.internal_date().is_none_or(|at| at.timestamp() >= since.as_second());
        for mail in self.from(mailbox, first).await?.values().filter(|mail| is_since(mail)) {
            let event = self.read(mailbox, mail).await?;
            self.admit(event.into_iter().collect(), None).await?;
        }
        Ok(())
    }

    /// Reads what has come, and keeps each mail before it is marked as seen.
    async fn read_new(&mut self, mailbox: &mut Mailbox) -> Result<(), Ended> {
        let Some(place) = self.place.clone() else { return Ok(()) };
        for (uid, mail) in self.from(mailbox, place.uid.saturating_add(1)).await? {
            let event = self.read(mailbox, &mail).await?;
            self.kept(event.into_iter().collect(), Place { uid, ..place.clone() }).await?;
            let seen = mailbox.uid_store(uid.to_string(), "+FLAGS.SILENT (\\Seen)");
            within(async { seen.await?.try_collect::<Vec<_>>().await }).await?;
        }
        Ok(())
    }

    /// What is known of the mails from this UID on, in their order.
    async fn from(&self, mailbox: &mut Mailbox, first: u32) -> Result<BTreeMap<u32, Fetch>, Ended> {
        let found = mailbox.uid_fetch(format!("{first}:*"), "(UID RFC822.SIZE FLAGS INTERNALDATE)");
        let found: Vec<_> = within(async { found.await?.try_collect().await }).await?;
        // `*` is the last mail, even if it is before the first one.
        let numbered = found.into_iter().filter_map(|mail: Fetch| Some((mail.uid?, mail)));
        Ok(numbered.filter(|(uid, _)| *uid >= first).collect())
    }

    async fn read(&self, mailbox: &mut Mailbox, mail: &Fetch) -> Result<Option<Event>, Ended> {
        if mail.size.is_some_and(|size| size > LARGEST) {
            self.sink.skipped(Refusal::Malformed("A mail is too large to be read.".into()));
            return Ok(None);
        }
        let fetched = mailbox.uid_fetch(mail.uid.unwrap_or_default().to_string(), "(UID BODY.PEEK[])");
        let fetched: Vec<_> = within(async { fetched.await?.try_collect().await }).await?;
        let body = fetched.iter().find(|fetched| fetched.uid == mail.uid).and_then(|mail| mail.body());
        let Some(body) = body else { return Ok(None) };
        let labels: Vec<_> = mail.flags().filter_map(|flag| keyword(&flag)).collect();
        match parsed::event(body, &labels, self.config, (self.world.clock)()) {
            Ok(event) => Ok(event),
            Err(refusal) => {
                self.sink.skipped(refusal);
                Ok(None)
            }
        }
    }

    async fn kept(&mut self, events: Vec<Event>, place: Place) -> Result<(), Ended> {
        let cursor = serde_json::to_string(&place).ok().map(Cursor);
        self.admit(events, cursor).await?;
        self.place = Some(place);
        Ok(())
    }

    async fn admit(&self, events: Vec<Event>, cursor: Option<Cursor>) -> Result<(), Ended> {
        if events.is_empty() && cursor.is_none() {
            return Ok(());
        }
        let admitted = self.sink.admit(events, cursor).await;
        admitted.map_err(|stopped| Ended::Stopped(Failure::NotSent(stopped.to_string().into())))
    }

    /// Waits until something may be new.
    async fn wait(&self, mut mailbox: Mailbox, can_idle: bool) -> Result<Mailbox, Ended> {
        if !can_idle {
            tokio::time::sleep(self.config.poll).await;
            within(mailbox.noop()).await?;
            return Ok(mailbox);
        }
        let told = mailbox.unsolicited_responses.clone();
        let mut idle = mailbox.idle();
        within(idle.init()).await?;
        // A mail of which the server told while we were reading is not told again.
        let mut is_more = false;
        while let Ok(response) = told.try_recv() {
            is_more |= matches!(response, UnsolicitedResponse::Exists(_));
        }
        if is_more {
            return Ok(within(idle.done()).await?);
        }
        let longest = self.config.poll.min(LONGEST_IDLE);
        let (woken, stop) = idle.wait_with_timeout(longest);
        // The inner limit begins anew whenever the server says that it is still there.
        let lost = match timeout(longest, woken).await {
            Ok(Ok(IdleResponse::ManualInterrupt) | Err(_)) => true,
            Ok(Ok(_)) | Err(_) => false,
        };
        drop(stop);
        if lost {
            return Err(Failure::NotSent("The mail server closes the connection.".into()).into());
        }
        Ok(within(idle.done()).await?)
    }
}

/// Labels of a mail are its keywords.
fn keyword(flag: &Flag<'_>) -> Option<String> {
    match flag {
        Flag::Custom(word) => Some(word.to_string()),
        _ => None,
    }
}
