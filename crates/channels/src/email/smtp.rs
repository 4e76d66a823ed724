//! Sends mails by SMTP.

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

use super::{imap::require_trusted, xoauth2};
use crate::{
    bounds,
    contract::{Failure, MailServer},
    network::{Metered, Network, ReadLimit, Stream},
};

/// Limit of each step before the mail: a tenant's silent server would block its channel's other mails.
const PATIENCE: Duration = Duration::from_secs(30);
/// Limit of the response to one command. Most have one line; EHLO's has some twenty. The library accepts 100,000 bytes,
/// and rescans all lines for each new one.
const LONGEST_ANSWER: ReadLimit = ReadLimit { bytes: bounds::TEXT, lines: 200 };

/// Replaces the greeting, which was consumed before TLS.
const GREETING: &[u8] = b"220 go on\r\n";

/// Connects and logs in, and sends nothing.
pub async fn check_login(network: &Network, server: &MailServer) -> Result<(), Failure> {
    let mut connection = open(network, server).await?;
    timeout(PATIENCE, connection.quit()).await.ok();
    Ok(())
}

/// Sends a mail. A failure before the mail's text means not sent.
pub async fn send_mail(network: &Network, server: &MailServer, mail: &Message) -> Result<(), Failure> {
    let mut connection = open(network, server).await?;
    let mut bytes = mail.formatted();
    if !connection.server_info().supports_feature(Extension::EightBitMime) {
        bytes = to_seven_bit(&bytes);
    }
    match timeout(bounds::TRANSFER, connection.send(mail.envelope(), &bytes)).await {
        Ok(Ok(_)) => {}
        Ok(Err(error)) => return Err(send_failure(&error)),
        Err(_) => return Err(Failure::Unknown("The mail server does not answer in time.".into())),
    }
    timeout(PATIENCE, connection.quit()).await.ok();
    Ok(())
}

/// Drops lines with non-ASCII characters: ids of replied-to mails (`compose.rs`). A server without 8BITMIME accepts
/// none.
fn to_seven_bit(mail: &[u8]) -> Vec<u8> {
    mail.split_inclusive(|byte| *byte == b'\n').filter(|line| line.is_ascii()).flatten().copied().collect()
}

async fn open(network: &Network, server: &MailServer) -> Result<AsyncSmtpConnection, Failure> {
    let stream = network.guard.connect(&server.host, server.port).await?;
    let peer = stream.peer_addr().map_err(|error| Failure::NotSent(error.to_string().into()))?;
    let hello = ClientId::default();
    let is_trusted = network.guard.is_trusted(&stream);
    if !server.tls {
        require_trusted(is_trusted)?;
    }
    let needs_tls = server.login.is_some() || !is_trusted;
    let (stream, heard): (Box<dyn Stream>, _) = match (server.tls, server.port) {
        (false, _) => (Box::new(stream), &b""[..]),
        (true, 465) => (Box::new(network.guard.secure(&server.host, server.port, stream).await?), &b""[..]),
        (true, _) => (start_encryption(network, server, stream, &hello, needs_tls).await?, GREETING),
    };
    let stream = Metered::new(stream, LONGEST_ANSWER);
    let connecting = AsyncSmtpConnection::connect_with_transport(
        Box::new(CheckedStream::new(heard, stream, peer)),
        &hello,
    );
    let mut connection = run_step(connecting).await?;
    if let Some((user, password)) = &server.login {
        log_in(&mut connection, user, password.expose_secret()).await?;
    }
    Ok(connection)
}

/// Starts TLS if the server offers it. The library checks only afterwards, with unbounded lines.
async fn start_encryption(
    network: &Network,
    server: &MailServer,
    stream: TcpStream,
    hello: &ClientId,
    needs_tls: bool,
) -> Result<Box<dyn Stream>, Failure> {
    let mut talk = PlainSession(BufReader::new(Metered::new(stream, LONGEST_ANSWER)));
    let asked = async {
        talk.read_reply().await?;
        let offers = talk.command(&format!("EHLO {hello}")).await?;
        let word =
            |line: &String| line.get(4..).is_some_and(|word| word.trim().eq_ignore_ascii_case("STARTTLS"));
        let can = offers.iter().any(word);
        if can {
            talk.command("STARTTLS").await?;
        }
        Ok::<_, io::Error>(can)
    };
    let asked = timeout(PATIENCE, asked).await.map_err(|_| timed_out())?;
    let can = asked.map_err(|error| unusable(&error.to_string()))?;
    // Unencrypted input is dropped: it could be anyone's.
    let stream = talk.0.into_inner().into_inner();
    match (can, needs_tls) {
        (true, _) => Ok(Box::new(network.guard.secure(&server.host, server.port, stream).await?)),
        (false, true) => Err(Failure::NotSent("The mail server offers no encryption.".into())),
        (false, false) => Ok(Box::new(stream)),
    }
}

/// The session before TLS.
struct PlainSession(BufReader<Metered<TcpStream>>);

impl PlainSession {
    async fn command(&mut self, command: &str) -> io::Result<Vec<String>> {
        self.0.write_all(format!("{command}\r\n").as_bytes()).await?;
        self.read_reply().await
    }

    /// The lines of a reply. A negative one is an error.
    async fn read_reply(&mut self) -> io::Result<Vec<String>> {
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

async fn log_in(connection: &mut AsyncSmtpConnection, user: &str, secret: &str) -> Result<(), Failure> {
    let credentials = |secret: &str| Credentials::new(user.to_owned(), secret.to_owned());
    let Some(token) = xoauth2::parse_token(secret) else {
        let passwords = [Mechanism::Plain, Mechanism::Login];
        return run_step(connection.auth(&passwords, &credentials(secret))).await.map(drop);
    };
    if !connection.server_info().supports_auth_mechanism(Mechanism::Xoauth2) {
        return Err(Failure::NotSent("The mail server takes no access tokens (XOAUTH2).".into()));
    }
    run_step(async {
        match connection.auth(&[Mechanism::Xoauth2], &credentials(token)).await {
            // The server explains the rejection, which the library does not understand.
            Err(error) if error.is_client() => Ok(Err(credentials_rejected())),
            other => other.map(|_| Ok(())),
        }
    })
    .await?
}

fn credentials_rejected() -> Failure {
    Failure::Credentials("The mail server refuses the mailbox's user or password.".into())
}

/// Runs a step before the mail: on failure, nothing was sent.
async fn run_step<T>(step: impl Future<Output = Result<T, Error>>) -> Result<T, Failure> {
    timeout(PATIENCE, step).await.map_err(|_| timed_out())?.map_err(|error| match status_code(&error) {
        Some(530 | 534 | 535) => credentials_rejected(),
        _ => unusable(&error_text(&error)),
    })
}

fn timed_out() -> Failure {
    Failure::NotSent("The mail server does not answer in time.".into())
}

fn unusable(why: &str) -> Failure {
    Failure::NotSent(format!("The mail server can't be used: {why}").into())
}

/// Maps an error of sending to a failure (RFC 5321).
fn send_failure(error: &Error) -> Failure {
    let cause = format!("The mail server does not take the mail: {}", error_text(error)).into();
    match status_code(error) {
        Some(530 | 534 | 535) => Failure::Credentials(cause),
        Some(550 | 551 | 553) => Failure::TargetGone(cause),
        // The recipient's mailbox is full.
        Some(552) => Failure::NotSent(cause),
        Some(400..500) => Failure::NotSent(cause),
        Some(_) => Failure::Refused(cause),
        None => Failure::Unknown(cause),
    }
}

fn status_code(error: &Error) -> Option<u16> {
    error.status().map(u16::from)
}

/// The error with its cause, which contains the server's message.
fn error_text(error: &Error) -> String {
    let source = std::error::Error::source(error).map(|source| format!(": {source}")).unwrap_or_default();
    format!("{error}{source}")
}

/// A connection to a checked address, with replies adapted to the library.
#[derive(Debug)]
struct CheckedStream {
    replies: ReplyAdapter,
    stream: Metered<Box<dyn Stream>>,
    peer: SocketAddr,
}

impl CheckedStream {
    /// `heard`: input that was consumed before.
    fn new(heard: &[u8], stream: Metered<Box<dyn Stream>>, peer: SocketAddr) -> Self {
        let mut replies = ReplyAdapter::default();
        replies.add(heard);
        Self { replies, stream, peer }
    }
}

/// Adapts replies to the library, which expects a word after the code, in UTF-8. Servers may omit it (RFC 5321, 4.2),
/// or use another charset.
#[derive(Debug, Default)]
struct ReplyAdapter {
    /// Adapted bytes for the library.
    ready: VecDeque<u8>,
    /// The first byte and the length of the current line.
    line: (u8, usize),
}

impl ReplyAdapter {
    fn add(&mut self, bytes: &[u8]) {
        for byte in bytes {
            let (first, length) = self.line;
            if matches!(byte, b'\r' | b'\n') {
                // `250` and `250-`. After a challenge (`334`), a word would be an answer.
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

    /// Copies as much as fits.
    fn read(&mut self, to: &mut ReadBuf<'_>) {
        let length = self.ready.len().min(to.remaining());
        to.put_slice(&self.ready.drain(..length).collect::<Vec<_>>());
    }
}

impl AsyncTokioStream for CheckedStream {
    fn peer_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.peer)
    }
}

impl AsyncRead for CheckedStream {
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

impl AsyncWrite for CheckedStream {
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
            // In any chunks.
            for size in [1, 2, 100] {
                let mut replies = ReplyAdapter::default();
                said.chunks(size).for_each(|bytes| replies.add(bytes));
                assert_eq!(String::from_utf8(replies.ready.into()).unwrap(), expected);
            }
        }
    }

    #[test]
    fn ids_with_other_letters_are_left_out_for_seven_bits() {
        let mail = "References: \r\n <1@a.test>\r\n <\u{e4}@a.test>\r\nSubject: x\r\n\r\nhi";
        assert_eq!(to_seven_bit(mail.as_bytes()), b"References: \r\n <1@a.test>\r\nSubject: x\r\n\r\nhi");
    }
}
