//! Builds a channel's transport from its row: opens the secrets and collects the settings.

use std::{sync::Arc, time::Duration};

use async_graphql::MaybeUndefined;
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use muster_channels::{
    Attention, CalendarAccount, CalendarConfig, Choice, CodeHostAccount, CodeHostConfig, CodeHostLogin,
    CodeHostRules, Config, DiscordConfig, DriveConfig, DriveLogin, EmailConfig, GithubApp,
    GithubInstallation, Kind, MailServer, SlackConfig, SlackInlet, TelegramConfig, Transport, WebhookConfig,
};
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;

use super::{access_tokens::token_source, entity::channels::Model, mail_room::MailMemory, merge::Secrets};
use crate::{
    base::{
        enums::{self, InactiveReason, ListenScope},
        json::texts,
        problem::{Code, Problem, Result},
        secret::SecretText,
        time::Timestamp,
    },
    core::{
        Core,
        access::Scope,
        sealing::{SealContext, random_bytes},
    },
    domain::orgs::{self, Limit},
};

/// The vendor of a transport. `None`: its messages stay in the panel.
pub(crate) const fn kind_of(transport: enums::Transport) -> Option<Kind> {
    match transport {
        enums::Transport::Calendar => Some(Kind::Calendar),
        enums::Transport::CodeHost => Some(Kind::CodeHost),
        enums::Transport::Discord => Some(Kind::Discord),
        enums::Transport::Drive => Some(Kind::Drive),
        enums::Transport::Email => Some(Kind::Email),
        enums::Transport::Slack => Some(Kind::Slack),
        enums::Transport::Telegram => Some(Kind::Telegram),
        enums::Transport::Webhook => Some(Kind::Webhook),
        enums::Transport::Internal => None,
    }
}

/// Why a channel can't be active. `None`: it can.
pub(super) fn why_inactive(channel: &Model) -> Option<InactiveReason> {
    // A person's authorization shows who may use the installation.
    (is_github(channel) && !channel.code_host_oauth_authorized).then_some(InactiveReason::AuthFailed)
}

/// Whether the channel is at GitHub, where it acts as an installation of the App.
pub(super) fn is_github(channel: &Model) -> bool {
    channel.transport == enums::Transport::CodeHost && channel.code_host_host.is_none()
}

/// Opens a channel. `None`: its messages stay in the panel.
///
/// # Errors
/// A secret can't be opened, or is invalid for the transport.
pub(crate) fn open(core: &Arc<Core>, channel: &Model) -> Result<Option<Arc<dyn Transport>>> {
    let config = config(core, channel, OpenedSecrets::open(core, channel)?)?;
    Ok(config.map(|config| muster_channels::open(config, &core.network)))
}

/// Opens a channel to listen to it. Polls a mailbox as often as the plan allows.
///
/// # Errors
/// As [`open`]; the database is unreachable.
pub(crate) async fn open_to_listen(scope: &Scope, channel: &Model) -> Result<Option<Arc<dyn Transport>>> {
    let core = &scope.core;
    let mut config = config(core, channel, OpenedSecrets::open(core, channel)?)?;
    if let Some(Config::Email(email)) = &mut config {
        let minutes = orgs::pace(scope, Limit::MinMailPoll).await?;
        email.poll = Duration::from_mins(u64::try_from(minutes).unwrap_or_default().max(1));
    }
    Ok(config.map(|config| muster_channels::open(config, &core.network)))
}

/// A channel's secrets, opened.
#[derive(Default)]
pub(super) struct OpenedSecrets {
    bot_token: Option<SecretString>,
    outbound: Option<SecretString>,
    inbound: Option<SecretString>,
    outbound_previous: Option<SecretString>,
    inbound_previous: Option<SecretString>,
    imap_pass: Option<SecretString>,
    smtp_pass: Option<SecretString>,
    drive_pass: Option<SecretString>,
    calendar_pass: Option<SecretString>,
}

impl OpenedSecrets {
    pub fn open(core: &Core, channel: &Model) -> Result<Self> {
        let open = |sealed: &Option<Vec<u8>>, field: &str| {
            let Some(sealed) = sealed else { return Ok(None) };
            let place = SealContext::new(channel.organization_id, "channels", channel.id.0, field);
            core.sealing.open(sealed, &place).map(Some).map_err(Problem::internal)
        };
        let now = core.clock.now();
        let still = |sealed: &Option<Vec<u8>>, until: Option<Timestamp>, field: &str| {
            if until.is_some_and(|until| until > now) { open(sealed, field) } else { Ok(None) }
        };
        let (outbound, inbound) =
            (&channel.webhook_outbound_previous_sealed, &channel.webhook_inbound_previous_sealed);
        let outbound_previous =
            still(outbound, channel.webhook_outbound_previous_until, "webhook_outbound_previous")?;
        let inbound_previous =
            still(inbound, channel.webhook_inbound_previous_until, "webhook_inbound_previous")?;
        Ok(Self {
            outbound_previous,
            inbound_previous,
            bot_token: open(&channel.bot_token_sealed, "bot_token")?,
            outbound: open(&channel.webhook_outbound_secret_sealed, "webhook_outbound_secret")?,
            inbound: open(&channel.webhook_inbound_secret_sealed, "webhook_inbound_secret")?,
            imap_pass: open(&channel.email_imap_pass_sealed, "email_imap_pass")?,
            smtp_pass: open(&channel.email_smtp_pass_sealed, "email_smtp_pass")?,
            drive_pass: open(&channel.drive_pass_sealed, "drive_pass")?,
            calendar_pass: open(&channel.calendar_pass_sealed, "calendar_pass")?,
        })
    }

    /// Outbound, then inbound.
    pub fn into_webhook_secrets(self) -> [Option<SecretString>; 2] {
        [self.outbound, self.inbound]
    }

    /// Whether an edit sets a token other than this one.
    pub fn has_another_token(&self, edit: &Secrets) -> bool {
        let MaybeUndefined::Value(token) = &edit.bot_token else { return false };
        self.bot_token.as_ref().is_none_or(|before| before.expose_secret() != token.0.expose_secret())
    }

    pub fn apply_edit(self, edit: &Secrets) -> Self {
        let after = |before: Option<SecretString>, edit: &MaybeUndefined<SecretText>| match edit {
            MaybeUndefined::Undefined => before,
            MaybeUndefined::Null => None,
            MaybeUndefined::Value(secret) => Some(secret.0.clone()),
        };
        Self {
            bot_token: after(self.bot_token, &edit.bot_token),
            outbound: after(self.outbound, &edit.outbound),
            inbound: after(self.inbound, &edit.inbound),
            outbound_previous: self.outbound_previous,
            inbound_previous: self.inbound_previous,
            imap_pass: after(self.imap_pass, &edit.imap_pass),
            smtp_pass: after(self.smtp_pass, &edit.smtp_pass),
            drive_pass: after(self.drive_pass, &edit.drive_pass),
            calendar_pass: after(self.calendar_pass, &edit.calendar_pass),
        }
    }
}

/// The transport's configuration. `None`: its messages stay in the panel.
///
/// # Errors
/// A secret is invalid for the transport.
pub(super) fn config(core: &Arc<Core>, channel: &Model, secrets: OpenedSecrets) -> Result<Option<Config>> {
    let Some(kind) = kind_of(channel.transport) else { return Ok(None) };
    Ok(Some(match kind {
        Kind::Calendar => Config::Calendar(Box::new(calendar(core, channel, secrets))),
        Kind::CodeHost => Config::CodeHost(Box::new(code_host(core, channel, secrets)?)),
        Kind::Webhook => Config::Webhook(Box::new(webhook(channel, secrets))),
        Kind::Email => Config::Email(Box::new(email(core, channel, secrets))),
        Kind::Discord => Config::Discord(DiscordConfig { token: token(secrets)? }),
        Kind::Drive => Config::Drive(drive(core, channel, secrets)),
        Kind::Slack => {
            Config::Slack(SlackConfig::parse(token(secrets)?.expose_secret()).map_err(Problem::internal)?)
        }
        Kind::Telegram => Config::Telegram(telegram(channel, secrets)?),
    }))
}

fn token(secrets: OpenedSecrets) -> Result<SecretString> {
    secrets.bot_token.ok_or_else(|| Problem::internal(anyhow::anyhow!("a bot's channel without a token")))
}

fn code_host(core: &Arc<Core>, channel: &Model, secrets: OpenedSecrets) -> Result<CodeHostConfig> {
    let login = match &channel.code_host_host {
        Some(host) => CodeHostLogin::Account(account(core, channel, host, secrets)?),
        None => CodeHostLogin::Installation(installation(core, channel)?),
    };
    let attention = match channel.code_host_listen_scope {
        ListenScope::All => Attention::All,
        ListenScope::Involved => Attention::Involved,
        ListenScope::Mentions => Attention::Mentions,
    };
    let rules = CodeHostRules {
        login: channel.bot_username.clone(),
        repos: texts(&channel.code_host_repos),
        events: texts(&channel.code_host_events),
        labels: texts(&channel.label_whitelist),
        attention,
        has_payload: channel.code_host_raw_payload,
    };
    Ok(CodeHostConfig { login, rules })
}

fn account(core: &Core, channel: &Model, host: &str, mut secrets: OpenedSecrets) -> Result<CodeHostAccount> {
    let Some(found) = core.config.channels.code_host(host) else {
        let detail = format!("`{host}` is no longer a code host of this installation (channels.code_hosts).");
        return Err(Problem::new(Code::NotSupported, detail));
    };
    Ok(CodeHostAccount {
        software: found.software,
        url: found.url.clone(),
        // With an empty secret, the channel's path accepts nothing.
        webhook_secret: secrets.inbound.take().unwrap_or_default(),
        slug: channel.inbound_slug.clone(),
        token: token(secrets)?,
    })
}

fn installation(core: &Arc<Core>, channel: &Model) -> Result<GithubInstallation> {
    let settings = &core.config.channels;
    let app = (&settings.github_client_id, &settings.github_app_key, &settings.github_webhook_secret);
    let (Some(id), Some(key), Some(webhook_secret)) = app else {
        let detail = "This installation has no GitHub App: the operator sets channels.github_client_id, \
                      channels.github_app_key and channels.github_webhook_secret.";
        return Err(Problem::new(Code::NotSupported, detail));
    };
    Ok(GithubInstallation {
        app: GithubApp { id: id.clone(), key: key.clone(), webhook_secret: webhook_secret.clone() },
        id: channel.code_host_installation_id.unwrap_or_default(),
        person: token_source(core, channel.organization_id, channel.id),
    })
}

fn webhook(channel: &Model, secrets: OpenedSecrets) -> WebhookConfig {
    WebhookConfig {
        outbound_url: channel.webhook_outbound_url.clone(),
        outbound_secrets: secrets.outbound.into_iter().chain(secrets.outbound_previous).collect(),
        inbound_secrets: secrets.inbound.into_iter().chain(secrets.inbound_previous).collect(),
        signature_header: channel.webhook_signature_header.clone(),
        actor_paths: texts(&channel.webhook_actor_paths),
    }
}

fn telegram(channel: &Model, mut secrets: OpenedSecrets) -> Result<TelegramConfig> {
    // With an empty secret, the channel's path accepts nothing.
    let webhook_secret = secrets.inbound.take().unwrap_or_default();
    Ok(TelegramConfig { token: token(secrets)?, webhook_secret, username: channel.bot_username.clone() })
}

fn calendar(core: &Arc<Core>, channel: &Model, secrets: OpenedSecrets) -> CalendarConfig {
    let (url, user) = (channel.calendar_url.clone(), channel.calendar_user.clone());
    let account = match (url, user, secrets.calendar_pass) {
        (Some(url), Some(user), Some(pass)) => CalendarAccount::CalDav { url, user, pass },
        _ => {
            let tokens = || token_source(core, channel.organization_id, channel.id);
            CalendarAccount::Google(channel.provider_connected.then(tokens))
        }
    };
    let text = |choice: &Value, field: &str| choice[field].as_str().unwrap_or_default().to_owned();
    let chosen = channel.calendar_whitelist.as_array().into_iter().flatten();
    let lead = channel.calendar_reminder_lead_minutes.and_then(|minutes| u64::try_from(minutes).ok());
    CalendarConfig {
        account,
        calendars: chosen.map(|one| Choice { id: text(one, "id"), name: text(one, "name") }).collect(),
        reminder_lead: lead.map(Duration::from_mins),
        poll: Duration::from_mins(1),
    }
}

fn email(core: &Core, channel: &Model, secrets: OpenedSecrets) -> EmailConfig {
    let server = |host: &Option<String>, port: Option<i64>, default: u16, user: &Option<String>, pass| {
        host.clone().map(|host| MailServer {
            host,
            port: port.and_then(|port| u16::try_from(port).ok()).unwrap_or(default),
            login: user.clone().zip(pass),
            tls: true,
        })
    };
    let (host, user) = (&channel.email_imap_host, &channel.email_imap_user);
    let imap = server(host, channel.email_imap_port, 993, user, secrets.imap_pass);
    let imap = imap.map(|server| MailServer { tls: channel.email_imap_tls, ..server });
    let (host, user) = (&channel.email_smtp_host, &channel.email_smtp_user);
    let smtp = server(host, channel.email_smtp_port, 587, user, secrets.smtp_pass);
    EmailConfig {
        imap,
        smtp,
        from: channel.email_smtp_from.clone().unwrap_or_default(),
        from_name: channel.name.clone(),
        authserv_id: channel.email_authserv_id.clone(),
        id_key: id_key(core, "ids of mails", &[channel.organization_id.0, channel.id.0]),
        since: jiff::Timestamp::from_millisecond(channel.created_at.0).unwrap_or_default(),
        // In addition to notifications by the server.
        poll: Duration::from_mins(1),
        memory: Arc::new(MailMemory::for_channel(core, channel)),
    }
}

fn drive(core: &Arc<Core>, channel: &Model, secrets: OpenedSecrets) -> DriveConfig {
    let user = channel.drive_user.clone().unwrap_or_default();
    let login = match (channel.drive_url.clone(), secrets.drive_pass) {
        (Some(url), pass) => DriveLogin::WebDav { url, user, pass: pass.unwrap_or_default() },
        (None, Some(key)) => DriveLogin::GoogleService(key),
        (None, None) => {
            let tokens = || token_source(core, channel.organization_id, channel.id);
            DriveLogin::Google(channel.provider_connected.then(tokens))
        }
    };
    DriveConfig {
        login,
        folder: channel.drive_folder_id.clone().unwrap_or_default(),
        folder_name: channel.drive_folder_name.clone(),
        // Of all the organization's drives: else two agents would answer each other's files without end.
        id_key: id_key(core, "ids of files", &[channel.organization_id.0]),
        poll: Duration::from_secs(core.config.channels.drive_seconds),
    }
}

/// Derived from the installation's key for the record with these ids, so that neither tenants nor the other side know it.
fn id_key(core: &Core, purpose: &str, ids: &[i64]) -> SecretString {
    let ids: Vec<[u8; 8]> = ids.iter().map(|id| id.to_be_bytes()).collect();
    let material: Vec<&[u8]> = ids.iter().map(|id| &id[..]).collect();
    let key = core.sealing.current().derive(purpose, &material).next();
    key.map(|key| hex::encode(&key[..])).unwrap_or_default().into()
}

/// Validates a bot token by itself. Returns the reason if it is invalid.
pub(super) fn check_token(transport: enums::Transport, token: &MaybeUndefined<SecretText>) -> Option<String> {
    let MaybeUndefined::Value(token) = token else { return None };
    if transport != enums::Transport::Slack {
        return None;
    }
    SlackConfig::parse(token.0.expose_secret()).err().map(|error| error.to_string())
}

/// Adapts the inbound path to a new bot token. A Slack channel has a path if the second part of its token is a signing
/// secret: then Slack sends events to Muster. A Telegram channel loses the path and secret of the previous bot;
/// registering the webhook creates new ones (`registration.rs`).
pub(super) fn set_inlet(channel: &mut Model, secrets: &Secrets) {
    let MaybeUndefined::Value(token) = &secrets.bot_token else { return };
    match channel.transport {
        enums::Transport::Slack => {
            let config = SlackConfig::parse(token.0.expose_secret());
            channel.webhook_registered =
                config.is_ok_and(|config| matches!(config.inlet, SlackInlet::Events(_)));
            channel.inbound_slug =
                channel.webhook_registered.then(|| channel.inbound_slug.take().unwrap_or_else(slug));
        }
        enums::Transport::Telegram => {
            channel.webhook_registered = false;
            channel.inbound_slug = None;
            channel.webhook_inbound_secret_sealed = None;
        }
        _ => {}
    }
}

/// The last segment of an inbound path: 144 random bits, as hard to guess as a secret.
pub(super) fn slug() -> String {
    URL_SAFE_NO_PAD.encode(random_bytes::<18>())
}
