//! Configuration: the one place that reads the environment.
//!
//! Three layers, the later winning: `config/default.toml` (built in, and the documentation of every setting), the
//! file of `--config` or `MUSTER_CONFIG`, and the variables `MUSTER_…`. All of a layer is checked against the
//! table of settings (`config/settings.rs`) before anything is used, so that one start names every mistake. A
//! message names the setting and where it stands, never its value: it may be a password.

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    path::{Path, PathBuf},
    time::Duration,
};

use figment::{Figment, providers::Serialized};
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;

use crate::core::sealing::{KeyFile, KeyFileError};

mod oidc;
mod operating;
mod plans;
mod settings;

pub use oidc::{OidcProvider, OidcProviders};
pub use operating::{Metrics, ProxyHeader, RateLimits, Traces};
pub use plans::{PlanLimits, Plans};
pub use settings::{Kind, SETTINGS, Setting, listed};

/// The lowest layer, and the documentation.
pub const DEFAULT: &str = include_str!("config/default.toml");

/// Everything that is wrong with a configuration, a line each.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the configuration is wrong:\n  {}", .0.join("\n  "))]
pub struct ConfigError(pub Vec<String>);

/// The settings. `config/default.toml` describes them.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The folder for everything that the process keeps. `MUSTER_DATA_DIR`, `./data`.
    pub data_dir: PathBuf,
    /// Address and port to serve on. `MUSTER_LISTEN`, `127.0.0.1:8080`.
    pub listen: SocketAddr,
    /// How clients reach this installation, without a slash at the end. `MUSTER_PUBLIC_URL`, none.
    pub public_url: Option<String>,
    /// Where people work: where links in mails lead. `MUSTER_PANEL_URL`, `public_url`.
    pub panel_url: Option<String>,
    /// The folder of the policies. `MUSTER_POLICY_DIR`, none: the built-in ones.
    pub policy_dir: Option<PathBuf>,
    /// The limits of the plans. `MUSTER_PLANS_FILE`, none: the built-in ones. Read with [`Config::plans`].
    pub plans_file: Option<PathBuf>,
    /// The providers that people may sign in with. `MUSTER_OIDC_FILE`, none.
    pub oidc_file: Option<PathBuf>,
    /// The key file. `MUSTER_KEYS_FILE`, `{data_dir}/keys.toml`. Read with [`Config::keys`].
    pub keys_file: PathBuf,
    /// Whether clients may ask for the schema. `MUSTER_INTROSPECTION`, true.
    pub introspection: bool,
    /// Networks of the proxies that are believed where a request comes from. `MUSTER_TRUSTED_PROXIES`, none.
    #[serde(deserialize_with = "networks")]
    pub trusted_proxies: Vec<ipnet::IpNet>,
    /// Where those say it. `MUSTER_PROXY_HEADER`, x-forwarded-for.
    pub proxy_header: ProxyHeader,
    /// How long a shutdown waits for what is under way. `MUSTER_SHUTDOWN_GRACE_SECONDS`, 20.
    pub shutdown_grace_seconds: u64,
    /// Where the records are.
    pub database: Database,
    /// What is logged, and how.
    pub log: Log,
    /// What a client may ask for.
    pub limits: Limits,
    /// How long the audit log is kept, and how often it is signed.
    pub audit: Audit,
    /// How long people stay signed in.
    pub sessions: Sessions,
    /// What the service measures of itself.
    pub metrics: Metrics,
    /// Where traces go.
    pub traces: Traces,
    /// How many requests a caller may send.
    pub rate_limits: RateLimits,
    /// Who may speak MCP.
    pub mcp: Mcp,
    /// How the keys that sign access tokens are replaced.
    pub signing: Signing,
    /// How long service tokens last.
    pub service_tokens: ServiceTokens,
    /// What is kept of decisions.
    pub policy: PolicySettings,
    /// How mail leaves.
    pub mail: Mail,
    /// The text of a key file, in place of the file. `MUSTER_KEYS` alone: it has no place in a file of settings.
    #[serde(skip)]
    keys: Option<SecretString>,
}

/// What is kept of decisions.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicySettings {
    /// For how many days is kept what was allowed and refused how often. `MUSTER_POLICY_DECISIONS_KEPT_DAYS`, 14.
    pub decisions_kept_days: u64,
}

/// Where the records are.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Database {
    /// `sqlite://PATH` or `postgres://…`. `MUSTER_DATABASE_URL`, `sqlite://{data_dir}/muster.db`.
    pub url: SecretString,
    /// The most connections for reading, and again as many for the rest (with SQLite, one writer).
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

/// What is logged, and how.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Log {
    /// A level, or `target=level` pairs. `MUSTER_LOG`, `info,sqlx=warn`.
    pub filter: String,
    /// For people or for machines. `MUSTER_LOG_FORMAT`, text.
    pub format: LogFormat,
}

/// For whom the log is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// Lines for people.
    Text,
    /// One JSON object a line.
    Json,
}

/// What a client may ask for.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// The largest request body. `MUSTER_LIMITS_BODY_BYTES`, 1 MiB.
    pub body_bytes: usize,
    /// The largest attachment. `MUSTER_LIMITS_ATTACHMENT_BYTES`, 25 MiB.
    pub attachment_bytes: usize,
    /// The most connections at a time. `MUSTER_LIMITS_CONNECTIONS`, 15,000.
    pub connections: usize,
    /// How long a connection may say nothing, or a request's head may take. `MUSTER_LIMITS_HEADER_TIMEOUT_SECONDS`, 30.
    pub header_timeout_seconds: u64,
    /// How long one request may take. `MUSTER_LIMITS_REQUEST_TIMEOUT_SECONDS`, 30.
    pub request_timeout_seconds: u64,
    /// How long a client may take for 64 KiB of what waits for it. `MUSTER_LIMITS_WRITE_TIMEOUT_SECONDS`, 30.
    pub write_timeout_seconds: u64,
    /// The largest body without a credential. `MUSTER_LIMITS_ANONYMOUS_BODY_BYTES`, 64 KiB.
    pub anonymous_body_bytes: usize,
    /// The most bytes of bodies under way. `MUSTER_LIMITS_BODIES_BYTES`, 256 MiB.
    pub bodies_bytes: usize,
    /// The most bytes of answers that wait to be sent. `MUSTER_LIMITS_ANSWERS_BYTES`, 256 MiB.
    pub answers_bytes: usize,
    /// The most sockets of an address without a credential. `MUSTER_LIMITS_SOCKETS_ANONYMOUS`, 10.
    pub sockets_anonymous: usize,
    /// The most sockets of a caller. `MUSTER_LIMITS_SOCKETS_PER_CALLER`, 50.
    pub sockets_per_caller: usize,
    /// How long a socket may be open without a credential. `MUSTER_LIMITS_SOCKET_INIT_SECONDS`, 10.
    pub socket_init_seconds: u64,
    /// The most subscriptions of a caller. `MUSTER_LIMITS_SUBSCRIPTIONS_PER_CALLER`, 300.
    pub subscriptions_per_caller: usize,
    /// The most subscriptions to an organization. `MUSTER_LIMITS_SUBSCRIPTIONS_PER_ORGANIZATION`, 3,000.
    pub subscriptions_per_organization: usize,
    /// How deeply selections may nest. `MUSTER_LIMITS_GRAPHQL_DEPTH`, 12.
    pub graphql_depth: usize,
    /// How many fields a document may ask for. `MUSTER_LIMITS_GRAPHQL_COMPLEXITY`, 5,000.
    pub graphql_complexity: usize,
    /// How many aliases a document may have. `MUSTER_LIMITS_GRAPHQL_ALIASES`, 100.
    pub graphql_aliases: usize,
    /// How many operations a request may carry. `MUSTER_LIMITS_GRAPHQL_BATCH`, 10.
    pub graphql_batch: usize,
    /// How many bytes validated documents may take that are kept. `MUSTER_LIMITS_DOCUMENT_CACHE_BYTES`, 64 MiB.
    pub document_cache_bytes: u64,
}

impl Limits {
    /// How long a connection may say nothing, or a request's head may take.
    #[must_use]
    pub fn header_timeout(&self) -> Duration {
        Duration::from_secs(self.header_timeout_seconds)
    }

    /// How long one request may take.
    #[must_use]
    pub fn request_timeout(&self) -> Duration {
        Duration::from_secs(self.request_timeout_seconds)
    }

    /// How long a client may take for 64 KiB of what waits for it.
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
    /// How long lines are kept; 0: for ever. `MUSTER_AUDIT_RETENTION_DAYS`, 0.
    pub retention_days: u32,
    /// After how many lines a checkpoint is signed. `MUSTER_AUDIT_CHECKPOINT_LINES`, 1,000.
    pub checkpoint_lines: u32,
    /// After how long, if the log has grown at all. `MUSTER_AUDIT_CHECKPOINT_MINUTES`, 5.
    pub checkpoint_minutes: u32,
}

/// How long people stay signed in.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sessions {
    /// How long an access token is valid. `MUSTER_SESSIONS_ACCESS_TOKEN_MINUTES`, 15.
    pub access_token_minutes: u64,
    /// How long a session lives after its last refresh. `MUSTER_SESSIONS_REFRESH_TOKEN_DAYS`, 30.
    pub refresh_token_days: u64,
}

impl Sessions {
    /// How long an access token is valid.
    #[must_use]
    pub fn access_token_ttl(&self) -> Duration {
        Duration::from_secs(self.access_token_minutes * 60)
    }

    /// How long a session lives after its last refresh.
    #[must_use]
    pub fn refresh_token_ttl(&self) -> Duration {
        Duration::from_secs(self.refresh_token_days * 24 * 60 * 60)
    }
}

/// Who may speak MCP: `/mcp` answers only under these names, so that a page in somebody's browser can't reach it by
/// making its own name lead to this machine.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mcp {
    /// More names under which clients reach it, with commas. `MUSTER_MCP_HOSTS`, none.
    pub hosts: String,
    /// Origins of pages that may, with commas. `MUSTER_MCP_ORIGINS`, none.
    pub origins: String,
}

/// How the keys that sign access tokens are replaced.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Signing {
    /// How old a key may be. `MUSTER_SIGNING_ROTATION_DAYS`, 90; 0: as old as you like.
    pub rotation_days: u64,
    /// How long a new key is published before it signs. `MUSTER_SIGNING_PUBLISH_MINUTES`, 60.
    pub publish_minutes: u64,
}

impl Signing {
    /// How old a key may be; none: as old as you like.
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
    /// The lifetime of a token whose issuer names no end. `MUSTER_SERVICE_TOKENS_DEFAULT_DAYS`, 365; 0: no end.
    pub default_days: u64,
    /// The longest lifetime. `MUSTER_SERVICE_TOKENS_MAX_DAYS`, 0: as long as the issuer likes.
    pub max_days: u64,
}

impl ServiceTokens {
    /// The lifetime of a token whose issuer names no end; none: no end.
    #[must_use]
    pub fn default_lifetime(&self) -> Option<Duration> {
        (self.default_days > 0).then(|| days(self.default_days)).or(self.max_lifetime())
    }

    /// The longest lifetime; none: as long as the issuer likes.
    #[must_use]
    pub fn max_lifetime(&self) -> Option<Duration> {
        (self.max_days > 0).then(|| days(self.max_days))
    }
}

fn days(count: u64) -> Duration {
    Duration::from_secs(count * 24 * 60 * 60)
}

/// How mail leaves.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mail {
    /// `smtps://…`, `smtp://…` or `file:///…`. `MUSTER_MAIL_URL`, none: mail is not sent.
    pub url: Option<SecretString>,
    /// The sender. `MUSTER_MAIL_FROM`, none.
    pub from: Option<String>,
    /// Certificates to trust besides the public ones. `MUSTER_MAIL_CA_FILE`, none.
    pub ca_file: Option<PathBuf>,
}

impl Config {
    /// The configuration of this process: the defaults, the file (`path`, or else that of `MUSTER_CONFIG`), and
    /// the environment.
    ///
    /// # Errors
    /// Names every mistake.
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

    /// The defaults with this data folder; the environment is not looked at. For tests and the demonstration.
    ///
    /// # Errors
    /// For a folder whose name is not UTF-8.
    pub fn in_folder(data_dir: &Path) -> Result<Self, ConfigError> {
        let name = data_dir.to_str().ok_or_else(|| ConfigError(vec!["data_dir: not UTF-8".into()]))?;
        Self::read(None, BTreeMap::from([("MUSTER_DATA_DIR".to_owned(), name.to_owned())]))
    }

    /// The same settings for an installation of its own in this folder: whatever they say about where things are kept, it
    /// has its own database, key file and policies.
    ///
    /// # Errors
    /// For a folder whose name is not UTF-8.
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

    /// The configuration that these variables and this file give.
    ///
    /// # Errors
    /// Names every mistake.
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

    /// Puts the data folder where `{data_dir}` stands.
    fn expand(&mut self) {
        let folder = self.data_dir.to_string_lossy().into_owned();
        self.keys_file = self.keys_file.to_string_lossy().replace("{data_dir}", &folder).into();
        // In an address these have a meaning of their own.
        let folder = folder.replace('%', "%25").replace('?', "%3F").replace('#', "%23");
        self.database.url = self.database.url.expose_secret().replace("{data_dir}", &folder).into();
        for url in [&mut self.public_url, &mut self.panel_url].into_iter().flatten() {
            url.truncate(url.trim_end_matches('/').len());
        }
    }

    /// What only several settings together can get wrong.
    fn check(self) -> Result<Self, ConfigError> {
        let mut mistakes = Vec::new();
        let tokens = &self.service_tokens;
        if tokens.max_days > 0 && tokens.default_days > tokens.max_days {
            mistakes.push("service_tokens.default_days: more than max_days".to_owned());
        }
        let limits = &self.limits;
        if limits.bodies_bytes < limits.body_bytes.max(limits.attachment_bytes) {
            mistakes.push(
                "limits.bodies_bytes: less than one body may have (body_bytes, attachment_bytes)".to_owned(),
            );
        }
        if self.metrics.listen == Some(self.listen) && self.listen.port() != 0 {
            mistakes
                .push("metrics.listen: the same as listen; it has to be an address of its own".to_owned());
        }
        if self.mail.url.is_some() {
            if self.mail.from.is_none() {
                mistakes.push("mail.from: missing, which mail.url needs".to_owned());
            }
            if self.links().is_empty() {
                mistakes.push("public_url or panel_url: missing, which the links in mails need".to_owned());
            }
        }
        if mistakes.is_empty() { Ok(self) } else { Err(ConfigError(mistakes)) }
    }

    /// Reads the limits of the plans.
    ///
    /// # Errors
    /// Names every mistake of the file.
    pub fn plans(&self) -> Result<Plans, ConfigError> {
        Plans::read(self.plans_file.as_deref())
    }

    /// Reads the providers that people may sign in with.
    ///
    /// # Errors
    /// Names every mistake of the file.
    pub fn oidc(&self) -> Result<OidcProviders, ConfigError> {
        self.oidc_file.as_deref().map_or_else(|| Ok(OidcProviders::new()), oidc::read)
    }

    /// Reads the keys: from `MUSTER_KEYS` if that is set, or else from the key file, which is made if missing.
    ///
    /// # Errors
    /// See [`KeyFileError`].
    pub fn keys(&self) -> Result<KeyFile, KeyFileError> {
        match &self.keys {
            Some(text) => KeyFile::parse(text.expose_secret()),
            None => KeyFile::load_or_create(&self.keys_file),
        }
    }

    /// The same of an installation that is there: no key file is made.
    ///
    /// # Errors
    /// See [`KeyFileError`].
    pub fn existing_keys(&self) -> Result<KeyFile, KeyFileError> {
        match &self.keys {
            Some(text) => KeyFile::parse(text.expose_secret()),
            None => KeyFile::load(&self.keys_file),
        }
    }

    /// The folder of the policies; `None` for the built-in ones.
    #[must_use]
    pub fn policy_dir(&self) -> Option<&Path> {
        self.policy_dir.as_deref()
    }

    /// How long a shutdown waits for what is under way.
    #[must_use]
    pub fn shutdown_grace(&self) -> Duration {
        Duration::from_secs(self.shutdown_grace_seconds)
    }

    /// The key file, where the process may write it.
    ///
    /// # Errors
    /// `CONFLICT` where the keys come from `MUSTER_KEYS`.
    pub fn rotatable_keys(&self) -> crate::base::problem::Result<&Path> {
        if self.keys_are_given() {
            let detail = "The keys come from MUSTER_KEYS: change what sets it, and start the service again.";
            return Err(crate::base::problem::Problem::new(crate::base::problem::Code::Conflict, detail));
        }
        Ok(&self.keys_file)
    }

    /// Whether the keys come from `MUSTER_KEYS`: then the process can't rotate them.
    #[must_use]
    pub fn keys_are_given(&self) -> bool {
        self.keys.is_some()
    }

    /// Where links for people lead, without a slash at the end; empty where nobody said so.
    #[must_use]
    pub fn links(&self) -> &str {
        self.panel_url.as_deref().or(self.public_url.as_deref()).unwrap_or_default()
    }

    /// Whether there is no key yet: none is given, and the key file is not there.
    #[must_use]
    pub fn lacks_keys(&self) -> bool {
        !self.keys_are_given() && matches!(self.keys_file.try_exists(), Ok(false))
    }

    /// Who issues access tokens.
    #[must_use]
    pub fn issuer(&self) -> &str {
        self.public_url.as_deref().unwrap_or("muster")
    }
}

/// Networks with commas between them; a lone address is a network of one.
fn networks<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Vec<ipnet::IpNet>, D::Error> {
    let text = String::deserialize(deserializer)?;
    settings::parse_networks(&text).ok_or_else(|| serde::de::Error::custom("not a list of networks"))
}

/// What the table of settings let through and the structs did not take: the setting, not its value.
fn describe(error: &figment::Error) -> String {
    match &error.kind {
        figment::error::Kind::MissingField(field) => format!("{field}: missing"),
        figment::error::Kind::UnknownField(field, _) => format!("{field}: unknown setting"),
        _ => format!("{}: not a value of this setting", error.path.join(".")),
    }
}

#[cfg(test)]
mod tests;
