//! SQL of policies.

use crate::{
    base::{
        ids::{OrgId, PolicyVersionId},
        problem::Result,
    },
    core::store::{
        Db,
        sql::{RunSql as _, every_org_sql, row},
    },
};

row! {
    /// The text of a version, and its organization.
    pub(super) struct VersionText {
        organization_id: OrgId,
        text: Option<String>,
    }
}

/// The text of a version of any organization.
pub(super) async fn version_text(db: &Db, id: PolicyVersionId) -> Result<Option<VersionText>> {
    let sql = every_org_sql!("SELECT organization_id, text FROM policy_versions WHERE id = $1");
    db.every_org().one(sql, [id.into()]).await
}
