//! IMAP connection to a mailbox: login and commands (RFC 3501).

use std::{fmt::Write, time::Duration};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use secrecy::ExposeSecret;
use tokio::{
    io::AsyncWriteExt,
    time::{Instant, sleep, timeout},
};

use super::{
    imap_reader::{ReadError, ResponseReader},
    imap_response::{Mail, Response, Status},
    xoauth2,
};
use crate::{
    bounds::SILENCE,
    contract::{Failure, MailServer, MemoryBudget},
    network::{Guard, Stream},
};

/// Pause between responses in IDLE that announce no mail: twenty chatty servers kept the workers busy.
const IDLE_PAUSE: Duration = Duration::from_millis(100);
/// Mails per listing: a tenant's server can list any number.
pub const MAX_LISTED: usize = 500;

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    #[error("{0}")]
    Read(#[from] ReadError),
    #[error("it refuses a command")]
    Refused(Status),
}

impl From<std::io::Error> for CommandError {
    fn from(error: std::io::Error) -> Self {
        Self::Read(error.into())
    }
}

impl CommandError {
    /// Whether a retry will probably fail likewise.
    pub const fn is_certain(&self) -> bool {
        matches!(self, Self::Read(ReadError::TooLong | ReadError::TooDeep | ReadError::Unclear))
    }
}

impl From<CommandError> for Failure {
    fn from(undone: CommandError) -> Self {
        Self::NotSent(format!("The mail server can't be used: {undone}.").into())
    }
}

/// An authenticated connection.
pub struct Mailbox {
    stream: Box<dyn Stream>,
    responses: ResponseReader,
    tags: u32,
    /// Whether the server announced another mail.
    pub is_more: bool,
}

/// A selected mailbox.
pub struct Selected {
    pub validity: u32,
    /// The next UID, if the server states it.
    pub next: Option<u32>,
}

/// Connects and logs in.
pub async fn open(guard: &Guard, server: &MailServer, room: &dyn MemoryBudget) -> Result<Mailbox, Failure> {
    let mut mailbox = connect(guard, server, room).await?;
    let Some((user, password)) = &server.login else {
        return Err(Failure::Credentials("The mailbox needs a user and a password.".into()));
    };
    match mailbox.log_in(user, password.expose_secret()).await {
        Ok(()) => Ok(mailbox),
        Err(CommandError::Refused(Status::No(words))) if !is_temporary(&words) => {
            Err(Failure::Credentials("The mail server refuses the mailbox's user or password.".into()))
        }
        Err(undone) => Err(undone.into()),
    }
}

/// Connects, and starts TLS as configured.
async fn connect(guard: &Guard, server: &MailServer, room: &dyn MemoryBudget) -> Result<Mailbox, Failure> {
    let stream = guard.connect(&server.host, server.port).await?;
    if !server.tls {
        require_trusted(guard.is_trusted(&stream))?;
    }
    let stream: Box<dyn Stream> = if server.tls && server.port == 993 {
        Box::new(guard.secure(&server.host, server.port, stream).await?)
    } else {
        Box::new(stream)
    };
    let mut mailbox = Mailbox { stream, responses: ResponseReader::new(room), tags: 0, is_more: false };
    mailbox.read_greeting().await?;
    if server.tls && server.port != 993 {
        mailbox.run("STARTTLS", |_| {}).await?;
        // Unencrypted input could be anyone's.
        mailbox.responses.discard();
        mailbox.stream = Box::new(guard.secure(&server.host, server.port, mailbox.stream).await?);
    }
    Ok(mailbox)
}

/// Only networks that the operator lists may carry unencrypted passwords.
pub fn require_trusted(is_trusted: bool) -> Result<(), Failure> {
    let words = "Mail servers are reached with TLS. Only the installation's operator can allow one without, by \
                 listing its network in channels.networks.";
    if is_trusted { Ok(()) } else { Err(Failure::Refused(words.into())) }
}

impl Mailbox {
    async fn read_greeting(&mut self) -> Result<(), CommandError> {
        match self.read_response(Instant::now() + SILENCE).await? {
            Response::Ready | Response::UidValidity(_) | Response::UidNext(_) => Ok(()),
            Response::Bye => Err(ReadError::Lost.into()),
            _ => Err(ReadError::Unclear.into()),
        }
    }

    async fn log_in(&mut self, user: &str, password: &str) -> Result<(), CommandError> {
        let Some(token) = xoauth2::parse_token(password) else {
            return self
                .run(&format!("LOGIN {} {}", quote_string(user), quote_string(password)), |_| {})
                .await;
        };
        let tag = self.send_command("AUTHENTICATE XOAUTH2").await?;
        let until = Instant::now() + SILENCE;
        // A server that rejects the token asks again, with its reason, and expects an empty answer before its NO.
        let mut answer = STANDARD.encode(xoauth2::client_response(user, token));
        loop {
            match self.read_response(until).await? {
                Response::Continue => self.send_line(&std::mem::take(&mut answer)).await?,
                Response::Done { tag: of, status } if of == tag => return check_status(status),
                _ => {}
            }
        }
    }

    /// Whether the server has a capability.
    pub async fn has_capability(&mut self, what: &str) -> Result<bool, CommandError> {
        let mut can = false;
        let asked = self.run("CAPABILITY", |said| {
            if let Response::Capabilities(words) = said {
                can |= words.iter().any(|word| word == what);
            }
        });
        asked.await?;
        Ok(can)
    }

    /// Opens INBOX. `None`: the server states no UIDVALIDITY.
    pub async fn select(&mut self) -> Result<Option<Selected>, CommandError> {
        let (mut validity, mut next) = (None, None);
        let asked = self.run("SELECT INBOX", |said| match said {
            Response::UidValidity(value) => validity = Some(value),
            Response::UidNext(value) => next = Some(value),
            _ => {}
        });
        asked.await?;
        Ok(validity.map(|validity| Selected { validity, next }))
    }

    /// The first and the last UID of a search.
    pub async fn search(&mut self, what: &str) -> Result<Option<(u32, u32)>, CommandError> {
        let mut found: Option<(u32, u32)> = None;
        let command = format!("UID SEARCH {what}");
        let asked = self.run(&command, |said| {
            if let Response::Found(Some((first, last))) = said {
                let (before, after) = found.unwrap_or((first, last));
                found = Some((first.min(before), last.max(after)));
            }
        });
        asked.await?;
        Ok(found)
    }

    /// Metadata of the first mails from this UID on, in order.
    pub async fn list(&mut self, first: u32) -> Result<Vec<(u32, Mail)>, CommandError> {
        let mut found = std::collections::BTreeMap::<u32, Mail>::new();
        let command = format!("UID FETCH {first}:* (UID RFC822.SIZE FLAGS INTERNALDATE)");
        let asked = self.run(&command, |said| {
            // `*` is the last mail, even if it is before the first one.
            if let Response::Mail(mail) = said
                && let Some(uid) = mail.uid.filter(|uid| *uid >= first)
            {
                let known = found.entry(uid).or_default();
                known.size = mail.size.or(known.size);
                known.arrived = mail.arrived.or(known.arrived);
                if !mail.labels.is_empty() {
                    known.labels = mail.labels;
                }
                if found.len() > MAX_LISTED {
                    found.pop_last();
                }
            }
        });
        asked.await?;
        Ok(found.into_iter().collect())
    }

    /// Fetches a part of a mail, of this size. `None`: the server returns none. Its memory stays counted until the next
    /// command.
    pub async fn fetch(
        &mut self,
        uid: u32,
        part: &str,
        bytes: u64,
    ) -> Result<Option<bytes::Bytes>, CommandError> {
        let mut body = None;
        let command = format!("UID FETCH {uid} (UID BODY.PEEK[{part}])");
        // At the minimum rate (`imap_reader.rs`).
        let patience = SILENCE + Duration::from_secs(bytes / (64 << 10));
        let asked = self.run_within(&command, patience, |said| {
            if let Response::Mail(mail) = said
                && mail.uid == Some(uid)
            {
                body = mail.body.or(body.take());
            }
        });
        asked.await?;
        Ok(body)
    }

    /// Waits in IDLE for another mail, or until the time is up.
    pub async fn idle(&mut self, longest: Duration) -> Result<(), CommandError> {
        let tag = self.send_command("IDLE").await?;
        let until = Instant::now() + SILENCE;
        loop {
            match self.read_response(until).await? {
                Response::Continue => break,
                Response::Done { tag: of, status } if of == tag => return check_status(status),
                _ => {}
            }
        }
        // Mails announced while we were reading are not announced again.
        let until = Instant::now() + longest;
        // Bounds a server that never stops talking.
        while !self.is_more && Instant::now() < until {
            match self.read_response(until).await {
                Err(CommandError::Read(ReadError::Slow)) => break,
                heard => drop(heard?),
            }
            self.release_memory();
            self.responses.begin_command();
            if !self.is_more {
                sleep(IDLE_PAUSE).await;
            }
        }
        self.send_line("DONE").await?;
        self.finish_command(tag, Instant::now() + SILENCE, |_| {}).await
    }

    /// Sends a command, and passes on responses until its completion.
    pub async fn run(
        &mut self,
        command: &str,
        said: impl FnMut(Response) + Send,
    ) -> Result<(), CommandError> {
        self.run_within(command, SILENCE, said).await
    }

    async fn run_within(
        &mut self,
        command: &str,
        patience: Duration,
        said: impl FnMut(Response) + Send,
    ) -> Result<(), CommandError> {
        // Earlier responses were handled, so their memory isn't held while the server works.
        self.release_memory();
        let until = Instant::now() + patience;
        let tag = self.send_command(command).await?;
        self.finish_command(tag, until, said).await
    }

    async fn finish_command(
        &mut self,
        tag: u32,
        until: Instant,
        mut said: impl FnMut(Response) + Send,
    ) -> Result<(), CommandError> {
        loop {
            match self.read_response(until).await? {
                Response::Done { tag: of, status } if of == tag => return check_status(status),
                other => said(other),
            }
        }
    }

    async fn read_response(&mut self, until: Instant) -> Result<Response, CommandError> {
        let said = self.responses.next(&mut self.stream, until).await?.parse()?;
        self.is_more |= said == Response::Exists;
        Ok(said)
    }

    async fn send_command(&mut self, command: &str) -> Result<u32, CommandError> {
        self.tags += 1;
        let mut line = String::with_capacity(command.len() + 12);
        _ = write!(line, "A{} {command}", self.tags);
        self.send_line(&line).await?;
        Ok(self.tags)
    }

    async fn send_line(&mut self, line: &str) -> Result<(), CommandError> {
        self.responses.begin_command();
        let line = format!("{line}\r\n");
        let sent = async {
            self.stream.write_all(line.as_bytes()).await?;
            self.stream.flush().await
        };
        timeout(SILENCE, sent).await.map_err(|_| ReadError::Slow)??;
        Ok(())
    }

    /// Whether a failure is our fault: we waited for memory, and servers don't wait long. Unparsable responses are
    /// never our fault.
    pub const fn is_our_fault(&self, undone: &CommandError) -> bool {
        self.responses.has_waited() && !undone.is_certain()
    }

    /// Releases the memory of handled responses.
    pub fn release_memory(&mut self) {
        self.responses.release_memory();
    }

    pub async fn log_out(mut self) {
        _ = timeout(Duration::from_secs(5), self.run("LOGOUT", |_| {})).await;
    }
}

fn check_status(status: Status) -> Result<(), CommandError> {
    match status {
        Status::Ok => Ok(()),
        refused => Err(CommandError::Refused(refused)),
    }
}

/// A quoted string on one line.
fn quote_string(text: &str) -> String {
    let text: String = text.chars().filter(|c| !matches!(c, '\r' | '\n' | '\0')).collect();
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// Whether a NO is not about the password: response codes of RFC 5530, and servers' wording without one.
fn is_temporary(words: &str) -> bool {
    const AWAY: [&str; 8] =
        ["UNAVAILABLE", "INUSE", "LIMIT", "SERVERBUG", "CONTACTADMIN", "TOO MANY", "TRY AGAIN", "TEMPORAR"];
    let words = words.to_ascii_uppercase();
    AWAY.iter().any(|word| words.contains(word))
}

#[cfg(test)]
mod tests;
