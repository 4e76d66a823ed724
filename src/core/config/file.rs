//! The operator's own files of rules and prices. Errors name the file and the line.

use std::path::Path;

use serde::de::DeserializeOwned;

use super::ConfigError;
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

/// The content of a file.
pub(super) fn parse<T: DeserializeOwned>(name: &str, text: &str) -> Result<T, ConfigError> {
    toml::from_str(text).map_err(|error| {
        let line = error.span().map(|span| text[..span.start.min(text.len())].matches('\n').count() + 1);
        let place = line.map(|line| format!(" line {line}:")).unwrap_or_default();
        ConfigError(vec![format!("{name}:{place} {}", error.message())])
    })
}
