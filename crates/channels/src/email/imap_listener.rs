//! Listens for new mails in a mailbox.
//!
//! The position is the mailbox, its UIDVALIDITY, and the last UID read. A newly opened mailbox is read from the
//! channel's connection on. When UIDVALIDITY changes, UIDs become meaningless: the mails of the last days are read
//! again, and the core recognizes known ones by their key. The server wakes us (IDLE); since some routers drop idle
//! connections silently, we also poll.
//!
//! A mail that can't be read ends the session, and the next one retries. Attempts are part of the cursor, stored before
//! the mail is parsed, so that crashes count, too (`attempts.rs`). Between that and the mail's commit listening isn't
//! stopped ([`Sink::reading`]); otherwise an innocent mail would count as a crash.

use std::{convert::Infallible, time::Duration};

use bytes::Bytes;
use jiff::{SignedDuration, Timestamp, tz::TimeZone};
use serde::{Deserialize, Serialize};

use super::{
    attempts::{Attempts, skipped_mail},
    imap::{self, CommandError, Mailbox, Selected},
    imap_response::Mail,
    inbound::{self, MailContext, ParseError},
};
use crate::{
    backoff::Backoff,
    bounds,
    contract::{Cursor, EmailConfig, Event, Failure, Link, Sink, Skipped},
    network::Network,
};

/// Pause after a skipped mail: a tenant's server can list any number, and each is recorded.
const SKIP_PAUSE: Duration = Duration::from_millis(100);
/// Maximum size of a mail: reading takes three times that of the organization's memory.
const MAX_MAIL_SIZE: u64 = 40 * 1024 * 1024;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Position {
    /// The user and the host.
    mailbox: String,
    validity: u32,
    uid: u32,
    /// Mails from before this mailbox was first opened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    first: Option<Backlog>,
    /// Attempts of the next mail.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tried: Option<Attempts>,
}

/// Of the mails up to this UID, only those since then are read. They are not marked as seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Backlog {
    last: u32,
    since: Timestamp,
}

impl Position {
    fn after(&self, uid: u32) -> Self {
        let first = self.first.filter(|first| uid < first.last);
        Self { uid, first, tried: None, ..self.clone() }
    }
}

/// Why a session ended.
enum SessionEnd {
    Failed(Failure),
    Stopped(Failure),
}

impl From<Failure> for SessionEnd {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

impl From<CommandError> for SessionEnd {
    fn from(undone: CommandError) -> Self {
        Self::Failed(undone.into())
    }
}

struct Fetched {
    subject: Option<String>,
    body: Bytes,
}

struct Listener<'a> {
    config: &'a EmailConfig,
    network: &'a Network,
    sink: &'a dyn Sink,
    position: Option<Position>,
}

/// Listens until dropped, or until the credentials are rejected.
pub async fn listen(
    config: &EmailConfig,
    network: &Network,
    cursor: Option<Cursor>,
    sink: &dyn Sink,
) -> Result<Infallible, Failure> {
    let position = cursor.and_then(|cursor| muster_json::from_str(&cursor.0).ok());
    let mut reader = Listener { config, network, sink, position };
    let mut backoff = Backoff::new();
    loop {
        match reader.run_session(&mut backoff).await {
            Ok(never) => match never {},
            Err(SessionEnd::Stopped(failure)) => return Err(failure),
            Err(SessionEnd::Failed(
                failure @ (Failure::Credentials(_) | Failure::Refused(_) | Failure::NotPublic(_)),
            )) => {
                return Err(failure);
            }
            Err(SessionEnd::Failed(failure)) => {
                sink.link(Link::Down(failure.to_string().into()));
                backoff.wait(None).await;
            }
        }
    }
}

impl Listener<'_> {
    /// One connection, for as long as it lasts.
    async fn run_session(&mut self, backoff: &mut Backoff) -> Result<Infallible, SessionEnd> {
        let server = self.config.imap.as_ref();
        let server = server.ok_or_else(|| Failure::Refused("The channel has no IMAP server.".into()))?;
        let mut mailbox = imap::open(&self.network.guard, server, &*self.config.memory).await?;
        let can_idle = mailbox.has_capability("IDLE").await?;
        let Some(opened) = mailbox.select().await? else {
            let words = "The mail server does not say which mailbox it has opened.";
            return Err(Failure::NotSent(words.into()).into());
        };
        self.sink.link(Link::Up);
        let user = server.login.as_ref().map_or("", |(user, _)| user);
        self.find_start(&mut mailbox, &opened, format!("{user}@{}", server.host)).await?;
        loop {
            // Earlier announcements are covered by this read.
            mailbox.is_more = false;
            self.read_new_mails(&mut mailbox).await?;
            backoff.reset();
            mailbox.release_memory();
            // Servers end IDLE after 30 minutes.
            let longest = self.config.poll.min(Duration::from_secs(25 * 60));
            if can_idle {
                mailbox.idle(longest).await?;
            } else {
                tokio::time::sleep(self.config.poll).await;
                mailbox.run("NOOP", |_| {}).await?;
            }
        }
    }

    /// Determines the starting position in this mailbox.
    async fn find_start(
        &mut self,
        mailbox: &mut Mailbox,
        opened: &Selected,
        name: String,
    ) -> Result<(), SessionEnd> {
        let before = self.position.clone();
        let is_same = |position: &Position| position.mailbox == name;
        if before.as_ref().is_some_and(|position| is_same(position) && position.validity == opened.validity) {
            return Ok(());
        }
        let last = match opened.next {
            Some(next) => next.saturating_sub(1),
            None => mailbox.search("ALL").await?.map_or(0, |(_, last)| last),
        };
        let recent = (self.network.clock)() - SignedDuration::from_hours(7 * 24);
        let since = match &before {
            None => Some(self.config.since),
            Some(before) if is_same(before) => Some(recent.max(self.config.since)),
            // A different mailbox is read from now on.
            Some(_) => None,
        };
        let first = match since {
            Some(since) => first_since(mailbox, since).await?.filter(|uid| *uid <= last),
            None => None,
        };
        let position = Position {
            mailbox: name,
            validity: opened.validity,
            uid: first.map_or(last, |uid| uid.saturating_sub(1)),
            first: first.and(since).map(|since| Backlog { last, since }),
            tried: None,
        };
        self.store_position(position).await
    }

    /// Reads new mails; each is stored before it is marked as seen.
    async fn read_new_mails(&mut self, mailbox: &mut Mailbox) -> Result<(), SessionEnd> {
        loop {
            let Some(position) = &self.position else { return Ok(()) };
            let listed = mailbox.list(position.uid.saturating_add(1)).await?;
            let are_all = listed.len() < imap::MAX_LISTED;
            for (uid, mail) in listed {
                self.process_mail(mailbox, uid, mail).await?;
                mailbox.release_memory();
            }
            if are_all {
                return Ok(());
            }
        }
    }

    /// Reads one mail and hands it over.
    async fn process_mail(&mut self, mailbox: &mut Mailbox, uid: u32, mail: Mail) -> Result<(), SessionEnd> {
        let Some(position) = self.position.clone() else { return Ok(()) };
        let after = position.after(uid);
        let first = position.first.filter(|first| uid <= first.last);
        let is_since = |since: Timestamp| mail.arrived.is_none_or(|at| at.as_second() >= since.as_second());
        if first.is_some_and(|first| !is_since(first.since)) {
            self.position = Some(after);
            return Ok(());
        }
        let now = (self.network.clock)();
        if let Some(tried) = position.tried.as_ref().filter(|tried| tried.uid == uid) {
            if tried.is_exhausted(now) {
                self.report_skipped(tried.report()).await;
                return self.store_position(after).await;
            }
            mailbox.release_memory();
            tokio::time::sleep(tried.delay(now)).await;
        }
        let fetched = self.fetch(mailbox, uid, &mail, &position).await?;
        let reading = self.sink.reading().await;
        let event = match fetched {
            Some(fetched) => self.read(fetched, uid, mail, &position).await?,
            None => None,
        };
        if let Err(stopped) = self.admit(event.into_iter().collect(), &after).await {
            // The mail was readable, so the attempt doesn't count.
            _ = self.admit(Vec::new(), &Position { tried: None, ..position }).await;
            return Err(stopped);
        }
        drop(reading);
        self.position = Some(after);
        if first.is_none() {
            mailbox.run(&format!("UID STORE {uid} +FLAGS.SILENT (\\Seen)"), |_| {}).await?;
        }
        Ok(())
    }

    /// Fetches a mail, after its subject if it was tried before. `None`: skipped.
    async fn fetch(
        &mut self,
        mailbox: &mut Mailbox,
        uid: u32,
        mail: &Mail,
        position: &Position,
    ) -> Result<Option<Fetched>, SessionEnd> {
        let size = mail.size.unwrap_or(MAX_MAIL_SIZE);
        if size > MAX_MAIL_SIZE {
            self.report_skipped(skipped_mail(uid, None, "it is too large to be read")).await;
            return Ok(None);
        }
        let before = position.tried.as_ref().filter(|tried| tried.uid == uid);
        let fetched = async {
            // For the report, if this attempt crashes.
            let head = match before {
                Some(_) => mailbox.fetch(uid, "HEADER.FIELDS (SUBJECT)", bounds::TEXT as u64).await?,
                None => None,
            };
            let subject = head.and_then(|head| inbound::subject(&head));
            Ok::<_, CommandError>((subject, mailbox.fetch(uid, "", size).await?))
        };
        match fetched.await {
            Ok((subject, Some(body))) => {
                Ok(Some(Fetched { subject: subject.or_else(|| inbound::subject(&body)), body }))
            }
            Ok((subject, None)) => {
                self.report_skipped(skipped_mail(
                    uid,
                    subject,
                    "the mail server returns it without its text",
                ))
                .await;
                Ok(None)
            }
            Err(undone) => {
                if !mailbox.is_our_fault(&undone) {
                    let attempt = Attempts::count(before, uid, (self.network.clock)(), None);
                    let attempt =
                        attempt.with_failure(format!("the mail server fails: {undone}"), undone.is_certain());
                    self.store_position(Position { tried: Some(attempt), ..position.clone() }).await?;
                }
                let why = format!("The mail with UID {uid} can't be read: {undone}.");
                Err(Failure::NotSent(why.into()).into())
            }
        }
    }

    /// Parses a mail. One that is rejected for good is skipped.
    async fn read(
        &mut self,
        Fetched { subject, body }: Fetched,
        uid: u32,
        mail: Mail,
        position: &Position,
    ) -> Result<Option<Event>, SessionEnd> {
        let now = (self.network.clock)();
        let attempt = Attempts::count(position.tried.as_ref(), uid, now, subject.clone());
        self.store_position(Position { tried: Some(attempt.clone()), ..position.clone() }).await?;
        let (labels, authserv_id) = (mail.labels, self.config.authserv_id.clone());
        match inbound::read(body, MailContext { labels, authserv_id, now }).await {
            Ok(event) => Ok(event),
            Err(ParseError::Refused(why)) => {
                self.report_skipped(skipped_mail(uid, subject, &why.to_string())).await;
                Ok(None)
            }
            Err(unread @ ParseError::Failed) => {
                let attempt = attempt.with_failure(unread.to_string(), true);
                self.store_position(Position { tried: Some(attempt.clone()), ..position.clone() }).await?;
                Err(Failure::NotSent(format!("The mail with UID {uid} can't be read: {unread}.").into())
                    .into())
            }
        }
    }

    async fn report_skipped(&self, skipped: Skipped) {
        self.sink.skipped(skipped).await;
        tokio::time::sleep(SKIP_PAUSE).await;
    }

    async fn store_position(&mut self, position: Position) -> Result<(), SessionEnd> {
        self.admit(Vec::new(), &position).await?;
        self.position = Some(position);
        Ok(())
    }

    async fn admit(&self, events: Vec<Event>, position: &Position) -> Result<(), SessionEnd> {
        let cursor = serde_json::to_string(position).ok().map(Cursor);
        let admitted = self.sink.admit(events, cursor).await;
        admitted.map_err(|stopped| SessionEnd::Stopped(Failure::NotSent(stopped.to_string().into())))
    }
}

/// The first UID that may have arrived since then.
async fn first_since(mailbox: &mut Mailbox, since: Timestamp) -> Result<Option<u32>, CommandError> {
    // Servers search by days, each in its own time zone.
    let day =
        (since - SignedDuration::from_hours(24)).to_zoned(TimeZone::UTC).strftime("%d-%b-%Y").to_string();
    Ok(mailbox.search(&format!("SINCE {day}")).await?.map(|(first, _)| first))
}
