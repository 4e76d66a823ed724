//! `muster policy revert`.

use serde_json::json;

use super::{Cli, Failure, Output};
use crate::{base::ids::PolicyVersionId, core::access::Scope, slices::policies};

/// What `muster policy revert` takes.
#[derive(Debug, clap::Args)]
pub struct Revert {
    /// The version, as `muster policy history` names it
    version: i64,
    /// Why: the history shows it
    #[arg(long)]
    reason: String,
}

impl Revert {
    pub(super) async fn run(self, cli: &Cli) -> Result<Output, Failure> {
        let core = cli.open().await?;
        let version = PolicyVersionId(self.version);
        let (org, file) = policies::owner_of(&core, version).await?;
        let reverted = match org {
            Some(org) => policies::revert(&Scope::system(&core, org), version, &self.reason).await,
            None => policies::revert_operators(&core, version, &self.reason).await,
        };
        core.shut_down().await;
        let changed = reverted?;
        let json =
            json!({ "reverted_to": version, "organization_id": org, "file": file, "changed": changed });
        if changed {
            return Ok(Output::of(json));
        }
        Ok(Output::with_text(json, format!("Nothing was changed: {file} has that text already.")))
    }
}
