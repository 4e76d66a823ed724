//! The connection to a mailbox: signing in, and commands (RFC 3501).

use std::{fmt::Write, time::Duration};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use secrecy::ExposeSecret;
use tokio::{
    io::AsyncWriteExt,
    time::{Instant, sleep, timeout},
};

use super::{
    bearer,
    responses::{Broken, Responses},
    said::{Mail, Said, Verdict},
};
use crate::{
    bounds::SILENCE,
    contract::{Failure, MailServer, Room},
    world::{Guard, Stream},
};

/// How long not to hear a server that talks in IDLE without telling of mail: twenty that never stopped kept the workers busy.
const BETWEEN_SAID: Duration = Duration::from_millis(100);
/// How many mails are listed at a time: a tenant's server can name any number.
pub const LISTED: usize = 500;

/// Why a command was not done.
#[derive(Debug, thiserror::Error)]
pub enum Undone {
    #[error("{0}")]
    Broken(#[from] Broken),
    #[error("it refuses a command")]
    Refused(Verdict),
}

impl From<std::io::Error> for Undone {
    fn from(error: std::io::Error) -> Self {
        Self::Broken(error.into())
    }
}

impl Undone {
    /// Whether trying again is likely to end in the same way.
    pub const fn is_certain(&self) -> bool {
        matches!(self, Self::Broken(Broken::TooLong | Broken::TooDeep | Broken::Unclear))
    }
}

impl From<Undone> for Failure {
    fn from(undone: Undone) -> Self {
        Self::NotSent(format!("The mail server can't be used: {undone}.").into())
    }
}

/// A mailbox that somebody is signed in to.
pub struct Mailbox {
    stream: Box<dyn Stream>,
    responses: Responses,
    tags: u32,
    /// Whether the server told of another mail.
    pub is_more: bool,
}

/// What was opened.
pub struct Opened {
    pub validity: u32,
    /// The next UID, where the server says so.
    pub next: Option<u32>,
}

/// Connects and signs in.
pub async fn open(guard: &Guard, server: &MailServer, room: &dyn Room) -> Result<Mailbox, Failure> {
    let mut mailbox = greeted(guard, server, room).await?;
    let Some((user, password)) = &server.login else {
        return Err(Failure::Credentials("The mailbox needs a user and a password.".into()));
    };
    match mailbox.sign_in(user, password.expose_secret()).await {
        Ok(()) => Ok(mailbox),
        Err(Undone::Refused(Verdict::No(words))) if !is_away(&words) => {
            Err(Failure::Credentials("The mail server refuses the mailbox's user or password.".into()))
        }
        Err(undone) => Err(undone.into()),
    }
}

/// Connects, and encrypts as the server's settings say.
async fn greeted(guard: &Guard, server: &MailServer, room: &dyn Room) -> Result<Mailbox, Failure> {
    let stream = guard.connect(&server.host, server.port).await?;
    if !server.tls {
        unencrypted(guard.is_trusted(&stream))?;
    }
    let stream: Box<dyn Stream> = if server.tls && server.port == 993 {
        Box::new(guard.secure(&server.host, server.port, stream).await?)
    } else {
        Box::new(stream)
    };
    let mut mailbox = Mailbox { stream, responses: Responses::new(room), tags: 0, is_more: false };
    mailbox.welcomed().await?;
    if server.tls && server.port != 993 {
        mailbox.ask("STARTTLS", |_| {}).await?;
        // What was read before the encryption began could be anybody's.
        mailbox.responses.forget();
        mailbox.stream = Box::new(guard.secure(&server.host, server.port, mailbox.stream).await?);
    }
    Ok(mailbox)
}

/// A password may cross only networks that the operator lists without encryption.
pub fn unencrypted(is_trusted: bool) -> Result<(), Failure> {
    let words =
        "Mail servers are reached with TLS. Only the operator can allow one without, by listing its network.";
    if is_trusted { Ok(()) } else { Err(Failure::Refused(words.into())) }
}

impl Mailbox {
    async fn welcomed(&mut self) -> Result<(), Undone> {
        match self.hear(Instant::now() + SILENCE).await? {
            Said::Ready | Said::Validity(_) | Said::Next(_) => Ok(()),
            Said::Bye => Err(Broken::Lost.into()),
            _ => Err(Broken::Unclear.into()),
        }
    }

    async fn sign_in(&mut self, user: &str, password: &str) -> Result<(), Undone> {
        let Some(token) = bearer::token(password) else {
            return self.ask(&format!("LOGIN {} {}", quoted(user), quoted(password)), |_| {}).await;
        };
        let tag = self.tell("AUTHENTICATE XOAUTH2").await?;
        let until = Instant::now() + SILENCE;
        // A server that refuses the token asks again, with its reason, and waits for an empty answer before it says no.
        let mut answer = STANDARD.encode(bearer::shown(user, token));
        loop {
            match self.hear(until).await? {
                Said::Go => self.send(&std::mem::take(&mut answer)).await?,
                Said::Done { tag: of, verdict } if of == tag => return settled(verdict),
                _ => {}
            }
        }
    }

    /// Whether the server can do this.
    pub async fn can(&mut self, what: &str) -> Result<bool, Undone> {
        let mut can = false;
        let asked = self.ask("CAPABILITY", |said| {
            if let Said::Can(words) = said {
                can |= words.iter().any(|word| word == what);
            }
        });
        asked.await?;
        Ok(can)
    }

    /// Opens the INBOX. `None`: the server does not say which mailbox that is.
    pub async fn select(&mut self) -> Result<Option<Opened>, Undone> {
        let (mut validity, mut next) = (None, None);
        let asked = self.ask("SELECT INBOX", |said| match said {
            Said::Validity(value) => validity = Some(value),
            Said::Next(value) => next = Some(value),
            _ => {}
        });
        asked.await?;
        Ok(validity.map(|validity| Opened { validity, next }))
    }

    /// The first and the last UID of the mails that a search finds.
    pub async fn search(&mut self, what: &str) -> Result<Option<(u32, u32)>, Undone> {
        let mut found: Option<(u32, u32)> = None;
        let command = format!("UID SEARCH {what}");
        let asked = self.ask(&command, |said| {
            if let Said::Found(Some((first, last))) = said {
                let (before, after) = found.unwrap_or((first, last));
                found = Some((first.min(before), last.max(after)));
            }
        });
        asked.await?;
        Ok(found)
    }

    /// What is known of the first mails from this UID on, in their order.
    pub async fn list(&mut self, first: u32) -> Result<Vec<(u32, Mail)>, Undone> {
        let mut found = std::collections::BTreeMap::<u32, Mail>::new();
        let command = format!("UID FETCH {first}:* (UID RFC822.SIZE FLAGS INTERNALDATE)");
        let asked = self.ask(&command, |said| {
            // `*` is the last mail, even if it is before the first one.
            if let Said::Mail(mail) = said
                && let Some(uid) = mail.uid.filter(|uid| *uid >= first)
            {
                let known = found.entry(uid).or_default();
                known.size = mail.size.or(known.size);
                known.arrived = mail.arrived.or(known.arrived);
                if !mail.labels.is_empty() {
                    known.labels = mail.labels;
                }
                if found.len() > LISTED {
                    found.pop_last();
                }
            }
        });
        asked.await?;
        Ok(found.into_iter().collect())
    }

    /// A part of a mail, which may have so many bytes. `None`: the server gives none. Its memory is counted until the next command.
    pub async fn fetch(&mut self, uid: u32, part: &str, bytes: u64) -> Result<Option<bytes::Bytes>, Undone> {
        let mut body = None;
        let command = format!("UID FETCH {uid} (UID BODY.PEEK[{part}])");
        // At the least rate that is allowed (`responses.rs`).
        let patience = SILENCE + Duration::from_secs(bytes / (64 << 10));
        let asked = self.ask_for(&command, patience, |said| {
            if let Said::Mail(mail) = said
                && mail.uid == Some(uid)
            {
                body = mail.body.or(body.take());
            }
        });
        asked.await?;
        Ok(body)
    }

    /// Waits in IDLE until the server tells of another mail, but not longer than this.
    pub async fn idle(&mut self, longest: Duration) -> Result<(), Undone> {
        let tag = self.tell("IDLE").await?;
        let until = Instant::now() + SILENCE;
        loop {
            match self.hear(until).await? {
                Said::Go => break,
                Said::Done { tag: of, verdict } if of == tag => return settled(verdict),
                _ => {}
            }
        }
        // A mail of which the server told while we were reading is not told again.
        let until = Instant::now() + longest;
        // A server that never stops talking does not keep us here.
        while !self.is_more && Instant::now() < until {
            match self.hear(until).await {
                Err(Undone::Broken(Broken::Slow)) => break,
                heard => drop(heard?),
            }
            self.let_go();
            self.responses.begin();
            if !self.is_more {
                sleep(BETWEEN_SAID).await;
            }
        }
        self.send("DONE").await?;
        self.done(tag, Instant::now() + SILENCE, |_| {}).await
    }

    /// Sends a command, and hands on what the server says until it has done it.
    pub async fn ask(&mut self, command: &str, said: impl FnMut(Said) + Send) -> Result<(), Undone> {
        self.ask_for(command, SILENCE, said).await
    }

    async fn ask_for(
        &mut self,
        command: &str,
        patience: Duration,
        said: impl FnMut(Said) + Send,
    ) -> Result<(), Undone> {
        // What was read before was looked at, so it is not held while the server takes its time.
        self.let_go();
        let until = Instant::now() + patience;
        let tag = self.tell(command).await?;
        self.done(tag, until, said).await
    }

    async fn done(
        &mut self,
        tag: u32,
        until: Instant,
        mut said: impl FnMut(Said) + Send,
    ) -> Result<(), Undone> {
        loop {
            match self.hear(until).await? {
                Said::Done { tag: of, verdict } if of == tag => return settled(verdict),
                other => said(other),
            }
        }
    }

    async fn hear(&mut self, until: Instant) -> Result<Said, Undone> {
        let said = self.responses.next(&mut self.stream, until).await?.said()?;
        self.is_more |= said == Said::Exists;
        Ok(said)
    }

    async fn tell(&mut self, command: &str) -> Result<u32, Undone> {
        self.tags += 1;
        let mut line = String::with_capacity(command.len() + 12);
        _ = write!(line, "A{} {command}", self.tags);
        self.send(&line).await?;
        Ok(self.tags)
    }

    async fn send(&mut self, line: &str) -> Result<(), Undone> {
        self.responses.begin();
        let line = format!("{line}\r\n");
        let sent = async {
            self.stream.write_all(line.as_bytes()).await?;
            self.stream.flush().await
        };
        timeout(SILENCE, sent).await.map_err(|_| Broken::Slow)??;
        Ok(())
    }

    /// Whether a command was not done because of us: it has waited for memory, and servers don't wait for long. What can't be
    /// understood has nothing to do with that.
    pub const fn is_ours(&self, undone: &Undone) -> bool {
        self.responses.has_waited() && !undone.is_certain()
    }

    /// Gives back the memory of what was read.
    pub fn let_go(&mut self) {
        self.responses.let_go();
    }

    /// Says goodbye.
    pub async fn log_out(mut self) {
        _ = timeout(Duration::from_secs(5), self.ask("LOGOUT", |_| {})).await;
    }
}

fn settled(verdict: Verdict) -> Result<(), Undone> {
    match verdict {
        Verdict::Ok => Ok(()),
        refused => Err(Undone::Refused(refused)),
    }
}

/// A text in quotes. It can't end its line.
fn quoted(text: &str) -> String {
    let text: String = text.chars().filter(|c| !matches!(c, '\r' | '\n' | '\0')).collect();
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// Whether a server's no is not about the password: codes of RFC 5530, and what servers write without one.
fn is_away(words: &str) -> bool {
    const AWAY: [&str; 8] =
        ["UNAVAILABLE", "INUSE", "LIMIT", "SERVERBUG", "CONTACTADMIN", "TOO MANY", "TRY AGAIN", "TEMPORAR"];
    let words = words.to_ascii_uppercase();
    AWAY.iter().any(|word| words.contains(word))
}

#[cfg(test)]
mod tests;
