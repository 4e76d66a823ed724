//! Why settings are refused.

/// Everything that is wrong with a configuration, one line per mistake.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the configuration is invalid:\n  {}", .0.join("\n  "))]
pub struct ConfigError(pub Vec<String>);
