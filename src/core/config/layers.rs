//! Builds a configuration: reads its layers, merges them, and checks the result as a whole.

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    path::{Path, PathBuf},
};

use figment::{Figment, providers::Serialized};
use secrecy::SecretString;
use toml::Value;

use super::{
    Config, ConfigError, Database,
    layer::{Layer, Origin},
    settings::OTHER_VARIABLES,
};

/// A variable of this process that is not a setting. `None` if it is not set, empty, or not UTF-8.
pub fn variable(name: &str) -> Option<String> {
    std::env::var_os(name)?.into_string().ok().filter(|value| !value.is_empty())
}

impl Config {
    /// The configuration of this process: the defaults, the file (`path`, or else the one in `MUSTER_CONFIG`), and the
    /// environment.
    ///
    /// # Errors
    /// Lists every mistake.
    pub fn load(path: Option<&Path>) -> Result<Self, ConfigError> {
        Layers::load(path)?.config()
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
    pub fn read(path: Option<&Path>, variables: BTreeMap<String, String>) -> Result<Self, ConfigError> {
        Layers::read(path, variables)?.config()
    }

    /// The same settings, serving on this address.
    ///
    /// # Errors
    /// The address does not fit the other settings.
    pub fn serving_on(mut self, address: SocketAddr) -> Result<Self, ConfigError> {
        self.listen = address;
        self.check()
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

/// The layers, each without mistakes, from the highest.
pub(super) struct Layers {
    from_top: [Layer; 3],
    /// The text of `MUSTER_KEYS`.
    pub(super) keys: Option<SecretString>,
}

impl Layers {
    /// The layers of this process.
    ///
    /// # Errors
    /// Lists every mistake.
    pub(super) fn load(path: Option<&Path>) -> Result<Self, ConfigError> {
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

    /// The layers from these variables and this file.
    ///
    /// # Errors
    /// Lists every mistake.
    pub(super) fn read(
        path: Option<&Path>,
        mut variables: BTreeMap<String, String>,
    ) -> Result<Self, ConfigError> {
        variables.retain(|_, value| !value.is_empty());
        let keys = variables.remove("MUSTER_KEYS").map(SecretString::from);
        let named = variables.remove("MUSTER_CONFIG").map(PathBuf::from);
        variables.retain(|name, _| !OTHER_VARIABLES.contains(&name.as_str()));
        let mut mistakes = Vec::new();
        let defaults = Layer::of_defaults(&mut mistakes);
        let file = match path.map(Path::to_path_buf).or(named) {
            Some(path) => Layer::of_file(&path, &mut mistakes),
            None => Layer::empty(Origin::File),
        };
        let variables = Layer::of_variables(&variables, &mut mistakes);
        if !mistakes.is_empty() {
            return Err(ConfigError(mistakes));
        }
        let mut layers = Self { from_top: [variables, file, defaults], keys };
        layers.expand();
        Ok(layers)
    }

    /// The highest layer that has a value for this key, and the value.
    pub(super) fn find(&self, key: &str) -> Option<(&Layer, &Value)> {
        self.from_top.iter().find_map(|layer| Some((layer, layer.get(key)?)))
    }

    /// The settings in force.
    ///
    /// # Errors
    /// Lists every contradiction between settings.
    pub(super) fn config(&self) -> Result<Config, ConfigError> {
        let mut figment = Figment::new();
        for layer in self.from_top.iter().rev() {
            figment = figment.merge(Serialized::defaults(&layer.values));
        }
        let mut config: Config = figment
            .extract()
            .map_err(|error| self.placed(error.into_iter().map(|error| describe(&error)).collect()))?;
        config.keys.clone_from(&self.keys);
        config.check().map_err(|ConfigError(mistakes)| self.placed(mistakes))
    }

    /// Replaces `{data_dir}` with the data folder, and removes the slashes at the end of `public_url`.
    fn expand(&mut self) {
        let folder = match self.find("data_dir") {
            Some((_, Value::String(folder))) => folder.clone(),
            _ => String::new(),
        };
        // These characters have a meaning in URLs.
        let in_url = folder.replace('%', "%25").replace('?', "%3F").replace('#', "%23");
        for layer in &mut self.from_top {
            for (key, folder) in [("keys_file", &folder), ("database.url", &in_url)] {
                if let Some(text) = layer.text_mut(key) {
                    *text = text.replace("{data_dir}", folder);
                }
            }
            if let Some(url) = layer.text_mut("public_url") {
                url.truncate(url.trim_end_matches('/').len());
            }
        }
    }

    /// Puts the place of the setting in front of each mistake, which begins with its key.
    fn placed(&self, mistakes: Vec<String>) -> ConfigError {
        let placed = |mistake: String| {
            let key = mistake.split(':').next().unwrap_or_default();
            match self.find(key) {
                Some((layer, _)) if layer.origin != Origin::Default => {
                    format!("{}: {mistake}", layer.place(key))
                }
                _ => mistake,
            }
        };
        ConfigError(mistakes.into_iter().map(placed).collect())
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
