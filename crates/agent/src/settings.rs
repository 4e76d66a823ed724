//! The environment, read once.

use std::path::PathBuf;

/// The name that stands for the demo's rules instead of a model.
pub const DEMO_MODEL: &str = "muster-demo";

pub struct Settings {
    /// The folder with skills and sessions.
    pub home: PathBuf,
    /// None without access to a model.
    pub model: Option<Access>,
    /// Whether it answers by the demo's rules, regardless of any access to a model.
    pub is_demo: bool,
}

pub struct Access {
    pub provider: Provider,
    pub model: String,
    /// Without a slash at the end.
    pub base_url: String,
    /// None if the gate adds the key.
    pub key: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Provider {
    /// The chat completions API, which many others offer too.
    OpenAi,
    /// The messages API.
    Anthropic,
}

#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    #[error("HOME is not set: set it to a folder that the agent may write to")]
    NoHome,
    #[error("MUSTER_AGENT_PROVIDER is {0:?}: set it to openai or anthropic")]
    UnknownProvider(String),
}

impl Settings {
    pub fn read() -> Result<Self, SettingsError> {
        Self::from_variables(|name| std::env::var_os(name)?.into_string().ok())
    }

    fn from_variables(variable: impl Fn(&str) -> Option<String>) -> Result<Self, SettingsError> {
        let given = |name: &str| variable(name).filter(|value| !value.is_empty());
        let home = given("HOME").ok_or(SettingsError::NoHome)?.into();
        let name = given("MUSTER_AGENT_MODEL");
        let is_demo = name.as_deref() == Some(DEMO_MODEL);
        let Some(model) = name.filter(|_| !is_demo) else { return Ok(Self { home, model: None, is_demo }) };
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
        // A model's name alone is not access.
        let access = (key.is_some() || url.is_some()).then(|| Access {
            provider,
            model,
            base_url: url.as_deref().unwrap_or(default).trim_end_matches('/').to_owned(),
            key,
        });
        Ok(Self { home, model: access, is_demo })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(given: &[(&str, &str)]) -> Result<Settings, SettingsError> {
        let find = |name: &str| given.iter().find(|(n, _)| *n == name).map(|(_, v)| (*v).to_owned());
        Settings::from_variables(find)
    }

    #[test]
    fn a_model_without_access_is_no_model() {
        let read = settings(&[("HOME", "/h"), ("MUSTER_AGENT_MODEL", "m"), ("OPENAI_API_KEY", "")]).unwrap();
        assert!(read.model.is_none());
        assert!(settings(&[("HOME", "/h"), ("OPENAI_API_KEY", "k")]).unwrap().model.is_none());
    }

    #[test]
    fn the_demos_rules_need_no_access_and_ignore_one() {
        for key in ["", "k"] {
            let given = [("HOME", "/h"), ("MUSTER_AGENT_MODEL", DEMO_MODEL), ("OPENAI_API_KEY", key)];
            let read = settings(&given).unwrap();
            assert!(read.is_demo && read.model.is_none());
        }
        assert!(!settings(&[("HOME", "/h")]).unwrap().is_demo);
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
    fn errors_name_the_variable() {
        assert!(settings(&[]).err().unwrap().to_string().contains("HOME"));
        let unknown = [("HOME", "/h"), ("MUSTER_AGENT_MODEL", "m"), ("MUSTER_AGENT_PROVIDER", "acme")];
        assert!(settings(&unknown).err().unwrap().to_string().contains("acme"));
    }
}
