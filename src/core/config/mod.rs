//! Configuration: the only code that reads the environment.
//!
//! There are three layers, and later ones win: `config/default.toml` (built in, and the documentation of every
//! setting), the file given by `--config` or `MUSTER_CONFIG`, and the `MUSTER_…` variables. Every layer is checked in
//! full against the table of settings (`config/settings.rs`) before anything is used, so that a single start reports
//! every mistake. A message names the setting and where it is set, never its value: it may be a password.

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    path::{Path, PathBuf},
    time::Duration,
};

use figment::{Figment, providers::Serialized};
use muster_profiles::Profiles;
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;

use crate::core::sealing::{KeyFile, KeyFileError};

mod file;
mod oidc;
mod operating;
mod plans;
mod prices;
mod risk;
mod sessions;
mod settings;

pub use oidc::{OidcProvider, OidcProviders};
pub use operating::{Metrics, ProxyHeader, RateLimits, Traces};
pub use plans::{PlanLimits, Plans};
pub use prices::{Prices, Since, cost_of};
pub use risk::{Judgment, RiskRules, RuleText, folded};
pub use sessions::Sessions;
pub use settings::{Kind, SETTINGS, Setting, listed};

/// The lowest layer, and the documentation.
pub const DEFAULT: &str = include_str!("default.toml");

/// Everything that is wrong with a configuration, one line per mistake.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the configuration is invalid:\n  {}", .0.join("\n  "))]
pub struct ConfigError(pub Vec<String>);

/// The settings. `config/default.toml` describes them.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The folder for everything that the process stores. `MUSTER_DATA_DIR`, `./data`.
    pub data_dir: PathBuf,
    /// Address and port to serve on. `MUSTER_LISTEN`, `127.0.0.1:8080`.
    pub listen: SocketAddr,
    /// The URL at which clients reach this installation, without a trailing slash. `MUSTER_PUBLIC_URL`, none.
    pub public_url: Option<String>,
    /// A folder with another build of the panel, for its development. `MUSTER_PANEL_DIR`, none: the built-in one.
    pub panel_dir: Option<PathBuf>,
    /// The policy folder. `MUSTER_POLICY_DIR`, none: the built-in policy.
    pub policy_dir: Option<PathBuf>,
    /// The limits of the plans. `MUSTER_PLANS_FILE`, none: the built-in ones. Read with [`Config::plans`].
    pub plans_file: Option<PathBuf>,
    /// The rules that judge how risky an agent's action is. `MUSTER_RISK_FILE`, none: the built-in ones. Read with
    /// [`Config::risk`].
    pub risk_file: Option<PathBuf>,
    /// A folder with more profiles of agents' programs. `MUSTER_PROFILES_DIR`, none: the built-in ones. Read with
    /// [`Config::profiles`].
    pub profiles_dir: Option<PathBuf>,
    /// What models cost. `MUSTER_PRICES_FILE`, none: the built-in list. Read with [`Config::prices`].
    pub prices_file: Option<PathBuf>,
    /// The OpenID providers. `MUSTER_OIDC_FILE`, none.
    pub oidc_file: Option<PathBuf>,
    /// The key file. `MUSTER_KEYS_FILE`, `{data_dir}/keys.toml`. Read with [`Config::keys`].
    pub keys_file: PathBuf,
    /// Whether clients may query the GraphQL schema. `MUSTER_INTROSPECTION`, true.
    pub introspection: bool,
    /// Networks of trusted reverse proxies. `MUSTER_TRUSTED_PROXIES`, none.
    #[serde(deserialize_with = "networks")]
    pub trusted_proxies: Vec<ipnet::IpNet>,
    /// The header in which they name the client. `MUSTER_PROXY_HEADER`, x-forwarded-for.
    pub proxy_header: ProxyHeader,
    /// How long a shutdown waits for requests in progress. `MUSTER_SHUTDOWN_GRACE_SECONDS`, 20.
    pub shutdown_grace_seconds: u64,
    /// Where the records are.
    pub database: Database,
    /// What is logged, and how.
    pub log: Log,
    /// Limits on requests and connections.
    pub limits: RequestLimits,
    /// How long the audit log is kept, and how often it is signed.
    pub audit: Audit,
    /// How long people stay signed in.
    pub sessions: Sessions,
    /// Where metrics are served.
    pub metrics: Metrics,
    /// Where traces are sent.
    pub traces: Traces,
    /// How many requests a caller may send.
    pub rate_limits: RateLimits,
    /// Who may use MCP.
    pub mcp: Mcp,
    /// How the signing keys of access tokens are rotated.
    pub signing: Signing,
    /// How long service tokens last.
    pub service_tokens: ServiceTokens,
    /// How long decisions are kept.
    pub policy: PolicySettings,
    /// How agents are run.
    pub agents: Agents,
    /// What channels may reach.
    pub channels: Channels,
    /// How mail is sent.
    pub mail: Mail,
    /// The text of a key file, instead of the file. `MUSTER_KEYS` only: a settings file must not contain it.
    #[serde(skip)]
    keys: Option<SecretString>,
}

/// How long decisions are kept.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicySettings {
    /// How many days the counts of allowed and refused calls are kept. `MUSTER_POLICY_DECISIONS_KEPT_DAYS`, 14.
    pub decisions_kept_days: u64,
}

/// The database.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Database {
    /// `sqlite://PATH` or `postgres://…`. `MUSTER_DATABASE_URL`, `sqlite://{data_dir}/muster.db`.
    pub url: SecretString,
    /// The most connections for reading, and the same number again for everything else (with SQLite, one writer).
    /// `MUSTER_DATABASE_MAX_CONNECTIONS`, 16.
    pub max_connections: u32,
    /// How long a request waits for a connection. `MUSTER_DATABASE_ACQUIRE_TIMEOUT_SECONDS`, 5.
    pub acquire_timeout_seconds: u64,
}

impl Database {
    /// Whether it is the embedded database.
    #[must_use]
    pub fn is_sqlite(&self) -> bool {
        self.url.expose_secret().starts_with("sqlite:")
    }
}

/// What is logged, and in which format.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Log {
    /// A level, or `target=level` pairs. `MUSTER_LOG`, `info,sqlx=warn`.
    pub filter: String,
    /// The format. `MUSTER_LOG_FORMAT`, text.
    pub format: LogFormat,
}

/// The format of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// Lines for people.
    Text,
    /// One JSON object per line.
    Json,
}

/// Limits on requests and connections.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RequestLimits {
    /// The largest request body. `MUSTER_LIMITS_BODY_BYTES`, 1 MiB.
    pub body_bytes: usize,
    /// The largest attachment. `MUSTER_LIMITS_ATTACHMENT_BYTES`, 25 MiB.
    pub attachment_bytes: usize,
    /// The most open connections. `MUSTER_LIMITS_CONNECTIONS`, 15,000.
    pub connections: usize,
    /// How long a connection may be idle, or a request's head may take. `MUSTER_LIMITS_HEADER_TIMEOUT_SECONDS`, 30.
    pub header_timeout_seconds: u64,
    /// How long one request may take. `MUSTER_LIMITS_REQUEST_TIMEOUT_SECONDS`, 30.
    pub request_timeout_seconds: u64,
    /// How long a client may take to read 64 KiB. `MUSTER_LIMITS_WRITE_TIMEOUT_SECONDS`, 30.
    pub write_timeout_seconds: u64,
    /// The largest body without a credential. `MUSTER_LIMITS_ANONYMOUS_BODY_BYTES`, 64 KiB.
    pub anonymous_body_bytes: usize,
    /// The most bytes of request bodies in memory. `MUSTER_LIMITS_BODIES_BYTES`, 256 MiB.
    pub bodies_bytes: usize,
    /// The most bytes of responses waiting to be sent. `MUSTER_LIMITS_ANSWERS_BYTES`, 256 MiB.
    pub answers_bytes: usize,
    /// The most unauthenticated sockets per address. `MUSTER_LIMITS_SOCKETS_ANONYMOUS`, 10.
    pub sockets_anonymous: usize,
    /// The most sockets per caller. `MUSTER_LIMITS_SOCKETS_PER_CALLER`, 50.
    pub sockets_per_caller: usize,
    /// How long a socket may be open without a credential. `MUSTER_LIMITS_SOCKET_INIT_SECONDS`, 10.
    pub socket_init_seconds: u64,
    /// The most subscriptions per caller. `MUSTER_LIMITS_SUBSCRIPTIONS_PER_CALLER`, 300.
    pub subscriptions_per_caller: usize,
    /// The most subscriptions per organization. `MUSTER_LIMITS_SUBSCRIPTIONS_PER_ORGANIZATION`, 3,000.
    pub subscriptions_per_organization: usize,
    /// How deep selections may nest. `MUSTER_LIMITS_GRAPHQL_DEPTH`, 12.
    pub graphql_depth: usize,
    /// How many fields a document may request. `MUSTER_LIMITS_GRAPHQL_COMPLEXITY`, 5,000.
    pub graphql_complexity: usize,
    /// How many aliases a document may have. `MUSTER_LIMITS_GRAPHQL_ALIASES`, 100.
    pub graphql_aliases: usize,
    /// How many operations a request may carry. `MUSTER_LIMITS_GRAPHQL_BATCH`, 10.
    pub graphql_batch: usize,
    /// The size of the cache of validated documents, in bytes. `MUSTER_LIMITS_DOCUMENT_CACHE_BYTES`, 64 MiB.
    pub document_cache_bytes: u64,
}

impl RequestLimits {
    /// How long a connection may be idle, or a request's head may take.
    #[must_use]
    pub fn header_timeout(&self) -> Duration {
        Duration::from_secs(self.header_timeout_seconds)
    }

    /// How long one request may take.
    #[must_use]
    pub fn request_timeout(&self) -> Duration {
        Duration::from_secs(self.request_timeout_seconds)
    }

    /// How long a client may take to read 64 KiB.
    #[must_use]
    pub fn write_timeout(&self) -> Duration {
        Duration::from_secs(self.write_timeout_seconds)
    }

    /// How long a socket may be open without a credential.
    #[must_use]
    pub fn socket_init(&self) -> Duration {
        Duration::from_secs(self.socket_init_seconds)
    }
}

/// How long the audit log is kept, and how often it is signed.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Audit {
    /// How long lines are kept; 0: forever. `MUSTER_AUDIT_RETENTION_DAYS`, 0.
    pub retention_days: u32,
    /// Sign a checkpoint after this many lines. `MUSTER_AUDIT_CHECKPOINT_LINES`, 1,000.
    pub checkpoint_lines: u32,
    /// Sign a checkpoint after this long, if the log has grown at all. `MUSTER_AUDIT_CHECKPOINT_MINUTES`, 5.
    pub checkpoint_minutes: u32,
}

/// Who may use MCP: `/mcp` answers only under these host names, so that a page in someone's browser can't reach it by
/// pointing its own name at this machine.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mcp {
    /// More host names for `/mcp`, separated by commas. `MUSTER_MCP_HOSTS`, none.
    pub hosts: String,
    /// Origins of pages that may use it, separated by commas. `MUSTER_MCP_ORIGINS`, none.
    pub origins: String,
}

/// How the signing keys of access tokens are rotated.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Signing {
    /// The maximum age of a key; 0: no maximum. `MUSTER_SIGNING_ROTATION_DAYS`, 90.
    pub rotation_days: u64,
    /// How long a new key is published before it signs. `MUSTER_SIGNING_PUBLISH_MINUTES`, 60.
    pub publish_minutes: u64,
}

impl Signing {
    /// The maximum age of a key; `None`: no maximum.
    #[must_use]
    pub fn rotation(&self) -> Option<Duration> {
        (self.rotation_days > 0).then(|| days(self.rotation_days))
    }

    /// How long a new key is published before it signs.
    #[must_use]
    pub fn publish(&self) -> Duration {
        Duration::from_secs(self.publish_minutes * 60)
    }
}

/// How long service tokens last.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServiceTokens {
    /// The default lifetime; 0: unlimited. `MUSTER_SERVICE_TOKENS_DEFAULT_DAYS`, 365.
    pub default_days: u64,
    /// The maximum lifetime; 0: no maximum. `MUSTER_SERVICE_TOKENS_MAX_DAYS`, 0.
    pub max_days: u64,
}

impl ServiceTokens {
    /// The default lifetime; `None`: unlimited.
    #[must_use]
    pub fn default_lifetime(&self) -> Option<Duration> {
        (self.default_days > 0).then(|| days(self.default_days)).or(self.max_lifetime())
    }

    /// The maximum lifetime; `None`: no maximum.
    #[must_use]
    pub fn max_lifetime(&self) -> Option<Duration> {
        (self.max_days > 0).then(|| days(self.max_days))
    }
}

fn days(count: u64) -> Duration {
    Duration::from_secs(count * 24 * 60 * 60)
}

/// How agents are run.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Agents {
    /// How long the start of an agent may take while its host is connected. `MUSTER_AGENTS_START_DEADLINE_SECONDS`, 300.
    pub start_deadline_seconds: u64,
}

/// What channels may reach.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Channels {
    /// Networks that are not public, and that channels' addresses may nevertheless name. `MUSTER_CHANNELS_NETWORKS`, none.
    #[serde(deserialize_with = "networks")]
    pub networks: Vec<ipnet::IpNet>,
    /// Where Slack's Web API is. `MUSTER_CHANNELS_SLACK_URL`, <https://slack.com/api/>.
    pub slack_url: url::Url,
    /// Where Slack's files are. `MUSTER_CHANNELS_SLACK_FILES_URL`, <https://files.slack.com/>.
    pub slack_files_url: url::Url,
    /// Where Telegram's Bot API is. `MUSTER_CHANNELS_TELEGRAM_URL`, <https://api.telegram.org/>.
    pub telegram_url: url::Url,
    /// Whether Telegram sends messages to `public_url`, instead of being asked. `MUSTER_CHANNELS_TELEGRAM_WEBHOOKS`, false.
    pub telegram_webhooks: bool,
}

/// How mail is sent.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mail {
    /// `smtps://…`, `smtp://…` or `file:///…`. `MUSTER_MAIL_URL`, none: mail is not sent.
    pub url: Option<SecretString>,
    /// The sender. `MUSTER_MAIL_FROM`, none.
    pub from: Option<String>,
    /// More CA certificates to trust. `MUSTER_MAIL_CA_FILE`, none.
    pub ca_file: Option<PathBuf>,
}

impl Config {
    /// The configuration of this process: the defaults, the file (`path`, or else the one in `MUSTER_CONFIG`), and the
    /// environment.
    ///
    /// # Errors
    /// Lists every mistake.
    pub fn load(path: Option<&Path>) -> Result<Self, ConfigError> {
        let mut mistakes = Vec::new();
        let mut variables = BTreeMap::new();
        for (name, value) in std::env::vars_os() {
            let Some(name) = name.to_str().filter(|name| name.starts_with("MUSTER_")) else { continue };
            match value.into_string() {
                Ok(value) => drop(variables.insert(name.to_owned(), value)),
                Err(_) => mistakes.push(format!("{name}: not UTF-8")),
            }
        }
        if !mistakes.is_empty() {
            return Err(ConfigError(mistakes));
        }
        Self::read(path, variables)
    }

    /// The defaults with this data folder, ignoring the environment. For tests and the demo.
    ///
    /// # Errors
    /// The folder's name is not UTF-8.
    pub fn in_folder(data_dir: &Path) -> Result<Self, ConfigError> {
        let name = data_dir.to_str().ok_or_else(|| ConfigError(vec!["data_dir: not UTF-8".into()]))?;
        Self::read(None, BTreeMap::from([("MUSTER_DATA_DIR".to_owned(), name.to_owned())]))
    }

    /// The same settings for a separate installation in this folder, with its own database, key file and policies
    /// whatever the settings say about them.
    ///
    /// # Errors
    /// The folder's name is not UTF-8.
    pub fn moved_to(self, data_dir: &Path) -> Result<Self, ConfigError> {
        let own = Self::in_folder(data_dir)?;
        Ok(Self {
            database: Database { url: own.database.url, ..self.database },
            policy_dir: Some(own.data_dir.join("policies")),
            data_dir: own.data_dir,
            keys_file: own.keys_file,
            keys: None,
            ..self
        })
    }

    /// The configuration that these variables and this file result in.
    ///
    /// # Errors
    /// Lists every mistake.
    pub fn read(path: Option<&Path>, mut variables: BTreeMap<String, String>) -> Result<Self, ConfigError> {
        variables.retain(|_, value| !value.is_empty());
        let keys = variables.remove("MUSTER_KEYS").map(SecretString::from);
        let named = variables.remove("MUSTER_CONFIG").map(PathBuf::from);
        let mut mistakes = Vec::new();
        let defaults = settings::from_text("the built-in defaults", DEFAULT, &mut mistakes);
        let file = match path.map(Path::to_path_buf).or(named) {
            Some(path) => settings::from_file(&path, &mut mistakes),
            None => toml::Table::new(),
        };
        let variables = settings::from_variables(&variables, &mut mistakes);
        if !mistakes.is_empty() {
            return Err(ConfigError(mistakes));
        }
        let mut config: Self = Figment::from(Serialized::defaults(defaults))
            .merge(Serialized::defaults(file))
            .merge(Serialized::defaults(variables))
            .extract()
            .map_err(|error| ConfigError(error.into_iter().map(|error| describe(&error)).collect()))?;
        config.keys = keys;
        config.expand();
        config.check()
    }

    /// Replaces `{data_dir}` with the data folder.
    fn expand(&mut self) {
        let folder = self.data_dir.to_string_lossy().into_owned();
        self.keys_file = self.keys_file.to_string_lossy().replace("{data_dir}", &folder).into();
        // These characters have a meaning in URLs.
        let folder = folder.replace('%', "%25").replace('?', "%3F").replace('#', "%23");
        self.database.url = self.database.url.expose_secret().replace("{data_dir}", &folder).into();
        if let Some(url) = &mut self.public_url {
            url.truncate(url.trim_end_matches('/').len());
        }
    }

    /// Checks settings that depend on each other.
    fn check(self) -> Result<Self, ConfigError> {
        let mut mistakes = Vec::new();
        let tokens = &self.service_tokens;
        if tokens.max_days > 0 && tokens.default_days > tokens.max_days {
            mistakes.push("service_tokens.default_days: greater than max_days".to_owned());
        }
        let limits = &self.limits;
        if limits.bodies_bytes < limits.body_bytes.max(limits.attachment_bytes) {
            mistakes.push(
                "limits.bodies_bytes: smaller than the largest body (body_bytes, attachment_bytes)"
                    .to_owned(),
            );
        }
        if self.sessions.browser_idle_days > self.sessions.browser_max_days {
            mistakes.push("sessions.browser_idle_days: greater than browser_max_days".to_owned());
        }
        if self.metrics.listen == Some(self.listen) && self.listen.port() != 0 {
            mistakes.push("metrics.listen: the same as listen; choose another address".to_owned());
        }
        if self.mail.url.is_some() {
            if self.mail.from.is_none() {
                mistakes.push("mail.from: required with mail.url".to_owned());
            }
            if self.public_url.is_none() {
                mistakes.push("public_url: required with mail.url, for the links in mails".to_owned());
            }
        }
        if self.channels.telegram_webhooks && self.public_url.is_none() {
            let why = "public_url: required with channels.telegram_webhooks, for Telegram to reach";
            mistakes.push(why.to_owned());
        }
        if mistakes.is_empty() { Ok(self) } else { Err(ConfigError(mistakes)) }
    }

    /// Reads the limits of the plans.
    ///
    /// # Errors
    /// Lists every mistake in the file.
    pub fn plans(&self) -> Result<Plans, ConfigError> {
        Plans::read(self.plans_file.as_deref())
    }

    /// Reads the rules that judge how risky an agent's action is.
    ///
    /// # Errors
    /// Lists every mistake in the file.
    pub fn risk(&self) -> Result<RiskRules, ConfigError> {
        RiskRules::read(self.risk_file.as_deref())
    }

    /// Reads the profiles of agents' programs.
    ///
    /// # Errors
    /// Lists every mistake in the folder's files.
    pub fn profiles(&self) -> Result<Profiles, ConfigError> {
        Profiles::read(self.profiles_dir.as_deref()).map_err(|mistakes| ConfigError(mistakes.0))
    }

    /// Reads what models cost.
    ///
    /// # Errors
    /// Lists every mistake in the file.
    pub fn prices(&self) -> Result<Prices, ConfigError> {
        Prices::read(self.prices_file.as_deref())
    }

    /// Reads the OpenID providers.
    ///
    /// # Errors
    /// Lists every mistake in the file.
    pub fn oidc(&self) -> Result<OidcProviders, ConfigError> {
        self.oidc_file.as_deref().map_or_else(|| Ok(OidcProviders::new()), oidc::read)
    }

    /// Reads the keys: from `MUSTER_KEYS` if set, or else from the key file, which is created if it is missing.
    ///
    /// # Errors
    /// See [`KeyFileError`].
    pub fn keys(&self) -> Result<KeyFile, KeyFileError> {
        match &self.keys {
            Some(text) => KeyFile::parse(text.expose_secret()),
            None => KeyFile::load_or_create(&self.keys_file),
        }
    }

    /// Reads the keys of an existing installation; never creates a key file.
    ///
    /// # Errors
    /// See [`KeyFileError`].
    pub fn existing_keys(&self) -> Result<KeyFile, KeyFileError> {
        match &self.keys {
            Some(text) => KeyFile::parse(text.expose_secret()),
            None => KeyFile::load(&self.keys_file),
        }
    }

    /// The policy folder; `None` for the built-in policy.
    #[must_use]
    pub fn policy_dir(&self) -> Option<&Path> {
        self.policy_dir.as_deref()
    }

    /// How long a shutdown waits for requests in progress.
    #[must_use]
    pub fn shutdown_grace(&self) -> Duration {
        Duration::from_secs(self.shutdown_grace_seconds)
    }

    /// The key file, if the process may change it.
    ///
    /// # Errors
    /// `CONFLICT` if the keys come from `MUSTER_KEYS`.
    pub fn rotatable_keys(&self) -> crate::base::problem::Result<&Path> {
        if self.keys_are_given() {
            let detail = "The keys come from MUSTER_KEYS: change that variable and restart the service.";
            return Err(crate::base::problem::Problem::new(crate::base::problem::Code::Conflict, detail));
        }
        Ok(&self.keys_file)
    }

    /// Whether the keys come from `MUSTER_KEYS`, so that the process can't rotate them.
    #[must_use]
    pub fn keys_are_given(&self) -> bool {
        self.keys.is_some()
    }

    /// The base URL of links to the panel, without a trailing slash: without `public_url`, the address that the service
    /// listens on.
    #[must_use]
    pub fn links(&self) -> String {
        self.public_url.clone().unwrap_or_else(|| format!("http://{}", self.listen))
    }

    /// Whether there are no keys yet: none in the environment, and no key file.
    #[must_use]
    pub fn lacks_keys(&self) -> bool {
        !self.keys_are_given() && matches!(self.keys_file.try_exists(), Ok(false))
    }

    /// The issuer of access tokens.
    #[must_use]
    pub fn issuer(&self) -> &str {
        self.public_url.as_deref().unwrap_or("muster")
    }
}

/// Networks separated by commas; a single address is a network of one.
fn networks<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Vec<ipnet::IpNet>, D::Error> {
    let text = String::deserialize(deserializer)?;
    settings::parse_networks(&text).ok_or_else(|| serde::de::Error::custom("not a list of networks"))
}

/// Describes what passed the table of settings but not the structs: names the setting, not its value.
fn describe(error: &figment::Error) -> String {
    match &error.kind {
        figment::error::Kind::MissingField(field) => format!("{field}: missing"),
        figment::error::Kind::UnknownField(field, _) => format!("{field}: unknown setting"),
        _ => format!("{}: not a valid value for this setting", error.path.join(".")),
    }
}

#[cfg(test)]
mod tests;
