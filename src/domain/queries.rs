//! SQL that features share: locks, and the last edit of a record.

use crate::{
    base::{
        enums::{ActorKind, RecordKind},
        problem::Result,
        time::Timestamp,
    },
    core::store::{
        Tx,
        sql::{OrgSql, RunSql as _, RunWritingSql as _, row, sql},
    },
};

/// Locks rows. NO KEY, so that rows that only refer to them can still be written.
macro_rules! lock {
    ($rows:literal) => {
        sql!("SELECT 1 FROM ", $rows, " FOR NO KEY UPDATE")
    };
}

pub(super) const ORGANIZATION: OrgSql = lock!("organizations WHERE id = $org");
pub(super) const ALL_AGENTS: OrgSql = lock!("agents WHERE organization_id = $org ORDER BY id");
pub(super) const AGENT_OF_APPROVAL: OrgSql = lock!(
    "agents WHERE organization_id = $org AND id = \
     (SELECT agent_id FROM approvals WHERE organization_id = $org AND id = $2)"
);
pub(super) const AGENT_OF_CONVERSATION: OrgSql = lock!(
    "agents WHERE organization_id = $org AND id = \
     (SELECT agent_id FROM conversations WHERE organization_id = $org AND id = $2)"
);

/// The statement that locks an editable record. `None` for other kinds.
pub(super) const fn record(kind: RecordKind) -> Option<OrgSql> {
    Some(match kind {
        RecordKind::Agent => lock!("agents WHERE organization_id = $org AND id = $2"),
        RecordKind::Approval => lock!("approvals WHERE organization_id = $org AND id = $2"),
        RecordKind::Channel => lock!("channels WHERE organization_id = $org AND id = $2"),
        RecordKind::Contact => lock!("contacts WHERE organization_id = $org AND id = $2"),
        RecordKind::Conversation => lock!("conversations WHERE organization_id = $org AND id = $2"),
        RecordKind::Credential => lock!("credentials WHERE organization_id = $org AND id = $2"),
        RecordKind::EventEndpoint => lock!("event_endpoints WHERE organization_id = $org AND id = $2"),
        RecordKind::Image => lock!("images WHERE organization_id = $org AND id = $2"),
        RecordKind::McpServer => lock!("mcp_servers WHERE organization_id = $org AND id = $2"),
        RecordKind::ModelCredential => lock!("model_credentials WHERE organization_id = $org AND id = $2"),
        RecordKind::Server => lock!("servers WHERE organization_id = $org AND id = $2"),
        RecordKind::ServiceToken => lock!("service_tokens WHERE organization_id = $org AND id = $2"),
        RecordKind::Skill => lock!("skills WHERE organization_id = $org AND id = $2"),
        _ => return None,
    })
}

row! {
    /// A record's revision and its author.
    pub(super) struct Latest {
        revision: i64,
        actor_id: Option<i64>,
        actor_name: Option<String>,
        at: Option<Timestamp>,
    }
}

/// A record's current revision. `None` before its first edit.
pub(super) async fn latest_edit(tx: &Tx, kind: RecordKind, id: i64) -> Result<Option<Latest>> {
    let of_agent = sql!(
        "SELECT a.revision, CASE WHEN r.author_kind = $3 THEN NULL ELSE r.author_id END AS actor_id, \
         r.author_name AS actor_name, r.created_at AS at FROM agents a LEFT JOIN agent_revisions r \
         ON r.organization_id = a.organization_id AND r.agent_id = a.id AND r.number = a.revision \
         WHERE a.organization_id = $org AND a.id = $2"
    );
    let of_others = sql!(
        "SELECT revision, actor_id, actor_name, at FROM edits \
         WHERE organization_id = $org AND record_id = $2 AND kind = $3"
    );
    match kind {
        RecordKind::Agent => tx.one(of_agent, [id.into(), ActorKind::System.into()]).await,
        kind => tx.one(of_others, [id.into(), kind.noun().into()]).await,
    }
}

/// Counts an edit of a record.
pub(super) async fn count_edit(
    tx: &Tx,
    (kind, id): (RecordKind, i64),
    actor: Option<i64>,
    name: Option<String>,
) -> Result<()> {
    let sql = sql!(
        "INSERT INTO edits (organization_id, kind, record_id, revision, actor_id, actor_name, at) \
         VALUES ($org, $2, $3, 1, $4, $5, $6) ON CONFLICT (organization_id, kind, record_id) DO UPDATE \
         SET revision = edits.revision + 1, actor_id = excluded.actor_id, actor_name = excluded.actor_name, \
         at = excluded.at"
    );
    tx.execute(sql, [kind.noun().into(), id.into(), actor.into(), name.into(), tx.now.into()]).await?;
    Ok(())
}
