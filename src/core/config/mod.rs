//! Configuration: the only code that reads the environment.
//!
//! There are three layers, and later ones win: `config/default.toml` (built in, and the documentation of every
//! setting), the file given by `--config` or `MUSTER_CONFIG`, and the `MUSTER_…` variables. Every layer is checked in
//! full against the table of settings (`config/settings.rs`) before anything is used, so that a single start reports
//! every mistake. A message names the setting and where it is set, never its value: it may be a password.
//!
//! - `settings`: the table · `layer`: one layer · `layers`: builds a [`Config`] · `shown`: what is in force, for people
//! - its sections: `limits`, `operating`, `outside`, `records`, `sessions`, `tokens`
//! - `keys`: the keys · `named`: the files that settings name, which are in `oidc`, `plans`, `prices` and `risk`

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    time::Duration,
};

use secrecy::SecretString;
use serde::Deserialize;

mod error;
mod file;
mod keys;
mod layer;
mod layers;
mod limits;
mod named;
mod oidc;
mod operating;
mod outside;
mod plans;
mod prices;
mod records;
mod risk;
mod sessions;
mod settings;
mod shown;
mod tokens;

pub use error::ConfigError;
pub use file::read_secret;
pub use layer::{DEFAULT, Origin};
pub use layers::variable;
pub use limits::RequestLimits;
pub use oidc::{OidcProvider, OidcProviders, ResponseMode};
pub use operating::{Log, LogFormat, Metrics, ProxyHeader, RateLimits, Traces};
use outside::{Agents, Cors, Email, Mail, Mcp};
pub use outside::{Channels, CodeHost};
pub use plans::{PlanLimits, Plans};
pub use prices::{Prices, Since, cost_of};
pub use records::Database;
use records::{Audit, Erasure, PolicySettings};
pub use risk::{Judgment, RiskRules, RuleText, folded};
pub use sessions::Sessions;
pub use settings::{Kind, SETTINGS, Setting, has_origin, line_of, listed};
pub use shown::Shown;
use tokens::{ServiceTokens, Signing};

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
    /// The prices of models. `MUSTER_PRICES_FILE`, none: the built-in list. Read with [`Config::prices`].
    pub prices_file: Option<PathBuf>,
    /// The OpenID providers. `MUSTER_OIDC_FILE`, none.
    pub oidc_file: Option<PathBuf>,
    /// The key file. `MUSTER_KEYS_FILE`, `{data_dir}/keys.toml`. Read with [`Config::keys`].
    pub keys_file: PathBuf,
    /// More CA certificates to trust. `MUSTER_CA_FILE`, none.
    pub ca_file: Option<PathBuf>,
    /// Whether clients may query the GraphQL schema. `MUSTER_INTROSPECTION`, true.
    pub introspection: bool,
    /// Networks of trusted reverse proxies. `MUSTER_TRUSTED_PROXIES`, none.
    #[serde(deserialize_with = "settings::networks")]
    pub trusted_proxies: Vec<ipnet::IpNet>,
    /// The header in which they name the client. `MUSTER_PROXY_HEADER`, x-forwarded-for.
    pub proxy_header: ProxyHeader,
    /// How long a shutdown waits for requests in progress. `MUSTER_SHUTDOWN_GRACE_SECONDS`, 20.
    pub shutdown_grace_seconds: u64,
    /// Where the records are.
    pub database: Database,
    /// The log.
    pub log: Log,
    /// Limits on requests and connections.
    pub limits: RequestLimits,
    /// How long the audit log is kept, and how often it is signed.
    pub audit: Audit,
    /// When what is to be erased is erased.
    pub erasure: Erasure,
    /// How long people stay signed in.
    pub sessions: Sessions,
    /// Where metrics are served.
    pub metrics: Metrics,
    /// Where traces are sent.
    pub traces: Traces,
    /// How many requests a caller may send.
    pub rate_limits: RateLimits,
    /// Access to MCP.
    pub mcp: Mcp,
    /// Pages of other origins that may call the API.
    pub cors: Cors,
    /// How the signing keys of access tokens are rotated.
    pub signing: Signing,
    /// How long service tokens last.
    pub service_tokens: ServiceTokens,
    /// How long decisions are kept.
    pub policy: PolicySettings,
    /// How agents are run.
    pub agents: Agents,
    /// The services that channels may reach.
    pub channels: Channels,
    /// How long the source of incoming mail is kept.
    pub email: Email,
    /// How mail is sent.
    pub mail: Mail,
    /// The text of a key file, instead of the file. `MUSTER_KEYS` only: a settings file must not contain it.
    #[serde(skip)]
    keys: Option<SecretString>,
}

impl Config {
    /// The policy folder; `None` for the built-in policy.
    #[must_use]
    pub fn policy_dir(&self) -> Option<&Path> {
        self.policy_dir.as_deref()
    }

    #[must_use]
    pub fn shutdown_grace(&self) -> Duration {
        Duration::from_secs(self.shutdown_grace_seconds)
    }

    /// The base URL of links to the panel, without a trailing slash: without `public_url`, the address that the service
    /// listens on.
    #[must_use]
    pub fn links(&self) -> String {
        self.public_url.clone().unwrap_or_else(|| format!("http://{}", self.listen))
    }

    /// Whether other machines may send passwords and tokens to it unencrypted: it listens for them, and no setting says
    /// that a proxy with TLS is in front.
    #[must_use]
    pub fn is_in_clear(&self) -> bool {
        let has_tls = self.public_url.as_deref().is_some_and(|url| url.starts_with("https:"));
        !self.listen.ip().is_loopback() && self.trusted_proxies.is_empty() && !has_tls
    }

    /// The issuer of access tokens.
    #[must_use]
    pub fn issuer(&self) -> &str {
        self.public_url.as_deref().unwrap_or("muster")
    }
}

#[cfg(test)]
mod tests;
