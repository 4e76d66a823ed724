//! SQL of skills.

use crate::{
    base::{ids::SkillId, problem::Result},
    core::store::{
        Tx,
        sql::{RunWritingSql as _, sql},
    },
};

/// Deletes old versions of a skill: those beyond the `most` newest, and those beyond `most_bytes` before the newest.
pub(super) async fn delete_old_versions(
    tx: &Tx,
    skill: SkillId,
    newest: i64,
    (most, most_bytes): (i64, i64),
) -> Result<()> {
    let sql = sql!(
        "DELETE FROM skill_versions WHERE organization_id = $org AND skill_id = $2 AND number < $3 AND (number <= $3 - $4 \
         OR (SELECT SUM(newer.bytes) FROM skill_versions newer WHERE newer.organization_id = $org AND newer.skill_id = $2 \
         AND newer.number < $3 AND newer.number >= skill_versions.number) > $5)"
    );
    tx.execute(sql, [skill.into(), newest.into(), most.into(), most_bytes.into()]).await?;
    Ok(())
}
