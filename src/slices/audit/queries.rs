//! SQL of the audit log.

use super::AuditSeal;
use crate::{
    base::problem::Result,
    core::{
        access::Scope,
        store::sql::{Door as _, sql},
    },
};

/// The state of the organization's chain. `None` if it has no entry yet.
pub(super) async fn seal(scope: &Scope) -> Result<Option<AuditSeal>> {
    let sql = sql!(
        "SELECT c.last_seq AS chain_seq, (SELECT k.at FROM audit_checkpoints k WHERE k.chain = c.chain \
         AND k.kind = 'CHECKPOINT' ORDER BY k.seq DESC LIMIT 1) AS sealed_at \
         FROM audit_chains c WHERE c.chain = $org"
    );
    scope.one(sql, []).await
}
