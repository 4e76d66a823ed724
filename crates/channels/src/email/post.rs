//! Handing a mail over to an SMTP server.

use std::{
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
        client::{AsyncSmtpConnection, AsyncTokioStream, Certificate, CertificateStore, TlsParameters},
        extension::ClientId,
    },
};
use secrecy::ExposeSecret;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::timeout,
};

use super::{bearer, mailbox::unencrypted};
use crate::{
    contract::{Failure, MailServer},
    world::{Metered, Stream, World},
};

/// How long the conversation before the mail may take.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long the mail may take: servers look at it before they answer.
const HANDING_OVER: Duration = Duration::from_secs(120);
/// The port on which everything is encrypted from the start.
const SMTPS: u16 = 465;
/// The longest answer to one command, in bytes, with the server's certificates.
const LONGEST_ANSWER: u64 = 256 * 1024;

/// Connects and signs in, and sends nothing.
pub async fn try_out(world: &World, server: &MailServer) -> Result<(), Failure> {
    let mut connection = open(world, server).await?;
    timeout(PATIENCE, connection.quit()).await.ok();
    Ok(())
}

/// Hands a mail over. A failure before its text is sent means that it was not sent.
pub async fn hand_over(world: &World, server: &MailServer, mail: &Message) -> Result<(), Failure> {
    let mut connection = open(world, server).await?;
    let bytes = mail.formatted();
    match timeout(HANDING_OVER, connection.send(mail.envelope(), &bytes)).await {
        Ok(Ok(_)) => {}
        Ok(Err(error)) => return Err(refused(&error)),
        Err(_) => return Err(Failure::Unknown("The mail server does not answer in time.".into())),
    }
    timeout(PATIENCE, connection.quit()).await.ok();
    Ok(())
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
    let is_secure = server.tls && server.port == SMTPS;
    let stream = Metered::new(stream, LONGEST_ANSWER);
    let stream: Box<dyn Stream> = if is_secure {
        Box::new(world.guard.secure((&server.host, server.port), stream).await?)
    } else {
        Box::new(stream)
    };
    let connecting = AsyncSmtpConnection::connect_with_transport(Box::new(Checked { stream, peer }), &hello);
    let mut connection = within(connecting).await?;
    if server.tls && !is_secure && (connection.can_starttls() || needs_tls) {
        if !connection.can_starttls() {
            return Err(Failure::NotSent("The mail server offers no encryption.".into()));
        }
        within(connection.starttls(parameters(world, &server.host)?, &hello)).await?;
    }
    if let Some((user, password)) = &server.login {
        sign_in(&mut connection, user, password.expose_secret()).await?;
    }
    Ok(connection)
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

fn parameters(world: &World, host: &str) -> Result<TlsParameters, Failure> {
    let mut builder = TlsParameters::builder(host.to_owned()).certificate_store(CertificateStore::None);
    for root in world.roots.iter() {
        if let Ok(root) = Certificate::from_der(root.to_vec()) {
            builder = builder.add_root_certificate(root);
        }
    }
    builder.build_rustls().map_err(|error| Failure::NotSent(error.to_string().into()))
}

/// A step before the mail: whatever fails, nothing was sent.
async fn within<T>(step: impl Future<Output = Result<T, Error>>) -> Result<T, Failure> {
    let slow = || Failure::NotSent("The mail server does not answer in time.".into());
    timeout(PATIENCE, step).await.map_err(|_| slow())?.map_err(|error| match code(&error) {
        Some(530 | 534 | 535) => rejected(),
        _ => Failure::NotSent(format!("The mail server can't be used: {}", words(&error)).into()),
    })
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

/// A connection to an address that was checked.
#[derive(Debug)]
struct Checked {
    stream: Box<dyn Stream>,
    peer: SocketAddr,
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
        Pin::new(&mut self.stream).poll_read(cx, to)
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
