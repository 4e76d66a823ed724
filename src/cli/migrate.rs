//! `muster migrate`.

use serde_json::json;

use super::{Cli, Failure, Output, doctor, load, open};
use crate::{
    base::numerals::with_noun,
    core::store::{MigrationStep, Owner},
};

/// Bring the database up to date for this version
#[derive(Debug, clap::Args)]
pub struct Migrate {
    /// Only list the steps that the database lacks
    #[arg(long)]
    plan: bool,
}

impl Migrate {
    pub(super) async fn run(self, cli: &Cli) -> Result<Output, Failure> {
        if self.plan {
            return plan(cli).await;
        }
        let config = cli.settings()?;
        doctor::require_good_files(&config)?;
        Owner::check(&config)?;
        open::make_folder(&config)?;
        let owner = Owner::acquire(&config, "muster migrate")?;
        let (core, steps) = open::owned(config, &owner, false).await?;
        let core = load(core).await?;
        core.shut_down().await;
        let names = names(&steps);
        let text = match names.len() {
            0 => "The database was already up to date.".to_owned(),
            count => format!("The database is up to date: {} applied.", with_noun(count, "step")),
        };
        Ok(Output::with_text(json!({ "migrated": !names.is_empty(), "steps": names }), text))
    }
}

async fn plan(cli: &Cli) -> Result<Output, Failure> {
    let db = cli.any_database().await?;
    let (mismatch, pending) = (db.mismatch().await, db.pending().await);
    db.close().await;
    if let Some(mismatch) = mismatch? {
        return Err(mismatch.into());
    }
    let pending = pending?;
    let names = names(&pending);
    let text = if names.is_empty() { "The database is up to date.".to_owned() } else { names.join("\n") };
    Ok(Output::with_text(json!({ "pending": pending }), text))
}

fn names(steps: &[MigrationStep]) -> Vec<String> {
    steps.iter().map(ToString::to_string).collect()
}
