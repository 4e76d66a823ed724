//! The findings of `muster doctor`.

use std::fmt;

use serde::Serialize;

/// How serious a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    Good,
    /// It works, but should be checked.
    Warning,
    /// It does not work, or not safely.
    Bad,
}

#[derive(Debug, Serialize)]
pub struct Finding {
    pub check: &'static str,
    pub level: Level,
    pub found: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub advice: Option<String>,
}

impl Finding {
    #[must_use]
    pub fn good(check: &'static str, found: impl Into<String>) -> Self {
        Self { check, level: Level::Good, found: found.into(), advice: None }
    }

    /// It works, but should be checked.
    #[must_use]
    pub fn warning(check: &'static str, found: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { check, level: Level::Warning, found: found.into(), advice: Some(advice.into()) }
    }

    /// It does not work, or not safely.
    #[must_use]
    pub fn bad(check: &'static str, found: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { level: Level::Bad, ..Self::warning(check, found, advice) }
    }

    /// Puts the subject's name in front of the finding.
    #[must_use]
    pub fn about(self, whose: &str) -> Self {
        Self { found: format!("{whose}: {}", self.found), ..self }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mark = match self.level {
            Level::Good => "ok  ",
            Level::Warning => "warn",
            Level::Bad => "BAD ",
        };
        write!(f, "{mark} {}: {}", self.check, self.found)?;
        match &self.advice {
            Some(advice) => write!(f, "\n     -> {advice}"),
            None => Ok(()),
        }
    }
}
