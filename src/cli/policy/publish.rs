//! `muster policy publish`.

use std::path::PathBuf;

use serde_json::json;

use super::{Cli, Failure, Output};
use crate::{
    base::problem::Problem,
    core::{access::Scope, policy::org_file},
    slices::{
        orgs,
        policies::{self, Edit, Version},
    },
};

/// What `muster policy publish` takes.
#[derive(Debug, clap::Args)]
pub struct Publish {
    /// The organization: its id or its name
    #[arg(long)]
    org: String,
    /// The folder with the change; of it, the organization's own file is published. An empty file removes the one in force
    #[arg(long, value_name = "CANDIDATE")]
    dir: PathBuf,
    /// The version that the change was made against, by its number or its hash in `muster policy history`: refused if another
    /// is in force
    #[arg(long)]
    version: Option<String>,
    /// Why: the history shows it
    #[arg(long)]
    reason: String,
}

impl Publish {
    pub(super) async fn run(self, cli: &Cli) -> Result<Output, Failure> {
        let core = cli.open().await?;
        let org = orgs::find(&core, &self.org).await?;
        let path = self.dir.join(org_file(org));
        let text = std::fs::read_to_string(&path).map_err(|error| {
            let path = path.display();
            Failure::new(format!(
                "{path}: {error}. To take the organization's file out of force, make it empty."
            ))
        })?;
        let scope = Scope::system(&core, org);
        let published = publish(&scope, self.version, text, self.reason).await;
        core.shut_down().await;
        let (newest, changed) = published?;
        let (id, version) = match &newest {
            Some(newest) => (Some(newest.id), newest.version.as_str()),
            None => (None, policies::NO_FILE),
        };
        let json = json!({ "id": id, "organization_id": org, "version": version, "changed": changed });
        if changed {
            return Ok(Output::of(json));
        }
        Ok(Output::with_text(
            json,
            format!("Nothing was changed: {} is in force as it is already.", org_file(org)),
        ))
    }
}

/// What is the newest version now, and whether this has made it.
async fn publish(
    scope: &Scope,
    seen: Option<String>,
    text: String,
    reason: String,
) -> Result<(Option<Version>, bool), Problem> {
    let version = match seen {
        Some(seen) => Some(policies::version_named(scope, &seen).await?),
        None => None,
    };
    let changed = policies::edit(scope, Edit { version, text, reason }).await?;
    Ok((policies::history(scope, 1).await?.into_iter().next(), changed))
}
