//! Organizations' own rules in the database: puts the newest version of each in force, whichever replica has stored it.
//!
//! Versions are made by the slice `policies`. Which of them decide is the policy's business: those of organizations
//! without a file in the policy folder.

use std::sync::Arc;

use tokio::sync::Mutex;

use crate::{
    base::{
        ids::OrgId,
        problem::{Problem, Result},
    },
    core::{Core, policy::Given, store::Db},
};

/// Which versions are in force here.
#[derive(Default)]
pub struct Rules(Mutex<Seen>);

#[derive(Default)]
struct Seen {
    /// None: no version was read yet.
    mark: Option<Mark>,
    policy: String,
}

/// Looks whether there are new versions, and puts them in force: whether the policy is another one than the last time.
/// Cheap when nothing is new. To be called before the service serves; then again and again.
///
/// # Errors
/// The database is out of reach.
pub async fn follow(core: &Arc<Core>) -> Result<u64> {
    let mut seen = core.access.rules.0.lock().await;
    // Taken before what it tells of is read: what comes meanwhile is looked at the next time.
    let mark = mark(core).await?;
    if seen.mark != Some(mark) {
        let (texts, worker) = (newest_since(&core.db, seen.mark).await?, core.policy.clone());
        tokio::task::spawn_blocking(move || worker.give(texts)).await.map_err(Problem::internal)?;
        seen.mark = Some(mark);
    }
    // Also when a file was saved: whoever is served on the strength of the old policy is looked at again.
    let policy = core.policy.status().version;
    if seen.policy == policy {
        return Ok(0);
    }
    core.access.cache.invalidate_all();
    let is_first = std::mem::replace(&mut seen.policy, policy).is_empty();
    Ok(u64::from(!is_first))
}

/// How many of the newest versions may still be committed after a newer one was.
const AT_ONCE: i64 = 100;

/// The newest version's number, and the sum of the newest numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Mark {
    newest: i64,
    sum: i64,
}

/// Tells cheaply whether there is news, however many versions there are. By both numbers, because a transaction that was
/// begun earlier may be committed later.
async fn mark(core: &Core) -> Result<Mark> {
    let sql = format!(
        "SELECT COALESCE(MAX(id), 0), CAST(COALESCE(SUM(id), 0) AS BIGINT) \
         FROM (SELECT id FROM policy_versions ORDER BY id DESC LIMIT {AT_ONCE}) newest"
    );
    match core.db.one(sql, vec![]).await? {
        Some(row) => Ok(Mark { newest: row.try_get_by_index(0)?, sum: row.try_get_by_index(1)? }),
        None => Ok(Mark { newest: 0, sum: 0 }),
    }
}

/// The newest texts of the organizations that may have a version since the mark; without one, of all.
async fn newest_since(db: &Db, mark: Option<Mark>) -> Result<Vec<(OrgId, Option<String>)>> {
    let sql = "SELECT organization_id, text FROM policy_versions WHERE id IN (SELECT MAX(id) FROM policy_versions \
               WHERE organization_id IN (SELECT organization_id FROM policy_versions WHERE id > $1) \
               GROUP BY organization_id)";
    let after = mark.map_or(0, |mark| mark.newest - AT_ONCE);
    let rows = db.all(sql.to_owned(), vec![after.into()]).await?;
    rows.iter().map(|row| Ok((OrgId(row.try_get_by_index(0)?), row.try_get_by_index(1)?))).collect()
}

/// The newest texts of all organizations that have one.
///
/// # Errors
/// The database is out of reach.
pub async fn all_newest(db: &Db) -> Result<Given> {
    let texts = newest_since(db, None).await?.into_iter();
    Ok(texts.filter_map(|(org, text)| Some((org, text?.into()))).collect())
}
