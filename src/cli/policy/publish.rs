//! `muster policy publish`.

use std::path::PathBuf;

use serde_json::json;

use super::{Cli, Failure, Output};
use crate::{
    access::{Scope, policy::org_file},
    orgs,
    policies::{self, Edit},
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
    /// The version that the change was made against, as `muster policy history` shows it: refused if another is in force
    #[arg(long)]
    version: Option<String>,
    /// Why: the history shows it
    #[arg(long)]
    reason: String,
}

impl Publish {
    pub(super) async fn run(self, cli: &Cli) -> Result<Output, Failure> {
        let app = cli.open().await?;
        let org = orgs::find(&app, &self.org).await?;
        let path = self.dir.join(org_file(org));
        let text = std::fs::read_to_string(&path).map_err(|error| {
            let path = path.display();
            Failure::new(format!(
                "{path}: {error}. To take the organization's file out of force, make it empty."
            ))
        })?;
        let edit = Edit { version: self.version, text, reason: self.reason };
        let scope = Scope::system(&app, org);
        let published = policies::edit(&scope, edit).await;
        let newest = policies::history(&scope, 1).await;
        app.shut_down().await;
        published?;
        let newest = newest?.into_iter().next();
        let (id, version) = match &newest {
            Some(newest) => (Some(newest.id), newest.version.as_str()),
            None => (None, policies::NO_FILE),
        };
        Ok(Output::of(json!({ "id": id, "organization_id": org, "version": version })))
    }
}
