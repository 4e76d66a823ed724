//! Handing a mail over to an SMTP server.

use std::{
    collections::VecDeque,
    future::Future,
    io,
    net::SocketAddr,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use lettre::{
    Message,
    transport::smtp::{
        Error,
        authentication::{Credentials, Mechanism},
        client::{AsyncSmtpConnection, AsyncTokioStream},
        extension::{ClientId, Extension},
    },
};
use secrecy::ExposeSecret;
use tokio::{
    io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader, ReadBuf},
    net::TcpStream,
    time::timeout,
};

use super::{bearer, mailbox::unencrypted};
use crate::{
    bounds,
    contract::{Failure, MailServer},
    world::{Metered, Most, Stream, World},
};

/// How long each step before the mail may take: a tenant's server that says nothing would keep its channel's other mails waiting.
const PATIENCE: Duration = Duration::from_secs(30);
/// The longest answer to one command. Most have one line; to EHLO it is some twenty. The library reads up to 100,000 bytes, and looks
/// at all lines again with each.
const LONGEST_ANSWER: Most = Most { bytes: bounds::TEXT, lines: 200 };

/// Stands for the greeting, which was heard before the encryption began.
const GREETING: &[u8] = b"220 go on\r\n";

/// Connects and signs in, and sends nothing.
pub async fn try_out(world: &World, server: &MailServer) -> Result<(), Failure> {
    let mut connection = open(world, server).await?;
    timeout(PATIENCE, connection.quit()).await.ok();
    Ok(())
}

/// Hands a mail over. A failure before its text is sent means that it was not sent.
pub async fn hand_over(world: &World, server: &MailServer, mail: &Message) -> Result<(), Failure> {
    let mut connection = open(world, server).await?;
    let mut bytes = mail.formatted();
    if !connection.server_info().supports_feature(Extension::EightBitMime) {
        bytes = seven_bits(&bytes);
    }
    match timeout(bounds::TRANSFER, connection.send(mail.envelope(), &bytes)).await {
        Ok(Ok(_)) => {}
        Ok(Err(error)) => return Err(refused(&error)),
        Err(_) => return Err(Failure::Unknown("The mail server does not answer in time.".into())),
    }
    timeout(PATIENCE, connection.quit()).await.ok();
    Ok(())
}

/// Without the lines that have other letters than ASCII: the ids of mails that are answered (`letter.rs`). A server without 8BITMIME
/// takes none.
fn seven_bits(mail: &[u8]) -> Vec<u8> {
    mail.split_inclusive(|byte| *byte == b'\n').filter(|line| line.is_ascii()).flatten().copied().collect()
}

async fn open(world: &World, server: &MailServer) -> Result<AsyncSmtpConnection, Failure> {
    let stream = world.guard.connect(&server.host, server.port).await?;
    let peer = stream.peer_addr().map_err(|error| Failure::NotSent(error.to_string().into()))?;
    let hello = ClientId::default();
    let is_trusted = world.guard.is_trusted(&stream);
    if !server.tls {
        unencrypted(is_trusted)?;
    }
    let needs_tls = server.login.is_some() || !is_trusted;
    let (stream, heard): (Box<dyn Stream>, _) = match (server.tls, server.port) {
        (false, _) => (Box::new(stream), &b""[..]),
        (true, 465) => (Box::new(world.guard.secure(&server.host, server.port, stream).await?), &b""[..]),
        (true, _) => (encrypted(world, server, stream, &hello, needs_tls).await?, GREETING),
    };
    let stream = Metered::new(stream, LONGEST_ANSWER);
    let connecting =
        AsyncSmtpConnection::connect_with_transport(Box::new(Checked::new(heard, stream, peer)), &hello);
    let mut connection = within(connecting).await?;
    if let Some((user, password)) = &server.login {
        sign_in(&mut connection, user, password.expose_secret()).await?;
    }
    Ok(connection)
}

/// Encrypts a connection if the server offers that. The library would see only after that what it is sent, unbounded in lines.
async fn encrypted(
    world: &World,
    server: &MailServer,
    stream: TcpStream,
    hello: &ClientId,
    needs_tls: bool,
) -> Result<Box<dyn Stream>, Failure> {
    let mut talk = Talk(BufReader::new(Metered::new(stream, LONGEST_ANSWER)));
    let asked = async {
        talk.hear().await?;
        let offers = talk.ask(&format!("EHLO {hello}")).await?;
        let word =
            |line: &String| line.get(4..).is_some_and(|word| word.trim().eq_ignore_ascii_case("STARTTLS"));
        let can = offers.iter().any(word);
        if can {
            talk.ask("STARTTLS").await?;
        }
        Ok::<_, io::Error>(can)
    };
    let asked = timeout(PATIENCE, asked).await.map_err(|_| slow())?;
    let can = asked.map_err(|error| unusable(&error.to_string()))?;
    // What was read before the encryption began is dropped: it could be anybody's.
    let stream = talk.0.into_inner().into_inner();
    match (can, needs_tls) {
        (true, _) => Ok(Box::new(world.guard.secure(&server.host, server.port, stream).await?)),
        (false, true) => Err(Failure::NotSent("The mail server offers no encryption.".into())),
        (false, false) => Ok(Box::new(stream)),
    }
}

/// What is said before the encryption begins.
struct Talk(BufReader<Metered<TcpStream>>);

impl Talk {
    async fn ask(&mut self, command: &str) -> io::Result<Vec<String>> {
        self.0.write_all(format!("{command}\r\n").as_bytes()).await?;
        self.hear().await
    }

    /// The lines of a reply. One that is not positive is an error.
    async fn hear(&mut self) -> io::Result<Vec<String>> {
        let mut lines = Vec::new();
        loop {
            let mut line = Vec::new();
            if self.0.read_until(b'\n', &mut line).await? == 0 {
                return Err(io::Error::other("the connection is lost"));
            }
            let line = String::from_utf8_lossy(&line).trim_end().to_owned();
            let is_last = !line.get(3..).is_some_and(|rest| rest.starts_with('-'));
            if is_last && !line.starts_with('2') {
                return Err(io::Error::other(line));
            }
            lines.push(line);
            if is_last {
                return Ok(lines);
            }
        }
    }
}

async fn sign_in(connection: &mut AsyncSmtpConnection, user: &str, secret: &str) -> Result<(), Failure> {
    let credentials = |secret: &str| Credentials::new(user.to_owned(), secret.to_owned());
    let Some(token) = bearer::token(secret) else {
        let passwords = [Mechanism::Plain, Mechanism::Login];
        return within(connection.auth(&passwords, &credentials(secret))).await.map(drop);
    };
    if !connection.server_info().supports_auth_mechanism(Mechanism::Xoauth2) {
        return Err(Failure::NotSent("The mail server takes no access tokens (XOAUTH2).".into()));
    }
    within(async {
        match connection.auth(&[Mechanism::Xoauth2], &credentials(token)).await {
            // The server says why it refuses the token, which the library does not understand.
            Err(error) if error.is_client() => Ok(Err(rejected())),
            other => other.map(|_| Ok(())),
        }
    })
    .await?
}

fn rejected() -> Failure {
    Failure::Credentials("The mail server refuses the mailbox's user or password.".into())
}

/// A step before the mail: whatever fails, nothing was sent.
async fn within<T>(step: impl Future<Output = Result<T, Error>>) -> Result<T, Failure> {
    timeout(PATIENCE, step).await.map_err(|_| slow())?.map_err(|error| match code(&error) {
        Some(530 | 534 | 535) => rejected(),
        _ => unusable(&words(&error)),
    })
}

fn slow() -> Failure {
    Failure::NotSent("The mail server does not answer in time.".into())
}

fn unusable(why: &str) -> Failure {
    Failure::NotSent(format!("The mail server can't be used: {why}").into())
}

/// What a server means that does not take the mail (RFC 5321).
fn refused(error: &Error) -> Failure {
    let cause = format!("The mail server does not take the mail: {}", words(error)).into();
    match code(error) {
        Some(530 | 534 | 535) => Failure::Credentials(cause),
        Some(550 | 551 | 553) => Failure::TargetGone(cause),
        // The recipient's mailbox is full.
        Some(552) => Failure::NotSent(cause),
        Some(400..500) => Failure::NotSent(cause),
        Some(_) => Failure::Refused(cause),
        None => Failure::Unknown(cause),
    }
}

fn code(error: &Error) -> Option<u16> {
    error.status().map(u16::from)
}

/// The error with its cause, which has the server's words.
fn words(error: &Error) -> String {
    let source = std::error::Error::source(error).map(|source| format!(": {source}")).unwrap_or_default();
    format!("{error}{source}")
}

/// A connection to an address that was checked, whose answers the library understands.
#[derive(Debug)]
struct Checked {
    replies: Replies,
    stream: Metered<Box<dyn Stream>>,
    peer: SocketAddr,
}

impl Checked {
    /// `heard`: what the library waits for, and was said before.
    fn new(heard: &[u8], stream: Metered<Box<dyn Stream>>, peer: SocketAddr) -> Self {
        let mut replies = Replies::default();
        replies.add(heard);
        Self { replies, stream, peer }
    }
}

/// Replies as the library reads them: after a code it wants a word, and text in UTF-8. A server may say nothing (RFC 5321, 4.2), and
/// some say it in another charset.
#[derive(Debug, Default)]
struct Replies {
    /// What the library has not read yet.
    ready: VecDeque<u8>,
    /// How the present line begins, and how long it is.
    line: (u8, usize),
}

impl Replies {
    fn add(&mut self, bytes: &[u8]) {
        for byte in bytes {
            let (first, length) = self.line;
            if matches!(byte, b'\r' | b'\n') {
                // `250` and `250-`. To a question (`334`), a word would be an answer.
                self.ready.extend(
                    match (first, length) {
                        (b'2', 3) => " ok",
                        (b'2', 4) => "ok",
                        (_, 3) => " ",
                        _ => "",
                    }
                    .bytes(),
                );
                self.line = (0, 0);
            } else {
                self.line = (if length == 0 { *byte } else { first }, length + 1);
            }
            self.ready.push_back(if byte.is_ascii() { *byte } else { b'?' });
        }
    }

    /// Hands over as much as fits.
    fn read(&mut self, to: &mut ReadBuf<'_>) {
        let length = self.ready.len().min(to.remaining());
        to.put_slice(&self.ready.drain(..length).collect::<Vec<_>>());
    }
}

impl AsyncTokioStream for Checked {
    fn peer_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.peer)
    }
}

impl AsyncRead for Checked {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        to: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.replies.ready.is_empty() {
            let mut bytes = [0; 4 << 10];
            let mut read = ReadBuf::new(&mut bytes);
            match Pin::new(&mut self.stream).poll_read(cx, &mut read) {
                Poll::Ready(Ok(())) => self.replies.add(read.filled()),
                other => return other,
            }
        }
        self.replies.read(to);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Checked {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_become_what_the_library_reads() {
        for (said, expected) in [
            (b"220\r\n250 yes\r\n".as_slice(), "220 ok\r\n250 yes\r\n"),
            (b"250-\r\n250 \r\n", "250-ok\r\n250 ok\r\n"),
            (b"354\r\n", "354 \r\n"),
            (b"334 \r\n", "334 \r\n"),
            (b"250 \xc4\xe3\xba\xc3\r\n", "250 ????\r\n"),
            (b"250 3\r\n", "250 3\r\n"),
        ] {
            // However it arrives.
            for size in [1, 2, 100] {
                let mut replies = Replies::default();
                said.chunks(size).for_each(|bytes| replies.add(bytes));
                assert_eq!(String::from_utf8(replies.ready.into()).unwrap(), expected);
            }
        }
    }

    #[test]
    fn ids_with_other_letters_are_left_out_for_seven_bits() {
        let mail = "References: \r\n <1@a.test>\r\n <\u{e4}@a.test>\r\nSubject: x\r\n\r\nhi";
        assert_eq!(seven_bits(mail.as_bytes()), b"References: \r\n <1@a.test>\r\nSubject: x\r\n\r\nhi");
    }
}
