//! What is new in a mailbox, and when.
//!
//! Where we are: which mailbox, its UIDVALIDITY, and the last UID that was read. A mailbox that is opened for the first time
//! is read from when the channel was connected. If its UIDVALIDITY changes, its UIDs mean nothing any more: the mails of the last
//! days are read again, and the core knows those that it has by their key. The server wakes us (IDLE); and since that dies silently behind some
//! routers, we also look by ourselves.
//!
//! A mail that the server does not give out is not passed over: the session ends, and the next one asks again. Some servers
//! refuse one mail for ever, so after a while it is skipped.

use std::{collections::BTreeMap, convert::Infallible, time::Duration};

use async_imap::{
    error::Error,
    extensions::idle::IdleResponse,
    imap_proto::{AttributeValue, MailboxDatum, Response},
    types::{Flag, UnsolicitedResponse},
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
/// How often a mail is in memory while it is read: as it came, and as what is in it.
const COPIES: u64 = 3;
/// How long the server may refuse a mail until it is skipped.
const REFUSED: SignedDuration = SignedDuration::from_mins(15);

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
    /// UIDs that the server refuses, and since when.
    refused: BTreeMap<u32, Timestamp>,
    /// Whether the server told of another mail while we were reading.
    is_more: bool,
}

/// What is known of a mail before it is read.
#[derive(Default)]
struct Listed {
    size: Option<u32>,
    labels: Vec<String>,
    arrived: Option<Timestamp>,
}

impl Listed {
    fn note(&mut self, attribute: &AttributeValue<'_>) {
        match attribute {
            AttributeValue::Rfc822Size(size) => self.size = Some(*size),
            AttributeValue::Flags(flags) => {
                self.labels = flags.iter().filter_map(|flag| keyword(&Flag::from(flag.as_ref()))).collect();
            }
            AttributeValue::InternalDate(at) => self.arrived = instant(at),
            _ => {}
        }
    }
}

/// Reads until it is dropped, or the credentials don't count any more.
pub async fn listen(
    config: &EmailConfig,
    world: &World,
    cursor: Option<Cursor>,
    sink: &dyn Sink,
) -> Result<Infallible, Failure> {
    let place = cursor.and_then(|cursor| serde_json::from_str(&cursor.0).ok());
    let mut reader = Reader { config, world, sink, place, refused: BTreeMap::new(), is_more: false };
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
        let Some(validity) = opened.uid_validity else {
            return Err(
                Failure::NotSent("The mail server does not say which mailbox it has opened.".into()).into()
            );
        };
        self.sink.link(Link::Up);
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
            self.is_more = false;
            self.read_new(&mut mailbox).await?;
            pauses.reset();
            mailbox = self.wait(mailbox, can_idle).await?;
        }
    }

    /// The last UID that was given.
    async fn last(&mut self, mailbox: &mut Mailbox, next: Option<u32>) -> Result<u32, Ended> {
        match next {
            Some(next) => Ok(next.saturating_sub(1)),
            None => Ok(self.search(mailbox, "ALL").await?.into_iter().max().unwrap_or_default()),
        }
    }

    /// Reads the mails that have arrived since then, though they may have been read before.
    async fn read_since(&mut self, mailbox: &mut Mailbox, since: Timestamp) -> Result<(), Ended> {
        // Servers search by days, each in its own zone.
        let day =
            (since - SignedDuration::from_hours(24)).to_zoned(TimeZone::UTC).strftime("%d-%b-%Y").to_string();
        let uids = self.search(mailbox, &format!("SINCE {day}")).await?;
        let Some(first) = uids.into_iter().min() else { return Ok(()) };
        let is_since = |mail: &Listed| mail.arrived.is_none_or(|at| at.as_second() >= since.as_second());
        for (uid, mail) in self.from(mailbox, first).await? {
            if is_since(&mail) {
                self.carry(mailbox, (uid, &mail), None).await?;
            }
        }
        Ok(())
    }

    /// Reads what has come, and keeps each mail before it is marked as seen.
    async fn read_new(&mut self, mailbox: &mut Mailbox) -> Result<(), Ended> {
        let Some(place) = self.place.clone() else { return Ok(()) };
        for (uid, mail) in self.from(mailbox, place.uid.saturating_add(1)).await? {
            self.carry(mailbox, (uid, &mail), Some(Place { uid, ..place.clone() })).await?;
            let seen = mailbox.uid_store(uid.to_string(), "+FLAGS.SILENT (\\Seen)");
            within(async { seen.await?.try_collect::<Vec<_>>().await }).await?;
        }
        Ok(())
    }

    /// Reads a mail and hands it over. If `place` is given, that is where we are then.
    async fn carry(
        &mut self,
        mailbox: &mut Mailbox,
        (uid, mail): (u32, &Listed),
        place: Option<Place>,
    ) -> Result<(), Ended> {
        let size = mail.size.unwrap_or(LARGEST).min(LARGEST);
        let _held = self.world.memory.take(COPIES * u64::from(size)).await;
        let events = self.read(mailbox, uid, mail).await?.into_iter().collect();
        match place {
            Some(place) => self.kept(events, place).await,
            None => self.admit(events, None).await,
        }
    }

    /// The UIDs of the mails that a search finds.
    async fn search(&mut self, mailbox: &mut Mailbox, what: &str) -> Result<Vec<u32>, Ended> {
        let (command, mut found) = (format!("UID SEARCH {what}"), Vec::new());
        let searched = self.ask(mailbox, &command, |said| {
            if let Response::MailboxData(MailboxDatum::Search(uids)) = said {
                found.extend(uids);
            }
        });
        within(searched).await?;
        Ok(found)
    }

    /// What is known of the mails from this UID on, in their order.
    async fn from(&mut self, mailbox: &mut Mailbox, first: u32) -> Result<BTreeMap<u32, Listed>, Ended> {
        let command = format!("UID FETCH {first}:* (UID RFC822.SIZE FLAGS INTERNALDATE)");
        let mut found = BTreeMap::<u32, Listed>::new();
        let listed = self.ask(mailbox, &command, |said| {
            // `*` is the last mail, even if it is before the first one.
            if let Response::Fetch(_, attributes) = said
                && let Some(uid) = uid_of(attributes).filter(|uid| *uid >= first)
            {
                let mail = found.entry(uid).or_default();
                for attribute in attributes {
                    mail.note(attribute);
                }
            }
        });
        within(listed).await?;
        Ok(found)
    }

    async fn read(&mut self, mailbox: &mut Mailbox, uid: u32, mail: &Listed) -> Result<Option<Event>, Ended> {
        if mail.size.is_some_and(|size| size > LARGEST) {
            self.sink.skipped(Refusal::Malformed("A mail is too large to be read.".into()));
            return Ok(None);
        }
        let (command, mut body) = (format!("UID FETCH {uid} (UID BODY.PEEK[])"), None);
        let asked = self.ask(mailbox, &command, |said| {
            if let Response::Fetch(_, attributes) = said
                && uid_of(attributes) == Some(uid)
            {
                body = body_of(attributes).map(<[u8]>::to_vec).or(body.take());
            }
        });
        let is_refused = within(async {
            match asked.await {
                Err(Error::No(_) | Error::Bad(_)) => Ok(true),
                done => done.map(|()| false),
            }
        });
        if is_refused.await? {
            return self.refused(uid).map(|()| None);
        }
        self.refused.remove(&uid);
        // One that was removed meanwhile has no body.
        let Some(body) = body else { return Ok(None) };
        match parsed::event(&body, &mail.labels, self.config, (self.world.clock)()) {
            Ok(event) => Ok(event),
            Err(refusal) => {
                self.sink.skipped(refusal);
                Ok(None)
            }
        }
    }

    /// The server refuses a mail: it is asked for again later, unless that has gone on for too long.
    fn refused(&mut self, uid: u32) -> Result<(), Ended> {
        let now = (self.world.clock)();
        let since = *self.refused.entry(uid).or_insert(now);
        if now.duration_since(since) < REFUSED {
            return Err(Failure::NotSent("The mail server refuses to give out a mail.".into()).into());
        }
        self.sink.skipped(Refusal::Malformed("The mail server refuses to give out a mail.".into()));
        Ok(())
    }

    /// Sends a command, and notes whether the server tells of another mail meanwhile.
    async fn ask(
        &mut self,
        mailbox: &mut Mailbox,
        command: &str,
        mut said: impl FnMut(&Response<'_>) + Send,
    ) -> Result<(), Error> {
        let is_more = &mut self.is_more;
        mailbox::ask(mailbox, command, |response| {
            *is_more |= matches!(response, Response::MailboxData(MailboxDatum::Exists(_)));
            said(response);
        })
        .await
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
        let mut is_more = self.is_more;
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

fn uid_of(attributes: &[AttributeValue<'_>]) -> Option<u32> {
    attributes.iter().find_map(|attribute| match attribute {
        AttributeValue::Uid(uid) => Some(*uid),
        _ => None,
    })
}

fn body_of<'a>(attributes: &'a [AttributeValue<'_>]) -> Option<&'a [u8]> {
    attributes.iter().find_map(|attribute| match attribute {
        AttributeValue::BodySection { section: None, data, .. } => data.as_deref(),
        _ => None,
    })
}

/// When a mail arrived, as IMAP writes it.
fn instant(written: &str) -> Option<Timestamp> {
    Timestamp::strptime("%d-%b-%Y %H:%M:%S %z", written).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_arrival_is_read() {
        for (written, expected) in [
            ("17-Jul-1996 02:44:25 -0700", Some("1996-07-17T09:44:25Z")),
            (" 1-Jan-2026 00:00:00 +0100", Some("2025-12-31T23:00:00Z")),
            ("yesterday", None),
        ] {
            assert_eq!(instant(written), expected.map(|at| at.parse().unwrap()), "{written}");
        }
    }
}
