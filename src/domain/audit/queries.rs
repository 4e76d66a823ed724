//! SQL of the audit log.

use async_graphql::SimpleObject;

use crate::{
    base::{problem::Result, time::Timestamp},
    core::{
        access::Scope,
        store::sql::{RunSql as _, row, sql},
    },
};

row! {
    /// The state of an organization's hash chain.
    #[derive(SimpleObject)]
    pub struct AuditSeal {
        /// The last entry in the chain.
        chain_seq: i64,
        /// When the chain was last sealed with a signature. Null: not yet.
        sealed_at: Option<Timestamp>,
    }
}

/// The state of the organization's chain. `None` if it has no entry yet.
pub async fn seal(scope: &Scope) -> Result<Option<AuditSeal>> {
    let sql = sql!(
        "SELECT c.last_seq AS chain_seq, (SELECT k.at FROM audit_checkpoints k WHERE k.chain = c.chain \
         AND k.kind = 'CHECKPOINT' ORDER BY k.seq DESC LIMIT 1) AS sealed_at \
         FROM audit_chains c WHERE c.chain = $org"
    );
    scope.one(sql, []).await
}
