//! The environment, read once.

use std::path::PathBuf;

/// What the agent was given when it was started.
pub struct Settings {
    /// Its folder: skills and sessions are in it.
    pub home: PathBuf,
    /// The model to use, if there is access to one.
    pub model: Option<Access>,
}

/// Access to a model.
pub struct Access {
    /// Whose interface it has.
    pub provider: Provider,
    /// The model's name.
    pub model: String,
    /// Where the interface is, without a slash at its end.
    pub base_url: String,
    /// The key, unless something on the way adds it.
    pub key: Option<String>,
}

/// An interface to models.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Provider {
    /// OpenAI's chat completions, which many others offer too.
    OpenAi,
    /// Anthropic's messages.
    Anthropic,
}

/// Why the agent can't start.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// HOME is not set.
    #[error("HOME is not set: set it to a folder that the agent may write to")]
    NoHome,
    /// The provider is unknown.
    #[error("MUSTER_AGENT_PROVIDER is {0:?}: set it to openai or anthropic")]
    UnknownProvider(String),
}

impl Settings {
    /// From the environment of the process.
    pub fn read() -> Result<Self, SettingsError> {
        Self::from(|name| std::env::var_os(name)?.into_string().ok())
    }

    fn from(variable: impl Fn(&str) -> Option<String>) -> Result<Self, SettingsError> {
        let given = |name: &str| variable(name).filter(|value| !value.is_empty());
        let home = given("HOME").ok_or(SettingsError::NoHome)?.into();
        let Some(model) = given("MUSTER_AGENT_MODEL") else { return Ok(Self { home, model: None }) };
        let provider = match given("MUSTER_AGENT_PROVIDER").map(|name| name.to_ascii_lowercase()).as_deref() {
            Some("openai") => Provider::OpenAi,
            Some("anthropic") => Provider::Anthropic,
            Some(other) => return Err(SettingsError::UnknownProvider(other.to_owned())),
            None if given("ANTHROPIC_API_KEY").or(given("ANTHROPIC_BASE_URL")).is_some() => {
                Provider::Anthropic
            }
            None => Provider::OpenAi,
        };
        let (key, url, default) = match provider {
            Provider::OpenAi => ("OPENAI_API_KEY", "OPENAI_BASE_URL", "https://api.openai.com/v1"),
            Provider::Anthropic => ("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "https://api.anthropic.com"),
        };
        let (key, url) = (given(key), given(url));
        // A model's name alone gives no access.
        let access = (key.is_some() || url.is_some()).then(|| Access {
            provider,
            model,
            base_url: url.as_deref().unwrap_or(default).trim_end_matches('/').to_owned(),
            key,
        });
        Ok(Self { home, model: access })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(given: &[(&str, &str)]) -> Result<Settings, SettingsError> {
        let find = |name: &str| given.iter().find(|(n, _)| *n == name).map(|(_, v)| (*v).to_owned());
        Settings::from(find)
    }

    #[test]
    fn a_model_without_access_is_no_model() {
        let read = settings(&[("HOME", "/h"), ("MUSTER_AGENT_MODEL", "m"), ("OPENAI_API_KEY", "")]).unwrap();
        assert!(read.model.is_none());
        assert!(settings(&[("HOME", "/h"), ("OPENAI_API_KEY", "k")]).unwrap().model.is_none());
    }

    #[test]
    fn the_provider_follows_from_the_access_unless_it_is_named() {
        let base =
            [("HOME", "/h"), ("MUSTER_AGENT_MODEL", "m"), ("ANTHROPIC_BASE_URL", "http://localhost:1/")];
        let access = settings(&base).unwrap().model.unwrap();
        assert_eq!((access.provider, access.base_url.as_str()), (Provider::Anthropic, "http://localhost:1"));
        let named = [&base[..], &[("MUSTER_AGENT_PROVIDER", "OpenAI"), ("OPENAI_API_KEY", "k")]].concat();
        let access = settings(&named).unwrap().model.unwrap();
        assert_eq!(
            (access.provider, access.base_url.as_str()),
            (Provider::OpenAi, "https://api.openai.com/v1")
        );
    }

    #[test]
    fn what_is_missing_or_unknown_is_named() {
        assert!(settings(&[]).err().unwrap().to_string().contains("HOME"));
        let unknown = [("HOME", "/h"), ("MUSTER_AGENT_MODEL", "m"), ("MUSTER_AGENT_PROVIDER", "acme")];
        assert!(settings(&unknown).err().unwrap().to_string().contains("acme"));
    }
}
