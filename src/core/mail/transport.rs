//! How mail is sent.

use std::{
    io::Write,
    path::{Path, PathBuf},
};

use anyhow::Context;
use lettre::{
    AsyncSmtpTransport, AsyncTransport, Message, Tokio1Executor,
    message::{Mailbox, MessageBuilder, MultiPart},
    transport::smtp::{
        authentication::Credentials,
        client::{Certificate, Tls, TlsParameters},
    },
};
use secrecy::ExposeSecret;
use url::Url;

use super::{
    Letter,
    server_url::{LOG, is_plain},
};
use crate::{
    base::{bounds, enums::MailWay, files::create_private},
    core::{config::Config, outbound},
};

type Smtp = AsyncSmtpTransport<Tokio1Executor>;

enum Transport {
    Off,
    Log,
    Folder(PathBuf),
    Smtp(Smtp),
}

pub struct Mailer {
    transport: Transport,
    from: Option<Mailbox>,
    /// The base URL of links to the panel.
    links: String,
}

/// Why a letter was not sent.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    /// A retry may succeed.
    #[error("{0}")]
    Later(String),
    /// A retry can't succeed.
    #[error("{0}")]
    Never(String),
}

impl std::fmt::Debug for Mailer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let transport = match &self.transport {
            Transport::Off => "off",
            Transport::Log => "log",
            Transport::Folder(_) => "folder",
            Transport::Smtp(_) => "smtp",
        };
        f.debug_struct("Mailer").field("transport", &transport).finish_non_exhaustive()
    }
}

impl Mailer {
    /// The configured transport. Does not connect yet.
    ///
    /// # Errors
    /// A certificate or a folder can't be read.
    pub fn new(config: &Config) -> anyhow::Result<Self> {
        let mail = &config.mail;
        let transport = match mail.url.as_ref().map(ExposeSecret::expose_secret) {
            None => Transport::Off,
            Some(LOG) => Transport::Log,
            Some(url) => {
                let files =
                    [("ca_file", config.ca_file.as_deref()), ("mail.ca_file", mail.ca_file.as_deref())];
                open(&Url::parse(url).context("mail.url")?, &files)?
            }
        };
        let from = mail.from.as_deref().map(str::parse).transpose().context("mail.from")?;
        Ok(Self { transport, from, links: config.links() })
    }

    /// Whether mail is sent at all.
    #[must_use]
    pub fn is_on(&self) -> bool {
        !matches!(self.transport, Transport::Off)
    }

    /// How mail is sent. A folder is a mail server's.
    #[must_use]
    pub fn way(&self) -> MailWay {
        match self.transport {
            Transport::Off => MailWay::Off,
            Transport::Log => MailWay::Logged,
            Transport::Folder(_) | Transport::Smtp(_) => MailWay::Sent,
        }
    }

    /// The URL of the panel's page `path` with the token. The token is in the fragment, which browsers send to no
    /// server, so it appears in no server's log.
    #[must_use]
    pub fn link(&self, path: &str, token: &str) -> String {
        format!("{}/{path}#token={token}", self.links)
    }

    /// The name of this installation in letters.
    #[must_use]
    pub fn site(&self) -> &str {
        let name = self.links.split_once("://").map_or(self.links.as_str(), |(_, name)| name);
        if name.is_empty() { "Muster" } else { name }
    }

    /// Sends a letter.
    ///
    /// # Errors
    /// It was not sent: see [`SendError`]. A mail server's reply is shortened and never contains the letter.
    pub async fn send(&self, id: i64, recipient: &str, letter: Letter) -> Result<(), SendError> {
        if let Transport::Log = self.transport {
            tracing::warn!(target: "muster::mail", to = recipient, subject = letter.subject, "a mail:\n\n{}", letter.text);
            return Ok(());
        }
        let message = self.message(id, recipient, letter).map_err(|error| never(&error))?;
        match &self.transport {
            Transport::Smtp(smtp) => match smtp.send(message).await {
                Ok(_) => Ok(()),
                // Refused for good, and not because our login failed.
                Err(error)
                    if error.is_permanent() && !matches!(code(&error), Some(530 | 534 | 535 | 538)) =>
                {
                    Err(SendError::Never(brief(&error)))
                }
                Err(error) => Err(SendError::Later(brief(&error))),
            },
            Transport::Folder(folder) => write_letter(folder, &message.formatted())
                .map_err(|error| SendError::Later(error.to_string())),
            Transport::Off | Transport::Log => Err(SendError::Later("mail is off".to_owned())),
        }
    }

    fn message(&self, id: i64, recipient: &str, letter: Letter) -> anyhow::Result<Message> {
        let from = self.from.clone().context("mail.from is missing")?;
        // lettre's default would reveal the host's name.
        let unique: [u8; 8] = crate::core::sealing::random_bytes();
        let message_id = format!("<{id}.{:016x}@{}>", u64::from_be_bytes(unique), from.email.domain());
        Ok(addressed(from, recipient)?
            .subject(letter.subject)
            .message_id(Some(message_id))
            .multipart(MultiPart::alternative_plain_html(letter.text, letter.html))?)
    }
}

/// The part of a letter's envelope that depends on the recipient.
fn addressed(from: Mailbox, recipient: &str) -> anyhow::Result<MessageBuilder> {
    Ok(Message::builder().from(from).to(Mailbox::new(None, recipient.parse()?)))
}

/// Whether a letter can be addressed to this e-mail address. Some valid addresses can't receive mail.
#[must_use]
pub fn can_be_sent_to(email: &str) -> bool {
    let letter = || -> anyhow::Result<Message> {
        let from = "muster@example.com".parse()?;
        Ok(addressed(from, email)?.body(String::new())?)
    };
    letter().is_ok_and(|letter| letter.envelope().to().len() == 1)
}

/// Writes a letter to a folder, readable by its owner only: links in it open accounts.
fn write_letter(folder: &Path, letter: &[u8]) -> std::io::Result<()> {
    let name = format!("{}.eml", uuid::Uuid::now_v7());
    create_private(&folder.join(name))?.write_all(letter)
}

/// `files` are of certificates to trust, each with its setting.
fn open(url: &Url, files: &[(&'static str, Option<&Path>)]) -> anyhow::Result<Transport> {
    if url.scheme() == "file" {
        let folder = url.to_file_path().map_err(|()| anyhow::anyhow!("mail.url: not a folder"))?;
        std::fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
        return Ok(Transport::Folder(folder));
    }
    let host = url.host_str().context("mail.url: has no host")?;
    let mut tls = TlsParameters::builder(host.to_owned());
    for (setting, file) in files {
        if let Some(file) = file {
            tls = tls.add_root_certificate(certificate(file).context(*setting)?);
        }
    }
    let (tls, port) = match url.scheme() {
        "smtps" => (Tls::Wrapper(tls.build()?), 465),
        _ if is_plain(url) => (Tls::None, 25),
        _ => (Tls::Required(tls.build()?), 587),
    };
    let mut builder = Smtp::builder_dangerous(host)
        .tls(tls)
        .port(url.port().unwrap_or(port))
        .timeout(Some(bounds::NETWORK_WAIT));
    if !url.username().is_empty() {
        let password = url.password().unwrap_or_default();
        builder = builder.credentials(Credentials::new(decoded(url.username()), decoded(password)));
    }
    Ok(Transport::Smtp(builder.build()))
}

fn certificate(file: &Path) -> anyhow::Result<Certificate> {
    let pem = std::fs::read(file).with_context(|| file.display().to_string())?;
    Ok(Certificate::from_pem(&pem)?)
}

fn decoded(text: &str) -> String {
    percent_encoding::percent_decode_str(text).decode_utf8_lossy().into_owned()
}

fn never(error: &anyhow::Error) -> SendError {
    SendError::Never(format!("{error:#}"))
}

fn code(error: &lettre::transport::smtp::Error) -> Option<u16> {
    error.status().map(u16::from)
}

/// The reason for a failure, without the parts of the mail that a server may echo.
fn brief(error: &lettre::transport::smtp::Error) -> String {
    if let Some(text) = outbound::certificate_error(error) {
        return format!("the mail server can't be trusted: {text}");
    }
    match code(error) {
        Some(code) => format!("the mail server answered {code}"),
        None if error.is_timeout() => "the mail server did not answer in time".to_owned(),
        None if error.is_tls() => "TLS with the mail server failed".to_owned(),
        None => format!("{error}").chars().take(200).collect(),
    }
}
