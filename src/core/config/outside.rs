//! Settings for the outside world: agents, channels, mail, MCP, and pages of other origins.

use std::{path::PathBuf, time::Duration};

use muster_channels::Software;
use secrecy::SecretString;
use serde::Deserialize;

/// How agents are run.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Agents {
    /// How long the start of an agent may take while its host is connected. `MUSTER_AGENTS_START_DEADLINE_SECONDS`,
    /// 300.
    pub start_deadline_seconds: u64,
}

/// The services that channels may reach.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Channels {
    /// Networks that are not public, and that channels' addresses may nevertheless name. `MUSTER_CHANNELS_NETWORKS`,
    /// none.
    #[serde(deserialize_with = "super::settings::networks")]
    pub networks: Vec<ipnet::IpNet>,
    /// Where Discord's HTTP API is. `MUSTER_CHANNELS_DISCORD_URL`, <https://discord.com/api/v10/>.
    pub discord_url: url::Url,
    /// Where Discord's files are. `MUSTER_CHANNELS_DISCORD_FILES_URL`, <https://cdn.discordapp.com/>.
    pub discord_files_url: url::Url,
    /// Seconds between two looks at a shared drive. `MUSTER_CHANNELS_DRIVE_SECONDS`, 60.
    pub drive_seconds: u64,
    /// Where Slack's Web API is. `MUSTER_CHANNELS_SLACK_URL`, <https://slack.com/api/>.
    pub slack_url: url::Url,
    /// Where Slack's files are. `MUSTER_CHANNELS_SLACK_FILES_URL`, <https://files.slack.com/>.
    pub slack_files_url: url::Url,
    /// Where Telegram's Bot API is. `MUSTER_CHANNELS_TELEGRAM_URL`, <https://api.telegram.org/>.
    pub telegram_url: url::Url,
    /// Whether Telegram sends messages to `public_url`, instead of being asked. `MUSTER_CHANNELS_TELEGRAM_WEBHOOKS`,
    /// false.
    pub telegram_webhooks: bool,
    /// The client ID of the application at Google that organizations without their own use.
    /// `MUSTER_CHANNELS_GOOGLE_CLIENT_ID`, none.
    pub google_client_id: Option<String>,
    /// Its client secret. `MUSTER_CHANNELS_GOOGLE_CLIENT_SECRET`, none.
    pub google_client_secret: Option<SecretString>,
    /// Where people grant access to their Google accounts. `MUSTER_CHANNELS_GOOGLE_ACCOUNTS_URL`,
    /// <https://accounts.google.com/>.
    pub google_accounts_url: url::Url,
    /// Where Google issues tokens. `MUSTER_CHANNELS_GOOGLE_TOKENS_URL`, <https://oauth2.googleapis.com/>.
    pub google_tokens_url: url::Url,
    /// Where Google's APIs are. `MUSTER_CHANNELS_GOOGLE_API_URL`, <https://www.googleapis.com/>.
    pub google_api_url: url::Url,
    /// Code hosts other than GitHub, as `gitlab=URL` and `gitea=URL`, separated by commas. `MUSTER_CHANNELS_CODE_HOSTS`,
    /// none.
    #[serde(deserialize_with = "super::settings::code_hosts")]
    pub code_hosts: Vec<CodeHost>,
    /// The client ID of the GitHub App. `MUSTER_CHANNELS_GITHUB_CLIENT_ID`, none.
    pub github_client_id: Option<String>,
    /// Its client secret. `MUSTER_CHANNELS_GITHUB_CLIENT_SECRET`, none.
    pub github_client_secret: Option<SecretString>,
    /// The App's private key, as PEM. `MUSTER_CHANNELS_GITHUB_APP_KEY`, none.
    pub github_app_key: Option<SecretString>,
    /// The secret of the App's webhook. `MUSTER_CHANNELS_GITHUB_WEBHOOK_SECRET`, none.
    pub github_webhook_secret: Option<SecretString>,
    /// Where GitHub is. `MUSTER_CHANNELS_GITHUB_URL`, <https://github.com/>.
    pub github_url: url::Url,
    /// Where GitHub's REST API is. `MUSTER_CHANNELS_GITHUB_API_URL`, <https://api.github.com/>.
    pub github_api_url: url::Url,
}

impl Channels {
    /// The code host with this name.
    #[must_use]
    pub fn code_host(&self, name: &str) -> Option<&CodeHost> {
        self.code_hosts.iter().find(|host| host.name.eq_ignore_ascii_case(name))
    }
}

/// A code host other than GitHub.
#[derive(Clone, Debug)]
pub struct CodeHost {
    /// Its host name, by which channels name it.
    pub name: String,
    /// What runs there.
    pub software: Software,
    /// Where it is.
    pub url: url::Url,
}

/// How long the source of incoming mail is kept.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Email {
    /// For how many days mails are kept as they came. `MUSTER_EMAIL_KEEP_SOURCE`, 7. 0: not at all.
    pub keep_source: u32,
}

impl Email {
    /// How long the source of incoming mail is kept.
    #[must_use]
    pub fn keep_source(&self) -> Duration {
        Duration::from_hours(24).saturating_mul(self.keep_source)
    }
}

/// How mail is sent.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mail {
    /// `smtps://…`, `smtp://…` or `file:///…`. `MUSTER_MAIL_URL`, none: mail is not sent.
    pub url: Option<SecretString>,
    /// The sender. `MUSTER_MAIL_FROM`, none.
    pub from: Option<String>,
    /// More CA certificates to trust, for the mail server only. `MUSTER_MAIL_CA_FILE`, none.
    pub ca_file: Option<PathBuf>,
}

/// Access to MCP: `/mcp` answers only under these host names, so that a page in a browser can't reach it by pointing
/// its own name at this machine.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mcp {
    /// More host names for `/mcp`, separated by commas. `MUSTER_MCP_HOSTS`, none.
    pub hosts: String,
    /// Origins of pages that may use it, separated by commas. `MUSTER_MCP_ORIGINS`, none.
    pub origins: String,
}

/// Pages of other origins that may call the API with a bearer token.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cors {
    /// The origins of these pages, separated by commas. `MUSTER_CORS_ORIGINS`, none.
    pub origins: String,
}
