//! `muster migrate`.

use serde_json::json;

use super::{Cli, Failure, Output};

/// Bring the database to what this version needs.
#[derive(Debug, clap::Args)]
pub struct Migrate {}

impl Migrate {
    pub(super) async fn run(self, cli: &Cli) -> Result<Output, Failure> {
        let app = cli.open().await?;
        app.shut_down().await;
        Ok(Output::with_text(json!({ "migrated": true }), "The database is up to date."))
    }
}
