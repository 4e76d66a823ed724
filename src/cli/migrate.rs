//! `muster migrate`.

use serde_json::json;

use super::{Cli, Failure, Output};
use crate::store::Db;

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
        let app = cli.open().await?;
        app.shut_down().await;
        Ok(Output::with_text(json!({ "migrated": true }), "The database is up to date."))
    }
}

async fn plan(cli: &Cli) -> Result<Output, Failure> {
    let config = cli.settings()?;
    let db = Db::open(&config.database).await?;
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
