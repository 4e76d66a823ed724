//! `muster config`: every setting described, in force, checked.

use clap::Subcommand;
use serde_json::json;

use super::{Cli, Failure, Output, doctor, output::table};
use crate::core::config::{Config, DEFAULT, Origin, Shown};

/// Show and check the settings
#[derive(Debug, Subcommand)]
pub enum Settings {
    /// Print the default settings file, whose comments describe every setting
    Defaults,
    /// Print the settings in force, and where each is set; secrets are masked
    Show,
    /// List every mistake in the settings and in the files that they name; open nothing else
    Check,
}

impl Settings {
    pub(super) fn run(self, cli: &Cli) -> Result<Output, Failure> {
        match self {
            Self::Defaults => Ok(Output::with_text(json!({ "defaults": DEFAULT }), DEFAULT)),
            Self::Show => show(cli),
            Self::Check => Ok(doctor::check_settings(cli)),
        }
    }
}

fn show(cli: &Cli) -> Result<Output, Failure> {
    let settings = Config::shown(cli.config.as_deref())?;
    let rows: Vec<_> = settings.iter().map(row).collect();
    Ok(Output::with_text(json!({ "settings": settings }), table(["setting", "value", "set by"], &rows)))
}

fn row(setting: &Shown) -> [String; 3] {
    let value = setting.value.as_ref().map_or_else(|| "none".to_owned(), ToString::to_string);
    let place = setting.place.clone().unwrap_or_else(|| "default".to_owned());
    let kind = match setting.from {
        Origin::Default => "",
        Origin::File => "file ",
        Origin::Variable => "variable ",
    };
    [setting.key.to_owned(), value, format!("{kind}{place}")]
}
