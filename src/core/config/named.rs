//! Reads the files that settings name: plans, rules, profiles, prices, providers.

use muster_profiles::Profiles;

use super::{Config, ConfigError, OidcProviders, Plans, Prices, RiskRules, oidc};

impl Config {
    /// Reads the limits of the plans.
    ///
    /// # Errors
    /// Lists every mistake in the file.
    pub fn plans(&self) -> Result<Plans, ConfigError> {
        Plans::read(self.plans_file.as_deref())
    }

    /// Reads the rules that judge how risky an agent's action is.
    ///
    /// # Errors
    /// Lists every mistake in the file.
    pub fn risk(&self) -> Result<RiskRules, ConfigError> {
        RiskRules::read(self.risk_file.as_deref())
    }

    /// Reads the profiles of agents' programs.
    ///
    /// # Errors
    /// Lists every mistake in the folder's files.
    pub fn profiles(&self) -> Result<Profiles, ConfigError> {
        Profiles::read(self.profiles_dir.as_deref()).map_err(|mistakes| ConfigError(mistakes.0))
    }

    /// Reads the prices of models.
    ///
    /// # Errors
    /// Lists every mistake in the file.
    pub fn prices(&self) -> Result<Prices, ConfigError> {
        Prices::read(self.prices_file.as_deref())
    }

    /// Reads the OpenID providers.
    ///
    /// # Errors
    /// Lists every mistake in the file.
    pub fn oidc(&self) -> Result<OidcProviders, ConfigError> {
        self.oidc_file.as_deref().map_or_else(|| Ok(OidcProviders::new()), oidc::read)
    }
}
