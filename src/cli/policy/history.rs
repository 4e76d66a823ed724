//! `muster policy history`.

use std::fmt::Write;

use serde_json::json;

use super::{Cli, Failure, Output};
use crate::{
    base::plain::without_controls,
    core::access::Scope,
    domain::{orgs, policies},
};

#[derive(Debug, clap::Args)]
pub struct History {
    /// The organization's id or name
    #[arg(long)]
    org: String,
    /// The number of versions to show
    #[arg(long, default_value_t = 20)]
    limit: u64,
    /// Also show the texts
    #[arg(long)]
    text: bool,
}

impl History {
    pub(super) async fn run(self, cli: &Cli) -> Result<Output, Failure> {
        let core = cli.open_unbound().await?;
        let found = async {
            let org = orgs::find(&core, &self.org).await?;
            Ok::<_, Failure>((org, policies::history(&Scope::system(&core, org), self.limit).await?))
        };
        let found = found.await;
        core.shut_down().await;
        let (org, versions) = found?;
        let file = super::own_file(cli, org)?;
        let mut text = String::from("number, time, hash, author: reason\n");
        for version in &versions {
            let author = version.author_name.as_deref().unwrap_or(version.author_kind.as_str());
            let (id, at, hash, reason) = (version.id, version.at, &version.version, &version.reason);
            let _ = writeln!(
                text,
                "{id} {at} {hash} by {}: {}",
                without_controls(author),
                without_controls(reason)
            );
            let lines = version.text.as_deref().unwrap_or("(no rules of its own)").lines();
            for line in lines.filter(|_| self.text) {
                let _ = writeln!(text, "    {}", without_controls(line));
            }
        }
        if versions.is_empty() {
            text.clear();
            text.push_str("The database has no version of this organization's rules.\n");
        }
        if let Some(file) = &file {
            let _ =
                writeln!(text, "Not in force: the rules are in {}, which has no versions.", file.display());
        }
        Ok(Output::with_text(
            json!({ "versions": versions, "owned_by_file": super::shown(file.as_deref()) }),
            text,
        ))
    }
}
