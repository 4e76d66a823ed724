//! What a transport gets of its channel. Secrets are zeroed when dropped, and nothing here can be printed.

use std::sync::Arc;

use secrecy::SecretString;

use super::{room::Room, traits::Kind};

/// A channel's settings and secrets.
#[derive(Clone)]
pub enum Config {
    /// A mailbox.
    Email(Box<EmailConfig>),
    /// A Slack app.
    Slack(SlackConfig),
    /// A Telegram bot.
    Telegram(TelegramConfig),
    /// Signed requests.
    Webhook(Box<WebhookConfig>),
}

impl Config {
    /// Which vendor.
    pub fn kind(&self) -> Kind {
        match self {
            Self::Email(_) => Kind::Email,
            Self::Slack(_) => Kind::Slack,
            Self::Telegram(_) => Kind::Telegram,
            Self::Webhook(_) => Kind::Webhook,
        }
    }
}

/// Signed requests, in and out. Secrets: `whsec_…` is decoded from base64, everything else is taken as it is.
#[derive(Clone, Default)]
pub struct WebhookConfig {
    /// Where messages go. `None`: nothing can be sent. Guarded: its name may not lead inward.
    pub outbound_url: Option<String>,
    /// Signs what goes out: the present secret first, and after a rotation the one before for as long as it counts. Empty:
    /// unsigned.
    pub outbound_secrets: Vec<SecretString>,
    /// Verifies what comes in; any of them may match. Empty: nothing can come in.
    pub inbound_secrets: Vec<SecretString>,
    /// The header that carries `sha256=<hex>` over the body, beside Standard Webhooks or, for what comes in, instead of it.
    pub signature_header: Option<String>,
    /// Where in a payload the ids of its author stand, as paths with dots (`sender.id`), tried in order.
    pub actor_paths: Vec<String>,
}

/// A Telegram bot.
#[derive(Clone)]
pub struct TelegramConfig {
    /// `<id>:<secret>`.
    pub token: SecretString,
    /// What Telegram sends with each request to our webhook. Made by Muster, never by a person: `A-Z a-z 0-9 _ -`.
    pub webhook_secret: SecretString,
    /// The bot's name at Telegram, as the last [`probe`](super::Transport::probe) found it.
    pub username: Option<String>,
}

/// A Slack app.
#[derive(Clone)]
pub struct SlackConfig {
    /// `xoxb-…`: the Web API.
    pub bot_token: SecretString,
    /// How events come in.
    pub inlet: SlackInlet,
}

/// How Slack's events come in.
#[derive(Clone)]
pub enum SlackInlet {
    /// The signing secret: Slack sends them (Events API).
    Events(SecretString),
    /// `xapp-…`: we fetch them over a socket that we open (Socket Mode).
    Socket(SecretString),
}

/// Why a Slack channel's `bot_token` can't be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SlackTokenError {
    /// The first one is not a bot token.
    #[error(
        "Slack needs two secrets, separated by one space. The first one is missing: the bot token, which starts with xoxb-"
    )]
    NoBotToken,
    /// The second one is missing.
    #[error(
        "Slack needs two secrets, separated by one space. The second one is missing: the app token (xapp-…) for Socket Mode, \
         or the signing secret for the Events API"
    )]
    NoInlet,
}

impl SlackConfig {
    /// Reads a channel's `bot_token`: `xoxb-…`, one space, and `xapp-…` (Socket Mode) or the signing secret (Events API).
    pub fn parse(both: &str) -> Result<Self, SlackTokenError> {
        let (bot, second) = both.trim().split_once(' ').unwrap_or((both.trim(), ""));
        if !bot.starts_with("xoxb-") {
            return Err(SlackTokenError::NoBotToken);
        }
        let second = second.trim();
        let inlet = match second {
            "" => return Err(SlackTokenError::NoInlet),
            app if app.starts_with("xapp-") => SlackInlet::Socket(app.into()),
            signing => SlackInlet::Events(signing.into()),
        };
        Ok(Self { bot_token: bot.into(), inlet })
    }
}

/// A mailbox. Hosts are guarded: their names may not lead inward.
#[derive(Clone)]
pub struct EmailConfig {
    /// Where mails are read. `None`: nothing comes in.
    pub imap: Option<MailServer>,
    /// Where mails are sent. `None`: nothing can be sent.
    pub smtp: Option<MailServer>,
    /// The mailbox's own address, from which is sent; also as `Name <address>`.
    pub from: String,
    /// The name beside it, if it has none.
    pub from_name: String,
    /// The mail server whose `Authentication-Results` are believed. `None`: senders are not proven.
    pub authserv_id: Option<String>,
    /// Makes the ids of our mails hard to guess. The receivers see them, so it is a secret of nothing else.
    pub id_key: SecretString,
    /// Since when mails are read: when the channel was connected.
    pub since: jiff::Timestamp,
    /// How often the mailbox is looked at, beside being woken by IDLE.
    pub poll: std::time::Duration,
    /// The memory that its organization has for mails that are being read.
    pub room: Arc<dyn Room>,
}

/// A mail server.
#[derive(Clone)]
pub struct MailServer {
    /// Its name.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// Who signs in: the user, and a password or `Bearer <access token>` (XOAUTH2). `None` only for SMTP servers that ask
    /// nobody.
    pub login: Option<(String, SecretString)>,
    /// Whether the connection is encrypted: from the start on ports 993 and 465, with STARTTLS on others. `false` is
    /// accepted only for addresses that the operator lists; an SMTP server there that nobody signs in to may also have no STARTTLS.
    pub tls: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slack_needs_both_secrets() {
        let of = |both: &str| SlackConfig::parse(both).map(|config| config.inlet);
        assert!(matches!(of("xoxb-1 xapp-2"), Ok(SlackInlet::Socket(_))));
        assert!(matches!(of(" xoxb-1  0123abcd \n"), Ok(SlackInlet::Events(_))));
        assert_eq!(of("xoxb-1").err(), Some(SlackTokenError::NoInlet));
        assert_eq!(of("xapp-1").err(), Some(SlackTokenError::NoBotToken));
        assert_eq!(of("xapp-1 xoxb-1").err(), Some(SlackTokenError::NoBotToken));
    }
}
