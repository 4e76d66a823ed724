//! `muster policy publish`.

use std::path::PathBuf;

use serde_json::json;

use super::{Cli, Failure, Output};
use crate::{
    base::problem::Problem,
    core::{access::Scope, policy::org_file},
    domain::{
        orgs,
        policies::{self, Edit, Version},
    },
};

#[derive(Debug, clap::Args)]
pub struct Publish {
    /// The organization's id or name
    #[arg(long)]
    org: String,
    /// The folder with the organization's file to store; an empty file means no rules of its own [default: the
    /// service's]
    #[arg(long, value_name = "CANDIDATE")]
    dir: Option<PathBuf>,
    /// The version that the change is based on, by its number or hash in `muster policy history`; refused unless it is
    /// still the newest
    #[arg(long)]
    version: Option<String>,
    /// The reason, which the history records
    #[arg(long)]
    reason: String,
}

impl Publish {
    pub(super) async fn run(self, cli: &Cli) -> Result<Output, Failure> {
        let core = cli.open().await?;
        let stored = async {
            let org = orgs::find(&core, &self.org).await?;
            let text = self.text(cli, &org_file(org))?;
            let scope = Scope::system(&core, org);
            Ok::<_, Failure>((org, publish(&scope, self.version, text, self.reason).await?))
        };
        let stored = stored.await;
        core.shut_down().await;
        let (org, (newest, changed)) = stored?;
        let (id, version) = match &newest {
            Some(newest) => (Some(newest.id), newest.version.as_str()),
            None => (None, policies::NONE),
        };
        let file = super::own_file(cli, org)?;
        let json = json!({
            "id": id, "organization_id": org, "version": version, "changed": changed,
            "owned_by_file": super::shown(file.as_deref()),
        });
        let text = if changed {
            let number = id.map(|id| id.to_string()).unwrap_or_default();
            format!("Stored as version {number} ({version}).")
        } else {
            "Nothing was changed: the newest version already has this text.".to_owned()
        };
        Ok(Output::with_text(json, format!("{text} {}", super::in_force_when(file.as_deref()))))
    }

    fn text(&self, cli: &Cli, file: &str) -> Result<String, Failure> {
        let folder = match &self.dir {
            Some(dir) => Some(dir.clone()),
            None => cli.settings()?.policy_dir,
        };
        let Some(folder) = folder else {
            return Err(Failure::invalid(
                "--dir: name the folder with the file; the service has no policy folder (policy_dir)",
            ));
        };
        let path = folder.join(file);
        std::fs::read_to_string(&path).map_err(|error| {
            Failure::of_file(&path, &error).reworded(|said| {
                format!("{said}. To take the organization's own rules out of force, publish an empty file.")
            })
        })
    }
}

/// The newest version afterwards, and whether this call stored it.
async fn publish(
    scope: &Scope,
    seen: Option<String>,
    text: String,
    reason: String,
) -> Result<(Option<Version>, bool), Problem> {
    let version = match seen {
        Some(seen) => Some(policies::resolve_version(scope, &seen).await?),
        None => None,
    };
    let changed = policies::edit(scope, Edit { version, text, reason }).await?;
    Ok((policies::newest(scope).await?, changed))
}
