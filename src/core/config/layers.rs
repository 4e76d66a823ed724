//! Builds a configuration: reads its layers, merges them, and checks the result as a whole.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use figment::{Figment, providers::Serialized};
use secrecy::{ExposeSecret, SecretString};

use super::{Config, ConfigError, DEFAULT, Database, settings};

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

    /// The same settings for a separate installation in this folder, with its own database, key file and policies,
    /// regardless of their settings.
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

    /// The configuration from these variables and this file.
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
        let is_root = |url: &str| url::Url::parse(url).is_ok_and(|url| url.path() == "/");
        if self.public_url.as_deref().is_some_and(|url| !is_root(url)) {
            let why =
                "public_url: must have no path, because the panel and the API are at the root of their host";
            mistakes.push(why.to_owned());
        }
        if self.channels.telegram_webhooks && self.public_url.is_none() {
            let why = "public_url: required with channels.telegram_webhooks, for Telegram to reach";
            mistakes.push(why.to_owned());
        }
        if mistakes.is_empty() { Ok(self) } else { Err(ConfigError(mistakes)) }
    }
}

/// Describes a value that passed the table of settings but not the structs: names the setting, not the value.
fn describe(error: &figment::Error) -> String {
    match &error.kind {
        figment::error::Kind::MissingField(field) => format!("{field}: missing"),
        figment::error::Kind::UnknownField(field, _) => format!("{field}: unknown setting"),
        _ => format!("{}: not a valid value for this setting", error.path.join(".")),
    }
}
