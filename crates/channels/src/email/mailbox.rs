//! The connection to a mailbox.

use std::{fmt::Debug, future::Future, time::Duration};

use async_imap::{
    Client, Session,
    error::Error,
    imap_proto::{Response, Status},
};
use secrecy::ExposeSecret;
use tokio::time::timeout;

use super::bearer::{self, Bearer};
use crate::{
    contract::{Failure, MailServer},
    world::{Guard, Metered, Stream},
};

/// A mailbox that somebody is signed in to.
pub type Mailbox = Session<Box<dyn Stream>>;

/// How long a command may take; a large mail takes a while.
const PATIENCE: Duration = Duration::from_secs(90);
/// The port on which everything is encrypted from the start.
const IMAPS: u16 = 993;
/// The longest answer to one command, in bytes: the largest mail that is read, or a line for each of very many mails.
const LONGEST_ANSWER: u64 = 48 * 1024 * 1024;

/// Connects and signs in.
pub async fn open(guard: &Guard, server: &MailServer) -> Result<Mailbox, Failure> {
    let client = greeted(guard, server).await?;
    let Some((user, password)) = &server.login else {
        return Err(Failure::Credentials("The mailbox needs a user and a password.".into()));
    };
    let password = password.expose_secret();
    let signing_in = async {
        match bearer::token(password) {
            Some(token) => client.authenticate("XOAUTH2", Bearer::new(user, token)).await,
            None => client.login(user, password).await,
        }
    };
    match timeout(PATIENCE, signing_in).await {
        Ok(Ok(mailbox)) => Ok(mailbox),
        Ok(Err((Error::No(words), _))) if !is_away(&words) => {
            Err(Failure::Credentials("The mail server refuses the mailbox's user or password.".into()))
        }
        Ok(Err((error, _))) => Err(failed(&error)),
        Err(_) => Err(slow()),
    }
}

/// Connects, and encrypts as the server's settings say.
async fn greeted(guard: &Guard, server: &MailServer) -> Result<Client<Box<dyn Stream>>, Failure> {
    let place = (server.host.as_str(), server.port);
    let stream = guard.connect(place.0, place.1).await?;
    let is_trusted = guard.is_trusted(&stream);
    let stream = Metered::new(stream, LONGEST_ANSWER);
    if !server.tls {
        unencrypted(is_trusted)?;
        return welcomed(Client::new(boxed(stream))).await;
    }
    if server.port == IMAPS {
        let stream = guard.secure(place, stream).await?;
        return welcomed(Client::new(boxed(stream))).await;
    }
    let mut client = welcomed(Client::new(stream)).await?;
    within(client.run_command_and_check_ok("STARTTLS", None)).await?;
    // What was read before the encryption began is dropped with the client: it could be anybody's.
    let stream = guard.secure(place, client.into_inner()).await?;
    Ok(Client::new(boxed(stream)))
}

/// Outside the encryption, for the library makes room for all that a server announces, before any of it has come. Only here that
/// is seen.
fn boxed(stream: impl Stream + 'static) -> Box<dyn Stream> {
    Box::new(Metered::new(stream, LONGEST_ANSWER))
}

/// A password may cross only networks that the operator lists without encryption.
pub fn unencrypted(is_trusted: bool) -> Result<(), Failure> {
    let words =
        "Mail servers are reached with TLS. Only the operator can allow one without, by listing its network.";
    if is_trusted { Ok(()) } else { Err(Failure::Refused(words.into())) }
}

async fn welcomed<T>(mut client: Client<T>) -> Result<Client<T>, Failure>
where
    T: Stream + Debug,
{
    let greeting = timeout(PATIENCE, client.read_response()).await.map_err(|_| slow())?;
    match greeting {
        Ok(Some(_)) => Ok(client),
        Ok(None) => Err(Failure::NotSent("The mail server closes the connection.".into())),
        Err(error) => Err(failed(&error.into())),
    }
}

/// A command, with an end.
pub async fn within<T>(command: impl Future<Output = Result<T, Error>>) -> Result<T, Failure> {
    timeout(PATIENCE, command).await.map_err(|_| slow())?.map_err(|error| failed(&error))
}

/// Sends a command, and hands on what the server says until it has done it. The library's own commands don't tell a refusal, or a
/// connection that ends, from an empty answer.
pub async fn ask(
    mailbox: &mut Mailbox,
    command: &str,
    mut said: impl FnMut(&Response<'_>) + Send,
) -> Result<(), Error> {
    let tag = mailbox.run_command(command).await?;
    while let Some(response) = mailbox.read_response().await? {
        match response.parsed() {
            Response::Done { tag: of, status, outcome } if *of == tag => {
                let words = || format!("{outcome:?}");
                return match status {
                    Status::Ok => Ok(()),
                    Status::No => Err(Error::No(words())),
                    _ => Err(Error::Bad(words())),
                };
            }
            other => said(other),
        }
    }
    Err(Error::ConnectionLost)
}

fn slow() -> Failure {
    Failure::NotSent("The mail server does not answer in time.".into())
}

/// Whether a server's no is not about the password: codes of RFC 5530, and what servers write without one.
fn is_away(words: &str) -> bool {
    const AWAY: [&str; 8] =
        ["UNAVAILABLE", "INUSE", "LIMIT", "SERVERBUG", "CONTACTADMIN", "TOO MANY", "TRY AGAIN", "TEMPORAR"];
    let words = words.to_ascii_uppercase();
    AWAY.iter().any(|word| words.contains(word))
}

fn failed(error: &Error) -> Failure {
    let why = match error {
        Error::Io(error) => error.to_string(),
        Error::No(_) | Error::Bad(_) => "it refuses a command".to_owned(),
        Error::ConnectionLost => "the connection is lost".to_owned(),
        _ => "its answer can't be understood".to_owned(),
    };
    Failure::NotSent(format!("The mail server can't be used: {why}.").into())
}
