//! The keys: in the environment, or in a file that is made at the first start.

use std::path::Path;

use secrecy::ExposeSecret;

use super::Config;
use crate::core::sealing::{KeyFile, KeyFileError};

impl Config {
    /// Reads the keys: from `MUSTER_KEYS` if set, or else from the key file, which is created if it is missing.
    ///
    /// # Errors
    /// See [`KeyFileError`].
    pub fn keys(&self) -> Result<KeyFile, KeyFileError> {
        match &self.keys {
            Some(text) => KeyFile::parse(text.expose_secret()),
            None => KeyFile::load_or_create(&self.keys_file),
        }
    }

    /// Reads the keys of an existing installation; never creates a key file.
    ///
    /// # Errors
    /// See [`KeyFileError`].
    pub fn existing_keys(&self) -> Result<KeyFile, KeyFileError> {
        match &self.keys {
            Some(text) => KeyFile::parse(text.expose_secret()),
            None => KeyFile::load(&self.keys_file),
        }
    }

    /// The key file, if the process may change it.
    ///
    /// # Errors
    /// `CONFLICT` if the keys come from `MUSTER_KEYS`.
    pub fn rotatable_keys(&self) -> crate::base::problem::Result<&Path> {
        if self.keys_are_given() {
            let detail = "The keys come from MUSTER_KEYS: change that variable and restart the service.";
            return Err(crate::base::problem::Problem::new(crate::base::problem::Code::Conflict, detail));
        }
        Ok(&self.keys_file)
    }

    /// Whether the keys come from `MUSTER_KEYS`, so that the process can't rotate them.
    #[must_use]
    pub fn keys_are_given(&self) -> bool {
        self.keys.is_some()
    }

    /// Whether there are no keys yet: none in the environment, and no key file.
    #[must_use]
    pub fn lacks_keys(&self) -> bool {
        !self.keys_are_given() && matches!(self.keys_file.try_exists(), Ok(false))
    }
}
