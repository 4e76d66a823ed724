//! `muster migrate`.

use serde_json::json;

use super::{Cli, Failure, Output, doctor, load_keys, open};
use crate::{base::numerals::counted, core::store::Owner};

/// Bring the database to what this version needs.
#[derive(Debug, clap::Args)]
pub struct Migrate {
    /// Only show which steps the database lacks, and whether the version that serves now can go on
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
        let owner = Owner::take(&config, "muster migrate")?;
        let (core, steps) = open::owned(config, &owner).await?;
        let core = load_keys(core).await?;
        core.shut_down().await;
        let names: Vec<String> =
            steps.iter().map(|step| format!("{:04} {}", step.version, step.name)).collect();
        let text = match names.len() {
            0 => "The database was up to date already.".to_owned(),
            count => format!("The database is up to date: {} made.", counted(count, "step")),
        };
        Ok(Output::with_text(json!({ "migrated": !names.is_empty(), "steps": names }), text))
    }
}

async fn plan(cli: &Cli) -> Result<Output, Failure> {
    let db = cli.any_database().await?;
    let pending = db.pending().await;
    db.close().await;
    let pending = pending?;
    let mut text = String::new();
    for step in &pending {
        let may = if step.safe_while_serving {
            "the old version may serve on"
        } else {
            "stop the old version first"
        };
        text.push_str(&format!("{:04} {}: {may}\n", step.version, step.name));
        for what in &step.takes_away {
            text.push_str(&format!("     {what}\n"));
        }
    }
    if pending.is_empty() {
        text.push_str("The database is up to date.");
    }
    Ok(Output::with_text(json!({ "pending": pending }), text))
}
