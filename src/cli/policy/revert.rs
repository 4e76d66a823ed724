//! `muster policy revert`.

use serde_json::json;

use super::{Cli, Failure, Output};
use crate::{base::ids::PolicyVersionId, core::access::Scope, domain::policies};

#[derive(Debug, clap::Args)]
pub struct Revert {
    /// The version's number in `muster policy history`
    version: i64,
    /// The version that the change is based on, by its number or hash in `muster policy history`; refused unless it is
    /// still the newest
    #[arg(long = "version", value_name = "VERSION")]
    seen: Option<String>,
    /// The reason, which the history records
    #[arg(long)]
    reason: String,
}

impl Revert {
    pub(super) async fn run(self, cli: &Cli) -> Result<Output, Failure> {
        let core = cli.open().await?;
        let version = PolicyVersionId(self.version);
        let reverted = async {
            let (org, _) = policies::text_of(&core.db, version).await?;
            let scope = Scope::system(&core, org);
            let seen = match &self.seen {
                Some(seen) => Some(policies::resolve_version(&scope, seen).await?),
                None => None,
            };
            let changed = policies::revert(&scope, seen.as_deref(), version, &self.reason).await?;
            Ok::<_, Failure>((org, changed))
        };
        let reverted = reverted.await;
        core.shut_down().await;
        let (org, changed) = reverted?;
        let file = super::own_file(cli, org)?;
        let json = json!({
            "reverted_to": version, "organization_id": org, "changed": changed,
            "owned_by_file": super::shown(file.as_deref()),
        });
        let text = if changed {
            format!("The text of version {version} is the newest again.")
        } else {
            "Nothing was changed: the newest version already has that text.".to_owned()
        };
        Ok(Output::with_text(json, format!("{text} {}", super::in_force_when(file.as_deref()))))
    }
}
