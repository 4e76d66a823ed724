//! A transport's configuration. Secrets are zeroed when dropped, and nothing here is printable.

use std::{sync::Arc, time::Duration};

use secrecy::SecretString;
use url::Url;

use super::{memory::MemoryBudget, traits::Kind, transport::Choice};
use crate::oauth::TokenSource;

/// A channel's settings and secrets.
#[derive(Clone)]
pub enum Config {
    /// Calendars.
    Calendar(Box<CalendarConfig>),
    /// An installation of a GitHub App, or an account at another code host.
    CodeHost(Box<CodeHostConfig>),
    /// A Discord bot.
    Discord(DiscordConfig),
    /// A shared folder.
    Drive(DriveConfig),
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
    /// The vendor.
    pub fn kind(&self) -> Kind {
        match self {
            Self::Calendar(_) => Kind::Calendar,
            Self::CodeHost(_) => Kind::CodeHost,
            Self::Discord(_) => Kind::Discord,
            Self::Drive(_) => Kind::Drive,
            Self::Email(_) => Kind::Email,
            Self::Slack(_) => Kind::Slack,
            Self::Telegram(_) => Kind::Telegram,
            Self::Webhook(_) => Kind::Webhook,
        }
    }
}

/// Signed requests, in and out. Secrets: `whsec_…` is decoded from base64; any other secret is used as is.
#[derive(Clone, Default)]
pub struct WebhookConfig {
    /// Destination of messages. `None`: nothing can be sent. Guarded against private addresses.
    pub outbound_url: Option<String>,
    /// Signs outgoing messages: the current secret first, then the previous one during a rotation. Empty: unsigned.
    pub outbound_secrets: Vec<SecretString>,
    /// Verify incoming messages; any may match. Empty: nothing can come in.
    pub inbound_secrets: Vec<SecretString>,
    /// Header with `sha256=<hex>` over the body: sent beside Standard Webhooks, accepted instead of them.
    pub signature_header: Option<String>,
    /// Paths of the author's ids in a payload (`sender.id`), tried in order.
    pub actor_paths: Vec<String>,
}

/// Calendars.
#[derive(Clone)]
pub struct CalendarConfig {
    pub account: CalendarAccount,
    /// The calendars that the agent can see.
    pub calendars: Vec<Choice>,
    /// How long before an event the agent is reminded. `None`: it is not.
    pub reminder_lead: Option<Duration>,
    /// Polling interval.
    pub poll: Duration,
}

/// The account with the calendars.
#[derive(Clone)]
pub enum CalendarAccount {
    /// On a CalDAV server, guarded against private addresses.
    CalDav { url: String, user: String, pass: SecretString },
    /// At Google. `None`: none is connected yet.
    Google(Option<TokenSource>),
}

/// A code host.
#[derive(Clone)]
pub struct CodeHostConfig {
    pub login: CodeHostLogin,
    pub rules: CodeHostRules,
}

/// How we sign in to a code host.
#[derive(Clone)]
pub enum CodeHostLogin {
    /// With a token, at a host that the operator names.
    Account(CodeHostAccount),
    /// As a GitHub App.
    Installation(GithubInstallation),
}

/// An account at a host that the operator names.
#[derive(Clone)]
pub struct CodeHostAccount {
    pub software: Software,
    /// Where the host is: `https://gitlab.com/`
    pub url: Url,
    /// The account's token.
    pub token: SecretString,
    /// Proves the host's requests. Made by Muster. Empty: nothing comes in.
    pub webhook_secret: SecretString,
    /// The last segment of the channel's path, which tells its hooks from others.
    pub slug: Option<String>,
}

/// The software of a code host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Software {
    /// Also Forgejo.
    Gitea,
    Github,
    Gitlab,
}

/// The installation's GitHub App.
#[derive(Clone)]
pub struct GithubApp {
    /// The client ID.
    pub id: String,
    /// The private key, as PEM.
    pub key: SecretString,
    /// Signs GitHub's requests.
    pub webhook_secret: SecretString,
}

/// An installation of the GitHub App by an account or an organization.
#[derive(Clone)]
pub struct GithubInstallation {
    pub app: GithubApp,
    pub id: i64,
    /// The authorization of the person who may use the installation.
    pub person: TokenSource,
}

/// Which of a code host's events become messages.
#[derive(Clone, Debug)]
pub struct CodeHostRules {
    /// Our login, as of the last [`probe`](super::Transport::probe).
    pub login: Option<String>,
    /// These repositories, as `owner/name`. Empty: all.
    pub repos: Vec<String>,
    /// These events: `issues`, or only one of its actions, `issues.opened`. Empty: all with something to read.
    pub events: Vec<String>,
    /// Labels that ask for us.
    pub labels: Vec<String>,
    pub attention: Attention,
    /// Whether messages have the complete payload as a file.
    pub has_payload: bool,
}

/// Which events are addressed to us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attention {
    /// All.
    All,
    /// Those that mention us, and those of issues and pull requests of ours.
    Involved,
    /// Those that mention us.
    Mentions,
}

/// A Discord bot.
#[derive(Clone)]
pub struct DiscordConfig {
    /// The bot's token.
    pub token: SecretString,
}

/// A shared folder.
#[derive(Clone)]
pub struct DriveConfig {
    pub login: DriveLogin,
    /// Identifies the folder: at Google its id, at WebDAV its path below the URL.
    pub folder: String,
    /// Its name for people.
    pub folder_name: Option<String>,
    /// Marks our files, and at WebDAV those of all channels with this key, which are no messages. People see the marks, so
    /// the key protects nothing else.
    pub id_key: SecretString,
    /// Polling interval.
    pub poll: Duration,
}

/// The drive of a folder, and our credential there.
#[derive(Clone)]
pub enum DriveLogin {
    /// A person's account at Google. `None`: none is connected yet.
    Google(Option<TokenSource>),
    /// A service account at Google: its key, a JSON document.
    GoogleService(SecretString),
    /// A WebDAV server. Guarded against private addresses.
    WebDav { url: String, user: String, pass: SecretString },
}

/// A Telegram bot.
#[derive(Clone)]
pub struct TelegramConfig {
    /// `<id>:<secret>`.
    pub token: SecretString,
    /// Sent by Telegram with each webhook request. Generated by Muster: `A-Z a-z 0-9 _ -`.
    pub webhook_secret: SecretString,
    /// The bot's username, as of the last [`probe`](super::Transport::probe).
    pub username: Option<String>,
}

/// A Slack app.
#[derive(Clone)]
pub struct SlackConfig {
    /// `xoxb-…`: the Web API's token.
    pub bot_token: SecretString,
    /// The way in for events.
    pub inlet: SlackInlet,
}

/// The way in for Slack's events.
#[derive(Clone)]
pub enum SlackInlet {
    /// Events API: the signing secret of Slack's requests.
    Events(SecretString),
    /// Socket Mode: the `xapp-…` token.
    Socket(SecretString),
}

/// Why a Slack channel's `bot_token` can't be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SlackTokenError {
    /// The first secret is not a bot token.
    #[error(
        "Slack needs two secrets, separated by one space. The first one is missing: the bot token, which starts with xoxb-"
    )]
    NoBotToken,
    /// The second secret is missing.
    #[error(
        "Slack needs two secrets, separated by one space. The second one is missing: the app token (xapp-…) for Socket Mode, \
         or the signing secret for the Events API"
    )]
    NoInlet,
}

impl SlackConfig {
    /// Parses a channel's `bot_token`: `xoxb-…`, one space, and `xapp-…` (Socket Mode) or the signing secret (Events
    /// API).
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

/// A mailbox. Hosts are guarded against private addresses.
#[derive(Clone)]
pub struct EmailConfig {
    /// Incoming server. `None`: nothing comes in.
    pub imap: Option<MailServer>,
    /// Outgoing server. `None`: nothing can be sent.
    pub smtp: Option<MailServer>,
    /// The mailbox's own address and sender; also as `Name <address>`.
    pub from: String,
    /// Sender name if `from` has none.
    pub from_name: String,
    /// The mail server whose `Authentication-Results` are trusted. `None`: senders are not verified.
    pub authserv_id: Option<String>,
    /// Makes Message-IDs hard to guess. Recipients see the ids, so the key protects nothing else.
    pub id_key: SecretString,
    /// Mails are read from this time on: when the channel was connected.
    pub since: jiff::Timestamp,
    /// Polling interval, beside IDLE.
    pub poll: Duration,
    /// The organization's memory for mails being read.
    pub memory: Arc<dyn MemoryBudget>,
}

#[derive(Clone)]
pub struct MailServer {
    /// The host name.
    pub host: String,
    pub port: u16,
    /// User, and a password or `Bearer <access token>` (XOAUTH2). `None` only for SMTP servers without authentication.
    pub login: Option<(String, SecretString)>,
    /// Whether the connection is encrypted: implicitly on ports 993 and 465, by STARTTLS on others. `false` is accepted
    /// only for networks that the operator lists; there, an SMTP server without login may also lack STARTTLS.
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
