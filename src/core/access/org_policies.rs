//! Organizations' own rules in the database: puts the newest version of each in force, from any replica.
//!
//! The feature `policies` creates versions. The policy decides which of them apply: those of organizations without a
//! file in the policy folder.

use std::sync::Arc;

use tokio::sync::Mutex;

use crate::{
    base::{
        ids::OrgId,
        problem::{Problem, Result},
    },
    core::{
        Core,
        policy::Given,
        store::{
            Db,
            sql::{RunSql as _, every_org_sql, installation_sql, row},
        },
    },
};

/// The versions in force here.
#[derive(Default)]
pub struct Rules(Mutex<Seen>);

impl Rules {
    /// Whether there is something to [`follow`]: other versions, or another policy than the last time.
    #[must_use]
    pub fn differ(&self, mark: Mark, policy: &str) -> bool {
        // A running [`follow`] reads both.
        self.0.try_lock().is_ok_and(|seen| seen.mark != Some(mark) || seen.policy != policy)
    }
}

#[derive(Default)]
struct Seen {
    /// `None`: no version has been read yet.
    mark: Option<Mark>,
    policy: String,
}

/// Puts new versions in force. Returns whether the policy has changed since the last time. Cheap if nothing is new.
/// Call it once before the service serves, then repeatedly.
pub async fn follow(core: &Arc<Core>) -> Result<u64> {
    let mut seen = core.access.rules.0.lock().await;
    // Read before the versions, so that later ones are found the next time.
    let mark = read_mark(core).await?;
    if seen.mark != Some(mark) {
        let (texts, worker) = (newest_since(&core.db, seen.mark).await?, core.policy.clone());
        tokio::task::spawn_blocking(move || worker.set_given(texts)).await.map_err(Problem::internal)?;
        seen.mark = Some(mark);
    }
    // Also after a file was saved: callers admitted under the old policy are checked again.
    let policy = core.policy.status().version;
    if seen.policy == policy {
        return Ok(0);
    }
    core.access.cache.invalidate_all();
    let is_first = std::mem::replace(&mut seen.policy, policy).is_empty();
    Ok(u64::from(!is_first))
}

/// How many of the newest versions may still commit after a newer one did: the limit of [`NEWEST`].
const AT_ONCE: i64 = 100;

row! {
    /// The newest version's number, and the sum of the newest numbers.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct Mark {
        newest: i64,
        /// The sum of the newest [`AT_ONCE`].
        sum: i64,
    }
}

/// The newest versions: a cheap check for news, regardless of the number of versions. It takes the greatest number and
/// the sum, because a transaction that began earlier may commit later.
pub const NEWEST: &str = "(SELECT id FROM policy_versions ORDER BY id DESC LIMIT 100) newest";

async fn read_mark(core: &Core) -> Result<Mark> {
    let sql = installation_sql!(
        "SELECT COALESCE(MAX(id), 0) AS newest, CAST(COALESCE(SUM(id), 0) AS BIGINT) AS sum FROM ",
        NEWEST
    );
    Ok(core.db.installation().one(sql, []).await?.unwrap_or_default())
}

row! {
    /// The newest text of an organization.
    struct Newest {
        organization_id: OrgId,
        text: Option<String>,
    }
}

/// The newest texts of organizations with a version since the mark; without a mark, of all.
async fn newest_since(db: &Db, mark: Option<Mark>) -> Result<Vec<(OrgId, Option<String>)>> {
    let sql = every_org_sql!(
        "SELECT organization_id, text FROM policy_versions WHERE id IN (SELECT MAX(id) FROM policy_versions \
         WHERE organization_id IN (SELECT organization_id FROM policy_versions WHERE id > $1) \
         GROUP BY organization_id)"
    );
    let after = mark.map_or(0, |mark| mark.newest - AT_ONCE);
    let found = db.every_org().all(sql, [after.into()]).await?.into_iter();
    Ok(found.map(|Newest { organization_id, text }| (organization_id, text)).collect())
}

/// The newest text of every organization that has one.
pub async fn all_newest(db: &Db) -> Result<Given> {
    let texts = newest_since(db, None).await?.into_iter();
    Ok(texts.filter_map(|(org, text)| Some((org, text?.into()))).collect())
}
