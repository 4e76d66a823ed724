//! The table of settings: the key, variable and kind of each, and what is a valid value.

use muster_channels::Software;
use serde::{Deserialize, Deserializer, de::Error};
use toml::{Table, Value};
use tracing_subscriber::{EnvFilter, filter::LevelFilter};

use super::outside::CodeHost;

/// Variables that are not settings: what [`super::Config`] reads besides, and what commands to a service take.
pub(super) const OTHER_VARIABLES: &[&str] = &[
    "MUSTER_CONFIG",
    "MUSTER_DEMO_MODEL",
    "MUSTER_DEMO_MODEL_KEY",
    "MUSTER_DEMO_MODEL_URL",
    "MUSTER_KEYS",
    "MUSTER_ORG",
    "MUSTER_TOKEN",
    "MUSTER_URL",
];

/// The kind of a setting's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A path.
    Path,
    /// A text.
    Text,
    /// A text that is a secret.
    Secret,
    /// The path of a file with a secret: the text of the setting of the same name without `_file`.
    SecretFile,
    /// An IP address and a port.
    Address,
    /// An `http` or `https` URL.
    Url,
    /// A database URL. May contain a password.
    DatabaseUrl,
    /// How mail is sent. May contain a password.
    MailUrl,
    /// An e-mail address, with or without a name.
    Mailbox,
    /// A log filter.
    Filter,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// True or false.
    Flag,
    /// A whole number between the two, inclusive.
    Integer(i64, i64),
    /// Host names, separated by commas; may be empty.
    Hosts,
    /// Origins, separated by commas; may be empty.
    Origins,
    /// A number from 0 to 1.
    Ratio,
    /// Networks and addresses, separated by commas; may be empty.
    Networks,
    /// Code hosts, separated by commas; may be empty.
    CodeHosts,
}

/// One setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Its key in the file: `section.name`.
    pub key: &'static str,
    /// Its environment variable.
    pub variable: &'static str,
    /// The kind of its value.
    pub kind: Kind,
}

impl Setting {
    /// The secret setting whose text is in the file that this setting names.
    #[must_use]
    pub fn secret(&self) -> Option<&'static Setting> {
        let key = self.key.strip_suffix("_file").filter(|_| self.kind == Kind::SecretFile)?;
        SETTINGS.iter().find(|setting| setting.key == key)
    }
}

/// Defines the table: one setting per line.
macro_rules! settings {
    ($($key:literal, $variable:literal, $kind:expr;)+) => {
        &[$(Setting { key: $key, variable: $variable, kind: $kind },)+]
    };
}

/// Every setting. `default.toml` describes them; a test keeps the two and the structs in step. A secret has a second
/// line, for its file, which a test requires.
pub const SETTINGS: &[Setting] = settings! {
    "data_dir", "MUSTER_DATA_DIR", Kind::Path;
    "listen", "MUSTER_LISTEN", Kind::Address;
    "public_url", "MUSTER_PUBLIC_URL", Kind::Url;
    "panel_dir", "MUSTER_PANEL_DIR", Kind::Path;
    "policy_dir", "MUSTER_POLICY_DIR", Kind::Path;
    "plans_file", "MUSTER_PLANS_FILE", Kind::Path;
    "risk_file", "MUSTER_RISK_FILE", Kind::Path;
    "profiles_dir", "MUSTER_PROFILES_DIR", Kind::Path;
    "prices_file", "MUSTER_PRICES_FILE", Kind::Path;
    "oidc_file", "MUSTER_OIDC_FILE", Kind::Path;
    "keys_file", "MUSTER_KEYS_FILE", Kind::Path;
    "ca_file", "MUSTER_CA_FILE", Kind::Path;
    "introspection", "MUSTER_INTROSPECTION", Kind::Flag;
    "trusted_proxies", "MUSTER_TRUSTED_PROXIES", Kind::Networks;
    "proxy_header", "MUSTER_PROXY_HEADER", Kind::Choice(&["x-forwarded-for", "forwarded"]);
    "shutdown_grace_seconds", "MUSTER_SHUTDOWN_GRACE_SECONDS", Kind::Integer(0, 3_600);
    "database.url", "MUSTER_DATABASE_URL", Kind::DatabaseUrl;
    "database.url_file", "MUSTER_DATABASE_URL_FILE", Kind::SecretFile;
    "database.max_connections", "MUSTER_DATABASE_MAX_CONNECTIONS", Kind::Integer(1, 10_000);
    "database.acquire_timeout_seconds", "MUSTER_DATABASE_ACQUIRE_TIMEOUT_SECONDS", Kind::Integer(1, 300);
    "log.filter", "MUSTER_LOG", Kind::Filter;
    "log.format", "MUSTER_LOG_FORMAT", Kind::Choice(&["text", "json"]);
    "limits.body_bytes", "MUSTER_LIMITS_BODY_BYTES", Kind::Integer(1_024, 1 << 30);
    "limits.attachment_bytes", "MUSTER_LIMITS_ATTACHMENT_BYTES", Kind::Integer(1_024, 1 << 32);
    "limits.connections", "MUSTER_LIMITS_CONNECTIONS", Kind::Integer(1, 1_000_000);
    "limits.header_timeout_seconds", "MUSTER_LIMITS_HEADER_TIMEOUT_SECONDS", Kind::Integer(1, 3_600);
    "limits.request_timeout_seconds", "MUSTER_LIMITS_REQUEST_TIMEOUT_SECONDS", Kind::Integer(1, 3_600);
    "limits.write_timeout_seconds", "MUSTER_LIMITS_WRITE_TIMEOUT_SECONDS", Kind::Integer(1, 3_600);
    "limits.anonymous_body_bytes", "MUSTER_LIMITS_ANONYMOUS_BODY_BYTES", Kind::Integer(1_024, 1 << 30);
    "limits.bodies_bytes", "MUSTER_LIMITS_BODIES_BYTES", Kind::Integer(1 << 20, 1 << 40);
    "limits.answers_bytes", "MUSTER_LIMITS_ANSWERS_BYTES", Kind::Integer(64 << 20, 1 << 40);
    "limits.sockets_anonymous", "MUSTER_LIMITS_SOCKETS_ANONYMOUS", Kind::Integer(1, 1_000_000);
    "limits.sockets_per_caller", "MUSTER_LIMITS_SOCKETS_PER_CALLER", Kind::Integer(1, 1_000_000);
    "limits.socket_init_seconds", "MUSTER_LIMITS_SOCKET_INIT_SECONDS", Kind::Integer(1, 3_600);
    "limits.subscriptions_per_caller", "MUSTER_LIMITS_SUBSCRIPTIONS_PER_CALLER", Kind::Integer(1, 1_000_000);
    "limits.subscriptions_per_organization", "MUSTER_LIMITS_SUBSCRIPTIONS_PER_ORGANIZATION", Kind::Integer(1, 1_000_000);
    "limits.graphql_depth", "MUSTER_LIMITS_GRAPHQL_DEPTH", Kind::Integer(3, 100);
    "limits.graphql_complexity", "MUSTER_LIMITS_GRAPHQL_COMPLEXITY", Kind::Integer(100, 10_000_000);
    "limits.graphql_aliases", "MUSTER_LIMITS_GRAPHQL_ALIASES", Kind::Integer(0, 10_000);
    "limits.graphql_batch", "MUSTER_LIMITS_GRAPHQL_BATCH", Kind::Integer(1, 1_000);
    "limits.document_cache_bytes", "MUSTER_LIMITS_DOCUMENT_CACHE_BYTES", Kind::Integer(0, 1 << 40);
    "audit.retention_days", "MUSTER_AUDIT_RETENTION_DAYS", Kind::Integer(0, 36_500);
    "audit.checkpoint_lines", "MUSTER_AUDIT_CHECKPOINT_LINES", Kind::Integer(1, 1_000_000);
    "audit.checkpoint_minutes", "MUSTER_AUDIT_CHECKPOINT_MINUTES", Kind::Integer(1, 10_080);
    "erasure.grace_days", "MUSTER_ERASURE_GRACE_DAYS", Kind::Integer(0, 365);
    "policy.decisions_kept_days", "MUSTER_POLICY_DECISIONS_KEPT_DAYS", Kind::Integer(1, 3_650);
    "sessions.access_token_minutes", "MUSTER_SESSIONS_ACCESS_TOKEN_MINUTES", Kind::Integer(1, 1_440);
    "sessions.refresh_token_days", "MUSTER_SESSIONS_REFRESH_TOKEN_DAYS", Kind::Integer(1, 3_650);
    "sessions.browser_idle_days", "MUSTER_SESSIONS_BROWSER_IDLE_DAYS", Kind::Integer(1, 3_650);
    "sessions.browser_max_days", "MUSTER_SESSIONS_BROWSER_MAX_DAYS", Kind::Integer(1, 3_650);
    "metrics.listen", "MUSTER_METRICS_LISTEN", Kind::Address;
    "traces.endpoint", "MUSTER_OTLP_ENDPOINT", Kind::Url;
    "traces.sample_ratio", "MUSTER_TRACES_SAMPLE_RATIO", Kind::Ratio;
    "rate_limits.enabled", "MUSTER_RATE_LIMITS_ENABLED", Kind::Flag;
    "rate_limits.reads_per_minute", "MUSTER_RATE_LIMITS_READS_PER_MINUTE", Kind::Integer(1, 100_000_000);
    "rate_limits.writes_per_minute", "MUSTER_RATE_LIMITS_WRITES_PER_MINUTE", Kind::Integer(1, 100_000_000);
    "rate_limits.anonymous_per_minute", "MUSTER_RATE_LIMITS_ANONYMOUS_PER_MINUTE", Kind::Integer(1, 100_000_000);
    "mcp.hosts", "MUSTER_MCP_HOSTS", Kind::Hosts;
    "mcp.origins", "MUSTER_MCP_ORIGINS", Kind::Origins;
    "cors.origins", "MUSTER_CORS_ORIGINS", Kind::Origins;
    "signing.rotation_days", "MUSTER_SIGNING_ROTATION_DAYS", Kind::Integer(0, 3_650);
    "signing.publish_minutes", "MUSTER_SIGNING_PUBLISH_MINUTES", Kind::Integer(0, 43_200);
    "service_tokens.default_days", "MUSTER_SERVICE_TOKENS_DEFAULT_DAYS", Kind::Integer(0, 3_650);
    "service_tokens.max_days", "MUSTER_SERVICE_TOKENS_MAX_DAYS", Kind::Integer(0, 3_650);
    "agents.start_deadline_seconds", "MUSTER_AGENTS_START_DEADLINE_SECONDS", Kind::Integer(1, 86_400);
    "channels.networks", "MUSTER_CHANNELS_NETWORKS", Kind::Networks;
    "channels.code_hosts", "MUSTER_CHANNELS_CODE_HOSTS", Kind::CodeHosts;
    "channels.discord_url", "MUSTER_CHANNELS_DISCORD_URL", Kind::Url;
    "channels.discord_files_url", "MUSTER_CHANNELS_DISCORD_FILES_URL", Kind::Url;
    "channels.drive_seconds", "MUSTER_CHANNELS_DRIVE_SECONDS", Kind::Integer(1, 86_400);
    "channels.slack_url", "MUSTER_CHANNELS_SLACK_URL", Kind::Url;
    "channels.slack_files_url", "MUSTER_CHANNELS_SLACK_FILES_URL", Kind::Url;
    "channels.telegram_url", "MUSTER_CHANNELS_TELEGRAM_URL", Kind::Url;
    "channels.telegram_webhooks", "MUSTER_CHANNELS_TELEGRAM_WEBHOOKS", Kind::Flag;
    "channels.google_client_id", "MUSTER_CHANNELS_GOOGLE_CLIENT_ID", Kind::Text;
    "channels.google_client_secret", "MUSTER_CHANNELS_GOOGLE_CLIENT_SECRET", Kind::Secret;
    "channels.google_client_secret_file", "MUSTER_CHANNELS_GOOGLE_CLIENT_SECRET_FILE", Kind::SecretFile;
    "channels.google_accounts_url", "MUSTER_CHANNELS_GOOGLE_ACCOUNTS_URL", Kind::Url;
    "channels.google_tokens_url", "MUSTER_CHANNELS_GOOGLE_TOKENS_URL", Kind::Url;
    "channels.google_api_url", "MUSTER_CHANNELS_GOOGLE_API_URL", Kind::Url;
    "channels.github_client_id", "MUSTER_CHANNELS_GITHUB_CLIENT_ID", Kind::Text;
    "channels.github_client_secret", "MUSTER_CHANNELS_GITHUB_CLIENT_SECRET", Kind::Secret;
    "channels.github_client_secret_file", "MUSTER_CHANNELS_GITHUB_CLIENT_SECRET_FILE", Kind::SecretFile;
    "channels.github_app_key", "MUSTER_CHANNELS_GITHUB_APP_KEY", Kind::Secret;
    "channels.github_app_key_file", "MUSTER_CHANNELS_GITHUB_APP_KEY_FILE", Kind::SecretFile;
    "channels.github_webhook_secret", "MUSTER_CHANNELS_GITHUB_WEBHOOK_SECRET", Kind::Secret;
    "channels.github_webhook_secret_file", "MUSTER_CHANNELS_GITHUB_WEBHOOK_SECRET_FILE", Kind::SecretFile;
    "channels.github_url", "MUSTER_CHANNELS_GITHUB_URL", Kind::Url;
    "channels.github_api_url", "MUSTER_CHANNELS_GITHUB_API_URL", Kind::Url;
    "email.keep_source", "MUSTER_EMAIL_KEEP_SOURCE", Kind::Integer(0, 3_650);
    "mail.url", "MUSTER_MAIL_URL", Kind::MailUrl;
    "mail.url_file", "MUSTER_MAIL_URL_FILE", Kind::SecretFile;
    "mail.from", "MUSTER_MAIL_FROM", Kind::Mailbox;
    "mail.ca_file", "MUSTER_MAIL_CA_FILE", Kind::Path;
};

impl Kind {
    /// Whether a value may contain a password.
    #[must_use]
    pub fn is_secret(self) -> bool {
        matches!(self, Self::Secret | Self::DatabaseUrl | Self::MailUrl)
    }

    /// Checks a value; the error describes a valid one.
    pub(super) fn check(self, value: &Value) -> Result<(), String> {
        let good = match (self, value) {
            (Self::Path | Self::Text | Self::Secret | Self::SecretFile, Value::String(text)) => {
                !text.is_empty()
            }
            (Self::Address, Value::String(text)) => text.parse::<std::net::SocketAddr>().is_ok(),
            (Self::Url, Value::String(text)) => is_base_url(text),
            (Self::DatabaseUrl, Value::String(text)) => {
                let file = text.strip_prefix("sqlite:").map(|file| file.trim_matches('/'));
                file.map_or_else(
                    || ["postgres://", "postgresql://"].iter().any(|scheme| text.starts_with(scheme)),
                    |file| !file.is_empty(),
                )
            }
            (Self::MailUrl, Value::String(text)) => crate::core::mail::check_url(text),
            (Self::Mailbox, Value::String(text)) => text.parse::<lettre::message::Mailbox>().is_ok(),
            (Self::Filter, Value::String(text)) => is_filter(text),
            (Self::Choice(words), Value::String(text)) => words.contains(&text.as_str()),
            (Self::Flag, Value::Boolean(_)) => true,
            (Self::Integer(min, max), Value::Integer(number)) => (min..=max).contains(number),
            (Self::Ratio, Value::Float(number)) => (0.0..=1.0).contains(number),
            (Self::Ratio, Value::Integer(number)) => (0..=1).contains(number),
            (Self::Networks, Value::String(text)) => parse_networks(text).is_some(),
            (Self::CodeHosts, Value::String(text)) => parse_code_hosts(text).is_some(),
            (Self::Hosts, Value::String(text)) => listed(text).all(is_host),
            (Self::Origins, Value::String(text)) => listed(text).all(is_origin),
            _ => false,
        };
        if good { Ok(()) } else { Err(format!("must be {}", self.description())) }
    }

    fn description(self) -> String {
        match self {
            Self::Path => "a path".into(),
            Self::Text | Self::Secret => "a text".into(),
            Self::SecretFile => "the path of a file".into(),
            Self::Address => "an IP address and a port: 127.0.0.1:9000".into(),
            Self::Url => "a URL without a query: https://muster.example.com".into(),
            Self::DatabaseUrl => "sqlite://PATH or postgres://USER:PASSWORD@HOST/DATABASE".into(),
            Self::MailUrl => {
                "smtps://USER:PASSWORD@HOST, smtp://… (STARTTLS), smtp://…?tls=none (no password, or this machine), or file:///FOLDER"
                    .into()
            }
            Self::Mailbox => "an e-mail address: Muster <muster@example.com>".into(),
            Self::Filter => "a level or target=level pairs, without spaces: info,muster=debug".into(),
            Self::Choice(words) => format!("one of: {}", words.join(", ")),
            Self::Flag => "true or false".into(),
            Self::Integer(min, max) => format!("a whole number from {min} to {max}"),
            Self::Hosts => "host names separated by commas: muster.example.com,10.0.0.7:8080".into(),
            Self::Origins => "origins separated by commas: https://app.example.com:443,http://localhost:*".into(),
            Self::Ratio => "a number from 0 to 1".into(),
            Self::CodeHosts => {
                "code hosts separated by commas: gitlab=https://gitlab.com/,gitea=https://codeberg.org/".into()
            }
            Self::Networks => "networks separated by commas: 10.0.0.0/8, 192.0.2.7".into(),
        }
    }

    /// Converts a variable's text to the value that a file would have. Invalid text stays text, for `check` to refuse.
    pub(super) fn value(self, text: &str) -> Value {
        let value = match self {
            Self::Flag => text.parse().ok().map(Value::Boolean),
            Self::Integer(..) => text.parse().ok().map(Value::Integer),
            Self::Ratio => text.parse().ok().map(Value::Float),
            _ => None,
        };
        value.unwrap_or_else(|| Value::String(text.to_owned()))
    }
}

/// Deserializes networks separated by commas.
pub(super) fn networks<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<ipnet::IpNet>, D::Error> {
    let text = String::deserialize(deserializer)?;
    parse_networks(&text).ok_or_else(|| D::Error::custom("not a list of networks"))
}

/// Networks separated by commas; a single address is a network of one.
fn parse_networks(text: &str) -> Option<Vec<ipnet::IpNet>> {
    let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
    parts
        .map(|part| {
            let network = part.parse().ok();
            network.or_else(|| part.parse::<std::net::IpAddr>().ok().map(ipnet::IpNet::from))
        })
        .collect()
}

/// Deserializes code hosts separated by commas.
pub(super) fn code_hosts<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<CodeHost>, D::Error> {
    let text = String::deserialize(deserializer)?;
    parse_code_hosts(&text).ok_or_else(|| D::Error::custom("not a list of code hosts"))
}

/// Code hosts as `gitlab=URL`, separated by commas. Their names are their hosts, with ports.
fn parse_code_hosts(text: &str) -> Option<Vec<CodeHost>> {
    let parse = |item: &str| {
        let (software, address) = item.split_once('=')?;
        let software = match software.trim() {
            "gitea" => Software::Gitea,
            "gitlab" => Software::Gitlab,
            _ => return None,
        };
        let address = format!("{}/", address.trim().trim_end_matches('/'));
        let url = url::Url::parse(&address).ok().filter(|_| is_base_url(&address))?;
        let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
        Some(CodeHost { name: format!("{}{port}", url.host_str()?), software, url })
    };
    listed(text).map(parse).collect()
}

/// The items of a comma-separated list.
pub fn listed(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim).filter(|item| !item.is_empty())
}

/// The library also accepts a lone target. Here that is a mistyped level, which would log nothing.
fn is_filter(text: &str) -> bool {
    let says_level = |part: &str| part.contains('=') || part.parse::<LevelFilter>().is_ok();
    text.split(',').all(|part| part == part.trim() && says_level(part)) && EnvFilter::try_new(text).is_ok()
}

/// A host name or address, with or without a port.
fn is_host(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-.:[]".contains(&byte))
}

/// Whether a list of origins has this one. In the list, `:*` is any port.
pub fn has_origin(list: &str, origin: &str) -> bool {
    let Ok(origin) = url::Url::parse(origin) else { return false };
    listed(list).any(|item| {
        let fixed = item.strip_suffix(":*");
        url::Url::parse(fixed.unwrap_or(item)).is_ok_and(|url| {
            let same_port = fixed.is_some() || url.port_or_known_default() == origin.port_or_known_default();
            url.scheme() == origin.scheme() && url.host() == origin.host() && same_port
        })
    })
}

fn is_origin(text: &str) -> bool {
    let fixed = text.strip_suffix(":*").unwrap_or(text);
    url::Url::parse(fixed).is_ok_and(|url| {
        matches!(url.scheme(), "http" | "https")
            && url.has_host()
            && url.path() == "/"
            && !fixed.ends_with('/')
    })
}

fn is_base_url(text: &str) -> bool {
    url::Url::parse(text).is_ok_and(|url| {
        matches!(url.scheme(), "http" | "https")
            && url.has_host()
            && url.query().is_none()
            && url.fragment().is_none()
            && url.username().is_empty()
            && url.password().is_none()
    })
}

/// Parses TOML. A mistake is reported by its line number, without the line's text.
pub(super) fn parse(name: &str, text: &str, mistakes: &mut Vec<String>) -> Table {
    text.parse().unwrap_or_else(|error: toml::de::Error| {
        let line = line_of(text, error.span().map_or(0, |span| span.start));
        mistakes.push(format!("{name}:{line}: invalid TOML: {}", error.message()));
        Table::new()
    })
}

/// The line of the byte at `start`, from 1.
pub fn line_of(text: &str, start: usize) -> usize {
    let before = &text.as_bytes()[..start.min(text.len())];
    1 + before.iter().filter(|&&byte| byte == b'\n').count()
}

/// ` (did you mean …?)` with the known name that `name` most likely stands for, compared as a whole or by the part after
/// the section (for a key in the wrong section). Nothing if more than a third differs, unless only the end is missing.
pub(super) fn hint<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> String {
    let last = |key: &str| {
        let key = key.strip_prefix("MUSTER_").unwrap_or(key);
        key.rsplit('.').next().unwrap_or_default().to_owned()
    };
    let is_near = |&(distance, key): &(usize, &str)| {
        distance * 3 <= last(key).len() || last(key).starts_with(&last(name))
    };
    let distances = known.map(|key| {
        let whole = strsim::damerau_levenshtein(name, key);
        (whole.min(strsim::damerau_levenshtein(&last(name), &last(key)) + 1), key)
    });
    let nearest = distances.filter(is_near).min_by_key(|(distance, _)| *distance);
    nearest.map(|(_, key)| format!(" (did you mean {key}?)")).unwrap_or_default()
}
