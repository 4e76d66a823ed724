//! SQL of approvals.

use crate::{
    base::{
        ids::{ApprovalId, OrgId, TurnId, UserId},
        problem::Result,
        time::Timestamp,
    },
    core::{
        Core,
        store::{
            Tx,
            sql::{RunSql as _, RunWritingSql as _, every_org_sql, installation_sql, sql},
        },
    },
};

/// Hides an approval from a person until a time.
pub(super) async fn add_snooze(tx: &Tx, id: ApprovalId, person: UserId, until: Timestamp) -> Result<()> {
    let sql = sql!(
        "INSERT INTO approval_snoozes (organization_id, approval_id, user_id, until) VALUES ($org, $2, $3, $4) \
         ON CONFLICT (organization_id, approval_id, user_id) DO UPDATE SET until = excluded.until"
    );
    tx.execute(sql, [id.into(), person.into(), until.into()]).await?;
    Ok(())
}

/// Shows an approval to a person again.
pub(super) async fn delete_snooze(tx: &Tx, id: ApprovalId, person: UserId) -> Result<()> {
    let sql = sql!(
        "DELETE FROM approval_snoozes WHERE organization_id = $org AND approval_id = $2 AND user_id = $3"
    );
    tx.execute(sql, [id.into(), person.into()]).await?;
    Ok(())
}

/// The approvals that people should be reminded of at `$1`.
pub const TO_REMIND: &str = "approvals WHERE status = 'PENDING' AND remind_at <= $1";
/// The approvals that are overdue at `$1`.
pub const OVERDUE: &str = "approvals WHERE status = 'PENDING' AND expires_at <= $1";

/// The organizations with approvals that people should be reminded of.
pub(super) async fn orgs_to_remind(core: &Core) -> Result<Vec<OrgId>> {
    let sql = every_org_sql!("SELECT DISTINCT organization_id FROM ", TO_REMIND);
    core.db.every_org().column(sql, [core.clock.now().into()]).await
}

/// The organizations with approvals that are overdue.
pub(super) async fn orgs_with_overdue(core: &Core) -> Result<Vec<OrgId>> {
    let sql = every_org_sql!("SELECT DISTINCT organization_id FROM ", OVERDUE);
    core.db.every_org().column(sql, [core.clock.now().into()]).await
}

/// Marks the decisions of this turn as delivered. Returns those that were not delivered before.
pub(super) async fn mark_delivered(tx: &Tx, turn: TurnId) -> Result<Vec<ApprovalId>> {
    let sql = sql!(
        "UPDATE approvals SET delivered_at = $3, updated_at = $3 WHERE organization_id = $org \
         AND answer_message_id IN (SELECT m.id FROM messages m WHERE m.organization_id = $org AND m.turn_id = $2) \
         AND delivery = 'TURN' AND delivered_at IS NULL RETURNING id"
    );
    tx.column(sql, [turn.into(), tx.now.into()]).await
}

/// The stored risk categories.
pub(super) async fn risk_categories(core: &Core) -> Result<Vec<String>> {
    let sql = installation_sql!("SELECT folded FROM risk_categories ORDER BY folded");
    core.db.installation().column(sql, []).await
}

pub(super) async fn add_risk_category(core: &Core, folded: &str) -> Result<()> {
    let sql = installation_sql!("INSERT INTO risk_categories (folded) VALUES ($1) ON CONFLICT DO NOTHING");
    core.db.installation().execute(sql, [folded.into()]).await?;
    Ok(())
}

pub(super) async fn delete_risk_category(core: &Core, folded: &str) -> Result<()> {
    let sql = installation_sql!("DELETE FROM risk_categories WHERE folded = $1");
    core.db.installation().execute(sql, [folded.into()]).await?;
    Ok(())
}
