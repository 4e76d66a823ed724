//! The candidate of `muster policy diff` and `muster policy simulate`: a folder that is not in force, or an earlier
//! version.

use std::path::{Path, PathBuf};

use super::Failure;
use crate::{
    base::ids::PolicyVersionId,
    core::{
        access::org_policies,
        policy::{Compiled, Given},
        store::Db,
    },
    domain::policies,
};

/// Exactly one of the two is given.
#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
pub struct Candidate {
    /// The folder with the change
    #[arg(long, value_name = "CANDIDATE")]
    pub dir: Option<PathBuf>,
    /// An earlier version, by its number in `muster policy history`, as if reverted to
    #[arg(long, value_name = "NUMBER")]
    version: Option<i64>,
}

impl Candidate {
    /// The policy that would be in force, and the one that the service uses now.
    pub(super) async fn read(
        &self,
        db: Option<&Db>,
        service: Option<&Path>,
    ) -> Result<(Compiled, Compiled), Failure> {
        let stored = match db {
            Some(db) => org_policies::all_newest(db).await?,
            None => Given::new(),
        };
        // With a mistake in a file, a new start would decide otherwise than the running service does.
        let before = whole(service, &stored)?;
        let after = match (&self.dir, db) {
            (Some(dir), _) => whole(Some(dir), &stored)?,
            (None, Some(db)) => {
                let version = PolicyVersionId(self.version.unwrap_or_default());
                let (org, text) = policies::text_of(db, version).await?;
                before.with_org(org, text.as_deref()).map_err(|problems| super::refused(&problems))?
            }
            (None, None) => return Err(Failure::not_found("--version: there is no database with versions")),
        };
        Ok((before, after))
    }
}

/// The policy in a folder, or the built-in one. The folder must be valid as a whole; problems with rules in the
/// database are reported elsewhere.
pub(super) fn whole(dir: Option<&Path>, stored: &Given) -> Result<Compiled, Failure> {
    let read = Compiled::read(dir, stored).map_err(|problems| super::refused(&problems))?;
    let wrong = read.problems_of_files();
    if wrong.is_empty() { Ok(read) } else { Err(super::refused(&wrong)) }
}
