//! SQL of credentials.

use crate::{
    base::{ids::AgentId, problem::Result, time::Timestamp},
    core::store::{
        Tx,
        sql::{RunWritingSql as _, sql},
    },
};

/// Sets the time of those of an agent's credentials to which `$which` applies. One that another transaction has locked
/// is left out, because who edits a credential locks its agents afterwards.
macro_rules! mark_used {
    ($which:literal) => {
        sql!(
            "UPDATE credentials SET last_used_at = $2 WHERE organization_id = $org AND id IN \
             (SELECT id FROM credentials WHERE organization_id = $org AND COALESCE(last_used_at, 0) < $2 AND id IN \
             (SELECT credential_id FROM credential_agents WHERE organization_id = $org AND agent_id = $3) AND ",
            $which,
            " FOR UPDATE SKIP LOCKED)"
        )
    };
}

/// Sets the time at which these of an agent's credentials were used.
pub(super) async fn mark_used(tx: &Tx, agent: AgentId, credentials: &[i64], at: Timestamp) -> Result<()> {
    let ids = tx.scope.core.db.keys(credentials);
    tx.execute(mark_used!("id = ANY($4)"), [at.into(), agent.into(), ids]).await?;
    Ok(())
}

/// Records that an agent is given the credentials that it may read: no one sees what it does with them.
pub async fn mark_given(tx: &Tx, agent: AgentId) -> Result<()> {
    let sql = mark_used!("agent_may_read_at IS NOT NULL AND archived_at IS NULL");
    tx.execute(sql, [tx.now.into(), agent.into()]).await?;
    Ok(())
}
