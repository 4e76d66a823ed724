//! `muster policy history`.

use std::fmt::Write;

use serde_json::json;

use super::{Cli, Failure, Output};
use crate::{
    base::plain::plain,
    core::access::Scope,
    slices::{orgs, policies},
};

/// What `muster policy history` takes.
#[derive(Debug, clap::Args)]
pub struct History {
    /// The organization: its id or its name [default: the files for every organization]
    #[arg(long)]
    org: Option<String>,
    /// How many versions
    #[arg(long, default_value_t = 20)]
    limit: u64,
    /// Show the texts as well
    #[arg(long)]
    text: bool,
}

impl History {
    pub(super) async fn run(self, cli: &Cli) -> Result<Output, Failure> {
        let core = cli.open_unbound().await?;
        let versions = match &self.org {
            Some(org) => {
                let scope = Scope::system(&core, orgs::find(&core, org).await?);
                policies::history(&scope, self.limit).await?
            }
            None => policies::operator_history(&core, self.limit).await?,
        };
        core.shut_down().await;
        let mut text = String::from("number, time, file, hash, author: reason\n");
        for version in &versions {
            let author = version.author_name.as_deref().unwrap_or(version.author_kind.as_str());
            let reason = version.reason.as_deref().unwrap_or("(edited by hand)");
            let (id, at, file) = (version.id, version.at, &version.file);
            let _ = writeln!(
                text,
                "{id} {at} {file} {} by {}: {}",
                version.version,
                plain(author),
                plain(reason)
            );
            let lines = version.text.as_deref().unwrap_or("(no file)").lines();
            for line in lines.filter(|_| self.text) {
                let _ = writeln!(text, "    {}", plain(line));
            }
        }
        if versions.is_empty() {
            text.clear();
            text.push_str("No version yet: the file was never changed while the service ran.");
        }
        Ok(Output::with_text(json!({ "versions": versions }), text))
    }
}
