//! `muster policy export`.

use std::{
    fs,
    io::{self, IsTerminal, Write},
    path::{Path, PathBuf},
};

use serde_json::json;

use super::{super::output::unwritable, Cli, Failure, Output};
use crate::{
    base::{
        ids::{OrgId, PolicyVersionId},
        plain::lines_without_controls,
        problem::Problem,
    },
    core::{access::org_policies, store::Db},
    domain::{orgs, policies},
};

#[derive(Debug, clap::Args)]
pub struct Export {
    /// The organization's id or name
    #[arg(long)]
    org: String,
    /// A version, by its number in `muster policy history` [default: the rules in force]
    #[arg(long, value_name = "NUMBER")]
    version: Option<i64>,
    /// The file to write, which must not exist yet [default: standard output]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

impl Export {
    pub(super) async fn run(self, cli: &Cli) -> Result<Output, Failure> {
        let db = cli.database().await?;
        let found = async {
            let org = orgs::find_in(&db, &self.org).await?;
            Ok::<_, Failure>((org, self.text(cli, &db, org).await?))
        };
        let found = found.await;
        db.close().await;
        let (org, text) = found?;
        let Some(text) = text else {
            return Err(Failure::not_found(format!("Organization {org} has no rules of its own.")));
        };
        if let Some(out) = &self.out {
            write(out, &text)
                .map_err(|error| Failure::new(format!("{} can't be written: {error}", out.display())))?;
            return Ok(Output::from_json(json!({ "organization_id": org, "out": out })));
        }
        if cli.json || io::stdout().is_terminal() {
            return Ok(Output::with_text(
                json!({ "organization_id": org, "text": text }),
                lines_without_controls(&text),
            ));
        }
        muster_printing::print(&text).map_err(|error| unwritable(&error, ""))?;
        Ok(Output::none())
    }

    async fn text(&self, cli: &Cli, db: &Db, org: OrgId) -> Result<Option<String>, Failure> {
        if let Some(number) = self.version.map(PolicyVersionId) {
            let (owner, text) = policies::text_of(db, number).await?;
            return if owner == org { Ok(text) } else { Err(Problem::not_found("version", number).into()) };
        }
        match super::own_file(cli, org)? {
            Some(file) => {
                let text = fs::read_to_string(&file);
                let told = |error| Failure::new(format!("{} can't be read: {error}", file.display()));
                Ok(Some(text.map_err(told)?))
            }
            None => Ok(org_policies::all_newest(db).await?.get(&org).map(ToString::to_string)),
        }
    }
}

/// Never overwrites an existing file.
fn write(path: &Path, text: &str) -> io::Result<()> {
    fs::File::create_new(path)?.write_all(text.as_bytes())
}
