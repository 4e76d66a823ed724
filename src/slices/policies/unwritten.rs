//! Which files of a folder lag behind, for who looks from outside of the service (`muster doctor`).
//!
//! The service itself knows what it could not write; another process finds out by the same three texts as `sync`.

use std::{collections::BTreeSet, fs, io, path::Path};

use super::{
    sync::read_note,
    versions::{self, NO_FILE, version_of},
};
use crate::{
    base::{
        ids::{OrgId, PolicyVersionId},
        problem::Result,
    },
    core::{
        policy::{Policy, org_file},
        store::Db,
    },
};

/// A file that does not have the text that is in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unwritten {
    /// Whose file it is.
    pub organization: OrgId,
    /// The file, from the policy folder on.
    pub file: String,
    /// The version in force.
    pub version: PolicyVersionId,
}

/// The files in `dir` that have not got their newest version yet. A hand edit that no service has taken yet is none of
/// them: it is going to be the newest version itself.
///
/// # Errors
/// The database is out of reach.
pub async fn unwritten(db: &Db, dir: &Path) -> Result<Vec<Unwritten>> {
    let (known, noted) = (versions::known(db).await?, read_note(dir));
    let mut unwritten = Vec::new();
    for (organization, id, newest) in known {
        let file = org_file(organization);
        let here = version_in(&dir.join(&file));
        // What can't be read is not what was noted, and no hand edit either.
        let untouched =
            here.is_none() || noted.get(&organization).is_none_or(|noted| Some(noted) == here.as_ref());
        if here.as_ref() != Some(&newest) && untouched {
            unwritten.push(Unwritten { organization, file, version: id });
        }
    }
    unwritten.sort_by_key(|unwritten| unwritten.organization);
    Ok(unwritten)
}

/// The files in `dir` that are good, and of organizations that there are not: what is wrong with them is the number, and should
/// an organization get it one day, the rules would be its own.
///
/// # Errors
/// The database is out of reach.
pub async fn of_no_organization(db: &Db, dir: &Path) -> Result<Vec<String>> {
    let Ok(policy) = Policy::load(dir) else { return Ok(Vec::new()) };
    let rows = db.all("SELECT id FROM organizations".to_owned(), vec![]).await?;
    let there: BTreeSet<i64> =
        rows.iter().map(|row| row.try_get_by_index(0)).collect::<std::result::Result<_, _>>()?;
    let files = policy.org_texts().into_iter().filter(|(org, _)| !there.contains(&org.0));
    Ok(files.map(|(org, _)| org_file(org)).collect())
}

fn version_in(path: &Path) -> Option<String> {
    match fs::read_to_string(path) {
        Ok(text) => Some(version_of(Some(&text))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Some(NO_FILE.to_owned()),
        Err(_) => None,
    }
}
