//! `muster backup` and `muster restore`.

use std::path::PathBuf;

use serde_json::json;

use super::{Cli, Failure, Output, open};
use crate::{
    base::{numerals::with_noun, time::Clock},
    core::store::{
        Owner,
        backup::{self, Manifest},
    },
};

/// Save the database (SQLite) and the policies to one file while the service runs
#[derive(Debug, clap::Args)]
pub struct Backup {
    /// The file to write
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
}

/// Restore a backup where no database exists yet
#[derive(Debug, clap::Args)]
pub struct Restore {
    /// A file written by `muster backup`
    file: PathBuf,
}

impl Backup {
    pub(super) async fn run(self, cli: &Cli) -> Result<Output, Failure> {
        let config = cli.settings()?;
        open::require_file(&config)?;
        let manifest = backup::backup(&config, &self.out, Clock::system().now()).await?;
        let text = format!(
            "{}: {}, up to migration {}.\nNot included: {}.",
            self.out.display(),
            contents(&manifest),
            manifest.migrated_to,
            manifest.left_out
        );
        Ok(Output::with_text(json!({ "file": self.out, "manifest": manifest }), text))
    }
}

impl Restore {
    pub(super) async fn run(self, cli: &Cli) -> Result<Output, Failure> {
        let config = cli.settings()?;
        // A missing backup file is reported before anything else.
        let read = std::fs::File::open(&self.file);
        read.map_err(|error| Failure::of_file(&self.file, &error))?;
        Owner::check(&config)?;
        open::make_folder(&config)?;
        let _owner = Owner::acquire(&config, "muster restore")?;
        let (manifest, policies_restored) = backup::restore(&config, &self.file).await?;
        let database = backup::database_file(&config)?;
        let keys = config.keys_are_given() || config.keys_file.exists();
        let mut text = format!(
            "{}: {}, made at {} by Muster {}.",
            database.display(),
            contents(&manifest),
            manifest.made_at,
            manifest.muster
        );
        let policies = manifest.policies();
        if policies > 0 && !policies_restored {
            text.push_str(&format!(
                "\nIts {} not restored: policy_dir must name an empty folder. Unpack them from the archive.",
                if policies == 1 {
                    "policy file was".to_owned()
                } else {
                    format!("{policies} policy files were")
                }
            ));
        }
        if !keys {
            text.push_str(&format!(
                "\nBefore you start anything, restore the key file that was in use at that time: {}.",
                config.keys_file.display()
            ));
        }
        text.push_str("\nThen run `muster doctor`.");
        Ok(Output::with_text(
            json!({ "database": database, "keys_in_place": keys, "policies_restored": policies_restored, "manifest": manifest }),
            text,
        ))
    }
}

fn contents(manifest: &Manifest) -> String {
    let bytes: u64 = manifest.files.iter().map(|file| file.bytes).sum();
    format!("{}, {}", with_noun(manifest.files.len(), "file"), with_noun(bytes, "byte"))
}
