//! The operator's own files: rules, prices, secrets. Errors name the file and the line.

use std::path::Path;

use serde::de::DeserializeOwned;

use super::error::ConfigError;
use crate::base::bounds::FILE;

/// The name and the text of a file.
pub(super) fn read(path: &Path) -> Result<(String, String), ConfigError> {
    let name = path.display().to_string();
    let refused = |reason: String| ConfigError(vec![format!("{name}: {reason}")]);
    let about = std::fs::metadata(path).map_err(|error| refused(error.to_string()))?;
    if about.len() > FILE as u64 {
        return Err(refused(format!("the file is larger than {FILE} bytes")));
    }
    let text = std::fs::read_to_string(path).map_err(|error| refused(error.to_string()))?;
    Ok((name, text))
}

/// The secret in a file: its text, without one newline at its end.
///
/// # Errors
/// Why it can't be read, in words. Only the name of an existing file is shown: someone may have written the secret where
/// the name belongs.
pub fn read_secret(path: &Path) -> Result<String, String> {
    std::fs::metadata(path).map_err(|error| format!("the file is out of reach: {error}"))?;
    let (name, mut text) = read(path).map_err(|ConfigError(why)| why.join("; "))?;
    let kept =
        text.strip_suffix('\n').map_or(text.len(), |line| line.strip_suffix('\r').unwrap_or(line).len());
    text.truncate(kept);
    if text.is_empty() {
        return Err(format!("{name}: the file is empty"));
    }
    Ok(text)
}

/// The content of a file.
pub(super) fn parse<T: DeserializeOwned>(name: &str, text: &str) -> Result<T, ConfigError> {
    toml::from_str(text).map_err(|error| {
        let line = error.span().map(|span| text[..span.start.min(text.len())].matches('\n').count() + 1);
        let place = line.map(|line| format!(" line {line}:")).unwrap_or_default();
        ConfigError(vec![format!("{name}:{place} {}", error.message())])
    })
}
