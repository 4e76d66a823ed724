//! What is new in a mailbox, and when.
//!
//! Where we are: which mailbox, its UIDVALIDITY, and the last UID that was read. A mailbox that is opened for the first time
//! is read from when the channel was connected. If its UIDVALIDITY changes, its UIDs mean nothing any more: the mails of the last
//! days are read again, and the core knows those that it has by their key. The server wakes us (IDLE); and since that dies silently behind some
//! routers, we also look by ourselves.
//!
//! A mail that can't be read ends the session, and the next one tries again. Attempts are part of the cursor, written before the
//! mail is looked at, so that they also count if it ends the process (`attempts.rs`). Listening goes on between that and the
//! mail's commit ([`Sink::reading`]), or an innocent mail would be taken for one that ends the process.

use std::{convert::Infallible, time::Duration};

use bytes::Bytes;
use jiff::{SignedDuration, Timestamp, tz::TimeZone};
use serde::{Deserialize, Serialize};

use super::{
    attempts::{Tried, skipped},
    mailbox::{self, Mailbox, Opened, Undone},
    parsed::{self, Beside, Unread},
    said::Mail,
};
use crate::{
    bounds,
    contract::{Cursor, EmailConfig, Event, Failure, Link, Sink, Skipped},
    pauses::Pauses,
    world::World,
};

/// How long to wait after a mail that is skipped: a tenant's server can list any number of them, and each is written down.
const BETWEEN_SKIPPED: Duration = Duration::from_millis(100);
/// The largest mail that is read: a stranger's would take three times its size of the organization's memory.
const LARGEST: u64 = 40 * 1024 * 1024;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Place {
    /// The user and the host.
    mailbox: String,
    validity: u32,
    uid: u32,
    /// Mails that were there when this mailbox was opened first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    first: Option<First>,
    /// What was tried of the next mail.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tried: Option<Tried>,
}

/// Of the mails up to this UID, only those that have arrived since then are read. They are not marked as seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct First {
    last: u32,
    since: Timestamp,
}

impl Place {
    /// After this mail.
    fn after(&self, uid: u32) -> Self {
        let first = self.first.filter(|first| uid < first.last);
        Self { uid, first, tried: None, ..self.clone() }
    }
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

impl From<Undone> for Ended {
    fn from(undone: Undone) -> Self {
        Self::Failed(undone.into())
    }
}

/// A mail as its server gave it out.
struct Fetched {
    subject: Option<String>,
    body: Bytes,
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
    let place = cursor.and_then(|cursor| muster_json::from_str(&cursor.0).ok());
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
        let mut mailbox = mailbox::open(&self.world.guard, server, &*self.config.room).await?;
        let can_idle = mailbox.can("IDLE").await?;
        let Some(opened) = mailbox.select().await? else {
            let words = "The mail server does not say which mailbox it has opened.";
            return Err(Failure::NotSent(words.into()).into());
        };
        self.sink.link(Link::Up);
        let user = server.login.as_ref().map_or("", |(user, _)| user);
        self.settle(&mut mailbox, &opened, format!("{user}@{}", server.host)).await?;
        loop {
            // What was told so far is read now.
            mailbox.is_more = false;
            self.read_new(&mut mailbox).await?;
            pauses.reset();
            mailbox.let_go();
            // Servers end IDLE after 30 minutes.
            let longest = self.config.poll.min(Duration::from_secs(25 * 60));
            if can_idle {
                mailbox.idle(longest).await?;
            } else {
                tokio::time::sleep(self.config.poll).await;
                mailbox.ask("NOOP", |_| {}).await?;
            }
        }
    }

    /// Decides from where on this mailbox is read.
    async fn settle(&mut self, mailbox: &mut Mailbox, opened: &Opened, name: String) -> Result<(), Ended> {
        let before = self.place.clone();
        let is_same = |place: &Place| place.mailbox == name;
        if before.as_ref().is_some_and(|place| is_same(place) && place.validity == opened.validity) {
            return Ok(());
        }
        let last = match opened.next {
            Some(next) => next.saturating_sub(1),
            None => mailbox.search("ALL").await?.map_or(0, |(_, last)| last),
        };
        let recent = (self.world.clock)() - SignedDuration::from_hours(7 * 24);
        let since = match &before {
            None => Some(self.config.since),
            Some(before) if is_same(before) => Some(recent.max(self.config.since)),
            // Another mailbox than before is read from now on.
            Some(_) => None,
        };
        let first = match since {
            Some(since) => first_since(mailbox, since).await?.filter(|uid| *uid <= last),
            None => None,
        };
        let place = Place {
            mailbox: name,
            validity: opened.validity,
            uid: first.map_or(last, |uid| uid.saturating_sub(1)),
            first: first.and(since).map(|since| First { last, since }),
            tried: None,
        };
        self.kept(place).await
    }

    /// Reads what has come, and keeps each mail before it is marked as seen.
    async fn read_new(&mut self, mailbox: &mut Mailbox) -> Result<(), Ended> {
        loop {
            let Some(place) = &self.place else { return Ok(()) };
            let listed = mailbox.list(place.uid.saturating_add(1)).await?;
            let are_all = listed.len() < mailbox::LISTED;
            for (uid, mail) in listed {
                self.carry(mailbox, uid, mail).await?;
                mailbox.let_go();
            }
            if are_all {
                return Ok(());
            }
        }
    }

    /// Reads a mail and hands it over.
    async fn carry(&mut self, mailbox: &mut Mailbox, uid: u32, mail: Mail) -> Result<(), Ended> {
        let Some(place) = self.place.clone() else { return Ok(()) };
        let after = place.after(uid);
        let first = place.first.filter(|first| uid <= first.last);
        let is_since = |since: Timestamp| mail.arrived.is_none_or(|at| at.as_second() >= since.as_second());
        if first.is_some_and(|first| !is_since(first.since)) {
            self.place = Some(after);
            return Ok(());
        }
        let now = (self.world.clock)();
        if let Some(tried) = place.tried.as_ref().filter(|tried| tried.uid == uid) {
            if tried.is_over(now) {
                self.skip(tried.skipped()).await;
                return self.kept(after).await;
            }
            mailbox.let_go();
            tokio::time::sleep(tried.rest(now)).await;
        }
        let fetched = self.fetch(mailbox, uid, &mail, &place).await?;
        let reading = self.sink.reading().await;
        let event = match fetched {
            Some(fetched) => self.read(fetched, uid, mail, &place).await?,
            None => None,
        };
        if let Err(stopped) = self.admit(event.into_iter().collect(), &after).await {
            // It was read, and may be tried again as often as need be.
            _ = self.admit(Vec::new(), &Place { tried: None, ..place }).await;
            return Err(stopped);
        }
        drop(reading);
        self.place = Some(after);
        if first.is_none() {
            mailbox.ask(&format!("UID STORE {uid} +FLAGS.SILENT (\\Seen)"), |_| {}).await?;
        }
        Ok(())
    }

    /// Gets a mail, and its subject if it was tried before. `None`: it is skipped.
    async fn fetch(
        &mut self,
        mailbox: &mut Mailbox,
        uid: u32,
        mail: &Mail,
        place: &Place,
    ) -> Result<Option<Fetched>, Ended> {
        let size = mail.size.unwrap_or(LARGEST);
        if size > LARGEST {
            self.skip(skipped(uid, None, "it is too large to be read")).await;
            return Ok(None);
        }
        let before = place.tried.as_ref().filter(|tried| tried.uid == uid);
        let fetched = async {
            // Before it is tried again, so that people can find it.
            let head = match before {
                Some(_) => mailbox.fetch(uid, "HEADER.FIELDS (SUBJECT)", bounds::TEXT as u64).await?,
                None => None,
            };
            let subject = head.and_then(|head| parsed::subject(&head));
            Ok::<_, Undone>((subject, mailbox.fetch(uid, "", size).await?))
        };
        match fetched.await {
            Ok((subject, Some(body))) => {
                Ok(Some(Fetched { subject: subject.or_else(|| parsed::subject(&body)), body }))
            }
            Ok((subject, None)) => {
                self.skip(skipped(uid, subject, "the mail server gives it without its text")).await;
                Ok(None)
            }
            Err(undone) => {
                if !mailbox.is_ours(&undone) {
                    let attempt = Tried::again(before, uid, (self.world.clock)(), None);
                    let attempt =
                        attempt.failed(format!("the mail server fails: {undone}"), undone.is_certain());
                    self.kept(Place { tried: Some(attempt), ..place.clone() }).await?;
                }
                let why = format!("The mail with UID {uid} can't be read: {undone}.");
                Err(Failure::NotSent(why.into()).into())
            }
        }
    }

    /// Reads a mail. What can't be read today or later is skipped.
    async fn read(
        &mut self,
        Fetched { subject, body }: Fetched,
        uid: u32,
        mail: Mail,
        place: &Place,
    ) -> Result<Option<Event>, Ended> {
        let now = (self.world.clock)();
        let attempt = Tried::again(place.tried.as_ref(), uid, now, subject.clone());
        self.kept(Place { tried: Some(attempt.clone()), ..place.clone() }).await?;
        let (labels, authserv_id) = (mail.labels, self.config.authserv_id.clone());
        match parsed::read(body, Beside { labels, authserv_id, now }).await {
            Ok(event) => Ok(event),
            Err(Unread::Refused(why)) => {
                self.skip(skipped(uid, subject, &why.to_string())).await;
                Ok(None)
            }
            Err(unread @ Unread::Failed) => {
                let attempt = attempt.failed(unread.to_string(), true);
                self.kept(Place { tried: Some(attempt.clone()), ..place.clone() }).await?;
                Err(Failure::NotSent(format!("The mail with UID {uid} can't be read: {unread}.").into())
                    .into())
            }
        }
    }

    /// Lists a mail that is skipped.
    async fn skip(&self, skipped: Skipped) {
        self.sink.skipped(skipped).await;
        tokio::time::sleep(BETWEEN_SKIPPED).await;
    }

    async fn kept(&mut self, place: Place) -> Result<(), Ended> {
        self.admit(Vec::new(), &place).await?;
        self.place = Some(place);
        Ok(())
    }

    async fn admit(&self, events: Vec<Event>, place: &Place) -> Result<(), Ended> {
        let cursor = serde_json::to_string(place).ok().map(Cursor);
        let admitted = self.sink.admit(events, cursor).await;
        admitted.map_err(|stopped| Ended::Stopped(Failure::NotSent(stopped.to_string().into())))
    }
}

/// The first mail that may have arrived since then.
async fn first_since(mailbox: &mut Mailbox, since: Timestamp) -> Result<Option<u32>, Undone> {
    // Servers search by days, each in its own zone.
    let day =
        (since - SignedDuration::from_hours(24)).to_zoned(TimeZone::UTC).strftime("%d-%b-%Y").to_string();
    Ok(mailbox.search(&format!("SINCE {day}")).await?.map(|(first, _)| first))
}
